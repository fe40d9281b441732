//! Filters of the core as rows: what the crate knows of the core's filters.

use alloc::vec::Vec;

use blocked_bloom::probe::BLOCK_BITS;
use blocked_bloom::{Block, BloomFilter, KeyHash};

use crate::builder::PlanesBuilder;
use crate::error::{GROUP_ROWS_STEP, PlanesError};
use crate::options::PlanesOptions;
use crate::planes::Planes;
use crate::shape::{Shape, ShapeError};

fn shape_of<D: AsRef<[Block]>>(filter: &BloomFilter<D>) -> Result<Shape, ShapeError> {
    let params = filter.params();
    Shape::new(params.blocks(), BLOCK_BITS, params.probes())
}

impl PlanesBuilder {
    /// Appends a filter of the core as a row: 512 bits in a block, and the same blocks, probes and
    /// hash as the options have. The answers are those of the filter: "maybe" for everything if it
    /// is a pass-all filter or holds prefixes alone.
    ///
    /// # Errors
    ///
    /// [`PlanesError::RowShape`], [`PlanesError::HashMismatch`]; those of
    /// [`append`](Self::append).
    pub fn append_filter<D: AsRef<[Block]>>(
        &mut self,
        filter: &BloomFilter<D>,
    ) -> Result<Option<Vec<u8>>, PlanesError> {
        // The blocks once: the owner of stored bytes may lend others the next time.
        let filter = filter.view();
        let (found, expected) = (filter.key_hash(), self.options().key_hash());
        if found != expected {
            return Err(PlanesError::HashMismatch { found, expected });
        }
        if filter.is_pass_all() || !filter.contents().whole_keys() {
            return self.append_pass_all();
        }
        let (found, expected) = (shape_of(&filter)?, self.options().shape());
        if found != expected {
            return Err(PlanesError::RowShape { found, expected });
        }
        self.append_with(|row| {
            let words = filter.blocks().as_flattened().as_chunks::<8>().0;
            row.iter_mut().zip(words).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
        })
    }
}

impl Planes {
    /// A row for each filter of the core, all of the same blocks, probes and hash as the first:
    /// their answers, bit for bit.
    ///
    /// Groups have as many rows as there are filters, rounded up to 512, but at most those of
    /// [`PlanesOptions::new`]. Large planes are advised to be on huge pages; those that
    /// [`PlanesBuilder::append_filter`] makes are not.
    ///
    /// # Errors
    ///
    /// [`PlanesError::RowShape`], [`PlanesError::HashMismatch`] for the first that differs;
    /// [`ShapeError::PlanesOutOfRange`] for filters of more than 8 MiB; [`PlanesError::Alloc`].
    ///
    /// ```
    /// use blocked_bloom::{Bitmask, FilterOptions, Sizing};
    /// use blocked_bloom_planes::{Planes, Query};
    /// // Filters of the same size and probes: of as many keys each, or made for this many.
    /// let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
    /// let mut filters = Vec::new();
    /// for table in 0..100 {
    ///     let mut filter = options.empty_filter(1_000)?;
    ///     filter.insert(format!("key of table {table}"))?;
    ///     filters.push(filter);
    /// }
    /// let planes = Planes::from_filters(&filters)?;
    /// let mut hits = Bitmask::new();
    /// planes.query(&Query::all([planes.hasher()?.hash("key of table 42")]), &mut hits);
    /// assert!(hits.hits().eq([42]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_filters<'f, D: AsRef<[Block]> + 'f>(
        filters: impl IntoIterator<Item = &'f BloomFilter<D>>,
    ) -> Result<Self, PlanesError> {
        let filters: Vec<&BloomFilter<D>> = filters.into_iter().collect();
        // A stand-in for a filter that is missing has no shape of its own.
        let model = filters.iter().find(|filter| !filter.is_pass_all());
        let shape = model.map_or(Shape::new(1, BLOCK_BITS, 1), |filter| shape_of(filter))?;
        let key_hash = filters.first().map_or(KeyHash::default(), |first| first.key_hash());
        let options = PlanesOptions::new(shape).with_key_hash(key_hash);
        let rows = u32::try_from(filters.len()).unwrap_or(u32::MAX).max(1);
        let rows = rows.checked_next_multiple_of(GROUP_ROWS_STEP).unwrap_or(u32::MAX);
        let options = options.with_group_rows(rows.min(options.group_rows()))?;
        Planes::from_rows(&options, filters, PlanesBuilder::append_filter)
    }
}

//! Uses filters of the core as rows. Only this file depends on the core's filter types.

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
    /// Appends a filter of the core as a row. The options must have 512 bits in a block, and the
    /// same blocks, probes and hash as the filter. The row answers as the filter does: "maybe" for
    /// every key if it is a pass-all filter or contains only prefixes.
    ///
    /// # Errors
    ///
    /// [`PlanesError::RowShape`], [`PlanesError::HashMismatch`], and the errors of
    /// [`append`](Self::append).
    /// [`append`](Self::append).
    pub fn append_filter<D: AsRef<[Block]>>(
        &mut self,
        filter: &BloomFilter<D>,
    ) -> Result<Option<Vec<u8>>, PlanesError> {
        // Takes the blocks once: the owner of stored bytes may lend others the next time.
        let filter = filter.view();
        self.check_key_hash(filter.key_hash())?;
        if filter.is_pass_all() || !filter.contents().whole_keys() {
            return self.append_pass_all();
        }
        self.check_shape(shape_of(&filter)?)?;
        self.append_with(|row| {
            let words = filter.blocks().as_flattened().as_chunks::<8>().0;
            row.iter_mut().zip(words).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
        })
    }
}

impl Planes {
    /// Builds planes with one row per filter of the core. All filters must have the blocks, probes
    /// and hash of the first. The rows give the filters' answers, bit for bit.
    ///
    /// A group has as many rows as there are filters, rounded up to a multiple of 512, and at most
    /// as many as [`PlanesOptions::new`] sets. Large planes are advised to use huge pages, unlike
    /// those that [`PlanesBuilder::append_filter`] builds.
    ///
    /// # Errors
    ///
    /// [`PlanesError::RowShape`] or [`PlanesError::HashMismatch`] for the first filter that
    /// differs, [`ShapeError::PlanesOutOfRange`] for filters above 8 MiB, and
    /// [`PlanesError::Alloc`].
    ///
    /// ```
    /// use blocked_bloom::{Bitmask, FilterOptions, Sizing};
    /// use blocked_bloom_planes::{Planes, Query};
    /// // Filters of equal size and probes: built for the same number of keys.
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
        // The substitute for a missing filter has no shape of its own.
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

//! Lookups: from hashes to ranges of the index, and from their bytes to row groups.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use blocked_bloom::{Bitmask, KeyHash};
use blocked_bloom_planes::{GroupLocation, PlanesError, Query};

use crate::error::FileIndexError;
use crate::identity::{FileIdentity, UnknownReason};
use crate::manifest::{Chunk, FileEntry, Indexed, Manifest, NO_ROW_GROUP};
use crate::part::part;

/// A lookup of values in a column, made by [`Manifest::lookup`].
///
/// Several columns are several lookups, whose candidates are combined by [`Candidates::and`] and
/// [`Candidates::or`].
///
/// ```
/// # use blocked_bloom::KeyHash;
/// # use blocked_bloom_file_index::{Column, FileIndex, FileIndexOptions, Lookup};
/// # let key_hash = KeyHash::Xxh3 { seed: 3 };
/// # let columns = vec![Column::new("id", key_hash)];
/// # let index = FileIndex::from_bytes(FileIndexOptions::new(columns, 7).builder()?.finish()?)?;
/// let manifest = index.manifest();
/// let hashes = ["a", "b"].map(|value| key_hash.hasher().unwrap().hash(value));
/// let lookup: Lookup = manifest.lookup(0, key_hash, |own| own == "Utf8", hashes)?;
/// // Hashed otherwise, nothing would be found.
/// assert!(manifest.lookup(0, KeyHash::Xxh3 { seed: 1 }, |own| own == "Utf8", hashes).is_err());
/// # Ok::<(), blocked_bloom_file_index::FileIndexError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Lookup {
    id: u64,
    pub(crate) column: usize,
    /// Row groups of other types, and those that are not indexed.
    unknown: Vec<u64>,
    /// Ascending, each once.
    pub(crate) hashes: Vec<u64>,
}

/// The ranges of an index that lookups need, returned by [`Manifest::locate`].
///
/// ```
/// # use blocked_bloom::KeyHash;
/// # use blocked_bloom_file_index::{Column, FileIndexOptions, LocatedLookups, Manifest};
/// # let key_hash = KeyHash::Caller { tag: 1 };
/// # let columns = vec![Column::new("id", key_hash)];
/// # let stored = FileIndexOptions::new(columns, 7).builder()?.finish()?;
/// let manifest = Manifest::from_tail(&stored, stored.len() as u64)?;
/// let lookups = [manifest.lookup(0, key_hash, |_| true, [42 << 40])?];
/// let located: LocatedLookups<'_> = manifest.locate(&lookups)?;
/// let load = |range: &std::ops::Range<u64>| &stored[range.start as usize..range.end as usize];
/// let loaded: Vec<&[u8]> = located.ranges().iter().map(load).collect();
/// assert_eq!(manifest.candidates(&located, &loaded)?[0].count(), 0); // there are no files
/// # Ok::<(), blocked_bloom_file_index::FileIndexError>(())
/// ```
#[derive(Clone, Debug)]
pub struct LocatedLookups<'l> {
    id: u64,
    lookups: &'l [Lookup],
    ranges: Vec<Range<u64>>,
    /// By range: the number of the chunk, and a group of its planes.
    groups: Vec<(usize, GroupLocation)>,
}

impl LocatedLookups<'_> {
    /// The ranges, ascending, without overlaps. Each has a few hundred bytes to a few hundred KiB.
    /// Each value needs one range per probe and group of planes.
    ///
    /// On an object store each range is a request, unless the client merges ranges near each other,
    /// which reads more bytes in fewer requests.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }
}

/// The row groups of all files that may satisfy a lookup, or several.
///
/// ```
/// # use blocked_bloom::KeyHash;
/// # use blocked_bloom_file_index::{Column, FileIdentity, FileIndex, FileIndexOptions};
/// # let key_hash = KeyHash::Caller { tag: 1 };
/// # let columns = vec![Column::new("a", key_hash), Column::new("b", key_hash)];
/// # let mut builder = FileIndexOptions::new(columns, 7).builder()?;
/// # let mut file = builder.file(FileIdentity::new("f", 1), &[Some("Int64"); 2], 2)?;
/// # let (one, two) = (0x1234_5678_9abc_def0, 0xfedc_ba98_7654_3210);
/// # file.insert_hashes(0, &[one])?;
/// # file.insert_hashes(1, &[one])?;
/// # let mut stored = file.end_row_group()?;
/// # file.insert_hashes(0, &[one])?;
/// # file.insert_hashes(1, &[two])?;
/// # stored.extend(file.end_row_group()?);
/// # file.end()?;
/// # stored.extend(builder.finish()?);
/// let index = FileIndex::from_bytes(stored)?;
/// let candidates = |column, hash: u64| {
///     index.candidates(&index.manifest().lookup(column, key_hash, |_| true, [hash])?)
/// };
/// // a = 1 AND b = 2
/// let mut found = candidates(0, one)?;
/// assert_eq!(found.count(), 2);
/// found.and(&candidates(1, two)?)?;
/// assert_eq!(found.count(), 1);
/// # Ok::<(), blocked_bloom_file_index::FileIndexError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Candidates {
    pub(crate) id: u64,
    /// A bit for each row group.
    bits: Vec<u64>,
    damage: Option<PlanesError>,
}

impl Candidates {
    /// Removes all candidates that are not in `other`: AND.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::OtherIndex`]; nothing is changed then.
    pub fn and(&mut self, other: &Candidates) -> Result<(), FileIndexError> {
        self.combine(other, |bits, other| *bits &= other)
    }

    /// Adds those that are among others: OR.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::OtherIndex`]; nothing is changed then.
    pub fn or(&mut self, other: &Candidates) -> Result<(), FileIndexError> {
        self.combine(other, |bits, other| *bits |= other)
    }

    fn combine(
        &mut self,
        other: &Candidates,
        with: impl Fn(&mut u64, u64),
    ) -> Result<(), FileIndexError> {
        if self.id != other.id || self.bits.len() != other.bits.len() {
            return Err(FileIndexError::OtherIndex);
        }
        self.bits.iter_mut().zip(&other.bits).for_each(|(bits, &other)| with(bits, other));
        self.damage = self.damage.or(other.damage);
        Ok(())
    }

    /// How many there are, in files that were indexed, whether they are still there or not.
    pub fn count(&self) -> u64 {
        self.bits.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// The first damage found in planes, or a range that could not be loaded. Their row groups are
    /// candidates.
    pub fn damage(&self) -> Option<PlanesError> {
        self.damage
    }

    pub(crate) fn contains(&self, row_group: u32) -> bool {
        self.bits[(row_group / 64) as usize] >> (row_group % 64) & 1 == 1
    }

    /// Adds the row groups whose part for a hash is among the hits. `first_row` is the first row of
    /// these.
    pub(crate) fn add(&mut self, column: &Indexed, hash: u64, first_row: usize, hits: &Bitmask) {
        for row in hits.hits().map(|hit| first_row + hit) {
            let Some(group) = column.known.get(column.owner[row] as usize) else { continue };
            if group.first_row as usize + part(hash, group.parts) as usize == row {
                self.bits[(group.number / 64) as usize] |= 1 << (group.number % 64);
            }
        }
    }

    /// Adds all row groups that have a part among some rows, since the planes have this damage.
    pub(crate) fn add_damaged(
        &mut self,
        column: &Indexed,
        rows: Range<usize>,
        damage: PlanesError,
    ) {
        let mut before = NO_ROW_GROUP;
        for &owner in &column.owner[rows] {
            if owner != before
                && let Some(group) = column.known.get(owner as usize)
            {
                self.bits[(group.number / 64) as usize] |= 1 << (group.number % 64);
            }
            before = owner;
        }
        self.damage = self.damage.or(Some(damage));
    }
}

/// The row groups of a file to read. [`Manifest::prune`] has an example.
///
/// ```
/// use blocked_bloom_file_index::{Pruned, UnknownReason};
/// let is_read = |pruned: &Pruned| !matches!(pruned, Pruned::Empty);
/// assert!(is_read(&Pruned::Unknown(UnknownReason::OtherTag)) && !is_read(&Pruned::Empty));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pruned {
    /// All of it: the index does not know the file as it is now.
    Unknown(UnknownReason),
    /// Nothing.
    Empty,
    /// The row groups whose bits are set: at least one. There is a bit for each.
    RowGroups(Bitmask),
}

impl Manifest {
    /// Makes a lookup of the values with these hashes in a column. Without hashes no row group is a
    /// candidate.
    ///
    /// `is_type` returns, for each type that the column has in files, whether matching values of
    /// this type have these hashes. Row groups of other types are always candidates.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::ColumnOutOfRange`]; [`FileIndexError::HashMismatch`] if values of the
    /// column are hashed otherwise.
    pub fn lookup(
        &self,
        column: usize,
        key_hash: KeyHash,
        mut is_type: impl FnMut(&str) -> bool,
        hashes: impl Into<Vec<u64>>,
    ) -> Result<Lookup, FileIndexError> {
        let columns = self.columns.len();
        let error = FileIndexError::ColumnOutOfRange { column, columns };
        let indexed = self.columns.get(column).ok_or(error)?;
        let found = indexed.column.key_hash;
        if found != key_hash {
            return Err(FileIndexError::HashMismatch { found, expected: key_hash });
        }
        let mut unknown = indexed.unknown.clone();
        let others: Vec<bool> = self.types(column).map(|own| !is_type(own)).collect();
        if others.contains(&true) {
            for (file, &type_of) in self.files().zip(&indexed.type_of) {
                if type_of > 0 && others[type_of as usize - 1] {
                    file.numbers().for_each(|number| {
                        unknown[(number / 64) as usize] |= 1 << (number % 64);
                    });
                }
            }
        }
        let mut hashes = hashes.into();
        hashes.sort_unstable();
        hashes.dedup();
        Ok(Lookup { id: self.id(), column, unknown, hashes })
    }

    /// Row groups that are candidates whatever the planes say.
    pub(crate) fn unknown(&self, lookup: &Lookup) -> Result<Candidates, FileIndexError> {
        match lookup.id == self.id() {
            true => Ok(Candidates { id: lookup.id, bits: lookup.unknown.clone(), damage: None }),
            false => Err(FileIndexError::OtherIndex),
        }
    }

    /// Returns the ranges of the index that these lookups need together.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::OtherIndex`] if a lookup was made by another manifest.
    pub fn locate<'l>(&self, lookups: &'l [Lookup]) -> Result<LocatedLookups<'l>, FileIndexError> {
        let mut wanted = vec![Vec::new(); self.columns.len()];
        for lookup in lookups {
            if lookup.id != self.id() {
                return Err(FileIndexError::OtherIndex);
            }
            wanted[lookup.column].extend(&lookup.hashes);
        }
        let wanted: Vec<Query> = wanted.into_iter().map(Query::any).collect();
        let (mut ranges, mut groups) = (Vec::new(), Vec::new());
        for (number, chunk) in self.chunks.iter().enumerate() {
            for group in 0..chunk.layout.groups() {
                let at = chunk.layout.locate(&wanted[chunk.column], group)?;
                ranges.extend(at.planes.iter().map(|plane| {
                    let start = chunk.range.start + plane.offset;
                    start..start + plane.length
                }));
                if !at.planes.is_empty() {
                    groups.push((number, at));
                }
            }
        }
        Ok(LocatedLookups { id: self.id(), lookups, ranges, groups })
    }

    /// Returns the candidates of each located lookup, from the bytes of each range. Pass no bytes
    /// for a range that could not be loaded. Row groups whose planes are missing or damaged are
    /// candidates, and [`Candidates::damage`] reports them.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::RangeCount`] if there are not as many pieces as ranges;
    /// [`FileIndexError::OtherIndex`] if they were located by another manifest.
    pub fn candidates<B: AsRef<[u8]>>(
        &self,
        located: &LocatedLookups<'_>,
        loaded: &[B],
    ) -> Result<Vec<Candidates>, FileIndexError> {
        let (found, expected) = (loaded.len(), located.ranges.len());
        if found != expected {
            return Err(FileIndexError::RangeCount { found, expected });
        }
        if located.id != self.id() {
            return Err(FileIndexError::OtherIndex);
        }
        let found = located.lookups.iter().map(|lookup| self.unknown(lookup));
        let mut found = found.collect::<Result<Vec<_>, _>>()?;
        let (mut rest, mut hits) = (loaded, Bitmask::new());
        for (chunk, at) in &located.groups {
            let chunk = &self.chunks[*chunk];
            let mine = rest.split_off(..at.planes.len()).unwrap_or_default();
            let rows = chunk.rows_of(at.group);
            let column = &self.columns[chunk.column];
            let opened = chunk.layout.open(at, mine);
            let is_in_column = |(lookup, _): &(&Lookup, _)| lookup.column == chunk.column;
            for (lookup, found) in located.lookups.iter().zip(&mut found).filter(is_in_column) {
                for &hash in &lookup.hashes {
                    let looked_up = opened
                        .as_ref()
                        .map_err(|error| *error)
                        .and_then(|opened| opened.query(&Query::all([hash]), &mut hits));
                    match looked_up {
                        Ok(()) => found.add(column, hash, rows.start, &hits),
                        Err(error) => {
                            found.add_damaged(column, rows.clone(), error);
                            break;
                        }
                    }
                }
            }
        }
        Ok(found)
    }

    /// Returns the row groups to read of a file as it is listed now: all, unless it is the indexed
    /// file. Cost: about 100 ns.
    pub fn prune(&self, candidates: &Candidates, listed: &FileIdentity<'_>) -> Pruned {
        if candidates.id != self.id() {
            return Pruned::Unknown(UnknownReason::OtherIndex);
        }
        match self.file(listed) {
            Err(why) => Pruned::Unknown(why),
            Ok(file) if !file.numbers().any(|number| candidates.contains(number)) => Pruned::Empty,
            Ok(file) => Pruned::RowGroups(file.candidates(candidates)),
        }
    }
}

impl FileEntry<'_> {
    /// Which of its row groups are candidates, for a listing of the index itself: all of those of
    /// another index. [`Manifest::prune`] is for files that are to be read.
    pub fn candidates(&self, candidates: &Candidates) -> Bitmask {
        let is_other = candidates.id != self.manifest().id();
        let mut left = Bitmask::new();
        left.write(self.row_groups() as usize, |words| {
            words.fill(0);
            for (i, number) in self.numbers().enumerate() {
                words[i / 64] |= u64::from(is_other || candidates.contains(number)) << (i % 64);
            }
        });
        left
    }
}

impl Chunk {
    /// The rows of the column that a group of its planes has.
    fn rows_of(&self, group: u64) -> Range<usize> {
        let rows = self.layout.rows_of(group);
        let first = self.first_row as usize;
        first + rows.start as usize..first + rows.end as usize
    }
}

//! Verified stored filters, and lookups in them.

use std::fmt::{self, Formatter};
use std::ops::Bound;

use blocked_bloom::Bitmask;
use blocked_bloom_formats::FileRanges;
use blocked_bloom_formats::cassandra::Layout;

use crate::blocks::{BlockLoads, Probe};
use crate::error::{BadKey, Error, Warning};
use crate::facts::{Facts, Summary};
use crate::message::Message;
use crate::options::LookupOptions;
use crate::system::{Answers, Format, FoundFile, LookupContext, Source, Stored};
use crate::systems::{self, ColumnFilters, ColumnNames, Partitioned};

/// A stored filter with verified bytes, which it borrows. It can be described, and looked up in any
/// number of times.
///
/// It is `Send` and `Sync`. It takes a few hundred bytes of memory, plus about 100 for each
/// partition or column chunk. Only RedisBloom filters are copied.
///
/// ```
/// use blocked_bloom::FilterOptions;
/// use blocked_bloom_inspect::{FileRanges, Format, LookupOptions, Opened};
/// let mut builder = FilterOptions::default().builder();
/// builder.extend(["apple", "banana"])?;
/// let stored = builder.finish()?.to_bytes();
///
/// let opened = Opened::new("fruit.bloom", &FileRanges::from(&stored[..]), Format::NATIVE, None)?;
/// let facts = opened.describe();
/// assert_eq!(facts.json().get("keys_inserted"), Some(&2_u32.into()));
/// let lookup = opened.lookup(&LookupOptions::default())?;
/// assert_eq!(lookup.contains(&["apple", "durian"])?, [true, false]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Opened<'a> {
    name: String,
    format: Format,
    /// Bytes of the file.
    length: u64,
    stored: Box<dyn Stored + 'a>,
}

impl<'a> Opened<'a> {
    /// Opens a filter and verifies its checksums. The format is the result of
    /// [`recognise`](crate::recognise) or the user's choice.
    ///
    /// A native or removable filter with damage in its blocks alone, or a Parquet file with some
    /// damaged filters, is opened for its description; damaged filters are never looked up.
    /// `layout` is for Cassandra filters; if it is `None`, the version in the file's name decides.
    ///
    /// For an SST or Parquet file, `file` needs only the filters to look up or describe, and the
    /// metadata that leads to them; other formats need the whole file. Cost: reads everything that
    /// has a checksum once.
    ///
    /// # Errors
    ///
    /// [`Error::NotLoaded`] names the bytes to insert into `file` before the next call.
    /// [`Error::Damaged`] reports damage, [`Error::Options`] an unknown layout.
    ///
    /// ```
    /// use blocked_bloom_inspect::{Error, FileRanges, Format, Opened};
    /// # let stored = include_bytes!(concat!(
    /// #     env!("CARGO_MANIFEST_DIR"),
    /// #     "/../formats/tests/fixtures/rocksdb/bloom_b10_n5000_partitioned.sst"
    /// # ));
    /// let mut file = FileRanges::new(stored.len() as u64);
    /// let opened = loop {
    ///     match Opened::new("000012.sst", &file, Format::ROCKSDB_SST, None) {
    ///         Err(Error::NotLoaded { offset, length }) => {
    ///             file.insert(offset, &stored[offset as usize..][..length as usize]);
    ///         }
    ///         other => break other?,
    ///     }
    /// };
    /// assert!(file.loaded() < file.len() / 2);
    /// assert_eq!(opened.describe().damage, None);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn new(
        name: &str,
        file: &FileRanges<'a>,
        format: Format,
        layout: Option<Layout>,
    ) -> Result<Self, Error> {
        let stored = (format.system().open)(&Source { format, name, file, layout })?;
        Ok(Opened { name: name.to_owned(), format, length: file.len(), stored })
    }

    /// Opens the index of a partitioned filter together with its partitions, and verifies all of
    /// them. `partitions` holds one partition after another, in the order of the index.
    ///
    /// A partition that is damaged or belongs to another table is not an error: it answers "maybe",
    /// with a [warning](Lookup::warnings), and [`Facts::damage`] names it. Cost: reads everything
    /// once, and takes about 200 bytes of memory per partition.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] for a damaged index, or if the length of `partitions` is not the one in
    /// the index.
    ///
    /// ```
    /// use blocked_bloom::FilterOptions;
    /// use blocked_bloom_inspect::{LookupOptions, Opened};
    /// use blocked_bloom_lsm::PartitionedFilterBuilder;
    /// let mut partitions = Vec::new();
    /// let mut builder = PartitionedFilterBuilder::new(FilterOptions::default(), 256)?;
    /// for key in 1_000..2_000 {
    ///     if let Some(partition) = builder.insert(key.to_string())? {
    ///         partition.write_to(&mut partitions)?;
    ///     }
    /// }
    /// let (last, index) = builder.finish()?;
    /// last.write_to(&mut partitions)?;
    ///
    /// let opened = Opened::partitioned("keys.index", &index, &partitions)?;
    /// let lookup = opened.lookup(&LookupOptions::default())?;
    /// assert_eq!(lookup.contains(&["1000", "1999", "nobody"])?, [true, true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn partitioned(name: &str, index: &'a [u8], partitions: &'a [u8]) -> Result<Self, Error> {
        let format = Format::PARTITION_INDEX;
        let stored = Partitioned::open(index, partitions);
        let stored = Box::new(stored.map_err(|damage| format.damaged(damage))?);
        Ok(Opened { name: name.to_owned(), format, length: index.len() as u64, stored })
    }

    /// Returns the format that the file was opened as.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Describes the filter. Cost: reads all of its bits once or twice.
    pub fn describe(&self) -> Facts {
        let (name, format) = (self.name.clone(), self.format.name());
        let facts = self.stored.describe(&Summary { name, format, length: self.length });
        let damage = self.stored.damage().map(|damage| self.format.damaged(damage));
        Facts { damage: damage.or(facts.damage), ..facts }
    }

    /// Prepares the filter for lookups. Cost: for a column of a Parquet file, reads the headers of
    /// its filters; otherwise negligible.
    ///
    /// # Errors
    ///
    /// [`Error`] if the format lacks an option, if no filter of the column is usable, or if blocks
    /// are damaged; [`Error::NotLoaded`] for filters of a Parquet file.
    pub fn lookup<'o>(&'o self, options: &LookupOptions) -> Result<Lookup<'o>, Error> {
        self.format.check(options).map_err(Error::Options)?;
        if let Some(damage) = self.stored.damage() {
            return Err(self.format.damaged(damage));
        }
        let mut wanted = LookupContext { options, warnings: Vec::new() };
        if let Some(key_hash) = self.stored.hash_of_keys()
            && key_hash.hasher().is_err()
        {
            let problem = format_args!("a filter of {key_hash}");
            wanted.warnings.push(Warning::pass_all(problem));
        }
        let answers = self.stored.lookup(&mut wanted)?;
        let warnings = wanted.warnings;
        Ok(Lookup { stored: &*self.stored, answers, warnings, is_text: !options.encoded })
    }

    /// Returns the number of block filters that [`block_loads`](Self::block_loads) can count:
    /// links, partitions, column chunks (in the order of the description's list, including those
    /// without a filter), or one.
    pub fn parts(&self) -> usize {
        self.stored.parts()
    }

    /// Returns how full the blocks of a part are, for drawing. `None` if the part does not exist,
    /// has no blocks, or is damaged or not loaded. Cost: reads the part once, plus a few hundred
    /// thousand steps for the expected histogram.
    pub fn block_loads(&self, part: usize) -> Option<BlockLoads> {
        match self.stored.damage() {
            Some(_) => None,
            None => self.stored.part(part)?.loads(),
        }
    }

    /// Returns the block and bits of a single key in each block filter that is looked up for it,
    /// for drawing. Empty if there are no blocks, if the hash is caller-supplied, or for prefix
    /// lookups.
    ///
    /// # Errors
    ///
    /// As [`lookup`](Self::lookup); [`Error::Key`] if the key is not a value of the column's type.
    pub fn probes(&self, key: &[u8], options: &LookupOptions) -> Result<Vec<Probe>, Error> {
        let lookup = self.lookup(options)?;
        lookup.contains(&[key]).map_err(Error::Key)?;
        if lookup.warnings().iter().any(Warning::is_pass_all) || options.prefix.is_some() {
            return Ok(Vec::new());
        }
        let places = self.stored.places(key, options).unwrap_or_else(|| {
            let hasher = self.stored.hash_of_keys().and_then(|key_hash| key_hash.hasher().ok());
            let hash = hasher.map(|hasher| hasher.hash(key));
            (0..self.stored.parts()).filter_map(|part| Some((part, hash?))).collect()
        });
        let probe = |(part, hash)| self.stored.part(part)?.probe(part, hash);
        Ok(places.into_iter().filter_map(probe).collect())
    }

    /// Returns the files and row groups that may hold a key, from a file index and in its order.
    /// The answer is about the files at the time of indexing. Cost: a lookup, plus a few
    /// nanoseconds per row group.
    ///
    /// # Errors
    ///
    /// [`Error::Options`] as for [`lookup`](Self::lookup), for a key that is not a value of the
    /// column, and for another format.
    ///
    /// ```
    /// use blocked_bloom::KeyHash;
    /// use blocked_bloom_file_index::{Column, FileIdentity, FileIndexOptions};
    /// use blocked_bloom_inspect::{FileRanges, Format, LookupOptions, Opened};
    /// # let column = Column::new("trace_id", KeyHash::Xxh3 { seed: 3 });
    /// # let hasher = column.hasher()?;
    /// # let mut builder = FileIndexOptions::new(vec![column], 1).builder()?;
    /// # let mut file = builder.file(FileIdentity::new("a.parquet", 1), &[Some("Utf8")], 2)?;
    /// # let mut stored = file.end_row_group()?;
    /// # file.insert_hashes(0, &[hasher.hash("4bf92f35")])?;
    /// # stored.extend(file.end_row_group()?);
    /// # file.end()?;
    /// # stored.extend(builder.finish()?);
    /// let file = FileRanges::from(&stored[..]);
    /// let opened = Opened::new("spans.index", &file, Format::FILE_INDEX, None)?;
    /// let found = opened.files_with(b"4bf92f35", &LookupOptions::default())?;
    /// assert_eq!((found[0].name.as_str(), &found[0].row_groups[..]), ("a.parquet", &[1][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn files_with(&self, key: &[u8], options: &LookupOptions) -> Result<Vec<FoundFile>, Error> {
        self.stored.files_with(key, options)
    }

    /// Returns whether a key between two bounds may be present in a range filter.
    ///
    /// # Errors
    ///
    /// [`Error::Options`] if it is another filter.
    pub fn contains_range(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<bool, Error> {
        self.stored.contains_range(lower, upper)
    }

    /// Returns the number of row groups of a Parquet file, and 0 for every other format.
    pub fn row_groups(&self) -> usize {
        self.stored.columns().map_or(0, |file| file.row_groups().len())
    }

    /// Returns whether a row group of a Parquet file has the column with this path, joined by dots.
    pub fn has_column(&self, name: &str) -> bool {
        let file = self.stored.columns();
        file.is_some_and(|file| file.row_groups().iter().any(|of| of.position(name).is_some()))
    }

    /// Returns the columns of a Parquet file that have filters. Empty for every other format.
    pub fn columns_with_filters(&self) -> ColumnNames {
        self.stored.columns().map(systems::columns_with_filters).unwrap_or_default()
    }

    /// Returns the filters of a column of a Parquet file, one per row group, for these row groups
    /// or for all if none are given.
    ///
    /// # Errors
    ///
    /// [`Error`] if the column or a row group does not exist, and for another format. Damaged or
    /// unloaded filters are not an error here.
    ///
    /// ```
    /// use blocked_bloom_inspect::{FileRanges, Format, Opened};
    /// # let stored = include_bytes!(concat!(
    /// #     env!("CARGO_MANIFEST_DIR"),
    /// #     "/../formats/tests/fixtures/parquet/duckdb_n3000.parquet"
    /// # ));
    /// let file = FileRanges::from(&stored[..]);
    /// let opened = Opened::new("duckdb.parquet", &file, Format::PARQUET, None)?;
    /// let column = opened.column("i64", &[])?;
    /// // No row group holds it.
    /// assert!(column.row_groups_to_read(&["4711000000"], false)?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn column(&self, name: &str, row_groups: &[usize]) -> Result<ColumnFilters<'_>, Error> {
        match self.stored.columns() {
            Some(file) => systems::column(file, name, row_groups),
            None => {
                let text = format!("no column {name:?}: only Parquet files have columns");
                Err(Error::Options(Message::new(text)))
            }
        }
    }

    /// Returns the bytes, as (offset, length), that are still to be loaded to look up keys in a
    /// column of a Parquet file, or to describe all columns. Call it again after loading them: a
    /// filter of unknown length needs its header first. Empty if all but damaged filters are
    /// loaded, and for other formats.
    pub fn missing(&self, column: Option<&str>) -> Vec<(u64, u64)> {
        self.stored.columns().map_or(Vec::new(), |file| systems::missing(file, column))
    }
}

/// Formats the name and the format, without the bits.
impl fmt::Debug for Opened<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Opened");
        fields.field("name", &self.name).field("format", &self.format).finish_non_exhaustive()
    }
}

/// A filter prepared for one kind of lookup, returned by [`Opened::lookup`].
///
/// ```
/// # use blocked_bloom::FilterOptions;
/// # use blocked_bloom_inspect::{FileRanges, Format, LookupOptions, Opened};
/// # let mut builder = FilterOptions::default().builder();
/// # builder.extend(["apple"])?;
/// # let stored = builder.finish()?.to_bytes();
/// let opened = Opened::new("keys.bloom", &FileRanges::from(&stored[..]), Format::NATIVE, None)?;
/// let lookup = opened.lookup(&LookupOptions::default())?;
/// assert!(lookup.warnings().is_empty());
/// assert_eq!(lookup.contains(&["apple", "durian"])?, [true, false]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Lookup<'o> {
    stored: &'o (dyn Stored + 'o),
    answers: Answers<'o>,
    warnings: Vec<Warning>,
    /// Whether keys are text.
    is_text: bool,
}

impl Lookup<'_> {
    /// Returns reasons why the answers are less useful than expected. Show them before the answers.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns whether each key may be present; false means certainly absent.
    ///
    /// # Errors
    ///
    /// [`BadKey`] if a key is not a value of the filter's type.
    pub fn contains<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<bool>, BadKey> {
        let mut hits = Bitmask::new();
        self.contains_batch(keys, &mut hits)?;
        Ok(hits.iter().collect())
    }

    /// Same as [`contains`](Self::contains), with one bit per key.
    ///
    /// # Errors
    ///
    /// [`BadKey`]; the contents of `hits` are then meaningless.
    pub fn contains_batch<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        hits: &mut Bitmask,
    ) -> Result<(), BadKey> {
        (self.answers)(&slices(keys), hits)
    }

    /// Returns doubts about these keys and answers. For Cassandra filters: the keys are numbers as
    /// text, or the file was perhaps read in a wrong layout. Show them once, not once per batch.
    ///
    /// Cost: examines the text of the keys; if no key was found, looks up to 64 of them up in the
    /// other layouts.
    pub fn doubts<K: AsRef<[u8]>>(&self, keys: &[K], hits: &Bitmask) -> Vec<Warning> {
        self.stored.doubts(&slices(keys), hits, self.is_text)
    }
}

/// Converts keys to slices, which every system takes.
fn slices<K: AsRef<[u8]>>(keys: &[K]) -> Vec<&[u8]> {
    keys.iter().map(AsRef::as_ref).collect()
}

/// Formats the warnings.
impl fmt::Debug for Lookup<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookup").field("warnings", &self.warnings).finish_non_exhaustive()
    }
}

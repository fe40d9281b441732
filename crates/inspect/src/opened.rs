//! A stored filter that was verified, and lookups in it.

use std::fmt::{self, Formatter};

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

/// A stored filter that borrows its bytes, which were verified. It can be described, and looked up
/// in any number of times.
///
/// It is `Send` and `Sync`. It takes a few hundred bytes of memory, and some 100 for each partition
/// or column chunk; only filters of RedisBloom are copied.
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
    /// Opens a filter of a format that [`recognise`](crate::recognise) found, or that its user
    /// gave, and verifies its checksums.
    ///
    /// A native or removable filter whose blocks alone are damaged, and a Parquet file some of
    /// whose filters are damaged, are opened to be described; nothing damaged is looked up.
    /// `layout` is that of a Cassandra filter; if it is not given, the version in the file's name
    /// says it.
    ///
    /// Of an SST or Parquet file, `file` needs only what leads to the filters, and the filters that
    /// are looked up or described; of all other files, everything. Cost: reads everything that has
    /// a checksum once.
    ///
    /// # Errors
    ///
    /// [`Error::NotLoaded`] says which bytes to insert into `file` before the next call;
    /// [`Error::Damaged`]; [`Error::Options`] where the layout is not known.
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

    /// Opens the index of a partitioned filter together with its partitions, which stand one behind
    /// the other as the index says, and verifies all of them.
    ///
    /// A partition that is damaged, or one of another table, is no error: it answers "maybe", with
    /// a [warning](Lookup::warnings), and [`Facts::damage`] names it. Cost: reads everything once;
    /// some 200 bytes of memory for each partition.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] for a damaged index, or if the partitions have not as many bytes as the
    /// index says.
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

    /// The format that the file was opened as.
    pub fn format(&self) -> Format {
        self.format
    }

    /// What is known of the filter. Cost: reads all of its bits once or twice.
    pub fn describe(&self) -> Facts {
        let (name, format) = (self.name.clone(), self.format.name());
        let facts = self.stored.describe(&Summary { name, format, length: self.length });
        let damage = self.stored.damage().map(|damage| self.format.damaged(damage));
        Facts { damage: damage.or(facts.damage), ..facts }
    }

    /// Makes the filter ready for lookups. Cost: for a column of a Parquet file, reads the headers
    /// of its filters; otherwise next to nothing.
    ///
    /// # Errors
    ///
    /// [`Error`] if the options are not those of the format, if the column has no filter that can
    /// be used, if blocks are damaged, and [`Error::NotLoaded`] for filters of a Parquet file.
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

    /// How many filters of blocks there are that [`block_loads`](Self::block_loads) can count:
    /// links, partitions, column chunks (in the order of the description's list, those without a
    /// filter included), or one.
    pub fn parts(&self) -> usize {
        self.stored.parts()
    }

    /// How full the blocks of a part are, for a picture. `None` where there are no blocks, or they
    /// are damaged or not loaded, and for a part that does not exist. Cost: reads the part once,
    /// and some hundred thousand steps for what is expected.
    pub fn block_loads(&self, part: usize) -> Option<BlockLoads> {
        match self.stored.damage() {
            Some(_) => None,
            None => self.stored.part(part)?.loads(),
        }
    }

    /// Where a single key is looked up, for a picture: its block and bits in each filter of blocks
    /// that is looked up for it. Empty where there are no blocks, keys are not hashed here, or
    /// prefixes are looked up.
    ///
    /// # Errors
    ///
    /// As [`lookup`](Self::lookup); [`Error::Key`] for a key that is no value of the column's type.
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

    /// The files and row groups in which a key may be, by an index of files, in the order of the
    /// index: of the files as they were when they were indexed. Cost: a lookup, and some
    /// nanoseconds a row group.
    ///
    /// # Errors
    ///
    /// [`Error::Options`] as for [`lookup`](Self::lookup), for a key that is no value of the
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

    /// Row groups of a Parquet file. 0 for every other format.
    pub fn row_groups(&self) -> usize {
        self.stored.columns().map_or(0, |file| file.row_groups().len())
    }

    /// Whether a row group of a Parquet file has the column with this path, joined by dots.
    pub fn has_column(&self, name: &str) -> bool {
        let file = self.stored.columns();
        file.is_some_and(|file| file.row_groups().iter().any(|of| of.position(name).is_some()))
    }

    /// The columns of a Parquet file that have filters. None of any other format.
    pub fn columns_with_filters(&self) -> ColumnNames {
        self.stored.columns().map(systems::columns_with_filters).unwrap_or_default()
    }

    /// The filters of a column of a Parquet file, row group by row group: of these, or of all if
    /// none are named.
    ///
    /// # Errors
    ///
    /// [`Error`] if there is no such column or row group, and for another format. Filters that are
    /// damaged or not loaded are no error here.
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
    /// // No row group has it.
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

    /// The bytes, as (offset, length), that are still to be loaded to look up in the filters of a
    /// column of a Parquet file, or to describe those of all columns. Call it again when they are
    /// loaded: if the length of a filter is not known, its header comes first. Empty if all but
    /// damaged filters are loaded, and for other formats.
    pub fn missing(&self, column: Option<&str>) -> Vec<(u64, u64)> {
        self.stored.columns().map_or(Vec::new(), |file| systems::missing(file, column))
    }
}

/// What it is, without the bits.
impl fmt::Debug for Opened<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Opened");
        fields.field("name", &self.name).field("format", &self.format).finish_non_exhaustive()
    }
}

/// A filter that is ready for lookups of one kind: made by [`Opened::lookup`].
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
    /// Why the answers are worth less than is expected. To be shown before them.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Whether each key may be present: false means certainly absent.
    ///
    /// # Errors
    ///
    /// [`BadKey`]: one is no value of the filter's type.
    pub fn contains<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<bool>, BadKey> {
        let mut hits = Bitmask::new();
        self.contains_batch(keys, &mut hits)?;
        Ok(hits.iter().collect())
    }

    /// [`contains`](Self::contains) as one bit per key.
    ///
    /// # Errors
    ///
    /// [`BadKey`]; `hits` then means nothing.
    pub fn contains_batch<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        hits: &mut Bitmask,
    ) -> Result<(), BadKey> {
        (self.answers)(&slices(keys), hits)
    }

    /// Doubts that follow from keys and their answers. For Cassandra's filters: that keys are
    /// numbers as text, and that the file is perhaps read in a wrong layout. To be shown once,
    /// whatever the number of batches.
    ///
    /// Cost: looks at the keys' texts; if none was found, looks up to 64 of them up in the other
    /// layouts.
    pub fn doubts<K: AsRef<[u8]>>(&self, keys: &[K], hits: &Bitmask) -> Vec<Warning> {
        self.stored.doubts(&slices(keys), hits, self.is_text)
    }
}

/// Keys as every system takes them.
fn slices<K: AsRef<[u8]>>(keys: &[K]) -> Vec<&[u8]> {
    keys.iter().map(AsRef::as_ref).collect()
}

/// What will be looked up.
impl fmt::Debug for Lookup<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookup").field("warnings", &self.warnings).finish_non_exhaustive()
    }
}

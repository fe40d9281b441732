//! A stored filter that was verified: the one place that knows all formats.

use std::fmt::{self, Formatter};

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{BloomFilter, Filter as _, FormatError, Stored};
use blocked_bloom_formats::FileRanges;
use blocked_bloom_formats::cassandra::{CassandraFilter, Layout};
use blocked_bloom_formats::guava::GuavaFilter;
use blocked_bloom_formats::parquet::{ParquetError, ParquetFile, SplitBlock, SplitBlockFilter};
use blocked_bloom_formats::redis::RedisFilter;
use blocked_bloom_formats::rocksdb::{FilterBlock, RocksdbError, SstFilter};
use blocked_bloom_formats::spark::SparkFilter;
use blocked_bloom_lsm::PartitionIndex;
use blocked_bloom_planes::Planes;
use blocked_bloom_removable::RemovableFilter;
use blocked_bloom_ribbon::RibbonFilter;
use blocked_bloom_scalable::ScalableBloomFilter;

use crate::error::{ColumnNames, Damage, Error, Warning};
use crate::facts::Facts;
use crate::format::Format;
use crate::formats::{
    cassandra, growing, guava, native, parquet, partition_index, planes, redis, removable, ribbon,
    rocksdb, spark,
};
use crate::loads::{BlockLoads, Probe};
use crate::lookup::{Kind, Lookup, LookupOptions};

/// The filter, or the file that holds filters.
pub(crate) enum Filter<'a> {
    Native { bytes: &'a [u8], filter: BloomFilter<Stored<&'a [u8]>> },
    Compact(BloomFilter<Stored<&'a [u8]>>),
    Growing(ScalableBloomFilter<Stored<&'a [u8]>>),
    PartitionIndex(PartitionIndex<&'a [u8]>),
    Removable { bytes: &'a [u8], filter: RemovableFilter<Stored<&'a [u8]>> },
    Ribbon(RibbonFilter<&'a [u8]>),
    Planes(Planes<&'a [u8]>),
    RocksdbBlock(FilterBlock<&'a [u8]>),
    RocksdbSst(SstFilter<'a>),
    SplitBlock(SplitBlockFilter<&'a [SplitBlock]>),
    Parquet(ParquetFile<'a>),
    Cassandra(CassandraFilter<&'a [u8]>),
    Guava(GuavaFilter<&'a [u8]>),
    Spark(SparkFilter<&'a [u8]>),
    Redisbloom(RedisFilter),
}

/// What a description begins with.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) format: Format,
    /// Bytes of the file.
    pub(crate) length: u64,
    /// Whether the layout of a Cassandra filter was given.
    pub(crate) layout_given: bool,
    /// A checksum of the blocks that is wrong: what is there instead of what the header says.
    pub(crate) damage: Option<(Damage, u64)>,
}

impl About {
    /// The error for damage.
    pub(crate) fn damaged(&self, damage: impl Into<Damage>) -> Error {
        Error::Damaged { format: self.format, damage: damage.into() }
    }
}

/// A stored filter whose bytes were verified, and that borrows them: described, and looked up in as often as is wanted.
///
/// It is `Send` and `Sync`, and takes nothing of the bytes that it does not need: a few hundred bytes of memory, and some 100 for each
/// partition or column chunk. Only filters of RedisBloom are copied.
///
/// ```
/// use blocked_bloom::FilterOptions;
/// use blocked_bloom_inspect::{FileRanges, Format, LookupOptions, Opened};
/// let mut builder = FilterOptions::default().builder();
/// builder.extend(["apple", "banana"])?;
/// let stored = builder.finish()?.to_bytes();
///
/// let opened = Opened::new("fruit.bloom", &FileRanges::from(&stored[..]), Format::Native, None)?;
/// let facts = opened.describe();
/// assert_eq!(facts.json().get("keys_inserted"), Some(&2_u32.into()));
/// assert_eq!(opened.lookup(&LookupOptions::default())?.contains(&["apple", "durian"])?, [true, false]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Opened<'a> {
    pub(crate) about: About,
    pub(crate) filter: Filter<'a>,
}

impl<'a> Opened<'a> {
    /// Opens a filter of a format that [`recognise`](crate::recognise) found, or that its user gave, and verifies its checksums.
    ///
    /// A native or removable filter whose blocks alone are damaged, and a Parquet file some of whose filters are, are opened to be
    /// described; nothing damaged is looked up. `layout` is that of a Cassandra filter; without it the version in the file's name says it.
    ///
    /// Of an SST file and of a Parquet file only what leads to the filters needs to be in `file`, and the filters that are looked up or
    /// described; of all others, everything. Cost: reads everything that has a checksum once.
    ///
    /// # Errors
    ///
    /// [`Error::NotLoaded`] says which bytes to insert into `file` before the next call; [`Error::Damaged`],
    /// [`Error::CassandraLayout`].
    ///
    /// ```
    /// use blocked_bloom_inspect::{Error, FileRanges, Format, Opened};
    /// # let stored = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/tests/fixtures/rocksdb/bloom_b10_n5000_partitioned.sst"));
    /// let mut file = FileRanges::new(stored.len() as u64);
    /// let opened = loop {
    ///     match Opened::new("000012.sst", &file, Format::RocksdbSst, None) {
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
        let (length, layout_given) = (file.len(), layout.is_some());
        let mut about = About { name: name.to_owned(), format, length, layout_given, damage: None };
        let fail = |damage: Damage| match damage {
            Damage::Rocksdb(RocksdbError::NotLoaded { offset, length })
            | Damage::Parquet(ParquetError::NotLoaded { offset, length }) => {
                Error::NotLoaded { offset, length }
            }
            damage => Error::Damaged { format, damage },
        };
        let all = || file.get(0, length).ok_or(Error::NotLoaded { offset: 0, length });
        let filter = match format {
            Format::RocksdbSst => Filter::RocksdbSst(
                SstFilter::open_ranges(file).map_err(|error| fail(error.into()))?,
            ),
            Format::Parquet => Filter::Parquet(
                ParquetFile::open_ranges(file.clone()).map_err(|error| fail(error.into()))?,
            ),
            Format::Native => {
                let (bytes, opened) = (all()?, BloomFilter::from_bytes(all()?));
                let (filter, damage) =
                    or_trusted(opened, || BloomFilter::from_bytes_trusted(bytes)).map_err(fail)?;
                about.damage = damage;
                Filter::Native { bytes, filter }
            }
            Format::Removable => {
                let (bytes, opened) = (all()?, RemovableFilter::from_bytes(all()?));
                let (filter, damage) =
                    or_trusted(opened, || RemovableFilter::from_bytes_trusted(bytes))
                        .map_err(fail)?;
                about.damage = damage;
                Filter::Removable { bytes, filter }
            }
            Format::Cassandra => {
                let layout = layout.map_or_else(|| cassandra::layout_of_name(name), Ok)?;
                let filter = CassandraFilter::from_bytes(all()?, layout);
                Filter::Cassandra(filter.map_err(|error| fail(error.into()))?)
            }
            _ => open(format, all()?).map_err(fail)?,
        };
        Ok(Opened { about, filter })
    }

    /// The format that the file was opened as.
    pub fn format(&self) -> Format {
        self.about.format
    }

    /// What is known of the filter. Cost: reads all of its bits once or twice.
    pub fn describe(&self) -> Facts {
        let about = &self.about;
        let mut facts = match &self.filter {
            Filter::Native { bytes, filter } => native::describe(about, bytes, filter),
            Filter::Compact(filter) => native::describe_compact(about, filter),
            Filter::Growing(filter) => growing::describe(about, filter),
            Filter::PartitionIndex(index) => partition_index::describe(about, index),
            Filter::Removable { bytes, filter } => removable::describe(about, bytes, filter),
            Filter::Ribbon(filter) => ribbon::describe(about, filter),
            Filter::Planes(planes) => planes::describe(about, planes),
            Filter::RocksdbBlock(block) => rocksdb::describe_block(about, *block),
            Filter::RocksdbSst(filter) => rocksdb::describe_sst(about, filter),
            Filter::SplitBlock(filter) => parquet::describe_filter(about, filter),
            Filter::Parquet(file) => parquet::describe_file(about, file),
            Filter::Cassandra(filter) => cassandra::describe(about, filter),
            Filter::Guava(filter) => guava::describe(about, filter),
            Filter::Spark(filter) => spark::describe(about, filter),
            Filter::Redisbloom(filter) => redis::describe(about, filter),
        };
        if let Some((damage, _)) = &about.damage {
            facts.damage = Some(about.damaged(damage.clone()));
        }
        facts
    }

    /// Makes the filter ready for lookups. Cost: of a column of a Parquet file, reads the headers of its filters; else next to nothing.
    ///
    /// # Errors
    ///
    /// [`Error`] if the options are not those of the format, if the column has no filter that can be used, if blocks are damaged, and
    /// [`Error::NotLoaded`] for filters of a Parquet file.
    pub fn lookup<'o>(&'o self, options: &LookupOptions) -> Result<Lookup<'o>, Error> {
        options.check(self.format())?;
        if let Some((damage, _)) = &self.about.damage {
            return Err(self.about.damaged(damage.clone()));
        }
        let mut warnings = Vec::new();
        let mut hashed_by = |key_hash: blocked_bloom::KeyHash| {
            if key_hash.hasher().is_err() {
                warnings.push(Warning::CallersHash { key_hash });
            }
        };
        let kind = match &self.filter {
            Filter::Native { filter, .. } => {
                hashed_by(filter.key_hash());
                native::lookup(filter, options, &mut warnings)?
            }
            Filter::Compact(filter) => Kind::Bloom(filter),
            Filter::Growing(filter) => {
                hashed_by(filter.key_hash());
                Kind::Growing(filter)
            }
            Filter::PartitionIndex(_) => {
                warnings.push(Warning::IndexOnly);
                Kind::PassAll
            }
            Filter::Removable { filter, .. } => {
                hashed_by(filter.key_hash());
                Kind::Removable(filter)
            }
            Filter::Ribbon(filter) => {
                hashed_by(filter.key_hash());
                Kind::Ribbon(filter)
            }
            Filter::Planes(planes) => {
                hashed_by(planes.key_hash());
                planes::lookup(planes)
            }
            Filter::RocksdbBlock(block) => {
                warnings.extend(rocksdb::without_answers([block].into_iter()));
                Kind::Block(*block)
            }
            Filter::RocksdbSst(filter) => rocksdb::lookup_sst(filter, options, &mut warnings),
            Filter::SplitBlock(filter) => parquet::lookup_filter(filter, options)?,
            Filter::Parquet(_) => parquet::lookup_file(self, options, &mut warnings)?,
            Filter::Cassandra(filter) => {
                warnings.extend(filter.is_pass_all().then_some(Warning::EmptyFile));
                Kind::Cassandra(filter)
            }
            Filter::Guava(filter) => Kind::Guava(filter),
            Filter::Spark(filter) => spark::lookup(filter, options)?,
            Filter::Redisbloom(filter) => Kind::Redis(filter),
        };
        Ok(Lookup { kind, warnings, is_text: !options.encoded })
    }

    /// How many filters of blocks there are that [`block_loads`](Self::block_loads) can count: links, partitions, column chunks (in the order
    /// of the description's list, those without a filter included), or one.
    pub fn parts(&self) -> usize {
        crate::loads::parts(self)
    }

    /// How full the blocks of a part are, for a picture. `None` where there are no blocks, or they are damaged or not loaded, and for a part
    /// that is not there. Cost: reads the part once, and some hundred thousand steps for what is expected.
    pub fn block_loads(&self, part: usize) -> Option<BlockLoads> {
        crate::loads::block_loads(self, part)
    }

    /// Where a single key is looked up, for a picture: its block and bits in each filter of blocks that is looked up for it. Empty where
    /// there are no blocks, keys are not hashed here, or prefixes are looked up.
    ///
    /// # Errors
    ///
    /// As [`lookup`](Self::lookup); [`Error::Key`] for a key that is no value of the column's type.
    pub fn probes(&self, key: &[u8], options: &LookupOptions) -> Result<Vec<Probe>, Error> {
        crate::loads::probes(self, key, options)
    }

    /// The columns of a Parquet file that have filters. None of any other format.
    pub fn columns_with_filters(&self) -> ColumnNames {
        match &self.filter {
            Filter::Parquet(file) => parquet::columns_with_filters(file),
            _ => ColumnNames { names: Vec::new(), more: 0 },
        }
    }

    /// The filters of a column of a Parquet file, row group by row group: of these, or of all if none are named.
    ///
    /// # Errors
    ///
    /// [`Error`] if there is no such column or row group, and for another format. Filters that are damaged or not loaded are no error
    /// here.
    ///
    /// ```
    /// use blocked_bloom_inspect::{FileRanges, Format, Opened};
    /// # let stored = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/tests/fixtures/parquet/duckdb_n3000.parquet"));
    /// let opened = Opened::new("duckdb.parquet", &FileRanges::from(&stored[..]), Format::Parquet, None)?;
    /// let column = opened.column("i64", &[])?;
    /// assert!(column.row_groups_to_read(&["4711000000"], false)?.is_empty()); // no row group has it
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn column(
        &self,
        name: &str,
        row_groups: &[usize],
    ) -> Result<parquet::ColumnFilters<'_>, Error> {
        parquet::column(self, name, row_groups)
    }

    /// Which bytes are needed, as (offset, length), to look up in the filters of a column of a Parquet file or to describe those of all
    /// columns: once or twice, since of a filter whose length is not known the header comes first. None if they are all there, damaged
    /// ones left aside, and of other formats.
    pub fn missing(&self, column: Option<&str>) -> Vec<(u64, u64)> {
        match &self.filter {
            Filter::Parquet(file) => parquet::missing(file, column),
            _ => Vec::new(),
        }
    }
}

/// What it is, without the bits.
impl fmt::Debug for Opened<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("about", &self.about).finish_non_exhaustive()
    }
}

/// A filter of whole bytes.
fn open(format: Format, bytes: &[u8]) -> Result<Filter<'_>, Damage> {
    Ok(match format {
        Format::Compact => Filter::Compact(BloomFilter::from_compact_bytes(bytes)?),
        Format::Growing => Filter::Growing(ScalableBloomFilter::from_bytes(bytes)?),
        Format::PartitionIndex => Filter::PartitionIndex(PartitionIndex::from_bytes(bytes)?),
        Format::Ribbon => Filter::Ribbon(RibbonFilter::from_bytes(bytes)?),
        Format::Planes => Filter::Planes(Planes::from_bytes(bytes)?),
        Format::RocksdbBlock => Filter::RocksdbBlock(FilterBlock::from_bytes(bytes)?),
        Format::ParquetFilter => {
            let bitset = SplitBlockFilter::from_bytes(bytes)?.memory_bytes() as usize;
            let bitset = &bytes[bytes.len() - bitset..];
            Filter::SplitBlock(SplitBlockFilter::from_bitset(bitset)?)
        }
        Format::Guava => Filter::Guava(GuavaFilter::from_bytes(bytes)?),
        Format::Spark => Filter::Spark(SparkFilter::from_bytes(bytes)?),
        _ => Filter::Redisbloom(RedisFilter::from_bytes(bytes)?),
    })
}

/// What was opened, or if only its blocks are damaged, the same with the checksum that they have.
fn or_trusted<T>(
    opened: Result<T, FormatError>,
    trusted: impl FnOnce() -> Result<T, FormatError>,
) -> Result<(T, Option<(Damage, u64)>), Damage> {
    match opened {
        Ok(filter) => Ok((filter, None)),
        Err(error @ FormatError::Header(HeaderError::BodyChecksum { computed, .. })) => {
            let filter = trusted().map_err(|_| error)?;
            Ok((filter, Some((error.into(), computed))))
        }
        Err(error) => Err(error.into()),
    }
}

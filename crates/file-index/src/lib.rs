//! One index over the files of a data set: which of their row groups may have a value.
//!
//! A table of ten thousand Parquet files and a query for one identifier: without an index every
//! footer is read, and then whatever statistics or filters it leads to. Here a few small Bloom
//! filters stand for each row group, all of one shape, stored transposed as the bit planes of
//! [`blocked_bloom_planes`], and a lookup reads a few ranges of one file.
//!
//! The crate knows neither a file format nor storage: hashes go in, row groups come out, and what
//! needs bytes says which and takes them back. `docs/file-index.md` describes the bytes.
//!
//! # Building
//!
//! ```no_run
//! use blocked_bloom::KeyHash;
//! use blocked_bloom_file_index::{Column, FileIdentity, FileIndexOptions};
//!
//! let column = Column::new("trace_id", KeyHash::Xxh3 { seed: 3 });
//! let hasher = column.hasher()?;
//! // The tag tells this index from others that are stored at the same place before or after it.
//! let mut builder = FileIndexOptions::new(vec![column], 1_700_000_000_000_000_000).builder()?;
//! let mut stored = Vec::new(); // or a file, or an upload
//! let files = [("a.parquet", [["x", "y"], ["y", "z"]]), ("b.parquet", [["u", "v"]; 2])];
//! for (name, row_groups) in files {
//!     let file = FileIdentity::new(name, 12_345).with_etag("\"5d41402a\"");
//!     let mut file = builder.file(file, &[Some("Utf8")], 2)?;
//!     for values in row_groups {
//!         file.insert_hashes(0, &values.map(|value| hasher.hash(value)))?;
//!         stored.extend(file.end_row_group()?);
//!     }
//!     file.end()?;
//! }
//! stored.extend(builder.finish()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Looking up
//!
//! In memory, [`FileIndex::from_bytes`] and [`FileIndex::candidates`]. By ranges:
//!
//! ```ignore
//! let mut tail = read(length - 65_536..length);
//! let needed = Manifest::locate_tail(&tail, length)?; // the manifest, to the end
//! if needed.start < length - tail.len() as u64 { tail = read(needed) }
//! let manifest = Manifest::from_tail(&tail, length)?;
//!
//! let column = manifest.column("trace_id").expect("it is indexed");
//! let lookups = [manifest.lookup(column, key_hash, |own_type| own_type == "Utf8", hashes)?];
//! let located = manifest.locate(&lookups)?;
//! let loaded: Vec<_> = located.ranges().iter().map(read).collect(); // empty if it cannot be read
//! let candidates = manifest.candidates(&located, &loaded)?.remove(0);
//! match manifest.prune(&candidates, &FileIdentity::new(..)) { .. } // of each listed file
//! ```
//!
//! # What is not known is read
//!
//! [`Pruned::Unknown`] is the answer for every file that the index does not know exactly as it is
//! listed now; row groups of which a column is not indexed, or in a type that the caller did not
//! accept, or whose planes are damaged or could not be loaded, are among the candidates.
#![no_std]
// A sketch of the interface: what follows has no bodies yet.
#![allow(missing_docs, missing_debug_implementations, unused, unreachable_code, clippy::all)]
#![allow(clippy::unimplemented)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use blocked_bloom::parts::HeaderError;
use blocked_bloom::{AllocError, Bitmask, KeyError, KeyHash, KeyHasher};
use blocked_bloom_planes::{PlanesError, ShapeError};

/// A column: its name, its field id if the table format has one, and what its values are hashed
/// with. A file whose values have other keys (such as strings instead of integers) is not indexed
/// in this column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {/* name, field_id, key_hash */}

impl Column {
    /// A column without a field id.
    pub fn new(name: impl Into<String>, key_hash: KeyHash) -> Self {
        unimplemented!()
    }
    /// Sets the number by which a table format knows the column, whatever its name.
    pub fn with_field_id(self, field_id: i32) -> Self {
        unimplemented!()
    }
    pub fn name(&self) -> &str {
        unimplemented!()
    }
    pub fn field_id(&self) -> Option<i32> {
        unimplemented!()
    }
    /// What the values are hashed with: decided once, stored, and checked by [`Manifest::lookup`].
    pub fn key_hash(&self) -> KeyHash {
        unimplemented!()
    }
    /// The hasher of the values.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller hashes.
    pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
        unimplemented!()
    }
}

/// Which version of which file: its name and what is known of its contents, as a listing says it.
///
/// Names are compared byte for byte: give those of the engine's listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity<'a> {
    name: &'a str,
    length: u64,
    etag: Option<&'a str>,
    version: Option<&'a str>,
    modified: Option<i64>,
}

impl<'a> FileIdentity<'a> {
    /// A file of this many bytes of which nothing else is known.
    pub fn new(name: &'a str, length: u64) -> Self {
        unimplemented!()
    }
    pub fn with_etag(self, etag: &'a str) -> Self {
        unimplemented!()
    }
    /// The version that a store which keeps several names it by.
    pub fn with_version(self, version: &'a str) -> Self {
        unimplemented!()
    }
    /// The time of its last change, in nanoseconds since 1970 (UTC).
    pub fn with_modified(self, nanoseconds: i64) -> Self {
        unimplemented!()
    }
    pub fn name(&self) -> &'a str {
        unimplemented!()
    }
    pub fn length(&self) -> u64 {
        unimplemented!()
    }
    pub fn etag(&self) -> Option<&'a str> {
        unimplemented!()
    }
    pub fn version(&self) -> Option<&'a str> {
        unimplemented!()
    }
    pub fn modified(&self) -> Option<i64> {
        unimplemented!()
    }
}

/// What suffices for a listed file to be the one that was indexed. Name and length must always be
/// equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SameFile {
    /// An equal version or etag, on both sides; and of version, etag and time, none that both sides
    /// have may differ.
    #[default]
    Tag,
    /// As `Tag`, or an equal time of the last change. Does not see a file that was overwritten in
    /// place by one of the same length, with its time put back.
    LengthAndTime,
    /// Name and length alone: where a table format promises that files never change.
    Name,
}

/// What an index is to be: its columns, how often a row group is read in vain, memory.
#[derive(Clone, Debug, PartialEq)]
pub struct FileIndexOptions {/* columns, tag, rate, part_values, memory */}

impl FileIndexOptions {
    /// An index of these columns, in which one of a thousand row groups is read in vain, with parts
    /// of 256 values, built in 64 MiB.
    ///
    /// `tag` must differ from that of every other index that is, was or will be stored at the same
    /// place, and of what is appended to it: the time in nanoseconds, or a random number. Bytes
    /// that a reader loads from another index than its manifest is of then fail their checks.
    pub fn new(columns: Vec<Column>, tag: u64) -> Self {
        unimplemented!()
    }
    /// How many row groups a lookup of an absent value may read in vain, of how many in all: their
    /// ratio decides the size. An index to which more is appended keeps the ratio.
    pub fn with_false_row_groups(self, false_row_groups: f64, row_groups: u64) -> Self {
        unimplemented!()
    }
    /// Most values of a part, 16 to 65,536. A lookup reads `probes / 8` bytes of each part.
    pub fn with_part_values(self, values: u32) -> Self {
        unimplemented!()
    }
    /// Memory that a builder may use, at least 1 MiB: half for the distinct values of a row group.
    /// A row group with more values than fit is not indexed, and always read.
    pub fn with_memory(self, bytes: u64) -> Self {
        unimplemented!()
    }
    /// # Errors
    ///
    /// [`FileIndexError::Columns`], [`FileIndexError::Shape`], [`FileIndexError::PartValues`],
    /// [`FileIndexError::Alloc`].
    pub fn builder(&self) -> Result<FileIndexBuilder, FileIndexError> {
        unimplemented!()
    }
}

/// Takes files, and gives back the bytes of the index in pieces while it grows: written one behind
/// the other, those of every [`FileBuilder::end_row_group`] and of [`finish`](Self::finish).
pub struct FileIndexBuilder {/* .. */}

impl FileIndexBuilder {
    /// Begins a file: its own type of each column, as text (`None`: the column is not in it, or its
    /// values have other keys; it is then unknown), and how many row groups it has.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::ColumnCount`] if types are not as many as columns;
    /// [`FileIndexError::Name`] for an empty name; [`FileIndexError::TooMany`].
    pub fn file(
        &mut self,
        file: FileIdentity<'_>,
        types: &[Option<&str>],
        row_groups: u32,
    ) -> Result<FileBuilder<'_>, FileIndexError> {
        unimplemented!()
    }
    /// How many first bytes of the index that is appended to come before those that the builder
    /// returns: 0 for a new index.
    pub fn kept_bytes(&self) -> u64 {
        unimplemented!()
    }
    /// Distinct values in each row group so far, added up; row groups that are not indexed count
    /// for nothing.
    pub fn values(&self) -> u64 {
        unimplemented!()
    }
    pub fn files(&self) -> u64 {
        unimplemented!()
    }
    pub fn row_groups(&self) -> u64 {
        unimplemented!()
    }
    /// Row groups, of any column, with more values than fit into the memory.
    pub fn oversized(&self) -> u64 {
        unimplemented!()
    }
    /// Memory that is held between two calls, besides 100 to 200 bytes a file for the manifest.
    pub fn memory_bytes(&self) -> u64 {
        unimplemented!()
    }
    /// The remaining bytes: the last planes, the manifest and a trailer.
    ///
    /// Replace an index that others read in one step: a new file that is renamed, an object that is
    /// put.
    pub fn finish(self) -> Result<Vec<u8>, FileIndexError> {
        unimplemented!()
    }
}

/// A file that is being added to an index. If it is dropped without [`end`](Self::end), it is not
/// in the index, which is none the worse for it.
pub struct FileBuilder<'b> {
    builder: &'b mut FileIndexBuilder,
}

impl FileBuilder<'_> {
    /// Adds values of a column in the present row group, hashed by the column's hasher: the
    /// distinct ones, or all. Values that are NULL are no values.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::ColumnOutOfRange`], [`FileIndexError::Alloc`].
    pub fn insert_hashes(&mut self, column: usize, hashes: &[u64]) -> Result<(), FileIndexError> {
        unimplemented!()
    }
    /// Says that not all values of a column in the present row group are known: it is always read.
    pub fn unknown(&mut self, column: usize) -> Result<(), FileIndexError> {
        unimplemented!()
    }
    /// Ends the present row group, and returns what is to be written, often nothing.
    pub fn end_row_group(&mut self) -> Result<Vec<u8>, FileIndexError> {
        unimplemented!()
    }
    /// Ends the file.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::RowGroups`] if it had more or fewer row groups than was said, or values
    /// behind the last: it is not in the index then.
    pub fn end(self) -> Result<(), FileIndexError> {
        unimplemented!()
    }
}

/// What is known of an index from its last bytes: columns, files, and where everything else is.
/// Whatever is looked up by ranges goes through it.
#[derive(Clone)]
pub struct Manifest {/* .. */}

impl Manifest {
    /// Where the manifest is, and what follows it, from the last 64 bytes (or more) of an index and
    /// its length. The bytes from there to the end are what [`from_tail`](Self::from_tail) needs.
    pub fn locate_tail(tail: &[u8], stored_bytes: u64) -> Result<Range<u64>, FileIndexError> {
        unimplemented!()
    }
    /// Opens the manifest, which is in the last bytes of an index, and verifies it. There may be
    /// more bytes before it.
    pub fn from_tail(tail: &[u8], stored_bytes: u64) -> Result<Self, FileIndexError> {
        unimplemented!()
    }
    /// What suffices for a listed file to be the one that was indexed: [`SameFile::Tag`] otherwise.
    pub fn with_same_file(self, same_file: SameFile) -> Self {
        unimplemented!()
    }

    pub fn columns(&self) -> &[Column] {
        unimplemented!()
    }
    /// The number of the column of this name.
    pub fn column(&self, name: &str) -> Option<usize> {
        unimplemented!()
    }
    /// The different types that a column has in the files, as they were given.
    pub fn types(&self, column: usize) -> impl Iterator<Item = &str> {
        unimplemented!();
        core::iter::empty()
    }
    /// The files that were indexed: not those that there are, which only a listing knows. A name
    /// may come several times, if a file was replaced and indexed again.
    pub fn files(&self) -> impl ExactSizeIterator<Item = FileEntry<'_>> {
        unimplemented!();
        core::iter::empty()
    }
    /// The file that is this one, by what [`SameFile`] says.
    pub fn file(&self, file: &FileIdentity<'_>) -> Result<FileEntry<'_>, Unknown> {
        unimplemented!()
    }
    pub fn row_groups(&self) -> u64 {
        unimplemented!()
    }
    pub fn stored_bytes(&self) -> u64 {
        unimplemented!()
    }
    /// How many row groups the lookup of one absent value may read in vain, by the formula.
    pub fn expected_false_row_groups(&self, column: usize) -> f64 {
        unimplemented!()
    }

    /// What is looked up: a column must have one of these values. `is_type` says for each type that
    /// the column has in files whether values of it which are equal to one of those have its hash;
    /// files of other types are unknown. No hash: no row group has it.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::ColumnOutOfRange`]; [`FileIndexError::HashMismatch`] if the column is not
    /// hashed by `key_hash`.
    pub fn lookup(
        &self,
        column: usize,
        key_hash: KeyHash,
        is_type: impl FnMut(&str) -> bool,
        hashes: impl Into<Vec<u64>>,
    ) -> Result<Lookup, FileIndexError> {
        unimplemented!()
    }
    /// Which ranges of the index some lookups need, together.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::OtherIndex`] if a lookup was made for another manifest.
    pub fn locate<'l>(&self, lookups: &'l [Lookup]) -> Result<Located<'l>, FileIndexError> {
        unimplemented!()
    }
    /// The candidates of each lookup that was located. `loaded` has the bytes of each range, or none
    /// if they could not be loaded: row groups of bytes that are missing or damaged are candidates,
    /// and [`Candidates::damage`] says so.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::RangeCount`] if there are not as many pieces as ranges;
    /// [`FileIndexError::OtherIndex`].
    pub fn candidates<B: AsRef<[u8]>>(
        &self,
        located: &Located<'_>,
        loaded: &[B],
    ) -> Result<Vec<Candidates>, FileIndexError> {
        unimplemented!()
    }
    /// What is to be read of a listed file. Candidates of another index: unknown.
    pub fn prune(&self, candidates: &Candidates, file: &FileIdentity<'_>) -> Pruned {
        unimplemented!()
    }

    /// A builder that appends files. It returns the bytes that follow the first
    /// [`kept_bytes`](FileIndexBuilder::kept_bytes) of this index in the new one. `tag` as for
    /// [`FileIndexOptions::new`].
    pub fn appender(&self, tag: u64) -> Result<FileIndexBuilder, FileIndexError> {
        unimplemented!()
    }
}

/// A file as it was indexed.
#[derive(Clone, Copy)]
pub struct FileEntry<'m> {
    manifest: &'m Manifest,
    file: usize,
}

impl<'m> FileEntry<'m> {
    pub fn identity(&self) -> FileIdentity<'m> {
        unimplemented!()
    }
    pub fn row_groups(&self) -> u32 {
        unimplemented!()
    }
    /// The file's own type of a column; `None` if the column is not indexed in it.
    pub fn column_type(&self, column: usize) -> Option<&'m str> {
        unimplemented!()
    }
    /// How many different values a column has in each row group; `None` where it is not indexed.
    pub fn values(&self, column: usize) -> impl Iterator<Item = Option<u64>> {
        unimplemented!();
        core::iter::empty()
    }
    /// Which of its row groups are candidates: for a listing of the index itself. For files that
    /// are read, [`Manifest::prune`].
    pub fn candidates(&self, candidates: &Candidates) -> Bitmask {
        unimplemented!()
    }
}

/// What is looked up: [`Manifest::lookup`].
#[derive(Clone, Debug)]
pub struct Lookup {/* manifest id, column, types, hashes */}

/// Which ranges some lookups need: [`Manifest::locate`].
#[derive(Clone, Debug)]
pub struct Located<'l> {
    lookups: &'l [Lookup],
    ranges: Vec<Range<u64>>,
}

impl Located<'_> {
    /// Ascending, without overlaps, each with a checksum of its own. Stores that join ranges which
    /// are near each other read more bytes in fewer requests.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }
}

/// The row groups of all files that may satisfy a lookup.
#[derive(Clone, Debug)]
pub struct Candidates {/* manifest id, bits, damage */}

impl Candidates {
    /// Those that are also among others: AND of two lookups.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::OtherIndex`]; nothing is changed then. So for `or`.
    pub fn and(&mut self, other: &Candidates) -> Result<(), FileIndexError> {
        unimplemented!()
    }
    /// Those that are among either: OR of two lookups.
    pub fn or(&mut self, other: &Candidates) -> Result<(), FileIndexError> {
        unimplemented!()
    }
    /// How many there are, in files that may since have vanished too.
    pub fn count(&self) -> u64 {
        unimplemented!()
    }
    /// Why some row groups are candidates without having been looked up, if bytes were missing or
    /// damaged.
    pub fn damage(&self) -> Option<&FileIndexError> {
        unimplemented!()
    }
}

/// What is to be read of a file: [`Manifest::prune`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Pruned {
    /// Nothing is known of the file as it is now: all of it.
    Unknown(Unknown),
    /// Nothing.
    Nothing,
    /// The row groups whose bits are set; there are as many bits as row groups.
    RowGroups(Bitmask),
}

/// Why nothing is known of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unknown {
    /// No file of this name was indexed.
    NotIndexed,
    /// It was, with another length.
    OtherLength,
    /// With another version or etag.
    OtherTag,
    /// With another time of the last change.
    OtherTime,
    /// Neither side, or only one, has what [`SameFile`] requires.
    NoTag,
    /// The candidates are those of another index.
    OtherIndex,
}

/// An index in memory, with its bytes: a `Vec<u8>`, a mapped file, `bytes::Bytes`, a slice. If their
/// length changes later, every row group is a candidate.
#[derive(Clone)]
pub struct FileIndex<B = Vec<u8>> {
    manifest: Manifest,
    bytes: B,
}

impl<B: AsRef<[u8]>> FileIndex<B> {
    /// Opens an index and verifies all of it. Cost: reads everything once.
    pub fn from_bytes(bytes: B) -> Result<Self, FileIndexError> {
        unimplemented!()
    }
    pub fn with_same_file(self, same_file: SameFile) -> Self {
        unimplemented!()
    }
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }
    pub fn as_bytes(&self) -> &[u8] {
        unimplemented!()
    }
    /// The row groups that may have one of the values.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::OtherIndex`] if the lookup was made for another manifest.
    pub fn candidates(&self, lookup: &Lookup) -> Result<Candidates, FileIndexError> {
        unimplemented!()
    }
    /// The bytes of an index of the files that `keep` keeps, with what was appended merged.
    pub fn compact(
        &self,
        tag: u64,
        keep: impl FnMut(FileEntry<'_>) -> bool,
    ) -> Result<Vec<u8>, FileIndexError> {
        unimplemented!()
    }
}

/// Why an index cannot be made, opened or looked up in as requested.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FileIndexError {
    /// No columns, more than 1,024, or two of one name.
    Columns { columns: usize },
    /// No shape has the rate that was asked for.
    Shape(ShapeError),
    /// Not 16 to 65,536 values of a part.
    PartValues { values: u32 },
    /// Not as many types as columns.
    ColumnCount { found: usize, expected: usize },
    /// A column past the last.
    ColumnOutOfRange { column: usize, columns: usize },
    /// A file without a name.
    Name,
    /// More row groups or parts than can be counted.
    TooMany { what: &'static str, most: u64 },
    /// A file ended with more or fewer row groups than was said.
    RowGroups { found: u32, expected: u32 },
    /// Values that are hashed in another way than the column.
    HashMismatch { found: KeyHash, expected: KeyHash },
    /// A field of a record, or the length of the whole, is not what it must be.
    Header(HeaderError),
    /// Bytes of the tail that were given begin behind the manifest.
    Tail { found: u64, expected: u64 },
    /// The manifest is damaged or says what cannot be, at this offset of it.
    Manifest { offset: u64, what: &'static str },
    /// Planes that are damaged, or of another index.
    Planes(PlanesError),
    /// Not as many pieces were loaded as ranges were located.
    RangeCount { found: usize, expected: usize },
    /// A lookup, ranges or candidates of another index.
    OtherIndex,
    /// No memory.
    Alloc(AllocError),
}

impl core::fmt::Display for FileIndexError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(self, f)
    }
}

impl core::error::Error for FileIndexError {}

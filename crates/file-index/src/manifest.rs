//! The manifest, with which an index ends: columns, chunks of planes, files.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use blocked_bloom::KeyHasher;
use blocked_bloom::parts::HEADER_BYTES;
use blocked_bloom_planes::{PlanesLayout, PlanesOptions, Shape};

use crate::bytes::{Reader, Text, Trailer};
use crate::error::{FileIndexError, MAX_COLUMNS, MAX_ROW_GROUPS, PART_VALUES};
use crate::identity::{FileIdentity, SameFile, UnknownReason};
use crate::options::{Column, row_group_rate};

/// The columns and files of an index, and the location of its planes: the last bytes of an index.
/// Lookups by ranges need only the manifest and the ranges that it locates.
///
/// Opening takes one or two requests: one for the last bytes (64 KiB suffice for a few hundred
/// files), and one for missing bytes.
///
/// ```
/// # use blocked_bloom::KeyHash;
/// # use blocked_bloom_file_index::{Column, FileIdentity, FileIndexOptions};
/// use blocked_bloom_file_index::{Manifest, Pruned};
/// # let column = Column::new("id", KeyHash::Xxh3 { seed: 1 });
/// # let hasher = column.hasher()?;
/// # let mut builder = FileIndexOptions::new(vec![column], 7).builder()?;
/// # let mut stored = Vec::new();
/// # let listed = FileIdentity::new("a.parquet", 12_345).with_etag("e1");
/// # let mut file = builder.file(listed, &[Some("Int64")], 2)?;
/// # for i in 0..2_u64 {
/// #     file.insert_hashes(0, &[hasher.hash(i.to_le_bytes())])?;
/// #     stored.extend(file.end_row_group()?);
/// # }
/// # file.end()?;
/// # stored.extend(builder.finish()?);
/// # let read = |range: std::ops::Range<u64>| &stored[range.start as usize..range.end as usize];
/// # let (length, first_request) = (stored.len() as u64, 64);
/// let mut tail = read(length - first_request..length);
/// let needed = Manifest::locate_tail(tail, length)?;
/// if needed.end - needed.start > tail.len() as u64 {
///     tail = read(needed);
/// }
/// let manifest = Manifest::from_tail(tail, length)?;
///
/// // id IN (1, 7), where files have the column as Int64; the hash is checked.
/// let column = manifest.column("id").expect("it is indexed");
/// let hashes = [1, 7_u64].map(|id| hasher.hash(id.to_le_bytes()));
/// let is_type = |own: &str| own == "Int64";
/// let lookups = [manifest.lookup(column, KeyHash::Xxh3 { seed: 1 }, is_type, hashes)?];
/// let located = manifest.locate(&lookups)?;
/// // What cannot be loaded is an empty piece.
/// let loaded: Vec<_> = located.ranges().iter().map(|range| read(range.clone())).collect();
/// let candidates = manifest.candidates(&located, &loaded)?.remove(0);
/// // Of each file that is listed:
/// match manifest.prune(&candidates, &listed) {
///     Pruned::Unknown(_) => unreachable!("not indexed, so it must be read"),
///     Pruned::Empty => unreachable!("it is skipped"),
///     Pruned::RowGroups(left) => assert!(left.iter().eq([false, true])),
///     _ => unreachable!("read it"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Manifest {
    pub(crate) columns: Vec<Indexed>,
    /// By column, in the order of the bytes.
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) files: Vec<File>,
    /// Hash of the name, and number of the file; ascending.
    name_index: Vec<(u64, u32)>,
    pub(crate) row_groups: u32,
    same_file: SameFile,
    pub(crate) trailer: Trailer,
    pub(crate) bytes: Vec<u8>,
    /// Where entries of chunks and of files are in the bytes, and how many.
    pub(crate) chunk_entries: (Range<usize>, u64),
    pub(crate) file_entries: (Range<usize>, u64),
}

/// A column as it is indexed.
#[derive(Clone)]
pub(crate) struct Indexed {
    pub(crate) column: Column,
    pub(crate) part_values: u32,
    pub(crate) options: PlanesOptions,
    pub(crate) types: Vec<Text>,
    /// Of each file, the number of its type and one more, or 0.
    pub(crate) type_of: Vec<u32>,
    /// The row groups that are indexed, ascending.
    pub(crate) known: Vec<RowGroup>,
    /// Of each row, its place in `known`, or `NO_ROW_GROUP`.
    pub(crate) owner: Vec<u32>,
    /// A bit for each row group whose values are not known.
    pub(crate) unknown: Vec<u64>,
}

/// The owner of rows of a file that was not completed.
pub(crate) const NO_ROW_GROUP: u32 = u32::MAX;

/// A row group that is indexed in a column.
#[derive(Clone, Copy)]
pub(crate) struct RowGroup {
    /// Among those of all files.
    pub(crate) number: u32,
    pub(crate) first_row: u32,
    pub(crate) parts: u32,
    pub(crate) values: u64,
}

/// Planes with some rows of a column.
#[derive(Clone)]
pub(crate) struct Chunk {
    pub(crate) column: usize,
    pub(crate) first_row: u32,
    pub(crate) range: Range<u64>,
    pub(crate) layout: PlanesLayout,
}

#[derive(Clone)]
pub(crate) struct File {
    name: Text,
    length: u64,
    etag: Option<Text>,
    version: Option<Text>,
    modified: Option<i64>,
    pub(crate) first_group: u32,
    pub(crate) groups: u32,
}

fn hash_of_name(name: &[u8]) -> u64 {
    KeyHasher::default().hash(name)
}

/// Sets the bits of a range.
fn set_range(words: &mut [u64], bits: Range<u32>) {
    for (i, word) in words.iter_mut().enumerate() {
        let first = 64 * i as u64;
        let (start, end) = (u64::from(bits.start).max(first), u64::from(bits.end).min(first + 64));
        if start < end {
            *word |= u64::MAX >> (64 - (end - start)) << (start - first);
        }
    }
}

impl Manifest {
    /// Where the manifest begins, and the end of the index, from at least the last 64 bytes and its
    /// length: the bytes that [`from_tail`](Self::from_tail) needs.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::Header`].
    pub fn locate_tail(tail: &[u8], stored_bytes: u64) -> Result<Range<u64>, FileIndexError> {
        Ok(Trailer::read(tail, stored_bytes)?.offset..stored_bytes)
    }

    /// Opens the manifest, with which the given bytes of an index end, and verifies it.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::Tail`] if they do not include all of the manifest;
    /// [`FileIndexError::Header`], [`FileIndexError::Manifest`], [`FileIndexError::Planes`].
    /// Without a manifest everything is unknown.
    pub fn from_tail(tail: &[u8], stored_bytes: u64) -> Result<Self, FileIndexError> {
        let trailer = Trailer::read(tail, stored_bytes)?;
        let needed = trailer.length + HEADER_BYTES as u64;
        let error = FileIndexError::Tail { found: tail.len() as u64, expected: needed };
        let start = (tail.len() as u64).checked_sub(needed).ok_or(error)?;
        let bytes = &tail[start as usize..tail.len() - HEADER_BYTES];
        if KeyHasher::default().hash(bytes) != trailer.checksum {
            let problem = "its checksum is not that of the trailer";
            return Err(FileIndexError::Manifest { offset: 0, problem });
        }
        Manifest::parse(bytes, trailer)
    }

    pub(crate) fn parse(bytes: &[u8], trailer: Trailer) -> Result<Self, FileIndexError> {
        let mut reader = Reader::new(bytes);
        let most = MAX_COLUMNS as u64;
        let mut columns: Vec<Indexed> = Vec::new();
        for _ in 0..reader.number_to(most, "more columns than there can be")? {
            let column = Indexed::parse(&mut reader, bytes)?;
            if columns.iter().any(|other| other.column.name == column.column.name) {
                return Err(reader.error("two columns of one name"));
            }
            columns.push(column);
        }
        if columns.is_empty() {
            return Err(reader.error("no column"));
        }
        let count = reader.number()?;
        let start = reader.offset();
        let (mut chunks, mut offset) = (Vec::new(), HEADER_BYTES as u64);
        let mut rows = vec![0_u64; columns.len()];
        for _ in 0..count {
            let chunk = Chunk::parse(&mut reader, &columns, &mut rows, offset)?;
            offset = chunk.range.end;
            chunks.push(chunk);
        }
        if offset != trailer.offset {
            return Err(reader.error("the manifest does not begin at the end of the last planes"));
        }
        let chunk_entries = (start..reader.offset(), count);
        let count = reader.number_to(u32::MAX.into(), "more files than there can be")?;
        let start = reader.offset();
        let mut manifest = Manifest {
            columns,
            chunks,
            files: Vec::new(),
            name_index: Vec::new(),
            row_groups: 0,
            same_file: SameFile::default(),
            trailer,
            bytes: Vec::new(),
            chunk_entries,
            file_entries: (start..0, count),
        };
        for _ in 0..count {
            manifest.parse_file(&mut reader, &rows)?;
        }
        reader.end()?;
        manifest.file_entries.0.end = reader.offset();
        for (column, rows) in manifest.columns.iter_mut().zip(rows) {
            if column.owner.len() as u64 != rows {
                return Err(reader.error("fewer parts than rows of the planes"));
            }
            column.unknown = vec![0; (manifest.row_groups as usize).div_ceil(64)];
            set_range(&mut column.unknown, 0..manifest.row_groups);
            for group in &column.known {
                column.unknown[(group.number / 64) as usize] &= !(1 << (group.number % 64));
            }
        }
        let names = manifest.files.iter().map(|file| hash_of_name(file.name.bytes(bytes)));
        manifest.name_index = names.zip(0..).collect();
        manifest.name_index.sort_unstable();
        manifest.bytes = bytes.to_vec();
        Ok(manifest)
    }

    /// Reads a file, and appends it unless it is one that was not completed. `rows` are those of
    /// the planes of each column.
    fn parse_file(&mut self, reader: &mut Reader<'_>, rows: &[u64]) -> Result<(), FileIndexError> {
        let (name, length, [known]) = (reader.text()?, reader.number()?, reader.array()?);
        let is_complete = !name.is_empty();
        if known > 7 || !is_complete && (length > 0 || known > 0) {
            let problem = "unsupported flags of a file (supported: 0 to 7); a later release?";
            return Err(reader.error(problem));
        }
        let mut text = |bit: u8| (known & bit != 0).then(|| reader.text()).transpose();
        let (etag, version) = (text(1)?, text(2)?);
        let modified = (known & 4 != 0).then(|| reader.array().map(i64::from_le_bytes));
        let modified = modified.transpose()?;
        let most = MAX_ROW_GROUPS - u64::from(self.row_groups);
        let groups = reader.number_to(most, "more row groups than there can be")? as u32;
        let first_group = self.row_groups;
        for (column, &rows) in self.columns.iter_mut().zip(rows) {
            let types = column.types.len() as u64;
            let type_of = reader.number_to(types, "a type that is not listed")? as u32;
            if is_complete {
                column.type_of.push(type_of);
            }
            if type_of == 0 {
                continue;
            }
            for number in first_group..first_group + groups {
                let Some(values) = reader.number()?.checked_sub(1) else { continue };
                let (first_row, parts) =
                    (column.owner.len() as u64, values.div_ceil(column.part_values.into()));
                if parts > rows - first_row {
                    return Err(reader.error("more parts than rows of the planes"));
                }
                let owner = if is_complete { column.known.len() as u32 } else { NO_ROW_GROUP };
                let error = FileIndexError::alloc(4 * parts as usize);
                column.owner.try_reserve(parts as usize).map_err(|_| error)?;
                column.owner.resize((first_row + parts) as usize, owner);
                if is_complete {
                    let (first_row, parts) = (first_row as u32, parts as u32);
                    column.known.push(RowGroup { number, first_row, parts, values });
                }
            }
        }
        if is_complete {
            self.row_groups += groups;
            self.files.push(File { name, length, etag, version, modified, first_group, groups });
        }
        Ok(())
    }
}

impl Indexed {
    fn parse(reader: &mut Reader<'_>, manifest: &[u8]) -> Result<Self, FileIndexError> {
        let name = reader.text()?.get(manifest).into();
        let field_id = reader.number_to(1 << 32, "a field id of more than 32 bits")?;
        let field_id = field_id.checked_sub(1).map(|field_id| field_id as u32 as i32);
        let part_values = reader.number_to(PART_VALUES.1.into(), "too many values of a part")?;
        if part_values < PART_VALUES.0.into() {
            return Err(reader.error("too few values of a part"));
        }
        // The last record of planes without rows, which are two records.
        let record: [u8; HEADER_BYTES] = reader.array()?;
        let options =
            *PlanesLayout::from_tail_any_hash(&record, 2 * HEADER_BYTES as u64)?.options();
        if options.has_liveness() || options.text().is_some() {
            return Err(reader.error("planes with a liveness plane or of a text"));
        }
        let mut types = Vec::new();
        for _ in 0..reader.number()? {
            types.push(reader.text()?);
        }
        Ok(Indexed {
            column: Column { name, field_id, key_hash: options.key_hash() },
            part_values: part_values as u32,
            options,
            types,
            type_of: Vec::new(),
            known: Vec::new(),
            owner: Vec::new(),
            unknown: Vec::new(),
        })
    }
}

impl Chunk {
    /// Reads a chunk that begins at an offset of the index, and counts its rows.
    fn parse(
        reader: &mut Reader<'_>,
        columns: &[Indexed],
        rows: &mut [u64],
        offset: u64,
    ) -> Result<Self, FileIndexError> {
        let last = columns.len() as u64 - 1;
        let column = reader.number_to(last, "a column past the last")? as usize;
        let length = reader.number()?;
        let record: [u8; HEADER_BYTES] = reader.array()?;
        let layout = PlanesLayout::from_tail_any_hash(&record, length)?;
        let (options, rows) = (&columns[column].options, &mut rows[column]);
        // Nothing but the tag may differ.
        if options.with_tag(layout.options().tag()) != *layout.options() {
            return Err(reader.error("planes that are not those of the column"));
        }
        let first_row = *rows;
        let end = first_row.checked_add(layout.rows()).filter(|&rows| rows <= u32::MAX.into());
        *rows = end.ok_or(reader.error("more rows than there can be"))?;
        let end = offset.checked_add(length).ok_or(reader.error("too many bytes"))?;
        Ok(Chunk { column, first_row: first_row as u32, range: offset..end, layout })
    }
}

impl Manifest {
    /// Sets the rule by which a listed file is the indexed one. The default is [`SameFile::Tag`].
    pub fn with_same_file(self, same_file: SameFile) -> Self {
        Manifest { same_file, ..self }
    }

    /// The columns, by number.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = &Column> {
        self.columns.iter().map(|indexed| &indexed.column)
    }

    /// The number of the column of this name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns().position(|column| column.name == name)
    }

    /// The different types that files have a column in, as they were given: none for a column past
    /// the last.
    pub fn types(&self, column: usize) -> impl Iterator<Item = &str> {
        let types = self.columns.get(column).map_or(&[][..], |column| &column.types);
        types.iter().map(|name| name.get(&self.bytes))
    }

    /// The indexed files, whether they still exist or not. A file that was replaced and indexed
    /// again has two entries.
    pub fn files(&self) -> impl ExactSizeIterator<Item = FileEntry<'_>> {
        (0..self.files.len()).map(|file| FileEntry { manifest: self, file })
    }

    /// A listed file as it was indexed.
    ///
    /// # Errors
    ///
    /// The reason why the index does not know it, by the rule [`SameFile`]. For a name that was
    /// indexed more than once, the reason for the entry that was indexed last.
    pub fn file(&self, listed: &FileIdentity<'_>) -> Result<FileEntry<'_>, UnknownReason> {
        self.find_file(listed, self.same_file)
    }

    /// [`file`](Self::file) by a given rule.
    ///
    /// # Errors
    ///
    /// As [`file`](Self::file).
    pub fn find_file(
        &self,
        listed: &FileIdentity<'_>,
        same_file: SameFile,
    ) -> Result<FileEntry<'_>, UnknownReason> {
        let hash = hash_of_name(listed.name().as_bytes());
        let end = self.name_index.partition_point(|&(other, _)| other <= hash);
        let mut why = None;
        // Of several that may be meant, the one that was indexed last.
        let same = self.name_index[..end].iter().rev().take_while(|(other, _)| *other == hash);
        for file in same.map(|&(_, file)| FileEntry { manifest: self, file: file as usize }) {
            let indexed = file.identity();
            if indexed.name() == listed.name() {
                match indexed.check(listed, same_file) {
                    Ok(()) => return Ok(file),
                    Err(error) => why = why.or(Some(error)),
                }
            }
        }
        Err(why.unwrap_or(UnknownReason::NotIndexed))
    }

    /// Row groups of all files.
    pub fn row_groups(&self) -> u64 {
        self.row_groups.into()
    }

    /// Bytes of the index.
    pub fn stored_bytes(&self) -> u64 {
        self.trailer.offset + self.trailer.length + HEADER_BYTES as u64
    }

    /// The shape of the parts of a column, and the most values that one has on average.
    pub fn shape(&self, column: usize) -> Option<(Shape, u32)> {
        let indexed = self.columns.get(column)?;
        Some((indexed.options.shape(), indexed.part_values))
    }

    /// Bytes of the planes of a column, 0 for one past the last.
    pub fn column_bytes(&self, column: usize) -> u64 {
        let chunks = self.chunks.iter().filter(|chunk| chunk.column == column);
        chunks.map(|chunk| chunk.range.end - chunk.range.start).sum()
    }

    /// Expected number of false-positive row groups for the lookup of one absent value, by the
    /// formula. Row groups that are not indexed do not count. 0 for a column past the last.
    pub fn expected_false_row_groups(&self, column: usize) -> f64 {
        let Some(column) = self.columns.get(column) else { return 0.0 };
        let shape = column.options.shape();
        // Row groups by the average values of their parts, rounded up to one of 64 steps.
        let mut groups = [0_u64; 64];
        for group in column.known.iter().filter(|group| group.parts > 0) {
            let most = u64::from(group.parts) * u64::from(column.part_values);
            groups[(64 * group.values).div_ceil(most) as usize - 1] += 1;
        }
        let step = f64::from(column.part_values) / 64.0;
        let rates = groups.iter().zip(1..).filter(|(groups, _)| **groups > 0).map(|(groups, i)| {
            let values = f64::from(i) * step;
            let rate = row_group_rate(shape, values);
            *groups as f64 * rate.unwrap_or_else(|_| shape.false_positive_rate(values as u64))
        });
        rates.sum()
    }

    /// Tells this manifest from others.
    pub(crate) fn id(&self) -> u64 {
        self.trailer.checksum
    }
}

/// Columns, files and row groups.
impl core::fmt::Debug for Manifest {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Manifest")
            .field("columns", &self.columns().collect::<Vec<_>>())
            .field("files", &self.files.len())
            .field("row_groups", &self.row_groups)
            .finish_non_exhaustive()
    }
}

/// A file as it was indexed, returned by [`Manifest::files`] and [`Manifest::file`].
///
/// ```
/// # use blocked_bloom::KeyHash;
/// # use blocked_bloom_file_index::{Column, FileIdentity, FileIndex, FileIndexOptions};
/// # let columns = vec![Column::new("id", KeyHash::Caller { tag: 1 })];
/// let mut builder = FileIndexOptions::new(columns, 7).builder()?;
/// let listed = FileIdentity::new("a.parquet", 12_345).with_etag("e1");
/// let mut file = builder.file(listed, &[Some("Int64")], 2)?;
/// file.insert_hashes(0, &[0x1234_5678_9abc_def0])?;
/// let mut stored = file.end_row_group()?;
/// file.set_unknown(0)?; // it could not be read
/// stored.extend(file.end_row_group()?);
/// file.end()?;
/// stored.extend(builder.finish()?);
///
/// let index = FileIndex::from_bytes(stored)?;
/// let file = index.manifest().file(&listed)?;
/// assert_eq!((file.identity(), file.row_groups()), (listed, 2));
/// assert_eq!(file.column_type(0), Some("Int64"));
/// assert!(file.values(0).eq([Some(1), None]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FileEntry<'m> {
    manifest: &'m Manifest,
    file: usize,
}

/// Whether both are the same file of the same index.
impl PartialEq for FileEntry<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.manifest.id(), self.file) == (other.manifest.id(), other.file)
    }
}

impl Eq for FileEntry<'_> {}

impl<'m> FileEntry<'m> {
    pub(crate) fn manifest(&self) -> &'m Manifest {
        self.manifest
    }

    fn file(&self) -> &'m File {
        &self.manifest.files[self.file]
    }

    /// Its identity when it was indexed.
    pub fn identity(&self) -> FileIdentity<'m> {
        let (file, bytes) = (self.file(), &self.manifest.bytes);
        let mut identity = FileIdentity::new(file.name.get(bytes), file.length);
        if let Some(etag) = file.etag {
            identity = identity.with_etag(etag.get(bytes));
        }
        if let Some(version) = file.version {
            identity = identity.with_version(version.get(bytes));
        }
        match file.modified {
            Some(modified) => identity.with_modified(modified),
            None => identity,
        }
    }

    /// How many row groups it has.
    pub fn row_groups(&self) -> u32 {
        self.file().groups
    }

    /// Its own type of a column, `None` if the column is not indexed in it.
    pub fn column_type(&self, column: usize) -> Option<&'m str> {
        let column = self.manifest.columns.get(column)?;
        let number = column.type_of[self.file].checked_sub(1)?;
        Some(column.types[number as usize].get(&self.manifest.bytes))
    }

    /// How many different values a column has in each row group; `None` where it is not indexed.
    pub fn values(&self, column: usize) -> impl Iterator<Item = Option<u64>> + use<'m> {
        let known = self.manifest.columns.get(column).map_or(&[][..], |column| &column.known);
        self.numbers().map(|number| {
            let place = known.binary_search_by_key(&number, |group| group.number).ok()?;
            Some(known[place].values)
        })
    }

    /// The numbers of its row groups among those of all files.
    pub(crate) fn numbers(&self) -> Range<u32> {
        let File { first_group, groups, .. } = *self.file();
        first_group..first_group + groups
    }
}

//! From hashes to the bytes of an index, row group by row group.

use alloc::vec::Vec;
use core::ops::Range;

use blocked_bloom::KeyHasher;
use blocked_bloom::parts::HEADER_BYTES;
use blocked_bloom_planes::{Planes, PlanesBuilder, Shape};

use crate::bytes::{Trailer, put_number, put_text};
use crate::column::ColumnBuilder;
use crate::error::{FileIndexError, MAX_COLUMNS, MAX_ROW_GROUPS, PART_VALUES};
use crate::identity::FileIdentity;
use crate::manifest::{FileEntry, Manifest};
use crate::options::{
    Column, DEFAULT_MEMORY, DEFAULT_PART_VALUES, FileIndexOptions, MEMORY, shape,
};
use crate::part::{part_of_mixed, unmix};

/// Builds an index from files, and returns its bytes in pieces while it grows: those of
/// [`FileBuilder::end_row_group`], [`FileBuilder::end_column`] and [`finish`](Self::finish), in
/// this order.
///
/// Memory: as the options say, plus the name of each file and a few bytes a row group.
///
/// ```
/// # use blocked_bloom::KeyHash;
/// # use blocked_bloom_file_index::{Column, FileIdentity, FileIndex, FileIndexOptions};
/// # let columns = vec![Column::new("id", KeyHash::Caller { tag: 1 })];
/// let mut builder = FileIndexOptions::new(columns, 7).builder()?;
/// let mut stored = Vec::new(); // or a file, or an upload
/// for number in 0..3_u64 {
///     let name = format!("{number}.parquet");
///     let mut file = builder.file(FileIdentity::new(&name, 10), &[Some("Int64")], 1)?;
///     file.insert_hashes(0, &[number << 40])?;
///     stored.extend(file.end_row_group()?);
///     file.end()?;
/// }
/// assert_eq!((builder.files(), builder.values()), (3, 3));
/// stored.extend(builder.finish()?);
///
/// // More files later: the new index begins with the first bytes of the old one.
/// let index = FileIndex::from_bytes(&stored[..])?;
/// let builder = index.manifest().appender(8);
/// let mut appended = stored[..builder.kept_bytes() as usize].to_vec();
/// appended.extend(builder.finish()?);
/// assert_eq!(FileIndex::from_bytes(appended)?.manifest().files().len(), 3);
/// # Ok::<(), blocked_bloom_file_index::FileIndexError>(())
/// ```
#[derive(Debug)]
pub struct FileIndexBuilder {
    tag: u64,
    pub(crate) columns: Vec<ColumnBuilder>,
    /// Entries of the manifest, and how many.
    pub(crate) chunks: (Vec<u8>, u64),
    pub(crate) files: (Vec<u8>, u64),
    pub(crate) row_groups: u64,
    /// Bytes of the index so far, those of the index that is appended to included.
    pub(crate) written: u64,
    pub(crate) kept: u64,
    added: u64,
    values: u64,
    /// Space for hashes of the present row group, in all columns together.
    max_hashes: usize,
    /// An error after which rows and manifest do not agree.
    failed: Option<FileIndexError>,
}

impl FileIndexOptions {
    /// Creates a builder.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::Columns`], [`FileIndexError::ColumnName`],
    /// [`FileIndexError::PartValues`]; [`FileIndexError::Shape`] if there is no shape of such a
    /// rate; [`FileIndexError::Alloc`].
    pub fn builder(&self) -> Result<FileIndexBuilder, FileIndexError> {
        let columns = self.columns.len();
        if !(1..=MAX_COLUMNS).contains(&columns) {
            return Err(FileIndexError::Columns { columns });
        }
        for (column, Column { name, .. }) in self.columns.iter().enumerate() {
            if name.is_empty() || self.columns[..column].iter().any(|other| other.name == *name) {
                return Err(FileIndexError::ColumnName { column });
            }
        }
        let values = self.part_values.unwrap_or(DEFAULT_PART_VALUES);
        if !(PART_VALUES.0..=PART_VALUES.1).contains(&values) {
            return Err(FileIndexError::PartValues { values });
        }
        FileIndexBuilder::new(self, values, shape(values, self.rate)?)
    }
}

impl FileIndexBuilder {
    fn new(options: &FileIndexOptions, values: u32, shape: Shape) -> Result<Self, FileIndexError> {
        let columns = options.columns.iter().map(|column| {
            let planes = options.planes(column, shape);
            ColumnBuilder::new(column.clone(), values, planes)
        });
        let builder = FileIndexBuilder::from_columns(columns.collect(), options.tag);
        Ok(builder.with_memory(options.memory))
    }

    pub(crate) fn from_columns(columns: Vec<ColumnBuilder>, tag: u64) -> Self {
        FileIndexBuilder {
            tag,
            columns,
            chunks: Default::default(),
            files: Default::default(),
            row_groups: 0,
            written: 0,
            kept: 0,
            added: 0,
            values: 0,
            max_hashes: max_hashes(DEFAULT_MEMORY),
            failed: None,
        }
    }

    /// Sets the memory for the values of a row group, as [`FileIndexOptions::with_memory`] does:
    /// half of these bytes. For builders that append to an index.
    pub fn with_memory(self, bytes: u64) -> Self {
        FileIndexBuilder { max_hashes: max_hashes(bytes), ..self }
    }

    /// Most different values that the columns of a row group may hold at the same time.
    pub fn max_values(&self) -> u64 {
        (self.max_hashes / 8 * 7) as u64
    }
}

/// 8 bytes each, in half of the memory.
fn max_hashes(memory: u64) -> usize {
    usize::try_from(memory.clamp(MEMORY.0, MEMORY.1) / 16).unwrap_or(usize::MAX)
}

impl Manifest {
    /// The tag of an index that is made from this one. It differs even if the caller passes the
    /// same tag twice.
    pub(crate) fn tag_after(&self, tag: u64) -> u64 {
        KeyHasher::with_seed(tag).hash(self.id().to_le_bytes())
    }

    /// Returns a builder that appends files to this index. The new index consists of the first
    /// [`kept_bytes`](FileIndexBuilder::kept_bytes) of this one and the bytes that the builder
    /// returns. `tag` is as in [`FileIndexOptions::new`](crate::FileIndexOptions::new).
    ///
    /// The builder uses 64 MiB, or the memory of the first build if that was more. Each update adds
    /// padded planes, which lookups by ranges read separately. Append many files at a time, or use
    /// [`FileIndex::merging_appender`](crate::FileIndex::merging_appender).
    pub fn appender(&self, tag: u64) -> FileIndexBuilder {
        let mut builder = self.empty_appender(tag);
        for (column, indexed) in builder.columns.iter_mut().zip(&self.columns) {
            column.rows = indexed.owner.len() as u64;
        }
        let (range, count) = &self.chunk_entries;
        builder.chunks = (self.bytes[range.clone()].to_vec(), *count);
        (builder.kept, builder.written) = (self.trailer.offset, self.trailer.offset);
        builder
    }

    /// A builder with the files of this index, and without their rows.
    pub(crate) fn empty_appender(&self, tag: u64) -> FileIndexBuilder {
        let mut builder =
            FileIndexBuilder::from_columns(self.column_builders(), self.tag_after(tag));
        let (range, count) = &self.file_entries;
        builder.files = (self.bytes[range.clone()].to_vec(), *count);
        builder.row_groups = self.row_groups.into();
        builder
    }

    /// Columns without rows.
    pub(crate) fn column_builders(&self) -> Vec<ColumnBuilder> {
        let columns = self.columns.iter().map(|indexed| {
            let (column, part_values) = (indexed.column.clone(), indexed.part_values);
            let mut builder = ColumnBuilder::new(column, part_values, indexed.options);
            builder.types = indexed.types.iter().map(|name| name.get(&self.bytes).into()).collect();
            builder
        });
        columns.collect()
    }
}

impl FileIndexBuilder {
    /// Begins a file. `types` are the file's own types of the columns as text: `None` for a column
    /// that is missing, or whose values have other keys.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::TypeCount`], [`FileIndexError::FileName`], [`FileIndexError::TooMany`];
    /// nothing is begun then.
    pub fn file(
        &mut self,
        file: FileIdentity<'_>,
        types: &[Option<&str>],
        row_groups: u32,
    ) -> Result<FileBuilder<'_>, FileIndexError> {
        let (found, expected) = (types.len(), self.columns.len());
        if found != expected {
            return Err(FileIndexError::TypeCount { found, expected });
        }
        if file.name().is_empty() {
            return Err(FileIndexError::FileName);
        }
        if self.row_groups + u64::from(row_groups) > MAX_ROW_GROUPS {
            return Err(FileIndexError::TooMany { what: "row groups", most: MAX_ROW_GROUPS });
        }
        let mut head = Vec::new();
        put_text(&mut head, file.name());
        put_number(&mut head, file.length());
        let known = [file.etag().is_some(), file.version().is_some(), file.modified().is_some()];
        head.push((0..).zip(known).map(|(bit, is_known)| u8::from(is_known) << bit).sum());
        file.etag().into_iter().chain(file.version()).for_each(|text| put_text(&mut head, text));
        head.extend(file.modified().into_iter().flat_map(i64::to_le_bytes));
        let columns = self.columns.iter_mut().zip(types).map(|(column, name)| {
            let mut listed = Vec::new();
            put_number(&mut listed, name.map_or(0, |name| column.type_number(name) + 1));
            Listed { bytes: listed, is_indexed: name.is_some(), is_ended: false }
        });
        let columns = columns.collect();
        Ok(FileBuilder { builder: self, head, columns, row_groups, ended: 0, is_complete: false })
    }

    /// How many first bytes of the index that is appended to come before those that the builder
    /// returns: 0 for a new index.
    pub fn kept_bytes(&self) -> u64 {
        self.kept
    }

    /// Number of files added.
    pub fn files(&self) -> u64 {
        self.added
    }

    /// Different values of each row group so far, added up over columns.
    pub fn values(&self) -> u64 {
        self.values
    }

    /// Row groups of columns that are not indexed, since their values did not fit in the memory.
    pub fn oversized(&self) -> u64 {
        self.columns.iter().map(|column| column.oversized).sum()
    }

    /// Space for the hashes of a column: all that the other columns do not hold. Columns without
    /// hashes give theirs up.
    fn free_space(&mut self, column: usize) -> usize {
        let others = self.columns.iter_mut().enumerate().filter(|(number, _)| *number != column);
        let used = others.filter_map(|(_, other)| other.hashes.as_mut()).map(|hashes| {
            if hashes.is_empty() {
                *hashes = Vec::new();
            }
            hashes.capacity()
        });
        self.max_hashes.saturating_sub(used.sum())
    }

    /// Memory that is held between two calls. The bytes that a call returns are not included: at
    /// most a quarter of the memory of the options.
    pub fn memory_bytes(&self) -> u64 {
        let column_bytes = |column: &ColumnBuilder| {
            let planes = column.planes.as_ref().map_or(0, PlanesBuilder::memory_bytes);
            planes + 8 * column.hashes.as_ref().map_or(0, Vec::capacity) as u64
        };
        let manifest = self.chunks.0.capacity() + self.files.0.capacity();
        self.columns.iter().map(column_bytes).sum::<u64>() + manifest as u64
    }

    /// Ends the row group of a column, and writes its number of values to `listed`.
    fn end_row_group(
        &mut self,
        number: usize,
        listed: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), FileIndexError> {
        let column = &mut self.columns[number];
        let Some(mut hashes) = column.hashes.replace(Vec::new()) else {
            put_number(listed, 0);
            return Ok(());
        };
        hashes.sort_unstable();
        hashes.dedup();
        let values = hashes.len() as u64;
        let parts = column.parts(values)?;
        let mut rest = hashes.as_slice();
        for part in 0..parts {
            let end = rest.partition_point(|&mixed| part_of_mixed(mixed, parts) <= part);
            let (row, later) = rest.split_at(end);
            rest = later;
            let column = &mut self.columns[number];
            let planes = column.chunk(self.tag, number)?;
            let group = planes.append(row.iter().map(|&mixed| unmix(mixed)))?;
            column.rows += 1;
            if let Some(group) = group {
                self.end_chunk(number, group, out)?;
            }
        }
        put_number(listed, values + 1);
        self.values += values;
        hashes.clear();
        self.columns[number].hashes = Some(hashes);
        Ok(())
    }

    /// Ends the present chunk of a column, if there is one. `stored` are its bytes that no call has
    /// returned yet.
    pub(crate) fn end_chunk(
        &mut self,
        number: usize,
        mut stored: Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), FileIndexError> {
        let Some(planes) = self.columns[number].planes.take() else { return Ok(()) };
        extend(&mut stored, &planes.finish()?)?;
        self.put_chunk(number, stored, out)
    }

    /// Adds a chunk of a column as it is stored.
    fn put_chunk(
        &mut self,
        number: usize,
        stored: Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), FileIndexError> {
        self.begin(out);
        let (chunks, count) = &mut self.chunks;
        put_number(chunks, number as u64);
        put_number(chunks, stored.len() as u64);
        chunks.extend_from_slice(&stored[stored.len() - HEADER_BYTES..]);
        *count += 1;
        self.written += stored.len() as u64;
        if out.is_empty() {
            *out = stored;
            return Ok(());
        }
        extend(out, &stored)
    }

    /// The record that begins an index.
    fn begin(&mut self, out: &mut Vec<u8>) {
        if self.written == 0 {
            out.extend_from_slice(&Trailer::default().write());
            self.written = HEADER_BYTES as u64;
        }
    }

    /// The remaining bytes: the last planes, the manifest and the record that ends the index.
    ///
    /// Replace an index that others read in one step: by a file that is renamed, an object that is
    /// put.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::Alloc`], [`FileIndexError::TooMany`], or that of an
    /// [`end_row_group`](FileBuilder::end_row_group) which failed before. A manifest that could not
    /// be opened again is one too.
    pub fn finish(mut self) -> Result<Vec<u8>, FileIndexError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut out = Vec::new();
        for number in 0..self.columns.len() {
            self.end_chunk(number, Vec::new(), &mut out)?;
        }
        self.begin(&mut out);
        let mut manifest = Vec::new();
        put_number(&mut manifest, self.columns.len() as u64);
        for ColumnBuilder { column, part_values, options, types, .. } in &self.columns {
            put_text(&mut manifest, &column.name);
            let field_id = column.field_id.map_or(0, |field_id| u64::from(field_id as u32) + 1);
            put_number(&mut manifest, field_id);
            put_number(&mut manifest, u64::from(*part_values));
            // Shape and hash, by the last record of planes without rows.
            let planes = options.builder()?.finish()?;
            manifest.extend_from_slice(&planes[planes.len() - HEADER_BYTES..]);
            put_number(&mut manifest, types.len() as u64);
            types.iter().for_each(|name| put_text(&mut manifest, name));
        }
        for (entries, count) in [&self.chunks, &self.files] {
            put_number(&mut manifest, *count);
            extend(&mut manifest, entries)?;
        }
        let length = manifest.len() as u64;
        if length > u32::MAX.into() {
            let (what, most) = ("bytes of the manifest", u32::MAX.into());
            return Err(FileIndexError::TooMany { what, most });
        }
        let checksum = KeyHasher::default().hash(&manifest);
        let trailer = Trailer { offset: self.written, length, checksum };
        // Before the caller replaces a good index.
        Manifest::parse(&manifest, trailer)?;
        extend(&mut out, &manifest)?;
        extend(&mut out, &trailer.write())?;
        Ok(out)
    }
}

/// Appends bytes if there is memory for them.
pub(crate) fn extend(bytes: &mut Vec<u8>, more: &[u8]) -> Result<(), FileIndexError> {
    bytes.try_reserve(more.len()).map_err(|_| FileIndexError::alloc(more.len()))?;
    bytes.extend_from_slice(more);
    Ok(())
}

/// The entry of a column for a file, in the manifest.
#[derive(Debug)]
struct Listed {
    bytes: Vec<u8>,
    is_indexed: bool,
    /// In the present row group.
    is_ended: bool,
}

/// A file that is being added to an index, made by [`FileIndexBuilder::file`]. If it is dropped
/// before [`end`](Self::end), for example after a read error, the index does not contain it.
///
/// ```
/// # use blocked_bloom::KeyHash;
/// # use blocked_bloom_file_index::{Column, FileIdentity, FileIndexError, FileIndexOptions};
/// # let columns = vec![Column::new("id", KeyHash::Caller { tag: 1 })];
/// # let mut builder = FileIndexOptions::new(columns, 7).builder()?;
/// let mut file = builder.file(FileIdentity::new("a.parquet", 10), &[Some("Int64")], 2)?;
/// file.insert_hashes(0, &[1 << 40, 2 << 40])?;
/// file.insert_hashes(0, &[2 << 40])?;
/// let _bytes = file.end_row_group()?;
/// let error = file.end().unwrap_err();
/// assert_eq!(error, FileIndexError::RowGroups { found: 1, expected: 2 });
/// # Ok::<(), FileIndexError>(())
/// ```
#[derive(Debug)]
pub struct FileBuilder<'b> {
    builder: &'b mut FileIndexBuilder,
    /// Its identity.
    head: Vec<u8>,
    columns: Vec<Listed>,
    row_groups: u32,
    ended: u32,
    is_complete: bool,
}

impl FileBuilder<'_> {
    /// Inserts hashes of a column's values in the current row group, made with the column's hasher.
    /// Repeated values may be left out; NULL must be. Has no effect if the column is unknown in the
    /// file.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::ColumnOutOfRange`], [`FileIndexError::Alloc`].
    pub fn insert_hashes(&mut self, column: usize, hashes: &[u64]) -> Result<(), FileIndexError> {
        let Some(indexed) = self.column(column)? else { return Ok(()) };
        let mut max_hashes = 0;
        if indexed.is_full(hashes.len()) {
            max_hashes = self.builder.free_space(column);
        }
        let indexed = &mut self.builder.columns[column];
        // Some of them are in, perhaps.
        indexed.insert(hashes, max_hashes).inspect_err(|_| indexed.hashes = None)
    }

    /// Marks the present row group as not indexed in a column: it is always a candidate.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::ColumnOutOfRange`].
    pub fn set_unknown(&mut self, column: usize) -> Result<(), FileIndexError> {
        if let Some(column) = self.column(column)? {
            column.hashes = None;
        }
        Ok(())
    }

    /// The column, if it is indexed in this file.
    fn column(&mut self, column: usize) -> Result<Option<&mut ColumnBuilder>, FileIndexError> {
        let columns = self.columns.len();
        let error = FileIndexError::ColumnOutOfRange { column, columns };
        let Listed { is_indexed, is_ended, .. } = *self.columns.get(column).ok_or(error)?;
        if is_ended {
            return Err(FileIndexError::ColumnEnded { column });
        }
        Ok(self.builder.columns.get_mut(column).filter(|_| is_indexed))
    }

    /// As [`FileIndexBuilder::memory_bytes`].
    pub fn memory_bytes(&self) -> u64 {
        self.builder.memory_bytes()
    }

    /// Ends the present row group in one column, so that the next column can use the memory, and
    /// returns the bytes to write: often none. Callers that insert large row groups column by
    /// column call it after each column.
    ///
    /// # Errors
    ///
    /// As [`end_row_group`](Self::end_row_group); [`FileIndexError::ColumnOutOfRange`],
    /// [`FileIndexError::ColumnEnded`].
    pub fn end_column(&mut self, column: usize) -> Result<Vec<u8>, FileIndexError> {
        let mut out = Vec::new();
        self.column(column)?;
        self.end_columns(column..column + 1, &mut out)?;
        Ok(out)
    }

    /// Ends the present row group, and returns the bytes to write: often none.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::Alloc`], [`FileIndexError::TooMany`]. The builder cannot be used then.
    pub fn end_row_group(&mut self) -> Result<Vec<u8>, FileIndexError> {
        let mut out = Vec::new();
        self.ended = self.ended.saturating_add(1);
        self.end_columns(0..self.columns.len(), &mut out)?;
        self.columns.iter_mut().for_each(|column| column.is_ended = false);
        Ok(out)
    }

    fn end_columns(
        &mut self,
        columns: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), FileIndexError> {
        for number in columns {
            let listed = &mut self.columns[number];
            if listed.is_indexed && !listed.is_ended {
                let ended = self.builder.end_row_group(number, &mut listed.bytes, out);
                ended.inspect_err(|error| self.builder.failed = Some(error.clone()))?;
            }
            listed.is_ended = true;
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::RowGroups`] if the file has a different number of row groups than
    /// announced, or values after the last. It is not in the index then.
    pub fn end(mut self) -> Result<(), FileIndexError> {
        let is_begun = |column: &ColumnBuilder| !column.hashes.as_ref().is_some_and(Vec::is_empty);
        let is_begun = self.builder.columns.iter().any(is_begun)
            || self.columns.iter().any(|column| column.is_ended);
        // A row group that was begun and not ended counts only if it is one too many.
        let more = u32::from(is_begun && self.ended >= self.row_groups);
        let (found, expected) = (self.ended.saturating_add(more), self.row_groups);
        self.is_complete = found == expected;
        match self.is_complete {
            true => Ok(()),
            false => Err(FileIndexError::RowGroups { found, expected }),
        }
    }
}

/// The rows of an incomplete file stay in the planes, and belong to a file without a name.
impl Drop for FileBuilder<'_> {
    fn drop(&mut self) {
        for column in &mut self.builder.columns {
            column.hashes.get_or_insert_default().clear();
        }
        let is_begun = |column: &Listed| column.is_indexed && column.is_ended;
        if !self.is_complete && self.columns.iter().any(is_begun) {
            // Rows of some columns of the present row group are in the planes.
            let others = self.columns.iter_mut().filter(|c| c.is_indexed && !c.is_ended);
            others.for_each(|column| put_number(&mut column.bytes, 0));
            self.ended = self.ended.saturating_add(1);
        }
        if self.ended == 0 && !self.is_complete {
            return;
        }
        let (files, count) = &mut self.builder.files;
        match self.is_complete {
            true => files.append(&mut self.head),
            // No name, no bytes, nothing known.
            false => files.extend([0, 0, 0]),
        }
        put_number(files, self.ended.into());
        self.columns.iter().for_each(|column| files.extend_from_slice(&column.bytes));
        *count += 1;
        if self.is_complete {
            self.builder.added += 1;
            self.builder.row_groups += u64::from(self.ended);
        }
    }
}

/// Copies rows of other indexes.
impl FileIndexBuilder {
    /// Copies rows of planes of a column.
    pub(crate) fn copy(
        &mut self,
        number: usize,
        planes: &Planes<&[u8]>,
        mut rows: Range<u32>,
        out: &mut Vec<u8>,
    ) -> Result<(), FileIndexError> {
        while !rows.is_empty() {
            let column = &mut self.columns[number];
            let chunk = column.chunk(self.tag, number)?;
            // As many as complete the group, which is the only one of its chunk.
            let left = u64::from(chunk.options().group_rows()) - chunk.rows();
            let now = rows.len().min(left as usize) as u32;
            let range = rows.start as usize..(rows.start + now) as usize;
            let group = chunk.append_rows(planes, range)?;
            rows.start += now;
            column.rows += u64::from(now);
            if u64::from(now) == left {
                self.end_chunk(number, group, out)?;
            }
        }
        Ok(())
    }

    /// Copies a stored chunk of a column unchanged. It has `rows` rows.
    pub(crate) fn copy_chunk(
        &mut self,
        number: usize,
        rows: u64,
        stored: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), FileIndexError> {
        let mut chunk = Vec::new();
        extend(&mut chunk, stored)?;
        self.columns[number].rows += rows;
        self.put_chunk(number, chunk, out)
    }

    /// Lists a file whose rows were copied.
    pub(crate) fn add_entry(&mut self, file: FileEntry<'_>) {
        let (identity, columns) = (file.identity(), self.columns.len());
        let types: Vec<Option<&str>> =
            (0..columns).map(|column| file.column_type(column)).collect();
        // As many types as columns, a name, no more row groups than there were.
        let Ok(mut added) = self.file(identity, &types, file.row_groups()) else { return };
        for (number, listed) in added.columns.iter_mut().enumerate().filter(|(_, c)| c.is_indexed) {
            for values in file.values(number) {
                put_number(&mut listed.bytes, values.map_or(0, |values| values + 1));
            }
        }
        (added.ended, added.is_complete) = (file.row_groups(), true);
    }
}

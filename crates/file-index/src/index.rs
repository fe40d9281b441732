//! An index in memory.

use alloc::vec::Vec;

use blocked_bloom::Bitmask;
use blocked_bloom::parts::Header;
use blocked_bloom_planes::{Planes, PlanesError, Query};

use crate::builder::{FileIndexBuilder, extend};
use crate::bytes::{Trailer, to_usize_range};
use crate::error::FileIndexError;
use crate::identity::SameFile;
use crate::lookup::{Candidates, Lookup};
use crate::manifest::{Chunk, FileEntry, Manifest};

/// An index in memory, with its bytes: a `Vec<u8>`, a mapped file, an `Arc<[u8]>`, a slice.
///
/// The owner of the bytes is not trusted to lend the same slice twice. If the length changes, every
/// row group is a candidate.
///
/// ```
/// use blocked_bloom::KeyHash;
/// use blocked_bloom_file_index::{Column, FileIdentity, FileIndex, FileIndexOptions, Pruned};
/// # let column = Column::new("id", KeyHash::Xxh3 { seed: 1 });
/// # let hasher = column.hasher()?;
/// # let mut builder = FileIndexOptions::new(vec![column], 7).builder()?;
/// # let mut stored = Vec::new();
/// # let listed = FileIdentity::new("a.parquet", 12_345).with_etag("e1");
/// # let mut file = builder.file(listed, &[Some("Int64")], 1)?;
/// # file.insert_hashes(0, &[hasher.hash(1_u64.to_le_bytes())])?;
/// # stored.extend(file.end_row_group()?);
/// # file.end()?;
/// # stored.extend(builder.finish()?);
/// let index = FileIndex::from_bytes(stored)?;
/// let manifest = index.manifest();
/// let column = manifest.column("id").expect("it is indexed");
/// let hashes = [hasher.hash(2_u64.to_le_bytes())];
/// let is_type = |own: &str| own == "Int64";
/// let lookup = manifest.lookup(column, KeyHash::Xxh3 { seed: 1 }, is_type, hashes)?;
/// let candidates = index.candidates(&lookup)?;
/// assert_eq!(manifest.prune(&candidates, &listed), Pruned::Empty);
/// let replaced = FileIdentity::new("a.parquet", 12_345).with_etag("e2");
/// assert!(matches!(manifest.prune(&candidates, &replaced), Pruned::Unknown(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct FileIndex<B = Vec<u8>> {
    manifest: Manifest,
    bytes: B,
}

impl<B: AsRef<[u8]>> FileIndex<B> {
    /// Opens an index, and verifies all of it. Cost: reads everything once.
    ///
    /// # Errors
    ///
    /// A [`FileIndexError`] with the fault. Every truncation, extension and flipped bit is one.
    pub fn from_bytes(bytes: B) -> Result<Self, FileIndexError> {
        // Once: the owner may lend others the next time.
        let slice = bytes.as_ref();
        let manifest = Manifest::from_tail(slice, slice.len() as u64)?;
        if slice.first_chunk() != Some(&Trailer::default().write()) {
            let first = Header::read(slice, crate::MAGIC, 1)?;
            first.check_zero(10..56)?;
        }
        for chunk in &manifest.chunks {
            let planes = Planes::from_bytes(
                &slice[to_usize_range(&chunk.range)],
                chunk.layout.options().key_hash(),
            )?;
            if *planes.layout() != chunk.layout {
                return Err(PlanesError::OtherRecord { offset: chunk.range.start }.into());
            }
        }
        Ok(FileIndex { manifest, bytes })
    }

    /// As [`Manifest::with_same_file`].
    pub fn with_same_file(self, same_file: SameFile) -> Self {
        FileIndex { manifest: self.manifest.with_same_file(same_file), ..self }
    }

    /// Columns and files.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The bytes as they are stored.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// The planes of a chunk, unless the owner lends other bytes than were opened.
    fn planes(&self, chunk: &Chunk) -> Result<Planes<&[u8]>, PlanesError> {
        let bytes = self.bytes.as_ref();
        Header::check_length(bytes.len() as u64, self.manifest.stored_bytes())?;
        let planes = Planes::from_bytes_trusted(
            &bytes[to_usize_range(&chunk.range)],
            chunk.layout.options().key_hash(),
        )?;
        match *planes.layout() == chunk.layout {
            true => Ok(planes),
            false => Err(PlanesError::OtherRecord { offset: chunk.range.start }),
        }
    }

    /// The row groups that may have one of the values.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::OtherIndex`] if the lookup was made by another manifest.
    pub fn candidates(&self, lookup: &Lookup) -> Result<Candidates, FileIndexError> {
        let mut found = self.manifest.unknown(lookup)?;
        let column = &self.manifest.columns[lookup.column];
        let queries: Vec<Query> = lookup.hashes.iter().map(|&hash| Query::all([hash])).collect();
        for chunk in self.manifest.chunks.iter().filter(|chunk| chunk.column == lookup.column) {
            let first_row = chunk.first_row as usize;
            match self.planes(chunk) {
                Ok(planes) => planes.query_batch(&queries, |query, rows, hits: &Bitmask| {
                    found.add(column, lookup.hashes[query], first_row + rows.start, hits);
                }),
                Err(error) => {
                    let rows = first_row..first_row + chunk.layout.rows() as usize;
                    found.add_damaged(column, rows, error);
                }
            }
        }
        Ok(found)
    }

    /// Returns the bytes of an index of the files that `keep` accepts, with all planes of a column
    /// merged. `tag` is as in [`FileIndexOptions::new`](crate::FileIndexOptions::new), and must
    /// differ from this index's. Cost: copies every bit. Memory: the new index, and 64 MiB.
    ///
    /// # Errors
    ///
    /// [`FileIndexError::Alloc`]; [`FileIndexError::Planes`] if the owner of the bytes lends others
    /// than were opened.
    pub fn compact(
        &self,
        tag: u64,
        mut keep: impl FnMut(FileEntry<'_>) -> bool,
    ) -> Result<Vec<u8>, FileIndexError> {
        let kept: Vec<FileEntry<'_>> = self.manifest.files().filter(|file| keep(*file)).collect();
        let mut builder = FileIndexBuilder::from_columns(self.manifest.column_builders(), tag);
        let mut stored = Vec::new();
        for number in 0..self.manifest.columns.len() {
            for file in &kept {
                self.copy_rows(&mut builder, number, *file, &mut stored)?;
            }
        }
        for file in kept {
            builder.add_entry(file);
        }
        let rest = builder.finish()?;
        extend(&mut stored, &rest)?;
        Ok(stored)
    }

    /// Returns a builder that appends files to this index, and the bytes that come before those
    /// that the builder returns. `files` is the expected number of new files, `tag` as in
    /// [`Manifest::appender`].
    ///
    /// Small planes of earlier updates are merged with the new ones, as an LSM tree merges its
    /// runs: the number of planes grows with the logarithm of the number of updates, and each row
    /// is copied as often. Cost: copies the index in memory.
    ///
    /// # Errors
    ///
    /// As [`compact`](Self::compact).
    ///
    /// ```
    /// # use blocked_bloom::KeyHash;
    /// # use blocked_bloom_file_index::{Column, FileIdentity, FileIndex, FileIndexOptions};
    /// # let columns = vec![Column::new("id", KeyHash::Caller { tag: 1 })];
    /// # let stored = FileIndexOptions::new(columns, 7).builder()?.finish()?;
    /// let index = FileIndex::from_bytes(stored)?;
    /// let (mut builder, mut updated) = index.merging_appender(8, 1)?;
    /// let mut file = builder.file(FileIdentity::new("a.parquet", 10), &[Some("Int64")], 1)?;
    /// file.insert_hashes(0, &[42 << 40])?;
    /// updated.extend(file.end_row_group()?);
    /// file.end()?;
    /// updated.extend(builder.finish()?);
    /// assert_eq!(FileIndex::from_bytes(updated)?.manifest().files().len(), 1);
    /// # Ok::<(), blocked_bloom_file_index::FileIndexError>(())
    /// ```
    pub fn merging_appender(
        &self,
        tag: u64,
        files: u64,
    ) -> Result<(FileIndexBuilder, Vec<u8>), FileIndexError> {
        let manifest = &self.manifest;
        let mut builder = manifest.empty_appender(tag);
        let mut stored = Vec::new();
        for (number, column) in manifest.columns.iter().enumerate() {
            let is_in_column = |chunk: &&Chunk| chunk.column == number;
            let chunks: Vec<&Chunk> = manifest.chunks.iter().filter(is_in_column).collect();
            let rows_per_file = column.owner.len().div_ceil(manifest.files.len().max(1)) as u64;
            let first = first_merged(&chunks, files.saturating_mul(rows_per_file));
            let (kept, merged) = chunks.split_at(first);
            for chunk in kept {
                // Checks that these are the bytes that were opened.
                self.planes(chunk)?;
                let bytes = &self.bytes.as_ref()[to_usize_range(&chunk.range)];
                builder.copy_chunk(number, chunk.layout.rows(), bytes, &mut stored)?;
            }
            for chunk in merged {
                let rows = 0..chunk.layout.rows() as u32;
                builder.copy(number, &self.planes(chunk)?, rows, &mut stored)?;
            }
        }
        Ok((builder, stored))
    }

    /// Copies the rows that a column has for a file.
    fn copy_rows(
        &self,
        builder: &mut FileIndexBuilder,
        number: usize,
        file: FileEntry<'_>,
        stored: &mut Vec<u8>,
    ) -> Result<(), FileIndexError> {
        let known = &self.manifest.columns[number].known;
        let numbers = file.numbers();
        let file_groups = known.partition_point(|group| group.number < numbers.start)
            ..known.partition_point(|group| group.number < numbers.end);
        // Its rows follow each other.
        let (Some(first), Some(last)) =
            (known[file_groups.clone()].first(), known[file_groups].last())
        else {
            return Ok(());
        };
        let rows = first.first_row..last.first_row + last.parts;
        for chunk in self.manifest.chunks.iter().filter(|chunk| chunk.column == number) {
            let end = chunk.first_row + chunk.layout.rows() as u32;
            let (start, end) = (rows.start.max(chunk.first_row), rows.end.min(end));
            if start < end {
                let range = start - chunk.first_row..end - chunk.first_row;
                builder.copy(number, &self.planes(chunk)?, range, stored)?;
            }
        }
        Ok(())
    }
}

/// The first of the chunks of a column to merge with so many new rows: a chunk is merged if those
/// after it have as many rows, in units of 64 rows, to which the last group of planes is padded.
fn first_merged(chunks: &[&Chunk], mut rows: u64) -> usize {
    let mut first = chunks.len();
    while let Some(chunk) = chunks[..first].last()
        && chunk.layout.rows() < u64::from(chunk.layout.options().group_rows())
        && chunk.layout.rows().div_ceil(64) <= rows.div_ceil(64).max(1)
    {
        rows = rows.saturating_add(chunk.layout.rows());
        first -= 1;
    }
    first
}

/// The manifest.
impl<B> core::fmt::Debug for FileIndex<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FileIndex").field("manifest", &self.manifest).finish_non_exhaustive()
    }
}

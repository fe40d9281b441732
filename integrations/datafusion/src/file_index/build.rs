//! Builds and updates an index of Parquet files: [`build_file_index`], [`update_file_index`].

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use blocked_bloom_file_index::{
    Column, FileBuilder, FileEntry, FileIdentity, FileIndex, FileIndexBuilder, FileIndexOptions,
    SameFile,
};
use bytes::Bytes;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{Result, exec_err};
use datafusion::object_store::buffered::BufWriter;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    GetOptions, OBJECT_STORE_COALESCE_DEFAULT, ObjectMeta, ObjectStore, ObjectStoreExt,
    coalesce_ranges,
};
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use datafusion::parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStreamBuilder};
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt};
use tokio::io::AsyncWriteExt;

use super::stored::{external_error, identity};
use crate::keys::{KeyType, hash_valid};

/// Number of footers that are read to choose the size of parts.
const SAMPLED_FOOTERS: usize = 16;

/// Number of footers that are read ahead.
const FOOTERS_AHEAD: usize = 8;

/// Progress or result of a build.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FileIndexReport {
    /// Finished files, indexed or left out.
    pub files: u64,
    /// Sum of the distinct values of each added row group.
    pub values: u64,
    /// Bytes of the index.
    pub bytes: u64,
    /// Files that are not in the index, or not in full, with the reason. Queries read them.
    pub left_out: Vec<(Path, String)>,
}

/// Returns the index column of a table's field: its name, and the hash of its [`KeyType`].
///
/// # Errors
///
/// Those of [`KeyType::new`]. Structs are also refused.
///
/// ```
/// use blocked_bloom_datafusion::file_index_column;
/// use datafusion::arrow::datatypes::{DataType, Field};
///
/// let column = file_index_column(&Field::new("trace_id", DataType::Utf8, true))?;
/// assert_eq!(column.name(), "trace_id");
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
pub fn file_index_column(field: &Field) -> Result<Column> {
    if field.data_type().is_nested() {
        return exec_err!(
            "blocked-bloom: field {} has the nested type {}, which cannot be indexed",
            field.name(),
            field.data_type()
        );
    }
    Ok(Column::new(field.name().as_str(), KeyType::new(field.data_type())?.key_hash()))
}

/// Builds an index of the listed files of a store and stores it at `index`.
///
/// Columns are read in batches of rows, so [`FileIndexOptions::with_memory`] limits memory for
/// files of any size. `progress` is called after each file. A file is left out if it cannot be
/// read, or if it is replaced while it is read.
///
/// The index is written as a whole. On a local disk, the new file has the default mode and replaces
/// a FIFO or a link.
///
/// # Errors
///
/// Write errors of the store, and those of [`FileIndexOptions::builder`]. In both cases nothing is
/// stored.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use blocked_bloom_datafusion::{build_file_index, file_index_column};
/// use blocked_bloom_file_index::FileIndexOptions;
/// use datafusion::arrow::datatypes::Schema;
/// use datafusion::object_store::ObjectStore;
/// use futures::TryStreamExt;
///
/// async fn build(store: Arc<dyn ObjectStore>, schema: &Schema) -> datafusion::error::Result<()> {
///     let files = store.list(Some(&"spans".into())).try_collect().await?;
///     let column = file_index_column(schema.field_with_name("trace_id")?)?;
///     let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
///     let tag = now.unwrap_or_default().as_nanos() as u64;
///     let options = FileIndexOptions::new(vec![column], tag);
///     let done = |report: &_| println!("{report:?}");
///     build_file_index(store, files, &options, &"spans.index".into(), done).await?;
///     Ok(())
/// }
/// ```
pub async fn build_file_index(
    store: Arc<dyn ObjectStore>,
    files: Vec<ObjectMeta>,
    options: &FileIndexOptions,
    index: &Path,
    mut progress: impl FnMut(&FileIndexReport),
) -> Result<FileIndexReport> {
    let values = row_group_values(&store, &files).await;
    let builder = options.clone().with_row_groups_of(&values).builder().map_err(external_error)?;
    put(&store, files, options.columns(), builder, Vec::new(), index, &mut progress).await
}

/// Returns the numbers of values of row groups, from the footers of a sample of the files. The size
/// of parts is chosen from them.
async fn row_group_values(store: &Arc<dyn ObjectStore>, files: &[ObjectMeta]) -> Vec<u64> {
    let every = files.len().div_ceil(SAMPLED_FOOTERS).max(1);
    let sampled: Vec<ObjectMeta> = files.iter().step_by(every).cloned().collect();
    let footers = futures::stream::iter(sampled).map(|file| async {
        let mut reader = Reader { store: store.clone(), file };
        reader.get_metadata(None).await
    });
    let footers: Vec<ParquetResult<Arc<ParquetMetaData>>> =
        footers.buffered(FOOTERS_AHEAD).collect().await;
    // A file that cannot be read is left out later.
    let row_groups = footers.iter().flatten().flat_map(|footer| footer.row_groups());
    row_groups.map(|row_group| row_group.num_rows() as u64).collect()
}

/// Updates an index to the listed files: adds those that are new or have changed (according to
/// `same_file`), and drops those that are no longer listed. The old index is read into memory, and
/// the new one replaces it.
///
/// Added files are read as by [`build_file_index`], and `progress` is called for them. `tag` is
/// described at [`FileIndexOptions::new`]. If nothing changes, nothing is written.
///
/// Small updates are merged as an LSM tree merges its runs. Dropping files merges all of them,
/// which copies the index once in memory.
///
/// # Errors
///
/// Those of [`build_file_index`] and [`FileIndex::from_bytes`]. In both cases the old index stays.
///
/// ```
/// use std::sync::Arc;
/// use blocked_bloom_datafusion::update_file_index;
/// use blocked_bloom_file_index::SameFile;
/// use datafusion::object_store::ObjectStore;
/// use futures::TryStreamExt;
///
/// async fn update(store: Arc<dyn ObjectStore>, tag: u64) -> datafusion::error::Result<()> {
///     let files = store.list(Some(&"spans".into())).try_collect().await?;
///     let (index, done) = ("spans.index".into(), |report: &_| println!("{report:?}"));
///     update_file_index(store, files, &index, SameFile::Tag, tag, done).await?;
///     Ok(())
/// }
/// ```
pub async fn update_file_index(
    store: Arc<dyn ObjectStore>,
    files: Vec<ObjectMeta>,
    index: &Path,
    same_file: SameFile,
    tag: u64,
    mut progress: impl FnMut(&FileIndexReport),
) -> Result<FileIndexReport> {
    let stored = store.get(index).await?.bytes().await?;
    let mut old = FileIndex::from_bytes(stored).map_err(external_error)?.with_same_file(same_file);
    let listed: HashMap<&str, &ObjectMeta> =
        files.iter().map(|file| (file.location.as_ref(), file)).collect();
    let is_listed = |file: FileEntry<'_>| {
        let listed = listed.get(file.identity().name());
        listed.is_some_and(|listed| old.manifest().file(&identity(listed)) == Ok(file))
    };
    let compacted = match old.manifest().files().all(is_listed) {
        true => None,
        false => Some(old.compact(tag, is_listed).map_err(external_error)?),
    };
    let is_new = |file: &&ObjectMeta| old.manifest().file(&identity(file)).is_err();
    let new: Vec<ObjectMeta> = files.iter().filter(is_new).cloned().collect();
    if new.is_empty() && compacted.is_none() {
        let bytes = old.manifest().stored_bytes();
        return Ok(FileIndexReport { bytes, ..FileIndexReport::default() });
    }
    if let Some(compacted) = compacted {
        old = FileIndex::from_bytes(compacted.into()).map_err(external_error)?;
    }
    let columns: Vec<Column> = old.manifest().columns().cloned().collect();
    let (builder, kept) = old.merging_appender(tag, new.len() as u64).map_err(external_error)?;
    put(&store, new, &columns, builder, kept, index, &mut progress).await
}

/// Stores an index that consists of the bytes `kept`, followed by the new files.
async fn put(
    store: &Arc<dyn ObjectStore>,
    files: Vec<ObjectMeta>,
    columns: &[Column],
    builder: FileIndexBuilder,
    kept: Vec<u8>,
    index: &Path,
    progress: &mut impl FnMut(&FileIndexReport),
) -> Result<FileIndexReport> {
    let mut output = Output { writer: BufWriter::new(store.clone(), index.clone()), bytes: 0 };
    let built = build(store, files, columns, builder, kept, &mut output, progress).await;
    if built.is_err() {
        // An unfinished upload may leave parts in the store. The first error is reported.
        _ = output.writer.abort().await;
    }
    built
}

async fn build(
    store: &Arc<dyn ObjectStore>,
    files: Vec<ObjectMeta>,
    columns: &[Column],
    mut builder: FileIndexBuilder,
    kept: Vec<u8>,
    output: &mut Output,
    progress: &mut impl FnMut(&FileIndexReport),
) -> Result<FileIndexReport> {
    output.write(kept).await?;
    let mut report = FileIndexReport::default();
    let opened = futures::stream::iter(files).map(|file| async {
        let opened = OpenFile::new(store, &file).await;
        (file, opened)
    });
    let mut opened = opened.buffered(FOOTERS_AHEAD);
    while let Some((file, opened)) = opened.next().await {
        let before = builder.oversized();
        let mut reasons = Vec::new();
        let added = match opened {
            Ok(opened) => {
                reasons = opened.reasons(columns);
                opened.add(&file, columns, &mut builder, output).await?
            }
            Err(error) => Err(error),
        };
        let oversized = builder.oversized() - before;
        match added {
            Err(error) => reasons = vec![error.to_string()],
            Ok(()) if oversized > 0 => reasons.push(format!(
                "{oversized} row groups of columns have more than {} different values: give the \
                 builder more memory",
                builder.max_values()
            )),
            Ok(()) => {}
        }
        if !reasons.is_empty() {
            report.left_out.push((file.location, reasons.join("; ")));
        }
        report.files += 1;
        report.values = builder.values();
        report.bytes = output.bytes;
        progress(&report);
    }
    output.write(builder.finish().map_err(external_error)?).await?;
    output.writer.shutdown().await?;
    report.bytes = output.bytes;
    Ok(report)
}

struct Output {
    writer: BufWriter,
    bytes: u64,
}

impl Output {
    async fn write(&mut self, bytes: Vec<u8>) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.bytes += bytes.len() as u64;
        Ok(self.writer.put(bytes.into()).await?)
    }
}

/// A file whose footer has been read.
struct OpenFile {
    reader: Reader,
    metadata: ArrowReaderMetadata,
    /// A later change of the file will have another etag or time.
    is_settled: bool,
}

/// Waits, for at most 3 seconds, until a change of a file is certain to change its etag or time.
/// Returns whether it is: not if the time is in the future.
async fn settle(file: &ObjectMeta) -> bool {
    let Some(settled) = identity(file).settle_time() else { return true };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i64;
    let left = settled.saturating_sub(now);
    let modified = file.last_modified.timestamp_nanos_opt().unwrap_or_default();
    if modified > now {
        // A clock may be ahead by up to 15 minutes. Later times were set by hand.
        return left > 900_000_000_000;
    }
    if left > 0 {
        let wait = Duration::from_nanos(left as u64);
        // Not every runtime has timers.
        return tokio::task::spawn_blocking(move || sleep(wait)).await.is_ok();
    }
    true
}

impl OpenFile {
    async fn new(store: &Arc<dyn ObjectStore>, file: &ObjectMeta) -> Result<Self> {
        let is_settled = settle(file).await;
        let mut reader = Reader { store: store.clone(), file: file.clone() };
        let metadata = ArrowReaderMetadata::load_async(&mut reader, ArrowReaderOptions::new());
        let metadata = metadata.await?;
        Ok(OpenFile { reader, metadata, is_settled })
    }

    /// Why the file is not indexed in full.
    fn reasons(&self, columns: &[Column]) -> Vec<String> {
        let is_missing = |column: &&Column| find_column(self.metadata.schema(), column).is_none();
        let reason = |column: &Column| {
            format!("column {:?} is missing, or has values of another type", column.name())
        };
        let future = "its time is in the future: it stays unknown until an update";
        let unsettled = (!self.is_settled).then(|| future.into());
        columns.iter().filter(is_missing).map(reason).chain(unsettled).collect()
    }

    /// Adds the file. Outer errors end the build; inner errors leave this file out.
    async fn add(
        &self,
        meta: &ObjectMeta,
        columns: &[Column],
        builder: &mut FileIndexBuilder,
        output: &mut Output,
    ) -> Result<Result<()>> {
        let schema = self.metadata.schema();
        let found: Vec<Option<(usize, String)>> =
            columns.iter().map(|column| find_column(schema, column)).collect();
        let types: Vec<Option<&str>> =
            found.iter().map(|found| found.as_ref().map(|(_, own)| own.as_str())).collect();
        let Ok(row_groups) = u32::try_from(self.metadata.metadata().num_row_groups()) else {
            return Ok(exec_err!("more than {} row groups", u32::MAX));
        };
        let max_values = builder.max_values() as usize;
        let listed = match self.is_settled {
            true => identity(meta),
            false => FileIdentity::new(meta.location.as_ref(), meta.size),
        };
        let mut file = match builder.file(listed, &types, row_groups) {
            Ok(file) => file,
            Err(error) => return Ok(Err(external_error(error))),
        };
        for row_group in 0..row_groups as usize {
            let rows = self.metadata.metadata().row_group(row_group).num_rows() as usize;
            if 2 * rows * found.iter().flatten().count() <= max_values {
                if let Err(error) = self.read(row_group, &found, &mut file).await {
                    return Ok(Err(error));
                }
            } else {
                // One column at a time needs memory.
                for (number, column) in found.iter().enumerate().filter(|(_, c)| c.is_some()) {
                    let mut one = vec![None; found.len()];
                    one[number] = column.clone();
                    if let Err(error) = self.read(row_group, &one, &mut file).await {
                        return Ok(Err(error));
                    }
                    output.write(file.end_column(number).map_err(external_error)?).await?;
                }
            }
            output.write(file.end_row_group().map_err(external_error)?).await?;
        }
        Ok(file.end().map_err(external_error))
    }

    /// Adds the values of a row group.
    async fn read(
        &self,
        row_group: usize,
        columns: &[Option<(usize, String)>],
        file: &mut FileBuilder<'_>,
    ) -> Result<()> {
        let mut fields: Vec<usize> = columns.iter().flatten().map(|(field, _)| *field).collect();
        fields.sort_unstable();
        if fields.is_empty() {
            return Ok(());
        }
        let (reader, metadata) = (self.reader.clone(), self.metadata.clone());
        let parquet = metadata.parquet_schema();
        let mask = ProjectionMask::roots(parquet, fields.iter().copied());
        let batches = ParquetRecordBatchStreamBuilder::new_with_metadata(reader, metadata)
            .with_projection(mask)
            .with_row_groups(vec![row_group])
            .build()?;
        futures::pin_mut!(batches);
        let mut hashes = Vec::new();
        while let Some(batch) = batches.try_next().await? {
            for (column, found) in columns.iter().enumerate() {
                let Some((field, _)) = found else { continue };
                let Ok(place) = fields.binary_search(field) else { continue };
                hash_valid(batch.column(place), &mut hashes)?;
                file.insert_hashes(column, &hashes).map_err(external_error)?;
            }
        }
        Ok(())
    }
}

/// Reads the listed version of a file and no other.
#[derive(Clone)]
struct Reader {
    store: Arc<dyn ObjectStore>,
    file: ObjectMeta,
}

impl Reader {
    async fn get(&self, range: Range<u64>) -> datafusion::object_store::Result<Bytes> {
        let options = GetOptions::new().with_range(Some(range));
        let options = match &self.file.e_tag {
            Some(etag) => options.with_if_match(Some(etag.as_str())),
            None => options.with_if_unmodified_since(Some(self.file.last_modified)),
        };
        self.store.get_opts(&self.file.location, options).await?.bytes().await
    }
}

fn read_error(error: datafusion::object_store::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

impl AsyncFileReader for Reader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move { self.get(range).await.map_err(read_error) }.boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move {
            let get = |range| self.get(range);
            let got = coalesce_ranges(&ranges, get, OBJECT_STORE_COALESCE_DEFAULT);
            got.await.map_err(read_error)
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            let size = self.file.size;
            let reader = ParquetMetaDataReader::new().with_arrow_reader_options(options);
            Ok(Arc::new(reader.load_and_finish(self, size).await?))
        }
        .boxed()
    }
}

/// Returns the field of a file for an index column, and its type as text. Returns `None` if there
/// is no such field, if there are several, or if its keys differ.
fn find_column(schema: &Schema, column: &Column) -> Option<(usize, String)> {
    let named = |(_, field): &(usize, &Arc<Field>)| field.name() == column.name();
    let mut fields = schema.fields().iter().enumerate().filter(named);
    let (number, field) = fields.next().filter(|_| fields.next().is_none())?;
    let own = field.data_type();
    let text = own.to_string();
    let is_key = KeyType::new(own).is_ok_and(|key| key.key_hash() == column.key_hash());
    let is_read = text.parse::<DataType>().is_ok_and(|read| read == *own);
    (is_key && is_read && !own.is_nested()).then_some((number, text))
}

//! [`StoredFileIndex`]: an index in an object store, and the combined answers of several indexes.

use std::sync::Arc;

use blocked_bloom_file_index::{
    Candidates, FileIdentity, FileIndex, FileIndexError, Lookup, Manifest, Pruned, SameFile,
    UnknownReason,
};
use bytes::Bytes;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::object_store::path::Path;
use datafusion::object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};

use super::condition::{Condition, keeps_keys};
use crate::keys::KeyType;

/// Bytes at the end that are read first. The manifest of a few hundred files fits.
const TAIL_BYTES: u64 = 64 * 1024;

/// An index over the files of a data set, in memory or read by ranges.
///
/// ```
/// use std::sync::Arc;
/// use blocked_bloom_datafusion::{StoredFileIndex, with_file_index};
/// use datafusion::execution::object_store::ObjectStoreUrl;
/// use datafusion::object_store::ObjectStore;
/// use datafusion::prelude::*;
///
/// async fn context(store: Arc<dyn ObjectStore>) -> datafusion::error::Result<SessionContext> {
///     let index = StoredFileIndex::open(store, &"spans.index".into()).await?;
///     let url = ObjectStoreUrl::parse("s3://bucket")?;
///     let state = with_file_index(SessionContext::new().state(), url, Arc::new(index));
///     Ok(SessionContext::new_with_state(state))
/// }
/// ```
#[derive(Debug)]
pub struct StoredFileIndex {
    source: Source,
}

/// Indexes, each with the store of its files.
pub(crate) type Indexes = Arc<[(ObjectStoreUrl, Arc<StoredFileIndex>)]>;

/// Returns the indexes for one store.
pub(crate) fn indexes_for_store(
    indexes: &Indexes,
    store: &ObjectStoreUrl,
) -> Arc<[Arc<StoredFileIndex>]> {
    let indexes_for_store = indexes.iter().filter(|(url, _)| url == store);
    indexes_for_store.map(|(_, index)| index.clone()).collect()
}

enum Source {
    Memory(FileIndex<Bytes>),
    Ranges { manifest: Manifest, store: Arc<dyn ObjectStore>, path: Path },
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Memory(_) => f.write_str("Memory"),
            Source::Ranges { path, .. } => f.debug_struct("Ranges").field("path", path).finish(),
        }
    }
}

impl StoredFileIndex {
    /// Reads an index into memory with one request, and verifies it.
    ///
    /// # Errors
    ///
    /// Those of the store and of [`FileIndex::from_bytes`].
    pub async fn open(store: Arc<dyn ObjectStore>, path: &Path) -> Result<Self> {
        let bytes = store.get(path).await?.bytes().await?;
        Ok(FileIndex::from_bytes(bytes).map_err(external_error)?.into())
    }

    /// Opens an index with at most two requests and leaves its planes in the store. A lookup reads
    /// the ranges it needs: with one request, or with several if they are far apart.
    ///
    /// # Errors
    ///
    /// Those of the store and of [`Manifest::from_tail`].
    pub async fn open_ranges(store: Arc<dyn ObjectStore>, path: &Path) -> Result<Self> {
        let last = GetOptions::new().with_range(Some(GetRange::Suffix(TAIL_BYTES)));
        let (mut tail, length) = match store.get_opts(path, last).await {
            Ok(tail) => {
                let length = tail.meta.size;
                (tail.bytes().await?, length)
            }
            // Not all stores support suffix ranges, and some refuse a range longer than the object.
            Err(_) => {
                let length = store.head(path).await?.size;
                let start = length.saturating_sub(TAIL_BYTES);
                (store.get_range(path, start..length).await?, length)
            }
        };
        let needed = Manifest::locate_tail(&tail, length).map_err(external_error)?;
        if needed.start < length.saturating_sub(tail.len() as u64) {
            tail = store.get_range(path, needed).await?;
        }
        let manifest = Manifest::from_tail(&tail, length).map_err(external_error)?;
        Ok(StoredFileIndex { source: Source::Ranges { manifest, store, path: path.clone() } })
    }

    /// Sets the rule that decides whether a listed file is the indexed one.
    pub fn with_same_file(self, same_file: SameFile) -> Self {
        let source = match self.source {
            Source::Memory(index) => Source::Memory(index.with_same_file(same_file)),
            Source::Ranges { manifest, store, path } => {
                Source::Ranges { manifest: manifest.with_same_file(same_file), store, path }
            }
        };
        StoredFileIndex { source }
    }

    /// Returns the columns and files of the index.
    pub fn manifest(&self) -> &Manifest {
        match &self.source {
            Source::Memory(index) => index.manifest(),
            Source::Ranges { manifest, .. } => manifest,
        }
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.source, Source::Memory(_))
    }

    /// Returns the number of a table's column in the index, if its type has the same keys.
    pub(crate) fn column(&self, name: &str, data_type: &DataType) -> Option<usize> {
        let column = self.manifest().column(name)?;
        let key_hash = self.manifest().columns().nth(column)?.key_hash();
        let same = KeyType::new(data_type).is_ok_and(|key| key.key_hash() == key_hash);
        (same && !data_type.is_nested()).then_some(column)
    }

    /// Returns a name that distinguishes the index from others: its columns.
    fn name(&self) -> String {
        let columns: Vec<&str> = self.manifest().columns().map(|column| column.name()).collect();
        format!("index of {}", columns.join(", "))
    }

    /// Returns the row groups that may match, or `None` if there is nothing to look up.
    async fn candidates(&self, condition: &Condition) -> Result<Option<Candidates>> {
        let mut lookups = Vec::new();
        self.lookups(condition, &mut lookups)?;
        let found = match &self.source {
            Source::Memory(index) => {
                let found = lookups.iter().map(|lookup| index.candidates(lookup));
                found.collect::<Result<Vec<_>, _>>().map_err(external_error)?
            }
            Source::Ranges { manifest, store, path } => {
                let located = manifest.locate(&lookups).map_err(external_error)?;
                let ranges = located.ranges();
                let loaded = match ranges.is_empty() {
                    true => Vec::new(),
                    false => store.get_ranges(path, ranges).await?,
                };
                manifest.candidates(&located, &loaded).map_err(external_error)?
            }
        };
        combine(condition, &mut found.into_iter()).transpose()
    }

    fn lookups(&self, condition: &Condition, lookups: &mut Vec<Lookup>) -> Result<()> {
        match condition {
            Condition::Any | Condition::Never => Ok(()),
            Condition::All(conditions) | Condition::Either(conditions) => {
                conditions.iter().try_for_each(|condition| self.lookups(condition, lookups))
            }
            Condition::OneOf { column, data_type, hashes } => {
                let key_hash = KeyType::new(data_type)?.key_hash();
                let is_type = |own: &str| {
                    own.parse::<DataType>().is_ok_and(|own| keeps_keys(&own, data_type))
                };
                let lookup = self.manifest().lookup(*column, key_hash, is_type, hashes.as_slice());
                lookups.push(lookup.map_err(external_error)?);
                Ok(())
            }
        }
    }
}

impl From<FileIndex<Bytes>> for StoredFileIndex {
    fn from(index: FileIndex<Bytes>) -> Self {
        StoredFileIndex { source: Source::Memory(index) }
    }
}

/// Combines the answers for the values of a predicate, which are in the predicate's order.
fn combine(
    condition: &Condition,
    found: &mut impl Iterator<Item = Candidates>,
) -> Option<Result<Candidates>> {
    let (conditions, both): (_, fn(&mut Candidates, &Candidates) -> _) = match condition {
        Condition::Any | Condition::Never => return None,
        Condition::OneOf { .. } => return found.next().map(Ok),
        Condition::All(conditions) => (conditions, Candidates::and),
        Condition::Either(conditions) => (conditions, Candidates::or),
    };
    let mut conditions = conditions.iter().filter_map(|condition| combine(condition, found));
    let first = conditions.next()?;
    Some(conditions.fold(first, |all, one| {
        let (mut all, one) = (all?, one?);
        both(&mut all, &one).map_err(external_error)?;
        Ok(all)
    }))
}

/// Identifies a version of a file from the engine's listing.
pub(crate) fn identity(file: &ObjectMeta) -> FileIdentity<'_> {
    let mut identity = FileIdentity::new(file.location.as_ref(), file.size);
    if let Some(etag) = &file.e_tag {
        identity = identity.with_etag(etag);
    }
    if let Some(version) = &file.version {
        identity = identity.with_version(version);
    }
    match file.last_modified.timestamp_nanos_opt() {
        Some(modified) => identity.with_modified(modified),
        None => identity,
    }
}

/// The answers of several indexes for one predicate.
#[derive(Debug, Default)]
pub(crate) struct IndexAnswers {
    found: Vec<(Arc<StoredFileIndex>, Candidates)>,
    /// Indexes that are damaged or unreadable. Queries read more because of them.
    pub(crate) problems: Vec<String>,
}

/// The part of a file that must be read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The whole file, for this reason.
    Unknown(UnknownReason),
    Skip,
    /// The row groups that are `true`.
    RowGroups(Vec<bool>),
}

impl IndexAnswers {
    /// Looks each predicate up in its index. An unreadable index rules nothing out.
    pub(crate) async fn look_up(conditions: &[(Arc<StoredFileIndex>, Condition)]) -> IndexAnswers {
        let mut answers = IndexAnswers::default();
        for (index, condition) in conditions {
            let problem = match index.candidates(condition).await {
                Ok(Some(candidates)) => {
                    let damage = candidates.damage();
                    answers.found.push((index.clone(), candidates));
                    damage.map(|damage| format!("{} is damaged: {damage}", index.name()))
                }
                Ok(None) => None,
                Err(error) => Some(format!("{} cannot be read: {error}", index.name())),
            };
            if let Some(problem) = problem {
                log::warn!("blocked-bloom: more files are read: {problem}");
                answers.problems.push(problem);
            }
        }
        answers
    }

    /// Returns the part of a file that must be read, or `None` if nothing was looked up.
    pub(crate) fn verdict(&self, file: &ObjectMeta) -> Option<Verdict> {
        let identity = identity(file);
        let verdicts = self.found.iter().map(|(index, candidates)| {
            match index.manifest().prune(candidates, &identity) {
                Pruned::Unknown(why) => Verdict::Unknown(why),
                Pruned::Empty => Verdict::Skip,
                Pruned::RowGroups(bits) => Verdict::RowGroups(
                    (0..bits.len()).map(|i| bits.get(i) != Some(false)).collect(),
                ),
                _ => Verdict::Unknown(UnknownReason::OtherIndex),
            }
        });
        verdicts.reduce(Verdict::intersect)
    }
}

impl Verdict {
    fn intersect(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::Skip, _) | (_, Verdict::Skip) => Verdict::Skip,
            (Verdict::Unknown(_), other) => other,
            (this, Verdict::Unknown(_)) => this,
            (Verdict::RowGroups(a), Verdict::RowGroups(b)) if a.len() == b.len() => {
                let both: Vec<bool> = a.iter().zip(&b).map(|(a, b)| a & b).collect();
                if both.contains(&true) { Verdict::RowGroups(both) } else { Verdict::Skip }
            }
            // The indexes describe different versions of the file.
            (Verdict::RowGroups(_), Verdict::RowGroups(_)) => {
                Verdict::Unknown(UnknownReason::OtherIndex)
            }
        }
    }
}

pub(crate) fn external_error(error: FileIndexError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

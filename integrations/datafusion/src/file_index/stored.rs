//! An index in an object store: [`StoredFileIndex`], and what several of them leave of a file.

use std::sync::Arc;

use blocked_bloom_file_index::{
    Candidates, FileIdentity, FileIndex, FileIndexError, Lookup, Manifest, Pruned, SameFile,
    Unknown,
};
use bytes::Bytes;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::object_store::path::Path;
use datafusion::object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};

use super::need::{Need, keeps_keys};
use crate::keys::KeyType;

/// How many last bytes are read first. The manifest of some hundreds of files is in them.
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

/// Indexes, with the store of the files that they are of.
pub(crate) type Indexes = Arc<[(ObjectStoreUrl, Arc<StoredFileIndex>)]>;

/// The indexes of one store.
pub(crate) fn of_store(indexes: &Indexes, store: &ObjectStoreUrl) -> Arc<[Arc<StoredFileIndex>]> {
    let of_store = indexes.iter().filter(|(url, _)| url == store);
    of_store.map(|(_, index)| index.clone()).collect()
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
    /// Reads an index into memory by one request, and verifies it.
    ///
    /// # Errors
    ///
    /// Those of the store, and of [`FileIndex::from_bytes`].
    pub async fn open(store: Arc<dyn ObjectStore>, path: &Path) -> Result<Self> {
        let bytes = store.get(path).await?.bytes().await?;
        Ok(FileIndex::from_bytes(bytes).map_err(external)?.into())
    }

    /// Opens an index whose planes stay in the store, by two requests at most: a lookup reads the
    /// ranges that it needs, by one request or, where they are far from each other, by more.
    ///
    /// # Errors
    ///
    /// Those of the store, and of [`Manifest::from_tail`].
    pub async fn open_ranges(store: Arc<dyn ObjectStore>, path: &Path) -> Result<Self> {
        let last = GetOptions::new().with_range(Some(GetRange::Suffix(TAIL_BYTES)));
        let (mut tail, length) = match store.get_opts(path, last).await {
            Ok(tail) => {
                let length = tail.meta.size;
                (tail.bytes().await?, length)
            }
            // Not all stores know the last bytes of an object, nor an object shorter than that.
            Err(_) => {
                let length = store.head(path).await?.size;
                let start = length.saturating_sub(TAIL_BYTES);
                (store.get_range(path, start..length).await?, length)
            }
        };
        let needed = Manifest::locate_tail(&tail, length).map_err(external)?;
        if needed.start < length.saturating_sub(tail.len() as u64) {
            tail = store.get_range(path, needed).await?;
        }
        let manifest = Manifest::from_tail(&tail, length).map_err(external)?;
        Ok(StoredFileIndex { source: Source::Ranges { manifest, store, path: path.clone() } })
    }

    /// Sets what suffices for a listed file to be the one that was indexed.
    pub fn with_same_file(self, same_file: SameFile) -> Self {
        let source = match self.source {
            Source::Memory(index) => Source::Memory(index.with_same_file(same_file)),
            Source::Ranges { manifest, store, path } => {
                Source::Ranges { manifest: manifest.with_same_file(same_file), store, path }
            }
        };
        StoredFileIndex { source }
    }

    /// What is known of the index: its columns and files.
    pub fn manifest(&self) -> &Manifest {
        match &self.source {
            Source::Memory(index) => index.manifest(),
            Source::Ranges { manifest, .. } => manifest,
        }
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.source, Source::Memory(_))
    }

    /// The number of a column of a table, if values of this type have the keys of the index.
    pub(crate) fn column(&self, name: &str, data_type: &DataType) -> Option<usize> {
        let column = self.manifest().column(name)?;
        let key_hash = self.manifest().columns().nth(column)?.key_hash();
        let same = KeyType::of(data_type).is_ok_and(|key| key.key_hash() == key_hash);
        (same && !data_type.is_nested()).then_some(column)
    }

    /// Its columns, to tell it from others.
    fn name(&self) -> String {
        let columns: Vec<&str> = self.manifest().columns().map(|column| column.name()).collect();
        format!("index of {}", columns.join(", "))
    }

    /// The row groups that may satisfy a need, or `None` if there is nothing to look up.
    async fn candidates(&self, need: &Need) -> Result<Option<Candidates>> {
        let mut lookups = Vec::new();
        self.lookups(need, &mut lookups)?;
        let found = match &self.source {
            Source::Memory(index) => {
                let found = lookups.iter().map(|lookup| index.candidates(lookup));
                found.collect::<Result<Vec<_>, _>>().map_err(external)?
            }
            Source::Ranges { manifest, store, path } => {
                let located = manifest.locate(&lookups).map_err(external)?;
                let ranges = located.ranges();
                let loaded = match ranges.is_empty() {
                    true => Vec::new(),
                    false => store.get_ranges(path, ranges).await?,
                };
                manifest.candidates(&located, &loaded).map_err(external)?
            }
        };
        combine(need, &mut found.into_iter()).transpose()
    }

    fn lookups(&self, need: &Need, lookups: &mut Vec<Lookup>) -> Result<()> {
        match need {
            Need::Any | Need::Never => Ok(()),
            Need::All(needs) | Need::Either(needs) => {
                needs.iter().try_for_each(|need| self.lookups(need, lookups))
            }
            Need::OneOf { column, data_type, hashes } => {
                let key_hash = KeyType::of(data_type)?.key_hash();
                let is_type = |own: &str| {
                    own.parse::<DataType>().is_ok_and(|own| keeps_keys(&own, data_type))
                };
                let lookup = self.manifest().lookup(*column, key_hash, is_type, hashes.as_slice());
                lookups.push(lookup.map_err(external)?);
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

/// What is left for a need, of what was found for each of its values in their order.
fn combine(
    need: &Need,
    found: &mut impl Iterator<Item = Candidates>,
) -> Option<Result<Candidates>> {
    let (needs, both): (_, fn(&mut Candidates, &Candidates) -> _) = match need {
        Need::Any | Need::Never => return None,
        Need::OneOf { .. } => return found.next().map(Ok),
        Need::All(needs) => (needs, Candidates::and),
        Need::Either(needs) => (needs, Candidates::or),
    };
    let mut needs = needs.iter().filter_map(|need| combine(need, found));
    let first = needs.next()?;
    Some(needs.fold(first, |all, one| {
        let (mut all, one) = (all?, one?);
        both(&mut all, &one).map_err(external)?;
        Ok(all)
    }))
}

/// Which version of which file an object is, by the engine's listing of it.
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

/// What some indexes leave of the files of a table for one predicate.
#[derive(Debug, Default)]
pub(crate) struct Left {
    found: Vec<(Arc<StoredFileIndex>, Candidates)>,
    /// Why more is left than there would be: indexes that are damaged, or could not be read.
    pub(crate) problems: Vec<String>,
}

/// What is to be read of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// All of it, and why.
    Unknown(Unknown),
    Nothing,
    /// The row groups that are `true`, of all.
    RowGroups(Vec<bool>),
}

impl Left {
    /// Looks each need up in its index. An index that cannot be read leaves everything.
    pub(crate) async fn of(needs: &[(Arc<StoredFileIndex>, Need)]) -> Left {
        let mut left = Left::default();
        for (index, need) in needs {
            let problem = match index.candidates(need).await {
                Ok(Some(candidates)) => {
                    let damage = candidates.damage();
                    left.found.push((index.clone(), candidates));
                    damage.map(|damage| format!("{} is damaged: {damage}", index.name()))
                }
                Ok(None) => None,
                Err(error) => Some(format!("{} cannot be read: {error}", index.name())),
            };
            if let Some(problem) = problem {
                log::warn!("blocked-bloom: more files are read: {problem}");
                left.problems.push(problem);
            }
        }
        left
    }

    /// What is to be read of a file, or `None` if nothing was looked up.
    pub(crate) fn of_file(&self, file: &ObjectMeta) -> Option<Verdict> {
        let identity = identity(file);
        let verdicts = self.found.iter().map(|(index, candidates)| {
            match index.manifest().prune(candidates, &identity) {
                Pruned::Unknown(why) => Verdict::Unknown(why),
                Pruned::Empty => Verdict::Nothing,
                Pruned::RowGroups(bits) => Verdict::RowGroups(
                    (0..bits.len()).map(|i| bits.get(i) != Some(false)).collect(),
                ),
                _ => Verdict::Unknown(Unknown::OtherIndex),
            }
        });
        verdicts.reduce(Verdict::and)
    }
}

impl Verdict {
    fn and(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::Nothing, _) | (_, Verdict::Nothing) => Verdict::Nothing,
            (Verdict::Unknown(_), other) => other,
            (this, Verdict::Unknown(_)) => this,
            (Verdict::RowGroups(a), Verdict::RowGroups(b)) if a.len() == b.len() => {
                let both: Vec<bool> = a.iter().zip(&b).map(|(a, b)| a & b).collect();
                if both.contains(&true) { Verdict::RowGroups(both) } else { Verdict::Nothing }
            }
            // One of the two is an index of another version.
            (Verdict::RowGroups(_), Verdict::RowGroups(_)) => Verdict::Unknown(Unknown::OtherIndex),
        }
    }
}

pub(crate) fn external(error: FileIndexError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

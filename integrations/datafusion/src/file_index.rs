//! Which files and row groups a query reads, from one index over all of them.
//!
//! [`build_file_index`] makes an index, [`update_file_index`] one of the files that there are now,
//! [`StoredFileIndex`] opens it, and [`with_file_index`] gives it to a session.
//! `docs/file-index.md` says when it pays.

mod build;
mod need;
mod rule;
mod source;
mod stored;
mod table;

use std::any::Any;
use std::sync::Arc;

use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::{SessionState, SessionStateBuilder};

pub use build::{FileIndexReport, build_file_index, file_index_column, update_file_index};
pub use stored::StoredFileIndex;

use rule::FileIndexRule;
use stored::Indexes;
use table::FileIndexPlanner;

/// Adds an index over files of an object store to a session: `store` is the URL that the session
/// knows the store by, as in [`ListingTableUrl::object_store`].
///
/// Queries then read, of Parquet files that the index knows as they are listed now, only row groups
/// that may have the values which the query names: of a [`ListingTable`] before the engine reads a
/// footer, of other tables and for the keys of joins when a file is about to be opened. All other
/// files are read as before. Called several times, it adds several indexes.
///
/// A file is the one that was indexed if its etag or version is, unless
/// [`StoredFileIndex::with_same_file`] says otherwise. The etag of a local file is made of its
/// inode, length and time: a file that is overwritten in place by as many bytes, with its time put
/// back, is taken for the one that was indexed.
///
/// In Ballista the scheduler's session takes the index, by its `override_session_builder`. Files
/// are pruned before their scans are sent to executors, which need nothing.
///
/// [`ListingTable`]: datafusion::datasource::listing::ListingTable
/// [`ListingTableUrl::object_store`]:
///     datafusion::datasource::listing::ListingTableUrl::object_store
pub fn with_file_index(
    state: SessionState,
    store: ObjectStoreUrl,
    index: Arc<StoredFileIndex>,
) -> SessionState {
    let mut rules = state.physical_optimizers().to_vec();
    let mut indexes = Vec::new();
    rules.retain(|rule| match (rule.as_ref() as &dyn Any).downcast_ref::<FileIndexRule>() {
        Some(rule) => {
            indexes.extend(rule.indexes.iter().cloned());
            false
        }
        None => true,
    });
    indexes.push((store, index));
    let indexes = Indexes::from(indexes);
    rules.push(Arc::new(FileIndexRule { indexes: indexes.clone() }));
    let planner = state.query_planner().clone();
    let inner = match (planner.as_ref() as &dyn Any).downcast_ref::<FileIndexPlanner>() {
        Some(planner) => planner.inner.clone(),
        None => planner,
    };
    let id = state.session_id().to_string();
    SessionStateBuilder::new_from_existing(state)
        .with_session_id(id)
        .with_physical_optimizer_rules(rules)
        .with_query_planner(Arc::new(FileIndexPlanner { inner, indexes }))
        .build()
}

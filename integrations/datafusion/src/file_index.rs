//! One index over many Parquet files, which tells queries which files and row groups to read.
//!
//! [`build_file_index`] builds an index, [`update_file_index`] updates it, [`StoredFileIndex`]
//! opens it, and [`with_file_index`] adds it to a session. `docs/file-index.md` says when it pays.

mod build;
mod condition;
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

/// Adds an index over files of an object store to a session. `store` is the URL of the store in
/// that session, as in [`ListingTableUrl::object_store`]. Call this once per index.
///
/// Queries then skip row groups that cannot contain the values they look for. This applies to
/// Parquet files that the index knows in their listed version; all other files are read as before.
/// Files of a [`ListingTable`] are skipped before the engine reads their footers. For other tables,
/// and for the keys of joins, this happens just before a file is opened.
///
/// A file is the indexed one if its etag or version is the same;
/// [`StoredFileIndex::with_same_file`] changes this rule. The etag of a local file consists of
/// inode, length and time. If a local file is overwritten in place with the same length and its
/// time is set back, the change is not detected.
///
/// In Ballista, add the index to the scheduler's session (`override_session_builder`). The
/// scheduler prunes files before it sends scans to executors, which need no index.
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

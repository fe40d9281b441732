//! TPC-DS: the tables in a folder that `suites/prepare.py` wrote, and the 99 queries.

use std::fs;
use std::path::Path;

use datafusion::common::Result;
use datafusion::prelude::{ParquetReadOptions, SessionContext};

/// Returns a query, from 1 to 99.
pub(crate) fn query(directory: &Path, number: usize) -> Result<String> {
    Ok(fs::read_to_string(directory.join(format!("queries/{number:02}.sql")))?)
}

/// Registers the tables with a session.
pub(crate) async fn register(context: &SessionContext, directory: &Path) -> Result<()> {
    for table in fs::read_dir(directory.join("tables"))? {
        let table = table?;
        let path = format!("{}/", table.path().display());
        let name = table.file_name();
        let name = name.to_string_lossy();
        context.register_parquet(name.as_ref(), &path, ParquetReadOptions::default()).await?;
    }
    Ok(())
}

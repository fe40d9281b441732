//! TPC-DS in the folder that `tpcds/prepare.py` wrote: tables, and the 99 queries.

use std::fs;
use std::path::Path;

use datafusion::common::Result;
use datafusion::prelude::{ParquetReadOptions, SessionContext};

/// A query, from 1 to 99.
pub(crate) fn query(directory: &Path, number: usize) -> Result<String> {
    Ok(fs::read_to_string(directory.join(format!("queries/{number:02}.sql")))?)
}

/// Makes the tables known to a session.
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

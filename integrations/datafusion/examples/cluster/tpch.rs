//! TPC-H: tables from the crate `tpchgen` as Parquet files, and the 22 queries with the parameters
//! of the specification's validation runs.

use std::fs::{self, File};
use std::path::Path;

use datafusion::arrow::array::RecordBatchReader;
use datafusion::common::Result;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use tpchgen::q_and_a::queries;
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow,
    SupplierArrow,
};

const TABLES: [&str; 8] =
    ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"];

/// The values of `:1`, `:2` and so on in each query, and of `:s` in query 15, which creates a view.
const PARAMETERS: [&[&str]; 22] = [
    &["90"],
    &["15", "BRASS", "EUROPE"],
    &["BUILDING", "1995-03-15"],
    &["1993-07-01"],
    &["ASIA", "1994-01-01"],
    &["1994-01-01", "0.06", "24"],
    &["FRANCE", "GERMANY"],
    &["BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"],
    &["green"],
    &["1993-10-01"],
    &["GERMANY", "0.0001"],
    &["MAIL", "SHIP", "1994-01-01"],
    &["special", "requests"],
    &["1995-09-01"],
    &["1996-01-01"],
    &["Brand#45", "MEDIUM POLISHED", "49", "14", "23", "45", "19", "3", "36", "9"],
    &["Brand#23", "MED BOX"],
    &["300"],
    &["Brand#12", "Brand#23", "Brand#34", "1", "10", "20"],
    &["forest", "1994-01-01", "CANADA"],
    &["SAUDI ARABIA"],
    &["13", "31", "23", "29", "30", "18", "17"],
];

/// Returns a query, from 1 to 22, as one statement without a semicolon.
pub(crate) fn query(number: usize) -> String {
    let mut sql = queries::query(number as i32).expect("1 to 22").replace(":s", "0");
    // The last parameter is replaced first, so that `:10` is not mistaken for `:1`.
    for (n, value) in PARAMETERS[number - 1].iter().enumerate().rev() {
        sql = sql.replace(&format!(":{}", n + 1), value);
    }
    // The interval in query 1 has a precision, which the parser rejects.
    sql = sql.replace(" day (3)", " day");
    if number == 15 {
        // The statements that create a view, query it and drop it become one query.
        let statements: Vec<_> = sql.split(';').map(str::trim).collect();
        let view = statements[0].replacen("create view", "with", 1);
        let (name, body) = view.split_once(" as").expect("a view has a query");
        sql = format!("{name} as ({body}) {}", statements[1]);
    }
    sql.trim().trim_end_matches(';').to_string()
}

/// Writes the eight tables at a scale factor, the large ones in `files` files.
pub(crate) fn write(directory: &Path, scale: f64, files: i32) -> Result<()> {
    for table in TABLES {
        let path = directory.join(table);
        fs::create_dir_all(&path)?;
        let parts = if matches!(table, "region" | "nation" | "supplier") { 1 } else { files };
        for part in 1..=parts {
            macro_rules! of {
                ($generator:ident, $arrow:ident) => {
                    Box::new($arrow::new($generator::new(scale, part, parts)))
                };
            }
            let rows: Box<dyn RecordBatchReader> = match table {
                "region" => of!(RegionGenerator, RegionArrow),
                "nation" => of!(NationGenerator, NationArrow),
                "supplier" => of!(SupplierGenerator, SupplierArrow),
                "customer" => of!(CustomerGenerator, CustomerArrow),
                "part" => of!(PartGenerator, PartArrow),
                "partsupp" => of!(PartSuppGenerator, PartSuppArrow),
                "orders" => of!(OrderGenerator, OrderArrow),
                _ => of!(LineItemGenerator, LineItemArrow),
            };
            let file = File::create(path.join(format!("{part}.parquet")))?;
            // Like other writers' files, these have no Arrow schema, so that the session decides
            // whether strings are views.
            let options = ArrowWriterOptions::new().with_skip_arrow_metadata(true);
            let mut writer = ArrowWriter::try_new_with_options(file, rows.schema(), options)?;
            for batch in rows {
                writer.write(&batch?)?;
            }
            writer.close()?;
        }
    }
    Ok(())
}

/// Registers the tables with a session.
pub(crate) async fn register(context: &SessionContext, directory: &Path) -> Result<()> {
    for table in TABLES {
        let path = format!("{}/{table}/", directory.display());
        context.register_parquet(table, &path, ParquetReadOptions::default()).await?;
    }
    Ok(())
}

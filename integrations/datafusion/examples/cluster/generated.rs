//! Generated star and chain joins. The tables resemble those of TPC-DS (three fact tables, whose
//! dimensions may have dimensions themselves) and of the Join Order Benchmark (titles with
//! details). Keys are skewed, and some are NULL.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::common::Result;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::prelude::{ParquetReadOptions, SessionContext};

/// Pseudo-random numbers (SplitMix64), the same in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let n = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        n ^ n >> 31
    }

    pub(crate) fn number_below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    pub(crate) fn choose<'a>(&mut self, values: &[&'a str]) -> &'a str {
        values[self.number_below(values.len())]
    }
}

enum Rows {
    Fixed(i64),
    /// The rows of the largest table divided by this.
    Part(i64),
}
use Rows::{Fixed, Part};

enum Values {
    /// The row number.
    Number,
    /// Numbers below this.
    Uniform(i64),
    /// This many distinct words.
    Words(i64),
    /// Row numbers of another table, low ones more often than high ones. One row in fifty is NULL.
    Key(&'static str),
    /// The value of another table's column in the row of the same number.
    Copied(&'static str, &'static str),
}
use Values::{Copied, Key, Number, Uniform, Words};

type Columns = &'static [(&'static str, Values)];

/// Names, rows and columns. Keys of other tables refer to the first column.
const TABLES: [(&str, Rows, Columns); 16] = [
    ("date_dim", Fixed(1800), &[("d_sk", Number), ("d_year", Uniform(5)), ("d_moy", Uniform(12))]),
    ("store", Fixed(60), &[("s_sk", Number), ("s_state", Words(9))]),
    (
        "item",
        Part(150),
        &[
            ("i_sk", Number),
            ("i_brand", Words(100)),
            ("i_category", Words(10)),
            ("i_price", Uniform(1000)),
        ],
    ),
    ("address", Part(80), &[("ca_sk", Number), ("ca_state", Words(50)), ("ca_gmt", Uniform(6))]),
    (
        "customer",
        Part(40),
        &[
            ("c_sk", Number),
            ("c_address", Key("address")),
            ("c_birth", Uniform(80)),
            ("c_name", Words(5000)),
        ],
    ),
    (
        "store_sales",
        Part(1),
        &[
            ("ss_ticket", Number),
            ("ss_date", Key("date_dim")),
            ("ss_item", Key("item")),
            ("ss_customer", Key("customer")),
            ("ss_store", Key("store")),
            ("ss_quantity", Uniform(100)),
            ("ss_note", Words(100_000)),
        ],
    ),
    (
        "store_returns",
        Part(10),
        &[
            ("sr_ticket", Copied("store_sales", "ss_ticket")),
            ("sr_item", Copied("store_sales", "ss_item")),
            ("sr_customer", Key("customer")),
            ("sr_amount", Uniform(500)),
        ],
    ),
    (
        "catalog_sales",
        Part(3),
        &[
            ("cs_order", Number),
            ("cs_date", Key("date_dim")),
            ("cs_item", Key("item")),
            ("cs_customer", Key("customer")),
            ("cs_quantity", Uniform(100)),
        ],
    ),
    ("kind_type", Fixed(7), &[("kt_id", Number), ("kt_kind", Words(7))]),
    (
        "title",
        Part(8),
        &[
            ("t_id", Number),
            ("t_kind", Key("kind_type")),
            ("t_year", Uniform(120)),
            ("t_title", Words(90_000)),
        ],
    ),
    ("keyword", Part(100), &[("k_id", Number), ("k_keyword", Words(700))]),
    ("movie_keyword", Part(3), &[("mk_movie", Key("title")), ("mk_keyword", Key("keyword"))]),
    ("company", Part(120), &[("cn_id", Number), ("cn_country", Words(60))]),
    (
        "movie_companies",
        Part(5),
        &[("mc_movie", Key("title")), ("mc_company", Key("company")), ("mc_note", Words(900))],
    ),
    ("person", Part(6), &[("n_id", Number), ("n_gender", Words(2)), ("n_name", Words(40_000))]),
    (
        "cast_info",
        Part(1),
        &[("ci_movie", Key("title")), ("ci_person", Key("person")), ("ci_role", Uniform(11))],
    ),
];

fn table(name: &str) -> &'static (&'static str, Rows, Columns) {
    TABLES.iter().find(|table| table.0 == name).expect("one of the tables")
}

fn rows(name: &str, largest: i64) -> i64 {
    match table(name).1 {
        Fixed(rows) => rows,
        Part(part) => (largest / part).max(1),
    }
}

/// Returns the value of a row in a column.
fn value(name: &str, column: &str, row: i64, largest: i64) -> Option<i64> {
    let seed =
        column.bytes().fold(row as u64, |seed, byte| (seed << 5) ^ (seed >> 59) ^ u64::from(byte));
    let mut random = Random(seed);
    let values = table(name).2.iter().find(|(other, _)| *other == column);
    match values.expect("a column of the table").1 {
        Number => Some(row),
        Uniform(most) | Words(most) => Some(random.number_below(most as usize) as i64),
        Key(other) => {
            let share = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
            let row = (share * share * rows(other, largest) as f64) as i64;
            (random.number_below(50) != 0).then_some(row)
        }
        Copied(other, column) => value(other, column, row, largest),
    }
}

/// Writes the tables to one or two files each. The largest tables have this many rows.
pub(crate) fn write(directory: &Path, largest: i64) -> Result<()> {
    for (name, _, columns) in &TABLES {
        let path = directory.join(name);
        fs::create_dir_all(&path)?;
        let rows = rows(name, largest);
        let create = |(column, values): &(&'static str, Values)| -> (&'static str, ArrayRef) {
            let numbers = (0..rows).map(|row| value(name, column, row, largest));
            let array: ArrayRef = match values {
                Words(_) => Arc::new(StringArray::from_iter(
                    numbers.map(|n| n.map(|n| format!("word {n}"))),
                )),
                _ => Arc::new(Int64Array::from_iter(numbers)),
            };
            (column, array)
        };
        let batch = RecordBatch::try_from_iter(columns.iter().map(create))?;
        let files = if rows < 1000 { 1 } else { 2 };
        for file in 0..files {
            let (first, end) = (rows * file / files, rows * (file + 1) / files);
            let to = File::create(path.join(format!("{file}.parquet")))?;
            let mut writer = ArrowWriter::try_new(to, batch.schema(), None)?;
            writer.write(&batch.slice(first as usize, (end - first) as usize))?;
            writer.close()?;
        }
    }
    Ok(())
}

/// Registers the tables with a session.
pub(crate) async fn register(context: &SessionContext, directory: &Path) -> Result<()> {
    for (name, ..) in &TABLES {
        let path = format!("{}/{name}/", directory.display());
        context.register_parquet(*name, &path, ParquetReadOptions::default()).await?;
    }
    Ok(())
}

/// Returns a condition on a column that is not a key.
fn predicate(random: &mut Random, column: &str, values: &Values) -> Option<String> {
    Some(match *values {
        Uniform(most) => {
            let least = random.number_below(most as usize);
            let width = 1 + random.number_below(1 + most as usize / 4);
            match random.number_below(3) {
                0 => format!("{column} = {least}"),
                1 => format!("{column} < {}", 1 + least / 2),
                _ => format!("{column} BETWEEN {least} AND {}", least + width),
            }
        }
        Words(most) => {
            let n = random.number_below(most as usize);
            match random.number_below(3) {
                0 => format!("{column} = 'word {n}'"),
                1 => format!("{column} IN ('word {n}', 'word {}', 'word 1')", n / 2),
                _ => format!("{column} LIKE 'word {}%'", 1 + random.number_below(9)),
            }
        }
        _ => return None,
    })
}

/// Returns a join of three to six tables, some of which have predicates.
pub(crate) fn query(number: usize) -> String {
    let mut random = Random((number as u64).wrapping_mul(0x1234_5678_9abc_def1));
    // Every key, and the only key of two columns.
    let mut edges: Vec<(&str, &str, String)> = Vec::new();
    for (name, _, columns) in &TABLES {
        for (column, values) in *columns {
            if let Key(other) = values {
                edges.push((name, other, format!("{column} = {}", table(other).2[0].0)));
            }
        }
    }
    edges.push((
        "store_returns",
        "store_sales",
        "sr_ticket = ss_ticket AND sr_item = ss_item".into(),
    ));
    let count = 3 + random.number_below(4);
    let mut joined = vec![edges[random.number_below(edges.len())].0];
    let (mut from, mut conditions) = (joined[0].to_string(), Vec::new());
    let mut done = BTreeSet::new();
    while joined.len() < count {
        let near = |(n, edge): (usize, &(&'static str, &'static str, String))| {
            let (a, b) = (joined.contains(&edge.0), joined.contains(&edge.1));
            // At most two tables with many rows per title or customer: the product of more would be
            // larger than any table.
            let many =
                joined.iter().filter(|name| edges.iter().any(|edge| edge.0 == **name)).count();
            (a != b && (a || many < 3)).then_some(n)
        };
        let near: Vec<usize> = edges.iter().enumerate().filter_map(near).collect();
        if near.is_empty() {
            break;
        }
        let (a, b, on) = &edges[near[random.number_below(near.len())]];
        let new = if joined.contains(a) { *b } else { *a };
        let join = random.choose(&["JOIN", "JOIN", "JOIN", "JOIN", "JOIN", "LEFT JOIN"]);
        let last = joined.len() + 1 == count && random.number_below(4) == 0;
        let join = if last { "LEFT SEMI JOIN" } else { join };
        from += &format!(" {join} {new} ON {on}");
        joined.push(new);
        let own = (join != "JOIN").then(|| selection(&mut random, new)).flatten();
        if join != "JOIN" {
            done.insert(new);
        }
        from.extend(own.map(|own| format!(" AND {own}")));
    }
    for name in &joined {
        if !done.contains(name) {
            conditions.extend(selection(&mut random, name));
        }
    }
    let first = table(joined[0]).2;
    let group = first[random.number_below(first.len())].0;
    let selected = format!("count(*) AS n, sum({}) AS s, min({group}) AS m", sum_of(joined[0]));
    let filter = match conditions.as_slice() {
        [] => String::new(),
        all => format!(" WHERE {}", all.join(" AND ")),
    };
    match random.number_below(3) {
        0 => format!("SELECT {selected} FROM {from}{filter}"),
        1 => format!(
            "SELECT {group} AS g, {selected} FROM {from}{filter} GROUP BY {group} ORDER BY n DESC, g LIMIT 50"
        ),
        _ => format!(
            "SELECT {group} AS g, {selected} FROM {from}{filter} GROUP BY {group} ORDER BY g"
        ),
    }
}

/// Returns a predicate on a table: often if the table has no keys, seldom if it has.
fn selection(random: &mut Random, name: &str) -> Option<String> {
    let columns = table(name).2;
    let keys = columns.iter().any(|(_, values)| matches!(values, Key(_)));
    if random.number_below(10) < if keys { 7 } else { 4 } {
        return None;
    }
    let (column, values) = &columns[random.number_below(columns.len())];
    predicate(random, column, values)
}

/// Returns a numeric column.
fn sum_of(name: &str) -> &'static str {
    let columns = table(name).2.iter();
    columns.rev().find(|(_, values)| !matches!(values, Words(_))).expect("a table has a key").0
}

//! The blocks of the pages by name: which figures each shows, and how. Rows and columns that were
//! not measured are missing; a table without any is an error.

use benches::results::{Line, Removable};
use benches::split_block::{self, BOUNDS};
use benches::table::markdown;

use crate::pictures::WAYS;
use crate::store::{Store, digits, percent};
use crate::wins::wins;

pub(crate) const OURS: &str = "blocked-bloom";
pub(crate) const OURS_ONE: &str = "blocked-bloom, one key a call";
pub(crate) const ROCKSDB: &str = "RocksDB's loop, one key";
const ROCKSDB_BATCH: &str = "RocksDB's loop, batches of 32";
const BASELINE: [&str; 2] =
    ["memory-bound baseline: one line a key", "memory-bound baseline, prefetched 128 keys ahead"];
/// Keys of the filters that pages show: 100 k is as 10 k nearly everywhere.
const SHOWN: [&str; 4] = ["10 k", "1 M", "10 M", "100 M"];

/// Rows of the tables beside other filters: what a page calls them, and the row and kind of the
/// comparison. `{v}` stands for the version of a package, `{b}` for its bits per key.
const FILTERS: [(&str, &str, &str); 16] = [
    ("**blocked-bloom**", OURS, OURS),
    ("one key a call", OURS_ONE, OURS),
    ("in small pages", "blocked-bloom, small pages", ""),
    ("blocked-bloom with AVX2", "blocked-bloom, AVX2", "blocked-bloom, AVX2"),
    ("the same, one key a call", "blocked-bloom, AVX2, one key a call", "blocked-bloom, AVX2"),
    ("RocksDB's AVX2 loop, batches of 32", ROCKSDB_BATCH, "RocksDB's loop"),
    ("RocksDB's AVX2 loop, one key", ROCKSDB, "RocksDB's loop"),
    (
        "split-block loop (Parquet's scheme), AVX2",
        "32-byte split blocks, AVX2",
        "32-byte split blocks",
    ),
    (
        "split-block loop, prefetching",
        "split blocks, prefetched 128 keys ahead",
        "32-byte split blocks",
    ),
    ("sbbf-rs-safe {v}", "sbbf-rs-safe", "sbbf-rs-safe"),
    ("parquet {v} `Sbbf` †", "parquet Sbbf †", "parquet"),
    ("sharded Ribbon of `blocked-bloom-ribbon`, {b} bits", "sharded Ribbon", "sharded Ribbon"),
    ("pleat {v} `Ribbon<7>`, {b} bits", "pleat Ribbon", "pleat"),
    ("xorf {v} `BinaryFuse8`, {b} bits", "xorf BinaryFuse8", "xorf BinaryFuse8"),
    ("fastbloom {v}", "fastbloom", "fastbloom"),
    ("bloomfilter {v} †", "bloomfilter †", "bloomfilter"),
];

/// Beginnings of the names that are in the table of more than the front page has.
const FOLLOWED: [&str; 5] = [
    "**blocked-bloom**",
    "blocked-bloom with",
    "RocksDB's AVX2 loop, batches",
    "split-block",
    "sbbf",
];

/// Those of its first part, of which the front page has the others.
const FIRST: [&str; 2] = ["**blocked-bloom**", "in small pages"];

/// Rows of the table of short calls.
const SHORT: [(&str, &str); 4] = [
    ("blocked-bloom", OURS),
    ("one by one", OURS_ONE),
    ("RocksDB's loop, one key", ROCKSDB),
    ("RocksDB's loop, batches", ROCKSDB_BATCH),
];

/// The text of the block of this name.
pub(crate) fn text(store: &Store, name: &str) -> Result<String, String> {
    match name {
        "results" => {
            let mut rows = baseline(store, &SHOWN);
            let is_detail =
                |name: &str| name.contains("small pages") || name.starts_with("the same");
            let all = beside(store, "hashes, absent, 1024 a call", &SHOWN)?;
            rows.extend(all.into_iter().filter(|row| !is_detail(&row[0])));
            table("", SHOWN.into_iter().chain(["false positives"]), rows)
        }
        "beside" => all_beside(store),
        "hashes a call" => calls(store, "hashes", &["1", "4", "8", "32", "1024"]),
        "keys a call" => calls(store, "keys", &["1", "4", "8", "32", "256", "1024"]),
        "removable" => removable(store),
        "ribbon" => ribbon(store),
        "where others win" => wins(store),
        "engine" => {
            // The last is for those who look for every case.
            let [shown @ .., _] = ENGINE_TABLES;
            let titles = shown.map(|(title, _)| format!("engine: {title}"));
            let place = |row: usize, column: usize| (titles[column].clone(), ENGINE_ROWS[row].1);
            let names = ENGINE_ROWS.map(|row| row.0);
            grid(store, "way", &shown.map(|table| table.1), &names, place, |line| {
                format!("{:.0} ({:.0}) {:.2}", line.time.median, line.time.min, line.ratio)
            })
        }
        "planes" => {
            let title =
                |row: usize| format!("planes: 10000000 rows, {}; us a query", PLANES[row].1);
            let place = |row: usize, column: usize| (title(row), PLANES_WAYS[column].1);
            let (heads, names) = (PLANES_WAYS.map(|way| way.0), PLANES.map(|row| row.0));
            grid(store, "columns", &heads, &names, place, |line| {
                let ms = line.time.min / 1e3;
                if ms < 1.0 { format!("{ms:.3}") } else { digits(ms) }
            })
        }
        "classical" => {
            let title = |row: usize, column: usize| {
                let mix = ["absent", "present"][column / 2];
                format!("classical: {}/80M/{mix}", CLASSICAL[row].1)
            };
            let way = |row: usize, column: usize| [CLASSICAL[row].2, "batch"][column % 2];
            let place = |row, column| (title(row, column), way(row, column));
            let heads = ["absent: one by one", "batch", "present: one by one", "batch"];
            let names = CLASSICAL.map(|system| system.0);
            grid(store, "", &heads, &names, place, |line| format!("{:.0}", line.time.median))
        }
        "hashing" => {
            let place = |row: usize, column: usize| {
                let columns = ["avx512, 4096", "avx512, 32", "avx2, 4096", "avx2, 32"];
                let (_, group, way) = HASHING[row];
                (format!("hashing: {group}, {} a call", columns[column]), way)
            };
            let heads = [
                "AVX-512, 4096 a call",
                "AVX-512, 32 a call",
                "AVX2, 4096 a call",
                "AVX2, 32 a call",
            ];
            grid(store, "", &heads, &HASHING.map(|row| row.0), place, |line| {
                let is_first = line.ratio == 1.0 || line.ratio.is_nan();
                let ratio = if is_first { String::new() } else { format!(" {:.2}", line.ratio) };
                digits(line.time.median) + &ratio
            })
        }
        "growing" => {
            let titles = ["100k keys, absent", "100k keys, present", "10M keys, absent"];
            let titles = titles.into_iter().chain(["10M keys, present"]);
            let titles: Vec<String> = titles.map(|title| format!("growing: {title}")).collect();
            let ways = ["batch", "single"];
            let place = |row: usize, column: usize| (titles[column].clone(), ways[row]);
            let heads = ["absent, 0.2 MB", "present, 0.2 MB", "absent, 23 MB", "present, 23 MB"];
            let names = ["`contains_hashes`", "`contains_hash`, one key at a time"];
            let corner = "ns per key, ten links, target 1 %";
            grid(store, corner, &heads, &names, place, |line| format!("{:.0}", line.time.min))
        }
        "rows" => {
            let place = |row: usize, column: usize| {
                let size = ["100k", "100M"][row];
                let way = ["one_by_one", "bitmask", "select"][column];
                (format!("split_block: rows, {size} values, half of them present, ns a row"), way)
            };
            let heads = ["scalar loop", "bitmask", "row numbers"];
            grid(store, "filter", &heads, &["128 KiB", "128 MiB"], place, |line| {
                digits(line.time.median)
            })
        }
        "files" => {
            let ways = WAYS.map(|way| way.0);
            let place =
                |row: usize, column: usize| (format!("files: {}", FILES[column].1), ways[row]);
            grid(store, "", &FILES.map(|column| column.0), &ways, place, |line| {
                let value = line.time.median;
                if value.fract() == 0.0 { format!("{value}") } else { digits(value) }
            })
        }
        "split" => split(store),
        _ => Err(format!("no block {name}: benches/src/bin/figures/blocks.rs has their names")),
    }
}

pub(crate) const ENGINE_TABLES: [(&str, &str); 4] = [
    ("3276 keys a table", "up to 3,276 keys a table, 82 KB"),
    ("200000 keys a table", "200,000, 5 MB"),
    ("5000000 keys a table", "5,000,000, 124 MB"),
    ("5000000 keys a table, whole lines and huge pages", "5,000,000, whole lines and huge pages"),
];

const ENGINE_ROWS: [(&str, &str); 6] = [
    ("`contains_hash` of each opened filter", "one by one"),
    ("`prefetch_hash` of all, then `contains_hash`", "prefetch first"),
    ("`contains_hash_in` of the stored bytes", "stored bytes"),
    ("`from_bytes_trusted` and `contains_hash` each time", "opened each time"),
    ("RocksDB's loop, inlined, over the same blocks", "RocksDB's loop"),
    ("lsm-tree's standard filter, as many bits", "lsm-tree's filter"),
];

const PLANES: [(&str, &str); 5] = [
    ("1", "1 columns"),
    ("2", "2 columns"),
    ("4", "4 columns"),
    ("6", "6 columns"),
    ("6, rows left in every 512, so that early stop spares nothing", "6 columns, all planes"),
];

const PLANES_WAYS: [(&str, &str); 4] = [
    ("the fastest scan of the rows (AVX2)", "rows, AVX2"),
    ("planes, cold", "planes, cold"),
    ("in batches, cold", "planes by batch, cold"),
    ("planes, warm", "planes, warm"),
];

const HASHING: [(&str, &str, &str); 10] = [
    ("`[u8; 16]` in a loop", "16 bytes", "one by one"),
    ("`hash_batch`", "16 bytes", "hash_batch"),
    ("slices of 16 bytes, `hash_batch`", "slices of 16 bytes", "hash_batch"),
    ("`[u8; 8]` in a loop", "8 bytes", "one by one"),
    ("`hash_batch`", "8 bytes", "hash_batch"),
    ("`hash_u64s`", "integers", "hash_u64s"),
    ("`[u8; 16]` in a loop, then `contains_hashes`", "16 bytes looked up", "one by one"),
    ("`contains_batch`", "16 bytes looked up", "contains_batch"),
    ("integers in a loop, then `contains_hashes`", "integers looked up", "one by one"),
    ("`contains_u64s`", "integers looked up", "contains_u64s"),
];

const FILES: [(&str, &str); 8] = [
    ("new session: requests", "absent value, new session, statistics, 0 us a request; requests"),
    ("MB", "absent value, new session, statistics, 0 us a request; MB"),
    ("ms", "absent value, new session, statistics, 0 us a request; ms"),
    ("ms, slow", "absent value, new session, statistics, 5000 us a request; ms"),
    (
        "footers known: requests",
        "absent value, footers known, statistics, 0 us a request; requests",
    ),
    ("ms", "absent value, footers known, statistics, 0 us a request; ms"),
    ("ms, slow", "absent value, footers known, statistics, 5000 us a request; ms"),
    ("join, 20 keys: requests", "join with 20 keys, one list, 0 us a request; requests"),
];

/// Systems of classical filters, and the row of one key at a time: the system's own loop where it
/// was written anew.
pub(crate) const CLASSICAL: [(&str, &str, &str); 4] = [
    ("Guava", "guava", "naive"),
    ("Spark, version 2", "spark", "naive"),
    ("RedisBloom, one link", "redis", "naive"),
    ("Cassandra (one by one here, not its loop)", "cassandra", "key"),
];

/// Rows of Ribbon filters: name, row of the comparison, and that with which it is compared.
const RIBBON_LOOKUPS: [(&str, &str, &str); 6] = [
    ("Bloom", OURS, OURS),
    ("sharded", "sharded Ribbon", OURS),
    ("RocksDB's", "RocksDB's Ribbon", OURS),
    ("`Ribbon<7>` of the crate `pleat`", "pleat Ribbon", OURS),
    ("Bloom, one key a call", OURS_ONE, OURS_ONE),
    ("sharded, one key a call", "sharded Ribbon, one key a call", OURS_ONE),
];

const RIBBON_BUILT: [(&str, &str, &str); 4] = [
    ("Bloom", OURS, OURS),
    ("sharded", "sharded Ribbon", OURS),
    ("RocksDB's", "RocksDB's Ribbon", OURS),
    ("`Ribbon<7>` of the crate `pleat`", "pleat", OURS),
];

/// Ways of `compare --only split`: what a page calls them, the number of their bound, and the row.
const SPLIT: [(&str, usize, &str); 7] = [
    ("one a call", 0, split_block::OURS),
    ("one a call, beside sbbf-rs-safe", 1, split_block::OURS),
    ("`with_lookup`, beside sbbf-rs-safe", 1, split_block::OURS_ONCE),
    ("1,024 a call", 2, split_block::OURS),
    ("keys, one a call", 3, split_block::OURS),
    ("keys, 1,024 a call", 4, split_block::OURS),
    ("building", 5, split_block::OURS),
];

const SPLIT_SIZES: [(&str, usize); 4] =
    [("128 KiB", 128 << 10), ("2 MiB", 2 << 20), ("32 MiB", 32 << 20), ("512 MiB", 512 << 20)];

/// Split-block filters beside those of others: ratios, absent and present; bold above the bound.
fn split(store: &Store) -> Result<String, String> {
    let rows = SPLIT.map(|(name, bound, row)| {
        let bound = BOUNDS[bound];
        let cells = SPLIT_SIZES.map(|(size, bytes)| {
            let mixes = ["", ", miss", ", hit"].map(|mix| {
                let table = format!("split: {size}, {}{mix}", bound.way);
                let (table, _) = store.table(&table).ok()?;
                let time = |name| table.rows.iter().find(|line| line.name == name);
                let [ours, other] = [time(row)?, time(bound.beside)?].map(|line| line.time.median);
                let ratio = ours / other;
                Some(bold(format!("{ratio:.2}"), bound.at(bytes).is_some_and(|most| ratio > most)))
            });
            mixes.into_iter().flatten().collect::<Vec<_>>().join("/")
        });
        let beyond = bound.beyond.map_or_else(String::new, |most| format!("/{most}"));
        let most = format!("{}{beyond}", bound.cached);
        [name.to_owned(), most].into_iter().chain(cells).collect()
    });
    table("", ["at most"].into_iter().chain(SPLIT_SIZES.map(|size| size.0)), rows.into())
}

/// A table of these heads and rows, without columns and rows that have nothing.
pub(crate) fn table<'h>(
    corner: &'h str,
    heads: impl IntoIterator<Item = &'h str>,
    mut rows: Vec<Vec<String>>,
) -> Result<String, String> {
    let mut heads: Vec<String> = [corner].into_iter().chain(heads).map(str::to_owned).collect();
    rows.retain(|row| row[1..].iter().any(|cell| !cell.is_empty()));
    if rows.is_empty() {
        return Err("nothing of this table was measured".to_owned());
    }
    for column in (1..heads.len()).rev() {
        if rows.iter().all(|row| row[column].is_empty()) {
            heads.remove(column);
            rows.iter_mut().for_each(|row| _ = row.remove(column));
        }
    }
    Ok(markdown(&heads, rows))
}

/// A table of benches' figures: for row and column the title of a table and the name of its row.
fn grid<'r>(
    store: &Store,
    corner: &str,
    heads: &[&str],
    names: &[&str],
    place: impl Fn(usize, usize) -> (String, &'r str),
    cell: impl Fn(&Line) -> String,
) -> Result<String, String> {
    let places = (0..names.len()).flat_map(|row| (0..heads.len()).map(move |column| (row, column)));
    let tables = places.filter_map(|(row, column)| store.table(&place(row, column).0).ok());
    // A page names one machine and date: a file hides all of those that count less.
    let first = tables.map(|(_, machine)| machine).min_by_key(|machine| store.rank(machine));
    let find = |row, column| {
        let (title, name) = place(row, column);
        let (table, machine) = store.table(&title).ok()?;
        let is_first = first.is_some_and(|first| std::ptr::eq(first, machine));
        let line = table.rows.iter().find(|line| line.name == name);
        line.filter(|_| is_first).map(&cell)
    };
    let cells = |row| (0..heads.len()).map(move |column| find(row, column).unwrap_or_default());
    let row =
        |(at, name): (usize, &&str)| [(*name).to_owned()].into_iter().chain(cells(at)).collect();
    table(corner, heads.iter().copied(), names.iter().enumerate().map(row).collect())
}

/// The faster of the baseline's loops.
fn baseline(store: &Store, columns: &[&str]) -> Vec<Vec<String>> {
    let least = |column| {
        let time = |row| store.time("hashes, absent, 1024 a call", row, column).ok();
        BASELINE.into_iter().filter_map(time).reduce(f64::min)
    };
    let cells =
        columns.iter().map(|column| least(column).map_or(String::new(), |ns| italic(&digits(ns))));
    let name = "*memory-bound baseline: load a line per key*".to_owned();
    vec![[name].into_iter().chain(cells).chain([String::new()]).collect()]
}

fn italic(text: &str) -> String {
    format!("*{text}*")
}

/// Rows of a table of the comparison for these columns, with false positives at ten bits; bold
/// where a row is faster than the first.
fn beside(store: &Store, of: &str, columns: &[&str]) -> Result<Vec<Vec<String>>, String> {
    let mut rows = Vec::new();
    let mut built = Vec::new();
    for (name, row, kind) in FILTERS {
        // A table of what is built has a row for each kind.
        let is_built = of == "building";
        if is_built && built.contains(&kind) {
            continue;
        }
        built.push(kind);
        let row = if is_built { kind } else { row };
        let rate = store.rate(kind, 10.0).ok();
        let version = store.about(kind).map(|about| about.version.clone()).unwrap_or_default();
        let version = version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        let bits = rate.map_or_else(String::new, |rate| format!("{:.1}", rate.bits_per_key));
        let name = name.replace("{v}", &version).replace("{b}", bits.trim_end_matches(".0"));
        let cells = columns.iter().map(|column| {
            let Ok(time) = store.time(of, row, column) else { return String::new() };
            let ours = store.time(of, OURS, column).unwrap_or(f64::NAN);
            bold(digits(time), !is_ours(row) && time / ours < 0.995)
        });
        let mut line: Vec<String> = [name].into_iter().chain(cells).collect();
        let rate = rate.filter(|_| line[1..].iter().any(|cell| !cell.is_empty()));
        line.push(rate.map_or_else(String::new, |rate| percent(rate.percent())));
        rows.push(line);
    }
    Ok(rows)
}

fn bold(text: String, is_bold: bool) -> String {
    if is_bold { format!("**{text}**") } else { text }
}

/// The table of everything beside other filters.
fn all_beside(store: &Store) -> Result<String, String> {
    let mut rows = baseline(store, &SHOWN);
    for (title, of) in [
        ("", "hashes, absent, 1024 a call"),
        ("32 a call", "hashes, absent, 32 a call"),
        ("16-byte keys, hashed, 1024 a call", "keys, absent, 1024 a call"),
        ("building from hashes", "building"),
    ] {
        let mut group = beside(store, of, &SHOWN)?;
        group.retain(|row| row[1..].iter().any(|cell| !cell.is_empty()));
        let shown = if title.is_empty() { &FIRST[..] } else { &FOLLOWED };
        group.retain(|row| shown.iter().any(|name| row[0].starts_with(name)));
        if !title.is_empty() {
            if of == "building" {
                group.iter_mut().for_each(|row| row[0] = row[0].replace(", batches of 32", ""));
            }
            if let Some(first) = group.first_mut() {
                first[0] = format!("**{title}:** {}", first[0].trim_matches('*'));
            }
        }
        rows.extend(group);
    }
    // Their rates are in the table of the front page.
    rows.iter_mut().for_each(|row| _ = row.pop());
    table("absent keys, hashes given, 1024 a call", SHOWN, rows)
}

/// The tables of calls of few keys, a size after the other.
fn calls(store: &Store, what: &str, columns: &[&str]) -> Result<String, String> {
    let mut rows = Vec::new();
    for size in ["1 M", "100 M"] {
        let of = format!("{what} a call, {size}");
        let time = |row, column: &&str| store.time(&of, row, column).ok();
        for (name, row) in SHORT {
            let cells = columns.iter().map(|column| {
                let Some(ns) = time(row, column) else { return String::new() };
                bold(digits(ns), time(OURS, column).is_some_and(|ours| ns / ours < 0.995))
            });
            rows.push([format!("{name}, {size}")].into_iter().chain(cells).collect());
        }
    }
    table("keys a call", columns.iter().copied(), rows)
}

/// Ribbon filters beside the core's, looked up and built.
fn ribbon(store: &Store) -> Result<String, String> {
    let mut rows = Vec::new();
    for (title, of, lines) in [
        ("", "hashes, absent, 1024 a call", &RIBBON_LOOKUPS[..]),
        (", built", "building", &RIBBON_BUILT[..]),
    ] {
        for &(name, row, first) in lines {
            let cells = SHOWN.iter().map(|size| {
                let time = |row| store.time(of, row, size).ok();
                let Some((ns, beside)) = time(row).zip(time(first)) else { return String::new() };
                match row == first {
                    true => digits(ns),
                    false => format!("{} ({:.1})", digits(ns), ns / beside),
                }
            });
            rows.push([format!("{name}{title}")].into_iter().chain(cells).collect());
        }
    }
    table("", SHOWN, rows)
}

/// Filters of a million keys that keys can be removed from.
pub(crate) fn removables(store: &Store) -> Result<Vec<&Removable>, String> {
    let rows = store.removable()?.removable.iter();
    Ok(rows.filter(|row| row.keys == 1_000_000).collect())
}

fn removable(store: &Store) -> Result<String, String> {
    let rows = removables(store)?;
    let lines = rows.iter().map(|row| {
        let cell = |at: usize, beside: usize| {
            let base = rows[0].times[beside];
            let both = row.times[at].zip(base.filter(|_| row.name != rows[0].name));
            match (row.times[at], both) {
                (None, _) => "-".to_owned(),
                (Some(time), None) => digits(time.median),
                (Some(time), Some((_, base))) => {
                    format!("{} ({:.1}x)", digits(time.median), time.median / base.median)
                }
            }
        };
        vec![
            row.name.clone(),
            format!("{:.2}", row.bits_per_key),
            cell(0, 0),
            cell(1, 1),
            cell(2, 2),
            cell(3, 2),
            format!("{:.3} %", row.passed as f64 / 1e4),
            row.lost.map_or_else(|| "-".to_owned(), |lost| lost.to_string()),
        ]
    });
    let heads = ["bits/key", "absent", "present", "add", "remove", "false positives", "lost"];
    table("", heads, lines.collect())
}

/// What belongs to this project, or is no filter.
pub(crate) fn is_ours(row: &str) -> bool {
    let ours = ["blocked-bloom", "sharded Ribbon", "RocksDB's Ribbon", "memory-bound"];
    ours.iter().any(|ours| row.starts_with(ours))
}

//! The blocks of the pages by name: which figures each shows, and how. Rows and columns that were
//! not measured are missing; a table without any is an error.

use benches::results::Line;
use benches::split_block::BOUNDS;

use crate::cells::{bold, digits, italic, percent, table};
use crate::names::{
    BASELINE, CALLS, CLASSICAL, ENGINE_ROWS, ENGINE_TABLES, FILE_METHODS, FILES, FILTERS, FIRST,
    FOLLOWED, HASHING, MEMTABLES, OURS, PLANES, PLANES_METHODS, RIBBON_BUILT, RIBBON_LOOKUPS,
    SHORT, SHOWN_KEYS, SPLIT, SPLIT_SIZES, is_ours,
};
use crate::store::Store;
use crate::wins::wins;

/// The text of the block of this name.
pub(crate) fn text(store: &Store, name: &str) -> Result<String, String> {
    match name {
        "results" => {
            let mut rows = baseline(store, &SHOWN_KEYS);
            let is_detail =
                |name: &str| name.contains("small pages") || name.starts_with("the same");
            let all = comparison_rows(store, "hashes, absent, 1024 a call", &SHOWN_KEYS)?;
            rows.extend(all.into_iter().filter(|row| !is_detail(&row[0])));
            table("", SHOWN_KEYS.into_iter().chain(["false positives"]), rows)
        }
        "beside" => comparison(store),
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
            let place = |row: usize, column: usize| (title(row), PLANES_METHODS[column].1);
            let (heads, names) = (PLANES_METHODS.map(|way| way.0), PLANES.map(|row| row.0));
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
            let ways = FILE_METHODS.map(|way| way.0);
            let place =
                |row: usize, column: usize| (format!("files: {}", FILES[column].1), ways[row]);
            grid(store, "", &FILES.map(|column| column.0), &ways, place, |line| {
                let value = line.time.median;
                if value.fract() == 0.0 { format!("{value}") } else { digits(value) }
            })
        }
        "calls" => {
            let title = |row: usize| format!("calls: MultiGet, {}, 10000 keys", CALLS[row]);
            let ways = ["one by one", "2 a call", "3 a call", "4 a call", "6 a call", "8 a call"];
            let ways: Vec<&str> = ways.into_iter().chain(["16 a call"]).collect();
            let place = |row: usize, column: usize| (title(row), ways[column]);
            grid(store, "", &ways, &CALLS, place, |line| match line.name == ways[0] {
                true => digits(line.time.median),
                false => format!("{:.2}", line.ratio),
            })
        }
        "memtables" => {
            let sizes = ["10000", "1000000", "10000000"];
            let place = |row: usize, column: usize| {
                let (keys, way) = (MEMTABLES[row].1, MEMTABLES[row].2);
                (format!("calls: memtable, {keys}, {} keys", sizes[column]), way)
            };
            let names = MEMTABLES.map(|row| row.0);
            grid(store, "", &["10 k", "1 M", "10 M"], &names, place, |line| {
                digits(line.time.median)
            })
        }
        "split" => split(store),
        _ => Err(format!("no block {name}: benches/src/bin/figures/blocks.rs has their names")),
    }
}

/// Split-block filters compared with peers: ratios for absent and present keys, bold above the
/// bound.
fn split(store: &Store) -> Result<String, String> {
    let rows = SPLIT.map(|(name, bound, row)| {
        let bound = BOUNDS[bound];
        let cells = SPLIT_SIZES.map(|(size, bytes)| {
            let mixes = ["", ", miss", ", hit"].map(|mix| {
                let table = format!("split: {size}, {}{mix}", bound.method);
                let (table, _) = store.table(&table).ok()?;
                let time = |name| table.rows.iter().find(|line| line.name == name);
                let [ours, other] = [time(row)?, time(bound.peer)?].map(|line| line.time.median);
                let ratio = ours / other;
                Some(bold(
                    format!("{ratio:.2}"),
                    bound.limit(bytes).is_some_and(|most| ratio > most),
                ))
            });
            mixes.into_iter().flatten().collect::<Vec<_>>().join("/")
        });
        let large = bound.large.map_or_else(String::new, |most| format!("/{most}"));
        let most = format!("{}{large}", bound.cached);
        [name.to_owned(), most].into_iter().chain(cells).collect()
    });
    table("", ["at most"].into_iter().chain(SPLIT_SIZES.map(|size| size.0)), rows.into())
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

/// Rows of a table of the comparison for these columns, with false positives at ten bits; bold
/// where a row is faster than the first.
fn comparison_rows(store: &Store, of: &str, columns: &[&str]) -> Result<Vec<Vec<String>>, String> {
    let mut rows = Vec::new();
    let mut built = Vec::new();
    for (name, row, kind) in FILTERS {
        // The table of building times has one row per kind.
        let is_built = of == "building";
        if is_built && built.contains(&kind) {
            continue;
        }
        built.push(kind);
        let row = if is_built { kind } else { row };
        let rate = store.rate(kind, 10.0).ok();
        let version = store.peer(kind).map(|peer| peer.version.clone()).unwrap_or_default();
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

/// The table of all comparisons with other filters.
fn comparison(store: &Store) -> Result<String, String> {
    let mut rows = baseline(store, &SHOWN_KEYS);
    for (title, of) in [
        ("", "hashes, absent, 1024 a call"),
        ("32 a call", "hashes, absent, 32 a call"),
        ("16-byte keys, hashed, 1024 a call", "keys, absent, 1024 a call"),
        ("building from hashes", "building"),
    ] {
        let mut group = comparison_rows(store, of, &SHOWN_KEYS)?;
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
    table("absent keys, hashes given, 1024 a call", SHOWN_KEYS, rows)
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

/// Lookup and building times of Ribbon filters, compared with the core's filter.
fn ribbon(store: &Store) -> Result<String, String> {
    let mut rows = Vec::new();
    for (title, of, lines) in [
        ("", "hashes, absent, 1024 a call", &RIBBON_LOOKUPS[..]),
        (", built", "building", &RIBBON_BUILT[..]),
    ] {
        for &(name, row, first) in lines {
            let cells = SHOWN_KEYS.iter().map(|size| {
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
    table("", SHOWN_KEYS, rows)
}

fn removable(store: &Store) -> Result<String, String> {
    let rows = store.removables()?;
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

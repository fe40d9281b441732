//! The cases in which others win.

use benches::results::{Removable, Section, distinct};

use crate::blocks::{ENGINE_TABLES, OURS, OURS_ONE, ROCKSDB, is_ours, removables, table};
use crate::store::Store;

/// Rows of others that look up one key at a time.
const SINGLE: [&str; 6] =
    [ROCKSDB, "sbbf-rs-safe", "parquet Sbbf †", "fastbloom", "bloomfilter †", "xorf BinaryFuse8"];

/// A case in which others may win: what it is, and where; the figure of this project, and those of
/// others.
struct Contest {
    case: String,
    place: String,
    ours: f64,
    others: Vec<(String, f64)>,
}

impl Contest {
    /// The best of the others, if it is ahead, and where by which ratio.
    fn best(&self) -> Option<(String, String)> {
        let best = self.others.iter().min_by(|one, other| one.1.total_cmp(&other.1));
        let (name, value) = best.filter(|best| best.1 / self.ours < 0.995)?;
        let name = name.replace("split blocks, prefetched 128 keys ahead", "split blocks");
        let name = name.replace("32-byte split blocks", "split blocks").replace(", AVX2", "");
        let name = name.replace(", batches of 32", "").replace(", one key", "");
        Some((name, format!("{} **{:.2}**", self.place, value / self.ours)))
    }
}

/// Every case of the comparison and of an engine's tables in which another filter is faster, or has
/// fewer false positives in no more memory.
pub(crate) fn wins(store: &Store) -> Result<String, String> {
    let report = store.comparison()?;
    let mut contests = Vec::new();
    for place in distinct(report.times.iter().map(|time| time.place())) {
        let times: Vec<_> = report.times.iter().filter(|time| time.place() == place).collect();
        let others = times.iter().filter(|time| !is_ours(&time.row));
        let others: Vec<_> = others.map(|time| (time.row.clone(), time.ns.median)).collect();
        let (case, place) = place;
        let time = |row: &str| times.iter().find(|time| time.row == row).map(|time| time.ns.median);
        let is_single = |row: &str| SINGLE.contains(&row);
        let ours = [time(OURS), time(OURS_ONE)].into_iter().flatten().reduce(f64::min);
        let ours = ours.or_else(|| time("blocked-bloom, hashes"));
        // With AVX2 alone is another CPU.
        let is_shown = times[0].mix == "absent" && times[0].section != Section::Batch;
        let avx2 = time("blocked-bloom, AVX2").filter(|_| is_shown);
        let is_loop = matches!(times[0].section, Section::Query | Section::Keys);
        let one = time(OURS_ONE).filter(|_| is_loop && is_shown);
        // Ribbon filters need all keys at once, as these do.
        let is_static = |row: &str| row.starts_with("pleat") || row.starts_with("xorf");
        let ribbon = time("sharded Ribbon");
        let statics = others.iter().filter(|(row, _)| is_static(row)).cloned().collect();
        let singles = others.iter().filter(|(row, _)| is_single(row)).cloned().collect();
        for (ours, on, others) in [
            (ours, "", others.clone()),
            (avx2, "with AVX2 alone: ", others),
            (one, "keys one by one: ", singles),
            (ribbon, "Ribbon filters: ", statics),
        ] {
            let Some(ours) = ours else { continue };
            // One by one is the same in calls of any number.
            let case = match on.starts_with("keys one") {
                true => case.replace(", 1024 a call", ""),
                false => case.clone(),
            };
            let (case, place) = (format!("{on}{case}"), place.clone());
            contests.push(Contest { case, place, ours, others });
        }
    }
    for (title, head) in ENGINE_TABLES {
        let Ok((table, _)) = store.table(&format!("engine: {title} keys a table")) else {
            continue;
        };
        let time = |name: &str| {
            table.rows.iter().find(|line| line.name == name).map(|line| line.time.median)
        };
        let ours = ["one by one", "prefetch first"].into_iter().filter_map(time);
        let Some(ours) = ours.reduce(f64::min) else { continue };
        let other = |name: &str| time(name).map(|ns| (name.to_owned(), ns));
        let others =
            ["RocksDB's loop", "lsm-tree's filter"].into_iter().filter_map(other).collect();
        let (case, place) = ("one key in 20 tables".to_owned(), head.to_owned());
        contests.push(Contest { case, place, ours, others });
    }
    let mut sizes = distinct(report.rates.iter().map(|rate| rate.bits_wanted));
    sizes.sort_by(f64::total_cmp);
    for bits in sizes {
        let Ok(ours) = store.rate(OURS, bits) else { continue };
        let is_smaller = |bits: f64| bits <= ours.bits_per_key * 1.005;
        let others = report.rates.iter().filter(|rate| {
            // What has one size stands with the first bits only.
            let is_fixed = report.rates.iter().filter(|other| other.id == rate.id).count() == 1;
            let is_beside = rate.bits_wanted == bits || is_fixed;
            !is_ours(&rate.id) && is_beside && is_smaller(rate.bits_per_key)
        });
        let others = others.map(|rate| (rate.id.clone(), rate.percent())).collect();
        let case = "false positives, in so many bits per key or fewer".to_owned();
        let place = bits.to_string();
        contests.push(Contest { case, place, ours: ours.percent(), others });
    }
    let rows = removables(store)?;
    if let Some(ours) = rows.iter().find(|row| row.name.starts_with("blocked-bloom-removable")) {
        let others =
            || rows.iter().filter(|row| !is_ours(&row.name) && !row.name.starts_with("Bloom"));
        type Get = fn(&Removable) -> Option<f64>;
        let facts: [(&str, Get); 7] = [
            ("bits per key", |row| Some(row.bits_per_key)),
            ("absent keys", |row| Some(row.times[0]?.median)),
            ("present keys", |row| Some(row.times[1]?.median)),
            ("adding", |row| Some(row.times[2]?.median)),
            ("removing", |row| Some(row.times[3]?.median)),
            ("false positives", |row| Some(row.passed as f64)),
            ("keys lost by removing others", |row| Some(row.lost? as f64)),
        ];
        for (what, get) in facts {
            let Some(ours) = get(ours) else { continue };
            let others = others().filter_map(|row| Some((row.name.clone(), get(row)?))).collect();
            let case = "filters that keys can be removed from".to_owned();
            contests.push(Contest { case, place: what.to_owned(), ours, others });
        }
    }
    let rows = distinct(contests.iter().map(|contest| &contest.case)).into_iter().map(|case| {
        let of_case = contests.iter().filter(|contest| contest.case == *case);
        let best: Vec<(String, String)> = of_case.filter_map(Contest::best).collect();
        let names = distinct(best.iter().map(|(name, _)| name)).into_iter();
        let places = names.map(|name| {
            let places = best.iter().filter(|(of, _)| of == name).map(|(_, place)| &**place);
            format!("{name}: {}", places.collect::<Vec<_>>().join(", "))
        });
        vec![case.clone(), places.collect::<Vec<_>>().join("; ")]
    });
    let heads = ["the best of the others: where, and its **ratio** to ours"];
    // The second column is of text too.
    Ok(table("case", heads, rows.collect())?.replace("|---:|", "|---|"))
}

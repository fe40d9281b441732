//! The cases in which others win.

use benches::results::{Removable, Section, distinct};

use crate::cells::table;
use crate::names::{
    AVX2, CLASSICAL, ENGINE, ENGINE_TABLES, FASTEST, GROUPS, OURS, OURS_ONE, PROJECT_FILTERS,
    RATES, RIBBON, SINGLE, SINGLE_KEYS, is_ours,
};
use crate::store::Store;

/// A comparison that others may win: its group, case and place, the figure of this project, and
/// the figures of others.
struct Contest {
    group: &'static str,
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

/// Every case of the comparison, of an engine's tables, and of filters of this project's other
/// packages in which another filter is faster, or has fewer false positives in no more memory.
pub(crate) fn wins(store: &Store) -> Result<String, String> {
    let mut contests = compared(store)?;
    contests.extend(engine(store));
    contests.extend(package_contests(store)?);
    contests.extend(rates(store)?);
    let mut rows = Vec::new();
    for group in GROUPS {
        let of_group = || contests.iter().filter(|contest| contest.group == group);
        let mut lines = Vec::new();
        for case in distinct(of_group().map(|contest| &contest.case)) {
            let of_case = of_group().filter(|contest| contest.case == *case);
            let best: Vec<(String, String)> = of_case.filter_map(Contest::best).collect();
            let names = distinct(best.iter().map(|(name, _)| name)).into_iter();
            let places = names.map(|name| {
                let places = best.iter().filter(|(of, _)| of == name).map(|(_, place)| &**place);
                format!("{name}: {}", places.collect::<Vec<_>>().join(", "))
            });
            lines.push(vec![case.clone(), places.collect::<Vec<_>>().join("; ")]);
        }
        lines.retain(|line| !line[1].is_empty());
        if let Some(first) = lines.first_mut() {
            first[0] = format!("**{group}:** {}", first[0]);
        }
        rows.extend(lines);
    }
    let heads = ["the best of the others: where, and its **ratio** to ours"];
    // The second column contains text too.
    Ok(table("case", heads, rows)?.replace("|---:|", "|---|"))
}

/// Times of the comparison: the fastest kernel, AVX2, one key a call, and Ribbon filters against
/// other filters that need all keys at once.
fn compared(store: &Store) -> Result<Vec<Contest>, String> {
    let report = store.comparison()?;
    let mut contests = Vec::new();
    for place in distinct(report.times.iter().map(|time| time.place())) {
        let times: Vec<_> = report.times.iter().filter(|time| time.place() == place).collect();
        let others = times.iter().filter(|time| !is_ours(&time.row));
        let others: Vec<_> = others.map(|time| (time.row.clone(), time.ns.median)).collect();
        let (case, place) = place;
        let time = |row: &str| times.iter().find(|time| time.row == row).map(|time| time.ns.median);
        let better = |rows: [&str; 2]| rows.into_iter().filter_map(time).reduce(f64::min);
        let is_loop = matches!(times[0].section, Section::Query | Section::Keys);
        let ours = better([OURS, OURS_ONE]).or_else(|| time("blocked-bloom, hashes"));
        let avx2 = better(["blocked-bloom, AVX2", "blocked-bloom, AVX2, one key a call"]);
        let one = time(OURS_ONE).filter(|_| is_loop);
        let is_single = |row: &str| SINGLE.contains(&row);
        // Ribbon filters need all keys at once, as these do.
        let is_static = |row: &str| row.starts_with("pleat") || row.starts_with("xorf");
        let ribbon = time("sharded Ribbon");
        let statics = others.iter().filter(|(row, _)| is_static(row)).cloned().collect();
        let singles = others.iter().filter(|(row, _)| is_single(row)).cloned().collect();
        for (group, ours, others) in [
            (FASTEST, ours, others.clone()),
            (AVX2, avx2, others),
            (SINGLE_KEYS, one, singles),
            (RIBBON, ribbon, statics),
        ] {
            let Some(ours) = ours else { continue };
            // One by one is the same in calls of any number.
            let one_by_one = case.replace(", 1024 a call", "");
            let case = if group == SINGLE_KEYS { one_by_one } else { case.clone() };
            contests.push(Contest { group, case, place: place.clone(), ours, others });
        }
    }
    Ok(contests)
}

/// One key in the filters of many tables.
fn engine(store: &Store) -> Vec<Contest> {
    let tables = ENGINE_TABLES.into_iter().filter_map(|(title, head)| {
        let (table, _) = store.table(&format!("engine: {title}")).ok()?;
        let time = |name: &str| {
            table.rows.iter().find(|line| line.name == name).map(|line| line.time.median)
        };
        let ours = ["one by one", "prefetch first"].into_iter().filter_map(time);
        let other = |name: &str| time(name).map(|ns| (name.to_owned(), ns));
        let others = ["RocksDB's loop", "lsm-tree's filter"].into_iter().filter_map(other);
        Some(Contest {
            group: ENGINE,
            case: "one absent key".to_owned(),
            place: head.to_owned(),
            ours: ours.reduce(f64::min)?,
            others: others.collect(),
        })
    });
    tables.collect()
}

/// Classical filters against their systems' loops, planes against rows, and filters that support
/// removal.
fn package_contests(store: &Store) -> Result<Vec<Contest>, String> {
    let mut contests = Vec::new();
    for (system, name, _) in CLASSICAL {
        for (keys, mix) in ["100k", "80M"].into_iter().flat_map(|k| [(k, "absent"), (k, "present")])
        {
            let Ok((table, _)) = store.table(&format!("classical: {name}/{keys}/{mix}")) else {
                continue;
            };
            let time = |name: &str| {
                table.rows.iter().find(|line| line.name == name).map(|line| line.time.median)
            };
            let ours = ["key", "batch"].into_iter().filter_map(time).reduce(f64::min);
            let Some((ours, naive)) = ours.zip(time("naive")) else { continue };
            contests.push(Contest {
                group: PROJECT_FILTERS,
                case: format!("classical filters, {mix}"),
                place: keys.replace('k', " k").replace('M', " M"),
                ours,
                others: vec![(
                    format!("{}'s loop", system.split(',').next().unwrap_or(system)),
                    naive,
                )],
            });
        }
    }
    if let Ok((table, _)) = store.table("planes: appending 2000000 rows, ns a row") {
        let time = |name: &str| table.rows.iter().find(|line| line.name == name);
        if let Some((ours, rows)) = time("planes").zip(time("row-major")) {
            contests.push(Contest {
                group: PROJECT_FILTERS,
                case: "planes".to_owned(),
                place: "appending".to_owned(),
                ours: ours.time.median,
                others: vec![("row after row".to_owned(), rows.time.median)],
            });
        }
    }
    let rows = store.removables()?;
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
            contests.push(Contest {
                group: PROJECT_FILTERS,
                case,
                place: what.to_owned(),
                ours,
                others,
            });
        }
    }
    Ok(contests)
}

/// False positives in so many bits per key or fewer.
fn rates(store: &Store) -> Result<Vec<Contest>, String> {
    let report = store.comparison()?;
    let mut sizes = distinct(report.rates.iter().map(|rate| rate.bits_wanted));
    sizes.sort_by(f64::total_cmp);
    let contests = sizes.into_iter().filter_map(|bits| {
        let ours = store.rate(OURS, bits).ok()?;
        let is_smaller = |bits: f64| bits <= ours.bits_per_key * 1.005;
        let others = report.rates.iter().filter(|rate| {
            // A filter with a single size is listed with the first bits only.
            let is_fixed = report.rates.iter().filter(|other| other.id == rate.id).count() == 1;
            let is_beside = rate.bits_wanted == bits || is_fixed;
            !is_ours(&rate.id) && is_beside && is_smaller(rate.bits_per_key)
        });
        Some(Contest {
            group: RATES,
            case: "in so many bits per key or fewer".to_owned(),
            place: bits.to_string(),
            ours: ours.percent(),
            others: others.map(|rate| (rate.id.clone(), rate.percent())).collect(),
        })
    });
    Ok(contests.collect())
}

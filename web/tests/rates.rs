//! The rates that the page shows, beside those of filters that are built and looked up in.

use blocked_bloom::{Filter, FilterOptions, Sizing};
use blocked_bloom_page::{Input, sizes};
use blocked_bloom_removable::RemovableOptions;
use blocked_bloom_split::SplitBlockFilter;
use serde_json::Value;

/// Of each filter, and how many filters: their rates differ.
const LOOKUPS: u64 = 1 << 19;
const FILTERS: u64 = 32;

fn table(keys: u64, by: &str, figure: &str) -> Value {
    let form = format!("keys\0{keys}\0by\0{by}\0{by}\0{figure}");
    let table = sizes::table(&Input::new(form.as_bytes())).unwrap();
    serde_json::from_str(&table.to_string()).unwrap()
}

fn row(keys: u64, by: &str, figure: &str, kind: &str) -> Value {
    let table = table(keys, by, figure);
    table["rows"].as_array().unwrap().iter().find(|row| row["kind"] == kind).unwrap().clone()
}

fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// `passes` makes the filter of a number, and says whether it lets a hash pass: that of one that
/// was not put into it.
fn agrees<F: Fn(u64) -> bool>(
    name: &str,
    row: &Value,
    keys: u64,
    filter: impl Fn(&dyn Fn(u64) -> u64) -> F,
) {
    let shown = row["rate"].as_f64().unwrap();
    let rates: Vec<f64> = (0..FILTERS)
        .map(|number| {
            let hash = |index: u64| mixed(mixed(number) ^ index);
            let contains = filter(&hash);
            let passed = (0..LOOKUPS).filter(|lookup| contains(hash(keys + 1 + lookup))).count();
            passed as f64 / LOOKUPS as f64
        })
        .collect();
    let filters = FILTERS as f64;
    let mean = rates.iter().sum::<f64>() / filters;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (filters - 1.0);
    let error = (variance / filters).sqrt();
    println!(
        "{name}: {shown:.6} shown, {mean:.6} counted, {:.2} standard errors",
        (mean - shown) / error
    );
    assert!(
        (mean - shown).abs() <= 2.0 * error,
        "{name}: {shown} shown, {mean} counted, of {error}"
    );
}

#[test]
fn blocked_filters_pass_as_many_as_is_shown() {
    for (keys, bits) in [(1_000_000, "10"), (1_000_000, "16"), (300_000, "5")] {
        let sizing = Sizing::BitsPerKey(bits.parse().unwrap());
        agrees(
            &format!("blocked, {bits} bits"),
            &row(keys, "bits", bits, "blocked"),
            keys,
            |hash| {
                let mut filter = FilterOptions::new(sizing).empty_filter(keys).unwrap();
                for index in 0..keys {
                    filter.insert_hash(hash(index)).unwrap();
                }
                move |hash| filter.contains_hash(hash)
            },
        );
    }
}

#[test]
fn split_block_filters_pass_as_many_as_is_shown() {
    for (keys, bytes) in [(1_000_000, "1 MiB"), (1_000_000, "2 MiB"), (300_000, "256 KiB")] {
        let row = row(keys, "bytes", bytes, "split-block");
        let blocks = row["bytes"].as_u64().unwrap() as u32 / 32;
        agrees(&format!("split block, {bytes}"), &row, keys, |hash| {
            let mut filter = SplitBlockFilter::with_blocks(blocks).unwrap();
            for index in 0..keys {
                filter.insert_hash(hash(index));
            }
            move |hash| filter.contains_hash(hash)
        });
    }
}

/// Bits that are picked independently of each other, as the formula has it.
#[test]
fn classical_filters_pass_as_many_as_is_shown() {
    for (keys, bits) in [(1_000_000, "10"), (1_000_000, "16"), (300_000, "5")] {
        let row = row(keys, "bits", bits, "classical");
        let (words, probes) = (row["bytes"].as_u64().unwrap() / 8, row["probes"].as_u64().unwrap());
        agrees(&format!("classical, {bits} bits"), &row, keys, |hash| {
            let mut set = vec![0_u64; words as usize];
            let bit = move |hash: u64, probe: u64| {
                ((u128::from(mixed(hash ^ mixed(probe + 1))) * u128::from(64 * words)) >> 64)
                    as usize
            };
            for index in 0..keys {
                (0..probes)
                    .map(|probe| bit(hash(index), probe))
                    .for_each(|bit| set[bit / 64] |= 1 << (bit % 64));
            }
            move |hash| {
                (0..probes)
                    .map(|probe| bit(hash, probe))
                    .all(|bit| (set[bit / 64] >> (bit % 64)) & 1 == 1)
            }
        });
    }
}

#[test]
fn ribbon_filters_pass_as_many_as_is_shown_and_are_as_large() {
    for (by, figure) in [("rate", "0.01"), ("rate", "0.003"), ("bits", "10")] {
        let keys = 1_000_000;
        let row = row(keys, by, figure, "ribbon");
        agrees(&format!("Ribbon, {figure} {by}"), &row, keys, |hash| {
            let mut builder =
                blocked_bloom_ribbon::RibbonOptions::new(row["rate"].as_f64().unwrap()).builder();
            (0..keys).for_each(|index| builder.insert_hash(hash(index)));
            let filter = builder.finish().unwrap();
            let (bytes, shown) = (filter.as_bytes().len() as f64, row["bytes"].as_f64().unwrap());
            assert!((bytes / shown - 1.0).abs() < 0.005, "{bytes} bytes, {shown} shown");
            move |hash| filter.contains_hash(hash)
        });
    }
}

#[test]
fn filters_of_tags_pass_as_many_as_is_shown_and_are_as_large() {
    for keys in [30, 100, 1_000_000] {
        let row = row(keys, "bits", "10", "tags");
        let empty = RemovableOptions::new(keys).empty_filter().unwrap();
        assert_eq!(row["bytes"], empty.to_bytes().len(), "{keys} keys");
        if keys < 1_000_000 {
            continue;
        }
        agrees("tags", &row, keys, |hash| {
            let mut filter = RemovableOptions::new(keys).empty_filter().unwrap();
            (0..keys).for_each(|index| filter.insert_hash(hash(index)).map(drop).unwrap());
            move |hash| filter.contains_hash(hash)
        });
    }
}

/// What Parquet's writers make of a rate: a power of two, the size that `SplitBlockFilter::new`
/// has.
#[test]
fn writers_of_parquet_files_round_to_a_power_of_two() {
    for (keys, rate) in [(1_000_000, 0.01), (12_345, 0.001), (3, 0.5)] {
        let table = table(keys, "rate", &rate.to_string());
        let blocks = SplitBlockFilter::new(keys, rate).unwrap().blocks().len();
        assert_eq!(table["written"]["bytes"], 32 * blocks);
    }
}

#[test]
fn the_smallest_filters_of_a_rate_have_it() {
    for keys in [1_u64, 100, 123_456_789] {
        for rate in ["0.5", "0.01", "1e-5"] {
            for kind in ["blocked", "classical", "split-block"] {
                let row = row(keys, "rate", rate, kind);
                assert!(
                    row["rate"].as_f64().unwrap() <= rate.parse().unwrap(),
                    "{keys} {rate} {row}"
                );
            }
        }
    }
}

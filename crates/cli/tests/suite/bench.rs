//! `blocked-bloom bench`, run as a user runs it: which rows there are, and that their figures
//! agree.

use benches::split_block::SplitBlocks;
use benches::workload::Mix;
use blocked_bloom::{Bitmask, Filter as _, Kernel};
use blocked_bloom_split::SplitBlockFilter;
use serde_json::Value;

use crate::tool::{Dir, text};

#[test]
fn bench_prints_one_object_per_measurement() {
    let printed = Dir::new().ok("bench --json --keys 1000,2K --rounds 1 --batch 64,100");
    let rows: Vec<Value> = printed
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    assert_eq!(rows.len(), printed.iter().filter(|&&byte| byte == b'\n').count());
    let times = ["ns_per_key", "min_ns_per_key"];
    for row in &rows {
        assert!(times.iter().all(|&time| row[time].as_f64().unwrap() > 0.0), "{row}");
        assert!(row["min_ns_per_key"].as_f64() <= row["ns_per_key"].as_f64(), "{row}");
        assert_eq!(row["probes"], 6);
        if let Some(baseline) = row["baseline_ns_per_key"].as_f64() {
            let ratio = row["ns_per_key"].as_f64().unwrap() / baseline;
            assert!((row["ratio"].as_f64().unwrap() / ratio - 1.0).abs() < 1e-9, "{row}");
        }
    }
    let count = |op: &str, mix: &str, kernel: &str, batch: u64| {
        let is_it = |row: &&Value| {
            (&row["op"], &row["mix"], &row["kernel"], &row["batch"])
                == (&op.into(), &mix.into(), &kernel.into(), &batch.into())
        };
        rows.iter().filter(is_it).map(|row| row["keys"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let all = || Kernel::supported().map(Kernel::name).chain(["baseline", "baseline_ahead"]);
    for kernel in all() {
        for mix in ["absent", "half", "present"] {
            assert_eq!(count("contains_hash", mix, kernel, 1), [1000, 2000], "{kernel}");
            assert_eq!(count("contains_in_loop", mix, kernel, 1), [1000, 2000], "{kernel}");
        }
    }
    assert_eq!(count("contains_hash", "half", "harness", 1), [1000, 2000]);
    for kernel in all().chain(["one_by_one"]) {
        for mix in ["absent", "half", "present"] {
            assert_eq!(count("contains_hashes", mix, kernel, 64), [1000, 2000], "{kernel}");
        }
        assert_eq!(count("insert_hashes", "absent", kernel, 100), [1000, 2000], "{kernel}");
    }
    let default = Kernel::default().name();
    assert!(rows.iter().all(|row| row["op"] != "hashes_to_filter"), "not by default");
    assert_eq!(count("contains_batch", "absent", default, 100), [1000, 2000]);
}

#[test]
fn bench_measures_each_op_and_explains_itself() {
    let dir = Dir::new();
    let table = text(dir.ok("bench --keys 1000 --rounds 1 --op insert --probes 9"));
    assert!(table.contains("contains_in_loop: the same lookups"), "{table}");
    assert!(table.contains("1000 keys, 1.25 KiB, 10.24 bits/key, 9 probes, 1 rounds"), "{table}");
    assert!(table.contains("insert_hashes") && !table.contains("contains_hashes "), "{table}");
    let built = text(dir.ok("bench --json --keys 1000 --rounds 1 --op build"));
    for op in ["hashes_to_filter", "and_verified", "keys_to_filter", "known_count"] {
        assert!(built.contains(&format!("\"op\":\"{op}\"")), "{built}");
    }
    let recorded = text(dir.ok("bench --json --keys 1000 --rounds 1 --op metrics,split"));
    for op in ["not_recorded", "record", "not_counted", "record_batch", "split_hashes"] {
        assert!(recorded.contains(&format!("\"op\":\"{op}\"")), "{recorded}");
    }
    for (args, expected) in [
        ("bench --bits-per-key 0 --keys 10", "0 bits per key mean no filter"),
        ("bench --bits-per-key 101 --keys 10", "101"),
        ("bench --op nothing", "query, single, keys, insert, "),
        ("bench --batch 0", "1..=1048576"),
    ] {
        let output = dir.run(args);
        assert_eq!(output.status.code(), Some(2), "{args}");
        let message = text(output.stderr);
        assert!(message.contains(expected), "{args}: {message}");
    }
}

/// The kernel that the library takes, in the largest filter, beside the memory-bound baseline.
#[test]
fn bench_quick_ends_with_a_summary() {
    let dir = Dir::new();
    let keys = "--keys 1000,2000 --rounds 1 --batch 64,100";
    let printed = text(dir.ok(&format!("bench --quick {keys}")));
    let (table, summary) = printed.rsplit_once("\n\n").unwrap();
    let summary: Vec<&str> = summary.lines().collect();
    assert_eq!(summary.len(), 6, "{printed}");
    let kernel = Kernel::default().name();
    for part in ["2000 keys", kernel, "ns/key", "memory-bound baseline"] {
        assert!(summary[0].contains(part), "{}", summary[0]);
    }
    let starts = [
        "absent keys, 64 a call ",
        "present keys, 64 a call ",
        "absent keys, one a call ",
        "absent keys of 16 bytes, hashed, 64 a call ",
        "keys inserted, 64 a call ",
    ];
    for (line, start) in summary[1..].iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
        let mut figures = line[start.len()..].split_whitespace();
        let mut figure = || figures.next().unwrap().parse::<f64>().unwrap();
        let (time, ratio, baseline) = (figure(), figure(), figure());
        assert!((time / baseline / ratio - 1.0).abs() < 0.2, "{line}");
        // They are figures of the table.
        assert!(table.contains(&format!(" {time:.2} (")), "{line}\n{table}");
    }
    // What was not measured is left out, and JSON has objects only.
    let some = text(dir.ok(&format!("bench --quick {keys} --op insert")));
    let (_, summary) = some.rsplit_once("\n\n").unwrap();
    assert_eq!(summary.lines().count(), 2, "{some}");
    assert!(!text(dir.ok(&format!("bench {keys} --op insert"))).contains("summary"));
    let json = text(dir.ok(&format!("bench --quick {keys} --op insert --json")));
    assert!(json.lines().all(|line| line.starts_with('{')), "{json}");
}

/// The loop that others are compared with has the same filter as the library, and counts the same
/// hits.
#[test]
fn the_split_block_loop_agrees_with_the_library() {
    let keys = &Mix::Present.lookups(1_000, 2_000);
    let mut blocks = SplitBlocks::new(20).unwrap();
    blocks.insert_hashes(keys);
    let filter = SplitBlockFilter::from_bitset(blocks.bitset()).unwrap();
    let mut hits = Bitmask::new();
    for mix in Mix::ALL {
        let hashes = mix.lookups(1_000, 10_000);
        filter.contains_hashes(&hashes, &mut hits);
        for ahead in [false, true] {
            let counted = blocks.count_hits(&hashes, ahead);
            assert!(counted.is_none_or(|count| count == hits.count_hits()), "{mix:?}");
        }
    }
    filter.contains_hashes(keys, &mut hits);
    assert_eq!(hits.count_misses(), 0);
}

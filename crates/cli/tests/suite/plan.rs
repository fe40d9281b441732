//! `blocked-bloom plan`, run as a user runs it: tables, figures, and errors.

use std::process::Output;

use blocked_bloom::Sizing;
use serde_json::Value;

use crate::tool::{Dir, assert_parts, stderr, text};

fn run(args: &str) -> Output {
    Dir::new().run(&format!("plan {args}"))
}

#[test]
fn ribbon_is_planned_for_the_level_of_most_keys() {
    let table = ok("--levels 100k,1M,100M --budget 100MiB --ribbon-query-cost 0.0032");
    let rows: Vec<Vec<&str>> =
        table.lines().skip(1).take(3).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[2][..3], ["2", "100000000", "ribbon"], "{table}");
    let json = ok("--levels 100M --budget 100MiB --ribbon-query-cost 0.0032 --json");
    assert!(json.contains("\"ribbon\""));
    let failed = run("--levels 1M --budget 1MiB --ribbon-query-cost=-1");
    assert_eq!(failed.status.code(), Some(2));
}

/// A budget that is more than enough for the numbers of bits that kinds are chosen among.
#[test]
fn a_plan_of_kinds_costs_no_more_than_bloom_alone() {
    for budget in ["1M", "50MiB", "100MiB", "170MiB", "200MiB", "300MiB", "1GiB"] {
        let args = format!("--levels 1M,10M,100M --budget {budget} --ribbon-query-cost 0.0032");
        let plan: serde_json::Value = serde_json::from_str(&ok(&format!("{args} --json"))).unwrap();
        let cost = |plan: &serde_json::Value| plan["expected_cost"].as_f64().unwrap();
        assert!(cost(&plan) <= cost(&plan["bloom_only"]), "{budget}: {plan}");
        let levels = plan["levels"].as_array().unwrap();
        let sum =
            |name: &str| levels.iter().map(|level| level[name].as_f64().unwrap()).sum::<f64>();
        assert!((sum("expected_cost") / cost(&plan) - 1.0).abs() < 1e-6, "{budget}: {plan}");
        assert_eq!(sum("stored_bytes"), plan["bytes"].as_f64().unwrap());
        let table = ok(&args);
        let rows: Vec<&str> = table.lines().filter(|line| line.contains(" all ")).collect();
        let [found, bloom] = rows[..] else { panic!("{table}") };
        let last = |row: &str| row.split_whitespace().last().unwrap().parse::<f64>().unwrap();
        assert!(last(found) <= last(bloom), "{table}");
    }
}

fn ok(args: &str) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    text(output.stdout)
}

#[test]
fn a_plan_is_printed_beside_the_uniform_one() {
    let text = ok("--levels 90k,900k,9M,90M,900M --budget 1GiB --bits-per-key 10");
    let row = |start: &str| -> Vec<&str> {
        let line = text.lines().find(|line| line.trim_start().starts_with(start)).expect(start);
        line.split_whitespace().collect()
    };
    assert_eq!(row("4 ")[..4], ["4", "900000000", "1", "8.00"], "{text}");
    assert_eq!(row("4 ")[6..], ["0.0233", "8.59", "0.0179", "10.00", "0.0097"], "{text}");
    for part in [
        "5 levels, 1073741824 bytes (1.00 GiB)",
        "0.0260 wasted reads per lookup",
        "0.0894 wasted reads per lookup; planning saves 0.0634 (71 %)",
        "1249987968 bytes (1.16 GiB), 0.0483 wasted reads per lookup; planning saves 0.0223 (46 %)",
    ] {
        assert!(text.contains(part), "no \"{part}\" in\n{text}");
    }
    let widths: Vec<usize> = text.lines().skip(2).take(6).map(str::len).collect();
    assert!(widths.iter().all(|&width| width == widths[0]), "{text}");
}

#[test]
fn json_has_the_same_figures_unrounded() {
    let args = "--levels 1Mx4/2:0.5,10M@0.75=25%,0,100M=99.99% --budget 20MB --json";
    let plan: Value = serde_json::from_str(&ok(&args.replace("MB", "M"))).unwrap();
    assert_eq!(plan["budget_bytes"], 20_000_000);
    let [planned, uniform] = &plan["plans"].as_array().unwrap()[..] else { panic!("{plan}") };
    assert_eq!((&planned["name"], &uniform["name"]), (&"planned".into(), &"uniform".into()));
    let reads = |plan: &Value| plan["expected_wasted_reads"].as_f64().unwrap();
    assert!(reads(planned) < reads(uniform));
    for plan in [planned, uniform] {
        let levels = plan["levels"].as_array().unwrap();
        let sum: f64 = levels.iter().map(reads).sum();
        assert!((sum - reads(plan)).abs() < 1e-12);
        let bytes: u64 = levels.iter().map(|level| level["stored_bytes"].as_u64().unwrap()).sum();
        assert!(bytes <= 20_000_000 && plan["stored_bytes"] == bytes);
    }
    let levels = planned["levels"].as_array().unwrap();
    assert_eq!((&levels[0]["runs"], &levels[0]["tables"]), (&4.into(), &2.into()));
    assert_eq!((&levels[0]["cost"], &levels[1]["lookups"]), (&0.5.into(), &0.75.into()));
    assert_eq!((&levels[1]["present"], &levels[1]["skipped"]), (&0.25.into(), &Value::Null));
    assert_eq!((&levels[2]["keys"], &levels[2]["skipped"]), (&0.into(), &"no keys".into()));
    assert_eq!(levels[3]["skipped"], "keys mostly present");
    assert_eq!(levels[3]["false_positive_rate"], 1.0);
}

#[test]
fn a_level_without_a_filter_says_why() {
    let text = ok("--levels 10k,100M --budget 20K");
    assert!(text.contains("no filter") && text.contains("would be saturated"), "{text}");
    assert!(ok("--levels 10k --budget 0").contains("1.0000 wasted reads per lookup"));
}

#[test]
fn rejects_contradictory_options() {
    for (args, part) in [
        ("--levels 1M", "--budget"),
        ("--budget 1GiB", "--levels"),
        ("--levels 1M --budget 1GiB --keys 5", "cannot be used with"),
        ("--levels 1M --budget 1GiB --fpr 1%", "cannot be used with"),
        ("--levels 1M --budget lots", "64KiB"),
        ("--levels 1M, --budget 1M", "keys \"\""),
        ("--levels many --budget 1M", "1_000_000"),
        ("--levels 1Mx0 --budget 1M", "1 to 4294967295"),
        ("--levels 1M=90%=80% --budget 1M", "twice"),
        ("--levels 1M@often --budget 1M", "lookups \"@often\""),
        ("--levels 1M --budget 1M --bits-per-key 101", "0 to 100"),
    ] {
        let output = run(args);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args}: {message}");
        assert!(message.contains(part), "{args}: {message}");
        assert!(output.stdout.is_empty());
    }
    let help = ok("--help");
    for part in ["xRUNS", "/TABLES", "@LOOKUPS", ":COST", "=PRESENT", "--levels 1M,10M,100M,1G"] {
        assert!(help.contains(part), "{help}");
    }
}

#[test]
fn plan_prints_an_aligned_table() {
    let dir = Dir::new();
    let table = text(dir.ok("plan --keys 1_000_000"));
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| !line.is_empty()).collect();
    assert_eq!(rows.len(), 9);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{table}");
    let row = rows.iter().find(|row| row.trim_start().starts_with("10.00")).unwrap();
    let params = Sizing::BitsPerKey(10.0).params(1_000_000).unwrap();
    let rate = params.false_positive_rate();
    let doubled = params.max_items(2.0 * rate).unwrap().to_string();
    let one_in = format!("{:.0}", 1.0 / rate);
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells, ["10.00", "6", "1250112", "1.19", "MiB", "0.966", "%", &one_in, &doubled]);
    assert_parts(&table, &["rate doubles at", "classical"]);
    assert!(!table.contains("partition"));
}

#[test]
fn plan_has_a_choice_for_each_size() {
    let dir = Dir::new();
    let args = "plan --keys 1M --json --bits-per-key 8,12 --fpr 1% --max-bytes 1MiB --probes 4";
    let plan: Value = serde_json::from_slice(&dir.ok(args)).unwrap();
    assert_eq!(plan["keys"], 1_000_000);
    let choices = plan["choices"].as_array().unwrap();
    let sizings = [
        Sizing::BitsPerKey(8.0),
        Sizing::BitsPerKey(12.0),
        Sizing::FalsePositiveRate(0.01),
        Sizing::MaxBytes(1 << 20),
    ];
    assert_eq!(choices.len(), sizings.len());
    for (choice, sizing) in choices.iter().zip(sizings) {
        let params = sizing.params(1_000_000).unwrap().with_probes(4).unwrap();
        let rate = params.false_positive_rate();
        assert_eq!(choice["sizing"], sizing.to_string());
        assert_eq!(choice["blocks"], params.blocks());
        assert_eq!(choice["probes"], 4);
        assert_eq!(choice["stored_bytes"], params.stored_bytes());
        assert_eq!(choice["false_positive_rate"], rate);
        assert_eq!(choice["one_in"], 1.0 / rate);
        assert_eq!(choice["keys_at_double_rate"], params.max_items(2.0 * rate).unwrap());
        assert_eq!(choice["partition_recommended"], false);
    }
}

#[test]
fn plan_warns_of_what_is_too_large() {
    let dir = Dir::new();
    let table = text(dir.ok("plan --keys 20G --bits-per-key 5,10"));
    let marked = table.lines().filter(|line| line.ends_with(" *")).count();
    assert_eq!(marked, 1, "{table}");
    assert_parts(&table, &["partition"]);
    // What is possible is printed, and the rest is an error.
    let output = dir.run("plan --keys 1G --fpr 1% --max-bytes 100 --bits-per-key 0");
    assert_eq!(output.status.code(), Some(2));
    assert_parts(&stderr(&output), &["100 bytes cannot hold a filter"]);
    assert_parts(&text(output.stdout), &["9.92", "no filter", "100.000 %"]);
    assert_parts(&dir.fails("plan --keys 1000G --bits-per-key 100"), &["partition"]);
}

#[test]
fn plan_without_arguments_explains_its_modes() {
    for args in ["", "--fpr 1%", "--json"] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert!(output.stdout.is_empty(), "{args}");
        let message = stderr(&output);
        assert!(message.starts_with("error: give --keys, or --levels and --budget\n"), "{message}");
        assert_parts(
            &message,
            &[
                "\n  blocked-bloom plan --keys 10M --fpr 1%\n",
                "one filter",
                "\n  blocked-bloom plan --levels 1M,10M,100M --budget 100MiB\n",
                "levels of an LSM tree",
                "blocked-bloom plan --help",
            ],
        );
    }
}

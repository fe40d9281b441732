//! The command-line tool and the filters of RocksDB and Cassandra: the answers that those systems
//! gave, the description of each file, and errors.

use std::fs;
use std::path::Path;

use blocked_bloom_formats::rocksdb::{FilterBlock, FilterBlockBuilder};
use serde_json::Value;

use crate::fixtures::{committed, external};
use crate::tool::{Dir, assert_parts, files, lines, stderr, text, words};

/// Keys in hexadecimal digits, each with what the real system answered.
fn answers(csv: &Path) -> Vec<(String, bool)> {
    let csv = fs::read_to_string(csv).unwrap();
    let row = |line: &str| {
        let mut cells = line.split(',');
        let (key, answer) = (cells.next().unwrap(), cells.nth(1).unwrap());
        (key.to_owned(), answer == "1")
    };
    csv.lines().skip(1).map(row).collect()
}

/// Looks keys in hexadecimal digits up with `query ARGS FILE`, and expects these answers.
#[track_caller]
fn assert_answers(dir: &Dir, query: &str, keys: &[(String, bool)]) {
    let lines: String = keys.iter().map(|(key, _)| format!("{key}\n")).collect();
    let expected = |wanted| -> String {
        let selected = keys.iter().filter(|(_, answer)| *answer == wanted);
        selected.map(|(key, _)| format!("{key}\n")).collect()
    };
    for (option, wanted) in [("", true), (" --absent", false)] {
        let output = dir.run_with(&format!("{query} --hex{option}"), &lines);
        let (found, expected) = (text(output.stdout.clone()), expected(wanted));
        assert!(found == expected, "{query}{option}: {}", stderr(&output));
        assert_eq!(output.status.code(), Some(i32::from(expected.is_empty())), "{query}{option}");
    }
}

#[test]
fn ssts_answer_as_rocksdb_does() {
    let dir = Dir::new();
    for file in files(&committed("rocksdb"), ".sst") {
        let keys = answers(&file.with_extension("csv"));
        assert_answers(&dir, &format!("query {}", file.display()), &keys);
        assert_eq!(dir.info(file.to_str().unwrap())["format"], "rocksdb-sst");
    }
}

#[test]
fn filter_blocks_answer_as_rocksdb_does() {
    let dir = Dir::new();
    let folder = committed("rocksdb/raw");
    let csv = fs::read_to_string(folder.join("raw_answers.csv")).unwrap();
    let mut detected = 0;
    for row in csv.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let [name, family, _, _, expected] = cells[..] else { panic!("{row}") };
        let file = folder.join(format!("{name}.filter"));
        let absent = fs::read_to_string(folder.join(format!("keys_{family}_absent.hex"))).unwrap();
        let ribbon = name.contains("ribbon");
        let keys: Vec<(String, bool)> = absent
            .lines()
            .zip(expected.bytes())
            .map(|(key, answer)| (key.to_owned(), answer == b'1'))
            .collect();
        let query = format!("query {}", file.display());
        if name.contains("_n0_") {
            assert_parts(&dir.fails(&format!("{query} --format rocksdb-block")), &["5 bytes"]);
            continue;
        }
        assert_answers(&dir, &format!("{query} --format rocksdb-block"), &keys);
        // Without the option, the same answers or none at all.
        match ribbon || name.contains("legacy") {
            true => assert_parts(&dir.fails(&query), &["not a recognised", "give --format"]),
            false => {
                assert_answers(&dir, &query, &keys);
                detected += 1;
            }
        }
    }
    assert!(detected >= 10);
}

#[test]
fn no_crafted_block_is_absent_where_rocksdb_says_maybe() {
    let dir = Dir::new();
    let folder = committed("rocksdb/crafted");
    let keys = fs::read_to_string(folder.join("keys.hex")).unwrap();
    let csv = fs::read_to_string(folder.join("answers.csv")).unwrap();
    for row in csv.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let keys: Vec<(String, bool)> = keys
            .lines()
            .zip(cells[2].bytes())
            .map(|(key, a)| (key.to_owned(), a == b'1'))
            .collect();
        let query = format!("query {}", folder.join(format!("{}.filter", cells[0])).display());
        let given = format!("{query} --format rocksdb-block");
        if cells[1] == "always_false" {
            assert_parts(&dir.fails(&given), &["a filter block of ", "truncated"]);
            dir.fails(&query);
            continue;
        }
        assert_answers(&dir, &given, &keys);
        if dir.run_with(&query, "").status.code() != Some(2) {
            assert_answers(&dir, &query, &keys);
        }
    }
}

#[test]
fn info_of_an_sst() {
    let dir = Dir::new();
    let folder = committed("rocksdb");
    let file = |name: &str| folder.join(name).display().to_string();
    let full = dir.info(&file("bloom_b10_n5000_str.sst"));
    for (field, value) in [
        ("format_version", Value::from(5)),
        ("checksum", "XXH3".into()),
        ("layout", "full".into()),
        ("filter_policy", "bloomfilter".into()),
        ("filter_entries", 5_000.into()),
        ("whole_keys", true.into()),
        ("prefix_extractor", Value::Null),
        ("comparator", "leveldb.BytewiseComparator".into()),
        ("range_deletions", 0.into()),
    ] {
        assert_eq!(full[field], value, "{field}");
    }
    let block = &full["filter_blocks"][0];
    assert_eq!((&block["kind"], &block["probes"]), (&"FastLocalBloom".into(), &6.into()));
    assert_eq!((&block["lines"], &block["line_bytes"]), (&98.into(), &64.into()));
    assert!((4_900..5_100).contains(&block["estimated_keys"].as_u64().unwrap()));
    let rate = block["estimated_false_positive_rate"].as_f64().unwrap();
    assert!((0.009..0.010_5).contains(&rate), "{rate}");
    let table = text(dir.ok(&format!("info {}", file("bloom_b10_n5000_str.sst"))));
    assert_parts(&table, &["rocksdb-sst, version 5", "98 of 64 bytes", "kernel here", "0.9"]);

    let parts = dir.info(&file("bloom_b10_n5000_partitioned.sst"));
    let blocks = parts["filter_blocks"].as_array().unwrap();
    let keys: u64 = blocks.iter().map(|block| block["estimated_keys"].as_u64().unwrap()).sum();
    assert!((4_900..5_100).contains(&keys), "{keys}");
    let table = text(dir.ok(&format!("info {}", file("bloom_b10_n5000_partitioned.sst"))));
    assert_eq!(
        table.lines().filter(|line| line.starts_with("FastLocalBloom")).count(),
        blocks.len()
    );

    let legacy = &dir.info(&file("legacy_b10_n2000_fv4.sst"))["filter_blocks"][0];
    assert_eq!((&legacy["kind"], &legacy["lines"]), (&"LegacyBloom".into(), &41.into()));
    assert!((1_800..2_100).contains(&legacy["estimated_keys"].as_u64().unwrap()));
    // RocksDB let 13 of 1999 absent keys pass.
    let rate = legacy["estimated_false_positive_rate"].as_f64().unwrap();
    assert!((0.004..0.012).contains(&rate), "{rate}");

    let ribbon = file("ribbon_b10_n2000.sst");
    let block = &dir.info(&ribbon)["filter_blocks"][0];
    assert_eq!((&block["kind"], &block["solution_columns"]), (&"Ribbon".into(), &7.into()));
    let rate = block["estimated_false_positive_rate"].as_f64().unwrap();
    assert!((0.009..0.010).contains(&rate), "{rate}");
    assert_parts(&text(dir.ok(&format!("info {ribbon}"))), &["Ribbon", "columns", "kernel here"]);
    let output = dir.run_with(&format!("query {ribbon}"), "nobody\n");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b""[..]));
    assert_eq!(stderr(&output), "");
}

#[test]
fn ribbon_filters_are_built_described_and_queried() {
    let dir = Dir::new();
    let keys: String = (0..20_000).map(|i| format!("key {i}\n")).collect();
    dir.write("keys", &keys);
    dir.ok("build keys --format ribbon --fpr 0.1% --verify --quiet");
    let facts = dir.info("keys.ribbon");
    assert_eq!((&facts["format"], &facts["keys_inserted"]), (&"ribbon".into(), &20_000.into()));
    assert!(facts["bits_per_key"].as_f64().unwrap() < 10.0 * 1.1);
    assert_eq!(text(dir.ok("query keys.ribbon keys --count")).trim(), "20000");
    assert_parts(&text(dir.ok("info keys.ribbon")), &["sharded Ribbon", "columns"]);

    dir.ok("build keys --format rocksdb-ribbon -o block --quiet");
    let facts = dir.info("block --format rocksdb-block");
    assert_eq!(facts["kind"], "Ribbon");
    assert_eq!(text(dir.ok("query block keys --count --format rocksdb-block")).trim(), "20000");

    assert_parts(&dir.fails("build keys --format ribbon --fpr 70%"), &["0.7", "0.5"]);
    assert_parts(&dir.fails("build keys --format ribbon --probes 3"), &["--probes is for native"]);
}

#[test]
fn range_filters_are_built_described_and_queried() {
    let dir = Dir::new();
    let keys: String = (0..5_000_u64).map(|i| format!("{}\n", i * 1_000_000)).collect();
    dir.write("keys", &keys);
    let build = "build keys --format range --type uint64-be --bits-per-key 16 --unit 4";
    assert_parts(&stderr(&dir.run(&format!("{build} --verify"))), &["5000 keys looked up again"]);
    let facts = dir.info("keys.range");
    assert_eq!((&facts["format"], &facts["keys_inserted"]), (&"range".into(), &5_000.into()));
    assert_parts(&text(dir.ok("info keys.range")), &["for ranges", "longest range"]);
    assert_eq!(text(dir.ok("query keys.range keys --type uint64-be --count")).trim(), "5000");
    let found = |range: &str| {
        let output = dir.run(&format!("query keys.range --type uint64-be --range {range}"));
        (String::from_utf8(output.stdout).unwrap(), output.status.code())
    };
    for range in ["2000000..2000001", "1999900..=2000000", "..5", "..", "4998999000..=4999000000"] {
        assert_eq!(found(range), ("maybe\n".to_owned(), Some(0)), "{range}");
    }
    for range in ["2000016..2000400", "1999000..2000000", "7..7"] {
        assert_eq!(found(range), ("absent\n".to_owned(), Some(1)), "{range}");
    }
    assert_parts(&dir.fails("query keys.range --range 7"), &["--range 7: give LOW..HIGH"]);
    assert_parts(&dir.fails("query keys.range --range x..y --type uint64-be"), &["'x'"]);
    // An error, not "absent": the order of the bytes is not the order of the numbers.
    for range in ["9..10", "..10", "9..", "9..=10"] {
        let failed = dir.fails(&format!("query keys.range --range {range}"));
        assert_parts(&failed, &["as text, 10 is below 9", "uint64-be"]);
    }
    for kind in ["int64", "int64-be", "uint32", "int8"] {
        let failed = dir.fails(&format!("query keys.range --range 1..2 --type {kind}"));
        assert_parts(&failed, &["not in the order of its numbers", "-be"]);
        let failed = dir.fails(&format!("build keys --format range --type {kind}"));
        assert_parts(&failed, &["not in the order of its numbers", "-be"]);
    }
    let reversed = dir.fails("query keys.range --type uint64-be --range 9..7");
    assert_parts(&reversed, &["the lower bound is above the upper one"]);
    dir.write("words", "apple\nbanana\n");
    dir.ok("build words --format range -o words.range --quiet");
    assert_eq!(text(dir.ok("query words.range --range a..b")), "maybe\n");
    assert_eq!(dir.run("query words.range --range zebra..=zebra").status.code(), Some(1));
    dir.ok("build keys --format native -o bloom --quiet");
    assert_parts(&dir.fails("query bloom --range 1..2"), &["only a range filter"]);
    dir.write("unsorted", "b\na\n");
    assert_parts(&dir.fails("build unsorted --format range"), &["line 2", "sort the keys"]);
    assert_parts(&dir.fails("build keys --format range --bits-per-key 3"), &["give 4 to 32"]);
    assert_parts(&dir.fails("build keys --unit 3"), &["--unit is for range"]);
}

#[test]
fn prefixes_of_an_sst_are_looked_up_by_its_own_extractor() {
    let dir = Dir::new();
    let folder = committed("rocksdb");
    let both = folder.join("bloom_b10_n3000_whole_and_prefix4.sst").display().to_string();
    assert_eq!(dir.info(&both)["prefix_extractor"], "rocksdb.FixedPrefix.4");
    let starts = "p000\nzzzz\np000anything\nzzz\n";
    for rule in ["own", "fixed:4"] {
        let hits = dir.ok_with(&format!("query {both} --prefix {rule}"), starts);
        assert_eq!(text(hits), "p000\np000anything\nzzz\n", "{rule}");
    }
    let keys = folder.join("bloom_b10_n5000_str.sst").display().to_string();
    for (query, part) in [
        (format!("query {both} --prefix fixed:5"), "rocksdb.FixedPrefix.4, not by fixed:5"),
        (format!("query {both} --prefix capped:4"), "not by capped:4"),
        (format!("query {keys} --prefix own"), "the filter has no prefixes"),
    ] {
        let output = dir.run_with(&query, starts);
        assert_eq!(text(output.stdout.clone()), starts, "{query}");
        assert_parts(&stderr(&output), &[part, "\"maybe\" for every key"]);
    }
    dir.ok_with("build - -o native --prefix fixed:4", "p000a\n");
    assert_parts(&dir.fails("query native --prefix own"), &["native: ", "not own"]);
    let block = folder.join("crafted/good_k6.filter").display().to_string();
    let message = dir.fails(&format!("query {block} --prefix fixed:4"));
    assert_parts(
        &message,
        &["--prefix is for native and partition-index and rocksdb-sst, not for rocksdb-block"],
    );
}

#[test]
fn the_layout_of_cassandra_comes_from_the_name_or_the_user() {
    let dir = Dir::new();
    let folder = committed("cassandra");
    let bytes = dir.copy(&folder.join("nb-1-big-Filter.db"), "nb-1-big-Filter.db");
    let keys = fs::read_to_string(folder.join("keys.txt")).unwrap();
    let count = |query: &str| text(dir.run_with(&format!("query {query} --count"), &keys).stdout);
    let all = format!("{}\n", keys.lines().count());
    assert_eq!(count("nb-1-big-Filter.db"), all);
    let others = lines("other", 10_000);
    let hits = text(dir.ok_with("query nb-1-big-Filter.db --count", &others));
    let rate = hits.trim_end().parse::<f64>().unwrap() / 10_000.0;
    let info = dir.info("nb-1-big-Filter.db");
    let estimated = info["estimated_false_positive_rate"].as_f64().unwrap();
    assert!((rate / estimated - 1.0).abs() < 0.5, "{rate}, {estimated}");
    assert_eq!((&info["probes"], &info["words"]), (&5.into(), &7.into()));
    assert_parts(
        &text(dir.ok("info nb-1-big-Filter.db")),
        &["Cassandra 4 and later, by the file's name", "cannot be seen"],
    );

    // A name that lies, and the option that is stronger.
    dir.write("me-1-big-Filter.db", &bytes);
    assert_ne!(count("me-1-big-Filter.db"), all);
    assert_eq!(count("me-1-big-Filter.db --cassandra-version nb"), all);
    dir.write("Filter.db", &bytes);
    let message = dir.fails("info Filter.db");
    assert_parts(&message, &["Filter.db: ", "is not the name of a filter", "--cassandra-version"]);
    dir.write("renamed", &bytes);
    assert_parts(&dir.fails("query renamed"), &["renamed: not a recognised filter file"]);
    assert_parts(&dir.fails("query renamed --format cassandra"), &["--cassandra-version"]);
    assert_eq!(count("renamed --cassandra-version da"), all);
    let unknown = dir.run("info renamed --cassandra-version hf");
    assert_eq!(unknown.status.code(), Some(2));
    assert_parts(&stderr(&unknown), &["\"hf\" is not known", "from ic to oa, or da"]);
    dir.write("hf-1-big-Filter.db", &bytes);
    let message = dir.fails("query hf-1-big-Filter.db");
    assert_parts(&message, &["\"hf\" is not known", "from ic to oa, or da", "--cassandra-version"]);
    let message = dir.fails("info renamed --cassandra-version nb --format native");
    assert_parts(&message, &["--cassandra-version is for --format cassandra, not for native"]);

    // Numbers as text are absent from a table that has them: that is said, once.
    for key in ["42", "-7", "123e4567-e89b-12d3-a456-426614174000"] {
        let output = dir.run_with("query nb-1-big-Filter.db --count", format!("kiwi\n{key}\n1\n"));
        assert_eq!(stderr(&output).lines().count(), 1);
        assert_parts(&stderr(&output), &[&format!("'{key}'"), "--hex"]);
    }
    assert_eq!(stderr(&dir.run_with("query nb-1-big-Filter.db --hex", "6b697769\n")), "");
    assert_eq!(stderr(&dir.run_with("query nb-1-big-Filter.db", "kiwi 1\n-\n\n4.2\n")), "");

    // An empty file is a filter to Cassandra.
    dir.write("mc-2-big-Filter.db", "");
    assert_eq!(count("mc-2-big-Filter.db"), all);
    assert_parts(&stderr(&dir.run("query mc-2-big-Filter.db")), &["\"maybe\" for every key"]);
    assert_eq!(dir.info("mc-2-big-Filter.db")["pass_all"], true);
    assert_parts(&text(dir.ok("info mc-2-big-Filter.db")), &["none: the file is empty"]);
}

#[test]
#[ignore = "reads files of the folder BLOCKED_BLOOM_FIXTURES"]
fn filters_of_cassandra_answer_as_cassandra_does() {
    let folder = external("cassandra/generated").expect("the folder of fixtures");
    let dir = Dir::new();
    for file in files(&folder, "-Filter.db") {
        let name = file.to_str().unwrap();
        let (stem, version) = name.strip_suffix("-Filter.db").unwrap().rsplit_once('-').unwrap();
        let query = format!("query {name} --cassandra-version {version}");
        assert_answers(&dir, &query, &answers(Path::new(&format!("{stem}.csv"))));
    }
}

#[test]
fn damage_is_an_error_and_no_answer() {
    let dir = Dir::new();
    let folder = committed("rocksdb");
    let bytes = dir.copy(&folder.join("bloom_b10_n5000_str.sst"), "sound.sst");
    dir.write("short.sst", &bytes[..bytes.len() - 1]);
    // The footer is intact, what comes before it is not.
    dir.write("cut.sst", &bytes[100..]);
    let block = FilterBlockBuilder::new(10.0).unwrap().finish().unwrap();
    let trailer = bytes.windows(5).rposition(|window| window == block).unwrap();
    let mut damaged = bytes.clone();
    damaged[trailer - 1] ^= 1;
    dir.write("bit.sst", &damaged);
    for command in ["info", "query"] {
        assert_parts(
            &dir.fails(&format!("{command} short.sst")),
            &["not a recognised filter file", "truncated"],
        );
        let message = dir.fails(&format!("{command} short.sst --format rocksdb-sst"));
        assert_parts(&message, &["short.sst: offset ", "read as rocksdb-sst", "\"absent\""]);
        assert_parts(&dir.fails(&format!("{command} cut.sst")), &["cut.sst: "]);
        let message = dir.fails(&format!("{command} bit.sst"));
        assert_parts(&message, &["bit.sst: offset ", "the filter block is damaged", "\"absent\""]);
        assert_parts(
            &dir.fails(&format!("{command} sound.sst --format native")),
            &["sound.sst: its bytes are those of format rocksdb-sst, not of native"],
        );
    }

    // Read as a filter block, it would have no trailer that RocksDB writes.
    let message = dir.fails_with("query sound.sst --format rocksdb-block", "nobody\n");
    assert_parts(&message, &["its bytes are those of format rocksdb-sst, not of rocksdb-block"]);

    let cassandra = committed("cassandra").join("nb-1-big-Filter.db");
    let bytes = fs::read(cassandra).unwrap();
    dir.write("nb-1-big-Filter.db", &bytes[..63]);
    dir.write("nb-2-big-Filter.db", [&bytes[..], &[0]].concat());
    assert_parts(&dir.fails("query nb-1-big-Filter.db"), &["63 bytes", "expected 64", "truncated"]);
    assert_parts(&dir.fails("query nb-2-big-Filter.db"), &["65 bytes", "followed by other bytes"]);
}

#[test]
fn filter_blocks_are_built_as_rocksdb_builds_them() {
    let dir = Dir::new();
    let folder = committed("rocksdb/raw");
    let added = fs::read_to_string(folder.join("keys_mix_added.hex")).unwrap();
    for (name, keys, bits) in [
        ("raw_n301mix_b10", 301, "10"),
        ("raw_n1000mix_b5.5", 1_000, "5.5"),
        ("raw_n1000mix_b25", 1_000, "25"),
    ] {
        let keys: String = added.lines().take(keys).map(|key| format!("{key}\n")).collect();
        let build = format!("build - --hex --format rocksdb-block --bits-per-key {bits} --verify");
        dir.ok_with(&format!("{build} -o {name}"), &keys);
        assert!(
            dir.read(name) == fs::read(folder.join(format!("{name}.filter"))).unwrap(),
            "{name}"
        );
    }

    dir.write("words", words());
    let built = dir.run("build words --format rocksdb-block");
    assert_parts(&stderr(&built), &["words.filter: rocksdb-block, 104334 keys, ", "6 probes"]);
    assert!(dir.ok("query words.filter words") == words().as_bytes());
    let info = dir.info("words.filter");
    assert_eq!(
        (&info["format"], &info["kind"]),
        (&"rocksdb-block".into(), &"FastLocalBloom".into())
    );
    let block = dir.read("words.filter");
    let opened = FilterBlock::from_bytes(&block).unwrap();
    let view = opened.view().unwrap();
    assert_eq!(info["fill_ratio"], view.fill_ratio());
    assert_eq!(info["estimated_keys"], view.estimated_keys().unwrap());
    assert_parts(
        &dir.fails_with("build - -o none --format rocksdb-block", ""),
        &["no keys", "no filter"],
    );
    for bits in ["100.5", "-1", "nan", "inf"] {
        let build = format!("build words -o none --bits-per-key={bits}");
        let refused = dir.run(&format!("{build} --format rocksdb-block"));
        assert_eq!(refused.status.code(), Some(2), "{bits}");
        assert_eq!(stderr(&refused), stderr(&dir.run(&build)));
    }
    let message = dir.fails("build words -o none --bits-per-key 0 --format rocksdb-block");
    assert_parts(&message, &["0 bits per key", "write no filter"]);
    assert_eq!(dir.run("build words -o f --format rocksdb-block --quiet").stderr, b"");
    assert_eq!(dir.read("f"), block);
}

#[test]
fn filters_of_cassandra_are_built() {
    let dir = Dir::new();
    let folder = committed("cassandra");
    let keys = dir.copy(&folder.join("keys.txt"), "keys");
    let sound = fs::read(folder.join("nb-1-big-Filter.db")).unwrap();
    let build = "build keys --format cassandra --fpr 1% --verify";
    let built = dir.run(&format!("{build} -o nb-1-big-Filter.db"));
    assert_parts(&stderr(&built), &["cassandra, Cassandra 4", "40 distinct keys", "7 words"]);
    assert_eq!(dir.read("nb-1-big-Filter.db"), sound);
    // Repeated keys do not count as more partitions.
    dir.ok_with("build - --cassandra-version nb -o twice", [&keys[..], &keys].concat());
    assert_eq!(dir.read("twice"), sound);
    dir.ok(&format!("{build} -o sized --cassandra-version nb --keys 1000"));
    assert_eq!(dir.read("sized").len(), 8 + 157 * 8);
    assert_eq!(dir.ok("query sized keys --cassandra-version nb"), keys);
    for version in ["jb", "me", "oa"] {
        let name = format!("{version}-{version}-1-big-Filter.db");
        dir.ok(&format!("{build} -o {name}"));
        assert_eq!(dir.ok(&format!("query {name} keys")), keys);
    }
    dir.ok(&format!("{build} -o Keyspace1-Standard1-jb-0-Filter.db"));
    assert_eq!(dir.ok("query Keyspace1-Standard1-jb-0-Filter.db keys"), keys);
    dir.ok("build keys --cassandra-version nb -o always --fpr 1");
    assert_eq!(dir.read("always"), b"");

    let full = dir.run(&format!("{build} -o full --cassandra-version nb --keys 39 --quiet"));
    assert_parts(&stderr(&full), &["warning: keys: 40 keys were read, more than the 39 of --keys"]);

    for (args, parts) in [
        ("-o nb-3-big-Filter.db", ["not native", "--format cassandra"]),
        ("-o nb-3-big-Filter.db --format rocksdb-block", ["not rocksdb-block", "another name"]),
        ("--format cassandra", ["-o", "nb-1-big-Filter.db"]),
        ("--format cassandra -o f", ["is not the name of a filter", "--cassandra-version"]),
        ("--cassandra-version me -o nb-3-big-Filter.db", ["Cassandra 4", "Cassandra 3"]),
        ("--cassandra-version me -o f --fpr 0.00001", ["1e-5", "at least 6.71e-5"]),
        ("--cassandra-version me -o f --max-memory 100", ["6 keys", "--max-memory 100"]),
    ] {
        assert_parts(&dir.fails(&format!("build keys {args}")), &parts);
    }
    assert!(!dir.names().iter().any(|name| name == "f" || name == "nb-3-big-Filter.db"));
}

#[test]
fn options_without_meaning_are_errors() {
    let dir = Dir::new();
    dir.write("keys", "a\n");
    for option in
        ["--fpr 1%", "--max-bytes 64K", "--keys 10", "--probes 6", "--seed 0", "--threads 2"]
    {
        let name = option.split(' ').next().unwrap();
        let message = dir.fails(&format!("build keys --format rocksdb-block {option}"));
        assert_parts(&message, &[&format!("{name} is for native"), "not for rocksdb-block"]);
    }
    for option in ["--bits-per-key 10", "--max-bytes 64K", "--prefix fixed:3", "--probes 6"] {
        let message = dir.fails(&format!("build keys --cassandra-version nb -o f {option}"));
        assert_parts(&message, &["is for native", "not for cassandra"]);
    }
    let output = dir.run("build keys --format rocksdb-sst");
    assert_eq!(output.status.code(), Some(2));
    assert_parts(
        &stderr(&output),
        &["'rocksdb-sst' for '--format", "similar value exists: 'rocksdb-block'"],
    );
    assert_eq!(dir.names(), ["keys"]);

    dir.ok("build keys -q");
    dir.ok("build keys -q --format rocksdb-block");
    let message = dir.fails("merge keys.bloom keys.filter -o f");
    assert_parts(&message, &["keys.filter: ", "rocksdb-block", "native"]);
    // The native format by its name is the one without.
    dir.ok("build keys -q --format native -o named");
    assert_eq!(dir.read("named"), dir.read("keys.bloom"));
    assert_eq!(dir.info("named")["format"], "native");
}

/// Every key that is to be looked up again is, in every format.
#[test]
fn keys_are_looked_up_again_in_every_format() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 3_000));
    for format in [
        "removable",
        "ribbon",
        "rocksdb-block",
        "rocksdb-ribbon",
        "parquet-filter",
        "guava",
        "spark",
        "redisbloom",
        "cassandra",
    ] {
        let args = format!("build keys --format {format} -o nb-1-big-Filter.db");
        let args = match format {
            "cassandra" => args,
            _ => args.replace("nb-1-big-Filter.db", "filter"),
        };
        let said = stderr(&dir.run(&format!("{args} --verify")));
        assert_parts(&said, &["stored, 3000 keys looked up again\n"]);
        let said = stderr(&dir.run(&args));
        assert!(said.contains("bytes stored\n"), "{said}");
    }
}

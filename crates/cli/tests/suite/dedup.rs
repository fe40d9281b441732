//! `dedup` prints the first of equal lines, and no line twice, with a filter of any size. A later
//! run with the same state continues where the earlier one ended.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::common::Random;
use crate::tool::{Dir, TOOL, assert_parts, lines, stderr, text, time_limit};

/// Bytes that are read at a time.
const PIECE: usize = 256 << 10;

/// Keys of lines that were not there before, in order.
fn firsts<'a>(lines: &[&'a [u8]], key: impl Fn(&'a [u8]) -> &'a [u8]) -> Vec<&'a [u8]> {
    let mut seen = HashSet::new();
    lines.iter().copied().filter(|&line| seen.insert(key(line))).collect()
}

/// A field of a line, from 1, or all of it.
fn compared(line: &[u8], field: usize) -> &[u8] {
    match field {
        0 => line,
        _ => line.split(|&byte| byte == b'\t').nth(field - 1).unwrap_or_default(),
    }
}

fn split(bytes: &[u8], terminator: u8) -> Vec<&[u8]> {
    let bytes = bytes.strip_suffix(&[terminator]).unwrap_or(bytes);
    bytes.split(|&byte| byte == terminator).collect()
}

/// The number before a word of the last line on standard error.
fn reported(printed: &str, after: &str) -> f64 {
    let line = printed.lines().last().unwrap();
    let (_, rest) = line.split_once(after).unwrap_or_else(|| panic!("no {after:?} in {line:?}"));
    rest.trim_start().split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn the_first_of_equal_lines_is_printed() {
    let dir = Dir::new();
    for (input, expected) in [
        ("", ""),
        ("\n", "\n"),
        ("b\na\nb\nb\nc\na\n", "b\na\nc\n"),
        ("a\nb\na", "a\nb\n"),
        ("a", "a\n"),
        ("\n\na\n\n", "\na\n"),
        ("a\r\nb\r\na\r\n", "a\r\nb\r\n"),
        ("a\r\na\na\r", "a\r\na\n"),
        ("x\0y\nx\nx\0y\n", "x\0y\nx\n"),
    ] {
        for options in ["", "--keys 10", "--memory 1K", "--fpr 1e-6"] {
            let raw = if input.contains('\0') { "--raw" } else { "" };
            let args = format!("dedup -q {options} {raw}");
            assert_eq!(text(dir.ok_with(&args, input)), expected, "{input:?} {options}");
        }
    }
    // One file after another, the last line of each with an end.
    dir.write("one", "a\nb");
    dir.write("two", "b\nc");
    assert_eq!(text(dir.ok_with("dedup -q one - two", "c\nd\na")), "a\nb\nc\nd\n");
    assert_eq!(text(dir.ok_with("dedup -q --null", "a\0b\n\0a\0b")), "a\0b\n\0b\0");
    assert_eq!(text(dir.ok_with("dedup -q --duplicates", "b\na\nb\nb\na")), "b\nb\na\n");
    assert_eq!(text(dir.ok_with("dedup -q --count", "b\na\nb\nb\na")), "2\n");
    assert_eq!(text(dir.ok_with("dedup -q --count --duplicates", "b\na\nb\nb\na")), "3\n");
    let warned = stderr(&dir.run_with("dedup -q", "a\r\na\nb\n"));
    assert_parts(&warned, &["warning: 1 of 3 lines end in a carriage return"]);
    for input in ["a\r\nb\r\n", "a\nb\n", ""] {
        assert_eq!(stderr(&dir.run_with("dedup -q", input)), "");
    }
    // A run without lines, too.
    assert_parts(&stderr(&dir.run_with("dedup", "")), &["0 lines, 0 not there before, 0 dropped"]);
}

/// Lines of many lengths, each of which comes some times.
fn random_lines(random: &mut Random, count: usize, distinct: u64, terminator: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..count {
        let id = random.next() % distinct;
        let mut line = Random(id);
        // Some have no bytes, some nearly as many as are read at a time.
        let length = match line.next() % 1_000 {
            0 => line.next() as usize % PIECE,
            1..100 => 0,
            _ => line.next() as usize % 70,
        };
        let start = bytes.len();
        bytes.extend((0..length).map(|_| (line.next() >> 32) as u8));
        for byte in &mut bytes[start..] {
            // Fields, returns and other bytes than text among them.
            *byte = if *byte < 40 { b'\t' } else { *byte };
            *byte = if *byte == terminator { 7 } else { *byte };
        }
        bytes.push(terminator);
    }
    if random.next().is_multiple_of(2) {
        bytes.pop();
    }
    bytes
}

/// The answers of a set, for filters whose rate is so low that these lines have no false positive.
#[test]
fn prints_what_a_set_lets_through() {
    let (dir, mut random) = (Dir::new(), Random(31));
    for round in 0..24_u32 {
        let null = round % 3 == 2;
        let terminator = if null { 0 } else { b'\n' };
        let count = [0, 1, 63, 64, 65, 2_047, 2_048, 2_049, 20_000][random.next() as usize % 9];
        let input = random_lines(&mut random, count, 1 + count as u64 / 2, terminator);
        let all = if input.is_empty() { Vec::new() } else { split(&input, terminator) };
        let field = random.next() as usize % 4;
        let mut args =
            ["dedup -q --fpr 1e-8", "dedup -q --fpr 1e-8 --keys 20K", "dedup -q --memory 1M"]
                [random.next() as usize % 3]
                .to_owned();
        if null {
            args += " --null";
        }
        if field > 0 {
            write!(args, " --field {field}").unwrap();
        }
        dir.write("input", &input);
        let end = |lines: &[&[u8]]| {
            lines.iter().flat_map(|&line| [line, &[terminator]].concat()).collect::<Vec<u8>>()
        };
        let expected = firsts(&all, |line| compared(line, field));
        // From a file, and from a pipe, which gives other pieces.
        assert!(dir.ok(&format!("{args} input")) == end(&expected), "round {round}: {args}");
        assert!(dir.ok_with(&args, &input) == end(&expected), "round {round}: {args}");
        let counted = format!("{}\n", expected.len());
        assert_eq!(
            text(dir.ok(&format!("{args} --count input"))),
            counted,
            "round {round}: {args}"
        );
        let mut seen = HashSet::new();
        let others: Vec<&[u8]> =
            all.iter().copied().filter(|&line| !seen.insert(compared(line, field))).collect();
        let printed = dir.ok(&format!("{args} --duplicates input"));
        assert!(printed == end(&others), "round {round}: {args} --duplicates");
    }
}

/// Whatever the rate, no line is printed twice, and the report is near what was dropped.
#[test]
fn no_line_twice_at_any_rate_and_the_report_is_right() {
    let dir = Dir::new();
    let mut random = Random(5);
    let mut input = String::new();
    for _ in 0..200_000 {
        writeln!(input, "line {}", random.next() % 100_000).unwrap();
    }
    dir.write("input", &input);
    let all = split(input.as_bytes(), b'\n');
    let distinct = firsts(&all, |line| line).len() as f64;
    for (options, is_overfull) in [
        ("--keys 87K --fpr 10%", false),
        ("--keys 87K --fpr 1%", false),
        ("--fpr 10%", false),
        ("--memory 100K --fpr 0.1%", true),
        ("--memory 60K", true),
        ("--memory 40K --overfull", true),
        ("--memory 1K --overfull", true),
    ] {
        let output = dir.run(&format!("dedup {options} input"));
        assert_eq!(output.status.code(), Some(0), "{options}");
        let printed = split(&output.stdout, b'\n');
        assert_eq!(firsts(&printed, |line| line).len(), printed.len(), "{options}: a line twice");
        // Of the lines that were not there before, some are missing, and none is in another place.
        let mut rest = all.iter();
        assert!(printed.iter().all(|line| rest.any(|other| other == line)), "{options}");
        let said = stderr(&output);
        assert_eq!(said.starts_with("warning: more than the "), is_overfull, "{options}: {said}");
        let dropped = distinct - printed.len() as f64;
        let probably = reported(&said, "probably");
        // A wrongly dropped line is dropped at each occurrence, but only the first was a new line.
        let error = 4.0 * dropped.max(1.0).sqrt() + 0.05 * dropped;
        // Where nothing is let through any more, the share of new lines can only be guessed.
        if options != "--memory 1K --overfull" {
            assert!((probably - dropped).abs() <= error, "{options}: {probably} {dropped}");
        }
        assert_eq!(reported(&said, "before,"), 200_000.0 - printed.len() as f64);
    }
}

/// Each line that is dropped counts by what the rate was then: of lines that are all distinct, the
/// report is right in filters of any excess, on one day as on another.
#[test]
fn the_report_is_right_in_overfull_filters() {
    let dir = Dir::new();
    dir.write("input", lines("", 1_000_000));
    dir.write("first", lines("first", 30_000));
    for options in ["--memory 100", "--memory 10K", "--memory 100K", "--memory 700K"] {
        let overfull = format!("dedup {options} --overfull");
        for (args, count) in [
            (format!("{overfull} input"), 1e6),
            (format!("{overfull} first --state seen"), 3e4),
            (format!("{overfull} input --state seen"), 1e6),
        ] {
            let output = dir.run(&args);
            assert_eq!(output.status.code(), Some(0), "{args}");
            let printed = output.stdout.iter().filter(|&&byte| byte == b'\n').count() as f64;
            let (lost, probably) = (count - printed, reported(&stderr(&output), "probably"));
            let error = 0.02 * lost + 4.0 * lost.max(1.0).sqrt();
            assert!((probably - lost).abs() <= error, "{args}: {probably} {lost}");
        }
        fs::remove_file(dir.path("seen")).unwrap();
    }
}

/// Above a rate of 1 %, `dedup` warns at once, and above 50 % it fails, both in the first run and
/// in a later run with its state.
#[test]
fn an_overfull_filter_warns_and_then_stops() {
    let dir = Dir::new();
    for (name, count) in [("few", 5_000), ("more", 9_000), ("many", 50_000)] {
        dir.write(name, lines("key", count));
    }
    let run = |args: &str| {
        let output = dir.run(&format!("dedup -q {args}"));
        (output.status.code(), stderr(&output), output.stdout)
    };
    let keys = "--keys 5K --fpr 0.1%";
    let (code, said, _) = run(&format!("{keys} few"));
    assert_eq!((code, &said[..]), (Some(0), ""));
    let (code, said, _) = run(&format!("{keys} more"));
    assert_eq!((code, said.lines().count()), (Some(0), 2), "{said}");
    let warning = "warning: more than the 5000 distinct lines that the filter is for: more than";
    let parts = ["0.", "1."].map(|rate| format!("{warning} {rate}"));
    assert_parts(&said, &[&parts[0], &parts[1]]);
    // The lines after it are not printed, and no line was printed twice.
    let (code, said, printed) = run(&format!("{keys} many"));
    assert_eq!((code, said.lines().count()), (Some(2), 3), "{said}");
    let error = said.lines().last().unwrap();
    assert_parts(error, &["error: more than the 5000 distinct", "than 5", "--overfull to go on"]);
    let printed = split(&printed, b'\n');
    assert!((9_000..40_000).contains(&printed.len()), "{}", printed.len());
    let (code, said, _) = run(&format!("{keys} many --overfull"));
    assert_eq!((code, said.lines().count()), (Some(0), 3), "{said}");
    assert!(said.lines().all(|line| line.starts_with("warning: ")), "{said}");

    // A state that is gone on with is as full as it was.
    run(&format!("{keys} few --state seen"));
    let fair = dir.read("seen");
    let (code, said, _) = run(&format!("{keys} few --state seen"));
    assert_eq!((code, &said[..]), (Some(0), ""));
    let (code, said, _) = run(&format!("{keys} more --state seen"));
    assert_eq!((code, said.lines().count()), (Some(0), 2), "{said}");
    let (code, said, _) = run(&format!("{keys} few --state seen"));
    assert_eq!((code, said.lines().count()), (Some(0), 1), "{said}");
    assert_parts(&said, &[&format!("{warning} 2.")]);
    dir.write("seen", &fair);
    let (code, said, _) = run(&format!("{keys} many --state seen"));
    assert_eq!((code, said.lines().last().map(|line| &line[..6])), (Some(2), Some("error:")));
    assert!(dir.read("seen") == fair);
    run(&format!("{keys} many --state seen --overfull"));
    let (code, said, printed) = run(&format!("{keys} few --state seen"));
    assert_eq!((code, said.lines().count()), (Some(2), 1), "{said}");
    assert_parts(&said, &["error: more than the 5000", "--overfull"]);
    assert!(printed.is_empty());

    // Who asks for a high rate has it without a warning.
    for options in ["--keys 5K --fpr 5%", "--fpr 5%", "--fpr 40%", "--keys 5K --fpr 60%"] {
        assert_eq!(run(&format!("{options} few")).1, "", "{options}");
    }
}

/// Lines that end just before, at and behind the end of what is read at a time, and lines that are
/// longer.
#[test]
fn lines_at_the_borders_of_what_is_read() {
    let dir = Dir::new();
    for length in [PIECE - 3, PIECE - 2, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE - 1, 5 * PIECE + 7]
    {
        let long = "x".repeat(length);
        for input in [
            format!("{long}\n{long}\na\n{long}\na\n{long}y\n"),
            format!("a\n{long}\n{long}y\na\n{long}"),
            format!("{long}y\n{long}"),
        ] {
            let all = split(input.as_bytes(), b'\n');
            let expected = firsts(&all, |line| line).join(&b'\n');
            dir.write("input", &input);
            for printed in [dir.ok("dedup -q input"), dir.ok_with("dedup -q", &input)] {
                assert!(printed == [&expected[..], b"\n"].concat(), "{length}");
            }
        }
    }
}

#[test]
fn lines_may_be_as_long_as_the_limit() {
    let dir = Dir::new();
    let a = |count: usize| "a".repeat(count);
    for limit in [64, 1_000, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE] {
        let args = format!("dedup -q --count --max-line-bytes {limit}");
        for end in ["", "\n"] {
            let longest = format!("short\n{}{end}", a(limit));
            assert_eq!(dir.ok_with(&args, &longest), b"2\n", "{limit}");
            let message = dir.fails_with(&args, format!("short\n\n{}{end}", a(limit + 1)));
            let start =
                format!("standard input: line 3: {} bytes and no end of the line yet", limit + 1);
            let end = format!("more than the {limit} bytes of --max-line-bytes");
            assert_parts(&message, &[&start, &end, "--null"]);
        }
    }
    // The number of the line is that of its file.
    dir.write("one", lines("one", 5_000));
    dir.write("two", lines("two", 3_000) + &a(100) + "\n");
    let message = dir.fails("dedup -q --count --max-line-bytes 99 one two");
    assert_parts(&message, &["two: line 3001: 100 bytes"]);
}

#[test]
fn a_field_alone_may_be_compared() {
    let dir = Dir::new();
    let table = "1,a,x\n2,a,y\n3,b,x\n4\n5,\n6,b";
    for (options, expected) in [
        ("--field 1 --delimiter ,", "1,a,x\n2,a,y\n3,b,x\n4\n5,\n6,b\n"),
        ("--field 2 --delimiter ,", "1,a,x\n3,b,x\n4\n"),
        ("--field 3 --delimiter ,", "1,a,x\n2,a,y\n4\n"),
        ("--field 1", "1,a,x\n2,a,y\n3,b,x\n4\n5,\n6,b\n"),
    ] {
        assert_eq!(text(dir.ok_with(&format!("dedup -q {options}"), table)), expected, "{options}");
    }
    for options in ["--field 2", "--field 2 --delimiter \\t"] {
        assert_eq!(text(dir.ok_with(&format!("dedup -q {options}"), "1\ta\n2\ta\n")), "1\ta\n");
    }
    for (options, part) in [
        ("--field 0", "1.."),
        ("--delimiter ,", "--field"),
        ("--field 1 --delimiter ,,", "give one byte"),
        ("--keys 10 --memory 1M", "--memory"),
        ("--fpr 0", "above 0"),
        ("--fpr 1", "--fpr 1 drops every line"),
        ("--memory 63", "64 bytes or more"),
        ("--memory 300GiB", "256 GiB at most"),
        ("--keys 1M --fpr 1e-15", "1e-15"),
        ("--fpr 1e-9", "--fpr 1e-9 is out of reach of a filter that grows, "),
        ("--fpr 1e-9", "give 1e-8 or more\n"),
        ("--memory 1M --fpr 1e-15", "1e-15"),
    ] {
        let output = dir.run(&format!("dedup {options}"));
        assert_eq!(output.status.code(), Some(2), "{options}");
        assert_parts(&stderr(&output), &["error: ", part]);
    }
}

/// A wrong delimiter would drop every line but one.
#[test]
fn most_lines_without_the_field_are_an_error() {
    let dir = Dir::new();
    let row = |i: usize| format!("{i},x;{i};y,a\n");
    dir.write("table", (0..10_000).map(row).collect::<String>());
    dir.ok_with("dedup -q --field 1 --state seen", "a\n");
    let before = dir.read("seen");
    for options in ["", " -q", " --count", " --duplicates", " --state seen"] {
        let output = dir.run(&format!("dedup --field 2{options} table"));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{options}");
        let said = stderr(&output);
        assert_parts(
            &said,
            &["error: table: line 2048: 2048 of the first 2048 lines have no field 2 with \
                 --delimiter \\t: this line has it with --delimiter ',' or ';'\n"],
        );
    }
    assert!(dir.read("seen") == before);
    // By no other delimiter, and a delimiter that was given.
    let none = dir.fails_with("dedup --field 2", "a\nb\n");
    assert_parts(&none, &["standard input: line 2: 2 of the first 2 lines", "and --field right?"]);
    let tabs = dir.fails_with("dedup --field 2 --delimiter ,", "a\tb\nc\td\n");
    assert_parts(&tabs, &["with --delimiter ',': this line has it with --delimiter \\t"]);
    // A file of another form behind the first.
    dir.write("tabs", (0..3_000).map(|i| format!("{i}\t{i}\n")).collect::<String>());
    assert_parts(&dir.fails("dedup --field 2 -q tabs table"), &["table: line "]);
    // As the help says, as many lines are dropped before the error as had the field, and no more.
    dir.write("tabs", (0..10_000).map(|i| format!("{i}\t{i}\n")).collect::<String>());
    for (lacking, status) in [(10_000, 0), (10_001, 2), (30_000, 2)] {
        dir.write("table", (0..lacking).map(row).collect::<String>());
        let output = dir.run("dedup --field 2 -q tabs table");
        assert_eq!(output.status.code(), Some(status), "{lacking}");
        assert_eq!(text(output.stdout).lines().count(), 10_001);
    }
    // One line that lacks it is not dropped; fewer than most are warned of.
    let output = dir.run_with("dedup -q --field 2", "a\n");
    assert_eq!((text(output.stdout.clone()), output.status.code()), ("a\n".to_owned(), Some(0)));
    let output = dir.run_with("dedup -q --field 2", "# 1\na\tb\n\nc\td\n\ne\tf\n");
    assert_eq!(text(output.stdout.clone()), "# 1\na\tb\nc\td\ne\tf\n");
    let warning = "warning: 3 of 6 lines have no field 2: of those only the first is new\n";
    assert_eq!(stderr(&output), warning);
    assert_eq!(stderr(&dir.run_with("dedup -q --field 2", "a\t\nb\tc\n")), "");
}

/// Day by day with a state, and all days at once, the same is printed.
#[test]
fn a_state_goes_on_another_day() {
    let dir = Dir::new();
    let mut random = Random(9);
    let mut days = Vec::new();
    for _ in 0..3 {
        let keys = random.hashes(30_000).into_iter();
        days.push(keys.map(|key| format!("line {}\n", key % 30_000)).collect::<String>());
    }
    for (i, day) in days.iter().enumerate() {
        dir.write(&format!("day{i}"), day);
    }
    for options in ["", "--keys 40K", "--memory 64K --fpr 1%", "--keys 12K --fpr 5%"] {
        let at_once = dir.ok(&format!("dedup -q {options} day0 day1 day2"));
        let mut by_days = Vec::new();
        for day in 0..3 {
            // The options may be given again, or left out.
            let options = if day == 2 { "" } else { options };
            let output = dir.run(&format!("dedup {options} --state seen day{day}"));
            assert_eq!(output.status.code(), Some(0), "{options}: {}", stderr(&output));
            assert_parts(&stderr(&output), &["seen: ", " distinct lines in "]);
            by_days.extend(output.stdout);
        }
        assert!(at_once == by_days, "{options}");
        let printed = split(&by_days, b'\n').len();
        // The keys that are counted are distinct, and every one of them is found.
        let facts = dir.info("seen");
        assert_eq!(facts["keys_inserted"], printed, "{options}");
        assert_eq!(facts["format"], if options.is_empty() { "growing" } else { "native" });
        dir.write("all", days.concat());
        assert_eq!(dir.run("query --absent seen all").status.code(), Some(1), "{options}");
        // What is printed on a day without news is nothing, and the state is as it was.
        let before = dir.read("seen");
        assert_eq!(dir.ok("dedup -q --state seen all"), b"", "{options}");
        assert!(dir.read("seen") == before, "{options}");
        fs::remove_file(dir.path("seen")).unwrap();
    }
    // A filter of build's is a state, too, of any seed.
    dir.ok("build day0 -q --seed 7 --keys 100K --fpr 0.001% -o seen");
    let printed = text(dir.ok("dedup -q --state seen day0 day1"));
    let known: HashSet<&str> = days[0].lines().collect();
    assert!(printed.lines().count() > 5_000 && printed.lines().all(|line| !known.contains(line)));
    assert_eq!(dir.info("seen")["seed"], 7);
}

#[test]
fn growing_filters_are_described_and_queried() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 1_300_000));
    dir.ok("dedup -q --count --fpr 1% --state seen keys");
    let facts = dir.info("seen");
    assert_eq!(
        (&facts["format"], &facts["highest_false_positive_rate"]),
        (&"growing".into(), &0.01.into())
    );
    assert_eq!(facts["links"].as_array().unwrap().len(), 2);
    let shown = text(dir.ok("info seen"));
    assert_parts(&shown, &["a chain of filters", "\nlink  blocks  probes", "\n   2  ", "1.000 %"]);
    let absent = dir.run("query --absent --count seen keys --format growing");
    assert_eq!((absent.status.code(), text(absent.stdout)), (Some(1), "0\n".to_owned()));
    let refused = dir.run("build keys --format growing -o f");
    assert_eq!(refused.status.code(), Some(2));
    assert_parts(&text(refused.stderr), &["invalid value 'growing'"]);
}

/// A state keeps its number of keys and its rate in later runs, with the same options, with one of
/// them, and with none.
#[test]
fn a_state_keeps_what_it_was_made_for() {
    let dir = Dir::new();
    for (keys, rate) in [(30_000, "1e-6"), (30_000, "0.01%"), (30_000, "1%"), (30_000, "10%")] {
        dir.write("part", lines("key", keys * 3 / 4));
        dir.write("more", lines("key", keys * 3 / 2));
        let [of_keys, of_rate] = [format!("--keys {keys}"), format!("--fpr {rate}")];
        dir.ok(&format!("dedup -q --count {of_keys} {of_rate} --state seen part"));
        let state = dir.read("seen");
        for options in ["", &of_keys, &of_rate, &format!("{of_keys} {of_rate}")] {
            let run = |file: &str| {
                dir.write("seen", &state);
                let output = dir.run(&format!("dedup -q --count {options} --state seen {file}"));
                assert_eq!(output.status.code(), Some(0), "{options}: {}", stderr(&output));
                stderr(&output)
            };
            assert_eq!(run("part"), "", "{options} {rate}");
            let said = run("more");
            let (_, capacity) = said.split_once("more than the ").expect("a warning");
            let capacity: f64 = capacity.split(' ').next().unwrap().parse().unwrap();
            let most = if options.is_empty() { 1.2 } else { 1.05 };
            let times = capacity / keys as f64;
            assert!((1.0 / most..most).contains(&times), "{options} {rate}: {times}");
        }
        fs::remove_file(dir.path("seen")).unwrap();
    }
    // The memory alone, and other numbers than the state's.
    dir.ok_with("dedup -q --memory 64K --fpr 1% --state seen", "a\n");
    dir.ok_with("dedup -q --memory 64K --state seen", "a\n");
    dir.fails_with("dedup -q --memory 65K --state seen", "a\n");
    dir.fails_with("dedup -q --fpr 0.1% --state seen", "a\n");
    dir.fails_with("dedup -q --keys 10K --state seen", "a\n");
}

#[test]
fn a_state_of_other_options_is_an_error_that_names_both() {
    let dir = Dir::new();
    dir.ok_with("dedup -q --state grows", "a\n");
    dir.ok_with("dedup -q --keys 1K --state fixed", "a\n");
    let states = [dir.read("grows"), dir.read("fixed")];
    for (args, parts) in [
        (
            "--state grows --fpr 1%",
            ["up to 0.100 % false", "up to 1.000 % false", "leave --fpr out"],
        ),
        ("--state grows --keys 1K", ["that grows", "31 blocks and 9 probes", "leave --keys out"]),
        ("--state fixed --keys 2K", ["31 blocks and 9", "61 blocks and 9", "leave --keys out"]),
        ("--state fixed --memory 1M", ["31 blocks and 9", "15625 blocks and 9", "--memory out"]),
        (
            "--state fixed --keys 1K --fpr 1%",
            ["31 blocks and 9", "20 blocks and 6", "leave --keys and --fpr out"],
        ),
        ("--state fixed --fpr 1%", ["31 blocks", "that grows", "leave --fpr out"]),
    ] {
        assert_parts(&dir.fails_with(&format!("dedup {args}"), "b\n"), &parts);
    }
    dir.write("text", "a\nb\n");
    dir.ok("build text -q --bits-per-key 0 -o all");
    dir.ok("build text -q --prefix fixed:1 --only-prefixes -o prefixes");
    dir.ok("build text -q --format removable -o tags");
    fs::create_dir(dir.path("folder")).unwrap();
    for (args, part) in [
        ("--state all", "all: takes no lines, as a filter of whole keys"),
        ("--state prefixes", "prefixes: takes no lines, as a filter of "),
        (
            "--state tags",
            "tags: a filter of format removable: dedup goes on with native and growing",
        ),
        ("--state text", "text: not a recognised filter file"),
        ("--state folder", "folder: is a directory"),
        ("--state -", "--state is a file"),
        ("--state none/f", "no directory none"),
        ("--state /dev/null", "/dev/null: is not a regular file"),
    ] {
        assert_parts(&dir.fails_with(&format!("dedup {args}"), "b\n"), &[part]);
    }
    // A damaged one is not gone on with.
    for (name, bytes) in ["grows", "fixed"].into_iter().zip(&states) {
        assert_eq!(&dir.read(name), bytes);
        let mut damaged = bytes.clone();
        damaged[200] ^= 4;
        dir.write(name, &damaged);
        assert_parts(&dir.fails_with(&format!("dedup --state {name}"), "b\n"), &[name, "checksum"]);
        dir.write(name, &bytes[..bytes.len() - 64]);
        dir.fails_with(&format!("dedup --state {name}"), "b\n");
        assert!(dir.read(name) == bytes[..bytes.len() - 64]);
    }
}

#[test]
fn no_file_is_both_read_and_written() {
    let dir = Dir::new();
    dir.write("lines", "a\nb\na\n");
    let message = dir.fails("dedup lines --state ./lines");
    assert_parts(&message, &["lines: is also the --state"]);
    assert_parts(&dir.fails("dedup nothing"), &["nothing: cannot open: "]);
    assert_parts(&dir.fails("dedup lines ."), &[".: cannot read: "]);
    #[cfg(unix)]
    for (script, part) in [
        ("\"$TOOL\" dedup lines >> lines", "lines: is also the standard output"),
        ("\"$TOOL\" dedup < lines >> lines", "standard input: is also the standard output"),
        ("\"$TOOL\" dedup lines --state out > out", "out: is also the standard output"),
    ] {
        let mut command = Command::new("sh");
        let output =
            command.args(["-c", script]).env("TOOL", TOOL).current_dir(dir.0.path()).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2), "{script}");
        assert_parts(&stderr(&output), &[part]);
    }
    assert_eq!(dir.read("lines"), b"a\nb\na\n");
}

fn running(dir: &Dir, args: &str) -> Command {
    let mut command = Command::new(TOOL);
    command.current_dir(dir.0.path()).args(args.split_whitespace());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Whoever makes the lines one by one sees each before the next.
#[test]
fn a_line_is_printed_before_the_next_is_read() {
    let dir = Dir::new();
    let mut child = running(&dir, "dedup").spawn().unwrap();
    let _limit = time_limit(&child);
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    for text in ["a\n", "b\nb\n", "a\nc\n"] {
        input.write_all(text.as_bytes()).unwrap();
        output.read_line(&mut line).unwrap();
    }
    assert_eq!(line, "a\nb\nc\n");
    // A line may come in parts.
    for part in ["d", "e", "\nde\n", "end"] {
        input.write_all(part.as_bytes()).unwrap();
    }
    output.read_line(&mut line).unwrap();
    drop(input);
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "a\nb\nc\nde\nend\n");
    let printed = stderr(&child.wait_with_output().unwrap());
    assert_parts(&printed, &["8 lines, 5 not there before, 3 dropped"]);
}

/// A reader that stops early is not an error, but lines that it did not read must not count as
/// seen.
#[cfg(unix)]
#[test]
fn a_closed_pipe_ends_quietly_unless_there_is_a_state() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 200_000));
    dir.ok_with("dedup -q --state seen", "a\n");
    let before = dir.read("seen");
    let closed = |args: &str| {
        let mut child = running(&dir, args).spawn().unwrap();
        let _limit = time_limit(&child);
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        (output.status.code(), stderr(&output))
    };
    assert_eq!(closed("dedup keys"), (Some(0), String::new()));
    assert_eq!(closed("dedup --count keys -q"), (Some(0), String::new()));
    for (args, part) in [
        ("dedup keys --state seen", "cannot write: Broken pipe"),
        ("dedup --count keys --state seen", "its reader is gone: --state is as it was"),
    ] {
        let (code, message) = closed(args);
        assert_eq!(code, Some(2), "{args}");
        assert_parts(&message, &[&format!("error: standard output: {part}")]);
        assert!(dir.read("seen") == before, "{args}");
    }
}

/// What could not be written is not taken for seen, however much of it there was: some is written
/// when it is read, some when there is enough of it, and some at the end.
#[cfg(target_os = "linux")]
#[test]
fn a_full_device_leaves_the_state_as_it_was() {
    let dir = Dir::new();
    dir.ok_with("dedup -q --state seen", "a\n");
    let before = dir.read("seen");
    for bytes in [2, PIECE - 16, PIECE, PIECE + 16, 2 * PIECE, 2 * PIECE + 16, 9 * PIECE] {
        let keys: String = (0..bytes / 16).map(|i| format!("{i:015}\n")).collect();
        dir.write("keys", if bytes < 16 { "b\n" } else { &keys });
        for args in ["dedup", "dedup --duplicates", "dedup --count"] {
            let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
            let args = format!("{args} -q keys keys --state seen");
            let output = running(&dir, &args).stdout(full).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{args}: {bytes}");
            assert_parts(&stderr(&output), &["error: standard output: cannot write: "]);
            assert!(dir.read("seen") == before, "{args}: {bytes}");
        }
    }
}

/// A run that is killed leaves the old state or the new one.
#[cfg(unix)]
#[test]
fn killed_at_any_moment_the_state_is_whole() {
    const KILLS: u32 = 60;
    let dir = Dir::new();
    let mut random = Random(77);
    dir.write("keys", lines("key", 20_000));
    let states = ["--keys 2M", ""].map(|options| {
        dir.ok_with(&format!("dedup -q {options} --state old"), "a\n");
        let old = dir.read("old");
        dir.ok("dedup -q --count --state old keys");
        let new = dir.read("old");
        fs::remove_file(dir.path("old")).unwrap();
        (old, new)
    });
    let (mut killed, mut while_writing, mut finished) = (0, 0, 0);
    while killed < KILLS {
        let (old, new) = &states[killed as usize % 2];
        dir.write("seen", old);
        let mut child = running(&dir, "dedup -q --count --state seen keys").spawn().unwrap();
        crate::crash::wait_for_temporary(dir.0.path(), &mut child);
        std::thread::sleep(std::time::Duration::from_micros(random.next() % 3_000));
        let is_writing = crate::crash::written(dir.0.path(), &child).is_some();
        child.kill().unwrap();
        let done = child.wait().unwrap().success();
        let found = dir.read("seen");
        assert!(&found == old || &found == new, "{} bytes of neither", found.len());
        assert!(!done || &found == new);
        if done {
            finished += 1;
            assert!(finished < 20 * KILLS, "nearly every run finished before it was killed");
            continue;
        }
        killed += 1;
        while_writing += u32::from(is_writing);
        for name in dir.names().iter().filter(|name| name.starts_with(".blocked-bloom-")) {
            fs::remove_file(dir.path(name)).unwrap();
        }
    }
    assert!(while_writing >= 10, "{while_writing} of {killed} were killed while they wrote");
}

/// What was stated, and some megabytes for reading, writing and the program itself, is enough; less
/// is an error.
#[cfg(target_os = "linux")]
#[test]
fn no_more_memory_is_taken_than_was_stated() {
    let dir = Dir::new();
    dir.write("keys", lines("key", 1_000_000));
    let limited = |kib: u32, args: &str| {
        let script = format!("ulimit -d {kib}; exec \"$TOOL\" dedup {args}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).env("TOOL", TOOL).current_dir(dir.0.path());
        command.stdin(Stdio::null()).output().unwrap()
    };
    // The peak when all lines were printed, of a run that still waits for its standard input.
    let peak = |args: &str| {
        let mut child = running(&dir, &format!("dedup -q {args} keys -")).spawn().unwrap();
        let _limit = time_limit(&child);
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while line != "key999999\n" {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0);
        }
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        assert!(child.wait_with_output().unwrap().status.success());
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
    };
    const OVERHEAD: u64 = 12 << 20;
    for mib in [1, 16, 64] {
        let memory = format!("-q --count --memory {mib}MiB --state seen");
        // The second time from the state.
        for expected in ["1000000\n", "0\n"] {
            let output = limited((mib << 10) + (OVERHEAD >> 10) as u32, &format!("{memory} keys"));
            let found = text(output.stdout.clone());
            assert_eq!(output.status.code(), Some(0), "{mib}: {}", stderr(&output));
            assert!(found.len() == expected.len() || mib == 1, "{mib}: {found}");
        }
        let output = limited((mib << 10) / 2, &format!("{memory}2 -q keys"));
        assert_eq!(output.status.code(), Some(2), "{mib}");
        fs::remove_file(dir.path("seen")).unwrap();
    }
    for mib in [4, 16, 64] {
        let most = peak(&format!("--memory {mib}MiB"));
        assert!(most <= (mib << 20) + OVERHEAD, "{most} bytes for {mib} MiB");
        assert!(most >= mib << 20, "{most} bytes for {mib} MiB");
    }
    // A line without an end takes no more than the longest one.
    let output = limited(40 << 10, "-q --keys 1K < /dev/zero");
    assert_eq!(output.status.code(), Some(2));
    assert_parts(&stderr(&output), &["standard input: line 1: 16777217 bytes"]);
}

#[test]
fn apostrophes_that_enclose_fields_are_refused() {
    let dir = Dir::new();
    let args = "dedup -q --field 2 --delimiter ,";
    for input in ["1,'Smith, John'\n2,'Smith, Anna'\n", "'Smith, John',1\n'Smith, Anna',1\n"] {
        let message = dir.fails_with(args, input);
        assert_parts(&message, &["line 1: field", "begins with a quote ('Smith)", "--raw"]);
        assert_eq!(dir.run_with(&format!("{args} --raw"), input).status.code(), Some(0));
    }
    for input in ["1,'Smith'\n2,'Jones'\n", "1,x,'s\n2,y,'t\n", "1,it's\n2,o'clock\n"] {
        assert_eq!(text(dir.ok_with(args, input)), input);
    }
}

#[test]
fn a_record_that_is_too_long_may_have_an_open_quote() {
    let dir = Dir::new();
    let input = format!("1,\"{}", "a,\n".repeat(1 << 20));
    let message = dir.fails_with("dedup -q --csv --field 1 --max-line-bytes 1MiB", input);
    assert_parts(&message, &["no end of the record yet", "close its quote, or give a larger"]);
    assert!(!message.contains("--null"), "{message}");
}

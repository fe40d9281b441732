//! Keys that are not text: integers and UUIDs in filters of programs, and their line numbers. Then
//! filters that are read in the wrong format, and the command line itself.

use blocked_bloom::FilterOptions;

use crate::fixtures::committed;
use crate::tool::{Dir, assert_parts, lines, stderr, text};

/// A filter of these keys, as a program builds it.
fn filter<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = K>) -> Vec<u8> {
    let mut builder = FilterOptions::default().builder();
    keys.into_iter().for_each(|key| builder.insert(key).unwrap());
    builder.finish().unwrap().to_bytes()
}

#[test]
fn integers_of_a_program_are_found_by_their_type() {
    let dir = Dir::new();
    dir.write("int64", filter((0..1_000_i64).map(|i| (i - 500).to_le_bytes())));
    dir.write("int32", filter((0..1_000_i32).map(|i| (i - 500).to_le_bytes())));
    dir.write("int16-be", filter((0..1_000_i16).map(|i| (i - 500).to_be_bytes())));
    dir.write("uint8", filter((0..200_u8).map(|i| [i])));
    let numbers = "5\n-7\n499\n";
    for name in ["int64", "int32", "int16-be"] {
        let found = dir.ok_with(&format!("query {name} --type {name}"), numbers);
        assert_eq!(text(found), numbers, "{name}");
        // As text they are absent, which is doubtful.
        let output = dir.run_with(&format!("query {name}"), numbers);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        let said = stderr(&output);
        assert_parts(&said, &["no key is found as text, and 3 of the first 3 as "]);
        assert_parts(&said, &[&format!("give --type {name} if")]);
    }
    assert_eq!(text(dir.ok_with("query uint8 --type uint8", "199\n")), "199\n");
    assert_eq!(text(dir.ok_with("query int64 --type INT64 --absent", "5\n500000\n")), "500000\n");
    // Lines of Windows: the carriage return is not part of a number.
    let output = dir.run_with("query int64 --type int64", "5\r\n-7\r\n");
    assert_eq!((&output.stdout[..], stderr(&output)), (&b"5\r\n-7\r\n"[..], String::new()));
    // A line that is not an integer of this type is refused, with its number.
    for (name, line) in [("int32", "2147483648000"), ("int64", "1.5"), ("int8", "300")] {
        let message = dir.fails_with(&format!("query int64 --type {name}"), format!("5\n{line}\n"));
        assert_parts(&message, &["standard input: line 2: found '", "expected a whole number of"]);
    }
}

#[test]
fn uuids_of_a_program_are_found_by_their_type() {
    let dir = Dir::new();
    let id = |i: u128| (i * 0x0123_4567_89ab_cdef_0011).to_be_bytes();
    dir.write("ids", filter((1..500).map(id)));
    let shown = format!("{:032x}", u128::from_be_bytes(id(7)));
    let hyphens = [&shown[..8], &shown[8..12], &shown[12..16], &shown[16..20], &shown[20..]];
    let keys = format!("{shown}\n{}\n", hyphens.join("-").to_uppercase());
    assert_eq!(text(dir.ok_with("query ids --type uuid", &keys)), keys);
    let output = dir.run_with("query ids", &keys);
    assert_eq!(output.status.code(), Some(1));
    assert_parts(&stderr(&output), &["2 of the first 2 as uuid: give --type uuid"]);
    assert_parts(&dir.fails_with("query ids --type uuid", "7\n"), &["line 1", "UUID of 32 hex"]);
}

#[test]
fn a_hint_is_given_only_where_no_key_is_found_as_text() {
    let dir = Dir::new();
    dir.ok_with("build - -o f -q", "5\n6\n");
    assert_eq!(stderr(&dir.run_with("query f", "5\n7000\n")), "");
    assert_eq!(stderr(&dir.run_with("query f", "7000\n8000\n")), "");
    dir.write("ids", filter((0..1_000_u64).map(u64::to_le_bytes)));
    for input in ["apple\n", "5\napple\n", ""] {
        assert_eq!(stderr(&dir.run_with("query ids", input)), "", "{input}");
    }
    assert_eq!(stderr(&dir.run_with("query ids --hex", "0500000000000000\n")), "");
    // A filter that has some of the numbers as text, behind the first batch.
    dir.write(
        "both",
        filter(["abc", "123456"].map(str::as_bytes).into_iter().chain([&[5; 8][..]])),
    );
    let many = lines("", 5_000) + "123456\n";
    let output = dir.run_with("query both", many);
    assert_parts(&text(output.stdout.clone()), &["123456\n"]);
    assert!(!stderr(&output).contains("--type"), "{}", stderr(&output));
}

#[test]
fn a_hint_is_given_for_hex_digits_and_for_text_that_is_looked_up_as_numbers() {
    let dir = Dir::new();
    let digests = "00ffab12cd\n9f86d081ea\n";
    dir.ok_with("build - -o digests -q --hex", digests);
    assert_eq!(text(dir.ok_with("query digests --type hex", digests)), digests);
    let output = dir.run_with("query digests", digests);
    let part = "no key is found as text, and 2 of the first 2 as hex: give --type hex if";
    assert_parts(&stderr(&output), &[part]);
    // Built as text, and looked up as numbers or bytes.
    for options in ["--type int64", "--type uint8-be", "--hex"] {
        let numbers = if options.contains('8') { "12\n34\n" } else { "1234\n5678\n" };
        dir.ok_with("build - -o text -q", numbers);
        let output = dir.run_with(&format!("query text {options}"), numbers);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{options}");
        let part = "no key is found as given, and 2 of the first 2 as text: give --type text if";
        assert_parts(&stderr(&output), &[part]);
    }
    assert_eq!(text(dir.ok_with("query text --type text", "1234\n")), "1234\n");
    dir.ok_with("build - -o ids -q --type int32", "1234\n5678\n");
    let output = dir.run_with("query ids --type int64", "1234\n5678\n");
    assert_parts(&stderr(&output), &["as given, and 2 of the first 2 as int32: give --type int32"]);
}

#[test]
fn a_hint_is_given_for_blanks_and_quotes_around_keys() {
    let dir = Dir::new();
    dir.ok_with("build - -o f -q", "apple\nbanana\n");
    for lines in ["\"apple\"\n\"banana\"\n", " apple\nbanana\t\n", "\"apple\"\r\nbanana \r\n"] {
        let output = dir.run_with("query f", lines);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{lines}");
        let part = "no key is found as text, and 2 of the first 2 as trimmed: give --type trimmed";
        assert_parts(&stderr(&output), &[part]);
        assert_eq!(text(dir.ok_with("query f --type trimmed", lines)), lines);
        dir.ok_with("build - -o g -q --type trimmed", lines);
        assert!(dir.read("g") == dir.read("f"));
    }
    dir.ok_with("build - -o h -q --type trimmed", "\"\n\"a\n\"\"\n");
    assert_eq!(text(dir.ok_with("query h", "\"\n\"a\n\n\"\"\n")), "\"\n\"a\n\n");
}

#[test]
fn filters_of_typed_keys_are_built() {
    let dir = Dir::new();
    let numbers = lines("", 1_000);
    for format in ["native", "compact", "ribbon", "removable"] {
        dir.ok_with(&format!("build - -o f -q --type int64 --format {format}"), &numbers);
        let query = format!("query f --format {format}");
        assert_eq!(text(dir.ok_with(&format!("{query} --type int64"), "5\n")), "5\n");
        let output = dir.run_with(&query, "5\n6\n7\n");
        assert_parts(&stderr(&output), &["give --type int64"]);
    }
    dir.ok_with("build - -o f -q --type int64", &numbers);
    assert!(dir.read("f") == filter((0..1_000_u64).map(u64::to_le_bytes)));
    let uuid = "00112233-4455-6677-8899-aabbccddeeff\n";
    dir.ok_with("build - -o u -q --type uuid --format parquet-filter", uuid);
    assert_eq!(text(dir.ok_with("query u --type uuid", uuid)), uuid);
    for (args, part) in [
        ("build - -o g --type float", "--type: not for native (supported: byte-array, uuid, int64"),
        ("build - -o g --type int64 --hex", "--type: not with --hex"),
        ("build - -o g --type int16 --format parquet-filter", "--type: not for parquet-filter"),
        ("build - -o g --type int64 --format guava", "--type is for "),
        ("query f --type double", "--type: not for native"),
    ] {
        assert_parts(&dir.fails_with(args, "5\n"), &[part]);
    }
    let output = dir.run_with("query f --type decimal", "5\n");
    assert_parts(&stderr(&output), &["'--type <TYPE>': expected one of byte-array, uuid, int64"]);
}

#[test]
fn the_first_bad_key_is_reported_and_keys_before_it_are_answered() {
    let dir = Dir::new();
    dir.ok_with("build - -o f -q --format parquet-filter --type int32", lines("", 10_000));
    // The second line has too few bytes; the third has no hex digits, which is noticed first.
    let output = dir.run_with("query f --type int32 --hex", "05000000\n05\nzz\n");
    assert_eq!((output.status.code(), text(output.stdout.clone())), (Some(2), "05000000\n".into()));
    assert_parts(&stderr(&output), &["line 2: found 1 bytes"]);
    let long = format!("5\nx\n{}\n", "9".repeat(2_000));
    let output = dir.run_with("query f --type int32 --max-key-bytes 1000", &long);
    assert_eq!(text(output.stdout.clone()), "5\n");
    assert_parts(&stderr(&output), &["line 2: found 'x'"]);
    // In a later batch, where keys before it fill the batch partly.
    let many = lines("", 9_000) + "x\n" + &lines("", 10);
    let output = dir.run_with("query f --type int32", many);
    assert_eq!(text(output.stdout.clone()).lines().count(), 9_000);
    assert_parts(&stderr(&output), &["line 9001: found 'x'"]);
    let output = dir.run_with("query f --type int32 --count", lines("", 5_000) + "x\n");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}

#[test]
fn a_filter_of_another_format_is_named() {
    let dir = Dir::new();
    dir.ok_with("build - -o f -q", lines("key", 1_000));
    dir.copy(&committed("rocksdb").join("bloom_b10_n5000_str.sst"), "table.sst");
    for command in ["diagnose f", "info f --format cassandra", "query f --format guava"] {
        let message = dir.fails_with(command, "key1\n");
        assert_parts(&message, &["f: its bytes are those of format native, not of "]);
        assert!(!message.contains("rebuild") && !message.contains("probes"), "{message}");
    }
    let message = dir.fails_with("diagnose table.sst", "key1\n");
    assert_parts(&message, &["table.sst: its bytes are those of format rocksdb-sst, not of cass"]);
    dir.ok("info f --format native");
}

#[test]
fn an_unknown_option_names_the_commands_that_have_it() {
    let dir = Dir::new();
    let said = stderr(&dir.run("query f --json"));
    assert_parts(&said, &["unexpected argument '--json'", "tip: '--json' is an option of info"]);
    assert!(!said.contains("-- --json"), "{said}");
    let said = stderr(&dir.run("build f --sed"));
    assert_parts(&said, &["tip: '--sed' is an option of planes query"]);
    let said = stderr(&dir.run("build f --no-such"));
    assert!(!said.contains("-- --no-such") && said.contains("'--no-such'"), "{said}");
}

#[test]
fn completions_and_manual_pages_are_printed() {
    let dir = Dir::new();
    for (shell, part) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef blocked-bloom"),
        ("fish", "complete -c blocked-bloom"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "edit:completion"),
    ] {
        let script = text(dir.ok(&format!("completions {shell}")));
        assert_parts(&script, &[part, "dedup", "max-line-bytes"]);
    }
    let page = text(dir.ok("man"));
    assert_parts(&page, &[".TH blocked-bloom 1", "EXIT STATUS", "dedup"]);
    assert_parts(&text(dir.ok("man query")), &[".TH blocked-bloom-query 1", "\\-\\-absent"]);
    assert_parts(&dir.fails("man quary"), &["man quary: no such command", "build, query"]);
}

#[test]
fn a_hint_is_given_if_text_is_found_by_chance() {
    let dir = Dir::new();
    let numbers = lines("", 4_096);
    dir.write("ids", filter((0..100_000_u64).map(u64::to_le_bytes)));
    let output = dir.run_with("query ids", &numbers);
    assert!(!output.stdout.is_empty(), "no false positive among 4,096 keys");
    assert_parts(&stderr(&output), &["are found as text, and ", "give --type int64 if"]);
    // No hint for keys of text, some of which are found as numbers by chance.
    dir.ok_with("build - -o text -q", lines("", 100_000));
    for keys in [numbers, (200_000..204_096).map(|i| format!("{i}\n")).collect()] {
        assert_eq!(stderr(&dir.run_with("query text", keys)), "");
    }
}

#[test]
fn a_uuid_has_16_bytes_and_an_unsigned_number_no_sign() {
    let dir = Dir::new();
    let short = format!("0x{}\n", "12".repeat(15));
    let message = dir.fails_with("build - -o f --type uuid", &short);
    assert_parts(&message, &["line 1: found '0x12", "a UUID of 32 hex digits"]);
    let same =
        "{00112233-4455-6677-8899-AABBCCDDEEFF}\nurn:uuid:00112233445566778899aabbccddeeff\n";
    dir.ok_with("build - -o f -q --type uuid", same);
    assert_eq!(text(dir.ok_with("query f --type uuid", same)), same);
    dir.ok_with("build - -o signed -q --type int8", "-5\n");
    for name in ["uint8", "UINT64", "uint16-be"] {
        let message = dir.fails_with(&format!("build - -o f --type {name}"), "5\n-5\n");
        assert_parts(&message, &["line 2: found '-5'", "bits without a sign"]);
    }
    for (name, found, range) in [
        ("int8", "128", "-128 to 127"),
        ("int8-be", "-129", "-128 to 127"),
        ("uint8", "256", "0 to 255"),
        ("int64", "9223372036854775808", "to 9223372036854775807"),
        ("uint64", "18446744073709551616", "0 to 18446744073709551615"),
    ] {
        let message = dir.fails_with(&format!("query signed --type {name}"), format!("{found}\n"));
        assert_parts(&message, &["line 1: found '", found, range]);
    }
    let large = "18446744073709551615\n";
    dir.ok_with("build - -o large -q --type uint64", large);
    assert_parts(&stderr(&dir.run_with("query large", large)), &["give --type uint64 if"]);
}

#[test]
fn carriage_returns_are_no_part_of_integers() {
    let dir = Dir::new();
    dir.ok_with("build - -o f -q --type int64", "5\r\n");
    let output = dir.run_with("query f --type int64", "5\r\n");
    assert_eq!((text(output.stdout.clone()), stderr(&output)), ("5\r\n".into(), String::new()));
}

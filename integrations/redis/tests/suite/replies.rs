//! Every command's replies, by version of the protocol.

use crate::server::{Server, call, reply};

/// Sends commands, a word or a quoted text each, and compares replies.
fn compare(connection: &mut redis::Connection, table: &[(&str, &str)]) {
    for (command, expected) in table {
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(reply(connection, &words), *expected, "{command}");
    }
}

const TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn replies_of_version_2() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    compare(
        &mut connection,
        &[
            // Not there.
            ("BF.EXISTS f a", "0"),
            ("BF.MEXISTS f a b", "[0 0]"),
            ("BF.CARD f", "0"),
            ("BF.INFO f", "-ERR not found"),
            ("BF.INFO f ITEMS", "-ERR not found"),
            ("BF.SCANDUMP f 0", "-ERR not found"),
            ("BF.INSERT f NOCREATE ITEMS a", "-ERR not found"),
            ("BF.LOADCHUNK f 100 data", "-ERR not found"),
            ("EXISTS f", "0"),
            // RESERVE.
            ("BF.RESERVE f 0.01 1000", "OK"),
            ("TYPE f", "BlkdBloom"),
            ("BF.RESERVE f 0.01 1000", "-ERR item exists"),
            ("BF.RESERVE g zero 1000", "-ERR bad error rate"),
            ("BF.RESERVE g 0 1000", "-ERR error rate must be in the range (0.000000, 1.000000)"),
            ("BF.RESERVE g 1 1000", "-ERR error rate must be in the range (0.000000, 1.000000)"),
            ("BF.RESERVE g -0.5 1000", "-ERR error rate must be in the range (0.000000, 1.000000)"),
            ("BF.RESERVE g inf 1000", "-ERR error rate must be in the range (0.000000, 1.000000)"),
            ("BF.RESERVE g nan 1000", "-ERR bad error rate"),
            ("BF.RESERVE g 1e-300 1000", "-ERR could not create filter"),
            ("BF.RESERVE g 0.01 many", "-ERR bad capacity"),
            ("BF.RESERVE g 0.01 1.5", "-ERR bad capacity"),
            ("BF.RESERVE g 0.01 99999999999999999999", "-ERR bad capacity"),
            ("BF.RESERVE g 0.01 0", "-ERR capacity must be in the range [1, 1073741824]"),
            ("BF.RESERVE g 0.01 -1", "-ERR capacity must be in the range [1, 1073741824]"),
            ("BF.RESERVE g 0.01 1073741825", "-ERR capacity must be in the range [1, 1073741824]"),
            (
                "BF.RESERVE g 0.01 9223372036854775807",
                "-ERR capacity must be in the range [1, 1073741824]",
            ),
            ("BF.RESERVE g 0.01 100 EXPANSION", "-ERR no expansion"),
            ("BF.RESERVE g 0.01 100 EXPANSION two", "-ERR bad expansion"),
            (
                "BF.RESERVE g 0.01 100 EXPANSION -1",
                "-ERR expansion must be in the range [0, 32768]",
            ),
            (
                "BF.RESERVE g 0.01 100 EXPANSION 32769",
                "-ERR expansion must be in the range [0, 32768]",
            ),
            ("BF.RESERVE g 0.01 100 NONSCALING EXPANSION 2", "-Nonscaling filters cannot expand"),
            ("BF.RESERVE g 0.01 100 EXPANSION 2 NONSCALING", "-Nonscaling filters cannot expand"),
            ("BF.RESERVE g 0.01 100 SCALING", "-Unknown argument received"),
            ("EXISTS g", "0"),
            // ADD, EXISTS.
            ("BF.ADD f a", "1"),
            ("BF.ADD f a", "0"),
            ("BF.EXISTS f a", "1"),
            ("BF.EXISTS f b", "0"),
            ("BF.MADD f a b c b", "[0 1 1 0]"),
            ("BF.MEXISTS f a b c d", "[1 1 1 0]"),
            ("bf.mexists f d", "[0]"),
            ("BF.CARD f", "3"),
            // A filter by ADD, MADD and INSERT.
            ("BF.ADD by-add a", "1"),
            ("BF.INFO by-add CAPACITY", "[100]"),
            ("BF.MADD by-madd a a", "[1 0]"),
            ("BF.INFO by-madd EXPANSION", "[2]"),
            ("BF.INSERT by-insert ITEMS a b a", "[1 1 0]"),
            ("BF.INSERT by-insert capacity 7 error 0.5 expansion 4 nocreate items c", "[1]"),
            ("BF.INFO by-insert CAPACITY", "[100]"),
            ("BF.INSERT i CAPACITY 50 ERROR 0.001 EXPANSION 4 ITEMS a", "[1]"),
            ("BF.INFO i capacity", "[50]"),
            ("BF.INFO i expansion", "[4]"),
            ("BF.INSERT x CAPACITY 0 ITEMS a", "-Bad capacity"),
            ("BF.INSERT x CAPACITY 1073741825 ITEMS a", "-Bad capacity"),
            ("BF.INSERT x CAPACITY many ITEMS a", "-Bad capacity"),
            ("BF.INSERT x ERROR 0 ITEMS a", "-Bad error rate"),
            ("BF.INSERT x ERROR 1 ITEMS a", "-Bad error rate"),
            ("BF.INSERT x ERROR low ITEMS a", "-Bad error rate"),
            ("BF.INSERT x EXPANSION -1 ITEMS a", "-Bad expansion"),
            ("BF.INSERT x EXPANSION 32769 ITEMS a", "-Bad expansion"),
            ("BF.INSERT x EXPANSION two ITEMS a", "-Bad expansion"),
            ("BF.INSERT x WITH ITEMS a", "-Unknown argument received"),
            ("BF.INSERT x ERROR 1e-300 ITEMS a", "-ERR could not create filter"),
            ("EXISTS x", "0"),
            // What does not grow.
            ("BF.RESERVE n 0.01 2 NONSCALING", "OK"),
            ("BF.INFO n EXPANSION", "[nil]"),
            ("BF.MADD n a b a c d", "[1 1 0 -ERR non scaling filter is full]"),
            ("BF.ADD n a", "0"),
            ("BF.ADD n c", "-ERR non scaling filter is full"),
            ("BF.MEXISTS n a b c", "[1 1 0]"),
            ("BF.CARD n", "2"),
            ("COPY n copied", "1"),
            ("BF.INFO copied EXPANSION", "[nil]"),
            ("BF.ADD copied c", "-ERR non scaling filter is full"),
            ("BF.RESERVE m 0.01 1 EXPANSION 0", "OK"),
            ("BF.MADD m a b", "[1 -ERR non scaling filter is full]"),
            ("BF.INSERT o CAPACITY 1 NONSCALING ITEMS a b", "[1 -ERR non scaling filter is full]"),
            // Growth that the core does not have.
            ("BF.RESERVE one 0.01 10 EXPANSION 1", "OK"),
            ("BF.INFO one EXPANSION", "[2]"),
            ("BF.RESERVE most 0.01 10 EXPANSION 32768", "OK"),
            ("BF.INFO most EXPANSION", "[16]"),
            // INFO of an empty filter.
            ("BF.INFO most FILTERS", "[1]"),
            ("BF.INFO most ITEMS", "[0]"),
            ("BF.INFO most CAPACITY", "[10]"),
            ("BF.INFO most COLOUR", "-Invalid information value"),
            // SCANDUMP.
            ("BF.SCANDUMP f one", "-Second argument must be numeric"),
            ("BF.SCANDUMP f -1", "[0 \"\"]"),
            ("BF.SCANDUMP f 9223372036854775807", "[0 \"\"]"),
            ("BF.SCANDUMP f -9223372036854775808", "[0 \"\"]"),
            // LOADCHUNK: `loading.rs` has the rest.
            ("BF.LOADCHUNK f one data", "-ERR Second argument must be numeric"),
            ("BF.LOADCHUNK f 1 data", "-ERR received bad data"),
            ("BF.LOADCHUNK f 5 data", "-ERR received bad data"),
            ("BF.LOADCHUNK l 1 data", "-ERR received bad data"),
            ("EXISTS l", "0"),
        ],
    );
    let info = reply(&mut connection, &["BF.INFO", "f"]);
    let mut expected = "Number of filters 1 Number of items inserted 3 Expansion rate 2]";
    let on_valkey = info.contains("Error rate");
    if on_valkey {
        expected = "Tightening ratio \"0.85\" Max scaled capacity 134217727000]";
    }
    let server_info: String = call(&mut connection, &["INFO", "server"]);
    assert_eq!(on_valkey, server_info.contains("server_name:valkey"));
    assert!(info.starts_with("[Capacity 1000 Size ") && info.ends_with(expected), "{info}");
    assert!(server.is_sound());
}

#[test]
fn replies_of_version_3() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect_3();
    compare(
        &mut connection,
        &[
            ("BF.EXISTS f a", "false"),
            ("BF.MEXISTS f a b", "[false false]"),
            ("BF.ADD f a", "true"),
            ("BF.ADD f a", "false"),
            ("BF.MADD f a b", "[false true]"),
            ("BF.INSERT f ITEMS b c", "[false true]"),
            ("BF.EXISTS f a", "true"),
            ("BF.MEXISTS f a d", "[true false]"),
            ("BF.CARD f", "3"),
            ("BF.RESERVE n 0.01 1 NONSCALING", "OK"),
            ("BF.MADD n a b", "[true -ERR non scaling filter is full]"),
        ],
    );
    let info = reply(&mut connection, &["BF.INFO", "f"]);
    assert!(info.starts_with("[Capacity: 100 Size: "), "{info}");
    let more = ["Tightening ratio: double(0.85)", "Error rate: double(0.01)"];
    match more.map(|field| info.contains(field)) {
        [false, false] => {
            assert!(info.ends_with(" Expansion rate: 2]"), "{info}");
            compare(
                &mut connection,
                &[
                    ("BF.INFO f CAPACITY", "[Capacity: 100]"),
                    ("BF.INFO f ITEMS", "[Number of items inserted: 3]"),
                    ("BF.INFO n EXPANSION", "[Expansion rate: nil]"),
                ],
            );
        }
        // Valkey's: each field is the value itself.
        all => {
            assert_eq!(all, [true, true], "{info}");
            assert_eq!(redis::cmd("BF.INFO").arg("f").arg("ITEMS").query(&mut connection), Ok(3));
        }
    }
}

#[test]
fn to_keys_of_other_types() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    compare(&mut connection, &[("SET string 1", "OK"), ("LPUSH list 1", "1")]);
    for name in ["string", "list"] {
        for command in [
            "BF.RESERVE _ 0.01 100",
            "BF.ADD _ a",
            "BF.MADD _ a b",
            "BF.INSERT _ ITEMS a",
            "BF.INSERT _ NOCREATE ITEMS a",
            "BF.EXISTS _ a",
            "BF.MEXISTS _ a b",
            "BF.INFO _",
            "BF.INFO _ SIZE",
            "BF.CARD _",
            "BF.SCANDUMP _ 0",
            "BF.LOADCHUNK _ 1 data",
            "BF.LOADCHUNK _ 2 data",
        ] {
            compare(&mut connection, &[(&command.replace('_', name), TYPE)]);
        }
    }
    compare(&mut connection, &[("GET string", "\"1\""), ("LLEN list", "1")]);
    compare(
        &mut connection,
        &[("BF.ADD f a", "1"), ("GET f", TYPE), ("LPUSH f a", TYPE), ("SET f 1", "OK")],
    );
}

#[test]
fn to_too_few_and_too_many_arguments() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    for command in [
        "BF.RESERVE",
        "BF.RESERVE f",
        "BF.RESERVE f 0.01",
        "BF.RESERVE f 0.01 100 EXPANSION 2 NONSCALING NONSCALING",
        "BF.ADD",
        "BF.ADD f",
        "BF.ADD f a b",
        "BF.MADD f",
        "BF.EXISTS f",
        "BF.EXISTS f a b",
        "BF.MEXISTS f",
        "BF.INSERT",
        "BF.INSERT f ITEMS",
        "BF.INSERT f CAPACITY",
        "BF.INSERT f ERROR",
        "BF.INSERT f EXPANSION",
        "BF.INSERT f CAPACITY 10 ITEMS",
        "BF.INFO",
        "BF.INFO f SIZE ITEMS",
        "BF.CARD",
        "BF.CARD f g",
        "BF.SCANDUMP f",
        "BF.SCANDUMP f 0 1",
        "BF.LOADCHUNK f 1",
        "BF.LOADCHUNK f 1 data more",
        "BF.LOAD f",
        "BF.LOAD f data more",
    ] {
        let name = command.split(' ').next().unwrap();
        let expected =
            format!("-ERR wrong number of arguments for '{}' command", name.to_lowercase());
        compare(&mut connection, &[(command, &expected)]);
    }
    compare(&mut connection, &[("EXISTS f", "0")]);
}

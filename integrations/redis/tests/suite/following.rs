//! Commands of another server, or of the AOF: what RedisBloom and valkey-bloom accepted, and this
//! server must not lose.

use std::io::Write;

use blocked_bloom_formats::redis::{RedisError, RedisFilter};

use crate::loading::keys;
use crate::server::{Server, call, dump, info, items, load_chunk, reply, wait_until};

pub(crate) const AOF: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// A command as the AOF has it.
pub(crate) fn packed(words: &[&[u8]]) -> Vec<u8> {
    let mut packed = redis::cmd(std::str::from_utf8(words[0]).unwrap());
    packed.arg(&words[1..]);
    packed.get_packed_command()
}

/// A server that was ended, and whose AOF has these commands; none without a server.
pub(crate) fn server_with_aof(commands: &[Vec<u8>]) -> Option<Server> {
    let mut server = Server::start(&AOF)?;
    server.kill();
    let aof = server.folder().join("appendonlydir/appendonly.aof.1.incr.aof");
    let mut file = std::fs::File::options().append(true).open(aof).unwrap();
    commands.iter().for_each(|command| file.write_all(command).unwrap());
    Some(server)
}

/// A full filter of RedisBloom's, each item in a command of its own, as RedisBloom sends them:
/// also those with the reply 0, or the error that the filter is full.
#[test]
fn a_filter_that_redisbloom_filled_has_all_items() {
    let (mut commands, mut filters) = (Vec::new(), Vec::new());
    for number in 0..20 {
        let name = format!("fixed:{number}");
        let mut filter = RedisFilter::new(200, 0.2, None).unwrap();
        let reserve = ["BF.RESERVE", &name, "0.2", "200", "NONSCALING"];
        commands.push(packed(&reserve.map(str::as_bytes)));
        let mut accepted = Vec::new();
        for item in keys(1_000 * number, 1_000 * number + 600) {
            commands.push(packed(&[b"BF.ADD", name.as_bytes(), item.as_bytes()]));
            match filter.insert(&item) {
                Ok(_) => accepted.push(item),
                Err(RedisError::Full { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        filters.push((name, filter, accepted));
    }
    let Some(mut server) = server_with_aof(&commands) else { return };
    for words in [&[][..], &["--module-arguments", "REDISBLOOM_TYPE", "read"]] {
        server.start_again_with(&[&AOF[..], words].concat());
        let mut connection = server.connect();
        for (name, filter, accepted) in &filters {
            let hits = items(&mut connection, "BF.MEXISTS", name, accepted);
            let absent = hits.iter().filter(|hit| !**hit).count();
            assert_eq!(absent, 0, "{name}: absent of {} items", accepted.len());
            let expected = filter.dump().map(|(i, data)| (i, data.into_owned()));
            assert!(dump(&mut connection, name) == expected.collect::<Vec<_>>(), "{name}");
        }
        server.kill();
    }
}

#[test]
fn commands_that_other_modules_accept_are_followed() {
    let seed = *b"thirty-two bytes of a real seed.";
    let words: [&[&[u8]]; 11] = [
        // RedisBloom looks at the first letters, ignores other words of `BF.RESERVE`, and has had
        // other ranges.
        &[b"BF.INSERT", b"letters", b"c", b"10", b"er", b"0.3", b"exp", b"3", b"i", b"a"],
        &[b"BF.INSERT", b"fixed", b"nons", b"cap", b"7", b"item", b"a"],
        &[b"BF.RESERVE", b"word", b"0.01", b"100", b"GROWING"],
        &[b"BF.RESERVE", b"low", b"0.0000000001", b"1000"],
        &[
            b"BF.INSERT",
            b"large",
            b"CAPACITY",
            b"1073741825",
            b"ERROR",
            b"0.9",
            b"NONSCALING",
            b"ITEMS",
            b"a",
        ],
        &[b"BF.RESERVE", b"high", b"0.7", b"50", b"NONSCALING"],
        // valkey-bloom.
        &[
            b"BF.INSERT",
            b"valkey",
            b"CAPACITY",
            b"10",
            b"ERROR",
            b"0.1",
            b"TIGHTENING",
            b"0.5",
            b"SEED",
            &seed,
            b"EXPANSION",
            b"4000000000",
            b"ITEMS",
            b"a",
        ],
        &[
            b"BF.INSERT",
            b"valkey large",
            b"CAPACITY",
            b"1073741825",
            b"ERROR",
            b"0.9",
            b"TIGHTENING",
            b"0.5",
            b"SEED",
            &seed,
            b"NONSCALING",
            b"ITEMS",
            b"a",
        ],
        // Earlier versions of this module took these words, and sent them as they came if the
        // filter was there.
        &[b"BF.INSERT", b"valkey", b"BLOCKED", b"SEED", &seed, b"ITEMS", b"d"],
        // The other server could not make it either, and told this one nevertheless.
        &[b"BF.RESERVE", b"none", b"0.01", b"9000000000000000000"],
        &[b"BF.INSERT", b"none", b"CAPACITY", b"30", b"ITEMS", b"a"],
    ];
    let mut commands: Vec<Vec<u8>> = words.iter().map(|words| packed(words)).collect();
    let names: Vec<&str> =
        words.iter().map(|words| std::str::from_utf8(words[1]).unwrap()).collect();
    for name in &names {
        commands.push(packed(&[b"BF.MADD", name.as_bytes(), b"b", b"c"]));
    }
    let Some(mut server) = server_with_aof(&commands) else { return };
    server.start_again();
    let mut connection = server.connect();
    for name in names {
        let expected = if ["word", "low", "high"].contains(&name) { "[0 1 1]" } else { "[1 1 1]" };
        let text = reply(&mut connection, &["BF.MEXISTS", name, "a", "b", "c"]);
        assert_eq!(text, expected, "{name}");
    }
    assert_eq!(reply(&mut connection, &["BF.EXISTS", "valkey", "d"]), "1");
    for (name, field, value) in [
        ("letters", "CAPACITY", "10"),
        ("letters", "EXPANSION", "3"),
        ("fixed", "CAPACITY", "7"),
        ("fixed", "EXPANSION", "nil"),
        ("word", "CAPACITY", "100"),
        ("low", "CAPACITY", "1000"),
        ("large", "CAPACITY", "1073741825"),
        ("high", "CAPACITY", "50"),
        ("valkey", "EXPANSION", "4000000000"),
        ("valkey large", "CAPACITY", "1073741825"),
        ("none", "CAPACITY", "30"),
    ] {
        let text = reply(&mut connection, &["BF.INFO", name, field]);
        assert_eq!(text, format!("[{value}]"), "{name} {field}");
    }
    // RedisBloom creates the filter for this rate; here it is not reduced to 0.25 either.
    let expected = RedisFilter::new(50, 0.7, None).unwrap();
    let bytes = expected.links()[0].shape().bits() / 8;
    let shape = reply(&mut connection, &["BF.DEBUG", "high"]);
    assert!(shape.contains(&format!("bytes:{bytes} ")), "{shape}");
    // A client's commands are refused.
    for (words, error) in [
        (&["BF.INSERT", "x", "c", "10", "i", "a"][..], "-Unknown argument received"),
        (&["BF.RESERVE", "x", "0.01", "1073741825"], "-ERR capacity must be in the range"),
        (&["BF.RESERVE", "x", "0.01", "10", "GROWING"], "-Unknown argument received"),
        (&["BF.INSERT", "x", "EXPANSION", "32769"], "-Bad expansion"),
    ] {
        let text = reply(&mut connection, words);
        assert!(text.starts_with(error), "{words:?}: {text}");
    }
    assert!(server.is_sound());
}

#[test]
fn a_command_that_cannot_be_followed_ends_the_server() {
    for words in [
        &["BF.RESERVE", "f", "0.01", "0"][..],
        &["BF.RESERVE", "f", "x", "100"],
        &["BF.INSERT", "f", "EXPANSION", "-1", "ITEMS", "a"],
        &["BF.INSERT", "f", "EXPANSION", "32769", "BLOCKED", "ITEMS", "a"],
        &["BF.RESERVE", "f", "0.01", "100", "EXPANSION", "-1"],
        &["BF.INSERT", "f", "VALIDATE", "10", "ITEMS", "a"],
        &["BF.INSERT", "f", "ERROR", "0.000000001", "BLOCKED", "ITEMS", "a"],
        &["BF.INSERT", "f", "CAPACITY", "1073741825", "BLOCKED", "ITEMS", "a"],
        &["BF.LOADCHUNK", "f", "1", "not a header"],
        &["BF.LOAD", "f", "not a filter"],
    ] {
        let bytes: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let Some(mut server) = server_with_aof(&[packed(&bytes)]) else { return };
        let module = crate::server::module();
        assert!(!server.starts_again(module), "{words:?}\n{}", server.log());
        let log = server.log();
        let start = format!("{} of key `f`: ", words[0]);
        assert!(log.contains(&start) && log.contains(": ending, so that"), "{words:?}\n{log}");
    }
    // A key that is of something else, or not there, is as Redis's own commands have it.
    let odd = [
        packed(&[b"SET", b"text", b"a"]),
        packed(&[b"BF.ADD", b"text", b"a"]),
        packed(&[b"BF.RESERVE", b"f", b"0.01", b"100"]),
        packed(&[b"BF.RESERVE", b"f", b"0.01", b"100"]),
        packed(&[b"BF.INSERT", b"g", b"NOCREATE", b"ITEMS", b"a"]),
    ];
    let Some(mut server) = server_with_aof(&odd) else { return };
    server.start_again();
    assert_eq!(reply(&mut server.connect(), &["BF.EXISTS", "f", "a"]), "0");
    assert!(server.is_sound());
}

/// A replica, connected.
pub(crate) fn replica_of(server: &Server, options: &[&str]) -> Server {
    let port = server.port.to_string();
    let replica = Server::start(&[&["--replicaof", "127.0.0.1", &port], options].concat()).unwrap();
    let mut connection = replica.connect();
    wait_until("the replica is connected", || {
        let text: String = call(&mut connection, &["INFO", "replication"]);
        text.contains("master_link_status:up")
    });
    replica
}

/// Each item was acknowledged, with 1 or 0: an item that seems to be there is not sent, so that
/// the reader must have a filter of the same form to say so too.
#[test]
fn filters_keep_their_form_whatever_the_reader_would_make() {
    const TYPES: [&str; 3] = ["no", "read", "write"];
    let options = |word| ["--module-arguments", "REDISBLOOM_TYPE", word];
    for written in TYPES {
        let options_of_writer = [&AOF[..], &options(written)].concat();
        let Some(mut server) = Server::start(&options_of_writer) else { return };
        let replicas = TYPES.map(|word| replica_of(&server, &options(word)));
        let mut connection = server.connect();
        call::<()>(&mut connection, &["BF.RESERVE", "reserved", "0.25", "300", "NONSCALING"]);
        call::<()>(&mut connection, &["BF.RESERVE", "blocked", "0.25", "300", "BLOCKED"]);
        let names = ["reserved", "blocked", "added", "inserted"];
        let mut seemed = 0;
        for number in 0..290 {
            let item = [format!("item:{number}")];
            for name in &names[..3] {
                seemed +=
                    items(&mut connection, "BF.MADD", name, &item).iter().filter(|b| !**b).count();
            }
            let words = ["BF.INSERT", names[3], "ERROR", "0.25", "ITEMS", &item[0]];
            seemed += usize::from(reply(&mut connection, &words) == "[0]");
        }
        println!("{seemed} items seemed to be there, written with {written}");
        assert!(seemed > 20, "{seemed}");
        assert_eq!(call::<u64>(&mut connection, &["WAIT", "3", "60000"]), 3);
        let dumps = names.map(|name| dump(&mut connection, name));
        let is_own = |name: &str| name == "blocked" || written != "write";
        for (name, dump) in names.iter().zip(&dumps) {
            assert_eq!(dump[0].1.starts_with(b"\x89BBRDIS\n"), is_own(name), "{name}");
        }
        let all: Vec<String> = (0..290).map(|number| format!("item:{number}")).collect();
        let check = |server: &Server, what: &str| {
            let mut connection = server.connect();
            for (name, expected) in names.iter().zip(&dumps) {
                let hits = items(&mut connection, "BF.MEXISTS", name, &all);
                let absent = hits.iter().filter(|hit| !**hit).count();
                assert_eq!(absent, 0, "{name}: written with {written}, {what}: absent");
                let found = dump(&mut connection, name);
                assert!(found == *expected, "{name}: written with {written}, {what}");
            }
        };
        for (word, replica) in TYPES.iter().zip(&replicas) {
            check(replica, &format!("followed with {word}"));
        }
        for word in TYPES {
            server.kill();
            server.start_again_with(&[&AOF[..], &options(word)].concat());
            check(&server, &format!("read with {word}"));
        }
    }
}

/// Without memory for a filter of the AOF, the server does not go on.
#[test]
fn an_aof_that_there_is_no_memory_for_ends_the_server() {
    let options = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no"];
    let (mut ended, mut loaded) = (0, 0);
    for mebibytes in (60..124).step_by(8) {
        let Some(mut server) = Server::start(&options) else { return };
        let mut connection = server.connect();
        // A filter of 60 MB, which comes as `BF.LOAD`.
        let words = ["BF.INSERT", "f", "CAPACITY", "50000000", "TIGHTENING", "0.5", "ITEMS", "a"];
        assert_eq!(reply(&mut connection, &words), "[1]");
        call::<()>(&mut connection, &["BGREWRITEAOF"]);
        wait_until("the AOF is rewritten", || info(&mut connection, "aof_rewrites") == 1);
        wait_until("the AOF is rewritten", || {
            info(&mut connection, "aof_rewrite_in_progress") == 0
        });
        server.kill();
        server.start_again_with(&["--appendonly", "no"]);
        if !crate::hostile::limit_memory(&server, mebibytes << 20) {
            return;
        }
        let mut connection = server.connect();
        if redis::cmd("DEBUG").arg("LOADAOF").exec(&mut connection).is_err() {
            wait_until("the server has ended", || server.has_ended());
            ended += 1;
            continue;
        }
        let text = reply(&mut server.connect(), &["BF.EXISTS", "f", "a"]);
        assert_eq!(text, "1", "{mebibytes} MiB");
        loaded += 1;
    }
    println!("with less memory {ended} servers ended, with more {loaded} have the filter");
}

#[test]
fn a_replica_without_memory_for_a_dump_ends() {
    let Some(server) = Server::start(&[]) else { return };
    let mut replica = replica_of(&server, &[]);
    // Its first link has 479 MB, all zero pages.
    let filter = RedisFilter::new(400_000_000, 0.02, Some(2)).unwrap();
    let (_, header) = filter.dump().next().unwrap();
    if !crate::hostile::limit_memory(&replica, 300 << 20) {
        return;
    }
    let mut connection = server.connect();
    load_chunk(&mut connection, "f", 1, &header).unwrap();
    load_chunk(&mut connection, "f", 1 + (1 << 20), &[0; 1 << 20]).unwrap();
    wait_until("the replica has ended", || replica.has_ended());
    assert!(replica.log().contains("BF.LOADCHUNK"), "{}", replica.log());
}

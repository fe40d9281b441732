//! `compare.sh`, or `cargo run --locked --release --example migrate PATH-OF-REDISBLOOM.SO`: tests
//! the README's section about coming from RedisBloom with both modules.

#[path = "../tests/suite/server.rs"]
mod server;

use std::path::Path;
use std::time::Duration;

use redis::Connection;
use server::{Server, call, dump, info, items, load, load_chunk, module, reply};

const KEYS: usize = 20_000;

fn keys(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|i| format!("key:{i}")).collect()
}

/// Filters that were reserved, grew and do not grow.
const FILTERS: [(&str, &[&str], usize); 3] = [
    ("reserved", &["0.001", "30000"], KEYS),
    ("grown", &["0.01", "100"], KEYS),
    ("fixed", &["0.01", "20000", "NONSCALING"], 15_000),
];

fn fill(connection: &mut Connection) {
    for (name, arguments, count) in FILTERS {
        call::<()>(connection, &[&["BF.RESERVE", name], arguments].concat());
        items(connection, "BF.MADD", name, &keys(0, count));
    }
}

/// A filter's answers for present and absent keys, and its numbers.
fn state(connection: &mut Connection, name: &str) -> (Vec<bool>, Vec<String>) {
    let answers = items(connection, "BF.MEXISTS", name, &keys(0, 3 * KEYS));
    let facts = ["CAPACITY", "FILTERS", "ITEMS", "EXPANSION"];
    (answers, facts.map(|fact| reply(connection, &["BF.INFO", name, fact])).into())
}

fn main() {
    let path = std::env::args().nth(1).expect("the path of redisbloom.so");
    let theirs = Path::new(&path);
    let start = |options: &[&str]| Server::start_with(theirs, options).expect("redis-server");

    // An AOF without preamble.
    let mut server = start(&["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    let mut connection = server.connect();
    fill(&mut connection);
    let before = FILTERS.map(|(name, ..)| state(&mut connection, name));
    call::<()>(&mut connection, &["BGREWRITEAOF"]);
    while info(&mut connection, "aof_rewrite_in_progress")
        + info(&mut connection, "aof_rewrite_scheduled")
        > 0
    {
        std::thread::sleep(Duration::from_millis(10));
    }
    server.kill();
    assert!(server.starts_again(module()), "{}", server.log());
    let mut connection = server.connect();
    for ((name, ..), before) in FILTERS.iter().zip(&before) {
        assert!(state(&mut connection, name) == *before, "{name}");
    }
    println!(
        "an AOF without preamble: {} filters, {} answers each, all the same",
        FILTERS.len(),
        3 * KEYS
    );

    // SCANDUMP and LOADCHUNK, and back after more keys.
    let other = start(&[]);
    let mut other = other.connect();
    fill(&mut other);
    for (name, ..) in FILTERS {
        let (theirs, copy) = (dump(&mut other, name), format!("{name}:copy"));
        load(&mut connection, &copy, &theirs);
        assert!(dump(&mut connection, &copy) == theirs, "{name}");
        for connection in [&mut connection, &mut other] {
            let name = if reply(connection, &["EXISTS", &copy]) == "1" { &copy } else { name };
            let more = keys(5 * KEYS, 5 * KEYS + 4_000);
            assert!(
                items(connection, "BF.MADD", name, &more).iter().filter(|new| **new).count()
                    > 3_900
            );
        }
        assert!(dump(&mut connection, &copy) == dump(&mut other, name), "{name}");
        call::<()>(&mut other, &["DEL", name]);
        load(&mut other, name, &dump(&mut connection, &copy));
        assert!(state(&mut other, name) == state(&mut connection, &copy), "{name}");
    }
    println!(
        "SCANDUMP into LOADCHUNK, 4,000 more keys on both, and back: the same bytes and answers"
    );

    // This module's own filters.
    call::<()>(&mut connection, &["BF.ADD", "own", "a"]);
    let own = dump(&mut connection, "own");
    let error = load_chunk(&mut other, "own", 1, &own[0].1).unwrap_err();
    println!("RedisBloom, of an own filter's dump: {error}");
    assert_eq!(error, "ERR received bad data");

    // An RDB file, and an AOF with a preamble: RedisBloom reads the files that this module writes.
    for (what, options) in
        [("an RDB file", [].as_slice()), ("an AOF with a preamble", &["--appendonly", "yes"])]
    {
        let mut server = start(options);
        let mut connection = server.connect();
        fill(&mut connection);
        let mut before = FILTERS.map(|(name, ..)| state(&mut connection, name));
        save(&mut connection, options);
        // In the AOF after its preamble.
        let more = keys(5 * KEYS, 5 * KEYS + 500);
        if !options.is_empty() {
            items(&mut connection, "BF.MADD", "grown", &more);
            before = FILTERS.map(|(name, ..)| state(&mut connection, name));
        }
        server.kill();
        let options = [options, &["--module-arguments", "REDISBLOOM_TYPE", "write"]].concat();
        assert!(server.starts_again_with(module(), &options), "{}", server.log());
        let mut connection = server.connect();
        for ((name, ..), before) in FILTERS.iter().zip(&before) {
            assert!(state(&mut connection, name) == *before, "{what}: {name}");
        }
        // Keys that are added, filters that are made, by a command and by pieces; then back.
        items(&mut connection, "BF.MADD", "reserved", &keys(6 * KEYS, 6 * KEYS + 4_000));
        call::<()>(&mut connection, &["BF.RESERVE", "new", "0.001", "3000"]);
        items(&mut connection, "BF.MADD", "new", &keys(0, 10_000));
        let pieces = dump(&mut connection, "grown");
        load(&mut connection, "loaded", &pieces);
        let names = ["reserved", "grown", "fixed", "new", "loaded"];
        let there = names.map(|name| state(&mut connection, name));
        let payloads = names.map(|name| payload(&mut connection, name));
        save(&mut connection, &options[..options.len() - 3]);
        server.kill();
        let without = &options[..options.len() - 3];
        assert!(server.starts_again_with(theirs, without), "{}", server.log());
        let mut connection = server.connect();
        for ((name, there), bytes) in names.iter().zip(&there).zip(&payloads) {
            assert!(state(&mut connection, name) == *there, "{what}, back: {name}");
            // The same value, byte for byte; and `RESTORE` takes the other's.
            let theirs = payload(&mut connection, name);
            assert!(theirs == *bytes, "{what}, DUMP: {name}");
            let mut restore = redis::cmd("RESTORE");
            restore.arg(format!("{name}:restored")).arg(0).arg(bytes);
            restore.exec(&mut connection).unwrap();
        }
        println!("{what}: read, {} filters with their answers, and back", names.len());
    }

    // A replica of RedisBloom.
    let primary = start(&[]);
    let mut connection = primary.connect();
    fill(&mut connection);
    let port = primary.port.to_string();
    let options = ["--replicaof", "127.0.0.1", &port];
    let arguments = ["--module-arguments", "REDISBLOOM_TYPE", "read"];
    let replica = Server::start(&[&options[..], &arguments].concat()).expect("redis-server");
    let mut follower = replica.connect();
    while !call::<String>(&mut follower, &["INFO", "replication"]).contains("link_status:up") {
        std::thread::sleep(Duration::from_millis(10));
    }
    items(&mut connection, "BF.MADD", "grown", &keys(5 * KEYS, 5 * KEYS + 500));
    assert_eq!(call::<i64>(&mut connection, &["WAIT", "1", "60000"]), 1);
    for (name, ..) in FILTERS {
        assert!(state(&mut follower, name) == state(&mut connection, name), "replica: {name}");
    }
    // Filters that are made while it follows come as commands: also a full one.
    FILTERS.iter().for_each(|(name, ..)| call::<()>(&mut connection, &["DEL", name]));
    fill(&mut connection);
    let full = "for i = 1, 900 do redis.pcall('BF.ADD', KEYS[1], i) end";
    call::<()>(&mut connection, &["BF.RESERVE", "full", "0.2", "300", "NONSCALING"]);
    call::<()>(&mut connection, &["EVAL", full, "1", "full"]);
    assert_eq!(call::<i64>(&mut connection, &["WAIT", "1", "60000"]), 1);
    for name in FILTERS.map(|(name, ..)| name).into_iter().chain(["full"]) {
        assert!(dump(&mut follower, name) == dump(&mut connection, name), "replica: {name}");
    }
    println!("a replica of RedisBloom: {} filters with their answers", FILTERS.len());
}

/// Has the server write its file.
fn save(connection: &mut Connection, options: &[&str]) {
    call::<()>(connection, &[if options.is_empty() { "SAVE" } else { "BGREWRITEAOF" }]);
    while info(connection, "aof_rewrite_in_progress") + info(connection, "aof_rewrite_scheduled")
        > 0
    {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// `DUMP`.
fn payload(connection: &mut Connection, name: &str) -> Vec<u8> {
    redis::cmd("DUMP").arg(name).query(connection).unwrap()
}

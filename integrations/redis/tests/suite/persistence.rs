//! Filters after a restart, from RDB and AOF files, on a replica, and after the end of the server
//! at any moment.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::mpsc;
use std::time::Duration;

use blocked_bloom::KeyHasher;
use blocked_bloom_formats::redis::RedisFilter;
use redis::Connection;

use crate::server::{
    Server, call, dump, error_text, info, items, load, load_chunk, reply, stored_capacity,
    wait_until,
};

type Dump = Vec<(i64, Vec<u8>)>;

const LOADING: &str = "-ERR filter is not completely loaded";

fn keys(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|i| format!("key:{i}")).collect()
}

/// Names of filters, and their dumps; those of names that begin with "half" have come by half.
pub(crate) type Filters = BTreeMap<String, Dump>;

/// Filters of every kind, with and without a TTL.
pub(crate) fn fill(connection: &mut Connection) -> Filters {
    let mut filters = Filters::new();
    let mut own = |name: &str, arguments: &[&str], count: usize| {
        redis::cmd("BF.RESERVE").arg(name).arg(arguments).exec(connection).unwrap();
        if count > 0 {
            items(connection, "BF.MADD", name, &keys(0, count));
        }
        filters.insert(name.into(), dump(connection, name));
    };
    own("empty", &["0.01", "100"], 0);
    own("grown", &["0.01", "100", "EXPANSION", "4"], 20_000);
    own("fixed", &["0.001", "1000", "NONSCALING"], 700);
    own("full", &["0.01", "100", "EXPANSION", "0"], 100);
    own("large", &["0.01", "15000000"], 1_000);
    let mut redis = RedisFilter::new(100, 0.01, Some(2)).unwrap();
    keys(0, 3_000).iter().for_each(|key| assert!(redis.insert(key).is_ok()));
    let redis: Dump = redis.dump().map(|(iterator, data)| (iterator, data.into_owned())).collect();
    load(connection, "redis", &redis);
    for (half, whole) in [("half own", filters["large"].clone()), ("half redis", redis.clone())] {
        load(connection, half, &whole[..whole.len() - 1]);
        filters.insert(half.into(), whole);
    }
    load(connection, "half header", &redis[..1]);
    filters.insert("half header".into(), redis.clone());
    filters.insert("redis".into(), redis);
    call::<()>(connection, &["EXPIRE", "grown", "100000"]);
    filters
}

/// Compares all filters, and keys that are there.
pub(crate) fn compare(connection: &mut Connection, filters: &Filters) {
    for (name, expected) in filters {
        if name.starts_with("half") {
            assert_eq!(reply(connection, &["BF.EXISTS", name, "key:1"]), LOADING, "{name}");
            continue;
        }
        assert!(dump(connection, name) == *expected, "{name}");
        let card: usize = call(connection, &["BF.CARD", name]);
        if card == 0 {
            continue;
        }
        assert!(
            items(connection, "BF.MEXISTS", name, &keys(0, card)).iter().all(|hit| *hit),
            "{name}"
        );
    }
    assert!(call::<i64>(connection, &["TTL", "grown"]) > 90_000);
    assert_eq!(call::<i64>(connection, &["TTL", "fixed"]), -1);
}

/// Completes half-loaded filters, and adds keys to all others as to copies in another filter of
/// the core.
fn go_on(connection: &mut Connection, filters: &Filters) {
    for (name, expected) in filters.iter().filter(|(name, _)| name.starts_with("half")) {
        let missing = match &name[..] {
            "half header" => &expected[1..],
            _ => &expected[expected.len() - 1..],
        };
        load(connection, name, missing);
        assert!(dump(connection, name) == *expected, "{name}");
    }
    let more = keys(500_000, 505_000);
    for (name, before) in filters {
        let copy = format!("{name} copy");
        load(connection, &copy, before);
        let [of, of_copy] = [name, &copy].map(|name| {
            let packed = crate::server::command("BF.MADD", name, &more).get_packed_command();
            connection.send_packed_command(&packed).unwrap();
            connection.recv_response().unwrap()
        });
        assert_eq!(of, of_copy, "{name}");
        assert!(dump(connection, name) == dump(connection, &copy), "{name}");
        call::<()>(connection, &["DEL", &copy]);
    }
}

#[test]
fn an_rdb_file_has_all_filters() {
    let Some(mut server) = Server::start(&[]) else { return };
    let filters = fill(&mut server.connect());
    compare(&mut server.connect(), &filters);
    for background in [false, true] {
        let mut connection = server.connect();
        if background {
            call::<()>(&mut connection, &["BGSAVE"]);
            wait(&mut connection, "rdb_bgsave_in_progress");
        } else {
            call::<()>(&mut connection, &["SAVE"]);
        }
        server.kill();
        server.start_again();
        compare(&mut server.connect(), &filters);
    }
    go_on(&mut server.connect(), &filters);
    println!("{} filters after two restarts", filters.len());
    assert!(server.is_sound());
}

/// Waits until a number of `INFO` is 0.
fn wait(connection: &mut Connection, field: &str) {
    wait_until(field, || info(connection, field) == 0);
}

#[test]
fn debug_reload_leaves_all_filters() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let filters = fill(&mut connection);
    for _ in 0..3 {
        call::<()>(&mut connection, &["DEBUG", "RELOAD"]);
        compare(&mut connection, &filters);
    }
    go_on(&mut connection, &filters);
    assert!(server.is_sound());
}

#[test]
fn an_aof_has_all_filters_before_and_after_it_is_rewritten() {
    for preamble in ["yes", "no"] {
        let options =
            ["--appendonly", "yes", "--aof-use-rdb-preamble", preamble, "--appendfsync", "always"];
        let Some(mut server) = Server::start(&options) else { return };
        let mut filters = fill(&mut server.connect());
        server.kill();
        server.start_again();
        let mut connection = server.connect();
        compare(&mut connection, &filters);
        for _ in 0..2 {
            call::<()>(&mut connection, &["BGREWRITEAOF"]);
            wait(&mut connection, "aof_rewrite_in_progress");
            wait(&mut connection, "aof_rewrite_scheduled");
        }
        let status: String = call(&mut connection, &["INFO", "persistence"]);
        assert!(status.contains("aof_last_bgrewrite_status:ok"), "{status}");
        // The rest follows it.
        items(&mut connection, "BF.MADD", "grown", &keys(20_000, 30_000));
        filters.insert("grown".into(), dump(&mut connection, "grown"));
        server.kill();
        server.start_again();
        compare(&mut server.connect(), &filters);
        go_on(&mut server.connect(), &filters);
        println!("{} filters after two restarts, preamble {preamble}", filters.len());
        assert!(server.is_sound());
    }
}

#[test]
fn a_replica_has_the_same_filters() {
    let Some(mut server) = Server::start(&[]) else { return };
    let Some(mut replica) = Server::start(&["--replicaof", "127.0.0.1", &server.port.to_string()])
    else {
        return;
    };
    let mut connection = server.connect();
    // Before it is connected, in its first copy, and afterwards.
    let mut filters = fill(&mut connection);
    let mut follower = replica.connect();
    wait_until("the replica is connected", || {
        let replication: String = call(&mut follower, &["INFO", "replication"]);
        replication.contains("master_link_status:up")
    });
    load(&mut connection, "loaded", &filters["redis"]);
    filters.insert("loaded".into(), filters["redis"].clone());
    load(&mut connection, "loaded own", &filters["grown"]);
    for round in 0..100 {
        call::<()>(&mut connection, &["BF.ADD", "added", &format!("a:{round}")]);
        items(&mut connection, "BF.MADD", "grown", &keys(19_990 + 50 * round, 20_050 + 50 * round));
        items(&mut connection, "BF.MADD", "loaded", &keys(10 * round, 60 * round + 1));
        items(&mut connection, "BF.MADD", "loaded own", &keys(0, 10 * round + 1));
        reply(&mut connection, &["BF.MADD", "full", "key:1", "new:1", "key:2"]);
        reply(
            &mut connection,
            &[
                "BF.INSERT",
                "inserted",
                "CAPACITY",
                "3",
                "NONSCALING",
                "ITEMS",
                "a",
                "b",
                "c",
                "d",
                "e",
            ],
        );
        reply(&mut connection, &["BF.LOADCHUNK", "loaded", "1", "bad data"]);
        reply(&mut connection, &["BF.RESERVE", "added", "0.1", "100"]);
    }
    call::<()>(
        &mut connection,
        &["EVAL", "for i = 1, 200 do redis.call('BF.ADD', KEYS[1], i) end", "1", "scripted"],
    );
    // No link can keep what is left of this rate: the keys before the one that needs it are there,
    // here and on the replica.
    call::<()>(&mut connection, &["BF.RESERVE", "strict", "0.00000001", "1"]);
    call::<()>(&mut connection, &["BF.ADD", "strict", "key:0"]);
    let many = crate::server::command("BF.MADD", "strict", &keys(0, 100_000));
    let error = many.query::<Vec<i64>>(&mut connection).unwrap_err();
    assert_eq!(error_text(&error), "ERR problem inserting into filter");
    let taken: usize = call(&mut connection, &["BF.CARD", "strict"]);
    assert!(items(&mut connection, "BF.MEXISTS", "strict", &keys(0, taken)).iter().all(|hit| *hit));
    assert_eq!(reply(&mut connection, &["BF.EXISTS", "strict", &format!("key:{taken}")]), "0");
    let [links]: [u64; 1] = call(&mut connection, &["BF.INFO", "strict", "CAPACITY"]);
    assert_eq!(links, stored_capacity(&dump(&mut connection, "strict")));
    println!("a rate of 10^-8 is kept for {taken} times as many keys as the first link is for");
    for name in ["strict", "grown", "loaded", "loaded own", "full", "added", "inserted", "scripted"]
    {
        filters.insert(name.into(), dump(&mut connection, name));
    }
    assert_eq!(call::<i64>(&mut connection, &["WAIT", "1", "60000"]), 1);
    for (name, expected) in &filters {
        if name.starts_with("half") {
            assert_eq!(reply(&mut follower, &["BF.EXISTS", name, "key:1"]), LOADING, "{name}");
        } else {
            assert!(dump(&mut follower, name) == *expected, "{name}");
        }
    }
    assert!(reply(&mut follower, &["BF.ADD", "grown", "a"]).starts_with("-READONLY"));
    // After the end of the other.
    server.kill();
    call::<()>(&mut follower, &["REPLICAOF", "NO", "ONE"]);
    go_on(&mut follower, &filters);
    println!("{} filters on the replica", filters.len());
    assert!(replica.is_sound());
}

#[test]
fn keys_that_were_acknowledged_are_there_after_kill_9() {
    let Some(mut server) = Server::start(&["--appendonly", "yes", "--appendfsync", "always"])
    else {
        return;
    };
    // When the server is killed follows from this number: KILL_SEED=... runs the test again alike.
    let seed = std::env::var("KILL_SEED").map_or_else(
        |_| RandomState::new().hash_one(0),
        |seed| seed.parse().expect("KILL_SEED is a number of 64 bits"),
    );
    println!("KILL_SEED={seed}");
    let (mut acknowledged, rounds) = (0, 8_u8);
    for round in 0..rounds {
        let mut connection = server.connect();
        let (first, has_first) = mpsc::channel();
        let writer = std::thread::spawn(move || {
            let mut done = acknowledged;
            // One, and then many, until the server ends.
            loop {
                let next = done + if done % 7 == 0 { 1 } else { 40 };
                let packed = crate::server::command("BF.MADD", "f", &keys(done, next));
                if packed.query::<Vec<i64>>(&mut connection).is_err() {
                    return done;
                }
                done = next;
                // No one waits for the others.
                let _ = first.send(());
            }
        });
        // However long the first one takes: then there is something that must not be lost.
        has_first.recv().expect("an acknowledgement");
        let moment = KeyHasher::with_seed(seed).hash([round]);
        let delay = Duration::from_micros(moment % 300_000);
        std::thread::sleep(delay);
        server.kill();
        acknowledged = writer.join().unwrap();
        server.start_again();
        let hits = items(&mut server.connect(), "BF.MEXISTS", "f", &keys(0, acknowledged));
        assert!(
            hits.iter().all(|hit| *hit),
            "KILL_SEED={seed}: round {round}, killed after {delay:?}"
        );
        // While the file is rewritten, in every second round.
        if round % 2 == 0 {
            call::<()>(&mut server.connect(), &["BGREWRITEAOF"]);
        }
    }
    println!("{acknowledged} acknowledged keys after {rounds} times kill -9, none lost");
}

#[test]
fn dump_and_restore_keep_a_filter_and_damage_is_seen() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let filters = fill(&mut connection);
    let mut restore = |name: &str, payload: &[u8]| {
        let mut packed = redis::cmd("RESTORE");
        packed.arg(name).arg(0).arg(payload).arg("REPLACE").exec(&mut connection)
    };
    for (name, expected) in &filters {
        let mut connection = server.connect();
        let payload: Vec<u8> = redis::cmd("DUMP").arg(name).query(&mut connection).unwrap();
        restore("copy", &payload).unwrap();
        if name.starts_with("half") {
            assert_eq!(reply(&mut connection, &["BF.EXISTS", "copy", "key:1"]), LOADING, "{name}");
        } else {
            assert!(dump(&mut connection, "copy") == *expected, "{name}");
        }
    }
    // As if somebody had made the checksum of Redis anew.
    call::<()>(&mut server.connect(), &["DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1"]);
    let mut other = server.connect();
    call::<()>(&mut other, &["BF.RESERVE", "small", "0.1", "4", "NONSCALING"]);
    items(&mut other, "BF.MADD", "small", &keys(0, 4));
    let expected = dump(&mut other, "small");
    let payload: Vec<u8> = redis::cmd("DUMP").arg("small").query(&mut other).unwrap();
    let (mut errors, mut same, mut loading) = (0, 0, 0);
    let mut attempt = |payload: &[u8], what: &str| {
        call::<()>(&mut other, &["DEL", "copy"]);
        if restore("copy", payload).is_err() {
            errors += 1;
        } else if reply(&mut other, &["BF.EXISTS", "copy", "key:1"]) == LOADING {
            loading += 1;
        } else {
            // A bit of the checksum, or of how long numbers are written.
            assert_eq!(dump(&mut other, "copy"), expected, "{what}");
            same += 1;
        }
    };
    for bit in 0..8 * payload.len() {
        let mut damaged = payload.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        attempt(&damaged, &format!("bit {bit}"));
    }
    for length in 0..payload.len() {
        attempt(&payload[..length], &format!("{length} bytes"));
        attempt(
            &[&payload[..length], &payload[payload.len() - 10..]].concat(),
            &format!("{length} bytes and the end"),
        );
    }
    println!(
        "{errors} damaged payloads rejected, {same} the same filter, {loading} answer nothing"
    );
    assert!(errors > 1_000 && server.is_sound());
}

#[test]
fn keys_are_moved_copied_and_freed() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let before = info(&mut connection, "used_memory");
    let filters = fill(&mut connection);
    call::<()>(&mut connection, &["RENAME", "fixed", "renamed"]);
    assert!(dump(&mut connection, "renamed") == filters["fixed"]);
    assert_eq!(call::<i64>(&mut connection, &["MOVE", "redis", "1"]), 1);
    call::<()>(&mut connection, &["SELECT", "1"]);
    assert!(dump(&mut connection, "redis") == filters["redis"]);
    call::<()>(&mut connection, &["SELECT", "0"]);
    assert_eq!(reply(&mut connection, &["COPY", "grown", "copy"]), "1");
    assert!(dump(&mut connection, "copy") == filters["grown"]);
    // The smallest has its own size, and half a filter the size of its pieces.
    let usage = |connection: &mut Connection, name: &str| {
        call::<u64>(connection, &["MEMORY", "USAGE", name])
    };
    assert!(usage(&mut connection, "empty") < 2_000);
    let whole: usize = filters["large"].iter().map(|(_, data)| data.len()).sum();
    let range = whole as u64 - 200..whole as u64 + 2_000;
    assert!(range.contains(&usage(&mut connection, "large")));
    assert!((16 << 20..whole as u64 + 2_000).contains(&usage(&mut connection, "half own")));
    assert_eq!(call::<i64>(&mut connection, &["UNLINK", "large", "grown", "full"]), 3);
    call::<()>(&mut connection, &["EXPIRE", "renamed", "0"]);
    assert_eq!(reply(&mut connection, &["BF.EXISTS", "renamed", "key:1"]), "0");
    load_chunk(&mut connection, "half own", 1, &filters["large"][0].1).unwrap();
    assert!(usage(&mut connection, "half own") < 2_000);
    call::<()>(&mut connection, &["FLUSHALL", "ASYNC"]);
    wait(&mut connection, "lazyfree_pending_objects");
    // Buffers of the connection have pieces of dumps.
    drop(connection);
    let mut connection = server.connect();
    wait_until("memory is given back", || {
        info(&mut connection, "used_memory") <= before + (1 << 20)
    });
    assert!(server.is_sound());
}

/// A filter of each kind: of one link with and without capacity left, of several, of one that does
/// not grow, and RedisBloom's.
fn filters_of_each_kind(connection: &mut Connection, prefix: &str) -> Vec<String> {
    let name = |kind: &str| format!("{prefix}:{kind}");
    let mut reserve = |kind: &str, arguments: &[&str], count: usize| {
        redis::cmd("BF.RESERVE").arg(name(kind)).arg(arguments).exec(connection).unwrap();
        items(connection, "BF.MADD", &name(kind), &keys(0, count));
    };
    reserve("link", &["0.01", "1000"], 300);
    reserve("full link", &["0.0001", "100"], 100);
    reserve("chain", &["0.01", "100"], 1_000);
    reserve("full chain", &["0.0001", "100"], 300);
    reserve("fixed", &["0.01", "1000", "NONSCALING"], 300);
    let mut redis = RedisFilter::new(100, 0.01, Some(2)).unwrap();
    keys(0, 250).iter().for_each(|key| assert!(redis.insert(key).is_ok()));
    let redis: Dump = redis.dump().map(|(iterator, data)| (iterator, data.into_owned())).collect();
    load(connection, &name("redis"), &redis);
    ["link", "full link", "chain", "full chain", "fixed", "redis"].map(name).into()
}

#[test]
fn every_command_that_writes_between_two_dumps_leaves_a_filter_that_is_read() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let script = "return redis.call('BF.ADD', KEYS[1], ARGV[1])";
    // `_` is the filter's name.
    let writes: [&[&str]; 10] = [
        &["BF.ADD", "_", "new"],
        &["BF.ADD", "_", "key:1"],
        &["BF.MADD", "_", "new"],
        &["BF.MADD", "_", "key:1", "new", "key:2", "newer"],
        &["BF.INSERT", "_", "ITEMS", "new", "newer"],
        &["BF.INSERT", "_", "NOCREATE", "ITEMS", "new"],
        &["EVAL", script, "1", "_", "new"],
        &["RENAME", "_", "_:renamed"],
        &["COPY", "_", "_:copy"],
        &["BF.LOADCHUNK", "_", "1", "damaged"],
    ];
    let mut expected = Filters::new();
    for (i, write) in writes.iter().enumerate() {
        for name in filters_of_each_kind(&mut connection, &i.to_string()) {
            dump(&mut connection, &name);
            let words = write.iter().map(|word| word.replace('_', &name)).collect::<Vec<_>>();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            reply(&mut connection, &words);
            let name = if write[0] == "RENAME" { format!("{name}:renamed") } else { name };
            if write[0] == "COPY" {
                let copy = format!("{name}:copy");
                reply(&mut connection, &["BF.ADD", &copy, "newest"]);
                expected.insert(copy, Dump::new());
            }
            expected.insert(name, Dump::new());
        }
    }
    call::<()>(&mut connection, &["SAVE"]);
    let new = ["new", "newer", "newest"];
    let before: Vec<Vec<bool>> =
        expected.keys().map(|name| items(&mut connection, "BF.MEXISTS", name, &new)).collect();
    for (name, dump) in &mut expected {
        *dump = crate::server::dump(&mut connection, name);
        let copy = format!("{name}:loaded");
        load(&mut connection, &copy, dump);
        call::<()>(&mut connection, &["DEL", &copy]);
    }
    server.kill();
    server.start_again();
    let mut connection = server.connect();
    for ((name, expected), before) in expected.iter().zip(before) {
        assert_eq!(items(&mut connection, "BF.MEXISTS", name, &new), before, "{name}");
        let there = items(&mut connection, "BF.MEXISTS", name, &keys(0, 100));
        assert!(there.iter().all(|hit| *hit), "{name}");
        assert!(dump(&mut connection, name) == *expected, "{name}");
    }
    println!("{} filters after {} writes and a restart", expected.len(), writes.len());
    assert!(server.is_sound());
}

#[test]
fn a_replica_that_loads_a_copy_goes_on_to_answer() {
    let Some(server) = Server::start(&["--repl-diskless-sync", "yes"]) else { return };
    let follow = ["--replicaof", "127.0.0.1", &server.port.to_string()];
    let options =
        ["--repl-diskless-load", "swapdb", "--replica-read-only", "no", "--maxmemory", "1gb"];
    let mut replica = Server::start(&[&follow[..], &options].concat()).unwrap();
    let (mut connection, mut follower) = (server.connect(), replica.connect());
    let is_up = |follower: &mut Connection| {
        let replication: String = call(follower, &["INFO", "replication"]);
        replication.contains("master_link_status:up")
    };
    wait_until("the replica is connected", || is_up(&mut follower));
    let filters = fill(&mut connection);
    (0..2_000).for_each(|i| call::<()>(&mut connection, &["BF.ADD", &format!("f:{i}"), "a"]));
    assert_eq!(call::<i64>(&mut connection, &["WAIT", "1", "60000"]), 1);
    // Slowly, so that there is time to look up keys meanwhile.
    for words in [["key-load-delay", "1000"], ["loading-process-events-interval-bytes", "1024"]] {
        call::<()>(&mut follower, &["CONFIG", "SET", words[0], words[1]]);
    }
    call::<()>(&mut connection, &["CONFIG", "SET", "repl-backlog-size", "16384"]);
    // More than the backlog has is written before the replica can connect again, and it gets a copy
    // of everything.
    call::<()>(&mut connection, &["MULTI"]);
    call::<()>(&mut connection, &["CLIENT", "KILL", "TYPE", "replica"]);
    call::<()>(&mut connection, &["SET", "string", &"x".repeat(1 << 20)]);
    call::<()>(&mut connection, &["BF.ADD", "f:0", "new"]);
    call::<()>(&mut connection, &["EXEC"]);
    let mut answers = 0;
    wait_until("the copy is loaded", || {
        // In one transaction: of one moment.
        call::<()>(&mut follower, &["MULTI"]);
        call::<()>(&mut follower, &["INFO", "persistence"]);
        call::<()>(&mut follower, &["BF.MEXISTS", "grown", "key:1", "key:19999"]);
        call::<()>(&mut follower, &["BF.RESERVE", "too large", "0.01", "1000000000"]);
        let replies = reply(&mut follower, &["EXEC"]);
        if replies.contains("async_loading:1") {
            assert!(replies.contains("[1 1]"), "{replies}");
            assert!(replies.contains("Insufficient memory to create filter"), "{replies}");
            answers += 1;
        }
        reply(&mut follower, &["BF.EXISTS", "f:0", "new"]) == "1" && is_up(&mut follower)
    });
    println!("{answers} answers while a copy was loaded");
    assert!(answers > 10, "{answers}\n{}", replica.log());
    compare(&mut follower, &filters);
    assert!(replica.is_sound());
}

/// Peak memory of the server: resident, and by its own count above the current one.
fn peaks(server: &Server) -> [u64; 2] {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let resident: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    let [peak, now] =
        ["used_memory_peak", "used_memory"].map(|field| info(&mut server.connect(), field));
    [resident << 10, peak.saturating_sub(now)]
}

#[test]
fn loading_takes_little_more_than_the_filter() {
    let Some(server) = Server::start(&[]) else { return };
    let [empty, _] = peaks(&server);
    let mut redis = RedisFilter::new(150_000_000, 0.01, Some(2)).unwrap();
    keys(0, 1_000).iter().for_each(|key| assert!(redis.insert(key).is_ok()));
    for name in ["own", "redis"] {
        let mut server = Server::start(&["--rdbcompression", "no"]).unwrap();
        let mut connection = server.connect();
        if name == "own" {
            call::<()>(&mut connection, &["BF.RESERVE", "f", "0.01", "150000000"]);
            items(&mut connection, "BF.MADD", "f", &keys(0, 1_000));
        } else {
            redis.dump().for_each(|(i, data)| load_chunk(&mut connection, "f", i, &data).unwrap());
        }
        let [size]: [u64; 1] = call(&mut connection, &["BF.INFO", "f", "SIZE"]);
        call::<()>(&mut connection, &["SAVE"]);
        let dump = dump(&mut connection, "f");
        // Those of an own filter are smaller, since checksums are computed of them.
        let most = if name == "own" { 8 << 20 } else { 16 << 20 };
        assert_eq!(dump.iter().map(|(_, data)| data.len()).max(), Some(most), "{name}");
        server.kill();
        server.start_again();
        let from_file = peaks(&server);
        assert!(crate::server::dump(&mut server.connect(), "f") == dump, "{name}");
        let other = Server::start(&[]).unwrap();
        let mut connection = other.connect();
        let mut times = Vec::new();
        for (iterator, data) in &dump {
            let before = other.cpu_nanoseconds();
            load_chunk(&mut connection, "f", *iterator, data).unwrap();
            times.push((other.cpu_nanoseconds() - before) / 1_000);
        }
        let from_pieces = peaks(&other);
        println!(
            "{name}: {size} bytes; from a file at most {from_file:?}, from pieces {from_pieces:?}, \
             {times:?} us; a server without keys {empty:?}"
        );
        let [resident, counted] = from_file;
        assert!(resident < empty + size + size / 10 && counted < size / 10, "{from_file:?}");
        // The connection has pieces too: how many follows from how the bytes arrive.
        let [resident, counted] = from_pieces;
        let pieces = 3 * most as u64;
        assert!(resident < empty + size + pieces && counted < pieces, "{from_pieces:?}");
        // The last piece takes no longer than those before.
        let [before @ .., last] = &times[1..] else { panic!("{times:?}") };
        assert!(last <= before.iter().max().unwrap(), "{name}: {times:?}");
    }
}

/// The value of a key as RedisBloom writes it: numbers as modules write them, with a code for the
/// kind of each before it.
pub(crate) fn value_of_redisbloom(dump: &Dump) -> Vec<u8> {
    let header = &dump[0].1;
    fn length(number: u64) -> Vec<u8> {
        match number {
            0..64 => vec![number as u8],
            64..16_384 => vec![0x40 | (number >> 8) as u8, number as u8],
            16_384..=0xffff_ffff => [&[0x80][..], &(number as u32).to_be_bytes()].concat(),
            _ => [&[0x81][..], &number.to_be_bytes()].concat(),
        }
    }
    let number = |at: usize, bytes: usize| {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(&header[at..at + bytes]);
        u64::from_le_bytes(number)
    };
    let unsigned = |number: u64| [vec![2], length(number)].concat();
    let double = |at: usize| [&[4][..], &header[at..at + 8]].concat();
    let mut bits: Vec<u8> = dump[1..].iter().flat_map(|(_, data)| data).copied().collect();
    let mut value = [(0, 8), (8, 4), (12, 4), (16, 4)]
        .iter()
        .flat_map(|&(at, bytes)| unsigned(number(at, bytes)))
        .collect::<Vec<u8>>();
    for at in (20..header.len()).step_by(53) {
        let rest = bits.split_off(number(at, 8) as usize);
        value.extend(unsigned(number(at + 44, 8)));
        value.extend(double(at + 24));
        value.extend(unsigned(number(at + 40, 4)));
        value.extend(double(at + 32));
        value.extend(unsigned(number(at + 8, 8)));
        value.extend(unsigned(number(at + 52, 1)));
        value.extend([vec![5], length(bits.len() as u64), bits].concat());
        value.extend(unsigned(number(at + 16, 8)));
        bits = rest;
    }
    value.push(0);
    value
}

#[test]
fn keys_of_redisbloom_are_read_and_written_if_the_operator_says_so() {
    let arguments = |word: &'static str| ["--module-arguments", "REDISBLOOM_TYPE", word];
    let options = |word| [&["--rdbcompression", "no"][..], &arguments(word)].concat();
    let Some(mut server) = Server::start(&options("write")) else { return };
    let mut connection = server.connect();
    // What commands make is RedisBloom's.
    let mut redis = RedisFilter::new(100, 0.01, Some(2)).unwrap();
    keys(0, 3_000).iter().for_each(|key| assert!(redis.insert(key).is_ok()));
    items(&mut connection, "BF.MADD", "made", &keys(0, 3_000));
    let expected: Dump = redis.dump().map(|(i, data)| (i, data.into_owned())).collect();
    assert!(dump(&mut connection, "made") == expected);
    load(&mut connection, "loaded", &expected);
    let words = ["BF.RESERVE", "fixed", "0.001", "500", "NONSCALING"];
    call::<()>(&mut connection, &words);
    let full: Vec<bool> = items(&mut connection, "BF.MADD", "fixed", &keys(0, 400));
    assert!(full.iter().filter(|new| **new).count() > 395);
    let names = ["made", "loaded", "fixed"];
    let dumps = names.map(|name| dump(&mut connection, name));
    for (name, dump) in names.iter().zip(&dumps) {
        let payload: Vec<u8> = redis::cmd("DUMP").arg(name).query(&mut connection).unwrap();
        // The version of RDB and a checksum follow.
        let id = [0x81, 0x30, 0x16, 0xe5, 0xa2, 0x89, 0xbe, 0xf8, 0x04];
        assert_eq!((payload[0], &payload[1..10]), (7, &id[..]));
        let (value, _) = payload[10..].split_at(payload.len() - 20);
        assert!(value == value_of_redisbloom(dump), "{name}");
        let mut restore = redis::cmd("RESTORE");
        restore.arg(format!("{name}:restored")).arg(0).arg(&payload).exec(&mut connection).unwrap();
        assert!(crate::server::dump(&mut connection, &format!("{name}:restored")) == *dump);
    }
    load_chunk(&mut connection, "half", 1, &expected[0].1).unwrap();
    call::<()>(&mut connection, &["SAVE"]);
    for word in ["write", "read"] {
        server.kill();
        server.start_again_with(&options(word));
        let mut connection = server.connect();
        for (name, expected) in names.iter().zip(&dumps) {
            assert!(dump(&mut connection, name) == *expected, "{word}: {name}");
        }
        // The missing bits are ones: the load has to begin again.
        assert_eq!(reply(&mut connection, &["BF.EXISTS", "half", "a"]), "1");
        let (iterator, piece) = &expected[1];
        assert!(load_chunk(&mut connection, "half", *iterator, piece).is_err());
        call::<()>(&mut connection, &["DEL", "half"]);
        load(&mut connection, "half", &expected);
        assert!(dump(&mut connection, "half") == expected, "{word}");
        // Only this has the option make filters of RedisBloom's.
        call::<()>(&mut connection, &["BF.RESERVE", "new", "0.01", "100"]);
        let shape = reply(&mut connection, &["BF.DEBUG", "new"]);
        assert_eq!(shape.contains("bytes:144 "), word == "write", "{shape}");
        items(&mut connection, "BF.MADD", "made", &keys(3_000, 3_500));
        assert!(server.is_sound());
    }
    // Without the option keys of the file keep their type.
    server.kill();
    server.start_again_with(&["--rdbcompression", "no"]);
    let mut connection = server.connect();
    for (name, expected) in names.iter().zip(&dumps) {
        assert!(dump(&mut connection, name) == *expected, "{name}");
        assert_eq!(call::<String>(&mut connection, &["TYPE", name]), "MBbloom--");
    }
    let log = Server::log_of_failure(&arguments("maybe"));
    assert!(log.contains("must be no, read or write"), "{log}");
}

/// Filters of the types of RedisBloom and valkey-bloom have no checksums of their own: damage that
/// the server's does not show is an error, or another filter that can be used.
#[test]
fn damaged_payloads_of_other_modules_types_are_errors_or_filters() {
    let options = ["--rdbcompression", "no", "--maxmemory", "300mb"];
    let arguments = ["--module-arguments", "REDISBLOOM_TYPE", "write"];
    let Some(mut server) = Server::start(&[&options[..], &arguments].concat()) else { return };
    let mut connection = server.connect();
    let restore = |connection: &mut Connection, name: &str, payload: &[u8]| {
        let mut packed = redis::cmd("RESTORE");
        packed.arg(name).arg(0).arg(payload).arg("REPLACE").exec(connection)
    };
    call::<()>(&mut connection, &["BF.RESERVE", "MBbloom--", "0.1", "4"]);
    let words = ["BF.INSERT", "bloomfltr", "CAPACITY", "4", "ERROR", "0.1", "TIGHTENING", "0.5"];
    assert_eq!(reply(&mut connection, &words), "[]");
    for name in ["MBbloom--", "bloomfltr"] {
        // Two links.
        items(&mut connection, "BF.MADD", name, &keys(0, 8));
        assert_eq!(reply(&mut connection, &["BF.INFO", name, "FILTERS"]), "[2]");
        let payload: Vec<u8> = redis::cmd("DUMP").arg(name).query(&mut connection).unwrap();
        let mut damaged: Vec<(String, Vec<u8>)> = Vec::new();
        for bit in 0..8 * payload.len() {
            let mut of_bit = payload.clone();
            of_bit[bit / 8] ^= 1 << (bit % 8);
            damaged.push((format!("bit {bit}"), of_bit));
        }
        // The version of RDB and the checksum follow the value.
        let end = &payload[payload.len() - 10..];
        for length in 0..payload.len() {
            damaged.push((format!("{length} bytes"), payload[..length].into()));
            damaged.push((format!("{length} bytes, end"), [&payload[..length], end].concat()));
        }
        // A number of eight bytes instead of each byte.
        for at in 11..payload.len() - 10 {
            let parts = [&payload[..at], &[0x81], &[0xff; 8], &payload[at + 1..]];
            damaged.push((format!("the largest number at {at}"), parts.concat()));
        }
        for checks in [true, false] {
            let skip = if checks { "0" } else { "1" };
            call::<()>(&mut connection, &["DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", skip]);
            let (mut errors, mut filters) = (0, 0);
            for (what, payload_of) in &damaged {
                call::<()>(&mut connection, &["DEL", "copy"]);
                if *payload_of == payload {
                    continue;
                }
                if restore(&mut connection, "copy", payload_of).is_err() {
                    errors += 1;
                    continue;
                }
                assert!(!checks, "{name}, {what}: the server has not seen it");
                filters += 1;
                // It accepts more keys or replies an error; it is stored and read again.
                let present: Vec<bool> = items(&mut connection, "BF.MEXISTS", "copy", &keys(0, 50));
                let stored: Vec<u8> =
                    redis::cmd("DUMP").arg("copy").query(&mut connection).unwrap();
                restore(&mut connection, "again", &stored)
                    .unwrap_or_else(|error| panic!("{name}, {what}: {error}"));
                let again: Vec<bool> = items(&mut connection, "BF.MEXISTS", "again", &keys(0, 50));
                assert!(present == again, "{name}, {what}");
                let more = keys(100, 200);
                let words: Vec<&str> = ["BF.MADD", "copy"]
                    .into_iter()
                    .chain(more.iter().map(String::as_str))
                    .collect();
                let text = reply(&mut connection, &words);
                let known = ["[", "-ERR problem inserting into filter"];
                assert!(
                    known.iter().any(|known| text.starts_with(known)),
                    "{name}, {what}: {text}"
                );
                if text.starts_with('[') && !text.contains("ERR") {
                    let hits = items(&mut connection, "BF.MEXISTS", "copy", &more);
                    assert!(hits.iter().all(|hit| *hit), "{name}, {what}");
                }
                for field in ["CAPACITY", "MAXSCALEDCAPACITY"] {
                    let text = reply(&mut connection, &["BF.INFO", "copy", field]);
                    assert!(text.starts_with('[') || text.contains("Invalid"), "{what}: {text}");
                }
            }
            println!("{name}: {errors} damaged payloads are errors, {filters} are other filters");
            assert!(errors > 500 || !checks, "{errors}");
            assert!(server.is_sound(), "{name}\n{}", server.log());
        }
    }
}

//! Dumps that are damaged or made up: `BF.LOADCHUNK` replies errors, takes no memory for what does
//! not come, and no filter answers "absent" by them.

use std::process::Command;

use blocked_bloom::FilterOptions;
use blocked_bloom::parts::{Header, MAGIC};
use blocked_bloom_formats::redis::RedisFilter;
use blocked_bloom_scalable::ScalableOptions;
use redis::Connection;

use crate::loading::{BAD, Dump, LOADING, blocked, keys, redis_bloom};
use crate::operator::resident;
use crate::server::{
    Server, call, command, error_text, info, items, load, load_chunk, reply, wait_until,
};

const NO_MEMORY: &str = "ERR Insufficient memory to create filter";

#[test]
fn every_damage_of_an_own_dump_is_an_error() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let mut damages = 0;
    for (name, arguments, count) in
        [("fixed", &["0.1", "10", "NONSCALING"][..], 10), ("grown", &["0.25", "4"], 20)]
    {
        let dump = blocked(&mut connection, name, arguments, count);
        let [(_, header), (end, data)] = &dump[..] else { panic!("{} replies", dump.len()) };
        let mut attempt = |header: &[u8], pieces: &[(i64, &[u8])]| {
            let mut pipeline = redis::pipe();
            pipeline.cmd("DEL").arg("f").ignore().cmd("BF.LOADCHUNK").arg("f").arg(1).arg(header);
            for (end, data) in pieces {
                pipeline.cmd("BF.LOADCHUNK").arg("f").arg(end).arg(data);
            }
            pipeline.cmd("EXISTS").arg("f").cmd("BF.EXISTS").arg("f").arg("key:1");
            pipeline.ignore_errors();
            let replies: Vec<redis::Value> = pipeline.query(&mut connection).unwrap();
            damages += 1;
            let [.., exists, hit] = &replies[..] else { panic!("{replies:?}") };
            // Nothing there, or nothing that answers.
            match exists {
                redis::Value::Int(0) => *hit == redis::Value::Int(0),
                _ => matches!(hit, redis::Value::ServerError(_)),
            }
        };
        assert!(!attempt(header, &[(*end, data)]), "{name}: without damage it answers");
        for bit in 0..8 * header.len() {
            let mut damaged = header.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(attempt(&damaged, &[(*end, data)]), "{name}: header, bit {bit}");
        }
        for bit in 0..8 * data.len() {
            let mut damaged = data.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(attempt(header, &[(*end, &damaged)]), "{name}: bit {bit}");
        }
        for length in 0..data.len() {
            assert!(
                attempt(header, &[(1 + length as i64, &data[..length])]),
                "{name}: {length} bytes"
            );
            assert!(
                attempt(header, &[(1 + length as i64, &data[length..])]),
                "{name}: from {length}"
            );
            // In two pieces it is sound, unless they change places.
            let (first, second) = data.split_at(length);
            if length > 0 {
                assert!(
                    !attempt(header, &[(1 + length as i64, first), (*end, second)]),
                    "{name}: {length}"
                );
                assert!(
                    attempt(header, &[(1 + second.len() as i64, second), (*end, first)])
                        || first == second,
                    "{name}: {length}"
                );
            }
        }
        for length in 0..header.len() {
            assert!(
                attempt(&header[..length], &[(*end, data)]),
                "{name}: header of {length} bytes"
            );
        }
        assert!(attempt(&[header, &[0][..]].concat(), &[(*end, data)]), "{name}: longer header");
    }
    println!("{damages} damaged dumps, none of which answers");
    assert!(server.is_sound());
}

#[test]
fn damaged_headers_of_redisbloom_are_errors_or_what_they_say() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let (_, dump) = redis_bloom(10, 25);
    let header = &dump[0].1;
    let (mut errors, mut loaded, mut open) = (0, 0, 0);
    for bit in 0..8 * header.len() {
        let mut damaged = dump.clone();
        damaged[0].1[bit / 8] ^= 1 << (bit % 8);
        call::<()>(&mut connection, &["DEL", "f"]);
        let sent = damaged
            .iter()
            .try_for_each(|(iterator, data)| load_chunk(&mut connection, "f", *iterator, data));
        let hits =
            reply(&mut connection, &["BF.MEXISTS", "f", "key:1", "key:24", "absent", "more"]);
        match RedisFilter::load(damaged).ok() {
            // A growth, a rate or a number of entries, which nothing else in the dump contradicts.
            Some(filter) => {
                let expected = ["key:1", "key:24", "absent", "more"]
                    .map(|key| i32::from(filter.contains(key)).to_string());
                assert_eq!(
                    (sent, hits),
                    (Ok(()), format!("[{}]", expected.join(" "))),
                    "bit {bit}"
                );
                loaded += 1;
                // The links that such a header leads to are made, or are an error, and no key is
                // lost.
                let more = keys(100, 200);
                let added = command("BF.MADD", "f", &more).query::<Vec<i64>>(&mut connection);
                let hits = items(&mut connection, "BF.MEXISTS", "f", &more);
                assert!(added.is_err() || hits.iter().all(|hit| *hit), "bit {bit}: {added:?}");
            }
            None if sent.is_err() && hits.starts_with('[') => errors += 1,
            None => {
                assert_eq!(hits, LOADING, "bit {bit}: {sent:?}");
                open += 1;
            }
        }
    }
    println!(
        "{errors} headers rejected, {open} never complete, {loaded} loaded as \
         formats' RedisFilter loads them"
    );
    let taken = info(&mut connection, "used_memory");
    assert!(taken < 64 << 20, "{taken}");
    assert!(errors > 500 && loaded > 300 && server.is_sound());
}

#[test]
fn a_header_without_its_data_takes_no_memory() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let before = resident(&server);
    let (_, dump) = redis_bloom(100, 10);
    let mut header = dump[0].1.clone();
    let mut announce = |bytes: u64| {
        for (at, number) in [(20, bytes), (28, 8 * bytes)] {
            header[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        let mut own = Header::new(*b"\x89BBRDIS\n", 1);
        own.put(12, &u32::MAX.to_le_bytes());
        own.put(24, &bytes.to_le_bytes());
        [("redis", header.clone()), ("own", own.seal().to_vec())]
    };
    for bytes in [1 << 46, 1 << 59] {
        for (kind, header) in announce(bytes) {
            let error = load_chunk(&mut connection, "f", 1, &header).unwrap_err();
            assert_eq!(error, NO_MEMORY, "{kind}: {bytes}");
            assert_eq!(reply(&mut connection, &["EXISTS", "f"]), "0");
        }
    }
    // Until the machine has no more, as of `BF.RESERVE`.
    let (mut taken, mut refused) = (0, 0);
    let container = ScalableOptions::new(0.01, 10).build().unwrap().to_bytes();
    let link = FilterOptions::default().empty_filter(1).unwrap().stored_header();
    let mut link = Header::read(&link, MAGIC, 1).unwrap();
    link.put(24, &((1_u32 << 24) - 2).to_le_bytes());
    let own = [&container[..], &link.seal(), &[1; 8]].concat();
    for i in 0..1_000 {
        for (kind, header) in announce(1 << 30) {
            let name = format!("{kind}:{i}");
            let data = if kind == "own" { &own[..] } else { &[1; 100] };
            let sent = load_chunk(&mut connection, &name, 1, &header).and_then(|()| {
                load_chunk(&mut connection, &name, 1 + data.len() as i64, data)?;
                load_chunk(&mut connection, &name, 101 + data.len() as i64, &[1; 100])
            });
            match sent {
                Ok(()) => {
                    assert_eq!(reply(&mut connection, &["BF.EXISTS", &name, "a"]), LOADING);
                    taken += 1;
                }
                Err(error) => {
                    assert_eq!(error, NO_MEMORY, "{name}");
                    refused += 1;
                }
            }
        }
    }
    let resident = resident(&server).saturating_sub(before);
    println!("{taken} filters of 1 GB announced take {resident} bytes, {refused} were refused");
    assert!(taken > 0 && refused > 0 && resident < 16 << 20, "{taken} {refused} {resident}");
    call::<()>(&mut connection, &["FLUSHALL"]);
    // More than there can be.
    rejects_blocked(&mut connection, i64::MAX as u64);
    rejects_blocked(&mut connection, u64::MAX);
    rejects_blocked(&mut connection, 0);
    // More links than any chain has.
    let links = 100_000_u32;
    let mut many = dump[0].1[..20].to_vec();
    many[..8].copy_from_slice(&(10 * u64::from(links)).to_le_bytes());
    many[8..12].copy_from_slice(&links.to_le_bytes());
    for _ in 0..links {
        many.extend_from_slice(&dump[0].1[20..]);
    }
    assert_eq!(load_chunk(&mut connection, "many", 1, &many).unwrap_err(), BAD);
    assert!(server.is_sound());
}

/// The two replies of a dump of an own filter with this container.
fn blocked_dump(container: Vec<u8>) -> Dump {
    let mut header = Header::new(*b"\x89BBRDIS\n", 1);
    header.put(12, &u32::MAX.to_le_bytes());
    header.put(24, &(container.len() as u64).to_le_bytes());
    vec![(1, header.seal().to_vec()), (1 + container.len() as i64, container)]
}

/// A small link that says to have 2^33 keys and to be for as many, with sound checksums: the next
/// one would have 160 GB.
fn dump_of_many_keys(growth: u8) -> Vec<u8> {
    let mut filter = ScalableOptions::new(0.01, 10).build().unwrap();
    assert!(filter.insert("a").unwrap());
    let mut container = filter.to_bytes();
    let mut link = Header::read(&container[64..], *b"\x89BBLOOM\n", 1).unwrap();
    link.put(32, &(1_u64 << 33).to_le_bytes());
    let link = link.seal();
    container[64..128].copy_from_slice(&link);
    let mut header = Header::read(&container, *b"\x89BBGROW\n", 1).unwrap();
    header.put(11, &[growth]);
    header.put(48, &(1_u64 << 33).to_le_bytes());
    header.put_body_checksum(40, &link[56..]);
    container[..64].copy_from_slice(&header.seal());
    container
}

#[test]
fn chains_that_are_made_up_take_no_memory() {
    let Some(mut server) = Server::start(&["--maxmemory", "100mb"]) else { return };
    let mut connection = server.connect();
    for growth in [2, 16] {
        let name = format!("own:{growth}");
        load(&mut connection, &name, &blocked_dump(dump_of_many_keys(growth)));
        assert_eq!(reply(&mut connection, &["BF.MEXISTS", &name, "a", "b"]), "[1 0]");
        let error = "-ERR problem inserting into filter";
        assert_eq!(reply(&mut connection, &["BF.ADD", &name, "b"]), error);
        assert_eq!(reply(&mut connection, &["BF.MADD", &name, "a", "b"]), error);
        assert_eq!(reply(&mut connection, &["BF.CARD", &name]), (1_u64 << 33).to_string());
    }
    // Without links: the options of the first one.
    let mut container = ScalableOptions::new(0.01, 1 << 34).build().unwrap().to_bytes();
    load(&mut connection, "empty", &blocked_dump(container.clone()));
    assert_eq!(
        reply(&mut connection, &["BF.ADD", "empty", "b"]),
        "-ERR problem inserting into filter"
    );
    let mut header = Header::read(&container, *b"\x89BBGROW\n", 1).unwrap();
    header.put(48, &u64::MAX.to_le_bytes());
    container.copy_from_slice(&header.seal());
    load(&mut connection, "endless", &blocked_dump(container));
    assert_eq!(
        reply(&mut connection, &["BF.ADD", "endless", "b"]),
        "-ERR problem inserting into filter"
    );
    // RedisBloom's, of the largest growth and more keys in one command than the link after the next
    // has place for.
    let mut filter = RedisFilter::new(10, 0.01, Some(32_768)).unwrap();
    keys(0, 10).iter().for_each(|key| assert!(filter.insert(key).is_ok()));
    let dump: Dump = filter.dump().map(|(iterator, data)| (iterator, data.into_owned())).collect();
    load(&mut connection, "redis", &dump);
    let many = keys(0, 400_000);
    let result = command("BF.MADD", "redis", &many).query::<Vec<i64>>(&mut connection);
    assert!(error_text(&result.unwrap_err()).starts_with("ERR problem inserting"));
    assert_eq!(items(&mut connection, "BF.MADD", "redis", &many[..1_000]).len(), 1_000);
    assert!(info(&mut connection, "used_memory") < 100 << 20);
    assert!(server.is_sound());
}

/// What another version may give a meaning to is refused, whose answers would otherwise be those of
/// another filter.
#[test]
fn headers_of_own_dumps_have_no_unknown_meaning() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let one = blocked(&mut connection, "one", &["0.01", "100"], 10);
    let grown = blocked(&mut connection, "grown", &["0.01", "100"], 500);
    let changed = |dump: &Dump, at: usize, field: &[u8]| {
        let mut header = Header::read(&dump[0].1, *b"\x89BBRDIS\n", 1).unwrap();
        header.put(at, field);
        header.seal()
    };
    for bit in 1..32 {
        for fixed in [0, 1] {
            let header = changed(&one, 16, &(1_u32 << bit | fixed).to_le_bytes());
            assert_eq!(load_chunk(&mut connection, "f", 1, &header).unwrap_err(), BAD, "bit {bit}");
        }
    }
    for at in (10..12).chain(20..24).chain(32..56) {
        let header = changed(&one, at, &[1]);
        assert_eq!(load_chunk(&mut connection, "f", 1, &header).unwrap_err(), BAD, "byte {at}");
    }
    // A filter that does not grow has one link.
    for (name, dump, is_sound) in [("one:fixed", &one, true), ("grown:fixed", &grown, false)] {
        load_chunk(&mut connection, name, 1, &changed(dump, 16, &1_u32.to_le_bytes())).unwrap();
        let (iterator, piece) = &dump[1];
        assert_eq!(load_chunk(&mut connection, name, *iterator, piece).is_ok(), is_sound, "{name}");
    }
    assert_eq!((one.len(), grown.len()), (2, 2));
    assert!(server.is_sound());
}

fn rejects_blocked(connection: &mut Connection, total: u64) {
    let mut header = Header::new(*b"\x89BBRDIS\n", 1);
    header.put(12, &u32::MAX.to_le_bytes());
    header.put(24, &total.to_le_bytes());
    assert_eq!(load_chunk(connection, "f", 1, &header.seal()).unwrap_err(), BAD, "{total}");
}

/// Lets a server have this many bytes of addresses more than it has now.
pub(crate) fn limit_memory(server: &Server, more: u64) -> bool {
    let process = server.process();
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let kib: u64 = size.trim().trim_end_matches(" kB").parse().unwrap();
    // The colon: a limit that can be raised again.
    let limit = format!("--as={}:", (kib << 10) + more);
    match Command::new("prlimit").args(["--pid", &process.to_string(), &limit]).status() {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            println!("NOT RUN: no prlimit ({error})");
            return false;
        }
    }
    true
}

#[test]
fn a_large_filter_without_memory_is_an_error_and_the_server_goes_on() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    items(&mut connection, "BF.MADD", "small", &keys(0, 1_000));
    // The next link of this filter has 104 MB.
    call::<()>(&mut connection, &["BF.RESERVE", "full", "0.01", "3000000", "EXPANSION", "16"]);
    if !limit_memory(&server, 60 << 20) {
        return;
    }
    let mut count = 0;
    let error = loop {
        let many = command("BF.MADD", "full", &keys(count, count + 20_000));
        if let Err(error) = many.query::<Vec<i64>>(&mut connection) {
            break error_text(&error);
        }
        count += 20_000;
    };
    assert_eq!(error, "ERR problem inserting into filter");
    assert!(count >= 2_980_000, "{count}");
    assert!(limit_memory(&server, 300 << 20));
    for capacity in ["1000000000", "500000000", "400000000"] {
        let error = "-ERR Insufficient memory to create filter";
        let words = ["BF.RESERVE", "f", "0.01", capacity];
        assert_eq!(reply(&mut connection, &words), error, "{capacity}");
        let words = ["BF.INSERT", "f", "CAPACITY", capacity, "ITEMS", "a"];
        assert_eq!(reply(&mut connection, &words), error, "{capacity}");
    }
    // New memory has no bits of older filters.
    for capacity in ["1000", "100000", "700000", "1000000", "10000000", "100000000"] {
        for _ in 0..4 {
            let words = ["BF.RESERVE", "f", "0.01", capacity, "NONSCALING"];
            assert_eq!(reply(&mut connection, &words), "OK", "{capacity}");
            let hits = items(&mut connection, "BF.MEXISTS", "f", &keys(0, 20_000));
            assert!(hits.iter().all(|hit| !hit), "{capacity}");
            reply(&mut connection, &["BF.ADD", "f", "a"]);
            let _ = command("BF.MADD", "f", &keys(0, 20_000)).exec(&mut connection);
            call::<()>(&mut connection, &["DEL", "f"]);
            wait_until("it is freed", || info(&mut connection, "lazyfree_pending_objects") == 0);
        }
    }
    for (name, count) in [("full", count), ("small", 1_000)] {
        for from in (0..count).step_by(20_000) {
            let range = keys(from, count.min(from + 20_000));
            let hits = items(&mut connection, "BF.MEXISTS", name, &range);
            assert!(hits.iter().all(|hit| *hit), "{name} from {from}");
        }
    }
    assert!(server.is_sound());
}

#[test]
fn a_filter_of_valkey_bloom_without_memory_is_an_error_and_the_server_goes_on() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    // The filter has 36 MB, and the next link of the other one 45 MB.
    let words = ["BF.INSERT", "f", "CAPACITY", "30000000", "TIGHTENING", "0.5"];
    let full = ["BF.INSERT", "full", "CAPACITY", "1000", "EXPANSION", "32768", "TIGHTENING"];
    assert_eq!(reply(&mut connection, &[&full[..], &["0.5"]].concat()), "[]");
    let all = keys(0, 1_100);
    let add: Vec<&str> =
        ["BF.MADD", "full"].into_iter().chain(all.iter().map(String::as_str)).collect();
    let mut made = Vec::new();
    // Also with memory for the bits, but not for the trial allocation before them.
    for mebibytes in (4..100).step_by(6) {
        if !limit_memory(&server, mebibytes << 20) {
            return;
        }
        let text = reply(&mut connection, &words);
        let is_made = text == "[]";
        assert!(is_made || text == format!("-{NO_MEMORY}"), "{mebibytes} MiB: {text}");
        let text = reply(&mut connection, &add);
        let is_grown = text.starts_with('[');
        assert!(is_grown || text == "-ERR problem inserting into filter", "{mebibytes}: {text}");
        call::<()>(&mut connection, &["DEL", "f"]);
        made.push((is_made, is_grown));
    }
    assert_eq!((made.first(), made.last()), (Some(&(false, false)), Some(&(true, true))));
    assert!(items(&mut connection, "BF.MEXISTS", "full", &all).iter().all(|hit| *hit));
    assert!(server.is_sound());
}

#[test]
fn an_aof_that_there_is_no_memory_to_rewrite_stays() {
    let options = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no"];
    let Some(mut server) = Server::start(&options) else { return };
    let mut connection = server.connect();
    // Filters of 60 MB, which are written in pieces of 1 MiB; of valkey-bloom and own.
    for (name, option) in [("f", "TIGHTENING"), ("own", "ERROR")] {
        let words = ["BF.INSERT", name, "CAPACITY", "50000000", option, "0.01", "ITEMS", "a"];
        assert_eq!(reply(&mut connection, &words), "[1]");
    }
    let text: String = call(&mut connection, &["INFO", "server"]);
    for (mebibytes, status) in [(6, "err"), (20, "ok")] {
        // Redis 7.0 has kept the memory of a check for zeros, and ends by itself without more.
        if status == "err" && text.contains("redis_version:7.0.") {
            continue;
        }
        if !limit_memory(&server, mebibytes << 20) {
            return;
        }
        call::<()>(&mut connection, &["BGREWRITEAOF"]);
        wait_until("the rewrite has ended", || {
            let text: String = call(&mut connection, &["INFO", "persistence"]);
            text.contains("aof_rewrite_in_progress:0") && text.contains("aof_rewrite_scheduled:0")
        });
        let text: String = call(&mut connection, &["INFO", "persistence"]);
        assert!(text.contains(&format!("aof_last_bgrewrite_status:{status}")), "{text}");
        assert!(server.is_sound(), "{}", server.log());
        server.kill();
        server.start_again();
        connection = server.connect();
        for name in ["f", "own"] {
            assert_eq!(reply(&mut connection, &["BF.MEXISTS", name, "a", "b"]), "[1 0]");
        }
    }
}

#[test]
fn a_replica_without_memory_for_a_filter_ends() {
    // Otherwise keys that the other server has would be absent here.
    for words in [
        &["BF.RESERVE", "f", "0.01", "400000000"][..],
        &["BF.INSERT", "f", "CAPACITY", "400000000", "ITEMS", "a"],
    ] {
        let Some(server) = Server::start(&[]) else { return };
        let follow = ["--replicaof", "127.0.0.1", &server.port.to_string()];
        let mut replica = Server::start(&follow).unwrap();
        let mut follower = replica.connect();
        wait_until("the replica is connected", || {
            let replication: String = call(&mut follower, &["INFO", "replication"]);
            replication.contains("master_link_status:up")
        });
        if !limit_memory(&replica, 300 << 20) {
            return;
        }
        let made = reply(&mut server.connect(), words);
        assert!(["OK", "[1]"].contains(&made.as_str()), "{made}");
        wait_until("the replica has ended", || replica.has_ended());
        let log = replica.log();
        assert!(log.contains("of key `f`: ") || log.contains("Out Of Memory"), "{log}");
    }
}

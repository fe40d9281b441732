//! Every command with each of its options, followed and read again by servers with every setting at
//! both of its extremes. This tests the table of commands in README.md.

use redis::Connection;

use crate::following::{AOF, replica_of};
use crate::loading::{Dump, keys, redis_bloom};
use crate::server::{Server, call, command, dump, info, items, load_chunk, reply, wait_until};

/// Each setting at both extremes, alone; `maxmemory` is the server's.
pub(crate) const EXTREMES: [&[&str]; 12] = [
    &["--module-arguments", "ERROR_RATE", "0.00000001"],
    &["--module-arguments", "ERROR_RATE", "0.999"],
    &["--module-arguments", "INITIAL_SIZE", "1"],
    &["--module-arguments", "INITIAL_SIZE", "1073741824"],
    &["--module-arguments", "EXPANSION", "0"],
    &["--module-arguments", "EXPANSION", "32768"],
    &["--module-arguments", "HUGE_PAGES", "yes"],
    &["--module-arguments", "bloom-memory-usage-limit", "1"],
    &["--module-arguments", "bloom-memory-usage-limit", "9223372036854775807"],
    &["--module-arguments", "REDISBLOOM_TYPE", "read"],
    &["--module-arguments", "REDISBLOOM_TYPE", "write"],
    &["--maxmemory", "1mb"],
];

/// The dump of each key, or the payload of filters without dumps.
pub(crate) fn contents(connection: &mut Connection) -> Vec<(String, Dump)> {
    let mut names: Vec<String> = call(connection, &["KEYS", "*"]);
    names.sort();
    let mut contents = Vec::new();
    for name in names {
        let dump = match call::<String>(connection, &["TYPE", &name]).as_str() {
            "bloomfltr" => {
                vec![(0, redis::cmd("DUMP").arg(&name).query(connection).unwrap())]
            }
            _ => dump(connection, &name),
        };
        contents.push((name, dump));
    }
    contents
}

/// Every command that changes a filter, with each option, to a key that there is and to others.
fn all_commands(connection: &mut Connection) {
    let lines = "
        BF.RESERVE reserved 0.01 100
        BF.RESERVE expansion 0.01 10 EXPANSION 3
        BF.RESERVE nonscaling 0.01 10 NONSCALING
        BF.RESERVE blocked 0.01 10 BLOCKED
        BF.ADD added a
        BF.ADD added b
        BF.ADD reserved b
        BF.MADD madded a b c
        BF.MADD madded c d e
        BF.INSERT inserted ITEMS a b
        BF.INSERT empty
        BF.INSERT capacity CAPACITY 7 ITEMS a
        BF.INSERT error ERROR 0.9 ITEMS a
        BF.INSERT grows EXPANSION 5 ITEMS a
        BF.INSERT fixed NONSCALING ITEMS a
        BF.INSERT zero EXPANSION 0 ITEMS a
        BF.INSERT own BLOCKED ITEMS a
        BF.INSERT tightening TIGHTENING 0.3 ITEMS a
        BF.INSERT seed SEED 0123456789abcdef0123456789abcdef ITEMS a
        BF.INSERT scales VALIDATESCALETO 10000 ITEMS a
        BF.INSERT reserved CAPACITY 7 ITEMS 1
        BF.INSERT reserved ERROR 0.9 ITEMS 2
        BF.INSERT reserved EXPANSION 5 ITEMS 3
        BF.INSERT reserved EXPANSION 0 ITEMS 4
        BF.INSERT reserved NONSCALING ITEMS 5
        BF.INSERT reserved BLOCKED ITEMS 6
        BF.INSERT reserved TIGHTENING 0.3 ITEMS 7
        BF.INSERT reserved SEED 0123456789abcdef0123456789abcdef ITEMS 8
        BF.INSERT reserved VALIDATESCALETO 10000 ITEMS 9
        BF.INSERT reserved NOCREATE ITEMS 10
        BF.INSERT tightening VALIDATESCALETO 10000 ITEMS b c
        COPY reserved copied
        COPY tightening copied:valkey
        COPY added renamed:before
        RENAME renamed:before renamed
        COPY added deleted
        DEL deleted
        MULTI
        BF.ADD transaction a
        BF.INSERT transaction VALIDATESCALETO 10000 ITEMS b
        COPY transaction transaction:copied
        EXEC";
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let text = reply(connection, &words);
        assert!(!text.contains('-'), "{line}: {text}");
    }
    let script = "redis.call('BF.ADD', 'script', 'a')
        redis.call('BF.INSERT', 'script', 'VALIDATESCALETO', '10000', 'ITEMS', 'b')
        redis.call('COPY', 'script', 'script:copied')";
    call::<redis::Value>(connection, &["EVAL", script, "0"]);
    // Filters that grow by several links, and one that becomes full.
    for name in ["reserved", "expansion", "added", "inserted", "script", "tightening"] {
        items(connection, "BF.MADD", name, &keys(0, 2_000));
    }
    let full = command("BF.MADD", "nonscaling", &keys(0, 50)).get_packed_command();
    redis::ConnectionLike::req_packed_command(connection, &full).unwrap();
    // Dumps, payloads, and what valkey-bloom sends.
    for (iterator, data) in &redis_bloom(30, 300).1 {
        load_chunk(connection, "loaded:redis", *iterator, data).unwrap();
    }
    for (iterator, data) in dump(connection, "added") {
        load_chunk(connection, "loaded:own", iterator, &data).unwrap();
    }
    items(connection, "BF.MADD", "loaded:redis", &keys(1_000, 1_500));
    for name in ["reserved", "loaded:redis", "tightening"] {
        let payload: Vec<u8> = redis::cmd("DUMP").arg(name).query(connection).unwrap();
        let restored = format!("restored:{name}");
        redis::cmd("RESTORE").arg(restored).arg(0).arg(payload).exec(connection).unwrap();
    }
}

#[test]
fn every_command_is_followed_and_read_again_under_both_extremes_of_every_setting() {
    let writers: [&[&str]; 2] = [&[], &["--module-arguments", "REDISBLOOM_TYPE", "write"]];
    for writer in writers {
        let Some(mut server) = Server::start(&[&AOF[..], writer].concat()) else { return };
        let mut replicas: Vec<Server> =
            EXTREMES.iter().map(|settings| replica_of(&server, settings)).collect();
        let mut connection = server.connect();
        all_commands(&mut connection);
        let count = replicas.len();
        assert_eq!(call::<usize>(&mut connection, &["WAIT", &count.to_string(), "60000"]), count);
        let expected = contents(&mut connection);
        assert!(expected.len() >= 29, "{}", expected.len());
        let check = |server: &Server, what: &str| {
            let found = contents(&mut server.connect());
            assert_eq!(found.len(), expected.len(), "{what}");
            for (found, expected) in found.iter().zip(&expected) {
                assert!(found == expected, "{} written with {writer:?}, {what}", expected.0);
            }
        };
        for (replica, settings) in replicas.iter_mut().zip(EXTREMES) {
            check(replica, &format!("followed with {settings:?}"));
            assert!(replica.is_sound());
        }
        drop(replicas);
        // The AOF as it was written, then rewritten with a preamble, and without.
        for rewrite in [None, Some("yes"), Some("no")] {
            if let Some(preamble) = rewrite {
                server.kill();
                server.start_again_with(&[&AOF[..], writer].concat());
                let mut connection = server.connect();
                call::<()>(&mut connection, &["CONFIG", "SET", "aof-use-rdb-preamble", preamble]);
                call::<()>(&mut connection, &["BGREWRITEAOF"]);
                wait_until("the AOF is rewritten", || {
                    info(&mut connection, "aof_rewrites") == 1
                        && info(&mut connection, "aof_rewrite_in_progress") == 0
                });
            }
            for settings in EXTREMES {
                server.kill();
                server.start_again_with(&[&AOF[..], settings].concat());
                check(&server, &format!("AOF {rewrite:?}, read with {settings:?}"));
            }
        }
    }
}

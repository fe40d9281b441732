//! Keys that the server creates by the module's callbacks, while allocations fail: `COPY`,
//! `RESTORE`, `MIGRATE`, files and full synchronisations. A follower ends before it serves without
//! the key; a client gets an error.

use redis::Connection;

use crate::following::{AOF, replica_of};
use crate::hostile::limit_memory;
use crate::loading::keys;
use crate::server::{Server, call, dump, info, items, reply, wait_until};

/// A filter of 43 MB, with three items.
fn large(connection: &mut Connection, name: &str) {
    call::<()>(connection, &["BF.RESERVE", name, "0.01", "30000000"]);
    items(connection, "BF.MADD", name, &["1", "2", "3"]);
}

fn payload(connection: &mut Connection, name: &str) -> Vec<u8> {
    redis::cmd("DUMP").arg(name).query(connection).unwrap()
}

fn restore(connection: &mut Connection, name: &str, payload: &[u8]) -> redis::RedisResult<()> {
    redis::cmd("RESTORE").arg(name).arg(0).arg(payload).exec(connection)
}

/// Creates `b`, `c` and `d` as copies of `a`, by these commands.
fn copy(connection: &mut Connection, command: &str) {
    let payload = payload(connection, "a");
    for name in ["b", "c", "d"] {
        let words: &[&str] = match command {
            "COPY" => &["COPY", "a", name],
            "MULTI" => {
                call::<()>(connection, &["MULTI"]);
                call::<()>(connection, &["COPY", "a", name]);
                &["EXEC"]
            }
            "EVAL" => &["EVAL", "return redis.call('COPY', 'a', ARGV[1])", "0", name],
            _ => {
                restore(connection, name, &payload).unwrap();
                continue;
            }
        };
        call::<redis::Value>(connection, words);
    }
}

/// The log says which key is missing, by which command, and for want of how many bytes.
fn names_the_key(log: &str, command: &str) -> bool {
    log.lines().any(|line| {
        let key = ["b", "c", "d"].iter().any(|key| line.contains(&format!("of key `{key}`: ")));
        key && line.contains(command) && line.contains(" bytes could not be allocated. The source")
    })
}

#[test]
fn a_replica_without_memory_for_a_copy_ends() {
    for command in ["COPY", "MULTI", "EVAL", "RESTORE"] {
        let Some(server) = Server::start(&[]) else { return };
        let mut replica = replica_of(&server, &[]);
        let mut connection = server.connect();
        large(&mut connection, "a");
        assert_eq!(call::<u64>(&mut connection, &["WAIT", "1", "60000"]), 1);
        if !limit_memory(&replica, 60 << 20) {
            return;
        }
        copy(&mut connection, command);
        wait_until("the replica has ended", || replica.has_ended());
        let log = replica.log();
        let in_log = if command == "RESTORE" { "RESTORE" } else { "COPY" };
        assert!(names_the_key(&log, in_log), "{command}: {log}");
        assert_eq!(reply(&mut connection, &["BF.MEXISTS", "d", "1", "2", "3"]), "[1 1 1]");
    }
}

/// Its filter is there, and the next item takes a link of 37 MB.
#[test]
fn a_replica_without_memory_for_another_link_ends() {
    let Some(server) = Server::start(&[]) else { return };
    let mut replica = replica_of(&server, &[]);
    let mut connection = server.connect();
    call::<()>(&mut connection, &["BF.RESERVE", "f", "0.01", "1000000", "EXPANSION", "16"]);
    let add = |connection: &mut Connection, from: usize, to: usize| {
        for first in (from..to).step_by(10_000) {
            items(connection, "BF.MADD", "f", &keys(first, first + 10_000));
        }
    };
    add(&mut connection, 0, 990_000);
    assert_eq!(call::<u64>(&mut connection, &["WAIT", "1", "60000"]), 1);
    if !limit_memory(&replica, 24 << 20) {
        return;
    }
    add(&mut connection, 990_000, 1_050_000);
    wait_until("the replica has ended", || replica.has_ended());
    let log = replica.log();
    assert!(log.contains("BF.MADD of key `f`: "), "{log}");
    assert!(log.contains(" bytes could not be allocated. The source"), "{log}");
}

/// With any limit the replica has all keys, or has ended.
#[test]
fn a_replica_has_all_keys_or_has_ended() {
    let (mut ended, mut complete) = (0, 0);
    for mebibytes in [20, 60, 100, 140, 180, 220] {
        let Some(server) = Server::start(&[]) else { return };
        // A writable one: its callbacks cannot tell its primary from its clients.
        let options: &[&str] =
            if mebibytes % 80 == 20 { &[] } else { &["--replica-read-only", "no"] };
        let mut replica = replica_of(&server, options);
        let mut connection = server.connect();
        large(&mut connection, "a");
        assert_eq!(call::<u64>(&mut connection, &["WAIT", "1", "60000"]), 1);
        if !limit_memory(&replica, mebibytes << 20) {
            return;
        }
        copy(&mut connection, "COPY");
        let mut has_all = false;
        wait_until("the replica has all keys or has ended", || {
            has_all = call::<u64>(&mut connection, &["WAIT", "1", "100"]) == 1;
            has_all || replica.has_ended()
        });
        if has_all && !replica.has_ended() {
            let mut follower = replica.connect();
            for name in ["a", "b", "c", "d"] {
                let words = ["BF.MEXISTS", name, "1", "2", "3"];
                assert_eq!(reply(&mut follower, &words), "[1 1 1]", "{mebibytes} MiB: {name}");
            }
            complete += 1;
        } else {
            wait_until("the replica has ended", || replica.has_ended());
            ended += 1;
        }
    }
    println!("{ended} replicas have ended, {complete} have all keys");
    assert!(ended > 0 && complete > 0);
}

#[test]
fn an_aof_with_a_copy_that_there_is_no_memory_for_ends_the_server() {
    for command in ["COPY", "RESTORE"] {
        let Some(mut server) = Server::start(&AOF) else { return };
        let mut connection = server.connect();
        large(&mut connection, "a");
        copy(&mut connection, command);
        server.kill();
        server.start_again_with(&["--appendonly", "no"]);
        if !limit_memory(&server, 100 << 20) {
            return;
        }
        let _ = redis::cmd("DEBUG").arg("LOADAOF").exec(&mut server.connect());
        wait_until("the server has ended", || server.has_ended());
        assert!(names_the_key(&server.log(), command), "{command}: {}", server.log());
    }
}

#[test]
fn a_full_synchronisation_without_memory_names_the_key() {
    for (diskless, load) in [("no", "disabled"), ("yes", "disabled"), ("yes", "swapdb")] {
        let options = ["--repl-diskless-sync", diskless];
        let Some(server) = Server::start(&options) else { return };
        let mut connection = server.connect();
        large(&mut connection, "a");
        copy(&mut connection, "COPY");
        let mut replica = Server::start(&["--repl-diskless-load", load]).unwrap();
        if !limit_memory(&replica, 100 << 20) {
            return;
        }
        let port = server.port.to_string();
        call::<()>(&mut replica.connect(), &["REPLICAOF", "127.0.0.1", &port]);
        wait_until("the replica has ended", || replica.has_ended());
        let log = replica.log();
        assert!(log.contains("RDB load of key `"), "{diskless}, {load}: {log}");
        assert!(log.contains(" bytes could not be allocated. The source"), "{load}: {log}");
    }
}

#[test]
fn a_client_gets_an_error_if_there_is_no_memory_for_a_copy() {
    let (Some(mut server), Some(other)) = (Server::start(&[]), Server::start(&[])) else { return };
    let (mut connection, mut source) = (server.connect(), other.connect());
    large(&mut connection, "a");
    large(&mut source, "moved");
    let payload = payload(&mut connection, "a");
    if !limit_memory(&server, 30 << 20) {
        return;
    }
    let port = server.port.to_string();
    for round in 0..3 {
        assert!(reply(&mut connection, &["COPY", "a", "b"]).starts_with("-ERR"), "{round}");
        let script = ["EVAL", "return redis.call('COPY', 'a', 'b')", "0"];
        assert!(reply(&mut connection, &script).starts_with("-ERR"), "{round}");
        assert!(restore(&mut connection, "b", &payload).is_err(), "{round}");
        let words = ["MIGRATE", "127.0.0.1", &port, "moved", "0", "60000"];
        assert!(reply(&mut source, &words).starts_with('-'), "{round}");
        assert_eq!(reply(&mut source, &["BF.MEXISTS", "moved", "1", "4"]), "[1 0]");
        assert_eq!(reply(&mut connection, &["EXISTS", "b", "moved"]), "0");
    }
    assert_eq!(reply(&mut connection, &["BF.MEXISTS", "a", "1", "4"]), "[1 0]");
    assert!(server.is_sound());
}

/// Redis 7.0 has no function that allocates zeros and can fail.
#[test]
fn a_filter_of_redisbloom_without_memory_is_an_error() {
    let options = ["--module-arguments", "REDISBLOOM_TYPE", "write"];
    let Some(mut server) = Server::start(&options) else { return };
    let mut connection = server.connect();
    let (mut created, mut errors) = (0, 0);
    for mebibytes in (12..80).step_by(16) {
        if !limit_memory(&server, mebibytes << 20) {
            return;
        }
        // 23 MB, and the same as a second link.
        match reply(&mut connection, &["BF.RESERVE", "f", "0.01", "17000000"]).as_str() {
            "OK" => created += 1,
            error => {
                assert_eq!(error, "-ERR Insufficient memory to create filter");
                errors += 1;
            }
        }
        call::<()>(&mut connection, &["DEL", "f"]);
        let words = ["BF.RESERVE", "f", "0.01", "530000", "EXPANSION", "30"];
        assert_eq!(reply(&mut connection, &words), "OK");
        for first in (0..540_000).step_by(10_000) {
            let words = crate::server::command("BF.MADD", "f", &keys(first, first + 10_000));
            let _ = words.exec(&mut connection);
        }
        call::<()>(&mut connection, &["DEL", "f"]);
    }
    assert!(created > 0 && errors > 0, "{created} {errors}");
    assert!(server.is_sound());
}

#[test]
fn a_dump_without_memory_for_a_piece_is_an_error() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    large(&mut connection, "a");
    if !limit_memory(&server, 6 << 20) {
        return;
    }
    for iterator in ["1", "9000000"] {
        let text = reply(&mut connection, &["BF.SCANDUMP", "a", iterator]);
        assert!(text.starts_with("-ERR no memory for a piece"), "{iterator}: {text}");
    }
    assert_eq!(reply(&mut connection, &["BF.MEXISTS", "a", "1", "4"]), "[1 0]");
    if !limit_memory(&server, 1 << 30) {
        return;
    }
    let size: usize = dump(&mut connection, "a").iter().map(|(_, data)| data.len()).sum();
    assert!(size > 40_000_000 && server.is_sound(), "{size}");
}

#[test]
fn a_writable_replica_is_not_ended_by_a_damaged_payload() {
    let Some(server) = Server::start(&[]) else { return };
    let mut replica = replica_of(&server, &["--replica-read-only", "no"]);
    let mut follower = replica.connect();
    items(&mut follower, "BF.MADD", "a", &["1"]);
    let mut damaged = payload(&mut follower, "a");
    damaged[30] ^= 1;
    call::<()>(&mut follower, &["DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1"]);
    assert!(restore(&mut follower, "b", &damaged).is_err());
    assert!(replica.log().contains("RESTORE or RDB load of key `b`: "), "{}", replica.log());
    assert!(replica.is_sound());
}

/// A source replies an error after the items that it has added, and sends the command verbatim.
#[test]
fn a_full_filter_ends_no_follower() {
    let options = ["--propagation-error-behavior", "panic-on-replicas"];
    let Some(server) = Server::start(&[&AOF[..], &options].concat()) else { return };
    let mut server = server;
    let mut replica = replica_of(&server, &options);
    let mut connection = server.connect();
    call::<()>(&mut connection, &["BF.RESERVE", "f", "0.001", "3", "NONSCALING"]);
    let text = reply(&mut connection, &["BF.MADD", "f", "a", "b", "c", "d", "e"]);
    assert_eq!(text, "[1 1 1 -ERR non scaling filter is full]");
    let text = reply(&mut connection, &["BF.ADD", "f", "d"]);
    assert_eq!(text, "-ERR non scaling filter is full");
    assert_eq!(call::<u64>(&mut connection, &["WAIT", "1", "60000"]), 1);
    let words = ["BF.MEXISTS", "f", "a", "b", "c", "d", "e"];
    assert_eq!(reply(&mut replica.connect(), &words), "[1 1 1 0 0]");
    assert!(replica.is_sound());
    server.kill();
    server.start_again();
    assert_eq!(reply(&mut server.connect(), &words), "[1 1 1 0 0]");
    assert_eq!(info(&mut server.connect(), "loading"), 0);
}

/// A small filter takes items in place until it needs a link, which the limit forbids.
#[test]
fn items_before_an_error_are_replicated() {
    for form in ["no", "write"] {
        let options = ["bloom-memory-usage-limit", "700", "REDISBLOOM_TYPE", form];
        let options = [&["--module-arguments"][..], &options].concat();
        let Some(server) = Server::start(&options) else { return };
        let replica = replica_of(&server, &[]);
        let (mut connection, mut follower) = (server.connect(), replica.connect());
        call::<()>(&mut connection, &["BF.RESERVE", "f", "0.01", "100"]);
        let all = crate::loading::keys(0, 400);
        let words: Vec<&str> =
            ["BF.MADD", "f"].into_iter().chain(all.iter().map(String::as_str)).collect();
        let text = reply(&mut connection, &words);
        assert!(text.contains("exceeds bloom object memory limit"), "{text}");
        assert_eq!(call::<u64>(&mut connection, &["WAIT", "1", "60000"]), 1);
        let card = reply(&mut connection, &["BF.CARD", "f"]);
        // Of one link, or of two.
        assert!(["100", "300"].contains(&card.as_str()), "{card}");
        assert_eq!(reply(&mut follower, &["BF.CARD", "f"]), card);
        let hits = items(&mut connection, "BF.MEXISTS", "f", &all);
        assert_eq!(items(&mut follower, "BF.MEXISTS", "f", &all), hits);
    }
}

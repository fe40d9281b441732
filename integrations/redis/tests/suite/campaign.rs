//! Random commands to a primary and its replicas, each with a setting at an extreme, replicas with
//! little memory, and restarts after `kill -9`. No acknowledged item is absent anywhere, a replica
//! ends with the rule's message alone, and the primary never.
//!
//! `CAMPAIGN` is the number of campaigns, 3 if it is not set. `SEED` selects a single one.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use redis::{Connection, Value};

use crate::following::{AOF, replica_of};
use crate::hostile::limit_memory;
use crate::loading::{keys, redis_bloom};
use crate::server::{Server, call, items, load_chunk, reply, wait_until};
use crate::settings::{EXTREMES, contents};

/// Numbers that look random.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % below
    }

    pub(crate) fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.next(words.len())]
    }
}

/// Items that the primary has acknowledged, by key.
pub(crate) type Acknowledged = BTreeMap<String, Vec<String>>;

/// Sends a command that adds items, and records the acknowledged ones.
fn add(connection: &mut Connection, words: &[&str], added: &[String], known: &mut Acknowledged) {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]).arg(added);
    // An error within the array is not one of the whole reply.
    let packed = command.get_packed_command();
    connection.send_packed_command(&packed).unwrap();
    let acknowledged = match connection.recv_response() {
        Ok(Value::Array(replies)) => {
            replies.iter().filter(|reply| matches!(reply, Value::Int(_))).count()
        }
        Ok(Value::Int(_)) => 1,
        _ => return,
    };
    let items = known.entry(words[1].into()).or_default();
    items.extend(added[..acknowledged].iter().cloned());
}

/// A command of any kind.
pub(crate) fn act(connection: &mut Connection, random: &mut Random, known: &mut Acknowledged) {
    // Of one slot in a cluster.
    let names = ["{1}a", "{1}b", "{1}c", "{1}d", "{1}e", "{1}f", "{1}g", "{1}h"];
    let (name, other) = (random.pick(&names), random.pick(&names));
    let first = random.next(100_000);
    let count = [1, 3, 12, 150][random.next(4)];
    let new = keys(first, first + count);
    let capacity = random.pick(&["1", "10", "100", "1300", "9000", "40000"]);
    match random.next(16) {
        0..3 => add(connection, &["BF.ADD", name], &new[..1], known),
        3..6 => add(connection, &["BF.MADD", name], &new, known),
        6 => add(connection, &["BF.INSERT", name, "CAPACITY", capacity, "ITEMS"], &new, known),
        7 => {
            let option = random.pick(&["NONSCALING", "NOCREATE", "BLOCKED"]);
            add(connection, &["BF.INSERT", name, option, "ITEMS"], &new, known);
        }
        8 => {
            let scale = ["BF.INSERT", name, "VALIDATESCALETO", "100000", "ITEMS"];
            add(connection, &scale, &new, known);
        }
        9 => {
            // A filter of valkey-bloom.
            let words = ["BF.INSERT", name, "TIGHTENING", "0.4", "EXPANSION", "3", "ITEMS"];
            add(connection, &words, &new, known);
        }
        10 => {
            let option = random.pick(&["BLOCKED", "NONSCALING"]);
            reply(connection, &["BF.RESERVE", name, "0.003", capacity, option]);
        }
        // 24 MB, which replicas may lack.
        11 => _ = reply(connection, &["BF.RESERVE", name, "0.01", "17000000"]),
        12 if name != other && known.contains_key(name) => {
            if reply(connection, &["COPY", name, other, "REPLACE"]) == "1" {
                known.insert(other.into(), known[name].clone());
            }
        }
        13 if name != other && known.contains_key(name) => {
            let payload: Vec<u8> = redis::cmd("DUMP").arg(name).query(connection).unwrap();
            let mut restore = redis::cmd("RESTORE");
            restore.arg(other).arg(0).arg(payload).arg("REPLACE");
            if restore.exec(connection).is_ok() {
                known.insert(other.into(), known[name].clone());
            }
        }
        14 => {
            call::<u64>(connection, &["DEL", name]);
            known.remove(name);
            if random.next(2) == 0 {
                for (iterator, data) in &redis_bloom(40, 300).1 {
                    let _ = load_chunk(connection, name, *iterator, data);
                }
            }
        }
        _ => {
            if known.contains_key(name)
                && name != other
                && reply(connection, &["RENAME", name, other]) == "OK"
            {
                let moved = known.remove(name).unwrap_or_default();
                known.insert(other.into(), moved);
            }
        }
    }
}

/// Every acknowledged item is present.
pub(crate) fn check(server: &Server, known: &Acknowledged, what: &str) -> usize {
    let mut connection = server.connect();
    for (name, present) in known.iter().filter(|(_, present)| !present.is_empty()) {
        let hits = items(&mut connection, "BF.MEXISTS", name, present);
        let absent = hits.iter().filter(|hit| !**hit).count();
        assert_eq!(absent, 0, "{what}: {absent} of {} items of {name} are absent", present.len());
    }
    known.values().map(Vec::len).sum()
}

/// The campaigns to run.
pub(crate) fn seeds() -> RangeInclusive<u64> {
    let number = |name| std::env::var(name).ok().map(|number| number.parse().unwrap());
    let single = number("SEED");
    single.unwrap_or(1)..=single.unwrap_or(number("CAMPAIGN").unwrap_or(3))
}

/// Waits until the replica has all that the primary has sent, or has ended, with the rule's message
/// and only if it may. Returns whether it follows.
pub(crate) fn follows_or_ends(
    replica: &mut Server,
    connection: &mut Connection,
    may_end: bool,
    what: &str,
) -> bool {
    let number = |text: &str| text.trim().parse::<u64>().unwrap_or_default();
    let follows = |replica: &Server, connection: &mut Connection| {
        let all: String = call(connection, &["INFO", "replication"]);
        let field = |name: &str| all.lines().find_map(|line| line.strip_prefix(name));
        let port = format!("port={},", replica.port);
        let line = all.lines().find(|line| line.contains(&port))?;
        let at = line.split("offset=").nth(1)?.split(',').next()?;
        Some(number(at) >= number(field("master_repl_offset:")?))
    };
    wait_until(&format!("{what} follows or has ended"), || {
        replica.has_ended() || follows(replica, connection) == Some(true)
    });
    if replica.has_ended() {
        let log = replica.log();
        assert!(may_end && log.contains(". The source has "), "{what}: {log}");
        return false;
    }
    assert!(replica.is_sound(), "{what}");
    true
}

fn run(seed: u64, ends: &mut usize) -> Option<usize> {
    let mut random = Random(seed);
    let mut checked = 0;
    let mut known = Acknowledged::new();
    // Without `maxmemory` and a limit, with which the primary would only reply errors.
    let writers: Vec<_> =
        EXTREMES.iter().filter(|words| words[0] != "--maxmemory" && words[2] != "1").collect();
    let writer = writers[random.next(writers.len())];
    let mut server = Server::start(&[&AOF[..], writer].concat())?;
    for round in 0..3 {
        let what = format!("seed {seed}, round {round}");
        let mut replicas = Vec::new();
        for limit in [None, Some(20 << random.next(4))] {
            let settings = EXTREMES[random.next(EXTREMES.len())];
            let replica = replica_of(&server, settings);
            if limit.is_some_and(|mebibytes| !limit_memory(&replica, mebibytes << 20)) {
                return None;
            }
            replicas.push((replica, settings, limit));
        }
        let mut connection = server.connect();
        (0..120).for_each(|_| act(&mut connection, &mut random, &mut known));
        checked += check(&server, &known, &what);
        for (replica, settings, limit) in &mut replicas {
            let what = format!("{what}, replica with {settings:?} and {limit:?} MiB");
            if !follows_or_ends(replica, &mut connection, limit.is_some(), &what) {
                *ends += 1;
                continue;
            }
            checked += check(replica, &known, &what);
            let equal = contents(&mut replica.connect()) == contents(&mut connection);
            assert!(equal, "{what}: other contents");
        }
        assert!(server.is_sound(), "{what}");
        let before = contents(&mut connection);
        server.kill();
        let settings = EXTREMES[random.next(EXTREMES.len())];
        server.start_again_with(&[&AOF[..], settings].concat());
        let what = format!("{what}, AOF read with {settings:?}");
        checked += check(&server, &known, &what);
        assert!(before == contents(&mut server.connect()), "{what}: other contents");
        server.kill();
        server.start_again_with(&[&AOF[..], writer].concat());
    }
    Some(checked)
}

#[test]
fn a_campaign_with_extreme_settings_and_little_memory_loses_no_item() {
    let (mut checked, mut ends) = (0, 0);
    for seed in seeds() {
        match run(seed, &mut ends) {
            Some(items) => checked += items,
            None => return,
        }
    }
    println!("{checked} items compared; {ends} replicas have ended");
    assert!(checked > 1_000);
}

//! Slot migrations and commands of random words, each server with a setting at an extreme and some
//! with little memory. No acknowledged item is absent, no serving node ends, and a replica ends
//! with the rule's message alone. `CAMPAIGN` and `SEED` are as in `campaign.rs`.

use redis::{Connection, Value};

use crate::campaign::{Acknowledged, Random, act, check, follows_or_ends, seeds};
use crate::cluster::{cluster, move_with};
use crate::following::replica_of;
use crate::hostile::limit_memory;
use crate::loading::{Dump, keys, redis_bloom};
use crate::server::{Server, call, dump, items, reply, wait_until};
use crate::settings::{EXTREMES, contents};

/// One move of all slots to a node with another setting and perhaps little memory; then back.
/// Returns the compared items and the moves that succeeded and failed.
fn migrate(seed: u64) -> Option<[usize; 3]> {
    let mut random = Random(seed);
    let mut known = Acknowledged::new();
    // Both are written to, so neither has a limit with which it would only reply errors.
    let settings = [0; 2].map(|_| {
        loop {
            let words = EXTREMES[random.next(EXTREMES.len())];
            if words[0] != "--maxmemory" && words[2] != "1" {
                return words;
            }
        }
    });
    // A node without slots would otherwise become a replica of the other one, and a busy one fail.
    const NODE: [&str; 4] =
        ["--cluster-allow-replica-migration", "no", "--cluster-node-timeout", "120000"];
    let options = settings.map(|words| [&NODE[..], words].concat());
    let mut nodes = cluster([&options[0], &options[1]])?;
    let [mut compared, mut succeeded, mut failed] = [0; 3];
    for round in 0..4 {
        let what = format!("seed {seed}, round {round}, nodes with {settings:?}");
        let limit = [None, Some(30), Some(70), Some(130)][random.next(4)];
        let target = nodes[1].process();
        if limit.is_some_and(|mebibytes: u64| !limit_memory(&nodes[1], mebibytes << 20)) {
            return None;
        }
        let mut source = nodes[0].connect();
        (0..60).for_each(|_| act(&mut source, &mut random, &mut known));
        let mut expected = None;
        let has_moved = move_with(&nodes, |source| {
            (0..60).for_each(|_| act(source, &mut random, &mut known));
            expected = Some(contents(source));
        });
        assert!(nodes.iter_mut().all(Server::is_sound), "{what}: {}", nodes[1].log());
        assert_eq!(nodes[1].process(), target);
        assert!(has_moved || limit.is_some(), "{what}: {}", nodes[1].log());
        // Enough again.
        if limit.is_some() && !limit_memory(&nodes[1], 1 << 40) {
            return None;
        }
        if has_moved {
            succeeded += 1;
            let mut arrived = nodes[1].connect();
            wait_until("the slots are here", || {
                !reply(&mut arrived, &["BF.EXISTS", "{1}a", "x"]).starts_with("-MOVED")
            });
            assert!(Some(contents(&mut arrived)) == expected, "{what}: other contents");
            compared += check(&nodes[1], &known, &what);
        } else {
            failed += 1;
            compared += check(&nodes[0], &known, &what);
            let text = reply(&mut nodes[1].connect(), &["BF.EXISTS", "{1}a", "x"]);
            assert!(text.starts_with("-MOVED"), "{what}: {text}");
        }
        if has_moved {
            nodes.reverse();
        }
    }
    Some([compared, succeeded, failed])
}

#[test]
fn slots_are_moved_under_extreme_settings_and_with_little_memory() {
    let mut sum = [0; 3];
    for seed in seeds() {
        let Some(found) = migrate(seed) else { return };
        sum.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
    }
    let [compared, succeeded, failed] = sum;
    println!("{compared} items compared; {succeeded} migrations succeeded, {failed} failed");
    assert!(compared > 1_000 && succeeded > 0);
}

/// Words of a command that has no valid form, or one by chance.
fn words(random: &mut Random, dumps: &[(Dump, Vec<u8>)]) -> Vec<Vec<u8>> {
    const COMMANDS: [&str; 14] = [
        "BF.RESERVE",
        "BF.ADD",
        "BF.MADD",
        "BF.INSERT",
        "BF.EXISTS",
        "BF.MEXISTS",
        "BF.INFO",
        "BF.CARD",
        "BF.DEBUG",
        "BF.SCANDUMP",
        "BF.LOADCHUNK",
        "BF.LOAD",
        "COPY",
        "RESTORE",
    ];
    const WORDS: [&str; 40] = [
        "EXPANSION",
        "NONSCALING",
        "BLOCKED",
        "CAPACITY",
        "ERROR",
        "ITEMS",
        "NOCREATE",
        "SEED",
        "TIGHTENING",
        "VALIDATESCALETO",
        "SIZE",
        "FILTERS",
        "REPLACE",
        "items",
        "0.01",
        "0.5",
        "0.25",
        "1e-9",
        "0.999999",
        "nan",
        "inf",
        "-0",
        "0",
        "1",
        "2",
        "-1",
        "10",
        "100",
        "1300",
        "40000",
        "17000000",
        "1073741824",
        "1073741825",
        "32768",
        "32769",
        "4294967296",
        "9223372036854775807",
        "-9223372036854775808",
        "99999999999999999999",
        "",
    ];
    let keys = ["{1}x", "{1}y", "{1}z", "{1}text"];
    let command = random.pick(&COMMANDS);
    let mut all = vec![command.into(), random.pick(&keys).into()];
    let damaged = |random: &mut Random, mut bytes: Vec<u8>| {
        if random.next(2) == 0 && !bytes.is_empty() {
            let at = random.next(bytes.len());
            match random.next(3) {
                0 => bytes.truncate(at),
                1 => bytes[at] ^= 1 << random.next(8),
                _ => bytes[at] = random.next(256) as u8,
            }
        }
        bytes
    };
    let (pieces, payload) = &dumps[random.next(dumps.len())];
    match command {
        "BF.LOADCHUNK" if random.next(8) > 0 => {
            let (iterator, data) = pieces[random.next(pieces.len())].clone();
            all.push((iterator + [0, 0, 0, 1][random.next(4)]).to_string().into());
            all.push(damaged(random, data));
        }
        "BF.LOAD" if random.next(8) > 0 => all.push(damaged(random, payload.clone())),
        "RESTORE" if random.next(8) > 0 => {
            all.extend([b"0".to_vec(), damaged(random, payload.clone()), b"REPLACE".to_vec()]);
        }
        "COPY" if random.next(8) > 0 => {
            all.extend([random.pick(&keys).into(), b"REPLACE".to_vec()]);
        }
        _ => {
            // In the order of a valid command more often than not.
            if command == "BF.RESERVE" && random.next(4) > 0 {
                all.extend([
                    random.pick(&WORDS[14..19]).into(),
                    random.pick(&WORDS[23..33]).into(),
                ]);
            }
            for _ in 0..random.next(7) {
                all.push(match random.next(6) {
                    0 => (0..random.next(40)).map(|_| random.next(256) as u8).collect(),
                    _ => random.pick(&WORDS).into(),
                });
            }
        }
    }
    all
}

fn send(connection: &mut Connection, words: &[Vec<u8>]) -> Value {
    let mut command = redis::Cmd::new();
    command.arg(words);
    connection.send_packed_command(&command.get_packed_command()).unwrap();
    connection.recv_response().unwrap()
}

/// Random words to a primary with two replicas. Returns the commands, those without an error, and
/// the compared items.
fn fuzz(seed: u64, ends: &mut usize) -> Option<[usize; 3]> {
    let mut random = Random(seed ^ 0x5eed << 20);
    let mut known = Acknowledged::new();
    let settings = EXTREMES[seed as usize % EXTREMES.len()];
    let mut server = Server::start(settings)?;
    let mut replicas = Vec::new();
    for limit in [None, Some(30_u64 << random.next(3))] {
        let settings = EXTREMES[random.next(EXTREMES.len())];
        let replica = replica_of(&server, settings);
        call::<()>(&mut replica.connect(), &["DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1"]);
        replicas.push((replica, settings, limit));
    }
    let mut connection = server.connect();
    call::<()>(&mut connection, &["DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1"]);
    // An error with `maxmemory`.
    reply(&mut connection, &["SET", "{1}text", "text"]);
    // What pieces and payloads are made of.
    let mut dumps = vec![(redis_bloom(40, 300).1, Vec::new())];
    let another = Server::start(&[])?;
    let mut other = another.connect();
    for (name, option) in [("own", "BLOCKED"), ("valkey", "TIGHTENING 0.4")] {
        let words = ["BF.INSERT", name].into_iter().chain(option.split(' ')).chain(["ITEMS", "a"]);
        call::<redis::Value>(&mut other, &words.collect::<Vec<_>>());
        items(&mut other, "BF.MADD", name, &keys(0, 300));
        let payload: Vec<u8> = redis::cmd("DUMP").arg(name).query(&mut other).unwrap();
        let pieces = if name == "own" { dump(&mut other, name) } else { dumps[0].0.clone() };
        dumps.push((pieces, payload));
    }
    drop(another);
    if !limit_memory(&server, 200 << 20) {
        return None;
    }
    for (replica, _, limit) in &replicas {
        if limit.is_some_and(|mebibytes| !limit_memory(replica, mebibytes << 20)) {
            return None;
        }
    }
    let (mut sent, mut accepted) = (0, 0);
    for _ in 0..40 {
        for _ in 0..50 {
            let words = words(&mut random, &dumps);
            let reply = send(&mut connection, &words);
            sent += 1;
            accepted += usize::from(!matches!(reply, Value::ServerError(_)));
        }
        // Also keys that no random command names.
        (0..5).for_each(|_| act(&mut connection, &mut random, &mut known));
        call::<u64>(&mut connection, &["DEL", ["{1}x", "{1}y", "{1}z"][random.next(3)]]);
    }
    let what = format!("seed {seed}, {settings:?}");
    assert!(server.is_sound(), "{what}: {}", server.log());
    let mut compared = check(&server, &known, &what);
    for (mut replica, settings, limit) in replicas {
        let what = format!("{what}, replica with {settings:?} and {limit:?} MiB");
        if follows_or_ends(&mut replica, &mut connection, limit.is_some(), &what) {
            compared += check(&replica, &known, &what);
            // Also of half-loaded filters, which have no dump.
            let [found, expected] = [&replica, &server]
                .map(|server| reply(&mut server.connect(), &["DEBUG", "DIGEST"]));
            assert_eq!(found, expected, "{what}");
        } else {
            *ends += 1;
        }
    }
    Some([sent, accepted, compared])
}

#[test]
fn random_words_under_extreme_settings_lose_no_item() {
    let (mut sum, mut ends) = ([0; 3], 0);
    for seed in seeds() {
        let Some(found) = fuzz(seed, &mut ends) else { return };
        sum.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
    }
    let [sent, accepted, compared] = sum;
    println!(
        "{sent} commands, {accepted} without an error, {compared} items compared, {ends} ends"
    );
    assert!(accepted > sent / 10 && compared > 500);
}

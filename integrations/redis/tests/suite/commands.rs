//! Large and strange arguments.

use redis::Value;

use crate::server::{Server, call, command, info, items, reply};

#[test]
fn items_may_be_any_bytes() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let mut keys: Vec<Vec<u8>> =
        vec![vec![], vec![0], vec![0; 2], b"\r\n".to_vec(), vec![0xff; 300]];
    keys.extend((0..=255).map(|byte| vec![b'k', byte]));
    assert!(items(&mut connection, "BF.MADD", "f", &keys).iter().filter(|new| **new).count() > 255);
    assert!(items(&mut connection, "BF.MEXISTS", "f", &keys).iter().all(|hit| *hit));
    for key in &keys {
        let hit: i64 = redis::cmd("BF.EXISTS").arg("f").arg(key).query(&mut connection).unwrap();
        assert_eq!(hit, 1, "{key:?}");
    }
    // Names of keys, too.
    let name = [0, 0xff, b'\n'];
    let new: i64 = redis::cmd("BF.ADD").arg(&name).arg("a").query(&mut connection).unwrap();
    assert_eq!(new, 1);
}

#[test]
fn huge_items_and_many() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let huge = vec![b'x'; 64 << 20];
    let new: i64 = redis::cmd("BF.ADD").arg("f").arg(&huge).query(&mut connection).unwrap();
    assert_eq!(new, 1);
    let hits: Vec<i64> = redis::cmd("BF.MEXISTS")
        .arg("f")
        .arg(&huge)
        .arg(&huge[1..])
        .query(&mut connection)
        .unwrap();
    assert_eq!(hits, [1, 0]);
    let many: Vec<[u8; 4]> = (0..300_000).map(u32::to_le_bytes).collect();
    assert_eq!(items(&mut connection, "BF.MADD", "many", &many).len(), many.len());
    assert!(items(&mut connection, "BF.MEXISTS", "many", &many).iter().all(|hit| *hit));
    let error: Result<(), _> =
        redis::cmd("BF.LOADCHUNK").arg("l").arg(1).arg(&huge).query(&mut connection);
    assert!(error.is_err());
    // As the word of an option, and as a number.
    for command in [
        "BF.RESERVE g _ 100",
        "BF.RESERVE g 0.01 _",
        "BF.RESERVE g 0.01 100 _",
        "BF.INSERT g _ ITEMS a",
        "BF.INFO f _",
    ] {
        let mut packed = redis::Cmd::new();
        for word in command.split(' ') {
            packed.arg(if word == "_" { &huge[..] } else { word.as_bytes() });
        }
        assert!(packed.query::<Value>(&mut connection).is_err(), "{command}");
    }
    assert!(server.is_sound());
}

fn keys(round: u32) -> Vec<[u8; 4]> {
    (round * 10_000..(round + 1) * 10_000).map(u32::to_le_bytes).collect()
}

#[test]
fn more_memory_than_there_is_is_an_error() {
    let Some(mut server) = Server::start(&["--maxmemory", "12mb"]) else { return };
    let mut connection = server.connect();
    let before = info(&mut connection, "used_memory");
    let error = "-ERR Insufficient memory to create filter";
    assert_eq!(reply(&mut connection, &["BF.RESERVE", "f", "0.0001", "1073741824"]), error);
    assert_eq!(reply(&mut connection, &["BF.RESERVE", "f", "0.01", "100000000"]), error);
    assert_eq!(
        reply(&mut connection, &["BF.INSERT", "f", "CAPACITY", "100000000", "ITEMS", "a"]),
        error
    );
    assert_eq!(reply(&mut connection, &["EXISTS", "f"]), "0");
    // One megabyte, and then a link of 16 times as many keys.
    assert_eq!(
        reply(&mut connection, &["BF.RESERVE", "f", "0.01", "400000", "EXPANSION", "16"]),
        "OK"
    );
    let mut rejected = None;
    for round in 0..500_u32 {
        let keys = keys(round);
        let result: redis::RedisResult<Vec<i64>> =
            command("BF.MADD", "f", &keys).query(&mut connection);
        if let Err(error) = result {
            rejected = Some((round, error.to_string()));
            break;
        }
    }
    let (round, error) = rejected.expect("a link of more than the server's memory");
    assert!(error.contains("problem inserting into filter"), "{error}");
    // Added items are present.
    for round in 0..round {
        let keys = keys(round);
        assert!(items(&mut connection, "BF.MEXISTS", "f", &keys).iter().all(|hit| *hit));
    }
    let taken = info(&mut connection, "used_memory") - before;
    println!("{round} commands of 10000 keys were taken, {taken} bytes used");
    assert!(taken < 12 << 20, "{taken}");
    assert_eq!(call::<i64>(&mut connection, &["DEL", "f"]), 1);
    assert!(server.is_sound());
}

#[test]
fn keys_are_evicted_to_make_room_for_a_filter() {
    let options = ["--maxmemory", "12mb", "--maxmemory-policy", "volatile-lru"];
    let Some(mut server) = Server::start(&options) else { return };
    let mut connection = server.connect();
    for i in 0..1_000 {
        call::<()>(
            &mut connection,
            &["SET", &format!("string:{i}"), &"x".repeat(20_000), "EX", "1000"],
        );
    }
    assert!(info(&mut connection, "evicted_keys") > 0);
    assert!(info(&mut connection, "used_memory") > 11 << 20);
    assert_eq!(reply(&mut connection, &["BF.RESERVE", "f", "0.01", "2000000"]), "OK");
    assert_eq!(reply(&mut connection, &["BF.ADD", "f", "a"]), "1");
    assert_eq!(reply(&mut connection, &["BF.EXISTS", "f", "a"]), "1");
    let error = "-ERR Insufficient memory to create filter";
    assert_eq!(reply(&mut connection, &["BF.RESERVE", "g", "0.01", "20000000"]), error);
    assert!(info(&mut connection, "used_memory") < 14 << 20);
    assert!(server.is_sound());
}

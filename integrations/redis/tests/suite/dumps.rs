//! Dumps of large own filters, whose checksums are computed in parts, and small filters in files;
//! events, digests and counters.

use blocked_bloom_formats::redis::RedisFilter;
use redis::Connection;

use crate::loading::keys;
use crate::server::{Server, call, dump, info, items, load_chunk, reply, wait_until};

/// 40 MB: two parts of at most 24 MiB.
fn large(connection: &mut Connection) {
    call::<()>(connection, &["BF.RESERVE", "f", "0.01", "29000000"]);
    items(connection, "BF.MADD", "f", &keys(0, 1_000));
}

fn scan(connection: &mut Connection, iterator: i64) -> (i64, Vec<u8>) {
    redis::cmd("BF.SCANDUMP").arg("f").arg(iterator).query(connection).unwrap()
}

#[test]
fn a_command_of_a_dump_reads_a_part_of_the_filter() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    large(&mut connection);
    let pieces = dump(&mut connection, "f");
    let iterators: Vec<i64> = pieces.iter().map(|(iterator, _)| *iterator).take(4).collect();
    // The command that reads the last part copies no piece.
    assert_eq!(iterators, [1, -1, -2, 1 + (8 << 20)]);
    assert!(pieces[1..3].iter().all(|(_, data)| data.is_empty()));
    for (iterator, data) in &pieces {
        load_chunk(&mut connection, "g", *iterator, data).unwrap();
    }
    assert!(items(&mut connection, "BF.MEXISTS", "g", &keys(0, 1_000)).iter().all(|hit| *hit));
    assert!(dump(&mut connection, "g") == pieces);

    // An addition after each reply: no reply starts again from the first part.
    let (mut iterator, mut replies) = (0, Vec::new());
    loop {
        let (next, data) = scan(&mut connection, iterator);
        if next == 0 {
            break;
        }
        assert!(data.len() <= 8 << 20);
        replies.push((next, data));
        iterator = next;
        let key = format!("new:{iterator}");
        assert_eq!(items(&mut connection, "BF.MADD", "f", &[key]), [true]);
        // A file never has the checksums of a dump that a client has begun.
        if iterator == 1 + (8 << 20) {
            let payload: Vec<u8> = redis::cmd("DUMP").arg("f").query(&mut connection).unwrap();
            let mut restore = redis::cmd("RESTORE");
            restore.arg("restored").arg(0).arg(payload).exec(&mut connection).unwrap();
            let words = ["BF.MEXISTS", "restored", "key:0", "new:1", "new:-1"];
            assert_eq!(reply(&mut connection, &words), "[1 1 1]");
        }
    }
    assert_eq!(replies.len(), pieces.len());
    let mut last = Ok(());
    for (iterator, data) in &replies {
        last = load_chunk(&mut connection, "h", *iterator, data);
    }
    assert!(last.unwrap_err().to_string().contains("received bad data"));
}

/// All that a small filter has comes back from a file, a payload and a copy, also after it has
/// become large.
#[test]
fn small_filters_stay_as_they_are() {
    for settings in [&[][..], &["--module-arguments", "REDISBLOOM_TYPE", "write"]] {
        let Some(server) = Server::start(settings) else { return };
        let mut connection = server.connect();
        let options: [&[&str]; 4] =
            [&[], &["EXPANSION", "16"], &["NONSCALING"], &["ERROR", "0.00001"]];
        for (number, options) in options.iter().enumerate() {
            let name = format!("f{number}");
            let mut words = vec!["BF.INSERT", &name, "CAPACITY", "150", "ITEMS", "first"];
            words.splice(4..4, options.iter().copied());
            assert_eq!(reply(&mut connection, &words), "[1]");
            let mut all = keys(0, 20);
            items(&mut connection, "BF.MADD", &name, &all);
            let words = ["BF.INFO", &name];
            let (info, pieces) = (reply(&mut connection, &words), dump(&mut connection, &name));
            call::<()>(&mut connection, &["DEBUG", "RELOAD"]);
            call::<()>(&mut connection, &["COPY", &name, "copy"]);
            for name in [&name, "copy"] {
                assert_eq!(reply(&mut connection, &["BF.INFO", name]), info, "{options:?}");
                assert!(dump(&mut connection, name) == pieces, "{options:?}");
            }
            call::<()>(&mut connection, &["DEL", "copy"]);
            all.extend(keys(20, if number == 2 { 100 } else { 5_000 }));
            items(&mut connection, "BF.MADD", &name, &all);
            all.push("first".into());
            let hits = items(&mut connection, "BF.MEXISTS", &name, &all);
            assert!(hits.iter().all(|hit| *hit), "{options:?}");
            let grown = dump(&mut connection, &name);
            call::<()>(&mut connection, &["DEBUG", "RELOAD"]);
            assert!(dump(&mut connection, &name) == grown, "{options:?}");
        }
    }
}

#[test]
fn pieces_of_a_dump_send_events() {
    let Some(server) = Server::start(&["--notify-keyspace-events", "KEA"]) else { return };
    let mut connection = server.connect();
    items(&mut connection, "BF.MADD", "f", &keys(0, 10));
    let pieces = dump(&mut connection, "f");
    let mut listener = server.connect();
    let mut events = listener.as_pubsub();
    events.subscribe("__keyspace@0__:g").unwrap();
    for (iterator, data) in &pieces {
        load_chunk(&mut connection, "g", *iterator, data).unwrap();
    }
    for expected in ["bloom.reserve", "bloom.add"] {
        let mut event = String::from("new");
        while event == "new" {
            event = events.get_message().unwrap().get_payload().unwrap();
        }
        assert_eq!(event, expected);
    }
}

#[test]
fn a_digest_depends_on_the_contents() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let mut digest = |name: &str| reply(&mut connection, &["DEBUG", "DIGEST-VALUE", name]);
    let mut other = server.connect();
    for capacity in ["100", "100000"] {
        call::<()>(&mut other, &["BF.RESERVE", "f", "0.01", capacity]);
        items(&mut other, "BF.MADD", "f", &keys(0, 10));
        call::<()>(&mut other, &["COPY", "f", "g"]);
        let before = digest("f");
        assert_eq!(digest("g"), before);
        items(&mut other, "BF.MADD", "g", &keys(10, 11));
        assert_ne!(digest("g"), before);
        call::<()>(&mut other, &["DEL", "f", "g"]);
    }
    let mut of_valkey = |item: &str| {
        let words = ["BF.INSERT", "v", "TIGHTENING", "0.5", "ITEMS", item];
        call::<redis::Value>(&mut other, &words);
        digest("v")
    };
    assert_ne!(of_valkey("a"), of_valkey("b"));
}

/// Its pages take the server's thread longer than a small filter.
#[test]
fn a_large_filter_is_unlinked_in_the_background() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    for (capacity, freed) in [("1000", 0), ("10000000", 1)] {
        call::<()>(&mut connection, &["BF.RESERVE", "f", "0.01", capacity]);
        call::<()>(&mut connection, &["UNLINK", "f"]);
        wait_until("it is freed", || info(&mut connection, "lazyfree_pending_objects") == 0);
        assert_eq!(info(&mut connection, "lazyfreed_objects"), freed, "{capacity}");
    }
}

#[test]
fn the_server_tells_the_version_and_the_counters() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let list = reply(&mut connection, &["MODULE", "LIST"]);
    assert!(list.contains("blocked-bloom") && list.contains("\"ver\" 100"), "{list}");
    for (section, has) in [("EVERYTHING", true), ("MODULES", true), ("ALL", false)] {
        let info: String = call(&mut connection, &["INFO", section]);
        assert_eq!(info.contains("bloom_total_memory_bytes"), has, "{section}");
    }
}

/// RedisBloom before its release 2 rounds bits to powers of two: probes use 32 bits of 64 here.
#[test]
fn a_small_filter_with_rounded_bits_answers_and_grows_as_its_model() {
    let mut header = Vec::new();
    header.extend(0_u64.to_le_bytes());
    [1_u32, 4, 2].iter().for_each(|number| header.extend(number.to_le_bytes()));
    [8_u64, 64, 0].iter().for_each(|number| header.extend(number.to_le_bytes()));
    let bits_per_entry = -0.01_f64.ln() / 0.480453013918201;
    [0.01, bits_per_entry].iter().for_each(|number| header.extend(number.to_le_bytes()));
    header.extend(7_u32.to_le_bytes());
    header.extend(3_u64.to_le_bytes());
    header.push(5);
    let mut model = RedisFilter::from_links(&header, vec![vec![0; 8]]).unwrap();
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    for (iterator, data) in model.dump() {
        load_chunk(&mut connection, "f", iterator, &data).unwrap();
    }
    for key in keys(0, 30) {
        let expected = [model.contains(&key)];
        assert_eq!(items(&mut connection, "BF.MEXISTS", "f", &[&key]), expected, "{key}");
        let expected = [model.insert(&key).unwrap()];
        assert_eq!(items(&mut connection, "BF.MADD", "f", &[&key]), expected, "{key}");
        let expected: Vec<_> = model.dump().map(|(i, data)| (i, data.into_owned())).collect();
        assert!(dump(&mut connection, "f") == expected, "{key}");
    }
}

/// Commands that unpack a small filter leave it as small as it was.
#[test]
fn a_small_filter_stays_in_one_allocation() {
    for settings in [&[][..], &["--module-arguments", "REDISBLOOM_TYPE", "write"]] {
        let Some(server) = Server::start(settings) else { return };
        let mut connection = server.connect();
        call::<()>(&mut connection, &["BF.RESERVE", "f", "0.01", "100", "NONSCALING"]);
        let usage = |connection: &mut Connection, name: &str| {
            call::<u64>(connection, &["MEMORY", "USAGE", name])
        };
        let expected = usage(&mut connection, "f");
        let all = keys(0, 150);
        let mut words = vec!["BF.MADD", "f"];
        words.extend(all.iter().map(String::as_str));
        assert!(reply(&mut connection, &words).ends_with("non scaling filter is full]"));
        assert_eq!(usage(&mut connection, "f"), expected);
        let pieces = dump(&mut connection, "f");
        for _ in 0..2 {
            for (iterator, data) in &pieces {
                let _ = load_chunk(&mut connection, "g", *iterator, data);
            }
            assert_eq!(usage(&mut connection, "g"), expected);
        }
        assert!(dump(&mut connection, "g") == pieces);
    }
}

/// A client stops a dump, and another one begins it again after additions.
#[test]
fn a_dump_that_begins_again_has_the_checksums_of_the_filter_now() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    large(&mut connection);
    assert_eq!(scan(&mut connection, 1).0, -1);
    items(&mut connection, "BF.MADD", "f", &keys(1_000, 1_100));
    for (iterator, data) in dump(&mut connection, "f") {
        load_chunk(&mut connection, "g", iterator, &data).unwrap();
    }
    assert!(items(&mut connection, "BF.MEXISTS", "g", &keys(0, 1_100)).iter().all(|hit| *hit));
}

//! Many keys, compared with a growing filter here, which must give the same answers key by key.

use blocked_bloom::{Bitmask, Filter, FilterOptions, Sizing};
use blocked_bloom_scalable::{ScalableBloomFilter, ScalableOptions};

use crate::server::{Server, call, command, dump, info, items, stored_capacity, wait_until};

fn key(i: u64) -> [u8; 8] {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

/// The module's own filters: a first link that gets two thirds of the rate.
fn growing(rate: f64, capacity: u64, expansion: u32) -> ScalableBloomFilter {
    let sizing = Sizing::FalsePositiveRate(2.0 / 3.0 * rate);
    let first = FilterOptions::new(sizing).empty_filter(capacity).unwrap();
    let options = ScalableOptions::new(rate, capacity).with_growth(expansion);
    options.continue_from(first).unwrap()
}

fn contains(filter: &ScalableBloomFilter, keys: &[[u8; 8]]) -> Vec<bool> {
    let mut hits = Bitmask::new();
    filter.contains_batch(keys, &mut hits);
    hits.iter().collect()
}

#[test]
fn a_million_in_commands_of_a_thousand() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    call::<()>(&mut connection, &["BF.RESERVE", "f", "0.01", "50000"]);
    let mut filter = growing(0.01, 50_000, 2);
    let keys: Vec<[u8; 8]> = (0..1_000_000).map(key).collect();
    for keys in keys.chunks(1_000) {
        let mut new = Bitmask::new();
        filter.insert_batch_new(keys, &mut new).unwrap();
        assert!(new.iter().eq(items(&mut connection, "BF.MADD", "f", keys)));
    }
    let absent: Vec<[u8; 8]> = (1_000_000..1_200_000).map(key).collect();
    let (mut missed, mut passed) = (0, 0);
    for keys in keys.chunks(1_000) {
        missed +=
            items(&mut connection, "BF.MEXISTS", "f", keys).iter().filter(|hit| !**hit).count();
    }
    for keys in absent.chunks(1_000) {
        let hits = items(&mut connection, "BF.MEXISTS", "f", keys);
        assert_eq!(hits, contains(&filter, keys));
        passed += hits.iter().filter(|hit| **hit).count();
    }
    assert_eq!(missed, 0);
    assert!(passed < absent.len() / 100, "{passed} of {}", absent.len());
    let card: u64 = call(&mut connection, &["BF.CARD", "f"]);
    assert_eq!(card, filter.keys_inserted());
    let [capacity]: [u64; 1] = call(&mut connection, &["BF.INFO", "f", "CAPACITY"]);
    assert_eq!(capacity, 50_000 * (1 + 2 + 4 + 8 + 16));
    let [links]: [usize; 1] = call(&mut connection, &["BF.INFO", "f", "FILTERS"]);
    assert_eq!(links, filter.links().len());

    // The server counts the filter's memory.
    let [size]: [u64; 1] = call(&mut connection, &["BF.INFO", "f", "SIZE"]);
    let usage: u64 = call(&mut connection, &["MEMORY", "USAGE", "f"]);
    assert!((filter.memory_bytes()..filter.memory_bytes() + 4_096).contains(&size), "{size}");
    // Including the size classes of the server's allocator.
    assert!((size..size + size / 4).contains(&usage), "{usage} {size}");
    let before = info(&mut connection, "used_memory");
    call::<()>(&mut connection, &["DEL", "f"]);
    // Valkey frees it in another thread, and counts the buffers of replies, which grow.
    wait_until("the filter's memory is given back", || {
        let now = info(&mut connection, "used_memory");
        now + filter.memory_bytes() <= before + (64 << 10)
    });
    println!(
        "{card} new of 1000000 keys in {links} links, 0 missed, \
         {passed} of 200000 absent keys passed"
    );
    assert!(server.is_sound());
}

#[test]
fn one_by_one_in_pipelines() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let mut filter = growing(0.01, 100, 2);
    for round in 0..10 {
        let keys: Vec<[u8; 8]> = (0..5_000).map(|i| key(round * 2_500 + i)).collect();
        let mut pipeline = redis::pipe();
        for key in &keys {
            pipeline.cmd("BF.ADD").arg("f").arg(key).cmd("BF.EXISTS").arg("f").arg(key);
        }
        let replies: Vec<i64> = pipeline.query(&mut connection).unwrap();
        for (key, replies) in keys.iter().zip(replies.chunks(2)) {
            assert_eq!(replies, [i64::from(filter.insert(key).unwrap()), 1]);
        }
    }
    let absent: Vec<[u8; 8]> = (1_000_000..1_010_000).map(key).collect();
    let mut pipeline = redis::pipe();
    for key in &absent {
        pipeline.cmd("BF.EXISTS").arg("f").arg(key);
    }
    let replies: Vec<bool> = pipeline.query(&mut connection).unwrap();
    assert_eq!(replies, contains(&filter, &absent));
    assert_eq!(call::<u64>(&mut connection, &["BF.CARD", "f"]), filter.keys_inserted());

    // In a transaction, too.
    let mut transaction = redis::pipe();
    transaction
        .atomic()
        .cmd("BF.MADD")
        .arg("t")
        .arg(&["a", "b"])
        .cmd("BF.EXISTS")
        .arg("t")
        .arg("b");
    let (added, hit): (Vec<i64>, i64) = transaction.query(&mut connection).unwrap();
    assert_eq!((added, hit), (vec![1, 1], 1));
}

#[test]
fn filters_of_every_kind_answer_as_the_core() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    for (rate, capacity, expansion) in
        [(0.5, 1, 2), (0.25, 1, 2), (0.1, 10, 3), (0.001, 70, 4), (0.00001, 1_000, 16)]
    {
        let name = format!("{rate}:{capacity}:{expansion}");
        let words =
            [&name, &rate.to_string(), &capacity.to_string(), "EXPANSION", &expansion.to_string()];
        redis::cmd("BF.RESERVE").arg(&words).exec(&mut connection).unwrap();
        let mut filter = growing(f64::min(rate, 0.25), capacity, expansion);
        // Of every length, with repetitions.
        for length in 1..=130 {
            let keys: Vec<[u8; 8]> = (0..length).map(|i| key(length * 60 + i / 2)).collect();
            let mut new = Bitmask::new();
            filter.insert_batch_new(&keys, &mut new).unwrap();
            let is_new = items(&mut connection, "BF.MADD", &name, &keys);
            assert!(new.iter().eq(is_new), "{name}: {length}");
            let keys: Vec<[u8; 8]> = (0..length).map(|i| key(length * 63 + i)).collect();
            assert_eq!(
                items(&mut connection, "BF.MEXISTS", &name, &keys),
                contains(&filter, &keys),
                "{name}: {length}"
            );
        }
        let [links]: [usize; 1] = call(&mut connection, &["BF.INFO", &name, "FILTERS"]);
        assert_eq!(links, filter.links().len(), "{name}");
        let [of_links]: [u64; 1] = call(&mut connection, &["BF.INFO", &name, "CAPACITY"]);
        assert_eq!(of_links, stored_capacity(&dump(&mut connection, &name)), "{name}");
        println!("{name}: {} keys in {links} links", filter.keys_inserted());
    }
}

#[test]
fn a_filter_that_does_not_grow_takes_as_many_as_reserved() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    call::<()>(&mut connection, &["BF.RESERVE", "f", "0.01", "1000", "NONSCALING"]);
    let mut added = 0;
    // 999 more at the most in the last command that fits, which ends within.
    for round in 0..12 {
        let keys: Vec<[u8; 8]> = (0..97).map(|i| key(round * 97 + i)).collect();
        let reply: redis::Value = {
            connection
                .send_packed_command(&command("BF.MADD", "f", &keys).get_packed_command())
                .unwrap();
            connection.recv_response().unwrap()
        };
        let redis::Value::Array(replies) = reply else { panic!("{reply:?}") };
        added += replies.iter().filter(|reply| **reply == redis::Value::Int(1)).count();
        let is_full = matches!(replies.last(), Some(redis::Value::ServerError(_)));
        assert_eq!(is_full, replies.len() < 97 || added == 1_000 && is_full, "{round}");
        assert!(is_full || replies.len() == 97);
    }
    assert_eq!(added, 1_000);
    assert_eq!(call::<u64>(&mut connection, &["BF.CARD", "f"]), 1_000);
    let keys: Vec<[u8; 8]> = (1_000_000..1_100_000).map(key).collect();
    let passed =
        items(&mut connection, "BF.MEXISTS", "f", &keys).iter().filter(|hit| **hit).count();
    assert!(passed < 1_000 + 150, "{passed} of 100000");
}

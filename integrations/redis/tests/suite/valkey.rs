//! What users of valkey-bloom find: its filters and their stored form, options of `BF.INSERT`,
//! fields of `BF.INFO`, counters, events and a limit of memory. The naive reader of its filters is
//! the crate that it stores them by.

use bloomfilter::Bloom;
use redis::Connection;

use crate::loading::{BAD, LOADING, keys};
use crate::server::{Server, call, error_text, items, load_chunk, reply, wait_until};

/// A filter as valkey-bloom has it.
struct Naive {
    rate: f64,
    tightening: f64,
    expansion: u32,
    seed: [u8; 32],
    /// Filter, items, capacity.
    links: Vec<(Bloom<[u8]>, i64, i64)>,
}

impl Naive {
    fn new(rate: f64, tightening: f64, capacity: i64, expansion: u32, seed: [u8; 32]) -> Self {
        let first = Bloom::new_for_fp_rate_with_seed(capacity as usize, rate, &seed).unwrap();
        Naive { rate, tightening, expansion, seed, links: vec![(first, 0, capacity)] }
    }

    fn contains(&self, item: &str) -> bool {
        self.links.iter().any(|(bloom, ..)| bloom.check(item.as_bytes()))
    }

    /// Whether it is new; none if the filter is full.
    fn add(&mut self, item: &str) -> Option<bool> {
        if self.contains(item) {
            return Some(false);
        }
        let (_, items, capacity) = *self.links.last().unwrap();
        if items >= capacity {
            if self.expansion == 0 {
                return None;
            }
            let rate = self.rate * self.tightening.powi(self.links.len() as i32);
            let capacity = capacity * i64::from(self.expansion);
            let next = Bloom::new_for_fp_rate_with_seed(capacity as usize, rate, &self.seed);
            self.links.push((next.unwrap(), 0, capacity));
        }
        let (bloom, items, _) = self.links.last_mut().unwrap();
        bloom.set(item.as_bytes());
        *items += 1;
        Some(true)
    }

    /// What `BF.LOAD` takes.
    fn to_bytes(&self) -> Vec<u8> {
        self.bytes_with(|stored| stored)
    }

    /// The pieces of `BF.LOADCHUNK`, each of at most `most` bytes, and of one link.
    fn to_pieces(&self, most: usize) -> Vec<(i64, Vec<u8>)> {
        let bits: Vec<&[u8]> =
            self.links.iter().map(|(bloom, ..)| &bloom.as_slice()[45..]).collect();
        let total: usize = bits.iter().map(|bits| bits.len()).sum();
        let mut header = b"\x89BBVALK\n".to_vec();
        header.extend((total as u64).to_le_bytes());
        header.extend(self.bytes_with(|stored| &stored[..45]));
        let mut pieces = vec![(1, header)];
        for piece in bits.into_iter().flat_map(|bits| bits.chunks(most)) {
            let before = pieces.last().unwrap().0;
            pieces.push((before + piece.len() as i64, piece.to_vec()));
        }
        pieces
    }

    fn bytes_with(&self, stored: impl Fn(&[u8]) -> &[u8]) -> Vec<u8> {
        let is_random = self.seed != FIXED;
        let mut bytes = vec![1];
        bytes.extend(self.expansion.to_le_bytes());
        bytes.extend(self.rate.to_le_bytes());
        bytes.extend(self.tightening.to_le_bytes());
        bytes.push(is_random.into());
        bytes.extend((self.links.len() as u64).to_le_bytes());
        for (bloom, items, capacity) in &self.links {
            bytes.extend((bloom.as_slice().len() as u64).to_le_bytes());
            bytes.extend_from_slice(stored(bloom.as_slice()));
            bytes.extend(items.to_le_bytes());
            bytes.extend(capacity.to_le_bytes());
        }
        bytes
    }
}

/// The seed of filters whose seed is not random.
const FIXED: [u8; 32] = [
    89, 15, 245, 34, 234, 120, 17, 218, 167, 20, 216, 9, 59, 62, 123, 217, 29, 137, 138, 115, 62,
    152, 136, 135, 48, 127, 151, 205, 40, 7, 51, 131,
];
const RANDOM: [u8; 32] = *b"thirty-two bytes of a real seed.";

/// Items of each length, and such as end within a word of the hash.
fn item(i: usize) -> String {
    format!("{i}{}", "x".repeat(i % 19))
}

/// Filters of several shapes, with items.
fn naive() -> Vec<(&'static str, Naive)> {
    let mut all = vec![
        ("empty", Naive::new(0.01, 0.5, 100, 2, FIXED)),
        ("one", Naive::new(0.01, 0.5, 1_000, 2, FIXED)),
        ("grown", Naive::new(0.02, 0.5, 10, 3, RANDOM)),
        ("fixed", Naive::new(0.3, 0.5, 500, 0, RANDOM)),
        ("low", Naive::new(1e-9, 0.85, 50, 1, FIXED)),
    ];
    for ((_, filter), count) in all.iter_mut().zip([0, 700, 3_000, 400, 120]) {
        (0..count).for_each(|i| assert!(filter.add(&item(i)).is_some()));
    }
    all.push(("large", large()));
    all
}

/// A filter of 0.5 and 2.2 MB.
fn large() -> Naive {
    let mut filter = Naive::new(0.01, 0.5, 400_000, 4, RANDOM);
    (0..1_000).for_each(|i| assert!(filter.add(&item(i)).is_some()));
    // As if the first link were full.
    filter.links[0].1 = filter.links[0].2;
    (1_000..2_000).for_each(|i| assert!(filter.add(&item(i)).is_some()));
    filter
}

fn load(connection: &mut Connection, name: &str, bytes: &[u8]) -> Result<(), String> {
    let result = redis::cmd("BF.LOAD").arg(name).arg(bytes).query(connection);
    result.map_err(|error| error_text(&error))
}

fn rewrite_aof(connection: &mut Connection, preamble: &str) {
    call::<()>(connection, &["CONFIG", "SET", "aof-use-rdb-preamble", preamble]);
    call::<()>(connection, &["BGREWRITEAOF"]);
    wait_until("the AOF is rewritten", || {
        let text: String = call(connection, &["INFO", "persistence"]);
        text.contains("aof_rewrite_in_progress:0") && text.contains("aof_rewrite_scheduled:0")
    });
}

/// Whether the server answers as the naive filter, for items of it and others.
fn compare(connection: &mut Connection, name: &str, filter: &Naive) {
    let all: Vec<String> = (0..6_000).map(item).collect();
    let expected: Vec<bool> = all.iter().map(|item| filter.contains(item)).collect();
    assert!(items(connection, "BF.MEXISTS", name, &all) == expected, "{name}");
    let one = reply(connection, &["BF.EXISTS", name, &all[3]]);
    assert_eq!(one, i32::from(expected[3]).to_string(), "{name}");
    let count: i64 = filter.links.iter().map(|(_, items, _)| items).sum();
    let capacity: i64 = filter.links.iter().map(|(.., capacity)| capacity).sum();
    assert_eq!(reply(connection, &["BF.CARD", name]), count.to_string(), "{name}");
    for (field, expected) in
        [("CAPACITY", capacity.to_string()), ("FILTERS", filter.links.len().to_string())]
    {
        let found = reply(connection, &["BF.INFO", name, field]);
        assert_eq!(found, format!("[{expected}]"), "{name} {field}");
    }
    let [rate]: [f64; 1] = call(connection, &["BF.INFO", name, "ERROR"]);
    assert_eq!(rate, filter.rate, "{name}");
}

#[test]
fn filters_of_valkey_bloom_answer_grow_and_are_stored_as_there() {
    let options = ["--appendonly", "yes", "--appendfsync", "always"];
    let Some(mut server) = Server::start(&options) else { return };
    let mut connection = server.connect();
    let mut filters = naive();
    for (name, filter) in &mut filters {
        load(&mut connection, name, &filter.to_bytes()).unwrap();
        compare(&mut connection, name, filter);
        // Both take more items alike.
        let more: Vec<String> = (2_000..5_000).map(item).collect();
        let mut expected = Vec::new();
        for item in &more {
            match filter.add(item) {
                Some(is_new) => expected.push(i32::from(is_new).to_string()),
                None => {
                    expected.push("-ERR non scaling filter is full".into());
                    break;
                }
            }
        }
        let words: Vec<&str> =
            ["BF.MADD", name].into_iter().chain(more.iter().map(String::as_str)).collect();
        assert_eq!(reply(&mut connection, &words), format!("[{}]", expected.join(" ")), "{name}");
        compare(&mut connection, name, filter);
        assert_eq!(reply(&mut connection, &["COPY", name, &format!("{name}:copy")]), "1");
        let error = load(&mut connection, name, &filter.to_bytes()).unwrap_err();
        assert_eq!(error, "BUSYKEY Target key name already exists.");
        let text = reply(&mut connection, &["BF.SCANDUMP", name, "0"]);
        assert_eq!(text, "-ERR a filter of valkey-bloom has no dump");
    }
    // From the commands, from a rewritten AOF, from one with a preamble, and from an RDB file.
    for rewrite in [None, Some("no"), Some("yes")] {
        if let Some(preamble) = rewrite {
            rewrite_aof(&mut connection, preamble);
        }
        server.kill();
        server.start_again();
        connection = server.connect();
        for (name, filter) in &filters {
            compare(&mut connection, name, filter);
            compare(&mut connection, &format!("{name}:copy"), filter);
        }
    }
    for (name, filter) in &filters {
        let payload: Vec<u8> = redis::cmd("DUMP").arg(name).query(&mut connection).unwrap();
        assert_is_of_valkey(&payload, name);
        let mut restore = redis::cmd("RESTORE");
        let restore = restore.arg(format!("{name}:restored")).arg(0).arg(&payload);
        restore.exec(&mut connection).unwrap();
        compare(&mut connection, &format!("{name}:restored"), filter);
    }
    assert!(server.is_sound());
}

/// The payload is a module's value (7). Its type follows as 64 bits: the name `bloomfltr` with six
/// bits per character, then the version 1 in ten bits.
fn assert_is_of_valkey(payload: &[u8], name: &str) {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let id = b"bloomfltr".iter().fold(0_u64, |id, letter| {
        id << 6 | letters.iter().position(|of| of == letter).unwrap() as u64
    });
    assert_eq!((payload[0], payload[1]), (7, 0x81));
    assert_eq!(payload[2..10], (id << 10 | 1).to_be_bytes(), "{name}");
}

#[test]
fn filters_of_valkey_bloom_come_in_pieces() {
    let options = ["--appendonly", "yes", "--appendfsync", "always"];
    let Some(mut server) = Server::start(&options) else { return };
    let mut connection = server.connect();
    let mut filters = naive();
    let names: Vec<String> = filters.iter().map(|(name, _)| (*name).to_string()).collect();
    // The first half of the pieces, and then the others: after a restart from the commands, and
    // from an AOF that was rewritten in between.
    for rewrite in [None, Some("no"), Some("yes")] {
        let sizes = [1, 1 << 20, 7];
        let pieces: Vec<Vec<(i64, Vec<u8>)>> = filters
            .iter()
            .zip(sizes.into_iter().cycle())
            .map(|((name, filter), most)| {
                filter.to_pieces(if *name == "large" { 1 << 18 } else { most })
            })
            .collect();
        for (name, pieces) in names.iter().zip(&pieces) {
            let (first, later) = pieces.split_at(pieces.len() / 2);
            for (iterator, data) in first {
                load_chunk(&mut connection, name, *iterator, data).unwrap();
            }
            if later.len() > 1 {
                let (iterator, data) = &later[1];
                assert_eq!(load_chunk(&mut connection, name, *iterator, data).unwrap_err(), BAD);
            }
            assert_eq!(reply(&mut connection, &["BF.EXISTS", name, "a"]), LOADING);
            assert_eq!(reply(&mut connection, &["PEXPIRE", name, "100000000"]), "1");
        }
        if let Some(preamble) = rewrite {
            rewrite_aof(&mut connection, preamble);
        }
        server.kill();
        server.start_again();
        connection = server.connect();
        for (((name, filter), pieces), most) in filters.iter_mut().zip(&pieces).zip(1..) {
            let (first, later) = pieces.split_at(pieces.len() / 2);
            // A client that has lost a reply.
            let again = first.iter().skip(1).next_back();
            for (iterator, data) in again.into_iter().chain(later) {
                load_chunk(&mut connection, name, *iterator, data).unwrap();
            }
            let (iterator, data) = pieces.last().unwrap();
            load_chunk(&mut connection, name, *iterator, data).unwrap();
            compare(&mut connection, name, filter);
            let expires: i64 = call(&mut connection, &["PTTL", name]);
            assert!((1..=100_000_000).contains(&expires), "{name}: {expires}");
            let payload: Vec<u8> = redis::cmd("DUMP").arg(*name).query(&mut connection).unwrap();
            assert_is_of_valkey(&payload, name);
            let new = format!("new:{most}");
            if let Some(is_new) = filter.add(&new) {
                assert_eq!(
                    reply(&mut connection, &["BF.ADD", name, &new]),
                    i32::from(is_new).to_string()
                );
            }
        }
        // And what an AOF has of the complete filters.
        server.kill();
        server.start_again();
        connection = server.connect();
        for (name, filter) in &filters {
            compare(&mut connection, name, filter);
        }
        call::<()>(&mut connection, &["FLUSHALL"]);
    }
    assert!(server.is_sound());
}

#[test]
fn damaged_headers_of_valkey_bloom_are_errors() {
    let Some(mut server) = Server::start(&["--maxmemory", "200mb"]) else { return };
    let mut connection = server.connect();
    let mut filter = Naive::new(0.05, 0.5, 5, 2, RANDOM);
    (0..12).for_each(|i| assert!(filter.add(&item(i)).is_some()));
    let pieces = filter.to_pieces(10);
    let header = &pieces[0].1;
    let mut errors = 0;
    for bit in 0..8 * header.len() {
        let mut damaged = header.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        match load_chunk(&mut connection, "f", 1, &damaged) {
            Err(error) => {
                let known = [BAD, "ERR Insufficient memory to create filter"];
                assert!(known.contains(&error.as_str()), "{bit}: {error}");
                errors += 1;
            }
            // There is no checksum: a number that may be so.
            Ok(()) => {
                for (iterator, data) in &pieces[1..] {
                    load_chunk(&mut connection, "f", *iterator, data).unwrap();
                }
                reply(&mut connection, &["BF.INFO", "f", "MAXSCALEDCAPACITY"]);
            }
        }
        call::<()>(&mut connection, &["DEL", "f"]);
    }
    for length in 0..header.len() {
        let error = load_chunk(&mut connection, "f", 1, &header[..length]).unwrap_err();
        assert_eq!(error, BAD, "{length}");
    }
    let longer = [&header[..], b"x"].concat();
    assert_eq!(load_chunk(&mut connection, "f", 1, &longer).unwrap_err(), BAD);
    // Another number of bytes than those of the links.
    let total = u64::from_le_bytes(header[8..16].try_into().unwrap());
    for total in [total - 1, total + 1] {
        let mut other = header.clone();
        other[8..16].copy_from_slice(&total.to_le_bytes());
        assert_eq!(load_chunk(&mut connection, "f", 1, &other).unwrap_err(), BAD, "{total}");
    }
    // Above `maxmemory`, a terabyte, and more than there can be.
    for length in [300_u64 << 20, 1 << 40, 1 << 62, u64::MAX - 44] {
        let mut large = Naive::new(0.05, 0.5, 5, 2, RANDOM).to_pieces(10)[0].1.clone();
        large[8..16].copy_from_slice(&(length - 45).to_le_bytes());
        large[46..54].copy_from_slice(&length.to_le_bytes());
        large[55..63].copy_from_slice(&(length - 45).to_le_bytes());
        let error = load_chunk(&mut connection, "f", 1, &large).unwrap_err();
        assert_eq!(error, "ERR Insufficient memory to create filter", "{length}");
    }
    assert!(errors > 300 && server.is_sound(), "{errors}");
}

#[test]
fn damaged_bytes_of_valkey_bloom_are_errors() {
    let Some(mut server) = Server::start(&["--maxmemory", "200mb"]) else { return };
    let mut connection = server.connect();
    let mut filter = Naive::new(0.05, 0.5, 5, 2, RANDOM);
    (0..12).for_each(|i| assert!(filter.add(&item(i)).is_some()));
    let bytes = filter.to_bytes();
    let (mut errors, mut loaded) = (0, 0);
    for bit in 0..8 * bytes.len() {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        match load(&mut connection, "f", &damaged) {
            Err(error) => {
                assert!(error.starts_with("ERR bloom object decoding failed"), "{bit}: {error}");
                errors += 1;
            }
            // There is no checksum: a number or bits that may be so. It takes more items, or says
            // why not.
            Ok(()) => {
                let words: Vec<String> = (100..200).map(item).collect();
                let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
                words.splice(0..0, ["BF.MADD", "f"]);
                let text = reply(&mut connection, &words);
                let is_known = ["[", "-ERR problem inserting", "-ERR operation exceeds"];
                assert!(is_known.iter().any(|start| text.starts_with(start)), "{bit}: {text}");
                reply(&mut connection, &["BF.INFO", "f", "MAXSCALEDCAPACITY"]);
                loaded += 1;
            }
        }
        call::<()>(&mut connection, &["DEL", "f"]);
    }
    for length in 0..bytes.len() {
        assert!(load(&mut connection, "f", &bytes[..length]).is_err(), "{length}");
    }
    assert!(load(&mut connection, "f", &[&bytes[..], b"x"].concat()).is_err());
    let error = load(&mut connection, "f", &[&[2], &bytes[1..]].concat()).unwrap_err();
    assert_eq!(error, "ERR bloom object decoding failed. Unsupported version");
    println!("{errors} damaged bits rejected, {loaded} are another filter");
    assert!(errors > 500 && server.is_sound());
}

#[test]
fn insert_takes_the_words_of_valkey_bloom() {
    let Some(server) = Server::start(&[]) else { return };
    let replica = Server::start(&[]).unwrap();
    call::<()>(&mut replica.connect(), &["REPLICAOF", "127.0.0.1", &server.port.to_string()]);
    let mut connection = server.connect();
    // Without items: as `BF.RESERVE`, unless the filter is there.
    assert_eq!(reply(&mut connection, &["BF.INSERT", "a"]), "[]");
    assert_eq!(reply(&mut connection, &["BF.INSERT", "a", "CAPACITY", "5"]), "[]");
    assert_eq!(reply(&mut connection, &["BF.INFO", "a", "CAPACITY"]), "[100]");
    assert_eq!(reply(&mut connection, &["BF.INSERT", "b", "NOCREATE"]), "-ERR not found");
    // As a primary sends it: the filter is the same as there.
    let mut naive = Naive::new(0.02, 0.25, 10, 3, RANDOM);
    let items: Vec<String> = (0..500).map(item).collect();
    let mut insert = redis::cmd("BF.INSERT");
    insert.arg("c").arg(&["CAPACITY", "10", "ERROR", "0.02", "TIGHTENING", "0.25", "SEED"]);
    insert.arg(&RANDOM[..]).arg(&["EXPANSION", "3", "ITEMS"]).arg(&items);
    let new: Vec<i64> = insert.query(&mut connection).unwrap();
    let expected: Vec<i64> = items.iter().map(|item| naive.add(item).unwrap().into()).collect();
    assert_eq!(new, expected);
    compare(&mut connection, "c", &naive);
    let mut other = replica.connect();
    wait_until("the replica has it", || reply(&mut other, &["EXISTS", "c"]) == "1");
    compare(&mut other, "c", &naive);
    assert_eq!(reply(&mut connection, &["BF.INFO", "c", "TIGHTENING"]), "[\"0.25\"]");
    let seed = std::str::from_utf8(&RANDOM).unwrap();
    for (words, error) in [
        (&["TIGHTENING", "1"][..], "-ERR (0 < tightening ratio range < 1)"),
        (&["TIGHTENING", "x"], "-ERR bad tightening ratio"),
        (&["SEED", "short"], "-ERR invalid seed"),
        (&["VALIDATESCALETO", "0"], "-Bad capacity"),
        (
            &["NONSCALING", "VALIDATESCALETO", "100"],
            "-ERR cannot use NONSCALING and VALIDATESCALETO options together",
        ),
        (
            &["ERROR", "0.00000001", "VALIDATESCALETO", "1073741824"],
            "-ERR provided VALIDATESCALETO causes false positive to degrade to 0",
        ),
        // Of two forms of filters, whichever word comes first.
        (
            &["BLOCKED", "TIGHTENING", "0.25", "ITEMS", "x"],
            "-ERR cannot use BLOCKED and TIGHTENING options together",
        ),
        (
            &["SEED", seed, "BLOCKED", "ITEMS", "x"],
            "-ERR cannot use BLOCKED and SEED options together",
        ),
        (
            &["TIGHTENING", "0.25", "BLOCKED", "SEED", seed],
            "-ERR cannot use BLOCKED and TIGHTENING options together",
        ),
    ] {
        let text = reply(&mut connection, &[&["BF.INSERT", "d"], words].concat());
        assert!(text.starts_with(error), "{words:?}: {text}");
        assert_eq!(reply(&mut connection, &["EXISTS", "d"]), "0", "{words:?}");
    }
    // Also for a filter that is there, of either form.
    for name in ["a", "c"] {
        let words = ["BF.INSERT", name, "BLOCKED", "SEED", seed, "ITEMS", "of no filter"];
        let text = reply(&mut connection, &words);
        assert_eq!(text, "-ERR cannot use BLOCKED and SEED options together", "{name}");
        assert_eq!(reply(&mut connection, &["BF.EXISTS", name, "of no filter"]), "0", "{name}");
    }
    let words = ["BF.INSERT", "d", "VALIDATESCALETO", "1000000"];
    assert_eq!(reply(&mut connection, &words), "[]");
}

#[test]
fn a_limit_of_memory_is_that_of_each_filter() {
    let limit = ["--module-arguments", "bloom-memory-usage-limit", "100000"];
    let Some(server) = Server::start(&limit) else { return };
    let mut connection = server.connect();
    let over = "-ERR operation exceeds bloom object memory limit";
    assert_eq!(reply(&mut connection, &["BF.RESERVE", "f", "0.01", "100000"]), over);
    assert_eq!(reply(&mut connection, &["BF.INSERT", "f", "CAPACITY", "100000"]), over);
    // It can become what `BF.INFO` says, and no larger.
    let words = ["BF.RESERVE", "f", "0.01", "1000"];
    assert_eq!(reply(&mut connection, &words), "OK");
    let [most]: [u64; 1] = call(&mut connection, &["BF.INFO", "f", "MAXSCALEDCAPACITY"]);
    let mut added = 0;
    for first in (0..1_000_000).step_by(500) {
        let words = keys(first, first + 500);
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.splice(0..0, ["BF.MADD", "f"]);
        let text = reply(&mut connection, &words);
        if text == over {
            break;
        }
        added = first;
    }
    let [capacity]: [u64; 1] = call(&mut connection, &["BF.INFO", "f", "CAPACITY"]);
    let [size]: [u64; 1] = call(&mut connection, &["BF.INFO", "f", "SIZE"]);
    println!("{added} keys, capacity {capacity} of at most {most}, {size} bytes");
    assert!(capacity == most && size <= 100_000, "{capacity} {most} {size}");
    let (fits, more) = (most.to_string(), (most + 1).to_string());
    let words = ["BF.INSERT", "g", "CAPACITY", "1000", "VALIDATESCALETO", &fits];
    assert_eq!(reply(&mut connection, &words), "[]");
    let words = ["BF.INSERT", "h", "CAPACITY", "1000", "VALIDATESCALETO", &more];
    let error = "-ERR provided VALIDATESCALETO causes bloom object to exceed memory limit";
    assert_eq!(reply(&mut connection, &words), error);
    // Replicas follow.
    let replica = Server::start(&["--module-arguments", "bloom-memory-usage-limit", "1"]).unwrap();
    let mut other = replica.connect();
    call::<()>(&mut other, &["REPLICAOF", "127.0.0.1", &server.port.to_string()]);
    wait_until("the replica has it", || reply(&mut other, &["EXISTS", "g"]) == "1");
    items(&mut connection, "BF.MADD", "i", &keys(0, 300));
    wait_until("the replica has it", || {
        reply(&mut other, &["BF.CARD", "i"]) == "300"
            || reply(&mut other, &["BF.CARD", "i"]) == reply(&mut connection, &["BF.CARD", "i"])
    });
}

/// What `INFO` says of all filters together.
fn counters(connection: &mut Connection) -> Vec<u64> {
    let text: String = call(connection, &["INFO", "modules"]);
    let text = if text.contains("bloom_num_objects") {
        text
    } else {
        call(connection, &["INFO", "everything"])
    };
    let names = ["num_objects", "num_filters_across", "num_items_across", "capacity_across"];
    let names = names.iter().chain(&["total_memory_bytes", "defrag_hits"]);
    let number = |name: &&str| {
        let line = text.lines().find(|line| line.contains(&format!("bloom_{name}")));
        let line = line.unwrap_or_else(|| panic!("{name} in {text}"));
        line.split(':').nth(1).unwrap().trim().parse().unwrap()
    };
    names.map(number).collect()
}

#[test]
fn counters_are_those_of_all_filters() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    assert_eq!(counters(&mut connection), [0; 6]);
    let mut expected = [0; 4];
    let mut size = 0;
    let mut name = |connection: &mut Connection, name: &str| {
        let fields = ["FILTERS", "ITEMS", "CAPACITY", "SIZE"];
        let [links, items, capacity, bytes] = fields.map(|field| {
            let [number]: [u64; 1] = call(connection, &["BF.INFO", name, field]);
            number
        });
        let more = [1, links, items, capacity];
        expected.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        size += bytes;
    };
    items(&mut connection, "BF.MADD", "grown", &keys(0, 1_000));
    for key in keys(0, 50) {
        reply(&mut connection, &["BF.ADD", "one", &key]);
    }
    call::<()>(&mut connection, &["BF.RESERVE", "gone", "0.01", "1000"]);
    call::<()>(&mut connection, &["COPY", "grown", "copy"]);
    load(&mut connection, "loaded", &Naive::new(0.01, 0.5, 100, 2, FIXED).to_bytes()).unwrap();
    let dump = crate::server::dump(&mut connection, "grown");
    crate::server::load(&mut connection, "dump", &dump);
    call::<()>(&mut connection, &["DEL", "gone"]);
    for of in ["grown", "one", "copy", "loaded", "dump"] {
        name(&mut connection, of);
    }
    let found = counters(&mut connection);
    assert_eq!(found[..4], expected);
    // Without headers of dumps that are kept.
    assert!(found[4] <= size && found[4] > size / 2, "{found:?} {size}");
    call::<()>(&mut connection, &["DEBUG", "RELOAD"]);
    // A server may free them in the background.
    wait_until("the old ones are freed", || counters(&mut connection)[..4] == expected);
    call::<()>(&mut connection, &["FLUSHALL"]);
    wait_until("all are freed", || counters(&mut connection)[..5] == [0; 5]);
}

#[test]
fn counters_have_the_bytes_of_filters_that_come_piece_by_piece() {
    for options in [&[][..], &["--module-arguments", "REDISBLOOM_TYPE", "write"]] {
        let Some(server) = Server::start(options) else { return };
        let mut connection = server.connect();
        let own = crate::loading::blocked(&mut connection, "own", &["0.01", "100"], 5_000);
        call::<()>(&mut connection, &["DEL", "own"]);
        for dump in [own, crate::loading::redis_bloom(100, 5_000).1] {
            let data: Vec<u8> = dump[1..].iter().flat_map(|(_, data)| data).copied().collect();
            let total = data.len() as u64;
            // By so much that a piece ends within a link.
            let send = |connection: &mut Connection, from: usize, to: usize| {
                let (mut from, mut most) = (from, 1_000);
                while from < to {
                    let end = to.min(from + most);
                    match load_chunk(connection, "f", 1 + end as i64, &data[from..end]) {
                        Ok(()) => (from, most) = (end, 1_000),
                        Err(error) => {
                            assert!(error.starts_with("ERR invalid chunk") && most > 1, "{error}");
                            most /= 2;
                        }
                    }
                }
            };
            let half = data.len() / 2;
            // From the beginning, twice; across a restart; and all of it.
            for (reloads, is_whole) in [(false, false), (true, false), (true, true), (false, true)]
            {
                for _ in 0..2 {
                    load_chunk(&mut connection, "f", 1, &dump[0].1).unwrap();
                    send(&mut connection, 0, half);
                    let bytes = counters(&mut connection)[4];
                    assert!((total / 2..3 * total).contains(&bytes), "{bytes} of {total}");
                }
                if reloads {
                    call::<()>(&mut connection, &["DEBUG", "RELOAD"]);
                }
                // A key of RedisBloom's type is saved with ones for the missing bits.
                let is_own = dump[0].1.starts_with(b"\x89BBRDIS");
                if reloads && !is_own && !options.is_empty() {
                    call::<()>(&mut connection, &["DEL", "f"]);
                    load_chunk(&mut connection, "f", 1, &dump[0].1).unwrap();
                    send(&mut connection, 0, half);
                }
                if is_whole {
                    send(&mut connection, half, data.len());
                    let [size]: [u64; 1] = call(&mut connection, &["BF.INFO", "f", "SIZE"]);
                    wait_until("the old one is freed", || counters(&mut connection)[0] == 1);
                    assert_eq!(counters(&mut connection)[4], size);
                }
                call::<()>(&mut connection, &["DEL", "f"]);
                wait_until("it is freed", || counters(&mut connection)[0] == 0);
                assert_eq!(counters(&mut connection)[..5], [0; 5], "{reloads} {is_whole}");
            }
        }
    }
}

/// A filter of links that are hardly larger than the ones before.
#[test]
fn the_limit_of_growth_is_found_in_a_moment() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let shape = ["CAPACITY", "1", "EXPANSION", "1", "TIGHTENING", "0.99999"];
    assert_eq!(reply(&mut connection, &[&["BF.INSERT", "f"], &shape[..]].concat()), "[]");
    assert_eq!(reply(&mut connection, &["BF.INSERT", "usual", "TIGHTENING", "0.5"]), "[]");
    let mut time = |name: &str| {
        let start = server.cpu_nanoseconds();
        for _ in 0..20 {
            reply(&mut connection, &["BF.INFO", name, "MAXSCALEDCAPACITY"]);
        }
        (server.cpu_nanoseconds() - start) / 20
    };
    time("usual");
    let (usual, of_many) = (time("usual"), time("f"));
    println!("{usual} ns, of many links {of_many} ns");
    assert!(of_many < 100 * usual.max(20_000), "{usual} {of_many}");
}

#[test]
fn events_say_what_was_made_and_added() {
    let Some(server) = Server::start(&["--notify-keyspace-events", "KEA"]) else { return };
    let mut connection = server.connect();
    let mut listener = server.connect();
    let mut events = listener.as_pubsub();
    events.psubscribe("__keyspace@0__:*").unwrap();
    for words in [
        &["BF.RESERVE", "a", "0.01", "100"][..],
        &["BF.ADD", "a", "x"],
        &["BF.ADD", "a", "x"],
        &["BF.MADD", "a", "x", "y"],
        &["BF.ADD", "b", "x"],
        &["BF.INSERT", "c"],
        &["SET", "end", ""],
    ] {
        reply(&mut connection, words);
    }
    let mut found = Vec::new();
    while !found.iter().any(|event: &String| event == "end set") {
        let message = events.get_message().unwrap();
        let name = message.get_channel_name().rsplit(':').next().unwrap().to_string();
        let event: String = message.get_payload().unwrap();
        if event != "new" {
            found.push(format!("{name} {event}"));
        }
    }
    let mut expected = [
        "a bloom.reserve",
        "a bloom.add",
        "a bloom.add",
        "b bloom.reserve",
        "b bloom.add",
        "c bloom.reserve",
        "end set",
    ];
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

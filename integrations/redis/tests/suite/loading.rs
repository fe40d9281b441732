//! `BF.SCANDUMP` into `BF.LOADCHUNK`: of own filters and of RedisBloom's, whole, and with pieces
//! out of order or missing.

use blocked_bloom_formats::redis::RedisFilter;
use redis::Connection;

use crate::server::{Server, call, dump, info, items, load, load_chunk, reply};

pub(crate) type Dump = Vec<(i64, Vec<u8>)>;

pub(crate) const BAD: &str = "ERR received bad data";
pub(crate) const NO_LINK: &str = "ERR invalid offset - no link found";
const ACROSS: &str = "ERR invalid chunk - Too big for current filter";
pub(crate) const LOADING: &str = "-ERR filter is not completely loaded";

pub(crate) fn keys(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|i| format!("key:{i}")).collect()
}

/// An own filter with the keys of `0..count`, and its dump.
pub(crate) fn blocked(
    connection: &mut Connection,
    name: &str,
    arguments: &[&str],
    count: usize,
) -> Dump {
    redis::cmd("BF.RESERVE").arg(name).arg(arguments).exec(connection).unwrap();
    if count > 0 {
        items(connection, "BF.MADD", name, &keys(0, count));
    }
    dump(connection, name)
}

/// A filter as RedisBloom makes it, with the keys of `0..count`, and its dump.
pub(crate) fn redis_bloom(capacity: u64, count: usize) -> (RedisFilter, Dump) {
    let mut filter = RedisFilter::new(capacity, 0.01, Some(2)).unwrap();
    keys(0, count).iter().for_each(|key| assert!(filter.insert(key).is_ok()));
    let dump = filter.dump().map(|(iterator, data)| (iterator, data.into_owned())).collect();
    (filter, dump)
}

#[test]
fn loaded_filters_equal_their_sources() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let kinds: [(&str, &[&str], usize); 6] = [
        ("empty", &["0.01", "100"], 0),
        ("one", &["0.01", "100", "EXPANSION", "5"], 1),
        ("grown", &["0.01", "100", "EXPANSION", "4"], 5_000),
        ("fixed", &["0.01", "100", "NONSCALING"], 50),
        ("full", &["0.01", "100", "NONSCALING"], 100),
        ("large", &["0.01", "15000000"], 1_000),
    ];
    for (name, arguments, count) in kinds {
        let dump_before = blocked(&mut connection, name, arguments, count);
        let copy = format!("{name}:copy");
        load(&mut connection, &copy, &dump_before);
        assert_eq!(dump(&mut connection, &copy), dump_before, "{name}");
        for words in [["BF.INFO", ""], ["BF.CARD", ""]] {
            let [of, of_copy] =
                [name, &copy[..]].map(|name| reply(&mut connection, &[words[0], name]));
            // The size includes kept headers of the dump.
            let without_size = |text: String| {
                let mut words: Vec<String> = text.split(' ').map(String::from).collect();
                if let Some(at) = words.iter().position(|word| word == "Size") {
                    words.remove(at + 1);
                }
                words
            };
            assert_eq!(without_size(of), without_size(of_copy), "{name}");
        }
        // Both take more keys alike.
        let more = keys(count / 2, count + 3_000);
        let [of, of_copy] = [name, &copy[..]].map(|name| {
            reply(
                &mut connection,
                &[&["BF.MADD", name], &more.iter().map(String::as_str).collect::<Vec<_>>()[..]]
                    .concat(),
            )
        });
        assert_eq!(of, of_copy, "{name}");
        assert_eq!(dump(&mut connection, name), dump(&mut connection, &copy), "{name}");
        println!(
            "{name}: {} replies, {} bytes",
            dump_before.len(),
            dump_before.iter().map(|(_, data)| data.len()).sum::<usize>()
        );
    }
    assert_eq!(dump(&mut connection, "large").len(), 4);
    // From anywhere within.
    let whole: Vec<u8> =
        dump(&mut connection, "grown").into_iter().skip(1).flat_map(|(_, data)| data).collect();
    for offset in [0, 1, 63, 64, 65, 127, 128, 1_000, whole.len() - 1] {
        let (end, data): (usize, Vec<u8>) =
            redis::cmd("BF.SCANDUMP").arg("grown").arg(1 + offset).query(&mut connection).unwrap();
        assert!(data == whole[offset..] && end == whole.len() + 1, "{offset}");
    }
    assert_eq!(
        reply(&mut connection, &["BF.SCANDUMP", "grown", &(whole.len() + 1).to_string()]),
        "[0 \"\"]"
    );
    assert!(server.is_sound());
}

#[test]
fn the_header_of_an_own_dump_is_none_of_redisbloom() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    for (name, arguments, count) in [
        ("a", &["0.01", "100"][..], 0),
        ("b", &["0.1", "7", "EXPANSION", "16"], 5_000),
        ("c", &["0.2", "9", "NONSCALING"], 9),
    ] {
        let dump = blocked(&mut connection, name, arguments, count);
        let (iterator, header) = &dump[0];
        assert_eq!(*iterator, 1);
        // What RedisBloom's loader checks first: as many bytes as 53 for each link and 20 more, and
        // no option above 15.
        assert!((header.len() - 20) % 53 != 0);
        let [links, options] =
            [8, 12].map(|at| u32::from_le_bytes(header[at..][..4].try_into().unwrap()));
        assert_ne!(header.len() as u64, 20 + 53 * u64::from(links));
        assert!(options & !15 != 0);
        assert!(RedisFilter::load(dump).is_err());
    }
}

/// Sends the pieces of a dump wrongly, and then rightly.
fn wrong_order(connection: &mut Connection, name: &str, dump: &Dump, by_link: bool) {
    let total = dump.last().unwrap().0 - 1;
    // Without a header there is nothing to load into.
    assert_eq!(load_chunk(connection, name, dump[1].0, &dump[1].1).unwrap_err(), "ERR not found");
    load_chunk(connection, name, 1, &dump[0].1).unwrap();
    for (number, (iterator, data)) in dump.iter().enumerate().skip(1) {
        let mut rejected = |iterator: i64, data: &[u8], error: &str| {
            let result = load_chunk(connection, name, iterator, data);
            assert_eq!(
                result.unwrap_err(),
                error,
                "{name}: piece {number}, iterator {iterator}, {} bytes",
                data.len()
            );
        };
        // No later piece, nothing, from elsewhere, and after the end.
        for (iterator, data) in &dump[number + 1..] {
            rejected(*iterator, data, BAD);
        }
        for iterator in [i64::MIN, -1, 0, *iterator - 1, *iterator + 1] {
            rejected(
                iterator,
                data,
                if iterator.saturating_sub(data.len() as i64) > total { NO_LINK } else { BAD },
            );
        }
        rejected(*iterator, b"", if *iterator > total { NO_LINK } else { BAD });
        rejected(i64::MAX, data, NO_LINK);
        rejected(total + 2 + data.len() as i64, data, NO_LINK);
        // An earlier piece only if it is the same.
        for (iterator, data) in &dump[1..number] {
            let mut other = data.clone();
            other[data.len() / 2] ^= 1;
            rejected(*iterator, &other, BAD);
            rejected(iterator + 1, data, BAD);
        }
        let longer = [data, &b"more"[..]].concat();
        // An own dump has its links within pieces, and is whole or not.
        if by_link || number + 1 == dump.len() {
            rejected(*iterator + 4, &longer, ACROSS);
        }
        // The last piece of an own dump, damaged: the checksum says so, and the right one is still
        // taken.
        if !by_link && number + 1 == dump.len() {
            let mut damaged = data.clone();
            damaged[data.len() / 2] ^= 1;
            rejected(*iterator, &damaged, BAD);
        }
        load_chunk(connection, name, *iterator, data).unwrap();
        for (iterator, data) in &dump[1..=number] {
            load_chunk(connection, name, *iterator, data).unwrap();
        }
    }
    assert_eq!(crate::server::dump(connection, name), *dump);
    // Complete: nothing else is loaded over it.
    for (iterator, data) in dump {
        load_chunk(connection, name, *iterator, data).unwrap();
        let mut other = data.clone();
        other[data.len() / 2] ^= 1;
        assert_eq!(load_chunk(connection, name, *iterator, &other).unwrap_err(), BAD);
    }
    assert_eq!(crate::server::dump(connection, name), *dump);
}

#[test]
fn pieces_out_of_order_are_errors() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let large = blocked(&mut connection, "large", &["0.01", "15000000"], 1_000);
    wrong_order(&mut connection, "own", &large, false);
    let (_, dump) = redis_bloom(100, 2_000);
    assert!(dump.len() > 4);
    wrong_order(&mut connection, "redis", &dump, true);
    assert!(server.is_sound());
}

/// A client that has lost a reply repeats its piece.
#[test]
fn a_repeated_piece_succeeds_and_is_not_replicated() {
    let Some(server) = Server::start(&["--repl-diskless-sync", "yes"]) else { return };
    let replica = crate::following::replica_of(&server, &[]);
    let mut connection = server.connect();
    let own = blocked(&mut connection, "own", &["0.01", "15000000"], 1_000);
    for (name, dump) in [("own copy", own), ("redis", redis_bloom(100, 2_000).1)] {
        for (number, (iterator, data)) in dump.iter().enumerate() {
            load_chunk(&mut connection, name, *iterator, data).unwrap();
            if number == 0 {
                continue;
            }
            let before = info(&mut connection, "master_repl_offset");
            (0..3).for_each(|_| load_chunk(&mut connection, name, *iterator, data).unwrap());
            // The server sends a `PING` now and then, but no piece.
            let sent = info(&mut connection, "master_repl_offset") - before;
            assert!(sent < data.len() as u64, "{name}: {sent} bytes");
        }
        assert_eq!(call::<u64>(&mut connection, &["WAIT", "1", "60000"]), 1);
        assert!(crate::server::dump(&mut replica.connect(), name) == dump, "{name}");
    }
}

#[test]
fn a_filter_that_is_being_loaded_answers_nothing() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let own = blocked(&mut connection, "large", &["0.01", "15000000"], 1_000);
    let (_, redis) = redis_bloom(100, 2_000);
    for (name, dump) in [("own", own), ("redis", redis)] {
        for (i, (iterator, data)) in dump.iter().enumerate() {
            load_chunk(&mut connection, name, *iterator, data).unwrap();
            if i + 1 == dump.len() {
                break;
            }
            for command in [
                "BF.EXISTS _ key:1",
                "BF.MEXISTS _ key:1 a",
                "BF.ADD _ a",
                "BF.MADD _ a",
                "BF.INSERT _ ITEMS a",
                "BF.CARD _",
                "BF.INFO _",
                "BF.SCANDUMP _ 0",
                "BF.SCANDUMP _ 1",
            ] {
                let words: Vec<&str> =
                    command.split(' ').map(|word| if word == "_" { name } else { word }).collect();
                assert_eq!(reply(&mut connection, &words), LOADING, "{command} after {i}");
            }
            assert_eq!(
                reply(&mut connection, &["BF.RESERVE", name, "0.01", "100"]),
                "-ERR item exists"
            );
        }
        assert!(items(&mut connection, "BF.MEXISTS", name, &keys(0, 1_000)).iter().all(|hit| *hit));
        // From the beginning again, and with another filter's header.
        let again = format!("{name}:again");
        load_chunk(&mut connection, &again, 1, &dump[0].1).unwrap();
        load_chunk(&mut connection, &again, dump[1].0, &dump[1].1).unwrap();
        assert_eq!(load_chunk(&mut connection, &again, 1, b"no header").unwrap_err(), BAD);
        load(&mut connection, &again, &dump);
        assert_eq!(crate::server::dump(&mut connection, &again), dump);
    }
    // Half loaded and deleted.
    let (_, dump) = redis_bloom(100, 10);
    load_chunk(&mut connection, "half", 1, &dump[0].1).unwrap();
    assert_eq!(call::<i64>(&mut connection, &["DEL", "half"]), 1);
    assert_eq!(reply(&mut connection, &["BF.EXISTS", "half", "a"]), "0");
}

#[test]
fn pieces_of_several_dumps_in_any_order_never_make_a_key_absent() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let dumps = [
        blocked(&mut connection, "a", &["0.01", "100"], 300),
        blocked(&mut connection, "b", &["0.1", "40"], 300),
        redis_bloom(100, 300).1,
        redis_bloom(30, 300).1,
    ];
    let pieces: Vec<&(i64, Vec<u8>)> = dumps.iter().flatten().collect();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 33) as usize % below
    };
    let (mut complete, mut nothing) = (0, 0);
    for round in 0..1_500 {
        call::<()>(&mut connection, &["DEL", "f"]);
        let first = next(dumps.len());
        for step in 0..12 {
            // Mostly the next piece, so that some are completed.
            let (iterator, data) = match next(8) {
                0 => pieces[next(pieces.len())],
                _ => &dumps[first][step % dumps[first].len()],
            };
            let iterator = if next(30) == 0 { next(1 << 20) as i64 - 10 } else { *iterator };
            let _ = load_chunk(&mut connection, "f", iterator, data);
        }
        if call::<i64>(&mut connection, &["EXISTS", "f"]) == 1 {
            let hits = reply(&mut connection, &["BF.MEXISTS", "f", "key:0", "key:150", "key:299"]);
            assert!(hits == "[1 1 1]" || hits == LOADING, "{round}: {hits}");
            if hits == LOADING { nothing += 1 } else { complete += 1 }
        }
    }
    println!("of 1500 keys {complete} were completed, {nothing} answer nothing");
    assert!(complete > 500 && nothing > 50 && server.is_sound());
}

#[test]
fn filters_of_redisbloom_that_do_not_grow_become_full() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let mut filter = RedisFilter::new(10, 0.01, None).unwrap();
    keys(0, 5).iter().for_each(|key| assert!(filter.insert(key).unwrap()));
    let dump: Dump = filter.dump().map(|(iterator, data)| (iterator, data.into_owned())).collect();
    load(&mut connection, "f", &dump);
    assert_eq!(reply(&mut connection, &["BF.INFO", "f", "EXPANSION"]), "[nil]");
    let words =
        ["BF.MADD", "f", "key:3", "key:5", "key:6", "key:7", "key:8", "key:9", "key:4", "a", "b"];
    let full = "-ERR non scaling filter is full";
    assert_eq!(reply(&mut connection, &words), format!("[0 1 1 1 1 1 0 {full}]"));
    assert_eq!(reply(&mut connection, &["BF.ADD", "f", "a"]), full);
    assert_eq!(reply(&mut connection, &["BF.ADD", "f", "key:9"]), "0");
    keys(5, 10).iter().for_each(|key| assert!(filter.insert(key).unwrap()));
    let dump: Dump = filter.dump().map(|(iterator, data)| (iterator, data.into_owned())).collect();
    assert_eq!(crate::server::dump(&mut connection, "f"), dump);
}

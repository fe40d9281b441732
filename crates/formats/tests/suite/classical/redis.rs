//! RedisBloom's chains.
#![expect(clippy::print_stdout, reason = "a run shows what it covered")]
#![expect(clippy::approx_constant, reason = "RedisBloom's logarithm has one digit less")]

use blocked_bloom_formats::redis::{RedisError, RedisFilter};

use super::naive::redis::{answers, hashes};
use super::{check_batches, keys, rows, words};
use crate::common::Random;
use crate::fixtures::{external, unhex};

/// A link of these facts, as a header has it.
fn link(bytes: u64, size: u64, error: f64, entries: u64, n2: u8) -> Vec<u8> {
    let bpe = -error.ln() / 0.480453013918201;
    let hashes = (0.693147180559945 * bpe).ceil() as u32;
    [
        &bytes.to_le_bytes()[..],
        &(8 * bytes).to_le_bytes(),
        &size.to_le_bytes(),
        &error.to_le_bytes(),
        &bpe.to_le_bytes(),
        &hashes.to_le_bytes(),
        &entries.to_le_bytes(),
        &[n2],
    ]
    .concat()
}

fn reply(iterator: i64, data: &[u8]) -> Vec<u8> {
    [&iterator.to_le_bytes()[..], &(data.len() as u64).to_le_bytes(), data].concat()
}

/// Bytes, error rate and n2 of a link.
type Facts = (u64, f64, u8);

/// A file of a dump with these links, whose bits are random.
fn file(options: u32, links: &[Facts], random: &mut Random) -> Vec<u8> {
    let mut header = (10 * links.len() as u64).to_le_bytes().to_vec();
    header.extend([links.len() as u32, options, 2].map(u32::to_le_bytes).concat());
    let mut chunks = Vec::new();
    let mut end = 1;
    for &(bytes, error, n2) in links {
        header.extend(link(bytes, 10, error, 100, n2));
        end += bytes as i64;
        let mut bits = words(random, bytes.div_ceil(8) as usize);
        bits.truncate(bytes as usize);
        chunks.extend(reply(end, &bits));
    }
    [reply(1, &header), chunks].concat()
}

#[test]
#[ignore = "reads files of the folder BLOCKED_BLOOM_FIXTURES"]
fn redisblooms_answers_and_bytes() {
    let folder = external("redisbloom").expect("the folder of fixtures");
    let mut checked = 0;
    for (name, added) in
        [("bf_default_cap100_e0.01_n100", 100), ("bf_default_cap100_e0.01_n2000_scaled", 2_000)]
    {
        let bytes = std::fs::read(folder.join(format!("{name}.scandump"))).unwrap();
        let rows = rows(&folder.join(format!("{name}.csv")));
        let filter = RedisFilter::from_bytes(&bytes).unwrap();
        assert!(filter.to_bytes() == bytes, "{name}: the bytes change on the way");
        let keys: Vec<Vec<u8>> = rows.iter().map(|row| unhex(&row[0])).collect();
        let expected: Vec<bool> = rows.iter().map(|row| row[2] == "1").collect();
        for (key, &expected) in keys.iter().zip(&expected) {
            assert_eq!(filter.contains(key), expected, "{name}: {key:02x?}");
        }
        check_batches([0, 1, 999, keys.len()], &expected, |n, hits| {
            filter.contains_batch(&keys[..n], hits);
        });
        assert_eq!(answers(&bytes, &keys), Some(expected));
        let mut written = RedisFilter::new(100, 0.01, Some(2)).unwrap();
        for i in 0..added {
            written.insert(format!("item:{i}")).unwrap();
        }
        assert!(written.to_bytes() == bytes, "{name}: the writer's bytes differ");
        checked += keys.len();
    }
    println!("redis: {checked} answers of RedisBloom checked, and two dumps written again");
    assert_eq!(checked, 6_000);
}

/// The links and options of filters that current and early versions write, and unusual ones that
/// both versions load.
fn chains() -> Vec<(u32, Vec<Facts>)> {
    let one = |bytes, error, n2| vec![(bytes, error, n2)];
    vec![
        (5, one(8, 0.3, 0)),
        (5, one(144, 0.005, 0)),
        // The bytes of a link need not be words.
        (5, one(13, 0.1, 0)),
        (13, one(1_000, 0.01, 0)),
        (1, one(1_000, 0.01, 0)),
        (0, one(1 << 10, 0.01, 13)),
        (4, one(1 << 10, 0.01, 13)),
        (4, one(1 << 10, 0.2, 12)),
        (2, one(8, 0.5, 1)),
        (5, one(400_000, 0.01, 0)),
        (0, one(1 << 19, 0.1, 22)),
        (5, vec![(8, 0.5, 0), (16, 0.25, 0), (320_000, 0.1, 0), (64, 1e-6, 0)]),
        (0, vec![(64, 0.3, 9), (128, 0.2, 10), (300_000, 0.05, 20)]),
        (5, vec![(24, 1e-300, 0); 9]),
        (5, one(200, 5e-324, 0)),
    ]
}

#[test]
fn answers_are_those_of_a_naive_reading() {
    let mut random = Random(1);
    let (mut hits, mut queries) = (0, 0);
    for (options, links) in chains() {
        let bytes = file(options, &links, &mut random);
        let filter = RedisFilter::from_bytes(&bytes).unwrap();
        assert_eq!((filter.links().len(), filter.to_bytes()), (links.len(), bytes.clone()));
        let keys = keys(&mut random, 2_100);
        let expected = answers(&bytes, &keys).unwrap();
        let own: Vec<_> = keys.iter().map(|key| filter.hash_key(key)).collect();
        for ((key, own), &expected) in keys.iter().zip(&own).zip(&expected) {
            assert_eq!((own.first(), own.second()), hashes(key, filter.hash_bits()));
            assert_eq!(filter.contains(key), expected, "{filter:?}, {key:02x?}");
        }
        let lengths = (0..=130).chain([1_023, 1_024, 1_025, 2_047, 2_048, 2_100]);
        check_batches(lengths, &expected, |n, hits| {
            filter.contains_batch(&keys[..n], hits);
            let key_hits = hits.clone();
            filter.contains_hashes(&own[..n], hits);
            assert_eq!(*hits, key_hits);
        });
        hits += expected.iter().filter(|&&hit| hit).count();
        queries += keys.len();
    }
    assert!((queries / 20..queries * 19 / 20).contains(&hits), "{hits} hits of {queries}");
}

/// What RedisBloom does for each key, with a naive reading of the dump for every lookup.
#[test]
fn chains_grow_as_redisblooms_do() {
    let mut random = Random(2);
    for (capacity, error_rate, expansion) in
        [(1, 0.01, Some(1)), (10, 0.3, Some(2)), (7, 0.001, Some(5)), (50, 0.01, None)]
    {
        let mut filter = RedisFilter::new(capacity, error_rate, expansion).unwrap();
        let mut batch = filter.clone();
        let (mut size, mut links) = (0_u64, vec![(capacity, 0_u64)]);
        let keys: Vec<Vec<u8>> =
            keys(&mut random, 60).into_iter().chain(keys(&mut Random(2), 20)).collect();
        let mut full = false;
        for key in &keys {
            let is_there = answers(&filter.to_bytes(), std::slice::from_ref(key)).unwrap()[0];
            let (entries, held) = *links.last().unwrap();
            let grows = !is_there && held >= entries;
            match filter.insert(key) {
                Ok(is_new) => assert_eq!(is_new, !is_there),
                Err(error) => {
                    assert!(grows && expansion.is_none());
                    assert_eq!(error, RedisError::Full { capacity });
                    full = true;
                    continue;
                }
            }
            if grows {
                links.push((entries * u64::from(expansion.unwrap()), 0));
            }
            if !is_there {
                links.last_mut().unwrap().1 += 1;
                size += 1;
            }
            assert!(filter.contains(key));
        }
        let expected: Vec<(u64, u64)> =
            filter.links().iter().map(|it| (it.entries(), it.size())).collect();
        assert_eq!((expected, filter.size()), (links, size));
        assert_eq!(full, expansion.is_none());
        assert_eq!(
            filter.capacity(),
            filter.links().iter().map(|link| link.entries()).sum::<u64>()
        );
        let hashes: Vec<_> = keys.iter().map(|key| batch.hash_key(key)).collect();
        let mut added = 0;
        for hashes in hashes.chunks(23) {
            added += batch.insert_hashes(hashes).unwrap_or(0);
        }
        if expansion.is_some() {
            assert_eq!((added, &batch), (size, &filter));
        }
        // The first link has half of the reserved rate, and each later link half of the previous.
        let first = if expansion.is_some() { error_rate * 0.5 } else { error_rate };
        for (i, link) in filter.links().iter().enumerate() {
            assert_eq!(link.error_rate(), first * 0.5_f64.powi(i as i32));
        }
    }
}

/// Everything that a header says of a chain, and not only of its links, is kept: the next link is
/// of it.
#[test]
fn a_loaded_chain_grows_as_the_one_that_was_dumped() {
    for expansion in [Some(1), Some(2), Some(5), Some(16), Some(32_768), None] {
        let mut filter = RedisFilter::new(7, 0.01, expansion).unwrap();
        let mut number = 0_u32;
        let mut add = |filters: &mut [&mut RedisFilter], count: u32| {
            for _ in 0..count {
                number += 1;
                let results: Vec<_> =
                    filters.iter_mut().map(|filter| filter.insert(number.to_le_bytes())).collect();
                assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{expansion:?}");
            }
        };
        add(&mut [&mut filter], 5);
        let mut loaded = RedisFilter::load(filter.dump()).unwrap();
        let mut opened = RedisFilter::from_bytes(&filter.to_bytes()).unwrap();
        assert_eq!((loaded.expansion(), opened.expansion()), (expansion, expansion));
        assert_eq!((loaded.capacity(), loaded.size(), loaded.hash_bits()), (7, filter.size(), 64));
        assert!(loaded == filter && opened == filter, "{expansion:?}");
        // The filter can also be loaded from its header and bits. A wrong number of links or bytes
        // is an error.
        let (_, header) = filter.dump().next().unwrap();
        let bits: Vec<_> = filter.links().iter().map(|link| link.as_bytes().to_vec()).collect();
        for wrong in [vec![], [&bits[..], &bits].concat(), vec![bits[0][1..].to_vec()]] {
            let (found, expected) = (wrong.concat().len() as u64, bits.concat().len() as u64);
            let error = RedisFilter::from_links(&header, wrong).unwrap_err();
            assert_eq!(error, RedisError::Missing { found, expected });
        }
        assert!(RedisFilter::from_links(&header[1..], bits.clone()).is_err());
        assert!(RedisFilter::from_links(&header, bits).unwrap() == filter, "{expansion:?}");
        // Into the third link, where there is one.
        add(&mut [&mut filter, &mut loaded, &mut opened], 60);
        let entries = |filter: &RedisFilter| -> Vec<u64> {
            filter.links().iter().map(|link| link.entries()).collect()
        };
        match expansion {
            None => assert_eq!(entries(&loaded), [7]),
            Some(growth) => assert_eq!(entries(&loaded)[..2], [7, 7 * u64::from(growth)]),
        }
        for other in [&loaded, &opened] {
            assert_eq!(entries(other), entries(&filter), "{expansion:?}");
            assert!(other.to_bytes() == filter.to_bytes(), "{expansion:?}");
        }
    }
}

/// Early versions round the bits of a link up to a power of two, and its entries with them.
#[test]
fn a_loaded_chain_of_an_early_version_grows_by_its_rules() {
    // 64 bits hold 64 / 6.2 keys of a rate of 0.05.
    let header = [
        &10_u64.to_le_bytes()[..],
        &[1_u32, 0, 2].map(u32::to_le_bytes).concat(),
        &link(8, 10, 0.05, 10, 6),
    ]
    .concat();
    let mut filter = RedisFilter::load([(1, header), (9, vec![0; 8])]).unwrap();
    assert_eq!(filter.hash_bits(), 32);
    assert!(filter.insert("apple").unwrap() && filter.contains("apple"));
    let link = &filter.links()[1];
    // 20 entries of 7.68 bits are 153.6, so 256 bits; the spare 102 are 13 entries more.
    assert_eq!(
        (link.shape().bits(), link.entries(), link.size(), link.shape().probes()),
        (256, 33, 1, 6)
    );
    let file = filter.to_bytes();
    assert_eq!(file[16 + 20 + 53 + 52], 8);
    assert_eq!(answers(&file, &[b"apple".to_vec()]), Some(vec![true]));
    assert_eq!(RedisFilter::from_bytes(&file).unwrap(), filter);
}

/// A stored chain gets the same next link: its own growth factor applies, not RedisBloom's default.
#[test]
fn a_loaded_chain_grows_by_its_own_factor() {
    for growth in [Some(1), Some(2), Some(3), Some(16), None] {
        let mut filter = RedisFilter::new(50, 0.01, growth).unwrap();
        filter.insert("apple").unwrap();
        let mut loaded = RedisFilter::from_bytes(&filter.to_bytes()).unwrap();
        assert_eq!((loaded.expansion(), &loaded), (filter.expansion(), &filter));
        for key in 0..300_u32 {
            let [there, here] =
                [&mut filter, &mut loaded].map(|filter| filter.insert(key.to_le_bytes()));
            assert_eq!(there, here, "{growth:?}, key {key}");
        }
        assert!(loaded.to_bytes() == filter.to_bytes());
        assert_eq!(loaded.links().len() > 1, growth.is_some());
    }
}

/// The header of a dump with links of 16 and 8 bytes, and their bits.
fn links_of_two_sizes() -> (Vec<u8>, [Vec<u8>; 2]) {
    let header = [
        &20_u64.to_le_bytes()[..],
        &[2_u32, 5, 2].map(u32::to_le_bytes).concat(),
        &link(16, 10, 0.1, 10, 0),
        &link(8, 10, 0.1, 10, 0),
    ]
    .concat();
    (header, [vec![1; 16], vec![2; 8]])
}

#[test]
fn replies_that_are_missing_or_out_of_order_are_errors() {
    let (header, bits) = links_of_two_sizes();
    let load = |replies: &[(i64, &[u8])]| RedisFilter::load(replies.iter().copied());
    let [first, second] = [&bits[0][..], &bits[1]];
    let whole = load(&[(1, &header), (17, first), (25, second)]).unwrap();
    // Of other lengths, and with the last reply.
    let parts: [(i64, &[u8]); 5] =
        [(1, &header), (4, &first[..3]), (17, &first[3..]), (25, second), (0, &[])];
    assert_eq!(load(&parts).unwrap(), whole);
    let error = |replies: &[(i64, &[u8])]| load(replies).unwrap_err();
    assert_eq!(error(&[]), RedisError::Truncated { offset: 0, expected: 73 });
    assert_eq!(error(&[(17, first)]), RedisError::Order { iterator: 17, expected: 1 });
    assert_eq!(error(&[(1, &header)]), RedisError::Missing { found: 0, expected: 24 });
    let missing = RedisError::Missing { found: 16, expected: 24 };
    assert_eq!(error(&[(1, &header), (17, first)]), missing);
    assert_eq!(error(&[(1, &header), (17, first), (0, &[]), (25, second)]), missing);
    let order = RedisError::Order { iterator: 25, expected: 9 };
    assert_eq!(error(&[(1, &header), (25, second), (17, first)]), order);
    let twice = RedisError::Order { iterator: 17, expected: 33 };
    assert_eq!(error(&[(1, &header), (17, first), (17, first)]), twice);
    for iterator in [i64::MIN, -1, 0, i64::MAX] {
        let order = RedisError::Order { iterator, expected: 17 };
        assert_eq!(error(&[(1, &header), (iterator, first)]), order);
    }
    let both = bits.concat();
    let across = RedisError::SpansLinks { iterator: 25, found: 24, most: 16 };
    assert_eq!(error(&[(1, &header), (25, &both)]), across);
    let behind = RedisError::SpansLinks { iterator: 26, found: 1, most: 0 };
    assert_eq!(error(&[(1, &header), (17, first), (25, second), (26, &[0])]), behind);
    // The end has iterator 0.
    let order = RedisError::Order { iterator: 7, expected: 25 };
    assert_eq!(error(&[(1, &header), (17, first), (25, second), (7, &[])]), order);
}

/// The bits of two links are as many as the header says, but each has the other's.
#[test]
fn links_in_another_order_than_their_header_are_errors() {
    let (header, bits) = links_of_two_sizes();
    let [first, second] = bits.clone();
    let filter = RedisFilter::from_links(&header, bits.to_vec()).unwrap();
    assert_eq!(filter.links().iter().map(|link| link.as_bytes()).collect::<Vec<_>>(), bits);
    let error = RedisFilter::from_links(&header, vec![second, first]).unwrap_err();
    assert_eq!(error, RedisError::Missing { found: 24, expected: 24 });
}

#[test]
fn large_links_are_dumped_in_pieces_of_16_mebibytes() {
    let mut filter = RedisFilter::new(20_000_000, 0.01, None).unwrap();
    filter.insert("apple").unwrap();
    let bytes = filter.links()[0].as_bytes().len();
    let lengths: Vec<(i64, usize)> =
        filter.dump().map(|(iterator, data)| (iterator, data.len())).collect();
    let piece = 16 << 20;
    assert_eq!(lengths[1..], [(1 + piece, 16 << 20), (1 + bytes as i64, bytes - (16 << 20))]);
    assert_eq!(RedisFilter::load(filter.dump()).unwrap(), filter);
}

#[test]
fn absurd_headers_are_errors_and_take_no_memory() {
    let open = |at: usize, bytes: &[u8]| {
        let mut header = [
            &10_u64.to_le_bytes()[..],
            &[1_u32, 5, 2].map(u32::to_le_bytes).concat(),
            &link(1_000, 10, 0.01, 100, 0),
        ]
        .concat();
        header[at..at + bytes.len()].copy_from_slice(bytes);
        RedisFilter::load([(1, header)]).unwrap_err()
    };
    let message = |at, bytes: &[u8]| open(at, bytes).to_string();
    assert_eq!(open(0, &[10]), RedisError::Missing { found: 0, expected: 1_000 });
    assert_eq!(message(0, &[11]), "byte 0 of the header: size 11, expected 10");
    assert_eq!(message(8, &[0]), "byte 8 of the header: nfilters 0, expected 1 to 4294967295");
    let longer = RedisError::Truncated { offset: 73, expected: 20 + 53 * 0xffff_ffff };
    assert_eq!(open(8, &[0xff; 4]), longer);
    assert_eq!(message(12, &[16]), "byte 12 of the header: options 16, expected 0 to 15");
    assert_eq!(
        message(20, &[0; 8]),
        "byte 20 of the header: bytes 0, expected 1 to 1152921504606846976"
    );
    assert!(
        message(20, &[0xff; 8]).starts_with("byte 20 of the header: bytes 18446744073709551615")
    );
    assert_eq!(message(28, &[0x41]), "byte 28 of the header: bits 8001, expected 8000");
    for (at, field) in [(44, "error"), (52, "bpe")] {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1552.0] {
            let message = message(at, &bad.to_le_bytes());
            assert!(
                message.starts_with(&format!("byte {at} of the header: {field} {bad}")),
                "{message}"
            );
        }
    }
    assert_eq!(
        message(44, &1.0_f64.to_le_bytes()),
        "byte 44 of the header: error 1.0, expected a number above 0 and below 1"
    );
    assert_eq!(message(60, &[8]), "byte 60 of the header: hashes 8, expected 7");
    assert_eq!(message(72, &[13]), "byte 72 of the header: n2 13, expected 0 to 12");
    // As large as a header can say: nothing is allocated before the data comes.
    let huge = [1_u64 << 60, 1 << 63].map(u64::to_le_bytes).concat();
    assert_eq!(open(20, &huge), RedisError::Missing { found: 0, expected: 1 << 60 });
}

#[test]
fn files_cut_anywhere_are_errors() {
    let bytes = file(5, &[(8, 0.1, 0), (16, 0.05, 0)], &mut Random(3));
    for length in 0..bytes.len() {
        assert!(RedisFilter::from_bytes(&bytes[..length]).is_err(), "{length}");
    }
    let last = reply(0, &[]);
    let whole = RedisFilter::from_bytes(&bytes).unwrap();
    assert_eq!(RedisFilter::from_bytes(&[&bytes[..], &last].concat()).unwrap(), whole);
    let error = RedisFilter::from_bytes(&[&bytes[..], &last, &[0]].concat()).unwrap_err();
    assert!(error.to_string().ends_with("other bytes follow"));
    let length = u64::MAX.to_le_bytes();
    let error = RedisFilter::from_bytes(&[&1_i64.to_le_bytes()[..], &length].concat()).unwrap_err();
    assert_eq!(error, RedisError::Truncated { offset: 16, expected: u64::MAX });
}

#[test]
fn reservations_that_are_errors() {
    let reserve = |capacity, rate, expansion| RedisFilter::new(capacity, rate, expansion);
    for rate in [0.0, 1.0, -0.5, f64::NAN, 1.9] {
        assert!(matches!(reserve(100, rate, Some(2)), Err(RedisError::Rate { .. })), "{rate}");
        assert!(matches!(reserve(100, rate, None), Err(RedisError::Rate { .. })), "{rate}");
    }
    let error = reserve(0, 0.01, Some(2)).unwrap_err().to_string();
    assert!(error.contains("capacity 0, expected 1 to"), "{error}");
    let error = reserve(100, 0.01, Some(0)).unwrap_err().to_string();
    assert!(error.contains("expansion 0, expected 1 to"), "{error}");
    assert!(matches!(reserve(u64::MAX, 0.01, Some(2)), Err(RedisError::Alloc(_))));
    // One bit at least.
    let mut tiny = reserve(1, 0.999, None).unwrap();
    assert_eq!((tiny.links()[0].shape().bits(), tiny.links()[0].shape().probes()), (64, 1));
    assert!(tiny.insert("").unwrap() && tiny.contains(""));
}

/// Entries that the bits cannot hold would be claimed from memory when the chain grows; a reply
/// after the last is of another dump.
#[test]
fn entries_beyond_the_bits_and_replies_after_the_last_are_errors() {
    let mut filter = RedisFilter::new(100, 0.01, Some(2)).unwrap();
    filter.insert("apple").unwrap();
    let replies: Vec<(i64, Vec<u8>)> =
        filter.dump().map(|(iterator, data)| (iterator, data.to_vec())).collect();
    let mut forged = replies.clone();
    let length = forged[0].1.len();
    // The size of all links, and of the only one its size and entries, at 16 and 44 of its 53
    // bytes.
    for at in [0, length - 53 + 16, length - 53 + 44] {
        forged[0].1[at..at + 8].copy_from_slice(&(1_u64 << 31).to_le_bytes());
    }
    let mut loaded = RedisFilter::load(forged).unwrap();
    let error = loaded.insert("banana").unwrap_err();
    assert!(matches!(error, RedisError::OutOfRange { field: "capacity", .. }), "{error}");

    let mut twice = replies.clone();
    twice.push((0, Vec::new()));
    assert!(RedisFilter::load(twice.clone()).is_ok());
    twice.extend(replies);
    let error = RedisFilter::load(twice).unwrap_err();
    assert_eq!(error, RedisError::Order { iterator: 1, expected: 0 });
}

/// The bits of a link of an early version that no probe falls on do not count.
#[test]
fn the_fill_is_that_of_the_bits_that_probes_fall_on() {
    for (bytes, error, n2, used) in
        [(1 << 10, 0.2, 12, 512), (1 << 10, 0.01, 13, 1 << 10), (64, 0.01, 3, 1), (13, 0.1, 0, 13)]
    {
        let mut file = file(0, &[(bytes, error, n2)], &mut Random(1));
        let start = file.len() - bytes as usize;
        file[start..].fill(0xff);
        file[start..][..used].fill(0x3c);
        let filter = RedisFilter::from_bytes(&file).unwrap();
        let link = &filter.links()[0];
        let rate = 0.5_f64.powi(link.shape().probes() as i32);
        assert_eq!(link.fill_ratio(), 0.5, "{bytes} {n2}");
        assert!((link.estimated_false_positive_rate() / rate - 1.0).abs() < 1e-12, "{bytes} {n2}");
        let keys = 8.0 * used as f64 * 2_f64.ln() / f64::from(link.shape().probes());
        assert_eq!(link.estimated_keys(), Some(keys.round() as u64), "{bytes} {n2}");
    }
    // Two bits of a byte.
    let mut file = file(2, &[(8, 0.5, 1)], &mut Random(1));
    let start = file.len() - 8;
    file[start..].fill(0xfe);
    let filter = RedisFilter::from_bytes(&file).unwrap();
    assert_eq!(filter.links()[0].fill_ratio(), 0.5);
}

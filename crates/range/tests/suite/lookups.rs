//! No key is lost, and answers equal those of the second reader.

use std::ops::Bound::{self, Excluded, Included, Unbounded};

use blocked_bloom::Bitmask;
use blocked_bloom_range::{RangeError, RangeFilter, RangeKey, RangeOptions};

use crate::common::Random;
use crate::naive::Naive;
use crate::sets::{self, built, built_of_bytes};

type Ranges<K> = Vec<(Bound<K>, Bound<K>)>;

/// Whether a sorted key is in the range.
fn holds<K: Ord + Copy>(keys: &[K], (lower, upper): (Bound<K>, Bound<K>)) -> bool {
    let at = match lower {
        Included(lower) => keys.partition_point(|&key| key < lower),
        Excluded(lower) => keys.partition_point(|&key| key <= lower),
        Unbounded => 0,
    };
    keys.get(at).is_some_and(|&key| match upper {
        Included(upper) => key <= upper,
        Excluded(upper) => key < upper,
        Unbounded => true,
    })
}

/// Looks all ranges up, singly and in batches of several lengths. Returns how many hold a key, and
/// how many hold none but are answered "maybe".
fn check<K: RangeKey + Ord>(
    context: &str,
    filter: &RangeFilter,
    keys: &[K],
    ranges: &[(Bound<K>, Bound<K>)],
) -> [u64; 2] {
    let naive = Naive::open(filter.as_bytes()).unwrap();
    let mut hits = Bitmask::new();
    let [mut full, mut wrong] = [0; 2];
    for (i, batch) in ranges.chunks(300).enumerate() {
        let batch = if i % 2 == 0 { batch } else { &batch[..batch.len().min(1 + i % 70)] };
        filter.contains_ranges(batch, &mut hits);
        for (&(lower, upper), hit) in batch.iter().zip(&hits) {
            let shown = || {
                let bytes = [lower, upper].map(|bound| bound.map(|key| key.to_key()));
                let [lower, upper] = bytes.map(|bound| bound.map(|key| key.as_ref().to_vec()));
                format!("{context}: {lower:?} to {upper:?}")
            };
            assert_eq!(hit, filter.contains_range(lower, upper), "{}", shown());
            let bytes = [lower, upper].map(|bound| bound.map(K::to_key));
            let [low, high] = bytes.each_ref().map(|bound| bound.as_ref().map(AsRef::as_ref));
            assert_eq!(hit, naive.contains(low, high), "{}", shown());
            let is_full = holds(keys, (lower, upper));
            assert!(hit || !is_full, "lost: {}", shown());
            full += u64::from(is_full);
            wrong += u64::from(hit && !is_full);
        }
    }
    [full, wrong]
}

/// Ranges around keys, with bounds of every kind: short and long, to the borders of blocks, and
/// reversed.
fn ranges_around(keys: &[u64], block: u64, count: u64, seed: u64) -> Ranges<u64> {
    let mut random = Random(seed);
    let mut ranges =
        vec![(Unbounded, Unbounded), (Included(5), Excluded(5)), (Excluded(5), Excluded(6))];
    while (ranges.len() as u64) < count {
        let near = match keys.len() as u64 {
            0 => random.next(),
            length => keys[(random.next() % length) as usize],
        };
        let place = match random.next() % 8 {
            0 => random.next(),
            1 => near & !(block - 1),
            2 => near | (block - 1),
            3 => near,
            4 => random.next() % 3 * (u64::MAX / 2),
            _ => near.wrapping_sub(random.next() % 70).wrapping_add(random.next() % 70),
        };
        let length = match random.next() % 6 {
            0 => 0,
            1 => random.next() % 4,
            2 => random.next() % 70,
            3 => block - 1 + random.next() % 3,
            4 => random.next() % block.saturating_mul(9),
            _ => random.next() >> (random.next() % 64),
        };
        let is_forward = !random.next().is_multiple_of(16);
        let [lower, upper] = match is_forward {
            true => [
                place.saturating_sub(random.next() % (length / 2 + 1)),
                place.saturating_add(length),
            ],
            false => [place, place.wrapping_sub(length)],
        };
        let mut bound = |key| match random.next() % 24 {
            0 => Unbounded,
            1..8 => Excluded(key),
            _ => Included(key),
        };
        ranges.push((bound(lower), bound(upper)));
    }
    ranges
}

fn check_integers(per_filter: u64) -> [u64; 2] {
    let mut counts = [0; 2];
    for (name, keys) in sets::all() {
        for (bits, unit) in
            [(4.0, 0), (6.0, 3), (9.7, 0), (12.0, 16), (16.3, 0), (22.0, 8), (32.0, 0)]
        {
            let filter = built(bits, unit, &keys);
            let context = format!("{name}, {bits} bits, unit {unit}");
            let block = ((filter.max_units() - 1) / 7) << unit;
            let ranges =
                ranges_around(&keys, block, per_filter, keys.len() as u64 + u64::from(unit));
            for (sum, count) in counts.iter_mut().zip(check(&context, &filter, &keys, &ranges)) {
                *sum += count;
            }
            assert!(keys.iter().all(|&key| filter.contains(key)), "{context}");
        }
    }
    counts
}

#[test]
fn no_integer_is_lost() {
    let [full, _] = check_integers(6_000);
    assert!(full > 100_000, "only {full} ranges with a key");
}

/// The keys of byte strings: shared prefixes, prefixes of each other, runs of 0xff and of zeros.
fn strings(seed: u64, prefix: &[u8], longest: u64, letters: &[u8]) -> Vec<Vec<u8>> {
    let mut random = Random(seed);
    let string = |random: &mut Random| {
        let length = random.next() % (longest + 1);
        let letters = (0..length).map(|_| letters[random.next() as usize % letters.len()]);
        [prefix, &letters.collect::<Vec<u8>>()].concat()
    };
    let mut keys: Vec<Vec<u8>> = (0..3_000).map(|_| string(&mut random)).collect();
    for i in 0..500 {
        let mut key = keys[i].clone();
        let byte = [0, 0xff, b'a'][i % 3];
        key.extend(vec![byte; i % 5]);
        keys.push(key);
    }
    keys.sort();
    keys
}

fn check_strings(per_filter: u64) -> [u64; 2] {
    let mut counts = [0; 2];
    let hex = |byte: u8| [b'\0', byte];
    let id_and_time = sets::series(9, 3_000).into_iter();
    let id_and_time = id_and_time.map(|key| [&[9; 12][..], &key.to_be_bytes()].concat()).collect();
    // No common prefix, and most keys have the same value.
    let mut same_start = strings(7, b"0123456789abcdef", 4, &hex(0xff));
    same_start.push(b"z".to_vec());
    let sets: [(&str, Vec<Vec<u8>>); 10] = [
        ("letters", strings(1, b"", 6, b"abc")),
        ("a prefix", strings(2, b"a common prefix of 29 bytes/", 30, b"abcdefgh")),
        ("zeros and 0xff", strings(3, b"", 5, &hex(0xff))),
        ("zeros and 0xff after 0xff", strings(4, &[0xff; 14], 4, &hex(0xff))),
        ("0xff after a long prefix", strings(5, &[0xff; 40], 20, &[0xff, 0xfe])),
        ("17 and more bytes", strings(6, b"0123456789abcdef", 3, &hex(1))),
        ("the same 16 bytes, then others", same_start),
        ("12 bytes and id | time", id_and_time),
        ("one key", vec![b"a long key of 27 bytes here".to_vec()]),
        ("the empty key", vec![vec![]]),
    ];
    for (name, keys) in &sets {
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        for (bits, unit) in [(5.0, 0), (12.0, 0), (16.0, 9), (20.0, 16), (12.0, 127)] {
            let filter = built_of_bytes(bits, unit, &keys);
            let context = format!("{name}, {bits} bits, unit {unit}");
            let mut random = Random(u64::from(unit));
            // Bounds are keys, cut, continued or with one byte changed.
            let bounds: Vec<Vec<u8>> = (0..per_filter)
                .map(|_| {
                    let mut bound = keys[random.next() as usize % keys.len()].to_vec();
                    match random.next() % 6 {
                        0 => bound.truncate(random.next() as usize % (bound.len() + 1)),
                        1 => bound.extend(vec![0; 1 + random.next() as usize % 3]),
                        2 => bound.extend(vec![0xff; 1 + random.next() as usize % 3]),
                        3 if !bound.is_empty() => {
                            let at = random.next() as usize % bound.len();
                            bound[at] =
                                bound[at].wrapping_add(random.next() as u8 % 3).wrapping_sub(1);
                        }
                        4 if bound.last().is_some() => *bound.last_mut().unwrap() ^= 1,
                        _ => {}
                    }
                    bound
                })
                .collect();
            let mut ranges: Ranges<&[u8]> = Vec::new();
            for (i, bound) in bounds.iter().enumerate() {
                let other = match random.next() % 4 {
                    0 => bound,
                    _ => &bounds[random.next() as usize % bounds.len()],
                };
                // Reversed now and then.
                let [lower, upper] = match i % 16 {
                    0 => [bound, other],
                    _ => [bound.min(other), bound.max(other)],
                };
                let mut bound = |key| match random.next() % 24 {
                    0 => Unbounded,
                    1..10 => Excluded(key),
                    _ => Included(key),
                };
                ranges.push((bound(lower.as_slice()), bound(upper.as_slice())));
            }
            for (sum, count) in counts.iter_mut().zip(check(&context, &filter, &keys, &ranges)) {
                *sum += count;
            }
            assert!(keys.iter().all(|&key| filter.contains(key)), "{context}");
        }
    }
    counts
}

/// The bytes of an excluded lower bound after the length of the longest key must not be added to
/// the next possible key.
#[test]
fn an_excluded_bound_longer_than_every_key_loses_none() {
    let keys = [&b"\0\0\0"[..], b"\0\0\x01\0", b"\0\x01"];
    for (unit, dropped) in [(0, 96), (127, 127)] {
        let filter = built_of_bytes(12.0, unit, &keys);
        assert_eq!(filter.dropped_bits(), dropped);
        for bound in [&b"\0\0\0\xff\xff"[..], b"\0\0\0\xff\xff\xff", b"\0\0\0\0\xff"] {
            assert!(filter.contains_range(Excluded(bound), Included(keys[1])), "{bound:?}");
            let ranges = [(Excluded(bound), Included(keys[1]))];
            check("excluded", &filter, &keys, &ranges);
        }
    }
}

#[test]
fn no_byte_string_is_lost() {
    let [full, _] = check_strings(3_000);
    assert!(full > 40_000, "only {full} ranges with a key");
}

/// All pairs of strings of up to three letters as bounds, for tables of some of them.
#[test]
fn all_ranges_of_short_strings() {
    let letters = [0, b'a', 0xff];
    let mut all: Vec<Vec<u8>> = vec![vec![]];
    for length in 0..3 {
        let longer: Vec<Vec<u8>> =
            all.iter().filter(|string| string.len() == length).cloned().collect();
        for string in longer {
            all.extend(letters.map(|letter| [string.as_slice(), &[letter]].concat()));
        }
    }
    all.sort();
    let mut random = Random(5);
    for round in 0..60 {
        let prefix = vec![b'p'; if round % 2 == 0 { 0 } else { 20 }];
        let mut keys: Vec<Vec<u8>> =
            all.iter().filter(|_| random.next().is_multiple_of(8)).cloned().collect();
        if round % 3 == 0 {
            keys.retain(|key| key.len() == 3);
        }
        let keys: Vec<Vec<u8>> = keys.iter().map(|key| [&prefix[..], key].concat()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let filter = built_of_bytes(20.0, 0, &keys);
        let bounds: Vec<Vec<u8>> = all.iter().map(|key| [&prefix[..], key].concat()).collect();
        let bounds = bounds.iter().map(|key| [Included(&key[..]), Excluded(&key[..])]);
        let bounds: Vec<Bound<&[u8]>> = bounds.flatten().chain([Unbounded]).collect();
        let ranges: Ranges<&[u8]> =
            bounds.iter().flat_map(|&low| bounds.iter().map(move |&high| (low, high))).collect();
        let [full, _] = check(&format!("round {round}"), &filter, &keys, &ranges);
        assert!(full > 0 || keys.is_empty());
    }
}

/// The unit counts bits from the end of the longest key, also those after the first 16 bytes.
#[test]
fn the_unit_of_long_strings_begins_at_their_end() {
    let keys = [&[b'a'; 20][..], &[b'b'; 19]];
    for (unit, dropped) in [(0, 0), (16, 0), (32, 0), (40, 8), (127, 95)] {
        assert_eq!(built_of_bytes(16.0, unit, &keys).dropped_bits(), dropped, "unit {unit}");
    }
}

/// A filter stores less than 2^16 bytes of a longer common prefix.
#[test]
fn a_common_prefix_may_have_any_length() {
    for length in [65_534, 65_535, 65_536, 70_000] {
        let keys = [1_u8, 2, 9].map(|last| [&vec![b'p'; length][..], &[last]].concat());
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let filter = built_of_bytes(32.0, 0, &keys);
        let filter = RangeFilter::from_bytes(filter.as_bytes().to_vec()).unwrap();
        let common = &keys[0][..length];
        let bounds = keys.iter().chain([&common]);
        let bounds = bounds.flat_map(|&key| [Included(key), Excluded(key)]).chain([Unbounded]);
        let bounds: Vec<Bound<&[u8]>> = bounds.collect();
        let ranges: Ranges<&[u8]> =
            bounds.iter().flat_map(|&low| bounds.iter().map(move |&high| (low, high))).collect();
        let [full, wrong] = check(&format!("prefix of {length}"), &filter, &keys, &ranges);
        assert!(full > 20 && (wrong == 0 || length > 65_535), "{full} {wrong}");
    }
}

/// Excluded bounds that are keys make a range empty, also if they end with zeros.
#[test]
fn excluded_bounds_are_exact() {
    let keys: Vec<u64> = (0..1_000).map(|i| i << 8).collect();
    for filter in [built(32.0, 0, &keys), built(32.0, 8, &keys)] {
        let contains = |lower, upper| filter.contains_range(lower, upper);
        for &key in &keys[1..] {
            assert!(!contains(Excluded(key), Excluded(key + 256)) || filter.dropped_bits() > 64);
            assert!(!contains(Excluded(key + 255), Excluded(key + 256)));
            assert!(!contains(Included(key + 65_536_000), Excluded(key + 65_536_256)));
            assert!(contains(Included(key), Excluded(key + 1)));
        }
    }
    let filter = built_of_bytes(32.0, 0, &["a", "b", "ba", "long", "longer"]);
    let contains = |lower, upper| filter.contains_range(lower, upper);
    assert!(!contains(Included(&b"lonf"[..]), Excluded(&b"long"[..])));
    assert!(contains(Included(&b"lonf"[..]), Included(&b"long"[..])));
    assert!(!contains(Excluded(&b"longer"[..]), Included(&b"longes"[..])));
}

/// For the nightly run: 10^7 ranges that hold a key.
#[test]
#[ignore = "takes a minute in a release build"]
#[expect(clippy::print_stdout, reason = "figures to be quoted")]
fn ten_million_ranges() {
    let (integers, strings) = (check_integers(450_000), check_strings(150_000));
    println!(
        "ranges with a key: {} of integers, {} of byte strings; lost: 0",
        integers[0], strings[0]
    );
    assert!(integers[0] + strings[0] > 10_000_000, "{integers:?} {strings:?}");
}

#[test]
fn keys_out_of_order_are_refused() {
    let mut builder = RangeOptions::new(16.0).builder();
    for key in [3_u64, 3, 9] {
        builder.insert(key).unwrap();
    }
    assert_eq!(builder.insert(8_u64), Err(RangeError::Unsorted { position: 2 }));
    // The refused key changes nothing.
    builder.insert(9_u64).unwrap();
    builder.insert(10_u64).unwrap();
    assert_eq!(builder.keys_inserted(), 3);
    assert_eq!(builder.finish().unwrap().as_bytes(), built(16.0, 0, &[3, 9, 10]).as_bytes());
    let mut builder = RangeOptions::new(16.0).builder();
    builder.insert(&b"ab"[..]).unwrap();
    let error = builder.insert(&b"a"[..]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "key 1 is less than the key before it: sort the keys in byte order"
    );
}

#[test]
fn settings_out_of_range_are_refused() {
    for bits in [3.99, 32.01, 0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = RangeOptions::new(bits).builder().finish().unwrap_err();
        assert!(matches!(error, RangeError::BitsPerKey { .. }), "{bits}: {error}");
    }
    let options = RangeOptions::new(16.0).with_unit(128);
    assert_eq!(options.builder().finish().unwrap_err(), RangeError::Unit { bits: 128 });
}

/// The same keys as integers and as byte strings, with the longest prefix first known at the end.
#[test]
fn integers_are_their_big_endian_bytes() {
    for (_, keys) in sets::all() {
        let strings: Vec<[u8; 8]> = keys.iter().map(|key| key.to_be_bytes()).collect();
        assert_eq!(built(14.0, 4, &keys).as_bytes(), built_of_bytes(14.0, 4, &strings).as_bytes());
        // A common prefix of 20 bytes is stripped.
        let longer: Vec<Vec<u8>> =
            strings.iter().map(|key| [&[7; 20], &key[..]].concat()).collect();
        let (short, long) = (built(14.0, 4, &keys), built_of_bytes(14.0, 4, &longer));
        assert!(long.memory_bytes() <= short.memory_bytes() + 28 || keys.len() < 3);
        if keys.len() > 2 {
            let [short, long] =
                [&short, &long].map(|filter| Naive::open(filter.as_bytes()).unwrap());
            assert_eq!(short.codes(), long.codes());
        }
    }
}

/// An owner that later lends fewer or more bytes: "maybe" for every range.
#[test]
fn bytes_that_change_their_length() {
    use std::cell::Cell;

    struct ShrinkingOwner<'c>(Vec<u8>, &'c Cell<usize>);
    impl AsRef<[u8]> for ShrinkingOwner<'_> {
        fn as_ref(&self) -> &[u8] {
            &self.0[..self.1.get()]
        }
    }
    let whole = built(16.0, 0, &sets::uniform(1, 900));
    let stored = whole.as_bytes().len();
    let lent = Cell::new(stored);
    let bytes = [whole.as_bytes(), &[0; 100]].concat();
    let filter = RangeFilter::from_bytes(ShrinkingOwner(bytes, &lent)).unwrap();
    let ranges: Ranges<u64> =
        Random(5).hashes(100).iter().map(|&a| (Included(a), Included(a))).collect();
    let mut hits = Bitmask::new();
    for length in [0, 63, 64, 100, stored - 40, stored - 1, stored + 1, stored + 100] {
        lent.set(stored);
        filter.contains_ranges(&ranges, &mut hits);
        assert!(hits.count_hits() < 5);
        lent.set(length);
        filter.contains_ranges(&ranges, &mut hits);
        assert_eq!(hits.count_misses(), 0, "{length}");
        assert!(ranges.iter().all(|&(lower, upper)| filter.contains_range(lower, upper)));
    }
}

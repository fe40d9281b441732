//! Ranges through prefixes: every range is compared with the keys that lie in it, and no filter
//! loses a key.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::ops::RangeBounds;

use crate::common::Random;
use blocked_bloom::{BloomFilter, FilterOptions, KeyHash, PrefixExtractor, Sizing};

type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// All strings of these letters up to a length, sorted.
fn strings(letters: &[u8], length: usize) -> Vec<Vec<u8>> {
    let mut all = vec![vec![]];
    let mut from = 0;
    for _ in 0..length {
        let to = all.len();
        for i in from..to {
            all.extend(
                letters.iter().map(|&letter| [&all[i][..], &[letter]].concat()).collect::<Vec<_>>(),
            );
        }
        from = to;
    }
    all.sort();
    all
}

/// Each string as an inclusive and an exclusive bound, and the missing bound.
fn bounds(strings: &[Vec<u8>]) -> Vec<Bound<&[u8]>> {
    let both = strings.iter().flat_map(|s| [Included(&s[..]), Excluded(&s[..])]);
    std::iter::once(Unbounded).chain(both).collect()
}

/// The first byte is the number of the following bytes that belong to the prefix.
fn counted(bytes: &[u8]) -> Option<usize> {
    bytes.first().map(|&n| 1 + usize::from(n)).filter(|&n| n <= bytes.len())
}

/// 21 rules if there are three letters.
fn rules(letters: &[u8]) -> Vec<PrefixExtractor> {
    let mut rules = vec![PrefixExtractor::custom("counted", counted, counted)];
    for n in 0..=3 {
        rules.extend([PrefixExtractor::fixed(n), PrefixExtractor::capped(n)]);
        rules.extend(letters.iter().map(|&letter| PrefixExtractor::delimiter(letter, n)));
    }
    rules
}

/// Whether a key of the range can have this prefix by a rule for which a prefix is its own prefix.
fn is_possible(prefix: &[u8], (lower, upper): Bounds<'_>) -> bool {
    // The least key with the prefix that is not below the lower bound.
    let next = |bytes: &[u8]| [bytes, &[0]].concat();
    let lower = match lower {
        Included(bytes) => bytes.to_vec(),
        Excluded(bytes) => next(bytes),
        Unbounded => vec![],
    };
    let least = match lower.starts_with(prefix) {
        true => lower,
        false if lower[..] < *prefix => prefix.to_vec(),
        false => return false,
    };
    (Unbounded, upper).contains(&least[..])
}

/// Counts of one rule.
#[derive(Default)]
struct Counts {
    ranges: u64,
    lost: u64,
    /// Prefixes that no key of the range can have.
    impossible: u64,
    /// Unknown, although all keys of the range have one prefix.
    imprecise: u64,
}

/// Compares all ranges between these bounds with the keys.
fn compare(
    rule: &PrefixExtractor,
    assume: bool,
    bounds: &[Bound<&[u8]>],
    keys: &[Vec<u8>],
) -> Counts {
    let rule = if assume { rule.clone().assume_keys_have_prefix() } else { rule.clone() };
    // Keys with equal prefixes follow each other: where each run ends.
    let prefixes: Vec<Option<&[u8]>> = keys.iter().map(|key| rule.prefix(key)).collect();
    let mut ends = vec![keys.len(); keys.len()];
    for i in (1..keys.len()).rev() {
        ends[i - 1] = if prefixes[i - 1] == prefixes[i] { ends[i] } else { i };
    }
    let mut counts = Counts::default();
    for &lower in bounds {
        let from = match lower {
            Included(bytes) => keys.partition_point(|key| &key[..] < bytes),
            Excluded(bytes) => keys.partition_point(|key| &key[..] <= bytes),
            Unbounded => 0,
        };
        for &upper in bounds {
            let to = match upper {
                Included(bytes) => keys.partition_point(|key| &key[..] <= bytes),
                Excluded(bytes) => keys.partition_point(|key| &key[..] < bytes),
                Unbounded => keys.len(),
            };
            counts.ranges += 1;
            // The prefix of each run of keys in the range.
            let next = |&at: &usize| Some(ends[at]).filter(|&end| end < to);
            let mut runs = std::iter::successors(Some(from).filter(|&at| at < to), next)
                .map(|at| prefixes[at])
                .filter(|prefix| prefix.is_some() || !assume);
            match rule.range_prefixes(lower, upper) {
                None => {
                    let first = runs.next();
                    let is_one = matches!(first, Some(Some(_))) && runs.next().is_none();
                    counts.imprecise += u64::from(is_one || first.is_none());
                }
                Some(found) if found.is_empty() => {
                    counts.lost += u64::from(runs.next().is_some());
                }
                Some(found) => {
                    let is_found = |prefix: Option<&[u8]>| {
                        prefix.is_some_and(|p| found.binary_search_by(|f| f[..].cmp(p)).is_ok())
                    };
                    counts.lost += u64::from(!runs.all(is_found));
                    let possible = found.iter().all(|prefix| is_possible(prefix, (lower, upper)));
                    let is_sorted = found.is_sorted_by(|a, b| a.cmp(b) == Ordering::Less);
                    counts.impossible += u64::from(!possible);
                    assert!(is_sorted && (1..=256).contains(&found.len()), "{found:?}");
                }
            }
        }
    }
    counts
}

/// All ranges between strings of up to `length` of these letters, against all keys of up to one
/// byte more of the letters `of_keys`.
fn compare_all(letters: &[u8], length: usize, of_keys: &[u8], ranges: u64) {
    let (strings, keys) = (strings(letters, length), strings(of_keys, length + 1));
    let bounds = bounds(&strings);
    for rule in rules(letters) {
        for assume in [false, true] {
            let counts = compare(&rule, assume, &bounds, &keys);
            let name = format!("{rule}, every key has a prefix: {assume}");
            assert_eq!((counts.ranges, counts.lost, counts.impossible), (ranges, 0, 0), "{name}");
            // With the assumption, the keys here are too few to tell.
            assert!(assume || counts.imprecise == 0, "{name}");
        }
    }
}

/// 59,049 ranges for each of 21 rules, without and with the assumption that every key has a prefix.
/// The keys also have the bytes next to those of the bounds.
#[test]
fn all_ranges_of_three_letters_keep_their_keys() {
    compare_all(&[0, 1, 255], 4, &[0, 1, 2, 254, 255], 59_049);
}

/// 41 rules. Letters next to each other, and both ends of the alphabet.
#[test]
fn all_ranges_of_eight_letters_keep_their_keys() {
    let letters = [0, 1, b'.', b'/', b'0', b'a', 254, 255];
    let keys = [0, 1, 2, b'.', b'/', b'0', b'1', b'a', b'b', 253, 254, 255];
    compare_all(&letters, 2, &keys, 147 * 147);
}

/// The ranges whose bounds are at the end of a block of prefixes, runs of 0xff, empty or reversed,
/// and keys that are prefixes of others.
#[test]
fn bounds_at_borders_have_the_prefixes_of_their_keys() {
    let two = || PrefixExtractor::fixed(2);
    let every = || two().assume_keys_have_prefix();
    let capped = || PrefixExtractor::capped(2);
    let slash = || PrefixExtractor::delimiter(b'/', 1);
    let list = |prefixes: &[&[u8]]| Some(prefixes.iter().map(|prefix| prefix.to_vec()).collect());
    let (empty, unknown) = (Some(vec![]), None);
    type Case<'a> = (PrefixExtractor, Bound<&'a str>, Bound<&'a [u8]>, Option<Vec<Vec<u8>>>);
    let cases: Vec<Case<'_>> = vec![
        // The prefix of an exclusive upper bound belongs to the range only if longer keys do.
        (two(), Included("ab"), Excluded(b"ac"), list(&[b"ab"])),
        (two(), Included("ab"), Included(b"ac"), list(&[b"ab", b"ac"])),
        (two(), Included("ab"), Excluded(b"ac\0"), list(&[b"ab", b"ac"])),
        (two(), Excluded("abc"), Excluded(b"ad"), list(&[b"ab", b"ac"])),
        (two(), Excluded("a"), Excluded(b"a\x01"), list(&[b"a\0"])),
        // One key.
        (two(), Included("ab"), Included(b"ab"), list(&[b"ab"])),
        (two(), Included("a"), Included(b"a"), unknown.clone()),
        (every(), Included("a"), Included(b"a"), empty.clone()),
        (capped(), Included("a"), Included(b"a"), list(&[b"a"])),
        (slash(), Included("a/b/c"), Included(b"a/b/c"), list(&[b"a/"])),
        // Empty and reversed.
        (two(), Included("ab"), Excluded(b"ab"), empty.clone()),
        (two(), Excluded("ab"), Included(b"ab"), empty.clone()),
        (two(), Excluded("ab"), Excluded(b"ab\0"), empty.clone()),
        (two(), Included("b"), Included(b"a"), empty.clone()),
        (capped(), Included("b"), Excluded(b"a"), empty.clone()),
        (slash(), Included("b/"), Excluded(b"a/"), empty.clone()),
        (slash(), Unbounded, Excluded(b""), empty.clone()),
        (capped(), Unbounded, Included(b""), list(&[b""])),
        // Not all keys start with the first byte of the lower bound: "b" lies in the second range.
        (two(), Included("a~"), Excluded(b"b"), list_up_to_ff(b'~')),
        (two(), Included("a~"), Included(b"b"), unknown.clone()),
        (two(), Included("a"), Included(b"ab"), unknown.clone()),
        (two(), Unbounded, Unbounded, unknown.clone()),
        (every(), Included("ab"), Included(b"b"), list_up_to_ff(b'b')),
        // A key can be a prefix of another.
        (capped(), Included("a"), Excluded(b"a\x01"), list(&[b"a", b"a\0"])),
        (capped(), Included("a"), Excluded(b"a\0"), list(&[b"a"])),
        (
            PrefixExtractor::capped(3),
            Included("a"),
            Included(b"a\0\0"),
            list(&[b"a", b"a\0", b"a\0\0"]),
        ),
        // "0" follows "/": these are all keys that start with "a/".
        (slash(), Included("a/"), Excluded(b"a0"), list(&[b"a/"])),
        (slash(), Included("a/"), Included(b"a0"), unknown.clone()),
        (slash(), Excluded("a/b"), Excluded(b"a/c"), list(&[b"a/"])),
        (slash(), Included("a/b"), Unbounded, unknown.clone()),
        // 256 prefixes, and one more.
        (two(), Included("a\0"), Excluded(b"b"), list_up_to_ff(0)),
        (every(), Included("a\0"), Included(b"b\0"), unknown.clone()),
        (
            every(),
            Included("a\x01"),
            Included(b"b\0"),
            Some((1..=255).map(|byte| vec![b'a', byte]).chain([b"b\0".to_vec()]).collect()),
        ),
        (capped(), Included("a"), Excluded(b"b"), unknown.clone()),
        (capped(), Included("a\0"), Excluded(b"b"), list_up_to_ff(0)),
        // No bytes: all keys have the same prefix.
        (PrefixExtractor::fixed(0), Unbounded, Unbounded, list(&[b""])),
        (PrefixExtractor::capped(0), Included("a"), Unbounded, list(&[b""])),
        (PrefixExtractor::delimiter(b'/', 0), Unbounded, Unbounded, list(&[b""])),
    ];
    for (rule, lower, upper, expected) in cases {
        let found = rule.range_prefixes(lower.map(str::as_bytes), upper);
        assert_eq!(found, expected, "{rule}, {lower:?} to {upper:?}");
    }
}

/// The prefixes "a" and a byte, for this byte and all greater ones.
fn list_up_to_ff(from: u8) -> Option<Vec<Vec<u8>>> {
    Some((from..=255).map(|byte| vec![b'a', byte]).collect())
}

/// A rule can know the prefix of a key where it knows none of a scan.
#[test]
fn a_range_of_one_key_has_the_prefix_of_the_key() {
    let last_slash = |key: &[u8]| key.iter().rposition(|&byte| byte == b'/').map(|at| at + 1);
    let rule = PrefixExtractor::custom("last slash", last_slash, |_| None);
    let one = Some(vec![b"a/b/".to_vec()]);
    let key = Included(&b"a/b/c"[..]);
    assert_eq!(rule.range_prefixes(key, key), one);
    assert_eq!(rule.range_prefixes(key, Excluded(b"a/b/c\0")), one);
    assert_eq!(rule.range_prefixes(Excluded(b"a/b/"), Included(b"a/b/\0")), one);
    assert_eq!(rule.range_prefixes(key, Excluded(b"a/b/c\0\0")), None);
    assert_eq!(rule.range_prefixes(Included(b"a"), Included(b"a")), None);
}

#[test]
fn runs_of_the_last_byte_have_their_prefixes() {
    let two = PrefixExtractor::fixed(2);
    let every = two.clone().assume_keys_have_prefix();
    let last = PrefixExtractor::delimiter(255, 1);
    let one = |prefix: &[u8]| Some(vec![prefix.to_vec()]);
    let all = Some((0..=255).map(|byte| vec![255, byte]).collect());
    let cases: &[(_, &[u8], Bound<&[u8]>, _)] = &[
        (&two, b"a\xff", Excluded(b"b"), one(b"a\xff")),
        (&two, b"a\xff\xff\xff", Excluded(b"b"), one(b"a\xff")),
        (&two, b"\xff\xff", Unbounded, one(b"\xff\xff")),
        (&two, b"\xff\xff\xff\x01", Unbounded, one(b"\xff\xff")),
        (&two, b"\xff", Unbounded, None),
        (&every, b"\xff", Unbounded, all.clone()),
        (&two, b"\xff\0", Unbounded, all),
        (&last, b"a\xff", Excluded(b"b"), one(b"a\xff")),
        (&last, b"\xff", Unbounded, one(b"\xff")),
        (&last, b"\xff\xff\xfe", Unbounded, one(b"\xff")),
        (&last, b"a", Excluded(b"b"), None),
    ];
    for (rule, lower, upper, expected) in cases {
        assert_eq!(rule.range_prefixes(Included(lower), *upper), *expected, "{rule}, {lower:?}");
    }
}

/// Neither long rules nor long bounds make a long list.
#[test]
fn long_rules_and_bounds_allocate_little() {
    let long = vec![b'a'; 3 << 20];
    let range = (Included(&long[..]), Unbounded);
    for n in [3 << 20, usize::MAX / 2, usize::MAX] {
        let fixed = PrefixExtractor::fixed(n);
        let capped = PrefixExtractor::capped(n);
        for rule in [fixed.clone(), fixed.assume_keys_have_prefix(), capped] {
            assert_eq!(rule.range_prefixes(range.0, range.1), None, "{rule}");
            let few = rule.range_prefixes(Included(b"a"), Excluded(b"b"));
            assert_eq!(few, None, "{rule}");
        }
    }
    // A single prefix may have any length.
    for rule in [PrefixExtractor::fixed(long.len()), PrefixExtractor::capped(long.len())] {
        let one = Some(vec![long.to_vec()]);
        assert_eq!(rule.range_prefixes(range.0, range.0), one, "{rule}");
    }
    // Several prefixes take at most about 1 MiB together.
    let lower = vec![b'a'; 100_000];
    for rule in [PrefixExtractor::fixed(100_000), PrefixExtractor::capped(100_000)] {
        for (last, expected) in [(b'j', Some(10)), (b'p', None)] {
            let mut upper = lower.clone();
            upper[99_999] = last;
            let prefixes = rule.range_prefixes(Included(&lower), Included(&upper));
            assert_eq!(prefixes.map(|prefixes| prefixes.len()), expected, "{rule}");
        }
    }
    // No key of nine bytes lies between these.
    let nine = PrefixExtractor::fixed(9).assume_keys_have_prefix();
    assert_eq!(nine.range_prefixes(Included(b"a"), Excluded(b"a\0\0")), Some(vec![]));
}

fn options() -> FilterOptions {
    FilterOptions::new(Sizing::BitsPerKey(12.0))
}

/// Short strings of few letters, so that many are prefixes of others.
fn any_string(random: &mut Random) -> Vec<u8> {
    let letters = [0, 1, b'/', b'0', 254, 255];
    (0..random.next() % 6).map(|_| letters[random.next() as usize % letters.len()]).collect()
}

/// A bound near a key: the key, its start, or the key and some bytes.
fn change(key: &[u8], random: &mut Random) -> Vec<u8> {
    match random.next() % 4 {
        0 => key.to_vec(),
        1 => key[..random.next() as usize % (key.len() + 1)].to_vec(),
        2 => [key, &any_string(random)].concat(),
        _ => any_string(random),
    }
}

/// Ranges that contain a key, at most `count` for each rule: no filter rules one out. In release
/// builds 10 million.
#[test]
fn no_filter_rules_out_a_range_that_contains_a_key() {
    let count = if cfg!(debug_assertions) { 200_000 } else { 10_000_000 };
    let mut random = Random(63);
    let letters = [b'/', 255];
    let (mut with_key, mut ruled_out) = (0_u64, 0_u64);
    while with_key < count {
        let keys: BTreeSet<Vec<u8>> = (0..40).map(|_| any_string(&mut random)).collect();
        for (i, rule) in rules(&letters).into_iter().enumerate() {
            // Every second table keeps only keys with a prefix, and says so.
            let assume = random.next().is_multiple_of(2);
            let keys: BTreeSet<&[u8]> = (keys.iter().map(|key| &key[..]))
                .filter(|key| !assume || rule.prefix(key).is_some())
                .collect();
            let options = match i % 2 {
                0 => options().with_prefixes(rule.clone()),
                _ => options().with_only_prefixes(rule.clone()),
            };
            let mut builder = options.builder();
            builder.extend(&keys).unwrap();
            let filter = builder.finish().unwrap();
            let asked = if assume { rule.clone().assume_keys_have_prefix() } else { rule.clone() };
            for _ in 0..200 {
                let some = keys.iter().nth(random.next() as usize % keys.len().max(1));
                let [one, other] = [0; 2].map(|_| change(some.unwrap_or(&&[][..]), &mut random));
                let (low, high) = if random.next().is_multiple_of(8) {
                    (other, one)
                } else if one < other {
                    (one, other)
                } else {
                    (other, one)
                };
                let [lower, upper] = [&low, &high].map(|bytes| match random.next() % 8 {
                    0 => Unbounded,
                    1..4 => Excluded(&bytes[..]),
                    _ => Included(&bytes[..]),
                });
                let maybe = filter.contains_range(&asked, lower, upper);
                let bounds: Bounds<'_> = (lower, upper);
                let has_key = keys.iter().any(|key| bounds.contains(*key));
                assert!(maybe || !has_key, "{rule}: {lower:?} to {upper:?} is lost");
                with_key += u64::from(has_key);
                ruled_out += u64::from(!maybe);
            }
        }
    }
    assert!(ruled_out > count / 20, "{ruled_out} ranges ruled out");
}

/// A batch of every size answers as single lookups of the prefixes do.
#[test]
fn a_range_is_the_batch_of_its_prefixes() {
    let rule = PrefixExtractor::fixed(2).assume_keys_have_prefix();
    let options = options().with_only_prefixes(rule.clone());
    for position in [0, 1, 63, 64, 65, 127, 128, 255_u16] {
        let mut builder = options.builder();
        builder.insert((0x6100 + position).to_be_bytes()).unwrap();
        let filter = builder.finish().unwrap();
        for (from, to) in
            [(0, 0), (0, 1), (0, 63), (0, 64), (0, 128), (0, 200), (0, 255), (60, 70), (1, 255)]
        {
            let [low, high] = [from, to].map(|byte: u16| (0x6100 + byte).to_be_bytes());
            let (lower, upper) = (Included(&low[..]), Included(&high[..]));
            let view = filter.prefixes(&rule);
            let singly = (from..=to).any(|byte| view.contains((0x6100 + byte).to_be_bytes()));
            assert_eq!(filter.contains_range(&rule, lower, upper), singly, "{from} to {to}");
            assert!(singly || !(from..=to).contains(&position));
        }
    }
}

/// "Maybe" wherever the filter cannot know, except for a range without keys.
#[test]
fn filters_that_cannot_know_answer_maybe() {
    let rule = PrefixExtractor::fixed(2);
    let range = (Included(&b"ab"[..]), Excluded(&b"ac"[..]));
    let reversed = (range.0, Excluded(&b"aa"[..]));
    let mut hashes = options()
        .with_key_hash(KeyHash::Caller { tag: 1 })
        .with_only_prefixes(rule.clone())
        .builder();
    hashes.insert_hash_with_prefix(7, Some(7));
    let mut other = options().with_prefixes(PrefixExtractor::fixed(3)).builder();
    other.insert("xyz").unwrap();
    let mut keys = options().builder();
    keys.insert("xyz").unwrap();
    let filters = [hashes, other, keys].map(|builder| builder.finish().unwrap());
    let pass_all = BloomFilter::pass_all(KeyHash::default());
    for filter in filters.iter().map(BloomFilter::view).chain([pass_all]) {
        assert!(filter.contains_range(&rule, range.0, range.1), "{filter:?}");
        assert!(!filter.contains_range(&rule, reversed.0, reversed.1), "{filter:?}");
    }
}

/// The assumption is a fact about tables, not part of the rule.
#[test]
fn the_assumption_does_not_change_the_rule() {
    let rule = PrefixExtractor::fixed(4);
    let every = rule.clone().assume_keys_have_prefix();
    assert_eq!((every.name(), every.id()), (rule.name(), rule.id()));
    assert_eq!(every, rule);
    let build = |rule: &PrefixExtractor| {
        let mut builder = options().with_prefixes(rule.clone()).builder();
        builder.extend(["ab", "abcdef", "abcxyz"]).unwrap();
        builder.finish().unwrap().to_bytes()
    };
    assert_eq!(build(&every), build(&rule), "the stored bytes are equal");
}

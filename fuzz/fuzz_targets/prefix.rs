//! Property: the prefix that a rule returns for a scan is the prefix of every key of the scan, and
//! every key of a range has one of the prefixes that the rule returns for the range. A filter never
//! answers "absent" for a scan or a range that contains a key. Rules are read by their definition, a
//! byte at a time. What cannot be added to the finished filter, a key or hash without its prefix,
//! is an error that changes nothing.
#![no_main]

use std::ops::Bound::{Excluded, Included, Unbounded};
use std::ops::RangeBounds;

use arbitrary::Arbitrary;
use blocked_bloom::{AtomicBloomFilter, Filter, FilterOptions, KeyError, PrefixExtractor, Sizing};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug, Clone, Copy)]
enum Rule {
    Fixed(u8),
    Capped(u8),
    Delimiter(u8, u8),
}

#[derive(Arbitrary, Debug)]
struct Input {
    rule: Rule,
    second_rule: Rule,
    keys: Vec<Vec<u8>>,
    starts: Vec<Vec<u8>>,
    /// Bounds of ranges, as the places of two starts or keys and the kinds of the bounds.
    ranges: Vec<(u8, u8, u8)>,
    keys_have_prefix: bool,
    only_prefixes: bool,
    name: String,
}

impl Rule {
    fn extractor(self) -> PrefixExtractor {
        match self {
            Rule::Fixed(bytes) => PrefixExtractor::fixed(bytes.into()),
            Rule::Capped(bytes) => PrefixExtractor::capped(bytes.into()),
            Rule::Delimiter(byte, count) => PrefixExtractor::delimiter(byte, count.into()),
        }
    }

    /// How many of the first bytes are a prefix, of a key that ends or may go on.
    fn naive(self, bytes: &[u8], ends: bool) -> Option<&[u8]> {
        let mut seen = 0;
        for end in 0..=bytes.len() {
            if let Rule::Delimiter(byte, _) = self
                && end > 0
                && bytes[end - 1] == byte
            {
                seen += 1;
            }
            let is_prefix = match self {
                Rule::Fixed(bytes) => end == usize::from(bytes),
                Rule::Capped(most) => end == usize::from(most) || ends && end == bytes.len(),
                Rule::Delimiter(_, count) => seen == count,
            };
            if is_prefix {
                return Some(&bytes[..end]);
            }
        }
        None
    }
}

fuzz_target!(|input: Input| {
    let rule = input.rule.extractor();
    assert_eq!(rule.name().parse(), Ok(rule.clone()));
    if let Ok(parsed) = input.name.parse::<PrefixExtractor>() {
        assert_eq!(parsed.name(), input.name);
    }

    let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
    let options = match input.only_prefixes {
        true => options.with_only_prefixes(rule.clone()),
        false => options.with_prefixes(rule.clone()),
    };
    let mut builder = options.builder();
    builder.extend(&input.keys).unwrap();
    let filter = builder.finish_verified().unwrap();
    let contents = options.contents();
    assert_eq!(filter.contents(), contents);

    let (mut owned, atomic) = (filter.clone(), AtomicBloomFilter::from(filter.clone()));
    let error = KeyError::NoPrefix { contents };
    assert_eq!([owned.insert("key"), owned.insert_hash(7)], [Err(error); 2]);
    assert_eq!([owned.insert_batch(&["key"]), owned.insert_hashes(&[7])], [Err(error); 2]);
    assert_eq!([atomic.insert("key"), atomic.insert_hash(7)], [Err(error); 2]);
    assert_eq!([atomic.insert_batch(&["key"]), atomic.insert_hashes(&[7])], [Err(error); 2]);
    assert!(options.empty_filter(1).is_err());
    assert!(input.keys.iter().all(|key| atomic.contains(key)));
    assert!(owned == filter && atomic.into_filter() == filter);

    let other = input.second_rule.extractor();
    assert_eq!(other == rule, other.id() == rule.id());
    let starts_of_keys = input.keys.iter().flat_map(|key| (0..=key.len()).map(|end| &key[..end]));
    for start in starts_of_keys.chain(input.starts.iter().map(Vec::as_slice)) {
        let prefix = rule.prefix(start);
        assert_eq!(prefix, input.rule.naive(start, true), "{rule}, {start:?}");
        let shared = rule.scan_prefix(start);
        assert_eq!(shared, input.rule.naive(start, false), "{rule}, scan of {start:?}");
        let of_scan = input.keys.iter().filter(|key| key.starts_with(start));
        if let Some(shared) = shared {
            assert!(of_scan.clone().all(|key| rule.prefix(key) == Some(shared)));
            for more in &input.starts {
                let key = [start, more].concat();
                assert_eq!(rule.prefix(&key), Some(shared), "{rule}, {start:?}, {more:?}");
            }
        }
        let maybe = filter.contains_prefix(&rule, start);
        assert!(maybe || of_scan.count() == 0, "{rule}: a scan of {start:?} is lost");
        let alone = shared.is_none_or(|shared| filter.prefixes(&rule).contains(shared));
        assert_eq!(maybe, alone);
        if other != rule {
            assert!(filter.contains_prefix(&other, start), "a rule it was not built with");
        }
    }
    let asked = match input.keys_have_prefix {
        true if input.keys.iter().all(|key| rule.prefix(key).is_some()) => {
            rule.clone().assume_keys_have_prefix()
        }
        _ => rule.clone(),
    };
    let strings: Vec<&[u8]> = input.starts.iter().chain(&input.keys).map(Vec::as_slice).collect();
    for (low, high, kinds) in input.ranges.iter().filter(|_| !strings.is_empty()) {
        let bound = |place: &u8, kind: u8| match kind % 3 {
            0 => Included(strings[usize::from(*place) % strings.len()]),
            1 => Excluded(strings[usize::from(*place) % strings.len()]),
            _ => Unbounded,
        };
        let (lower, upper) = (bound(low, *kinds), bound(high, kinds / 3));
        let prefixes = asked.range_prefixes(lower, upper);
        let mut keys = input.keys.iter().filter(|key| (lower, upper).contains(&key[..]));
        let is_known = |key: &Vec<u8>| match &prefixes {
            None => true,
            Some(prefixes) => {
                asked.prefix(key).is_some_and(|prefix| prefixes.iter().any(|p| p == prefix))
            }
        };
        assert!(keys.clone().all(is_known), "{rule}: {lower:?} to {upper:?} is {prefixes:?}");
        let maybe = filter.contains_range(&asked, lower, upper);
        assert!(maybe || keys.next().is_none(), "{rule}: {lower:?} to {upper:?} is lost");
        let singly = match &prefixes {
            None => true,
            Some(prefixes) => {
                assert!(prefixes.is_sorted() && prefixes.len() <= 256);
                prefixes.iter().any(|prefix| filter.prefixes(&rule).contains(prefix))
            }
        };
        assert_eq!(maybe, singly);
    }
    assert!(input.keys.iter().all(|key| filter.contains(key)));
    if input.only_prefixes {
        assert!(input.starts.iter().all(|key| filter.contains(key)));
    }
});

//! Property: wherever a table's filter is cut, no key of the table and no scan that would find one is "absent"; every answer is that
//! of the partition that a naive search by the separators gives; what cannot be loaded or is damaged is "maybe". A damaged index is
//! refused; one whose checksums fit is refused, or asked by the same search; and one whose separators do not ascend is refused.
//!
//! Tables are of some forty keys: sizing every partition is most of the time, asking most of the rest.
#![no_main]

use std::collections::BTreeSet;

use arbitrary::Arbitrary;
use blocked_bloom::{
    Bitmask, BloomFilterBuilder, BloomFilterRef, KeyHasher, PartitionIndex, PartitionLocation,
    PartitionedFilterBuilder, PrefixExtractor, Sizing,
};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    bits_per_key: u8,
    probes: Option<u8>,
    blocks: u8,
    rule: u8,
    only_prefixes: bool,
    keys: Vec<Vec<u8>>,
    /// Keys that are made up beside those, in so many runs of a common prefix.
    more: u16,
    runs: u8,
    asked: Vec<Vec<u8>>,
    /// The partitions that do not load.
    lost: u8,
    /// Byte of a partition that is changed, and how.
    damage: (u16, u8),
    /// Separators that are replaced: which one, by which other, and by how many bytes of it.
    swaps: Vec<(u8, u8, u8)>,
    /// Bytes of the index that are changed, and how.
    edits: Vec<(u16, u8)>,
}

type Load<'a> = dyn FnMut(PartitionLocation) -> Result<&'a [u8], &'static str> + 'a;

fn checksum(bytes: &[u8]) -> [u8; 8] {
    KeyHasher::default().hash(bytes).to_le_bytes()
}

impl Input {
    fn extractor(&self) -> Option<PrefixExtractor> {
        let length = usize::from(self.rule / 4 % 8);
        match self.rule % 4 {
            0 => Some(PrefixExtractor::fixed(length)),
            1 => Some(PrefixExtractor::capped(length)),
            2 => Some(PrefixExtractor::delimiter(b'/', length)),
            _ => None,
        }
    }

    fn template(&self) -> BloomFilterBuilder {
        let bits = f64::from(self.bits_per_key) / 2.0;
        let mut builder = BloomFilterBuilder::new(Sizing::BitsPerKey(bits));
        if let Some(probes) = self.probes {
            builder = builder.probes(u32::from(probes) % 30 + 1);
        }
        match self.extractor() {
            Some(extractor) if self.only_prefixes => builder.only_prefixes(extractor),
            Some(extractor) => builder.prefixes(extractor),
            None => builder,
        }
    }
}

/// The last partition whose separator is not greater than the key.
fn naive_partition<B: AsRef<[u8]>>(index: &PartitionIndex<B>, key: &[u8]) -> usize {
    let at_most = |&partition: &usize| index.separator(partition).unwrap() <= key;
    (0..index.partitions()).rev().find(at_most).unwrap_or(0)
}

/// Makes the checksums of an index fit.
fn seal(index: &mut [u8]) {
    let sum = checksum(&index[64..]);
    index[48..56].copy_from_slice(&sum);
    let sum = checksum(&index[..56]);
    index[56..64].copy_from_slice(&sum);
}

/// The index with other separators.
fn with_separators(index: &[u8], separators: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = index[..64 + 24 * separators.len()].to_vec();
    let mut end = 0;
    for (i, separator) in separators.iter().enumerate() {
        end += separator.len() as u64;
        bytes[64 + 24 * i + 16..][..8].copy_from_slice(&end.to_le_bytes());
    }
    bytes[32..40].copy_from_slice(&end.to_le_bytes());
    bytes.extend(separators.concat());
    seal(&mut bytes);
    bytes
}

fn load(stored: &[u8], at: PartitionLocation) -> Result<&[u8], &'static str> {
    let range = usize::try_from(at.offset).ok().zip(usize::try_from(at.offset + at.length).ok());
    range.and_then(|(start, end)| stored.get(start..end)).ok_or("outside the file")
}

/// Whether every question is answered as the partition of the naive search answers it, or "maybe" with a failure.
fn ask(
    input: &Input,
    index: &PartitionIndex<&[u8]>,
    intact: bool,
    mut load: Box<Load<'_>>,
    keys: &[&[u8]],
) {
    let mut one_by_one = Vec::new();
    for key in keys {
        let partition = naive_partition(index, key);
        assert_eq!(index.partition_of(key), Some(partition));
        let at = index.location(partition).unwrap();
        let (maybe, failure) = index.contains(key, &mut load);
        one_by_one.push(maybe);
        if failure.is_some() {
            assert!(maybe && !intact);
        } else if index.added().whole_keys() {
            let filter = load(at).unwrap();
            assert_eq!(maybe, BloomFilterRef::from_bytes_trusted(filter).unwrap().contains(key));
        } else {
            assert!(maybe);
        }
        if let Some(extractor) = input.extractor() {
            let (maybe, failure) = index.contains_prefix(&extractor, key, &mut load);
            let has_prefixes = index.added().extractor() == Some(extractor.id());
            if failure.is_some() {
                assert!(maybe && !intact);
            } else if has_prefixes && extractor.scan_prefix(key).is_some() {
                let filter = load(at).unwrap();
                let filter = BloomFilterRef::from_bytes_trusted(filter).unwrap();
                assert_eq!(maybe, filter.contains_prefix(&extractor, key));
            } else {
                assert!(maybe);
            }
        }
    }
    let (mut hits, mut loaded) = (Bitmask::new(), BTreeSet::new());
    let failures = index.contains_batch(keys, &mut hits, |at| {
        assert!(loaded.insert(at.partition), "a partition is loaded twice");
        load(at)
    });
    assert!(failures.is_empty() || !intact);
    for (i, &expected) in one_by_one.iter().enumerate() {
        assert_eq!(hits.get(i), Some(expected), "{:?}", keys[i]);
    }
}

fuzz_target!(|input: Input| {
    let mut keys: BTreeSet<Vec<u8>> = input.keys.iter().take(12).cloned().collect();
    for i in 0..input.more % 30 {
        keys.insert(format!("{}/{i:04}", i % (u16::from(input.runs) + 1)).into_bytes());
    }
    let mut stored = Vec::new();
    let mut parts = 0;
    let bytes = 64 + 64 * [1, 1, 1, 1, 1, 2, 3, 6][usize::from(input.blocks % 8)];
    let sink = |filter: blocked_bloom::BloomFilter| {
        parts += 1;
        filter.write_to(&mut stored).map(drop)
    };
    let Ok(mut builder) = PartitionedFilterBuilder::new(input.template(), bytes, sink) else {
        return;
    };
    let mut whole = input.template();
    for (i, key) in keys.iter().enumerate() {
        builder.insert(key).unwrap();
        if i % 7 == 3 {
            builder.insert(key).unwrap();
        }
        whole.insert(key);
    }
    let index_bytes = builder.finish().unwrap();
    let whole = whole.finish().unwrap();
    let index = PartitionIndex::from_bytes(&index_bytes[..]).unwrap();
    assert_eq!(index.keys_inserted(), keys.len() as u64);
    assert_eq!((index.partitions(), index.stored_bytes()), (parts, stored.len() as u64));

    let stored = &stored[..];
    let starts =
        keys.iter().step_by(5).flat_map(|key| (0..key.len().min(8)).map(|end| &key[..end]));
    let asked = input.asked.iter().take(20);
    let keys_and_more: Vec<&[u8]> = asked.chain(&keys).map(Vec::as_slice).chain(starts).collect();
    ask(&input, &index, true, Box::new(|at| load(stored, at)), &keys_and_more);
    // From all parts of the table.
    let some = keys_and_more.iter().step_by(keys_and_more.len() / 16 + 1);
    let some = &some.copied().collect::<Vec<&[u8]>>()[..];
    let trusted = index.clone().trust_loaded_blocks();
    ask(&input, &trusted, true, Box::new(|at| load(stored, at)), some);
    for key in &keys {
        assert!(index.contains(key, |at| load(stored, at)).0, "{key:?} is lost");
        assert!(whole.contains(key));
    }
    if let Some(extractor) = input.extractor() {
        let prefixes: BTreeSet<&[u8]> =
            keys.iter().filter_map(|key| extractor.prefix(key)).collect();
        for start in &keys_and_more {
            // Forward or in reverse from here, a scan of the prefix finds a key.
            if extractor.scan_prefix(start).is_some_and(|prefix| prefixes.contains(prefix)) {
                let (maybe, _) = index.contains_prefix(&extractor, start, |at| load(stored, at));
                assert!(maybe, "a scan from {start:?} is lost");
                assert!(whole.contains_prefix(&extractor, start));
            }
        }
        // Rules of an engine's own need what the format says: the prefixes of the keys beside a cut, on both of its sides.
        let place =
            |key: &[u8]| load(stored, index.location(naive_partition(&index, key)).unwrap());
        for (one, next) in keys.iter().zip(keys.iter().skip(1)) {
            for (at, other) in [(one, next), (next, one)] {
                let filter = BloomFilterRef::from_bytes(place(at).unwrap()).unwrap();
                let prefix = extractor.prefix(other);
                assert!(prefix.is_none_or(|prefix| filter.prefixes(&extractor).contains(prefix)));
            }
        }
    }

    let lost = usize::from(input.lost);
    ask(
        &input,
        &index,
        false,
        Box::new(move |at| match at.partition % 8 == lost % 8 {
            true => Err("lost"),
            false => load(stored, at),
        }),
        some,
    );

    let mut damaged = stored.to_vec();
    let (place, change) = (usize::from(input.damage.0) % stored.len(), input.damage.1);
    damaged[place] ^= change;
    for key in some {
        let (maybe, failure) = index.contains(key, |at| load(&damaged, at));
        let at = index.location(naive_partition(&index, key)).unwrap();
        let is_hit = (at.offset..at.offset + at.length).contains(&(place as u64));
        let is_asked = index.added().whole_keys();
        assert_eq!(failure.is_some(), is_hit && is_asked && change != 0);
        assert!(maybe || failure.is_none());
    }

    let mut edited = index_bytes.clone();
    for &(place, change) in &input.edits {
        let place = usize::from(place) % edited.len();
        edited[place] ^= change;
    }
    let opened = PartitionIndex::from_bytes(&edited[..]);
    assert_eq!(opened.is_ok(), edited == index_bytes);
    seal(&mut edited);
    if let Ok(opened) = PartitionIndex::from_bytes(&edited[..]) {
        let mut end = 0;
        for partition in 0..opened.partitions() {
            let at = opened.location(partition).unwrap();
            assert!(at.offset == end && at.length % 64 == 0 && at.length >= 128);
            assert!(
                partition == 0 || opened.separator(partition - 1) < opened.separator(partition)
            );
            end = at.offset + at.length;
        }
        ask(&input, &opened, false, Box::new(|at| load(stored, at)), some);
    }

    let separator = |i: usize| index.separator(i % parts).unwrap();
    let mut separators: Vec<Vec<u8>> = (0..parts).map(|i| separator(i).to_vec()).collect();
    for &(which, by, length) in &input.swaps {
        let by = separator(by.into());
        let length = usize::from(length).min(by.len());
        separators[usize::from(which) % parts] = by[..length].to_vec();
    }
    let other = with_separators(&index_bytes, &separators);
    let ascend = separators[0].is_empty() && separators.is_sorted_by(|one, next| one < next);
    let opened = PartitionIndex::from_bytes(&other[..]);
    assert_eq!(opened.is_ok(), ascend, "{separators:?}");
    if let Ok(opened) = opened {
        ask(&input, &opened, false, Box::new(|at| load(stored, at)), some);
    }
});

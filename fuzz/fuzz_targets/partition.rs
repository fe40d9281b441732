//! Property: wherever a table's filter is cut, no key of the table and no scan that would find one
//! is "absent"; every key is located in the partition that a naive search by the separators gives;
//! and what is loaded for it opens exactly if it is the partition that the index means and
//! undamaged. A key that is out of order is an error that changes nothing. A damaged index is
//! rejected; one whose checksums fit is rejected, or locates by the same search; one whose
//! separators do not ascend is rejected.
//!
//! Tables are of some forty keys: sizing every partition is most of the time, looking up most of
//! the rest.
#![no_main]

use std::collections::BTreeSet;

use arbitrary::Arbitrary;
use blocked_bloom::{
    BloomFilter, FilterOptions, KeyHash, KeyHasher, PrefixExtractor, Sizing, Stored,
};
use blocked_bloom_lsm::{
    PartitionBuildError, PartitionError, PartitionIndex, PartitionLocation,
    PartitionedFilterBuilder,
};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    bits_per_key: u8,
    probes: Option<u8>,
    blocks: u8,
    /// Two bits for the kind of rule, three for its length, three for the seed of the hash.
    rule: u8,
    only_prefixes: bool,
    keys: Vec<Vec<u8>>,
    /// Keys that are made up beside those, in this many runs of a common prefix.
    extra_keys: u16,
    runs: u8,
    looked_up: Vec<Vec<u8>>,
    /// The partition that is loaded in place of each.
    wrong: u8,
    /// Byte of a partition that is changed, and how.
    damage: (u16, u8),
    /// Separators that are replaced: which one, by which other, and by how many bytes of it.
    swaps: Vec<(u8, u8, u8)>,
    /// Bytes of the index that are changed, and how.
    edits: Vec<(u16, u8)>,
}

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

    fn options(&self) -> FilterOptions {
        let bits = f64::from(self.bits_per_key) / 2.0;
        let key_hash = KeyHash::Xxh3 { seed: u64::from(self.rule / 32) };
        let mut options = FilterOptions::new(Sizing::BitsPerKey(bits)).with_key_hash(key_hash);
        if let Some(probes) = self.probes {
            options = options.with_probes(u32::from(probes) % 30 + 1);
        }
        match self.extractor() {
            Some(extractor) if self.only_prefixes => options.with_only_prefixes(extractor),
            Some(extractor) => options.with_prefixes(extractor),
            None => options,
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

/// The bytes of a location; none outside the file.
fn load(stored: &[u8], at: PartitionLocation) -> &[u8] {
    let start = usize::try_from(at.offset).ok();
    let end = at.offset.checked_add(at.length).and_then(|end| usize::try_from(end).ok());
    start.zip(end).and_then(|(start, end)| stored.get(start..end)).unwrap_or_default()
}

/// Opens what was loaded for a location, in both ways, exactly if it is what the index means.
fn open<'b>(
    index: &PartitionIndex<&[u8]>,
    index_bytes: &[u8],
    at: PartitionLocation,
    loaded: &'b [u8],
) -> Result<BloomFilter<Stored<&'b [u8]>>, PartitionError> {
    let is_meant = |filter: &BloomFilter<Stored<&[u8]>>| {
        index_bytes[64 + 24 * at.partition..][..8] == loaded[56..64]
            && filter.key_hash() == index.key_hash()
    };
    let whole = BloomFilter::from_bytes_any_hash(loaded);
    let opened = index.open(&at, loaded);
    assert_eq!(opened.is_ok(), whole.is_ok_and(|filter| is_meant(&filter)));
    let trusted = BloomFilter::from_bytes_trusted_any_hash(loaded);
    let open_trusted = index.open_trusted(&at, loaded);
    assert_eq!(open_trusted.is_ok(), trusted.is_ok_and(|filter| is_meant(&filter)));
    if let Ok(filter) = &opened {
        assert_eq!(open_trusted.as_ref(), Ok(filter));
        assert_eq!(filter.to_bytes(), loaded);
    }
    opened
}

/// Locates every key as the naive search does.
fn locate(index: &PartitionIndex<&[u8]>, keys: &[&[u8]]) -> Vec<PartitionLocation> {
    let locate = |key: &&[u8]| {
        let partition = naive_partition(index, key);
        let at = index.locate(key);
        assert_eq!(at.partition, partition, "{key:?}");
        assert_eq!(index.location(partition), Some(at));
        at
    };
    keys.iter().map(locate).collect()
}

/// Adds the keys, some of them twice and some out of order, and stores what comes.
fn build(
    input: &Input,
    keys: &BTreeSet<Vec<u8>>,
    bytes: u64,
) -> Option<(Vec<BloomFilter>, Vec<u8>)> {
    let mut builder = PartitionedFilterBuilder::new(input.options(), bytes).ok()?;
    let mut partitions = Vec::new();
    let (mut position, mut before): (u64, Option<&[u8]>) = (0, None);
    for (i, key) in keys.iter().enumerate() {
        partitions.extend(builder.insert(key).unwrap());
        position += 1;
        if i % 7 == 3 {
            assert_eq!(builder.insert(key), Ok(None));
            position += 1;
        }
        if i % 5 == 2
            && let Some(before) = before
        {
            let error = PartitionBuildError::Unsorted { position };
            assert_eq!(builder.insert(before), Err(error));
            position += 1;
        }
        before = Some(key);
    }
    let (last, index) = builder.finish().unwrap();
    partitions.push(last);
    Some((partitions, index))
}

fuzz_target!(|input: Input| {
    let mut keys: BTreeSet<Vec<u8>> = input.keys.iter().take(12).cloned().collect();
    for i in 0..input.extra_keys % 30 {
        keys.insert(format!("{}/{i:04}", i % (u16::from(input.runs) + 1)).into_bytes());
    }
    let bytes = 64 + 64 * [1, 1, 1, 1, 1, 2, 3, 6][usize::from(input.blocks % 8)];
    let Some((partitions, index_bytes)) = build(&input, &keys, bytes) else {
        return;
    };
    let mut whole = input.options().builder();
    whole.extend(&keys).unwrap();
    let whole = whole.finish().unwrap();
    let stored: Vec<u8> = partitions.iter().flat_map(BloomFilter::to_bytes).collect();
    let (stored, parts) = (&stored[..], partitions.len());
    assert!(partitions.iter().all(|filter| filter.params().stored_bytes() <= bytes));
    let index = PartitionIndex::from_bytes_any_hash(&index_bytes[..]).unwrap();
    assert_eq!(index.keys_inserted(), keys.len() as u64);
    assert_eq!((index.partitions(), index.stored_bytes()), (parts, stored.len() as u64));
    assert_eq!(index.contents(), input.options().contents());
    assert_eq!((index.location(parts), index.separator(parts)), (None, None));

    let starts =
        keys.iter().step_by(5).flat_map(|key| (0..key.len().min(8)).map(|end| &key[..end]));
    let others = input.looked_up.iter().take(20);
    let keys_and_more: Vec<&[u8]> = others.chain(&keys).map(Vec::as_slice).chain(starts).collect();
    for (key, at) in keys_and_more.iter().zip(locate(&index, &keys_and_more)) {
        let filter = open(&index, &index_bytes, at, load(stored, at)).unwrap();
        assert_eq!(filter, partitions[at.partition]);
        assert!(filter.contains(key) || !keys.contains(*key), "{key:?} is lost");
    }
    // From all parts of the table.
    let some = keys_and_more.iter().step_by(keys_and_more.len() / 16 + 1);
    let some = &some.copied().collect::<Vec<&[u8]>>()[..];
    assert!(keys.iter().all(|key| whole.contains(key)));
    let filter_of = |key: &[u8]| &partitions[index.locate(key).partition];
    if let Some(extractor) = input.extractor() {
        let prefixes: BTreeSet<&[u8]> =
            keys.iter().filter_map(|key| extractor.prefix(key)).collect();
        for start in &keys_and_more {
            // Forward or in reverse from here, a scan of the prefix finds a key.
            if extractor.scan_prefix(start).is_some_and(|prefix| prefixes.contains(prefix)) {
                let maybe = filter_of(start).contains_prefix(&extractor, start);
                assert!(maybe, "a scan from {start:?} is lost");
                assert!(whole.contains_prefix(&extractor, start));
            }
        }
        // Rules of an engine's own need what the format says: the prefixes of the keys beside a
        // cut, on both of its sides.
        for (one, next) in keys.iter().zip(keys.iter().skip(1)) {
            for (at, other) in [(one, next), (next, one)] {
                let filter = filter_of(at).prefixes(&extractor);
                let prefix = extractor.prefix(other);
                assert!(prefix.is_none_or(|prefix| filter.contains(prefix)));
            }
        }
    }

    // One partition in place of another, or cut short.
    let wrong = index.location(usize::from(input.wrong) % parts).unwrap();
    for partition in 0..parts {
        let at = index.location(partition).unwrap();
        let opened = open(&index, &index_bytes, at, load(stored, wrong));
        assert!(opened.is_ok() || partition != wrong.partition);
        assert!(
            open(&index, &index_bytes, at, &load(stored, at)[..at.length as usize - 1]).is_err()
        );
    }

    let mut damaged = stored.to_vec();
    let (place, change) = (usize::from(input.damage.0) % stored.len(), input.damage.1);
    damaged[place] ^= change;
    for partition in 0..parts {
        let at = index.location(partition).unwrap();
        let is_hit = (at.offset..at.offset + at.length).contains(&(place as u64)) && change != 0;
        let opened = open(&index, &index_bytes, at, load(&damaged, at));
        assert_eq!(opened.is_err(), is_hit);
        // The header alone is verified, and the block of a pass-all filter.
        let is_seen = place as u64 - at.offset.min(place as u64) < 64;
        let is_seen = is_hit && (is_seen || partitions[partition].is_pass_all());
        assert_eq!(index.open_trusted(&at, load(&damaged, at)).is_err(), is_seen);
    }

    let mut edited = index_bytes.clone();
    for &(place, change) in &input.edits {
        let place = usize::from(place) % edited.len();
        edited[place] ^= change;
    }
    let opened = PartitionIndex::from_bytes_any_hash(&edited[..]);
    assert_eq!(opened.is_ok(), edited == index_bytes);
    seal(&mut edited);
    if let Ok(opened) = PartitionIndex::from_bytes_any_hash(&edited[..]) {
        let mut end = 0;
        for partition in 0..opened.partitions() {
            let at = opened.location(partition).unwrap();
            assert!(at.offset == end && at.length % 64 == 0 && at.length >= 128);
            assert!(
                partition == 0 || opened.separator(partition - 1) < opened.separator(partition)
            );
            end = at.offset + at.length;
            _ = open(&opened, &edited, at, load(stored, at));
        }
        locate(&opened, some);
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
    let opened = PartitionIndex::from_bytes_any_hash(&other[..]);
    assert_eq!(opened.is_ok(), ascend, "{separators:?}");
    if let Ok(opened) = opened {
        locate(&opened, some);
    }
});

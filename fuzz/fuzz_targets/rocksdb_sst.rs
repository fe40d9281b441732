//! Property: an SST file that was changed is rejected, or no key that may have been in it becomes
//! "absent" where checksums cover the change; whatever is in a file, singly and in batches the
//! answers are the same, and hashes rule out no key that may be there. Files without checksums, and
//! files that are put together from arbitrary blocks with fitting ones, lead the fuzzer behind
//! them.
//!
//! Input: one byte that says which file and in what way; then changes of three bytes each (where,
//! how), the file itself, or the properties and blocks that make one.
#![no_main]

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_formats::rocksdb::{SstFilter, hash_key};
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/formats/tests/suite/sst.rs"]
mod sst;

use sst::{Sst, entries, handle};

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!(
            "../../crates/formats/tests/fixtures/rocksdb/matrix/",
            $name,
            ".sst"
        ))
    };
}

/// Under checksums of each kind, full and partitioned, with prefixes and without.
const FIXTURES: [&[u8]; 10] = [
    fixture!("xxh3_fv5"),
    fixture!("xxh3_fv6"),
    fixture!("crc32c_fv2"),
    fixture!("xxhash_fv5"),
    fixture!("xxhash64_fv6"),
    fixture!("parts_fv2_ri1"),
    fixture!("parts_fv5_ri16"),
    fixture!("parts_fv6_ri16"),
    fixture!("parts_prefix4_fv5"),
    fixture!("capped6"),
];
const UNCHECKED_FILES: [&[u8]; 2] = [fixture!("no_checksum_fv2"), fixture!("no_checksum_fv5")];

/// The keys of the files without prefixes.
const KEYS: usize = 300;

/// Keys of the last two files.
const PREFIXED_KEYS: usize = 100;

fn keys() -> Vec<Vec<u8>> {
    let numbered = (0..900).step_by(3).chain((1..900).step_by(16));
    let numbered = numbered.map(|i| format!("user{i:05}").into_bytes());
    let prefixed = (0..PREFIXED_KEYS).map(|i| format!("u{:02}:item{i:04}", i / 10).into_bytes());
    prefixed.chain(numbered).chain([vec![], b"user".to_vec(), vec![255; 9], vec![0]]).collect()
}

fn answers<D: AsRef<[u8]>>(filter: &SstFilter<D>, keys: &[Vec<u8>]) -> Vec<(bool, bool)> {
    let (mut hits, mut of_hashes) = (Bitmask::new(), Bitmask::new());
    filter.contains_batch(keys, &mut hits);
    let hashes: Vec<u64> = keys.iter().map(hash_key).collect();
    filter.contains_hashes(&hashes, &mut of_hashes);
    let of_keys = filter.whole_keys() == Some(true);
    keys.iter()
        .enumerate()
        .map(|(i, key)| {
            let maybe = filter.contains(key);
            assert_eq!(hits.get(i), Some(maybe), "{key:02x?} in a batch");
            assert!(of_hashes.get(i) == Some(true) || !maybe, "{key:02x?} is lost by its hash");
            // A block by itself knows no more than all blocks together.
            let blocks: Vec<_> = filter.filter_blocks().collect();
            let any =
                blocks.is_empty() || !of_keys || blocks.iter().any(|block| block.contains(key));
            assert!(any || !maybe, "{key:02x?} is in no block");
            let start = filter.contains_prefix(key);
            assert!(filter.contains_extracted("an extractor of no file", key));
            (maybe, start)
        })
        .collect()
}

/// A file of arbitrary properties and blocks, with correct checksums.
fn assemble(input: &[u8]) -> Vec<u8> {
    let Some((&flags, mut rest)) = input.split_first() else { return Vec::new() };
    // A length of one byte, followed by the piece.
    let mut piece = || {
        let Some((&length, after)) = rest.split_first() else { return &[][..] };
        let (piece, left) = after.split_at(usize::from(length).min(after.len()));
        rest = left;
        piece
    };
    let mut file = Sst::default();
    let filters =
        ["fullfilter.rocksdb.BuiltinBloomFilter", "partitionedfilter.rocksdb.BuiltinBloomFilter"];
    let filter_name = filters[usize::from(flags & 1)];
    for _ in 0..flags >> 1 & 3 {
        file.block(piece());
    }
    let filter = file.block(piece());
    let properties = [
        ("rocksdb.block.based.table.prefix.filtering", vec![b'0' + (flags >> 3 & 1)]),
        ("rocksdb.block.based.table.whole.key.filtering", vec![b'0' + (flags >> 4 & 1)]),
        (
            "rocksdb.comparator",
            b"leveldb.BytewiseComparator"[usize::from(flags >> 5 & 1)..].to_vec(),
        ),
        ("rocksdb.index.key.is.user.key", vec![flags >> 6 & 1]),
        ("rocksdb.index.value.is.delta.encoded", vec![flags >> 7]),
        ("rocksdb.prefix.extractor.name", piece().to_vec()),
    ];
    let of_properties = match piece() {
        b"" => file.block(&entries(&properties)),
        block => file.block(block),
    };
    let named = [(filter_name, handle(filter)), ("rocksdb.properties", handle(of_properties))];
    let metaindex = match piece() {
        b"" => file.block(&entries(&named)),
        block => file.block(block),
    };
    file.footer(metaindex)
}

fuzz_target!(|input: &[u8]| {
    let [choice, rest @ ..] = input else { return };
    let keys = keys();
    match choice {
        0..128 => {
            let original = FIXTURES[usize::from(*choice) % FIXTURES.len()];
            // One byte, so that data and checksum cannot change together.
            let &[low, high, change, ..] = rest else { return };
            let mut file = original.to_vec();
            let at = usize::from(u16::from_le_bytes([low, high])) % file.len();
            file[at] ^= change;
            let Ok(filter) = SstFilter::open(&file) else {
                return assert_ne!(change, 0);
            };
            let before = answers(&SstFilter::open(original).unwrap(), &keys);
            let own = match usize::from(*choice) % FIXTURES.len() {
                8.. => 0..PREFIXED_KEYS,
                _ => PREFIXED_KEYS..PREFIXED_KEYS + KEYS,
            };
            assert!(before[own].iter().all(|before| before.0), "a key of the file is lost");
            let after = answers(&filter, &keys);
            for (i, (before, after)) in before.into_iter().zip(after).enumerate() {
                assert!(after.0 || !before.0, "byte {at}: {:?} is lost", keys[i]);
                assert!(after.1 || !before.1, "byte {at}: a scan from {:?} is lost", keys[i]);
            }
        }
        128..160 => {
            let mut file = UNCHECKED_FILES[usize::from(*choice) % 2].to_vec();
            for edit in rest.as_chunks::<3>().0 {
                let at = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % file.len();
                file[at] ^= edit[2];
            }
            if let Ok(filter) = SstFilter::open(&file) {
                answers(&filter, &keys);
            }
        }
        _ => {
            let file = if *choice < 192 { rest } else { &assemble(rest) };
            let opened = SstFilter::open(file);
            // A damaged file may have two errors, of which each way meets another first.
            let ranged = sst::open_by_ranges(file);
            let is_same = ranged == opened || ranged.is_err() && opened.is_err();
            assert!(is_same, "loaded as it is needed it opens otherwise: {ranged:?}, {opened:?}");
            if let Ok(filter) = opened {
                answers(&filter, &keys);
            }
        }
    }
});

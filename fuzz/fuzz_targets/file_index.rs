//! Property: an index of any files, built, appended to and compacted, answers every lookup as sets
//! of the values' bits do, in memory and by ranges; damaged bytes are an error, damaged ranges rule
//! nothing out, and manifests whose checksums fit are an error or answer without a panic.
#![no_main]

use std::collections::BTreeSet;

use arbitrary::Arbitrary;
use blocked_bloom::{KeyHash, KeyHasher};
use blocked_bloom_file_index::{
    Column, FileIdentity, FileIndex, FileIndexBuilder, FileIndexOptions, Manifest, Pruned, SameFile,
};
use blocked_bloom_planes::Shape;
use libfuzzer_sys::fuzz_target;

const KEY_HASH: KeyHash = KeyHash::Caller { tag: 5 };

#[derive(Arbitrary, Debug)]
struct File {
    name: u8,
    length: u64,
    etag: Option<u8>,
    version: Option<u8>,
    modified: Option<i64>,
    type_choice: u8,
    /// Of each row group some values, and how often they are mixed into others.
    row_groups: Vec<Option<(Vec<u64>, u8)>>,
    announced: Option<u8>,
}

#[derive(Arbitrary, Debug)]
struct Input {
    part_values: u8,
    rate: u8,
    tag: u64,
    files: Vec<File>,
    /// Of the files, how many are there before others are appended.
    cuts: [u8; 2],
    kept: u8,
    lookups: Vec<(Vec<u8>, Vec<u64>, u8)>,
    damage: Vec<(u32, u8)>,
    manifest: Vec<(u32, u8)>,
}

/// A file as it must be known: its row groups, of which the values are sets, or not known.
struct Known<'i> {
    file: &'i File,
    name: String,
    texts: [String; 2],
    row_groups: Vec<Option<BTreeSet<u64>>>,
}

impl<'i> Known<'i> {
    fn new(file: &'i File) -> Self {
        let expand = |(values, times): &(Vec<u64>, u8)| {
            let mixed = |&value: &u64| {
                let times = 1 + u64::from(*times) % 40;
                (0..times).map(move |i| value.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            };
            values.iter().take(20).flat_map(mixed).collect()
        };
        let groups = file.row_groups.iter().take(6);
        Known {
            file,
            name: format!("file {}", file.name % 8),
            texts: [file.etag, file.version].map(|text| format!("{text:?}")),
            row_groups: groups.map(|group| group.as_ref().map(expand)).collect(),
        }
    }

    fn identity(&self) -> FileIdentity<'_> {
        let mut identity = FileIdentity::new(&self.name, self.file.length);
        if self.file.etag.is_some() {
            identity = identity.with_etag(&self.texts[0]);
        }
        if self.file.version.is_some() {
            identity = identity.with_version(&self.texts[1]);
        }
        match self.file.modified {
            Some(modified) => identity.with_modified(modified),
            None => identity,
        }
    }

    fn type_name(&self) -> Option<&'static str> {
        [None, Some("Utf8"), Some("Int64"), Some("")][usize::from(self.file.type_choice) % 4]
    }

    fn announced(&self) -> u32 {
        self.file.announced.map_or(self.row_groups.len() as u32, u32::from)
    }

    fn is_complete(&self) -> bool {
        self.announced() as usize == self.row_groups.len()
    }
}

fn add(builder: &mut FileIndexBuilder, files: &[Known<'_>], stored: &mut Vec<u8>) {
    for file in files {
        let mut adding =
            builder.file(file.identity(), &[file.type_name()], file.announced()).unwrap();
        for row_group in &file.row_groups {
            match row_group {
                Some(values) => {
                    let values: Vec<u64> = values.iter().copied().collect();
                    adding.insert_hashes(0, &values).unwrap();
                    adding.insert_hashes(0, &values[values.len() / 2..]).unwrap();
                }
                None => adding.set_unknown(0).unwrap(),
            }
            stored.extend(adding.end_row_group().unwrap());
        }
        assert_eq!(adding.end().is_ok(), file.is_complete());
    }
}

/// The planes of a hash, by the definition.
fn planes(shape: Shape, hash: u64) -> BTreeSet<u128> {
    let (n, m) = (u128::from(shape.blocks()), u128::from(shape.block_bits()));
    let block = ((u128::from(hash) % (1 << 32)) * n) >> 32;
    let mut product = u128::from(hash) >> 32;
    let mut planes = BTreeSet::new();
    for _ in 0..shape.probes() {
        planes.insert(block * m + ((product * m) >> 32));
        product = product * 0x9e37_79b9 % (1 << 32);
    }
    planes
}

fn part(hash: u64, parts: u128) -> u128 {
    let mixed = u128::from(hash ^ (hash >> 29)) * 0xd6e8_feb8_6659_fd93 % (1 << 64);
    ((mixed >> 32) * parts) >> 32
}

fn may_contain(shape: Shape, part_values: u32, values: &BTreeSet<u64>, wanted: &[u64]) -> bool {
    let parts = (values.len() as u128).div_ceil(part_values.into());
    parts > 0
        && wanted.iter().any(|&hash| {
            let same = values.iter().filter(|&&value| part(value, parts) == part(hash, parts));
            let there: BTreeSet<u128> = same.flat_map(|&value| planes(shape, value)).collect();
            planes(shape, hash).is_subset(&there)
        })
}

fn check(stored: &[u8], files: &[&Known<'_>], input: &Input) {
    let index = FileIndex::from_bytes(stored).unwrap();
    let manifest = Manifest::from_tail(stored, stored.len() as u64).unwrap();
    assert!(manifest.files().map(|f| f.identity()).eq(files.iter().map(|f| f.identity())));
    let (shape, part_values) = manifest.shape(0).unwrap();
    let values: Vec<u64> =
        files.iter().flat_map(|f| f.row_groups.iter().flatten().flatten()).copied().collect();
    for (known, others, own) in input.lookups.iter().take(5) {
        let picked = known.iter().filter_map(|&i| values.get(usize::from(i) * 3));
        let wanted: Vec<u64> = picked.chain(others).take(8).copied().collect();
        let other_type = ["", "Utf8", "Int64", "?"][usize::from(*own) % 4];
        let is_type = |own: &str| own != other_type;
        let lookups = [manifest.lookup(0, KEY_HASH, is_type, &wanted[..]).unwrap()];
        let in_memory = index.candidates(&lookups[0]).unwrap();
        let located = manifest.locate(&lookups).unwrap();
        let load = |range: &std::ops::Range<u64>| {
            stored[range.start as usize..range.end as usize].to_vec()
        };
        let mut loaded: Vec<Vec<u8>> = located.ranges().iter().map(load).collect();
        let by_ranges = manifest.candidates(&located, &loaded).unwrap().remove(0);
        for (i, &(at, change)) in input.damage.iter().enumerate() {
            if let Some(piece) = loaded.get_mut(i) {
                let at = at as usize % piece.len();
                piece[at] ^= change;
            }
        }
        let damaged = manifest.candidates(&located, &loaded).unwrap().remove(0);
        for (entry, file) in manifest.files().zip(files) {
            let is_unknown = file.type_name().is_none_or(|own| own == other_type);
            let expected = file.row_groups.iter().map(|values| {
                is_unknown
                    || values
                        .as_ref()
                        .is_none_or(|values| may_contain(shape, part_values, values, &wanted))
            });
            let expected: Vec<bool> = expected.collect();
            assert!(entry.candidates(&in_memory).iter().eq(expected.iter().copied()));
            assert!(entry.candidates(&by_ranges).iter().eq(expected.iter().copied()));
            let damaged = entry.candidates(&damaged);
            assert!(damaged.iter().zip(&expected).all(|(found, expected)| found || !expected));
            // Of several files that cannot be told apart either may be meant.
            match manifest.prune(&in_memory, &file.identity()) {
                Pruned::Unknown(_) => assert!(file.file.etag.or(file.file.version).is_none()),
                Pruned::Empty => {
                    let alike = files.iter().filter(|other| other.name == file.name);
                    assert!(!expected.contains(&true) || alike.count() > 1);
                }
                Pruned::RowGroups(left) => assert!(left.count_hits() > 0),
                other => panic!("{other:?}"),
            }
        }
    }
}

fuzz_target!(|input: Input| {
    let files: Vec<Known<'_>> = input.files.iter().take(12).map(Known::new).collect();
    let options = FileIndexOptions::new(vec![Column::new("c", KEY_HASH)], input.tag)
        .with_part_values(16 + u32::from(input.part_values) % 32)
        .with_false_row_groups(1.0 + f64::from(input.rate), 257);
    let [one, two] = input.cuts.map(|cut| usize::from(cut) % (files.len() + 1));
    let (one, two) = (one.min(two), one.max(two));
    let mut builder = options.builder().unwrap();
    let mut stored = Vec::new();
    add(&mut builder, &files[..one], &mut stored);
    stored.extend(builder.finish().unwrap());
    for more in [&files[one..two], &files[two..]] {
        let manifest = Manifest::from_tail(&stored, stored.len() as u64).unwrap();
        let mut builder = manifest.appender(input.tag.wrapping_add(more.len() as u64));
        stored.truncate(builder.kept_bytes() as usize);
        add(&mut builder, more, &mut stored);
        stored.extend(builder.finish().unwrap());
    }
    let complete: Vec<&Known<'_>> = files.iter().filter(|file| file.is_complete()).collect();
    check(&stored, &complete, &input);
    let index = FileIndex::from_bytes(&stored[..]).unwrap();
    let is_kept = |file: FileIdentity<'_>| file.length() % 8 != u64::from(input.kept % 8);
    let compacted = index.compact(!input.tag, |file| is_kept(file.identity())).unwrap();
    let kept: Vec<&Known<'_>> =
        complete.iter().copied().filter(|file| is_kept(file.identity())).collect();
    check(&compacted, &kept, &input);
    assert!(index.manifest().expected_false_row_groups(0) <= index.manifest().row_groups() as f64);

    let mut damaged = stored.clone();
    for &(at, change) in &input.damage {
        let at = at as usize % damaged.len();
        damaged[at] ^= change;
    }
    assert!(damaged == stored || FileIndex::from_bytes(&damaged).is_err());
    let mut mended = stored.clone();
    let end = mended.len() - 64;
    let start = Manifest::locate_tail(&stored, stored.len() as u64).unwrap().start as usize;
    for &(at, value) in &input.manifest {
        mended[start + at as usize % (end - start)] = value;
    }
    let sum = KeyHasher::default().hash(&mended[start..end]);
    mended[end + 32..end + 40].copy_from_slice(&sum.to_le_bytes());
    let sum = KeyHasher::default().hash(&mended[end..end + 56]);
    mended[end + 56..].copy_from_slice(&sum.to_le_bytes());
    if let Ok(index) = FileIndex::from_bytes(&mended[..]) {
        let index = index.with_same_file(SameFile::Name);
        let manifest = index.manifest();
        for key_hash in [KEY_HASH, KeyHash::default()] {
            if let Ok(lookup) = manifest.lookup(0, key_hash, |_| true, &[1, input.tag][..]) {
                let found = index.candidates(&lookup).unwrap();
                manifest.files().for_each(|file| _ = manifest.prune(&found, &file.identity()));
            }
        }
        index.compact(1, |_| true).unwrap();
    }
});

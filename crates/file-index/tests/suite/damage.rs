//! Damaged indexes are errors, and damaged ranges never rule a row group out that has what is
//! looked up.

use blocked_bloom::{KeyHash, KeyHasher};
use blocked_bloom_file_index::{FileIdentity, FileIndex, FileIndexOptions, Manifest};

use crate::naive::{File, Random, build, columns, files, load};

const KEY_HASH: KeyHash = KeyHash::Xxh3 { seed: 0 };

struct Case {
    files: Vec<File>,
    stored: Vec<u8>,
    /// One of the values of each row group, with the numbers of file and row group.
    values: Vec<(usize, usize, u64)>,
}

impl Case {
    fn new(tag: u64, seed: u64) -> Self {
        let files = files(12, 1, 200, &mut Random(seed));
        let files: Vec<File> = files.into_iter().filter(|file| file.is_complete).collect();
        let options = FileIndexOptions::new(columns(1), tag)
            .with_part_values(16)
            .with_false_row_groups(1.0, 10);
        let stored = build(&options, &files);
        let mut values = Vec::new();
        for (number, file) in files.iter().enumerate() {
            for (group, hashes) in file.row_groups.iter().enumerate() {
                let hashes = hashes[0].as_deref().unwrap_or_default();
                values.extend(hashes.iter().step_by(7).map(|&hash| (number, group, hash)));
            }
        }
        assert!(values.len() > 20 && stored.len() < 20_000, "{} bytes", stored.len());
        Case { files, stored, values }
    }

    /// Whether some value would not be found in its row group by this index.
    fn loses(&self, index: &FileIndex<&[u8]>) -> bool {
        self.values.iter().any(|&(file, group, hash)| {
            let manifest = index.manifest();
            let Ok(lookup) = manifest.lookup(0, KEY_HASH, |_| true, [hash]) else { return false };
            let found = index.candidates(&lookup).unwrap();
            let listed = self.files[file].identity();
            let known = manifest.file(&listed);
            known.is_ok_and(|known| known.candidates(&found).get(group) != Some(true))
        })
    }

    /// Every copy must be refused.
    #[expect(clippy::print_stdout, reason = "figures to be quoted")]
    fn refuses(&self, damage: &str, copies: impl Iterator<Item = Vec<u8>>) {
        let mut refused = 0;
        for copy in copies.filter(|copy| *copy != self.stored) {
            let opened = FileIndex::from_bytes(&copy[..]);
            assert!(opened.is_err(), "{damage}, lost: {}", self.loses(&opened.unwrap()));
            refused += 1;
        }
        assert!(refused > 0);
        println!("| {damage} | {refused} | {refused} refused |");
    }
}

#[test]
fn every_change_is_an_error() {
    let case = Case::new(1, 1);
    let stored = &case.stored;
    assert!(!case.loses(&FileIndex::from_bytes(&stored[..]).unwrap()));
    let truncated = (0..stored.len()).map(|length| stored[..length].to_vec());
    case.refuses("truncated at every byte", truncated);
    let cut = (1..stored.len()).map(|start| stored[start..].to_vec());
    case.refuses("without its first bytes", cut);
    let extended = (1..200).map(|more| [&stored[..], &vec![0; more]].concat());
    case.refuses("extended", extended);
    let flipped = (0..8 * stored.len()).step_by(3).map(|bit| {
        let mut copy = stored.clone();
        copy[bit / 8] ^= 1 << (bit % 8);
        copy
    });
    case.refuses("a bit flipped", flipped);
    let mut random = Random(1);
    let mutated = (0..5_000).map(|_| {
        let mut copy = stored.clone();
        for _ in 0..=random.next_below(4) {
            let at = random.next_below(copy.len());
            let length = (1 + random.next_below(16)).min(copy.len() - at);
            let from = random.next_below(copy.len() - length + 1);
            match random.next_below(3) {
                0 => copy[at..at + length].fill(0),
                1 => copy.copy_within(from..from + length, at),
                _ => copy[at] ^= 1 << random.next_below(8),
            }
        }
        copy
    });
    case.refuses("several bytes at random", mutated);
    // Another index of the same files, or of others, with a tag of its own.
    for seed in [1, 2] {
        let other = Case::new(2, seed).stored;
        let most = stored.len().min(other.len());
        let spliced = (1..most).map(|at| [&stored[..at], &other[at..]].concat());
        case.refuses("spliced", spliced.filter(|copy| *copy != other));
        let spliced =
            (1..most).map(|at| [&other[..other.len() - at], &stored[stored.len() - at..]].concat());
        case.refuses("spliced at the end", spliced.filter(|copy| *copy != other));
    }
}

/// By ranges: every bit of every piece flipped, pieces that are missing, too short or too long, and
/// those of an index that replaced this one.
#[test]
fn damaged_ranges_rule_nothing_out() {
    let case = Case::new(1, 1);
    let length = case.stored.len() as u64;
    let manifest = Manifest::from_tail(&case.stored, length).unwrap();
    let replaced = Case::new(2, 1).stored;
    assert_eq!(replaced.len(), case.stored.len());
    let (mut pieces, mut bits) = (0, 0);
    for &(file, group, hash) in &case.values {
        let lookups = [manifest.lookup(0, KEY_HASH, |_| true, [hash]).unwrap()];
        let located = manifest.locate(&lookups).unwrap();
        let loaded = load(&case.stored, located.ranges());
        let check = |loaded: &[Vec<u8>]| {
            let found = manifest.candidates(&located, loaded).unwrap().remove(0);
            let file = manifest.file(&case.files[file].identity()).unwrap();
            assert_eq!(file.candidates(&found).get(group), Some(true));
            found.damage().is_some()
        };
        assert!(!check(&loaded));
        for piece in 0..loaded.len() {
            let damaged = |damage: &dyn Fn(&mut Vec<u8>)| {
                let mut loaded = loaded.clone();
                damage(&mut loaded[piece]);
                loaded
            };
            assert!(check(&damaged(&|bytes| bytes.clear())));
            assert!(check(&damaged(&|bytes| _ = bytes.pop())));
            assert!(check(&damaged(&|bytes| bytes.push(0))));
            let range = &located.ranges()[piece];
            let other = &replaced[range.start as usize..range.end as usize];
            assert!(check(&damaged(&|bytes| bytes.copy_from_slice(other))));
            for bit in 0..8 * loaded[piece].len() {
                assert!(check(&damaged(&|bytes| bytes[bit / 8] ^= 1 << (bit % 8))));
                bits += 1;
            }
            pieces += 1;
        }
        if loaded.len() > 1 {
            let mut loaded = loaded.clone();
            loaded.swap(0, 1);
            assert!(check(&loaded));
        }
    }
    assert!(pieces > 100 && bits > 10_000, "{pieces} pieces, {bits} bits");
}

/// Manifests and records whose checksums were mended: an error, or an index that answers without a
/// panic.
#[test]
fn mended_manifests_never_panic() {
    let case = Case::new(1, 1);
    let end = case.stored.len() - 64;
    let offset = Manifest::locate_tail(&case.stored, case.stored.len() as u64).unwrap().start;
    let offset = offset as usize;
    let (mut opened, mut refused) = (0, 0);
    let mut check = |mut copy: Vec<u8>| {
        let end = copy.len() - 64;
        let sum = KeyHasher::default().hash(&copy[offset..end]);
        copy[end + 24..end + 32].copy_from_slice(&((end - offset) as u64).to_le_bytes());
        copy[end + 32..end + 40].copy_from_slice(&sum.to_le_bytes());
        let sum = KeyHasher::default().hash(&copy[end..end + 56]);
        copy[end + 56..].copy_from_slice(&sum.to_le_bytes());
        match FileIndex::from_bytes(&copy[..]) {
            Ok(index) => {
                case.loses(&index);
                index.compact(3, |_| true).unwrap();
                let manifest = index.manifest();
                assert!(manifest.expected_false_row_groups(0) >= 0.0);
                assert_eq!(
                    manifest.files().map(|f| f.values(0).count()).sum::<usize>() as u64,
                    manifest.row_groups()
                );
                opened += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    };
    for at in offset..end {
        for value in [0, 1, 2, 0x7f, 0x80, 0xff, case.stored[at] ^ 1, case.stored[at] ^ 0x80] {
            let mut copy = case.stored.clone();
            copy[at] = value;
            check(copy);
        }
        let mut copy = case.stored.clone();
        copy.remove(at);
        check(copy);
        let mut copy = case.stored.clone();
        copy.insert(at, 1);
        check(copy);
    }
    assert!(opened > 100 && refused > 1_000, "{opened} opened, {refused} refused");
}

/// Numbers at their limits, in manifests of nothing but those: typed errors, at once.
#[test]
fn numbers_past_every_limit_are_errors() {
    let number = |mut number: u64| {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    };
    let empty = build(&FileIndexOptions::new(columns(1), 1), &[]);
    let wrap = |manifest: &[u8]| {
        let mut stored = empty[..64].to_vec();
        stored.extend(manifest);
        let mut trailer = empty[empty.len() - 64..].to_vec();
        trailer[24..32].copy_from_slice(&(manifest.len() as u64).to_le_bytes());
        trailer[32..40].copy_from_slice(&KeyHasher::default().hash(manifest).to_le_bytes());
        let sum = KeyHasher::default().hash(&trailer[..56]);
        trailer[56..].copy_from_slice(&sum.to_le_bytes());
        stored.extend(trailer);
        stored
    };
    let good = &empty[64..empty.len() - 64];
    assert!(wrap(good) == empty);
    // The manifest ends with two numbers, for no chunks and no files. `head` keeps the first.
    let head = &good[..good.len() - 1];
    for most in [1, 1 << 22, 1 << 32, 1 << 40, u64::MAX] {
        let file = [&[1, b'a', 0, 0][..], &number(most)].concat();
        for tail in [
            number(most),
            [number(1), number(most)].concat(),
            [number(1), file.clone()].concat(),
            [number(1), file.clone(), number(1)].concat(),
            [number(2), file.clone(), number(0), file, number(0)].concat(),
            [number(1), vec![1, b'a'], number(most)].concat(),
            [vec![0x80; 10], vec![1]].concat(),
            vec![0x80, 0],
            vec![],
        ] {
            let stored = wrap(&[head, &tail].concat());
            if let Ok(index) = FileIndex::from_bytes(&stored) {
                assert!(index.manifest().row_groups() <= 1 << 22);
            }
        }
        for columns in [number(most), [number(1), number(most)].concat()] {
            assert!(most == 1 || FileIndex::from_bytes(wrap(&columns)).is_err());
        }
    }
}

/// A tail that is too short says how much is needed.
#[test]
fn tails_of_any_length_are_opened_or_refused() {
    let case = Case::new(1, 3);
    let length = case.stored.len() as u64;
    let needed = Manifest::locate_tail(&case.stored, length).unwrap();
    for start in 0..case.stored.len() {
        let tail = &case.stored[start..];
        let opened = Manifest::from_tail(tail, length);
        assert_eq!(opened.is_ok(), start as u64 <= needed.start, "{start}");
        if tail.len() >= 64 {
            assert_eq!(Manifest::locate_tail(tail, length).unwrap(), needed);
            assert!(Manifest::locate_tail(tail, length + 1).is_err());
        }
    }
}

/// The bytes of an index that change under it: shorter, longer, and as long ones of another index.
#[test]
fn an_owner_that_lends_other_bytes_is_damage() {
    let case = Case::new(1, 1);
    let stored = &case.stored;
    let other = Case::new(2, 1).stored;
    assert_eq!(other.len(), stored.len());
    for later in [stored[1..].to_vec(), [&stored[..], &[0]].concat(), other] {
        let index = FileIndex::from_bytes(ChangingOwner([stored.clone(), later])).unwrap();
        let lookup = index.manifest().lookup(0, KEY_HASH, |_| true, [1]).unwrap();
        assert!(index.candidates(&lookup).unwrap().damage().is_none());
        CHANGED.set(true);
        let found = index.candidates(&lookup).unwrap();
        let compacted = index.compact(3, |_| true);
        CHANGED.set(false);
        assert!(found.damage().is_some() && compacted.is_err());
        let file = case.files.iter().find(|file| !file.row_groups.is_empty()).unwrap();
        let listed: FileIdentity<'_> = file.identity();
        let file = index.manifest().file(&listed).unwrap();
        for (values, is_candidate) in file.values(0).zip(file.candidates(&found).iter()) {
            assert_eq!(is_candidate, values != Some(0));
        }
    }
}

std::thread_local! {
    static CHANGED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Lends the second bytes once [`CHANGED`] is set.
struct ChangingOwner([Vec<u8>; 2]);

impl AsRef<[u8]> for ChangingOwner {
    fn as_ref(&self) -> &[u8] {
        &self.0[usize::from(CHANGED.get())]
    }
}

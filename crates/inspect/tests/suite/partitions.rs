//! The index of a partitioned filter together with its partitions.

use std::ops::Range;

use blocked_bloom::{FilterOptions, KeyHash, PrefixExtractor, Sizing};
use blocked_bloom_inspect::{Error, LookupOptions, Opened, Prefix};
use blocked_bloom_lsm::{PartitionIndex, PartitionedFilterBuilder};

use crate::stored::{KEYS, key};

fn options() -> FilterOptions {
    FilterOptions::new(Sizing::BitsPerKey(12.0))
}

/// Returns the index and the partitions for keys with these numbers.
fn build(options: &FilterOptions, keys: Range<u32>) -> (Vec<u8>, Vec<u8>) {
    let mut builder = PartitionedFilterBuilder::new(options.clone(), 512).unwrap();
    let mut file = Vec::new();
    for i in keys {
        if let Some(partition) = builder.insert(key(i)).unwrap() {
            partition.write_to(&mut file).unwrap();
        }
    }
    let (last, index) = builder.finish().unwrap();
    last.write_to(&mut file).unwrap();
    (index, file)
}

fn contains(opened: &Opened<'_>, keys: Range<u32>) -> Vec<bool> {
    let keys: Vec<Vec<u8>> = keys.map(key).collect();
    opened.lookup(&LookupOptions::default()).unwrap().contains(&keys).unwrap()
}

fn warnings(opened: &Opened<'_>) -> Vec<(bool, String)> {
    let lookup = opened.lookup(&LookupOptions::default()).unwrap();
    let texts = lookup.warnings().iter();
    texts.map(|warning| (warning.is_pass_all(), warning.to_string())).collect()
}

#[test]
fn keys_are_looked_up_in_their_partition() {
    let (index, file) = build(&options(), 0..KEYS);
    let opened = Opened::partitioned("f.index", &index, &file).unwrap();
    assert!(contains(&opened, 0..KEYS).iter().all(|&hit| hit));
    let passed = contains(&opened, KEYS..3 * KEYS).iter().filter(|&&hit| hit).count();
    assert!(passed < 2 * KEYS as usize / 50, "{passed}");
    assert_eq!(warnings(&opened), []);

    let parts = opened.parts();
    assert!(parts > 5);
    assert_eq!(parts, PartitionIndex::from_bytes_any_hash(&index).unwrap().partitions());
    let mut keys_in = vec![0; parts];
    for i in 0..KEYS {
        let probes = opened.probes(&key(i), &LookupOptions::default()).unwrap();
        assert!(probes.len() == 1 && probes[0].is_hit());
        keys_in[probes[0].part] += 1;
    }
    assert!(keys_in.iter().all(|&keys| keys > 0), "{keys_in:?}");
    assert!((0..parts).all(|part| opened.block_loads(part).is_some()));
    assert!(opened.block_loads(parts).is_none());

    let facts = opened.describe();
    let rate = format!("{}", facts.json().get("estimated_false_positive_rate").unwrap());
    let rate: f64 = rate.parse().unwrap();
    assert!((0.001..0.01).contains(&rate), "{rate}");
    assert!(facts.damage.is_none());
    assert!(facts.rows.contains(&("checksums", "ok, those of the partitions too".to_owned())));
}

/// Keys of a damaged partition are "maybe"; the other partitions still rule keys out.
#[test]
fn a_damaged_partition_answers_maybe() {
    let (index, mut file) = build(&options(), 0..KEYS);
    let at = PartitionIndex::from_bytes_any_hash(&index[..]).unwrap().location(3).unwrap();
    file[at.offset as usize + 100] ^= 1;
    let opened = Opened::partitioned("f.index", &index, &file).unwrap();
    assert!(contains(&opened, 0..KEYS).iter().all(|&hit| hit));
    // Absent keys within the range of each partition.
    let absent: Vec<Vec<u8>> = (0..KEYS).map(|i| [&key(i)[..], b"?"].concat()).collect();
    let hits = opened.lookup(&LookupOptions::default()).unwrap().contains(&absent).unwrap();
    let of = PartitionIndex::from_bytes_any_hash(&index[..]).unwrap();
    let (mut there, mut elsewhere) = (0, 0);
    for (key, hit) in absent.iter().zip(hits) {
        match of.locate(key).partition {
            3 => assert!(hit),
            _ if hit => elsewhere += 1,
            _ => there += 1,
        }
    }
    assert!(elsewhere < KEYS / 50 && there > KEYS / 2, "{elsewhere} and {there}");

    let [(false, text)] = &warnings(&opened)[..] else { panic!("{:?}", warnings(&opened)) };
    let begin =
        format!("1 of {} partitions cannot be used (partition 3: offset 48: ", opened.parts());
    assert!(text.starts_with(&begin), "{text}");
    assert!(text.ends_with("): their answer is \"maybe\" for every key"), "{text}");
    let facts = opened.describe();
    let Some(Error::Damaged { format: "partition-index", damage }) = &facts.damage else {
        panic!("{:?}", facts.damage)
    };
    assert!(damage.to_string().starts_with(&begin), "{damage}");
    assert!(
        facts
            .rows
            .iter()
            .any(|(name, value)| *name == "checksums" && value.starts_with("DAMAGED: 1 of "))
    );
    assert_eq!(facts.json().get("checksums_ok"), Some(&false.into()));
    assert!(opened.block_loads(2).is_some() && opened.block_loads(3).is_none());
}

/// Lookups cannot find keys in partitions with another seed or in another order, so these are not
/// looked up.
#[test]
fn partitions_of_another_table_answer_maybe() {
    let (index, file) = build(&options(), 0..KEYS);
    let seeded = options().with_key_hash(KeyHash::Xxh3 { seed: 7 });
    let (_, other) = build(&seeded, 0..KEYS);
    assert_eq!(other.len(), file.len());
    let opened = Opened::partitioned("f.index", &index, &other).unwrap();
    assert!(contains(&opened, 0..3 * KEYS).iter().all(|&hit| hit));
    let [(true, text)] = &warnings(&opened)[..] else { panic!("{:?}", warnings(&opened)) };
    assert!(text.contains("built with XXH3-64 with seed 7, expected"), "{text}");

    let mut swapped = file.clone();
    let of = PartitionIndex::from_bytes_any_hash(&index[..]).unwrap();
    let [one, two] = [1, 2].map(|partition| of.location(partition).unwrap());
    assert_eq!(one.length, two.length);
    let length = one.length as usize;
    let (before, after) = swapped.split_at_mut(two.offset as usize);
    before[one.offset as usize..].swap_with_slice(&mut after[..length]);
    let opened = Opened::partitioned("f.index", &index, &swapped).unwrap();
    assert!(contains(&opened, 0..KEYS).iter().all(|&hit| hit));
    assert!(warnings(&opened)[0].1.starts_with("2 of "), "{:?}", warnings(&opened));
}

#[test]
fn rejects_other_bytes() {
    let (index, file) = build(&options(), 0..KEYS);
    for other in [&file[..file.len() - 64], &[&file[..], &[0; 64]].concat(), &[], &index] {
        let error = Opened::partitioned("f.index", &index, other).unwrap_err();
        let Error::Damaged { format: "partition-index", damage } = error else { panic!("{error}") };
        let text = format!("{} bytes in all, expected {}: ", other.len(), file.len());
        assert!(damage.to_string().contains(&text), "{damage}");
    }
    for at in 0..index.len() {
        let mut damaged = index.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(Opened::partitioned("f.index", &damaged, &file).is_err(), "byte {at}");
    }
    assert!(Opened::partitioned("f.index", &file, &file).is_err());
}

#[test]
fn prefixes_are_looked_up_where_a_scan_would_start() {
    let rule = PrefixExtractor::fixed(8);
    let (index, file) = build(&options().with_prefixes(rule.clone()), 0..KEYS);
    let opened = Opened::partitioned("f.index", &index, &file).unwrap();
    let mut options = LookupOptions::default();
    options.prefix = Some(Prefix::Rule(rule));
    let lookup = opened.lookup(&options).unwrap();
    // "key 0000" to "key 0019" are present.
    let starts: Vec<String> = (0..100).map(|i| format!("key {i:04}")).collect();
    let hits = lookup.contains(&starts).unwrap();
    assert!(hits[..20].iter().all(|&hit| hit));
    assert!(hits[20..].iter().filter(|&&hit| hit).count() < 10, "{hits:?}");

    options.prefix = Some(Prefix::Rule(PrefixExtractor::fixed(5)));
    let lookup = opened.lookup(&options).unwrap();
    assert!(lookup.warnings()[0].is_pass_all(), "{:?}", lookup.warnings());
    assert!(lookup.contains(&starts).unwrap().iter().all(|&hit| hit));
    options.prefix = Some(Prefix::FromFile);
    assert!(matches!(opened.lookup(&options), Err(Error::Options(_))));
}

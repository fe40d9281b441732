//! Data for drawing: how full blocks are, and where the bits of a key are.

use blocked_bloom::FilterOptions;
use blocked_bloom_formats::parquet::Value;
use blocked_bloom_inspect::{BlockLoads, FileRanges, Format, LookupOptions, Opened, PhysicalType};
use blocked_bloom_scalable::ScalableBloomFilter;
use blocked_bloom_split::SplitBlockFilter;

use crate::stored::{KEYS, all_filters, encoded, key};

fn loads(format: Format, bytes: &[u8]) -> BlockLoads {
    let opened = Opened::new("f", &FileRanges::from(bytes), format, None).unwrap();
    assert_eq!((opened.parts(), opened.block_loads(1)), (1, None));
    opened.block_loads(0).unwrap()
}

/// Returns the largest difference between the two cumulative distributions (Kolmogorov).
fn distance(loads: &BlockLoads) -> f64 {
    let (mut sum, mut largest) = (0.0, 0.0_f64);
    for (found, expected) in loads.histogram.iter().zip(&loads.expected) {
        sum += *found as f64 - expected;
        largest = largest.max(sum.abs());
    }
    largest / loads.blocks as f64
}

fn native(hashes: impl Iterator<Item = u64>, count: u64) -> Vec<u8> {
    let mut filter = FilterOptions::default().empty_filter(count).unwrap();
    hashes.for_each(|hash| _ = filter.insert_hash(hash));
    filter.to_bytes()
}

fn mixed(i: u64) -> u64 {
    let i = (i ^ i >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let i = (i ^ i >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    i ^ i >> 31
}

#[test]
fn even_hashes_fill_blocks_as_expected() {
    const COUNT: u64 = 400_000;
    let loads_of_bloom = loads(Format::NATIVE, &native((1..=COUNT).map(mixed), COUNT));
    let mut split = SplitBlockFilter::with_blocks(1 << 14).unwrap();
    (1..=COUNT).for_each(|i| _ = split.insert_hash(mixed(i)));
    let loads_of_split = loads(Format::PARQUET_FILTER, &split.to_bytes());
    assert_eq!((loads_of_bloom.block_bits, loads_of_bloom.probes), (512, 6));
    assert_eq!((loads_of_split.block_bits, loads_of_split.probes), (256, 8));
    for loads in [loads_of_bloom, loads_of_split] {
        assert_eq!(loads.histogram.len(), loads.block_bits as usize + 1);
        assert_eq!(loads.histogram.iter().sum::<u64>(), loads.blocks);
        let expected: f64 = loads.expected.iter().sum();
        assert!((expected / loads.blocks as f64 - 1.0).abs() < 1e-9, "{expected}");
        // The expected mean equals the actual mean, from which it is computed.
        let bits = (0..).zip(&loads.expected).map(|(bits, n)| f64::from(bits) * n).sum::<f64>();
        let fill = bits / (f64::from(loads.block_bits) * loads.blocks as f64);
        assert!((fill / loads.fill_ratio - 1.0).abs() < 1e-3, "{fill}, {}", loads.fill_ratio);
        // Only one in a thousand samples of this many blocks differs by more than 1.95 / sqrt(n).
        let most = 1.95 / (loads.blocks as f64).sqrt();
        assert!(distance(&loads) < most, "{} {most}", distance(&loads));
    }
}

#[test]
fn hashes_that_crowd_show() {
    const COUNT: u64 = 100_000;
    // Half of the keys in a quarter of the blocks.
    let crowd = |i: u64| if i.is_multiple_of(2) { mixed(i) & !0xc000_0000 } else { mixed(i) };
    let loads = loads(Format::NATIVE, &native((1..=COUNT).map(crowd), COUNT));
    assert!(distance(&loads) > 0.1, "{}", distance(&loads));
}

#[test]
fn one_block_and_full_ones() {
    let loads_of_one = loads(Format::NATIVE, &native((1..=20).map(mixed), 20));
    assert_eq!(loads_of_one.blocks, 1);
    assert!((loads_of_one.expected.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    let mut filter = FilterOptions::default().empty_filter(20).unwrap();
    (1..100_000).for_each(|i| _ = filter.insert_hash(mixed(i)));
    let full = loads(Format::NATIVE, &filter.to_bytes());
    assert_eq!((full.fill_ratio, full.expected.len()), (1.0, 0));
    assert_eq!(full.histogram[512], 1);
    let empty = loads(Format::NATIVE, &native(0..0, 1_000));
    assert_eq!((empty.histogram[0], empty.expected[0]), (empty.blocks, empty.blocks as f64));
}

/// A key may be present if and only if all of its bits are set: in each filter that is looked up
/// for it, or in one of several.
#[test]
fn probes_say_what_lookups_answer() {
    let (mut probed, mut hits) = (0, 0);
    for stored in &all_filters() {
        let opened = stored.open().unwrap();
        for (options, answers) in &stored.lookups {
            let others = (0..40).map(|i| key(KEYS + i)).filter(|_| options.column.is_none());
            // Keys of all partitions.
            let keys = answers.iter().map(|(key, _)| key.clone());
            let keys = keys.step_by(answers.len().div_ceil(60).max(1));
            for key in keys.chain(others) {
                let lookup = opened.lookup(options).unwrap();
                let Ok(answer) = lookup.contains(&[&key]) else { continue };
                let probes = opened.probes(&key, options).unwrap();
                for probe in &probes {
                    let loads = opened.block_loads(probe.part).unwrap();
                    assert!(probe.block < loads.blocks);
                    assert_eq!(probe.bytes.len() as u32 * 8, loads.block_bits);
                    assert_eq!(probe.bits.len() as u32, loads.probes);
                    for &(bit, is_set) in &probe.bits {
                        assert_eq!(probe.bytes[bit as usize / 8] >> (bit % 8) & 1 == 1, is_set);
                    }
                }
                if !probes.is_empty() {
                    let is_hit = probes.iter().any(blocked_bloom_inspect::Probe::is_hit);
                    assert_eq!(is_hit, answer[0], "{}: {key:?}", stored.name);
                    (probed, hits) = (probed + 1, hits + usize::from(is_hit));
                }
            }
        }
    }
    assert!(probed > 3_000 && hits > 1_000 && hits < probed - 500, "{hits} of {probed}");
}

#[test]
fn the_bits_of_a_split_block_are_counted_through_its_words() {
    let mut filter = SplitBlockFilter::with_blocks(8).unwrap();
    filter.insert_hash(Value::Int64(7).hash());
    let bytes = filter.to_bytes();
    let opened = Opened::new("f", &FileRanges::from(&bytes[..]), Format::PARQUET_FILTER, None);
    let opened = opened.unwrap();
    let mut options = LookupOptions::default();
    options.value_type = Some(PhysicalType::Int64);
    let probes = opened.probes(b"7", &options).unwrap();
    let words: Vec<u32> = probes[0].bits.iter().map(|(bit, _)| bit / 32).collect();
    assert_eq!(words, (0..8).collect::<Vec<_>>());
    assert!(probes[0].is_hit());
    assert!(opened.probes(b"seven", &options).is_err());
    assert!(opened.probes(b"7", &encoded()).is_err());
}

/// Each link of a growing filter is a separate part, with its own blocks and answers.
#[test]
fn parts_of_a_growing_filter_are_its_links() {
    let stored = all_filters().into_iter().find(|stored| stored.format == Format::GROWING).unwrap();
    let chain = ScalableBloomFilter::from_bytes_any_hash(&stored.bytes[..]).unwrap();
    let opened = stored.open().unwrap();
    let links = chain.links();
    assert!(links.len() > 2 && opened.parts() == links.len());
    assert_eq!(opened.block_loads(links.len()), None);
    for (part, link) in links.iter().enumerate() {
        let loads = opened.block_loads(part).unwrap();
        assert_eq!(loads.blocks, u64::from(link.params().blocks()));
        assert_eq!(loads.probes, link.params().probes());
        assert!((loads.fill_ratio - link.fill_ratio()).abs() < 1e-12, "{part}");
    }
    let mut only_in = vec![0; links.len()];
    for i in 0..KEYS + 100 {
        let probes = opened.probes(&key(i), &LookupOptions::default()).unwrap();
        let parts: Vec<usize> = probes.iter().map(|probe| probe.part).collect();
        assert_eq!(parts, (0..links.len()).collect::<Vec<_>>());
        for (probe, link) in probes.iter().zip(links) {
            assert_eq!(probe.is_hit(), link.contains(key(i)), "{i} in {}", probe.part);
        }
        let mut hits = probes.iter().filter(|probe| probe.is_hit());
        if let (Some(probe), None) = (hits.next(), hits.next()) {
            only_in[probe.part] += 1;
        }
    }
    assert!(only_in.iter().all(|&keys| keys > 50), "{only_in:?}");
}

/// A key is looked up in a single partition, which its place among the keys determines.
#[test]
fn a_key_is_probed_in_its_partition_of_an_sst() {
    let mut partitioned = 0;
    for stored in all_filters().iter().filter(|stored| stored.format == Format::ROCKSDB_SST) {
        let opened = stored.open().unwrap();
        let (parts, options) = (opened.parts(), encoded());
        if parts < 3 || stored.name.contains("matrix") {
            continue;
        }
        let mut keys: Vec<&Vec<u8>> =
            stored.lookups[0].1.iter().filter(|(_, hit)| *hit).map(|(key, _)| key).collect();
        keys.sort();
        let mut seen = vec![0; parts];
        let mut last = 0;
        for key in keys {
            let probes = opened.probes(key, &options).unwrap();
            // Ribbon has no blocks.
            let [probe] = &probes[..] else { continue };
            assert!(probe.is_hit() && probe.part >= last, "{}", stored.name);
            (last, seen[probe.part]) = (probe.part, seen[probe.part] + 1);
        }
        if last > 0 {
            assert!(seen.iter().all(|&keys| keys > 0), "{}: {seen:?}", stored.name);
            partitioned += 1;
        }
    }
    assert!(partitioned > 0);
}

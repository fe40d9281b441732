//! How often row groups are read in vain, and how many bits that takes, of row groups of uneven
//! sizes.

use blocked_bloom_file_index::{FileIdentity, FileIndex, FileIndexOptions};

use crate::naive::{Random, columns};

/// Numbers of values, log-normal: 4,096 and more or less by this many powers of e.
fn sizes(row_groups: usize, sigma: f64, random: &mut Random) -> Vec<usize> {
    let mut unit = || (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
    let normal = |_| (0..12).map(|_| unit()).sum::<f64>() - 6.0;
    let normals: Vec<f64> = (0..row_groups).map(normal).collect();
    normals.iter().map(|x| ((4096.0 * (sigma * x).exp()) as usize).clamp(1, 1 << 18)).collect()
}

#[test]
#[expect(clippy::print_stdout, reason = "figures to be quoted")]
fn uneven_row_groups_take_few_bits_and_have_the_rate() {
    for (part_values, sigma) in [(256, 0.0), (256, 1.5), (512, 1.0)] {
        let mut random = Random(1);
        let sizes = sizes(500, sigma, &mut random);
        let options = FileIndexOptions::new(columns(1), 1)
            .with_part_values(part_values)
            .with_false_row_groups(1.0, 1_000);
        let mut builder = options.builder().unwrap();
        let mut stored = Vec::new();
        for (number, sizes) in sizes.chunks(3).enumerate() {
            let name = format!("part-{number}.parquet");
            let file = FileIdentity::new(&name, 1).with_etag("1");
            let mut file = builder.file(file, &[Some("Utf8")], sizes.len() as u32).unwrap();
            for &size in sizes {
                file.insert_hashes(0, &random.hashes(size)).unwrap();
                stored.extend(file.end_row_group().unwrap());
            }
            file.end().unwrap();
        }
        let values = builder.values();
        stored.extend(builder.finish().unwrap());
        let bits = 8.0 * stored.len() as f64 / values as f64;
        let index = FileIndex::from_bytes(&stored).unwrap();
        let manifest = index.manifest();
        let lookups = 2_000;
        let found = random.hashes(lookups).into_iter().map(|hash| {
            let key_hash = manifest.columns().next().unwrap().key_hash();
            let lookup = manifest.lookup(0, key_hash, |_| true, [hash]).unwrap();
            index.candidates(&lookup).unwrap().count()
        });
        let measured = found.sum::<u64>() as f64 / lookups as f64;
        let expected = manifest.expected_false_row_groups(0);
        println!(
            "| {part_values} | {sigma} | {bits:.2} bits a value | {measured:.3} of 500 row groups \
             in vain, formula {expected:.3} |"
        );
        assert!(bits < 20.0);
        // The formula is an upper bound, by steps of a 64th of a part.
        assert!(measured < 0.5 && expected < 0.5, "at most 500 * 0.001");
        assert!((0.7..1.2).contains(&(measured / expected)), "{measured}, {expected}");
    }
}

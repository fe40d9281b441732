//! What an index of many row groups takes: bits a value, time and memory to build it, and the time
//! of a lookup in memory, by shape and sizes of row groups.
//!
//! ```text
//! cargo run --release -p blocked-bloom-file-index --example large [row groups]
//! ```

#![expect(clippy::print_stdout, reason = "it prints a table")]

use std::time::Instant;

use blocked_bloom::KeyHash;
use blocked_bloom_file_index::{
    Column, FileIdentity, FileIndex, FileIndexError, FileIndexOptions, Pruned,
};

const KEY_HASH: KeyHash = KeyHash::Xxh3 { seed: 3 };
const GROUPS_OF_A_FILE: u32 = 4;
const LOOKUPS: usize = 1_000;

fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Values of a row group: log-normal around a mean.
fn size(row_group: u64, mean: u64, sigma: f64) -> u64 {
    let unit = |i| (mix(row_group * 12 + i) >> 11) as f64 / (1_u64 << 53) as f64;
    let normal = (0..12).map(unit).sum::<f64>() - 6.0;
    // The mean of a log-normal number is e^(sigma^2 / 2) times its median.
    ((mean as f64 * (sigma * normal - sigma * sigma / 2.0).exp()) as u64).max(1)
}

fn value(row_group: u64, i: u64) -> u64 {
    mix(row_group << 32 | i)
}

fn name(file: u64) -> String {
    format!("day={:03}/part-{file:06}.parquet", file / 1_000)
}

fn run(row_groups: u64, mean: u64, sigma: f64, part_values: u32) -> Result<(), FileIndexError> {
    let column = Column::new("trace_id", KEY_HASH);
    let options = FileIndexOptions::new(vec![column], mean)
        .with_part_values(part_values)
        .with_false_row_groups(1.0, 1_000);
    let mut builder = options.builder()?;
    let (mut stored, mut rows, mut seconds, mut memory) = (Vec::new(), 0, 0.0, 0);
    let mut hashes = Vec::new();
    let files = row_groups / u64::from(GROUPS_OF_A_FILE);
    for number in 0..files {
        let name = name(number);
        let file =
            FileIdentity::new(&name, number).with_etag("\"5d41402abc4b2a76b9719d911017c592\"");
        let mut file = builder.file(file, &[Some("Utf8")], GROUPS_OF_A_FILE)?;
        for row_group in 0..u64::from(GROUPS_OF_A_FILE) {
            let row_group = number * u64::from(GROUPS_OF_A_FILE) + row_group;
            hashes.clear();
            hashes.extend((0..size(row_group, mean, sigma)).map(|i| value(row_group, i)));
            let start = Instant::now();
            for piece in hashes.chunks(8_192) {
                file.insert_hashes(0, piece)?;
            }
            memory = memory.max(file.memory_bytes());
            let bytes = file.end_row_group()?;
            memory = memory.max(file.memory_bytes() + bytes.len() as u64);
            seconds += start.elapsed().as_secs_f64();
            rows += hashes.len();
            stored.extend(bytes);
        }
        file.end()?;
    }
    let values = builder.values();
    let start = Instant::now();
    let rest = builder.finish()?;
    seconds += start.elapsed().as_secs_f64();
    stored.extend(rest);
    let bits = 8.0 * stored.len() as f64 / values as f64;
    let build = seconds * 1e6 / rows as f64;

    let start = Instant::now();
    let index = FileIndex::from_bytes(&stored[..])?;
    let open = start.elapsed().as_secs_f64() * 1e3;
    let manifest = index.manifest();
    let (mut times, mut in_vain, mut lost, mut ranges) = (Vec::new(), 0, 0, 0);
    for i in 0..LOOKUPS as u64 {
        let row_group = mix(i) % (files * u64::from(GROUPS_OF_A_FILE));
        let is_present = i % 2 == 0;
        let wanted = if is_present {
            value(row_group, mix(i + 7) % size(row_group, mean, sigma))
        } else {
            value(u64::from(u32::MAX), i)
        };
        let start = Instant::now();
        let lookup = manifest.lookup(0, KEY_HASH, |own| own == "Utf8", [wanted])?;
        let found = index.candidates(&lookup)?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
        let name = name(row_group / u64::from(GROUPS_OF_A_FILE));
        let file = manifest.file(
            &FileIdentity::new(&name, row_group / u64::from(GROUPS_OF_A_FILE))
                .with_etag("\"5d41402abc4b2a76b9719d911017c592\""),
        );
        let group = (row_group % u64::from(GROUPS_OF_A_FILE)) as usize;
        let is_found = file.is_ok_and(|file| file.candidates(&found).get(group) == Some(true));
        lost += u64::from(is_present && !is_found);
        in_vain += found.count() - u64::from(is_present && is_found);
        ranges += manifest.locate(&[lookup])?.ranges().len();
    }
    times.sort_by(f64::total_cmp);
    // All files of a query.
    let lookup = manifest.lookup(0, KEY_HASH, |own| own == "Utf8", [1])?;
    let found = index.candidates(&lookup)?;
    let start = Instant::now();
    let nothing = |file| manifest.prune(&found, &file) == Pruned::Empty;
    let pruned = manifest.files().filter(|file| nothing(file.identity())).count();
    let prune = start.elapsed().as_secs_f64() * 1e9 / files as f64;
    println!(
        "| {row_groups} x {mean}, {sigma} | {part_values} | {:.1} | {bits:.2} | {build:.3} | {:.1} \
         | {open:.1} | {:.1} | {:.1} | {:.1} | {prune:.0} | {:.2} ({:.2}) | {lost} |",
        stored.len() as f64 / 1e6,
        memory as f64 / f64::from(1 << 20),
        times[LOOKUPS / 2],
        times[LOOKUPS * 99 / 100],
        ranges as f64 / LOOKUPS as f64,
        in_vain as f64 / LOOKUPS as f64,
        manifest.expected_false_row_groups(0),
    );
    assert!(lost == 0 && pruned > 0);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let most = std::env::args().nth(1).map_or(Ok(100_000), |row_groups| row_groups.parse())?;
    println!(
        "| row groups x values, sigma | values of a part | MB | bits a value | us a row to build | \
         MiB held | ms to open | us a lookup | 99 % | ranges | ns a file | row groups in vain \
         (formula) | lost |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (row_groups, mean, sigma, part_values) in [
        (1_668, 2_680, 0.0, 256),
        (1_668, 2_680, 1.0, 256),
        (10_000, 2_000, 0.0, 256),
        (10_000, 2_000, 1.0, 256),
        (10_000, 2_000, 1.0, 512),
        (100, 1_000_000, 0.0, 1_024),
        (100_000, 500, 0.0, 256),
        (100_000, 500, 1.0, 128),
        (100_000, 500, 1.0, 256),
        (100_000, 500, 1.0, 512),
    ] {
        if row_groups <= most {
            run(row_groups, mean, sigma, part_values)?;
        }
    }
    Ok(())
}

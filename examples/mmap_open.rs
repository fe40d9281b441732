//! Opens stored filters from mapped files: verified, trusted, damaged, and in the way of an engine
//! that must continue despite damage.
//!
//! ```text
//! cargo run --release --example mmap_open
//! ```
//!
//! Prints the time of each way to open a filter. For each kind of damage, prints the error and the
//! number of keys that would be lost if the filter were trusted. Also shows that the pass-all
//! filter that replaces a damaged one loses no key and avoids no read.
#![expect(clippy::print_stdout, reason = "an example for the command line")]

use std::error::Error;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Instant;

use blocked_bloom::{Bitmask, Block, BloomFilter, FilterOptions, KeyHash, Sizing};
use memmap2::Mmap;

const KEYS: u64 = 1_000_000;

/// A kind of damage to the bytes of a stored filter.
type Damage = (&'static str, fn(&mut Vec<u8>));

const DAMAGES: [Damage; 6] = [
    ("one bit of the header flipped", |bytes| bytes[33] ^= 1),
    ("one bit of a block cleared", |bytes| bytes[1_000] &= bytes[1_000].wrapping_sub(1)),
    ("one block of zeros", |bytes| bytes[6_400..6_464].fill(0)),
    ("the last byte missing", |bytes| bytes.truncate(bytes.len() - 1)),
    ("one byte too many", |bytes| bytes.push(0)),
    ("another file", |bytes| *bytes = b"<html>".repeat(1_000)),
];

fn main() -> Result<(), Box<dyn Error>> {
    let keys: Vec<[u8; 8]> = (0..KEYS).map(u64::to_le_bytes).collect();
    let absent: Vec<[u8; 8]> = (KEYS..2 * KEYS).map(u64::to_le_bytes).collect();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("table.filter");
    let options = FilterOptions::new(Sizing::BitsPerKey(10.0));
    let mut builder = options.builder();
    builder.extend(&keys)?;
    let bytes = builder.finish_verified()?.write_to(File::create(&path)?)?;
    println!("{bytes} bytes for {KEYS} keys");

    // Verified when a table is opened for the first time; trusted if this process has verified it
    // before.
    let key_hash = options.key_hash();
    let verified = timed("from_bytes", || Ok(BloomFilter::from_bytes(map(&path)?, key_hash)?))?;
    let trusted = timed("from_bytes_trusted", || {
        Ok(BloomFilter::from_bytes_trusted(map(&path)?, key_hash)?)
    })?;
    assert_eq!(verified, trusted);
    assert_eq!(lost(verified.view(), &keys), 0);
    let error = BloomFilter::from_bytes(map(&path)?, KeyHash::Xxh3 { seed: 7 })
        .expect_err("the keys have seed 0");
    println!("opened with another seed: {error}");

    for (number, (what, damage)) in DAMAGES.into_iter().enumerate() {
        let mut bytes = fs::read(&path)?;
        damage(&mut bytes);
        let path = folder.path().join(format!("{number}.damaged"));
        fs::write(&path, bytes)?;
        let error = BloomFilter::from_bytes(map(&path)?, key_hash).expect_err("damaged");
        println!("{what}: {error}");
        // Only the header has been looked at.
        if let Ok(believed) = BloomFilter::from_bytes_trusted(map(&path)?, key_hash) {
            println!("    if trusted: {} keys are lost", lost(believed.view(), &keys));
        }
        let (instead, reason) = BloomFilter::open_or_pass_all(map(&path)?, key_hash);
        assert_eq!(reason, Some(error));
        assert_eq!(lost(instead.view(), &keys), 0);
        assert!(instead.is_pass_all());
    }

    let damaged = map(&folder.path().join("0.damaged"))?;
    let (instead, _) = BloomFilter::open_or_pass_all(damaged, key_hash);
    for (what, filter) in [("sound", verified.view()), ("pass-all", instead.view())] {
        let passed = (KEYS - lost(filter, &absent) as u64) as f64 / KEYS as f64;
        let predicted = filter.expected_false_positive_rate();
        println!(
            "absent keys that pass the {what} filter: {:.3} %, predicted {:.3} %",
            100.0 * passed,
            100.0 * predicted
        );
        assert!((passed / predicted - 1.0).abs() < 0.05);
    }
    Ok(())
}

fn map(path: &Path) -> io::Result<Mmap> {
    let file = File::open(path)?;
    // SAFETY: the file belongs to this program, which does not write to it after mapping it.
    #[expect(unsafe_code, reason = "mapping a file is unsafe in Rust, whatever is done with it")]
    unsafe {
        Mmap::map(&file)
    }
}

/// Counts the keys for which the filter answers "absent".
fn lost(filter: BloomFilter<&[Block]>, keys: &[[u8; 8]]) -> usize {
    let mut hits = Bitmask::new();
    filter.contains_batch(keys, &mut hits);
    hits.count_misses()
}

fn timed<T>(
    what: &str,
    open: impl FnOnce() -> Result<T, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    let start = Instant::now();
    let opened = open()?;
    println!("{what}: {} us", start.elapsed().as_micros());
    Ok(opened)
}

//! Opens stored filters from mapped files: verified, trusted, damaged, and by an engine's policy.
//!
//! ```text
//! cargo run --release --example mmap_open
//! ```
//!
//! Prints how long each way of opening takes, how each kind of damage is refused and what trusting it would lose, and how the pass-all
//! filter that a policy puts in a damaged one's place keeps every key and shows in the metrics.
#![expect(clippy::print_stdout, reason = "an example for the command line")]

use std::error::Error;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Instant;

use blocked_bloom::{
    Bitmask, BloomFilterBytes, BloomFilterRef, FilterMetrics, FilterPolicy, KeyHash, Sizing,
    TableFilter,
};
use memmap2::Mmap;

const KEYS: u64 = 1_000_000;

/// What happens to the bytes of a filter that is stored.
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
    let policy = FilterPolicy::new(Sizing::BitsPerKey(10.0));
    let TableFilter::Whole(mut builder) = policy.for_table(0, KEYS) else {
        return Err("this policy stores filters whole".into());
    };
    builder.extend(&keys);
    let bytes = builder.finish_verified()?.write_to(File::create(&path)?)?;
    println!("{bytes} bytes for {KEYS} keys");

    // Verified when a table is opened for the first time; trusted if this process has verified it before.
    let verified = timed("from_bytes", || Ok(BloomFilterBytes::from_bytes(map(&path)?)?))?;
    let trusted =
        timed("from_bytes_trusted", || Ok(BloomFilterBytes::from_bytes_trusted(map(&path)?)?))?;
    assert_eq!(verified.view(), trusted.view());
    assert_eq!(lost(verified.view(), &keys), 0);
    let hash = KeyHash::Xxh3 { seed: 7 };
    let error = verified.view().require_key_hash(hash).expect_err("the keys have seed 0");
    println!("asked with the hashes of another seed: {error}");

    for (number, (what, damage)) in DAMAGES.into_iter().enumerate() {
        let mut bytes = fs::read(&path)?;
        damage(&mut bytes);
        let path = folder.path().join(format!("{number}.damaged"));
        fs::write(&path, bytes)?;
        let error = BloomFilterBytes::from_bytes(map(&path)?).expect_err("damaged");
        println!("{what}: {error}");
        // Only the header has been looked at.
        if let Ok(believed) = BloomFilterBytes::from_bytes_trusted(map(&path)?) {
            println!("    if trusted: {} keys are lost", lost(believed.view(), &keys));
        }
        let (instead, reason) = policy.open(map(&path)?);
        assert_eq!(reason, Some(error));
        assert_eq!(lost(instead.view(), &keys), 0);
        assert!(instead.view().is_pass_all());
    }

    let predicted = verified.view().params().false_positive_rate();
    let (instead, _) = policy.open(map(&folder.path().join("0.damaged"))?);
    for (what, filter) in [("sound", verified.view()), ("pass-all", instead.view())] {
        let (metrics, mut hits) = (FilterMetrics::new(), Bitmask::new());
        for batch in absent.chunks(1_024) {
            filter.contains_batch(batch, &mut hits);
            metrics.record(&hits);
        }
        let warning = metrics.snapshot().check(predicted);
        assert_eq!(warning.is_some(), filter.is_pass_all());
        let warning = warning.map_or("none".into(), |warning| warning.to_string());
        println!("warning of the metrics, {what} filter: {warning}");
    }
    Ok(())
}

fn map(path: &Path) -> io::Result<Mmap> {
    let file = File::open(path)?;
    // SAFETY: the file is this program's own, and is not written to once it is mapped.
    #[expect(unsafe_code, reason = "mapping a file is unsafe in Rust, whatever is done with it")]
    unsafe {
        Mmap::map(&file)
    }
}

/// How many of the keys a filter says are absent.
fn lost(filter: BloomFilterRef<'_>, keys: &[[u8; 8]]) -> usize {
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

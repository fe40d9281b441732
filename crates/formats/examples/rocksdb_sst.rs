//! Queries the filters of SST files that RocksDB wrote, and writes one back.
//!
//! ```text
//! cargo run -p blocked-bloom-formats --example rocksdb_sst
//! ```
//!
//! Opens three files of `tests/fixtures/rocksdb`: with a filter of keys, of keys and prefixes, and
//! in partitions. Looks up the keys of the table next to each file, which contains RocksDB's
//! answers. Then damages the filter of the first file, which is an error, rebuilds it from the
//! keys, and puts it back: the file equals RocksDB's, byte for byte. Prints the properties of each
//! filter.
#![expect(clippy::print_stdout, reason = "an example for the command line")]

use std::error::Error;
use std::fs;
use std::num::ParseIntError;

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_formats::rocksdb::{FilterBlock, FilterBlockBuilder, RocksdbError, SstFilter};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/rocksdb/");
/// The names say how many bits per key and how many keys.
const KEYS: &str = "bloom_b10_n5000_str";
const KEYS_AND_PREFIXES: &str = "bloom_b10_n3000_whole_and_prefix4";
const PARTITIONS: &str = "bloom_b10_n5000_partitioned";

/// The keys of a fixture, which of them were inserted, and which of them RocksDB's filter passed.
struct Answers {
    keys: Vec<Vec<u8>>,
    added: Vec<bool>,
    expected: Vec<bool>,
}

fn answers(name: &str) -> Result<Answers, Box<dyn Error>> {
    let (mut keys, mut added, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for line in fs::read_to_string(format!("{FOLDER}{name}.csv"))?.lines().skip(1) {
        let [key, was_added, answer] = line.split(',').collect::<Vec<_>>()[..] else {
            return Err(format!("{name}.csv: {line}: not three columns").into());
        };
        keys.push(unhex(key)?);
        added.push(was_added == "1");
        expected.push(answer == "1");
    }
    Ok(Answers { keys, added, expected })
}

fn unhex(digits: &str) -> Result<Vec<u8>, ParseIntError> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16);
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn look_up(name: &str) -> Result<(), Box<dyn Error>> {
    let file = fs::read(format!("{FOLDER}{name}.sst"))?;
    let filter = SstFilter::open(&file)?;
    let Answers { keys, added, expected } = answers(name)?;
    let mut hits = Bitmask::new();
    filter.contains_batch(&keys, &mut hits);
    assert!(expected.iter().enumerate().all(|(i, &answer)| hits.get(i) == Some(answer)));
    assert!(added.iter().zip(&expected).all(|(&added, &answer)| !added || answer));

    let absent = added.iter().filter(|&&added| !added).count();
    let passed = hits.count_hits() - (keys.len() - absent);
    println!("{name}.sst");
    println!(
        "  format_version {}, checksums {:?}",
        filter.format_version(),
        filter.checksum_kind()
    );
    println!("  {}, {:?}", filter.filter_policy().unwrap_or("no policy"), filter.layout());
    for block in filter.filter_blocks() {
        println!("  {:?}, {} bytes", block.kind(), block.as_bytes().len());
    }
    println!("  {} keys found, {passed} of {absent} absent keys pass", keys.len() - absent);
    if let Some(extractor) = filter.prefix_extractor() {
        // The first four bytes are looked up, the prefix of each key that starts so.
        assert!(filter.contains_prefix("p000:k") && !filter.contains_prefix("zzzz:k"));
        println!("  {extractor}: a scan of p000:k must read this file, one of zzzz:k need not");
    }
    Ok(())
}

fn write_back() -> Result<(), Box<dyn Error>> {
    let original = fs::read(format!("{FOLDER}{KEYS}.sst"))?;
    let sst = SstFilter::open(&original)?;
    let filter = sst.filter_blocks().next().ok_or("a file without a filter")?;
    let block = filter.as_bytes();
    let place = original.windows(block.len()).position(|bytes| bytes == block);
    let place = place.ok_or("the filter is part of the file")?;
    let place = place..place + block.len();

    let mut file = original.clone();
    file[place.start] ^= 1;
    let error = SstFilter::open(&file).expect_err("a bit was flipped");
    assert!(matches!(error, RocksdbError::BlockChecksum { .. }));
    println!("one bit flipped: {error}");

    let Answers { keys, added, .. } = answers(KEYS)?;
    let mut builder = FilterBlockBuilder::new(10.0)?;
    keys.iter().zip(added).filter(|(_, added)| *added).for_each(|(key, _)| builder.insert(key));
    let rebuilt = builder.finish()?;
    assert!(FilterBlock::from_bytes(&rebuilt)?.contains(&keys[0]));
    println!("built anew: {} bytes, written where the damaged filter was", rebuilt.len());
    file[place].copy_from_slice(&rebuilt);
    SstFilter::open(&file)?;
    assert!(file == original, "the filter differs from the one that RocksDB wrote");
    println!("the file is again the one that RocksDB wrote");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    look_up(KEYS)?;
    look_up(KEYS_AND_PREFIXES)?;
    look_up(PARTITIONS)?;
    write_back()
}

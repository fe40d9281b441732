//! Bytes and sizes equal Arrow's, and its filters give its answers.

use std::fs;
use std::path::PathBuf;

use blocked_bloom::Kernel;
use blocked_bloom_split::{SplitBlockError, SplitBlockFilter};

use crate::fixtures::{committed, unhex};
use crate::split_blocks::check;

fn fixture(name: &str) -> PathBuf {
    committed("parquet").join(name)
}

fn lines(name: &str) -> Vec<Vec<u8>> {
    fs::read_to_string(fixture(name)).unwrap().lines().map(unhex).collect()
}

#[test]
#[expect(clippy::print_stdout, reason = "a run shows what it covered")]
fn raw_filters_are_answered_and_written_byte_for_byte() {
    let (added, absent) = (lines("raw/keys_added.hex"), lines("raw/keys_absent.hex"));
    let answers = fs::read_to_string(fixture("raw/answers.csv")).unwrap();
    let mut checked = 0;
    for line in answers.lines().filter(|line| line.starts_with("arrowrs_")) {
        let [file, "ok", answers] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let bytes = fs::read(fixture(&format!("raw/{file}"))).unwrap();
        let filter = SplitBlockFilter::from_bytes(&bytes).unwrap();
        let keys = [added.clone(), absent.clone()].concat();
        let expected: Vec<bool> = answers.bytes().map(|answer| answer == b'1').collect();
        check(filter.view(), &keys, &expected, file);
        checked += keys.len();

        let shape = file.strip_prefix("arrowrs_ndv").unwrap().strip_suffix(".sbbf").unwrap();
        let (distinct_values, rate) = shape.split_once("_fpp").unwrap();
        let mut written =
            SplitBlockFilter::new(distinct_values.parse().unwrap(), rate.parse().unwrap()).unwrap();
        added.iter().for_each(|key| _ = written.insert(key));
        assert!(written.to_bytes() == bytes, "{file}");
        let mut file = Vec::new();
        #[cfg(feature = "std")]
        assert_eq!(written.write_to(&mut file).unwrap(), bytes.len() as u64);
        #[cfg(not(feature = "std"))]
        file.extend(written.to_bytes());
        assert_eq!(file, bytes);
    }
    println!("3 raw filters x {checked} answers checked x {} kernels", Kernel::supported().count());
    assert_eq!(checked, 3 * 1400);
}

#[test]
fn sizes_are_arrows() {
    // The bits of arrow-rs, truncated to bytes and rounded up to a power of two.
    for (rate, distinct_values, bits) in [
        (0.1, 10, 57),
        (0.01, 10, 96),
        (0.001, 10, 146),
        (0.01, 100, 968),
        (0.1, 1_000, 5_772),
        (0.001, 10_000, 146_076),
        (0.01, 1_000_000, 9_681_526_u64),
        (0.5, 0, 0),
        (0.999, 1, 0),
        (1e-50, 1_000_000_000_000, u64::MAX),
        (1e-300, 1, u64::MAX),
        (1e-300, 0, 0),
        (f64::MIN_POSITIVE, u64::MAX, u64::MAX),
    ] {
        let bytes = (bits / 8).clamp(32, 128 << 20).next_power_of_two();
        let filter = SplitBlockFilter::new(distinct_values, rate).unwrap();
        assert_eq!(filter.view().blocks().len() as u64 * 32, bytes, "{distinct_values} at {rate}");
    }
    for rate in [0.0, -0.0, 1.0, -1.0, 2.0, f64::INFINITY] {
        let error = SplitBlockFilter::new(10, rate).unwrap_err();
        assert_eq!(error, SplitBlockError::RateOutOfRange { rate });
    }
    assert!(SplitBlockFilter::new(10, f64::NAN).is_err());
    for blocks in [0, 3, 12, u32::MAX] {
        let error = SplitBlockFilter::with_blocks(blocks).unwrap_err();
        assert_eq!(error, SplitBlockError::NotAPowerOfTwo { blocks });
    }
    let error = SplitBlockFilter::with_blocks(1 << 26).unwrap_err();
    assert_eq!(error, SplitBlockError::BitsetLength { found: 1 << 31 });
    for (bytes, made) in [(0, 32), (32, 32), (33, 64), (1_000, 1_024), (u64::MAX, 128 << 20)] {
        assert_eq!(SplitBlockFilter::with_bytes(bytes).unwrap().memory_bytes(), made);
    }
}

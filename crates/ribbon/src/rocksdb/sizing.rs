//! The numbers of slots and columns that RocksDB chooses for a block.

use crate::scheme::rocksdb::{MAX_COLUMNS, SEGMENT_BYTES, WIDTH, starts};

/// Keys in 2^8, 2^9, ... 2^17 slots at which one construction in twenty fails.
const KEYS: [f64; 10] =
    [248.851, 499.532, 1001.26, 2003.97, 4005.59, 8000.39, 15966.6, 31828.1, 63447.3, 126506.0];

/// The exponent of the slots of the first entry of [`KEYS`].
const FIRST: u32 = 8;

/// Increase of the slots per key for each doubling of the slots beyond the table.
const GROWTH: f64 = 0.0038;

/// Minimum number of slots of a block.
const MIN_SLOTS: u32 = 256;

/// Maximum number of keys of a Ribbon block. With more keys, RocksDB writes a Bloom filter.
pub(super) const MAX_KEYS: usize = 950_000_000;

/// Returns the number of keys for `2^log2` slots.
fn keys_of(log2: u32) -> f64 {
    const LAST: u32 = FIRST + KEYS.len() as u32 - 1;
    let slots = (1_u64 << log2) as f64;
    match log2 {
        ..FIRST => 0.0,
        FIRST..=LAST => KEYS[(log2 - FIRST) as usize],
        _ => {
            let last = (1_u64 << LAST) as f64 / KEYS[KEYS.len() - 1];
            slots / (last - f64::from(LAST) * GROWTH + f64::from(log2) * GROWTH)
        }
    }
}

/// Returns the slots for this many keys, a multiple of 128, interpolated between powers of two.
pub(super) fn slots(keys: u32) -> u32 {
    #[expect(clippy::approx_constant, reason = "not to the last digit, but RocksDB's")]
    const LOG2_E: f64 = 1.442_695_040_9;
    let mut log2 = (libm::log(f64::from(keys.max(1))) * LOG2_E + 0.5) as u32;
    let mut lower = keys_of(log2);
    if lower == 0.0 {
        return MIN_SLOTS;
    }
    let keys = f64::from(keys);
    let mut upper = keys_of(log2 + 1);
    if keys < lower {
        (lower, upper) = (keys_of(log2 - 1), lower);
        log2 -= 1;
    }
    let power = (1_u64 << log2) as f64;
    let slots = ((keys - lower) / (upper - lower) * power + power + 0.999_999_999) as u32;
    slots.next_multiple_of(WIDTH).max(MIN_SLOTS)
}

/// Returns the size of the segments in bytes for this reciprocal rate. The first hash determines
/// how a fraction of a block is rounded.
pub(super) fn data_bytes(slots: u32, inverse_rate: f64, first_hash: u64) -> usize {
    let blocks = slots / WIDTH;
    let segments = if !(inverse_rate > 1.0 && 1.0 / inverse_rate < 1.0) {
        1
    } else if inverse_rate > f64::from(u32::MAX) {
        blocks * MAX_COLUMNS
    } else {
        let columns = (inverse_rate as u32).ilog2();
        let [more, fewer] = [columns, columns + 1].map(|columns| libm::exp2(-f64::from(columns)));
        let portion = (1.0 / inverse_rate - fewer) / (more - fewer);
        let rounding = (f64::from((first_hash >> 32) as u32) + 0.5) / 4_294_967_296.0;
        let short = ((portion * f64::from(starts(slots)) + rounding) / f64::from(WIDTH)) as u32;
        blocks * columns + (blocks - short)
    };
    segments as usize * SEGMENT_BYTES
}

/// Returns the reciprocal rate of RocksDB's Bloom filter with this many bits per key, the target of
/// its Ribbon filter with "Bloom-equivalent bits". It is the mean of the rates at the mean load of
/// a block plus and minus one standard deviation.
pub(super) fn inverse_rate(bits_per_key: f64, probes: u32) -> f64 {
    const LINE_BITS: f64 = 512.0;
    let probes = f64::from(probes);
    let keys = LINE_BITS / bits_per_key;
    let deviation = libm::sqrt(keys);
    let rate = |keys: f64| libm::pow(1.0 - libm::exp(-probes / (LINE_BITS / keys)), probes);
    1.0 / ((rate(keys + deviation) + rate(keys - deviation)) / 2.0)
}

/// Returns the number of probes of RocksDB's Bloom filter with this many thousandths of a bit per
/// key (RocksDB's `FastLocalBloomImpl::ChooseNumProbes`), 1 to 24.
pub fn bloom_probes(millibits_per_key: u32) -> u32 {
    const MAX_MILLIBITS: [u32; 12] =
        [2_080, 3_580, 5_100, 6_640, 8_300, 10_070, 11_720, 14_001, 16_050, 18_300, 22_001, 25_501];
    match MAX_MILLIBITS.iter().position(|&most| millibits_per_key <= most) {
        Some(index) => index as u32 + 1,
        None if millibits_per_key > 50_000 => 24,
        None => (millibits_per_key - 1) / 2_000 - 1,
    }
}

/// Returns the size in bytes of RocksDB's Bloom filter of this many keys, without its trailer.
pub(super) fn bloom_bytes(keys: usize, millibits_per_key: u32) -> u128 {
    (keys as u128 * u128::from(millibits_per_key)).div_ceil(8_000).next_multiple_of(64)
}

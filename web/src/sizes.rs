//! Sizes and rates of the kinds of filters, by the formulas of the packages that build them.

use blocked_bloom::{MAX_RECOMMENDED_BLOCKS, ParamsError, Sizing};
use blocked_bloom_inspect::Value;
use blocked_bloom_inspect::numbers::{
    parse_bits, parse_bytes, parse_count, parse_keys, parse_rate,
};
use blocked_bloom_removable::RemovableOptions;
use blocked_bloom_ribbon::RibbonOptions;
use blocked_bloom_split::split_block::false_positive_rate;

use crate::{Fault, Input, object};

/// Half bits per key that [`curves`] go up to.
const MAX_HALVES: u32 = 52;

const SPLIT_BLOCK_BYTES: u64 = 32;

/// The largest bitset that writers of Parquet files make.
const MAX_BITSET: u64 = 128 << 20;

/// A filter of one kind.
struct Row {
    kind: &'static str,
    bytes: u64,
    bits_per_key: f64,
    probes: Option<u32>,
    /// 0 to 1.
    rate: f64,
}

impl Row {
    fn new(kind: &'static str, keys: u64, bytes: u64, probes: Option<u32>, rate: f64) -> Self {
        Row { kind, bytes, bits_per_key: 8.0 * bytes as f64 / keys as f64, probes, rate }
    }

    fn json(self) -> Value {
        object! {
            "kind": self.kind,
            "bytes": self.bytes,
            "bits_per_key": self.bits_per_key,
            "probes": self.probes,
            "rate": self.rate,
        }
    }
}

/// A filter of each kind for the `keys` of the input, and `bits` per key, a false-positive `rate`
/// or a number of `bytes`, as `by` says; `figure` is that number, and `load` the input's lookups
/// per second.
///
/// # Errors
///
/// [`Fault`] if a field cannot be read, or this project's filter is out of its range. Of other
/// kinds, one that has no such filter has a row without a size.
pub fn table(input: &Input<'_>) -> Result<Value, Fault> {
    let keys = input.parse("keys", "", parse_keys)?;
    let by = input.text("by").unwrap_or("bits");
    let (sizing, figure) = match by {
        "rate" => {
            let rate = input.parse(by, "", parse_rate)?;
            (Sizing::FalsePositiveRate(rate), Value::from(rate))
        }
        "bytes" => {
            let bytes = input.parse(by, "", parse_bytes)?;
            (Sizing::MaxBytes(bytes), Value::from(bytes))
        }
        _ => {
            let bits = input.parse("bits", "", parse_bits)?;
            (Sizing::BitsPerKey(bits), Value::from(bits))
        }
    };
    let load = input.parse("load", "0", parse_count)?;
    // With more keys than any filter takes, the keys are at fault and not the size.
    let fault = |error: ParamsError| match Sizing::BitsPerKey(0.1).params(keys) {
        Err(_) => Fault::new("keys", "no filter takes so many keys: divide them among several"),
        Ok(_) => Fault::new(by, error),
    };
    let choice = choice(keys, sizing).map_err(fault)?;
    let kinds: [(&'static str, Kind); 5] = [
        ("blocked", blocked),
        ("classical", classical),
        ("split-block", split_block),
        ("ribbon", ribbon),
        ("tags", tags),
    ];
    let rows = kinds.map(|(kind, row)| match row(keys, sizing) {
        Some(row) => row.json(),
        None => object! { "kind": kind },
    });
    Ok(object! {
        "keys": keys,
        "figure": figure,
        "load": load,
        "choice": choice,
        "rows": Value::List(rows.into()),
        "written": match sizing {
            Sizing::FalsePositiveRate(rate) => written(keys, rate),
            _ => Value::Null,
        },
    })
}

/// Pairs of bits per key and rate, of each kind, for the `keys` of the input: the curves of a plot.
///
/// # Errors
///
/// As of [`table`].
pub fn curves(input: &Input<'_>) -> Result<Value, Fault> {
    let keys = input.parse("keys", "", parse_keys)?;
    let curve = |row: Kind| {
        let sizings = (4..=MAX_HALVES).map(|halves| Sizing::BitsPerKey(f64::from(halves) / 2.0));
        let rows = sizings.filter_map(|sizing| row(keys, sizing));
        Value::List(rows.map(|row| Value::from(vec![row.bits_per_key, row.rate])).collect())
    };
    Ok(object! {
        "blocked": curve(blocked),
        "classical": curve(classical),
        "split-block": curve(split_block),
        "ribbon": curve(ribbon),
    })
}

/// The filter of a kind, if there is one.
type Kind = fn(u64, Sizing) -> Option<Row>;

/// A filter of this project, with the fields of `blocked-bloom plan --json`.
fn choice(keys: u64, sizing: Sizing) -> Result<Value, ParamsError> {
    let params = sizing.params(keys)?;
    let rate = params.false_positive_rate();
    let double = 2.0 * rate;
    Ok(object! {
        "sizing": sizing.to_string(),
        "bits_per_key": params.bits_per_key(),
        "probes": params.probes(),
        "blocks": params.blocks(),
        "stored_bytes": params.stored_bytes(),
        "pass_all": params.is_pass_all(),
        "false_positive_rate": rate,
        "one_in": 1.0 / rate,
        "keys_at_double_rate": (double < 1.0).then(|| params.max_items(double)).transpose()?,
        "partition_recommended": params.blocks() > MAX_RECOMMENDED_BLOCKS,
    })
}

fn blocked(keys: u64, sizing: Sizing) -> Option<Row> {
    let params = sizing.params(keys).ok()?;
    let row = Row::new(
        "blocked",
        keys,
        params.stored_bytes(),
        Some(params.probes()),
        params.false_positive_rate(),
    );
    Some(Row { bits_per_key: params.bits_per_key(), ..row })
}

/// The smallest number, up to `most`, whose filter has at most this rate: rates fall as sizes grow.
fn smallest(rate: f64, most: u64, rate_of: impl Fn(u64) -> f64) -> Option<u64> {
    let (mut low, mut high) = (0, most);
    if rate_of(high) > rate {
        return None;
    }
    while low + 1 < high {
        let middle = low.midpoint(high);
        if rate_of(middle) <= rate { high = middle } else { low = middle }
    }
    Some(high)
}

/// A classical filter of whole words of 64 bits: the best number of probes, and (1 - e^(-kn/m))^k.
fn classical(keys: u64, sizing: Sizing) -> Option<Row> {
    let of = |words: u64| {
        let bits = 64.0 * words as f64 / keys as f64;
        let rate = |probes: f64| (-(-probes / bits).exp_m1()).powf(probes);
        let low = (bits * std::f64::consts::LN_2).floor().max(1.0);
        let probes = if rate(low + 1.0) < rate(low) { low + 1.0 } else { low };
        (probes as u32, rate(probes))
    };
    let words = match sizing {
        Sizing::FalsePositiveRate(rate) => smallest(rate, 1 << 57, |words| of(words).1)?,
        Sizing::MaxBytes(bytes) => bytes / 8,
        Sizing::BitsPerKey(bits) => (keys as f64 * bits / 64.0).ceil() as u64,
        _ => return None,
    };
    let (probes, rate) = of(words);
    (words > 0).then(|| Row::new("classical", keys, 8 * words, Some(probes), rate))
}

/// A filter of any number of split blocks.
fn split_block(keys: u64, sizing: Sizing) -> Option<Row> {
    let rate_of =
        |blocks: u64| false_positive_rate(keys, u32::try_from(blocks).unwrap_or(u32::MAX));
    let blocks = match sizing {
        Sizing::FalsePositiveRate(rate) => smallest(rate, u32::MAX.into(), rate_of)?,
        Sizing::MaxBytes(bytes) => bytes / SPLIT_BLOCK_BYTES,
        Sizing::BitsPerKey(bits) => (keys as f64 * bits / 256.0).ceil() as u64,
        _ => return None,
    };
    (1..=u32::MAX.into()).contains(&blocks).then(|| {
        Row::new("split-block", keys, SPLIT_BLOCK_BYTES * blocks, Some(8), rate_of(blocks))
    })
}

/// What writers of Parquet files make of a rate, as `SplitBlockFilter::new` does: a power of two.
fn written(keys: u64, rate: f64) -> Value {
    let wanted = -8.0 * keys as f64 / (-rate.powf(1.0 / 8.0)).ln_1p() / 8.0;
    let bytes = (wanted as u64).clamp(SPLIT_BLOCK_BYTES, MAX_BITSET).next_power_of_two();
    let rate = false_positive_rate(keys, (bytes / SPLIT_BLOCK_BYTES) as u32);
    object! { "bytes": bytes, "rate": rate }
}

/// A static filter; one that is sized by a rate has that rate.
fn ribbon(keys: u64, sizing: Sizing) -> Option<Row> {
    let rate = match sizing {
        Sizing::FalsePositiveRate(rate) => rate,
        Sizing::MaxBytes(bytes) => RibbonOptions::lowest_rate(keys, bytes)?,
        Sizing::BitsPerKey(bits) => {
            RibbonOptions::lowest_rate(keys, (bits * keys as f64 / 8.0) as u64)?
        }
        _ => return None,
    };
    let bytes = RibbonOptions::new(rate).estimated_bytes(keys).ok()?;
    Some(Row::new("ribbon", keys, bytes, None, rate))
}

/// A filter of tags, whose size follows from the keys alone.
fn tags(keys: u64, _: Sizing) -> Option<Row> {
    let options = RemovableOptions::new(keys);
    let (bytes, rate) =
        (options.stored_bytes().ok()?, options.expected_false_positive_rate().ok()?);
    Some(Row::new("tags", keys, bytes, None, rate))
}

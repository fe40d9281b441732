//! The lines that were seen: a filter of a fixed size, or one that grows; how it is made, opened
//! and stored.

use std::io::{self, Write};

use blocked_bloom::parts::{HEADER_BYTES, Header, HeaderError, MAGIC};
use blocked_bloom::{
    Bitmask, BloomFilter, Filter as _, FilterContents, FilterOptions, KeyHash,
    MAX_RECOMMENDED_BLOCKS, Params, Sizing,
};
use blocked_bloom_inspect::Format;
use blocked_bloom_inspect::numbers::percent;
use blocked_bloom_scalable::{ScalableBloomFilter, ScalableOptions};
use indicatif::BinaryBytes;

use super::Args;
use super::losses::Losses;
use crate::failure::Failure;
use crate::output::Output;
use crate::stored::Stored;

pub(super) const DEFAULT_RATE: f64 = 0.001;

/// Lines that the first filter of a chain is for, at least and at most: 2.5 MB and 160 MB at a rate
/// of 0.1 %.
const FIRST_KEYS: [u64; 2] = [1_000_000, 64_000_000];

/// Bytes of the input for each line that the first filter is for. That filter then takes a
/// hundredth of the size of the input. Lines of 50 bytes, half of them distinct, then need two or
/// three filters instead of four to ten. Each filter costs a cache line per line.
const BYTES_OF_LINE: u64 = 256;

/// False-positive rates above which the user is warned at once, and above which the tool stops, if
/// they are [`SLACK`] times the number that the filter is for.
const WARNING_RATE: f64 = 0.01;
const STOP_RATE: f64 = 0.5;
const SLACK: f64 = 1.2;

/// How far a filter exceeds its purpose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Excess {
    None,
    /// More lines than it is for, at a low rate still.
    Keys,
    /// More than 1 % of all new lines are dropped.
    HighRate,
    /// More than half of them.
    Overfull,
}

/// The lines that were seen.
pub(super) struct Seen {
    filter: Filter,
    losses: Losses,
    /// Distinct lines that a fixed filter is for.
    capacity: u64,
    /// Highest false-positive rate that it is for.
    made_for: f64,
    new: Bitmask,
}

enum Filter {
    /// With the number of distinct keys; the filter itself counts a key each time that it is added.
    Fixed(BloomFilter, u64),
    Growing(ScalableBloomFilter),
}

impl Seen {
    /// An empty filter, as large as the options say, for an input of this many bytes, or 0 if that
    /// is not known.
    pub(super) fn new(args: &Args, input_bytes: u64) -> Result<Self, Failure> {
        let (filter, capacity) = match Shape::from_args(args)? {
            Shape::Fixed(params) => {
                let filter =
                    BloomFilter::with_params(params, KeyHash::default()).map_err(Failure::new)?;
                (Filter::Fixed(filter, 0), params.expected_items())
            }
            Shape::Growing(rate) => {
                let options = FilterOptions::new(Sizing::FalsePositiveRate(rate));
                let first = (input_bytes / BYTES_OF_LINE).clamp(FIRST_KEYS[0], FIRST_KEYS[1]);
                let options = ScalableOptions::for_filters(&options, first);
                let filter = options.map_err(Failure::new)?.build();
                let filter =
                    filter.map_err(|error| unreachable(rate).unwrap_or(Failure::new(error)))?;
                (Filter::Growing(filter), u64::MAX)
            }
        };
        Ok(Self::from_filter(filter, capacity))
    }

    fn from_filter(filter: Filter, capacity: u64) -> Self {
        let (losses, made_for) = match &filter {
            Filter::Fixed(filter, _) => (
                Losses::from_links(&[filter.view()]),
                filter.params().false_positive_rate_at(capacity),
            ),
            Filter::Growing(filter) => {
                let links: Vec<_> = filter.links().iter().map(BloomFilter::view).collect();
                (Losses::from_links(&links), filter.false_positive_rate())
            }
        };
        Seen { filter, losses, capacity, made_for, new: Bitmask::new() }
    }

    /// The filter that another run or `build` wrote, if it agrees with the options.
    pub(super) fn open(stored: &Stored, args: &Args) -> Result<Self, Failure> {
        let fail = |problem: String| Failure::for_file(&stored.name, problem);
        let wanted = args.is_sized().then(|| Shape::from_args(args)).transpose()?;
        let differs = |wanted: Shape, found: &str| Err(fail(wanted.differs_from(found, args)));
        let (filter, capacity) = match stored.format {
            format if format == Format::NATIVE => {
                let opened = stored.open_native()?;
                let (params, contents) = (opened.params(), opened.contents());
                if opened.is_pass_all() || contents != FilterContents::WholeKeys {
                    let message = format!("takes no lines, as a filter of {contents}: {params}");
                    return Err(fail(message));
                }
                let capacity = match (capacity(params, &wanted, args), wanted) {
                    (Some(capacity), _) => capacity,
                    (None, Some(wanted)) => return differs(wanted, &describe(params)),
                    (None, None) => likely_keys(params),
                };
                let filter = opened.to_filter().map_err(|error| fail(error.to_string()))?;
                (Filter::Fixed(filter, opened.keys_inserted()), capacity)
            }
            format if format == Format::GROWING => {
                let opened = ScalableBloomFilter::from_bytes_any_hash(&stored.bytes[..])
                    .map_err(|error| stored.damaged(error))?;
                let rate = opened.false_positive_rate();
                match wanted {
                    Some(Shape::Growing(wanted)) if wanted == rate => {}
                    None => {}
                    Some(wanted) => return differs(wanted, &growing_at(rate)),
                }
                let filter = opened.to_filter().map_err(|error| fail(error.to_string()))?;
                (Filter::Growing(filter), u64::MAX)
            }
            format => {
                let others = "dedup goes on with native and growing ones";
                return Err(fail(format!("a filter of format {format}: {others}")));
            }
        };
        let seen = Self::from_filter(filter, capacity);
        seen.key_hash().hasher().map_err(|error| fail(error.to_string()))?;
        Ok(seen)
    }

    fn key_hash(&self) -> KeyHash {
        match &self.filter {
            Filter::Fixed(filter, _) => filter.key_hash(),
            Filter::Growing(filter) => filter.key_hash(),
        }
    }

    /// Adds lines.
    pub(super) fn insert(&mut self, lines: &[&[u8]]) -> Result<(), Failure> {
        match &mut self.filter {
            Filter::Fixed(filter, distinct) => {
                filter.insert_batch_new(lines, &mut self.new).map_err(Failure::new)?;
                *distinct += self.new.count_hits() as u64;
                self.losses.count(&self.new);
            }
            Filter::Growing(filter) => {
                let inserted = filter.insert_batch_new(lines, &mut self.new);
                inserted.map_err(|error| Failure::for_file("the filter cannot grow", error))?;
                self.losses.count(&self.new);
                self.losses.grow(filter.links());
            }
        }
        Ok(())
    }

    /// A bit for each line of the last call of [`insert`](Self::insert) that was certainly not seen
    /// before.
    pub(super) fn new_lines(&self) -> &Bitmask {
        &self.new
    }

    /// Distinct lines in the filter.
    fn distinct(&self) -> u64 {
        match &self.filter {
            Filter::Fixed(_, distinct) => *distinct,
            Filter::Growing(filter) => filter.keys_inserted(),
        }
    }

    /// How far the filter exceeds its purpose.
    pub(super) fn excess(&self) -> Excess {
        let (rate, made_for) = (self.losses.lower_bound(), SLACK * self.made_for);
        match () {
            () if rate > made_for.max(STOP_RATE) => Excess::Overfull,
            () if rate > made_for.max(WARNING_RATE) => Excess::HighRate,
            () if self.distinct() > self.capacity => Excess::Keys,
            () => Excess::None,
        }
    }

    /// What an excess means for new lines.
    pub(super) fn describe_excess(&self) -> String {
        let rate = percent(self.losses.rate());
        let is_full = match &self.filter {
            Filter::Fixed(..) => {
                format!("more than the {} distinct lines that the filter is for", self.capacity)
            }
            Filter::Growing(_) => "the filter grew beyond its rate".to_owned(),
        };
        format!("{is_full}: more than {rate} of all later new lines are dropped")
    }

    /// How many lines that were not seen have probably been taken for seen ones since the filter
    /// was made or opened, and the chance of that for the next one.
    pub(super) fn probably_wrong(&self) -> (f64, f64) {
        (self.losses.lost(), self.losses.rate())
    }

    /// Writes the filter, and prints a summary unless `quiet`.
    pub(super) fn save(&self, output: &Output, quiet: bool) -> Result<(), Failure> {
        let (distinct, rate) = (self.distinct(), percent(self.losses.rate()));
        let (bytes, left) = match &self.filter {
            Filter::Fixed(filter, _) => {
                (filter.memory_bytes(), format!(", for {} lines", self.capacity))
            }
            Filter::Growing(filter) => (filter.memory_bytes(), ", grows".to_owned()),
        };
        let summary = format!(
            "{distinct} distinct lines in {}{left}, {rate} false positives",
            BinaryBytes(bytes)
        );
        let write = |writer: &mut dyn Write| match &self.filter {
            Filter::Fixed(filter, distinct) => {
                let header = with_keys(filter.stored_header(), *distinct);
                writer.write_all(&header.map_err(io::Error::other)?)?;
                writer.write_all(filter.blocks().as_flattened())
            }
            Filter::Growing(filter) => filter.write_to(writer).map(drop),
        };
        output.save(&write)?;
        output.report(summary, quiet);
        Ok(())
    }
}

/// Of native filters.
const VERSION: u16 = 1;

/// The header of a native filter with another number of keys: `docs/format.md`.
fn with_keys(header: [u8; HEADER_BYTES], keys: u64) -> Result<[u8; HEADER_BYTES], HeaderError> {
    let mut header = Header::read(&header, MAGIC, VERSION)?;
    header.put(32, &keys.to_le_bytes());
    Ok(header.seal())
}

/// The requested shape of a filter.
enum Shape {
    /// With the keys that it is for.
    Fixed(Params),
    /// With the highest rate.
    Growing(f64),
}

impl Shape {
    fn from_args(args: &Args) -> Result<Self, Failure> {
        let rate = args.fpr.unwrap_or(DEFAULT_RATE);
        if rate >= 1.0 {
            return Err(Failure::new("--fpr 1 drops every line: give less"));
        }
        let by_rate = |keys| Sizing::FalsePositiveRate(rate).params(keys);
        let (keys, blocks) = match (args.memory, args.keys) {
            (Some(bytes), _) => {
                let blocks = max_blocks(bytes)?;
                by_rate(1).map_err(Failure::new)?;
                // The most lines that this many blocks are enough for.
                let (mut low, mut high) = (1, u64::from(blocks) * 512);
                while low < high {
                    let middle = low + (high - low).div_ceil(2);
                    match by_rate(middle) {
                        Ok(params) if params.blocks() <= blocks => low = middle,
                        _ => high = middle - 1,
                    }
                }
                (low, blocks)
            }
            (None, Some(keys)) => {
                let blocks = by_rate(keys).map_err(Failure::new)?.blocks();
                (keys, split_evenly(blocks.into(), |values, blocks| values / blocks))
            }
            (None, None) => return Ok(Shape::Growing(rate)),
        };
        let params = Sizing::MaxBytes(bytes_of(blocks)).params(keys);
        params.map(Shape::Fixed).map_err(Failure::new)
    }

    /// The problem with a filter of another shape, described by `found`.
    fn differs_from(&self, found: &str, args: &Args) -> String {
        let wanted = match self {
            Shape::Fixed(params) => describe(*params),
            Shape::Growing(rate) => growing_at(*rate),
        };
        let options = [
            ("--memory", args.memory.is_some()),
            ("--keys", args.keys.is_some()),
            ("--fpr", args.fpr.is_some()),
        ];
        let options = options.iter().filter(|option| option.1).map(|option| option.0);
        let options = options.collect::<Vec<_>>().join(" and ");
        format!(
            "{found}, but by {options} it would be {wanted}: leave {options} out to go on with it"
        )
    }
}

/// The error for a rate that is too low for a filter that grows, whose filters share it.
fn unreachable(rate: f64) -> Option<Failure> {
    let is_reached = |rate: &f64| {
        let options = FilterOptions::new(Sizing::FalsePositiveRate(*rate));
        ScalableOptions::for_filters(&options, 1).is_ok_and(|options| options.build().is_ok())
    };
    let lowest = (1..16).rev().map(|digits| 10_f64.powi(-digits)).find(is_reached);
    let lowest = lowest.filter(|&lowest| lowest > rate)?;
    Some(Failure::new(format!(
        "--fpr {rate:e} is out of reach of a filter that grows, whose filters share it: give \
         {lowest:e} or more"
    )))
}

fn describe(params: Params) -> String {
    format!("a filter of {} blocks and {} probes", params.blocks(), params.probes())
}

fn growing_at(rate: f64) -> String {
    format!("a filter that grows and has up to {} false positives", percent(rate))
}

fn bytes_of(blocks: u32) -> u64 {
    HEADER_BYTES as u64 + 64 * u64::from(blocks)
}

/// The blocks of the largest filter in this many bytes of memory.
fn max_blocks(bytes: u64) -> Result<u32, Failure> {
    match bytes / 64 {
        0 => Err(Failure::new(format!("--memory {bytes}: give 64 bytes or more"))),
        blocks @ ..=VALUES => Ok(split_evenly(blocks, u64::div_ceil)),
        _ => Err(Failure::new(format!("--memory {bytes}: a filter has 256 GiB at most"))),
    }
}

/// Values of the part of a hash that chooses the block.
const VALUES: u64 = 1 << 32;

/// Returns the number of blocks. Above 2^28 (16 GiB), it is rounded to a number for which every
/// block has the same share of the [`VALUES`]. `divide` rounds that share up or down.
///
/// With other numbers, some blocks would have one value more than others, of 16 or fewer, and the
/// rate would be higher than predicted. 17 of these numbers are above 2^28. With them, the filter
/// behaves like several filters of at most 16 GiB, selected by the first bits of the hash. The
/// price is unused memory: a 17th of 17 GiB, up to half of 255 GiB.
fn split_evenly(blocks: u64, divide: impl Fn(u64, u64) -> u64) -> u32 {
    let even = match blocks <= MAX_RECOMMENDED_BLOCKS.into() {
        true => blocks,
        false => VALUES / divide(VALUES, blocks),
    };
    u32::try_from(even).unwrap_or(u32::MAX)
}

/// Returns the number of keys for which a stored filter was sized, computed from the given options.
/// `None` if no options were given, or if they describe another filter.
fn capacity(params: Params, wanted: &Option<Shape>, args: &Args) -> Option<u64> {
    let is_it = |other: &Params| describe(*other) == describe(params);
    let bytes = Sizing::MaxBytes(bytes_of(params.blocks()));
    let fits = |keys: &u64| bytes.params(*keys).is_ok_and(|params| is_it(&params));
    if let Some(Shape::Fixed(wanted)) = wanted
        && is_it(wanted)
    {
        return Some(wanted.expected_items());
    }
    match (args.memory, args.keys, args.fpr) {
        (None, Some(keys), None) => Some(keys).filter(fits),
        (None, None, Some(rate)) => params.max_items(rate).ok().filter(fits),
        (Some(bytes), _, None) => {
            let blocks = max_blocks(bytes).ok()?;
            (blocks == params.blocks()).then(|| likely_keys(params))
        }
        _ => None,
    }
}

/// Estimates the number of keys that the filter was made for, which is not stored: the middle of
/// the numbers for which a filter of this size has as many probes.
fn likely_keys(params: Params) -> u64 {
    let [least, most] = [1, 0].map(|more| max_keys(params, params.probes() + more) as f64);
    (least * most).sqrt() as u64
}

/// The most keys for which a filter of this size has as many probes or more.
fn max_keys(params: Params, probes: u32) -> u64 {
    let bytes = Sizing::MaxBytes(bytes_of(params.blocks()));
    let (mut low, mut high) = (1, u64::from(params.blocks()) * 512);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match bytes.params(middle) {
            Ok(of) if of.blocks() == params.blocks() && of.probes() < probes => {
                high = middle - 1;
            }
            _ => low = middle,
        }
    }
    low
}

#[cfg(test)]
#[path = "../../tests/unit/seen.rs"]
mod tests;

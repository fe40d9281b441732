//! An open file: its bytes arrive range by range, and its description leaves as JSON.

use std::ops::RangeInclusive;

use blocked_bloom::{Bitmask, BloomFilter, KeyHash, Sizing};
use blocked_bloom_inspect::numbers::parse_count;
use blocked_bloom_inspect::{
    BadKey, BlockLoads, Content, EVIDENCE_BYTES, Error, FileRanges, Format, KeyEncoding,
    LookupOption, LookupOptions, Opened, PhysicalType, Prefix, Probe, Unrecognised, Value, Warning,
    encoding_hint, layout_of_version, recognise, type_of_name,
};

use crate::keys::{doubts, keys_of};
use crate::{Fault, Input, object};

/// Bars of the picture of the blocks' loads: one for four blocks, at most this many.
const BARS: RangeInclusive<u64> = 8..=64;

/// The file, and the filter in it once it is open.
///
/// Its bytes are never freed: an instance of the module is for one file, and is dropped with it.
#[derive(Default)]
pub(crate) struct File {
    name: String,
    ranges: Option<FileRanges<'static>>,
    opened: Option<Opened<'static>>,
    options: LookupOptions,
    encoding: KeyEncoding,
}

impl File {
    /// A file of this name and length, without any bytes so far.
    pub(crate) fn new(name: &[u8], length: u64) -> Self {
        let name = String::from_utf8_lossy(name).into_owned();
        File { name, ranges: Some(FileRanges::new(length)), ..File::default() }
    }

    /// A native filter of the keys `user0` to `user999`.
    pub(crate) fn example() -> Self {
        // A builder would add 10 KB to the page.
        let params = Sizing::BitsPerKey(10.0).params(1_000).ok();
        let filter = params.and_then(|params| {
            let mut filter = BloomFilter::with_params(params, KeyHash::default()).ok()?;
            (0..1_000).try_for_each(|key| filter.insert(format!("user{key}")).map(drop)).ok()?;
            Some(filter)
        });
        let stored = filter.map(|filter| filter.to_bytes()).unwrap_or_default();
        let mut file = File::new(b"example.bloom", stored.len() as u64);
        file.insert(0, stored);
        file
    }

    /// Bytes of the file at an offset.
    pub(crate) fn insert(&mut self, offset: u64, bytes: Vec<u8>) {
        if let Some(ranges) = &mut self.ranges {
            ranges.insert(offset, bytes.leak());
        }
    }

    /// Opens and describes it, as the `format` and `version` of Cassandra that the input gives, or
    /// as recognised: `needs` is a list of ranges without which it cannot go on. Opening it again
    /// describes filters that came since.
    pub(crate) fn open(&mut self, input: &Input<'_>) -> Result<Value, Fault> {
        let ranges = self.ranges.as_ref().ok_or_else(|| Fault::new("file", "no file is open"))?;
        let format = match input.text("format") {
            Some(name) => name.parse().map_err(|error| Fault::new("format", error))?,
            None => {
                let ends = EVIDENCE_BYTES.min(ranges.len());
                let pieces = [(0, ends), (ranges.len() - ends, ends)];
                let [Some(head), Some(tail)] =
                    pieces.map(|(offset, length)| ranges.get(offset, length))
                else {
                    return Ok(needs(&pieces));
                };
                match recognise(&self.name, head, tail, Some(ranges.len())) {
                    Ok(format) => format,
                    Err(error) => return Ok(unrecognised(&error, head)),
                }
            }
        };
        let version = input.text("version");
        let layout = version
            .map(layout_of_version)
            .transpose()
            .map_err(|error| Fault::new("version", error))?;
        match Opened::new(&self.name, ranges, format, layout) {
            Err(Error::NotLoaded { offset, length }) => Ok(needs(&[(offset, length)])),
            Err(error) => {
                let message = error.message();
                let is_layout = message.option() == Some(LookupOption::Layout);
                let about = is_layout.then_some("version");
                let error = message.to_string();
                Ok(object! { "format": format.name(), "field": about, "error": error })
            }
            Ok(opened) => {
                let json = description(&opened);
                self.opened = Some(opened);
                Ok(json)
            }
        }
    }

    fn opened(&self) -> Result<&Opened<'static>, Fault> {
        self.opened.as_ref().ok_or_else(|| Fault::new("file", "no file is open"))
    }

    /// Which ranges the filters of the input's `column` need, or those of all columns; an empty
    /// list if they are there.
    pub(crate) fn missing(&self, input: &Input<'_>) -> Result<Value, Fault> {
        Ok(needs(&self.opened()?.missing(input.text("column"))))
    }

    /// How full the blocks of the input's `part` are.
    pub(crate) fn loads(&self, input: &Input<'_>) -> Result<Value, Fault> {
        let part = input.parse("part", "0", parse_count)?;
        let loads = self.opened()?.block_loads(usize::try_from(part).unwrap_or(usize::MAX));
        Ok(loads.map_or(Value::Null, |loads| bars(&loads)))
    }

    /// Sets the options of the next lookups: `column`, `row_groups`, `type`, `prefix` and `keys` of
    /// the input.
    pub(crate) fn choose(&mut self, input: &Input<'_>) -> Result<Value, Fault> {
        let mut options = LookupOptions::default();
        options.column = input.text("column").map(str::to_owned);
        options.row_groups = input.parse("row_groups", "", row_groups)?;
        options.value_type = input
            .text("type")
            .map(value_type)
            .transpose()
            .map_err(|error| Fault::new("type", error))?;
        options.prefix = input
            .text("prefix")
            .map(str::parse::<Prefix>)
            .transpose()
            .map_err(|error| Fault::new("prefix", error))?;
        let encoding = input.parse("keys", "text", str::parse::<KeyEncoding>)?;
        options.encoded = encoding != KeyEncoding::Text;
        let warnings = match self.opened()?.lookup(&options) {
            Err(Error::NotLoaded { offset, length }) => return Ok(needs(&[(offset, length)])),
            Err(error) => return Err(Fault::new("options", error)),
            Ok(lookup) => texts(lookup.warnings()),
        };
        (self.options, self.encoding) = (options, encoding);
        Ok(object! { "warnings": warnings })
    }

    /// Looks up lines: `answers` is a text of a 1 for each that may be there, and of a 0 for each
    /// that is certainly absent.
    pub(crate) fn lookup(&self, lines: &[u8]) -> Result<Value, Fault> {
        let keys = keys_of(lines, self.encoding)?;
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let opened = self.opened()?;
        let fault = |error: Error| Fault::new("options", error);
        let lookup = opened.lookup(&self.options).map_err(fault)?;
        let bad = |BadKey { index, problem, .. }| {
            Fault::new("line", format!("line {}: {}", index + 1, problem))
        };
        let mut hits = Bitmask::new();
        lookup.contains_batch(&keys, &mut hits).map_err(bad)?;
        let answers: String = hits.iter().map(|hit| if hit { '1' } else { '0' }).collect();
        let mut warnings = texts(&lookup.doubts(&keys, &hits));
        warnings.extend(doubts(&keys).filter(|_| self.encoding == KeyEncoding::Text));
        if self.is_own_filter()
            && let Ok(texts) = keys_of(lines, KeyEncoding::Text)
            && let Ok(Some((found, name))) = encoding_hint(&lookup, &texts, self.encoding)
        {
            let few = match hits.count_hits() {
                0 => "No key is".to_owned(),
                keys => format!("{keys} are"),
            };
            let given = if self.encoding == KeyEncoding::Text { "text" } else { "chosen" };
            warnings.push(format!(
                "{few} found as {given}, and {found} of {} as {name}: if the filter was built from \
                 such values, choose {name} under “Keys are”.",
                keys.len()
            ));
        }
        let row_groups = match &self.options.column {
            Some(name) => {
                let column = opened
                    .column(name, &self.options.row_groups)
                    .map_err(|error| Fault::new("column", error))?;
                let needed = column.row_groups_to_read(&keys, self.options.encoded).map_err(bad)?;
                object! { "of": column.row_groups().len(), "needed": needed }
            }
            None => Value::Null,
        };
        Ok(object! { "answers": answers, "warnings": warnings, "row_groups": row_groups })
    }

    /// Whether keys are looked up in a filter of this project, which may hold any bytes.
    fn is_own_filter(&self) -> bool {
        let own =
            [Format::NATIVE, Format::COMPACT, Format::GROWING, Format::RIBBON, Format::REMOVABLE];
        let is_own = self.opened.as_ref().is_some_and(|opened| own.contains(&opened.format()));
        is_own && self.options.prefix.is_none()
    }

    /// Where a single line is looked up: block and bits in each filter.
    pub(crate) fn probes(&self, line: &[u8]) -> Result<Value, Fault> {
        let keys = keys_of(line, self.encoding)?;
        let Some(key) = keys.first() else { return Ok(Value::List(Vec::new())) };
        let probes = self.opened()?.probes(key, &self.options);
        let probes = probes.map_err(|error| Fault::new("line", error))?;
        Ok(Value::List(probes.iter().map(probe).collect()))
    }
}

fn texts(warnings: &[Warning]) -> Vec<String> {
    warnings.iter().map(|warning| warning.to_string()).collect()
}

fn needs(ranges: &[(u64, u64)]) -> Value {
    object! { "needs": pairs(ranges) }
}

/// Offsets and lengths, of ranges that are not empty.
fn pairs(ranges: &[(u64, u64)]) -> Value {
    let ranges = ranges.iter().filter(|range| range.1 > 0);
    Value::List(ranges.map(|&(offset, length)| Value::from(vec![offset, length])).collect())
}

fn unrecognised(error: &Unrecognised, head: &[u8]) -> Value {
    let content = Content::from_head(head);
    let text = content.map(|content| match content.command() {
        Some(command) => format!("It is {}: unpack it first ({command}).", content.description()),
        None => format!("It is {}, not a filter.", content.description()),
    });
    object! {
        "error": match content {
            Some(_) => "not a file that this page reads".to_owned(),
            None => error.to_string(),
        },
        "content": text,
        "is_redis": head.starts_with(b"REDIS0"),
        "field": "format",
        "like": matches!(error, Unrecognised::LooksCompact).then_some("compact"),
        "text": *error == Unrecognised::Text,
    }
}

fn description(opened: &Opened<'_>) -> Value {
    let facts = opened.describe();
    let columns = opened.columns_with_filters();
    let rows =
        facts.rows.iter().map(|(name, value)| Value::from(vec![*name, value.as_str()])).collect();
    let list = facts.list.as_ref().map(|list| {
        let lines = list.lines.iter().map(|line| Value::from(line.clone())).collect();
        object! { "words": list.words, "heads": list.heads.clone(), "lines": Value::List(lines) }
    });
    object! {
        "format": opened.format().name(),
        "facts": facts.json(),
        "rows": Value::List(rows),
        "list": list,
        "damage": facts.damage.as_ref().map(ToString::to_string),
        "columns": columns.names,
        "more_columns": columns.more,
        "parts": opened.parts(),
        "missing": pairs(&opened.missing(None)),
    }
}

/// The bars of the picture, each of equally many loads, from the first load that counts to the
/// last.
fn bars(loads: &BlockLoads) -> Value {
    let expected = |load: usize| loads.expected.get(load).copied().unwrap_or(0.0);
    let counts = |load: &usize| loads.histogram[*load] > 0 || expected(*load) > 0.5;
    let all = 0..loads.histogram.len();
    let from = all.clone().find(counts).unwrap_or(0);
    let to = all.rev().find(counts).unwrap_or(0) + 1;
    let bars = (loads.blocks / 4).clamp(*BARS.start(), *BARS.end());
    let step = (to - from).div_ceil(bars as usize).max(1);
    let starts: Vec<usize> = (from..to).step_by(step).collect();
    let bar = |start: usize| start..(start + step).min(loads.histogram.len());
    let counted = starts.iter().map(|&start| loads.histogram[bar(start)].iter().sum::<u64>());
    let even = starts.iter().map(|&start| bar(start).map(expected).sum::<f64>());
    object! {
        "block_bits": loads.block_bits,
        "blocks": loads.blocks,
        "probes": loads.probes,
        "fill_ratio": loads.fill_ratio,
        "from": from,
        "step": step,
        "counted": counted.collect::<Vec<_>>(),
        "expected": even.collect::<Vec<_>>(),
    }
}

fn probe(probe: &Probe) -> Value {
    let bits = probe.bits.iter().map(|&(bit, is_set)| Value::List(vec![bit.into(), is_set.into()]));
    object! {
        "part": probe.part,
        "block": probe.block,
        "bytes": probe.bytes.clone(),
        "bits": Value::List(bits.collect()),
        "hit": probe.is_hit(),
    }
}

fn value_type(name: &str) -> Result<PhysicalType, String> {
    type_of_name(name).ok_or_else(|| format!("unknown type {name}"))
}

/// Numbers separated by commas; no number means all.
fn row_groups(text: &str) -> Result<Vec<usize>, String> {
    let numbers = text.split(',').map(str::trim).filter(|number| !number.is_empty());
    let numbers: Result<Vec<usize>, _> = numbers.map(str::parse).collect();
    numbers.map_err(|_| "give numbers such as 0,2, or nothing for all".to_owned())
}

/// The formats that a file may be read as.
pub(crate) fn formats(_: &Input<'_>) -> Result<Value, Fault> {
    Ok(Value::from(Format::ALL.map(Format::name).to_vec()))
}

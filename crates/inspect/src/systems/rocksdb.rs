//! RocksDB's filters: a filter block alone, or an SST file.

use blocked_bloom::{Filter, Kernel};
use blocked_bloom_formats::rocksdb::{
    ChecksumKind, FilterBlock, FilterKind, FilterLayout, RocksdbError, SST_MAGICS, SstFilter,
    hash_key,
};

use crate::blocks::Part;
use crate::error::{Error, Warning};
use crate::facts::{Bits, Facts, List, Summary, bits, kernel, sizes};
use crate::message::{LookupOption, Message};
use crate::numbers::percent;
use crate::options::{LookupOptions, Prefix};
use crate::system::{
    Answers, Evidence, Format, LookupContext, Mark, Source, Stored, System, answers,
    look_up_singly, pass_all,
};
use crate::value::{Value, object};

impl Format {
    /// A filter block of RocksDB, without the SST file around it.
    pub const ROCKSDB_BLOCK: Format = Format::new(&System {
        recognise: recognise_block,
        ..System::new(
            "rocksdb-block",
            "A filter block of RocksDB, without the SST file around it",
            "ends with ff 00 k 00 00 after a multiple of 64 bytes; LegacyBloom and Ribbon have no \
             mark",
            |source| source.boxed(FilterBlock::from_bytes(source.bytes()?)),
        )
    });
    /// An SST file of RocksDB and the filter in it.
    pub const ROCKSDB_SST: Format = Format::new(&System {
        recognise: recognise_sst,
        extension: Some("sst"),
        options: &[LookupOption::Prefix],
        ..System::new(
            "rocksdb-sst",
            "An SST file of RocksDB, with the filter in it",
            "ends with a magic number",
            open_sst,
        )
    });
}

/// Recognises a FastLocalBloom block. Hardly any other file has the same end, except an SST file
/// that is cut off after its filter.
fn recognise_block(file: &Evidence<'_>) -> Option<Mark> {
    let (tail, length) = file.end.filter(|_| !file.is_container)?;
    let is_trailer = matches!(tail, [.., 0xff, 0, 1..=30, 0, 0]);
    let is_marked = is_trailer && length > 5 && (length - 5).is_multiple_of(64);
    is_marked.then_some(Mark::Trailer)
}

impl Stored for FilterBlock<&[u8]> {
    fn describe(&self, about: &Summary) -> Facts {
        let block = Block::new(self);
        let mut rows = vec![("format", about.format.to_owned())];
        rows.extend(block.rows());
        rows.push(("checksum", "none: it is in the SST file".to_owned()));
        Facts::new(about, block.json(), rows)
    }

    fn lookup<'o>(&'o self, wanted: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        wanted.warnings.extend(warn_pass_all_blocks([self].into_iter()));
        answers(|keys, hits| self.contains_batch(keys, hits))
    }

    fn parts(&self) -> usize {
        1
    }

    fn part(&self, part: usize) -> Option<Part<'_>> {
        self.view().filter(|_| part == 0).map(Part::Bloom)
    }

    fn places(&self, key: &[u8], _: &LookupOptions) -> Option<Vec<(usize, u64)>> {
        Some(vec![(0, hash_key(key))])
    }
}

fn recognise_sst(file: &Evidence<'_>) -> Option<Mark> {
    let (tail, _) = file.end?;
    let is_marked = SST_MAGICS.iter().any(|magic| tail.ends_with(&magic.to_le_bytes()));
    is_marked.then_some(Mark::MagicAtEnd)
}

fn open_sst<'a>(source: &Source<'_, 'a>) -> Result<Box<dyn Stored + 'a>, Error> {
    match SstFilter::open_ranges(source.file) {
        Err(RocksdbError::NotLoaded { offset, length }) => Err(Error::NotLoaded { offset, length }),
        opened => source.boxed(opened),
    }
}

impl Stored for SstFilter<&[u8]> {
    fn describe(&self, about: &Summary) -> Facts {
        let blocks: Vec<Block> = self.filter_blocks().map(Block::new).collect();
        let bytes: u64 = blocks.iter().map(|block| block.bytes).sum();
        let entries = self.filter_entries();
        let bits_per_entry = match entries {
            Some(entries) if entries > 0 && bytes > 0 => Some(8.0 * bytes as f64 / entries as f64),
            _ => None,
        };
        let json = object! {
            "stored_bytes": about.length,
            "format_version": self.format_version(),
            "checksum": self.checksum_kind().to_string(),
            "layout": match self.layout() {
                FilterLayout::None => "none",
                FilterLayout::Full => "full",
                FilterLayout::Partitioned => "partitioned",
                FilterLayout::PerDataBlock => "per data block",
                _ => "other policy",
            },
            "filter_policy": self.filter_policy(),
            "filter_bytes": bytes,
            "filter_entries": entries,
            "bits_per_entry": bits_per_entry,
            "whole_keys": self.whole_keys(),
            "prefix_extractor": self.prefix_extractor(),
            "comparator": self.comparator(),
            "range_deletions": self.range_deletions(),
            "filter_blocks": blocks.iter().map(Block::json).collect::<Vec<Value>>(),
        };

        let text = |text: Option<&str>| text.unwrap_or("not in the file").to_owned();
        let number = |number: Option<u64>| match number {
            Some(number) => number.to_string(),
            None => "not in the file".to_owned(),
        };
        let whole_keys = match self.whole_keys() {
            Some(true) => "in the filter",
            Some(false) => "not in the filter",
            None => "not said: keys are answered \"maybe\"",
        };
        let checksum = match self.checksum_kind() {
            ChecksumKind::None => "none: damage cannot be seen".to_owned(),
            kind => format!("{kind}, ok in every block that leads to the filter and in its own"),
        };
        let prefixes = match self.prefix_extractor() {
            Some(name) => format!("in the filter, by {name}"),
            None => "not in the filter".to_owned(),
        };
        let mut rows = vec![
            ("format", format!("{}, version {}", about.format, self.format_version())),
            ("stored size", sizes(about.length)),
            ("checksum", checksum),
            ("filter", layout_text(self.layout()).to_owned()),
            ("filter policy of the writer", text(self.filter_policy())),
            ("filter size", sizes(bytes)),
            ("filter entries", number(entries)),
            (
                "bits per entry",
                bits_per_entry.map_or("not known".to_owned(), |bits| format!("{bits:.2}")),
            ),
            ("whole keys", whole_keys.to_owned()),
            ("prefixes", prefixes),
            ("comparator", text(self.comparator())),
            ("range deletions, in no filter", number(self.range_deletions())),
        ];
        let mut list = None;
        match &blocks[..] {
            [] => {}
            [block] if self.layout() == FilterLayout::Full => {
                rows.extend(block.rows().into_iter().filter(|row| row.0 != "stored size"));
            }
            _ => {
                rows.push(("partitions", blocks.len().to_string()));
                match blocks.len() <= MAX_LISTED {
                    true => list = Some(partitions(&blocks)),
                    false => rows.extend(summary(&blocks)),
                }
                if blocks.iter().any(Block::is_for_kernels) {
                    rows.push(("kernel here", kernel()));
                }
            }
        }
        Facts { list, ..Facts::new(about, json, rows) }
    }

    fn lookup<'o>(&'o self, wanted: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        if let Some(warning) = unanswered(self, wanted.options.prefix.as_ref()) {
            wanted.warnings.push(warning);
            return pass_all();
        }
        wanted.warnings.extend(warn_pass_all_blocks(self.filter_blocks()));
        match wanted.options.prefix {
            None => answers(|keys, hits| self.contains_batch(keys, hits)),
            Some(_) => answers(|keys, hits| {
                look_up_singly(keys, hits, |start| self.contains_prefix(start));
            }),
        }
    }

    fn parts(&self) -> usize {
        self.filter_blocks().count()
    }

    fn part(&self, part: usize) -> Option<Part<'_>> {
        self.filter_blocks().nth(part)?.view().map(Part::Bloom)
    }

    fn places(&self, key: &[u8], _: &LookupOptions) -> Option<Vec<(usize, u64)>> {
        let hash = hash_key(key);
        Some(match self.partition(key) {
            Some(partition) => vec![(partition, hash)],
            None => (0..self.filter_blocks().count()).map(|part| (part, hash)).collect(),
        })
    }
}

/// Returns why the filter has no answers for whole keys, or for prefixes.
fn unanswered(filter: &SstFilter<&[u8]>, prefix: Option<&Prefix>) -> Option<Warning> {
    let own = filter.prefix_extractor();
    let extractor = own.unwrap_or_default();
    let problem = match (prefix, own) {
        _ if filter.filter_blocks().next().is_none() => {
            format!("the file has {}", layout_text(filter.layout()))
        }
        (None, _) if filter.whole_keys() == Some(true) => return None,
        (None, Some(_)) => {
            let message = Message::naming(
                format_args!("the filter has only prefixes by {extractor}: give "),
                LookupOption::Prefix,
                " own: the answer is \"maybe\" for every key",
            );
            return Some(Warning::new(message, true));
        }
        (None, None) => "the file does not say whether whole keys are in its filter".to_owned(),
        (Some(_), None) => "the filter has no prefixes".to_owned(),
        (Some(Prefix::FromFile), Some(_)) if filter.knows_its_extractor() => return None,
        (Some(Prefix::FromFile), Some(_)) => {
            format!("the filter has prefixes by {extractor}, which is not known here")
        }
        (Some(Prefix::Rule(rule)), Some(own))
            if name_in_rocksdb(rule.name()).as_deref() == Some(own) =>
        {
            return None;
        }
        (Some(Prefix::Rule(rule)), Some(_)) => {
            format!("the filter has prefixes by {extractor}, not by {rule}")
        }
    };
    Some(Warning::pass_all(problem))
}

/// Returns RocksDB's name for a rule of this crate.
fn name_in_rocksdb(rule: &str) -> Option<String> {
    let (kind, bytes) = rule.split_once(':')?;
    match kind {
        "fixed" => Some(format!("rocksdb.FixedPrefix.{bytes}")),
        "capped" => Some(format!("rocksdb.CappedPrefix.{bytes}")),
        _ => None,
    }
}

/// Returns the warning about blocks that answer "maybe" for every key, if there are any.
fn warn_pass_all_blocks<'a, D: AsRef<[u8]> + 'a>(
    filters: impl Iterator<Item = &'a FilterBlock<D>>,
) -> Option<Warning> {
    use FilterKind::{FastLocalBloom, LegacyBloom, NoKeys};
    let (mut all, mut blocks, mut kind) = (0, 0, "");
    for block in filters {
        all += 1;
        let is_bloom = matches!(block.kind(), FastLocalBloom { .. } | LegacyBloom { .. } | NoKeys);
        if !is_bloom && block.ribbon().is_none() {
            (blocks, kind) = (blocks + 1, Block::new(block).kind);
        }
    }
    match (blocks, all) {
        (0, _) => None,
        (1, 1) => Some(Warning::pass_all(format_args!("the filter is {kind}"))),
        _ => {
            let text = format!(
                "{blocks} of {all} partitions are {kind}: their answer is \"maybe\" for every key"
            );
            Some(Warning::new(Message::new(text), blocks == all))
        }
    }
}

const FAST: &str = "FastLocalBloom";
const RIBBON: &str = "Ribbon";

/// The description of a filter block.
struct Block {
    kind: &'static str,
    bytes: u64,
    probes: Option<u8>,
    lines: Option<u32>,
    line_bytes: Option<u32>,
    /// `None` if every answer is "maybe", and for Ribbon.
    bits: Option<Bits>,
    /// Columns of a Ribbon filter, and the resulting rate.
    ribbon: Option<(u32, f64)>,
}

impl Block {
    fn new<D: AsRef<[u8]>>(block: &FilterBlock<D>) -> Self {
        let kind = |kind| Block {
            kind,
            bytes: block.as_bytes().len() as u64,
            probes: None,
            lines: None,
            line_bytes: None,
            bits: None,
            ribbon: block
                .ribbon()
                .map(|ribbon| (ribbon.columns(), ribbon.expected_false_positive_rate())),
        };
        match block.kind() {
            FilterKind::FastLocalBloom { probes, blocks } => Block {
                probes: Some(probes),
                lines: Some(blocks),
                line_bytes: Some(64),
                bits: block.view().map(|view| bits!(view)),
                ..kind(FAST)
            },
            FilterKind::LegacyBloom { probes, lines, line_bytes } => Block {
                probes: Some(probes),
                lines: Some(lines),
                line_bytes: Some(line_bytes),
                bits: Some(legacy_bits(block.as_bytes(), probes, line_bytes as usize)),
                ..kind("LegacyBloom")
            },
            FilterKind::Ribbon { .. } => kind(RIBBON),
            FilterKind::PassAll => kind("pass-all"),
            FilterKind::NoKeys => Block {
                bits: Some(Bits { fill_ratio: 0.0, keys: Some(0), false_positive_rate: 0.0 }),
                ..kind("no keys")
            },
            FilterKind::Reserved { .. } => kind("of a kind that RocksDB reserves"),
            _ => kind("of a kind that is not known here"),
        }
    }

    /// Returns the rate of "maybe" answers for absent keys.
    fn rate(&self) -> f64 {
        let ribbon = self.ribbon.map_or(1.0, |(_, rate)| rate);
        self.bits.map_or(ribbon, |bits| bits.false_positive_rate)
    }

    fn json(&self) -> Value {
        object! {
            "kind": self.kind,
            "stored_bytes": self.bytes,
            "probes": self.probes,
            "lines": self.lines,
            "line_bytes": self.line_bytes,
            "solution_columns": self.ribbon.map(|(columns, _)| columns),
            "fill_ratio": self.bits.map(|bits| bits.fill_ratio),
            "estimated_keys": self.bits.and_then(|bits| bits.keys),
            "estimated_false_positive_rate": self.rate(),
            "kernel": self.is_for_kernels().then(|| Kernel::default().name()),
        }
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![("kind", self.kind.to_owned()), ("stored size", sizes(self.bytes))];
        rows.extend(self.probes.map(|probes| ("probes", probes.to_string())));
        let lines = self.lines.zip(self.line_bytes);
        rows.extend(lines.map(|(lines, bytes)| ("lines", format!("{lines} of {bytes} bytes"))));
        match (&self.bits, self.ribbon) {
            (None, Some((columns, rate))) => rows.extend([
                ("columns", columns.to_string()),
                ("false positives, from the shape", percent(rate)),
            ]),
            (None, None) => {
                rows.push(("false positives here", "all: every answer is \"maybe\"".to_owned()))
            }
            (Some(bits), _) => rows.extend([
                ("distinct keys, estimated", bits.keys()),
                ("fill ratio", bits.fill()),
                ("false positives, from the bits", bits.rate()),
            ]),
        }
        if self.is_for_kernels() {
            rows.push(("kernel here", kernel()));
        }
        rows
    }

    fn is_for_kernels(&self) -> bool {
        self.kind == FAST || self.ribbon.is_some()
    }

    fn cells(&self) -> Vec<String> {
        let number = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
        let keys = self.bits.map(|bits| match bits.keys {
            Some(keys) => keys.to_string(),
            None => "saturated".to_owned(),
        });
        vec![
            self.kind.to_owned(),
            self.bytes.to_string(),
            number(self.probes.map(|probes| probes.to_string())),
            number(self.lines.map(|lines| lines.to_string())),
            number(self.bits.map(|bits| percent(bits.fill_ratio))),
            number(keys),
            percent(self.rate()),
        ]
    }
}

/// Estimates from the bits of a LegacyBloom block, with the same formulas as for FastLocalBloom.
/// The rate follows from the fill alone. The 32-bit hash makes it higher in filters with many
/// millions of keys; coinciding probes of a key make the rate and the number of keys lower.
fn legacy_bits(block: &[u8], probes: u8, line_bytes: usize) -> Bits {
    let (probes, bits) = (f64::from(probes), 8.0 * line_bytes as f64);
    let (mut lines, mut fills, mut logs, mut rates) = (0.0, 0.0, 0.0, 0.0);
    // The five bytes after the last line are the trailer.
    for line in block[..block.len() - 5].chunks(line_bytes) {
        let ones: u32 = line.iter().map(|byte| byte.count_ones()).sum();
        let fill = f64::from(ones) / bits;
        lines += 1.0;
        fills += fill;
        logs += (-fill).ln_1p();
        rates += fill.powf(probes);
    }
    let keys = logs / (-1.0 / bits).ln_1p() / probes;
    Bits {
        fill_ratio: fills / lines,
        keys: keys.is_finite().then(|| keys.round() as u64),
        false_positive_rate: rates / lines,
    }
}

fn layout_text(layout: FilterLayout) -> &'static str {
    match layout {
        FilterLayout::None => "no filter",
        FilterLayout::Full => "one filter for the whole file",
        FilterLayout::Partitioned => "a partitioned filter",
        FilterLayout::PerDataBlock => {
            "only a filter per data block, which RocksDB dropped in 2022 and which is not read here"
        }
        FilterLayout::OtherPolicy => "only a filter by a policy that is not RocksDB's own",
        _ => "a filter that is not known here",
    }
}

/// Number of partitions to list. More partitions are only summed up.
const MAX_LISTED: usize = 32;

fn partitions(blocks: &[Block]) -> List {
    let heads =
        ["partition", "bytes", "probes", "lines", "fill", "keys, estimated", "false positives"];
    let mut list = List::new(1, &heads);
    list.lines.extend(blocks.iter().map(Block::cells));
    list
}

fn summary(blocks: &[Block]) -> Vec<(&'static str, String)> {
    let range = |of: &dyn Fn(&Block) -> f64| {
        let values = || blocks.iter().map(of);
        let mean = values().sum::<f64>() / blocks.len() as f64;
        let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
        format!("{} on average, {} to {}", percent(mean), percent(low), percent(high))
    };
    let mut kinds: Vec<&str> = blocks.iter().map(|block| block.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let keys: Option<u64> = blocks.iter().map(|block| block.bits?.keys).sum();
    let fill = |block: &Block| block.bits.map_or(1.0, |bits| bits.fill_ratio);
    vec![
        ("kind", kinds.join(", ")),
        ("distinct keys, estimated", keys.map_or("not known".to_owned(), |keys| keys.to_string())),
        ("fill ratio", range(&fill)),
        ("false positives, from the bits", range(&Block::rate)),
    ]
}

#[cfg(test)]
mod tests {
    use blocked_bloom_formats::rocksdb::{FilterBlock, FilterBlockBuilder};

    use super::{Block, summary};

    #[test]
    fn many_partitions_are_summed_up() {
        let mut builder = FilterBlockBuilder::new(10.0).unwrap();
        (0..1_000_u32).for_each(|key| builder.insert(key.to_le_bytes()));
        let bytes = builder.finish().unwrap();
        let block = FilterBlock::from_bytes(&bytes[..]).unwrap();
        let rows = |blocks: &[FilterBlock<&[u8]>]| {
            let blocks: Vec<Block> = blocks.iter().map(Block::new).collect();
            summary(&blocks).into_iter().map(|(_, value)| value).collect::<Vec<_>>()
        };
        let keys = block.view().unwrap().estimated_keys().unwrap();
        let same = rows(&[block; 40]);
        assert_eq!((&same[0][..], &same[1]), ("FastLocalBloom", &(40 * keys).to_string()));
        let mixed = rows(&[block, FilterBlock::pass_all()]);
        assert_eq!((&mixed[0][..], &mixed[1][..]), ("FastLocalBloom, pass-all", "not known"));
        assert!(mixed[3].starts_with("50.") && mixed[3].ends_with("to 100.000 %"), "{}", mixed[3]);
    }
}

//! This project's native format: `docs/format.md`.

use blocked_bloom::parts::MAGIC;
use blocked_bloom::{
    BloomFilter, FilterContents, Kernel, KeyHash, PrefixExtractor, Stored as Blocks,
};

use super::sealed::{self, Sealed};
use crate::blocks::Part;
use crate::error::{Damage, Error, Warning};
use crate::facts::{Facts, Summary, bits, hash_parts, hex, kernel, kernels, sizes};
use crate::message::{LookupOption, Message};
use crate::numbers::percent;
use crate::options::Prefix;
use crate::system::{Answers, Format, LookupContext, Source, Stored, System, answers};
use crate::value::object;

impl Format {
    /// A Bloom filter of this project, with its header.
    pub const NATIVE: Format = Format::new(&System {
        length: Some(|head| sealed::length(BloomFilter::from_bytes_trusted_any_hash(head).err())),
        options: &[LookupOption::Prefix],
        ..System::native("native", "A Bloom filter of this project", MAGIC, open)
    });
}

fn open<'a>(source: &Source<'_, 'a>) -> Result<Box<dyn Stored + 'a>, Error> {
    let opened: Result<Native<'a>, _> = Sealed::open(
        source.bytes()?,
        BloomFilter::from_bytes_any_hash,
        BloomFilter::from_bytes_trusted_any_hash,
    );
    source.boxed(opened)
}

const VERSION: u16 = 1;

/// Offset of the probe scheme in the header.
const PROBE_SCHEME: usize = 10;

type Native<'a> = Sealed<'a, BloomFilter<Blocks<&'a [u8]>>>;

impl Stored for Native<'_> {
    fn describe(&self, about: &Summary) -> Facts {
        describe(about, self)
    }

    fn damage(&self) -> Option<Damage> {
        self.seal.damage()
    }

    fn hash_of_keys(&self) -> Option<KeyHash> {
        Some(self.filter.key_hash())
    }

    fn lookup<'o>(&'o self, wanted: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        let filter = &self.filter;
        if let Some(warning) = unanswered(filter.contents(), wanted.options.prefix.as_ref())?
            && !filter.is_pass_all()
        {
            wanted.warnings.push(warning);
        }
        match wanted.options.prefix.clone() {
            Some(Prefix::Rule(rule)) => {
                answers(move |keys, hits| filter.contains_prefix_batch(&rule, keys, hits))
            }
            _ => answers(|keys, hits| filter.contains_batch(keys, hits)),
        }
    }

    fn parts(&self) -> usize {
        1
    }

    fn part(&self, part: usize) -> Option<Part<'_>> {
        (part == 0).then(|| Part::Bloom(self.filter.view()))
    }
}

/// Returns why filters with these contents have no answers for whole keys, or for prefixes.
pub(super) fn unanswered(
    contents: FilterContents,
    prefix: Option<&Prefix>,
) -> Result<Option<Warning>, Error> {
    let looked_up = match prefix {
        None if contents.whole_keys() => return Ok(None),
        None => "keys".to_owned(),
        Some(Prefix::FromFile) => {
            return Err(Error::Options(Message::new(
                "the filter has no more than a hash of its rule's name: give the rule that it was \
                 built with, not own",
            )));
        }
        Some(Prefix::Rule(rule)) if contents.extractor() == Some(rule.id()) => return Ok(None),
        Some(Prefix::Rule(rule)) => format!("prefixes by {rule} (extractor {:016x})", rule.id()),
    };
    let problem = format_args!("the filter holds {contents}, not {looked_up}");
    Ok(Some(Warning::pass_all(problem)))
}

fn describe(about: &Summary, sealed: &Native<'_>) -> Facts {
    let filter = &sealed.filter;
    let (params, contents) = (filter.params(), filter.contents());
    // The header was verified when the filter was opened.
    let probe_scheme = sealed.seal.bytes.get(PROBE_SCHEME).copied();
    let bits = (!sealed.seal.is_damaged()).then(|| bits!(filter));
    let (hash, seed, tag) = hash_parts(filter.key_hash());
    let json = object! {
        "format_version": VERSION,
        "probe_scheme": probe_scheme,
        "pass_all": params.is_pass_all(),
        "hash": hash,
        "seed": seed,
        "tag": tag,
        "whole_keys": contents.whole_keys(),
        "prefix_extractor": contents.extractor().map(hex),
        "stored_bytes": params.stored_bytes(),
        "blocks": params.blocks(),
        "probes": params.probes(),
        "keys_inserted": params.expected_items(),
        "bits_per_key": params.bits_per_key(),
        "fill_ratio": bits.as_ref().map(|bits| bits.fill_ratio),
        "estimated_keys": bits.as_ref().and_then(|bits| bits.keys),
        "predicted_false_positive_rate": params.false_positive_rate(),
        "estimated_false_positive_rate": bits.as_ref().map(|bits| bits.false_positive_rate),
        "header_checksum_ok": true,
        "header_checksum": hex(sealed.seal.header_checksum()),
        "block_checksum_ok": bits.is_some(),
        "block_checksum_stored": hex(sealed.seal.stored_checksum()),
        "block_checksum_computed": hex(sealed.seal.computed_checksum()),
        "kernel": Kernel::default().name(),
        "kernels_supported": kernels(),
    };

    let kind = match params.is_pass_all() {
        true => "pass-all: the answer is always \"maybe\"",
        false => "blocked Bloom",
    };
    let bits_per_key = match params.expected_items() {
        _ if params.is_pass_all() => "no filter".to_owned(),
        0 => "no keys".to_owned(),
        _ => format!("{:.2}", params.bits_per_key()),
    };
    let [fill, keys, rate] = match &bits {
        None => ["unknown, the blocks are damaged"; 3].map(str::to_owned),
        Some(bits) => [bits.fill(), bits.keys(), bits.rate()],
    };
    let rows = vec![
        ("format", format!("{}, version {VERSION}", about.format)),
        ("kind", kind.to_owned()),
        (
            "probe scheme",
            format!("{}, that of RocksDB's FastLocalBloom", probe_scheme.unwrap_or(0)),
        ),
        ("hash", filter.key_hash().to_string()),
        ("contents", with_rule(contents)),
        ("stored size", sizes(params.stored_bytes())),
        ("blocks", format!("{} of 64 bytes", params.blocks())),
        ("probes", params.probes().to_string()),
        ("keys inserted", params.expected_items().to_string()),
        ("distinct keys, estimated", keys),
        ("bits per key", bits_per_key),
        ("fill ratio", fill),
        ("false positives, predicted", percent(params.false_positive_rate())),
        ("false positives, from the bits", rate),
        ("header checksum", format!("ok ({})", hex(sealed.seal.header_checksum()))),
        ("block checksum", sealed.seal.checksum_row()),
        ("kernel here", kernel()),
    ];
    Facts::new(about, json, rows)
}

/// Describes the contents of a filter, with the name of the prefix rule if it is one of the crate's
/// own.
fn with_rule(contents: FilterContents) -> String {
    let named = contents.extractor().and_then(|id| {
        let lengths =
            (0..=1024).flat_map(|n| [PrefixExtractor::fixed(n), PrefixExtractor::capped(n)]);
        let delimiters = (0..=u8::MAX)
            .flat_map(|byte| (0..=8).map(move |count| PrefixExtractor::delimiter(byte, count)));
        lengths.chain(delimiters).find(|rule| rule.id() == id)
    });
    match named {
        Some(rule) => format!("{contents} ({rule})"),
        None => contents.to_string(),
    }
}

//! `blocked-bloom info`: everything that can be said of a stored filter.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blocked_bloom::{
    Added, BloomFilterBytes, FormatError, KERNEL_VARIABLE, Kernel, KeyHash, Params,
};
use indicatif::BinaryBytes;
use serde_json::{Value, json};

use crate::failure::{Failure, report};
use crate::numbers::percent;
use crate::output::print;
use crate::stored::{self, Unusable};

/// Describe a filter: geometry, keys, false-positive rates, checksums
///
/// If only the blocks are damaged the header is described all the same, and the exit status is 2.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stored filter
    filter: PathBuf,

    /// Print one JSON object instead; what is not known is null
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let path = &args.filter;
    let (filter, failure, computed) = match stored::verify(path) {
        Ok(filter) => (filter, None, None),
        Err(Unusable::Unread(failure)) => return Err(failure),
        Err(Unusable::Damaged { error, bytes }) => {
            let failure = stored::damaged(path, &error);
            let FormatError::BlockChecksum { computed, .. } = error else {
                return Err(failure);
            };
            match BloomFilterBytes::from_bytes_trusted(bytes) {
                Ok(filter) => (filter, Some(failure), Some(computed)),
                Err(_) => return Err(failure),
            }
        }
    };
    let facts = Facts::of(path, &filter, computed);
    print(&if args.json { format!("{:#}\n", facts.json()) } else { facts.table() })?;
    Ok(match failure {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            report(&failure);
            ExitCode::from(2)
        }
    })
}

struct Facts {
    file: String,
    version: u16,
    hash: KeyHash,
    added: Added,
    params: Params,
    /// Of the blocks, unless they are damaged.
    bits: Option<Bits>,
    header_checksum: u64,
    stored_checksum: u64,
    computed_checksum: u64,
}

struct Bits {
    fill_ratio: f64,
    /// None if saturated.
    keys: Option<u64>,
    false_positive_rate: f64,
}

impl Facts {
    /// `damage` is the checksum that the blocks have instead of the stored one.
    fn of(path: &Path, filter: &BloomFilterBytes<Vec<u8>>, damage: Option<u64>) -> Self {
        let (view, bytes) = (filter.view(), filter.get_ref());
        let stored_checksum = u64_at(bytes, 48);
        let bits = damage.is_none().then(|| Bits {
            fill_ratio: view.fill_ratio(),
            keys: view.estimated_keys(),
            false_positive_rate: view.estimated_false_positive_rate(),
        });
        Facts {
            file: path.display().to_string(),
            version: u16::from_le_bytes([bytes[8], bytes[9]]),
            hash: view.key_hash(),
            added: view.added(),
            params: view.params(),
            bits,
            header_checksum: u64_at(bytes, 56),
            stored_checksum,
            computed_checksum: damage.unwrap_or(stored_checksum),
        }
    }

    fn json(&self) -> Value {
        let (hash, seed, tag) = match self.hash {
            KeyHash::Xxh3 { seed } => ("xxh3-64", Some(seed), None),
            KeyHash::Caller { tag } => ("caller", None, Some(tag)),
        };
        let (params, bits) = (&self.params, self.bits.as_ref());
        json!({
            "file": self.file,
            "format_version": self.version,
            "pass_all": params.is_pass_all(),
            "hash": hash,
            "seed": seed,
            "tag": tag,
            "whole_keys": self.added.whole_keys(),
            "prefix_extractor": self.added.extractor().map(hex),
            "stored_bytes": params.stored_bytes(),
            "blocks": params.blocks(),
            "probes": params.probes(),
            "keys_inserted": params.expected_items(),
            "bits_per_key": params.bits_per_key(),
            "fill_ratio": bits.map(|bits| bits.fill_ratio),
            "estimated_keys": bits.and_then(|bits| bits.keys),
            "predicted_false_positive_rate": params.false_positive_rate(),
            "estimated_false_positive_rate": bits.map(|bits| bits.false_positive_rate),
            "header_checksum_ok": true,
            "header_checksum": hex(self.header_checksum),
            "block_checksum_ok": bits.is_some(),
            "block_checksum_stored": hex(self.stored_checksum),
            "block_checksum_computed": hex(self.computed_checksum),
            "kernel": Kernel::default().name(),
            "kernels_supported": kernels(),
        })
    }

    fn table(&self) -> String {
        let params = &self.params;
        let kind = if params.is_pass_all() {
            "pass-all: the answer is always \"maybe\""
        } else {
            "ordinary"
        };
        let bits_per_key = match params.expected_items() {
            _ if params.is_pass_all() => "no filter".to_owned(),
            0 => "no keys".to_owned(),
            _ => format!("{:.2}", params.bits_per_key()),
        };
        let [fill, keys, rate] = match &self.bits {
            None => ["unknown, the blocks are damaged"; 3].map(str::to_owned),
            Some(bits) => [
                format!("{:.2} % of all bits", bits.fill_ratio * 100.0),
                match bits.keys {
                    Some(keys) => keys.to_string(),
                    None => "saturated: a block has no zero bit".to_owned(),
                },
                percent(bits.false_positive_rate),
            ],
        };
        let stored = hex(self.stored_checksum);
        let checksum = match &self.bits {
            Some(_) => format!("ok ({stored})"),
            None => format!("DAMAGED: stored {stored}, computed {}", hex(self.computed_checksum)),
        };
        let rows = [
            ("file", self.file.clone()),
            ("format version", self.version.to_string()),
            ("kind", kind.to_owned()),
            ("hash", self.hash.to_string()),
            ("added", self.added.to_string()),
            ("stored size", sizes(params.stored_bytes())),
            ("blocks", format!("{} of 64 bytes", params.blocks())),
            ("probes", params.probes().to_string()),
            ("keys inserted", params.expected_items().to_string()),
            ("distinct keys, estimated", keys),
            ("bits per key", bits_per_key),
            ("fill ratio", fill),
            ("false positives, predicted", percent(params.false_positive_rate())),
            ("false positives, from the bits", rate),
            ("header checksum", format!("ok ({})", hex(self.header_checksum))),
            ("block checksum", checksum),
            ("kernel here", kernel()),
        ];
        let mut text = String::new();
        for (name, value) in rows {
            text += &format!("{name:<32}{value}\n");
        }
        text
    }
}

/// The kernel of this process, and why it is the one.
fn kernel() -> String {
    let (name, kernels) = (Kernel::default().name(), kernels().join(", "));
    match std::env::var_os(KERNEL_VARIABLE) {
        Some(_) => format!("{name} (named by {KERNEL_VARIABLE}; this CPU can run {kernels})"),
        None => format!("{name} (the fastest this CPU can run of {kernels})"),
    }
}

fn kernels() -> Vec<&'static str> {
    Kernel::supported().map(Kernel::name).collect()
}

fn sizes(bytes: u64) -> String {
    format!("{bytes} bytes ({})", BinaryBytes(bytes))
}

fn hex(checksum: u64) -> String {
    format!("{checksum:016x}")
}

/// A field of a verified header.
fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let field = bytes.get(offset..).and_then(<[u8]>::first_chunk);
    field.map_or(0, |field| u64::from_le_bytes(*field))
}

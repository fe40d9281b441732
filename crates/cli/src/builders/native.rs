//! This project's own Bloom filters, which `build` fills itself.

use crate::builder::BuildFormat;

pub(crate) static NATIVE: BuildFormat = BuildFormat {
    name: "native",
    help: "This tool's own Bloom filter",
    extension: Some(".bloom"),
    options: &[
        "--bits-per-key",
        "--fpr",
        "--max-bytes",
        "--keys",
        "--probes",
        "--seed",
        "--prefix",
        "--threads",
        "--type",
    ],
    builder: None,
};

pub(super) static COMPACT: BuildFormat = BuildFormat {
    name: "compact",
    help: "The same without a header, for containers that have a checksum of their own; by seed 0, \
           of whole keys",
    extension: Some(".compact"),
    options: &[
        "--bits-per-key",
        "--fpr",
        "--max-bytes",
        "--keys",
        "--probes",
        "--threads",
        "--type",
    ],
    builder: None,
};

//! The command line: what is stored, how much of it, and how it is asked.

use std::error::Error;
use std::path::PathBuf;

use blocked_bloom::Sizing;
use clap::{Parser, value_parser};

const WORDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/keys/words.txt");
const PATHS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/keys/paths.txt");

/// Looks up batches of keys in table files, with and without filters.
#[derive(Parser)]
pub(crate) struct Args {
    /// File of keys, one per line
    #[arg(long, value_name = "FILE", default_value = WORDS)]
    pub(crate) keys: PathBuf,
    /// File of paths, one per line, whose directories are scanned
    #[arg(long, value_name = "FILE", default_value = PATHS)]
    pub(crate) paths: PathBuf,
    /// Tables that the stored keys are spread over
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = value_parser!(u16).range(1..))]
    pub(crate) tables: u16,
    /// Keys looked up at once
    #[arg(long, value_name = "N", default_value_t = 128)]
    #[arg(value_parser = value_parser!(u32).range(1..))]
    pub(crate) batch: u32,
    /// Share of lookups whose key is in no table
    #[arg(long, value_name = "PERCENT", default_value_t = 50)]
    #[arg(value_parser = value_parser!(u8).range(..=100))]
    pub(crate) absent: u8,
    /// Filter bits per key, 0 (no filter) to 100
    #[arg(long, value_name = "B", default_value = "10", value_parser = parse_bits_per_key)]
    pub(crate) bits_per_key: Sizing,
}

fn parse_bits_per_key(text: &str) -> Result<Sizing, Box<dyn Error + Send + Sync>> {
    let sizing = Sizing::BitsPerKey(text.parse()?);
    sizing.params(0)?;
    Ok(sizing)
}

//! Builders of filters for other systems: their options and their results.

use blocked_bloom::Bitmask;
use blocked_bloom_formats::cassandra::Layout;
use blocked_bloom_formats::parquet::PhysicalType;

use crate::failure::Failure;
use crate::keys::Key;

/// A format that is built.
pub(crate) struct BuildFormat {
    pub(crate) name: &'static str,
    /// Description in the help.
    pub(crate) help: &'static str,
    /// Suffix of the filter's default file name; none if a system reads the filter by its name.
    pub(crate) extension: Option<&'static str>,
    /// The options that not all formats have.
    pub(crate) options: &'static [&'static str],
    /// None for this project's Bloom filters, which `build` fills itself.
    pub(crate) builder: Option<MakeBuilder>,
}

pub(crate) type MakeBuilder = fn(&BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure>;

/// Options of a filter. Options that were not given have the format's default.
pub(crate) struct BuildOptions<'a> {
    pub(crate) bits_per_key: Option<f64>,
    pub(crate) false_positive_rate: Option<f64>,
    /// Number of keys to size for, however many are read.
    pub(crate) expected_keys: Option<u64>,
    /// Whether that size is wanted though fewer keys are read.
    pub(crate) oversized: bool,
    pub(crate) value_type: Option<PhysicalType>,
    /// Of the hash, where the format has one.
    pub(crate) seed: u64,
    pub(crate) threads: Option<usize>,
    /// Whether keys were given as hexadecimal digits.
    pub(crate) is_hex: bool,
    /// Look every key up in the finished filter.
    pub(crate) verify: bool,
    pub(crate) cassandra_version: Option<Layout>,
    /// Low bits of keys that a range filter ignores.
    pub(crate) unit: u32,
    /// 1 or 2.
    pub(crate) spark_version: Option<u32>,
    /// Name of the file that the filter will be written to.
    pub(crate) output: &'a str,
}

/// Collects keys, and makes the filter when their number is known.
pub(crate) trait Builder {
    /// Bytes of memory for each key.
    fn bytes_per_key(&self) -> u64 {
        size_of::<u64>() as u64
    }

    /// Adds a key, or returns the problem with it.
    fn add(&mut self, key: &Key) -> Result<(), String>;

    /// `input` is where the keys came from.
    fn finish(self: Box<Self>, input: &str) -> Result<Built, Failure>;
}

/// A filter to be written.
pub(crate) struct Built {
    pub(crate) bytes: Vec<u8>,
    /// None if it was sized for its keys.
    pub(crate) fit: Option<Fit>,
    /// The answers for all keys; empty unless verification was requested.
    pub(crate) answers: Bitmask,
    /// Keys and geometry.
    pub(crate) summary: String,
}

/// How the size of a filter fits its keys.
pub(crate) struct Fit {
    /// Distinct keys that it holds.
    pub(crate) keys: u64,
    pub(crate) bytes: u64,
    /// Bytes of a filter that is sized for these keys, if there can be one.
    pub(crate) needed: Option<u64>,
    /// 0 to 1.
    pub(crate) false_positive_rate: f64,
}

/// Adds a hash to a list, unless there is no memory for it.
pub(crate) fn push<H>(hashes: &mut Vec<H>, hash: H) -> Result<(), String> {
    hashes.try_reserve(1).map_err(|error| format!("no memory for this key: {error}"))?;
    hashes.push(hash);
    Ok(())
}

/// A builder that collects the hashes of keys, with functions that hash a key and make the filter.
struct HashList<H, A, F> {
    hashes: Vec<H>,
    bytes_per_key: usize,
    hash: A,
    finish: F,
}

impl<H, A, F> Builder for HashList<H, A, F>
where
    A: Fn(&Key) -> Result<H, String>,
    F: FnOnce(Vec<H>, &str) -> Result<Built, Failure>,
{
    fn bytes_per_key(&self) -> u64 {
        self.bytes_per_key as u64
    }

    fn add(&mut self, key: &Key) -> Result<(), String> {
        push(&mut self.hashes, (self.hash)(key)?)
    }

    fn finish(self: Box<Self>, input: &str) -> Result<Built, Failure> {
        (self.finish)(self.hashes, input)
    }
}

/// Returns a builder that collects a hash of each key and makes the filter from this many lists of
/// all hashes.
pub(crate) fn hash_list<H: 'static>(
    lists: usize,
    hash: impl Fn(&Key) -> Result<H, String> + 'static,
    finish: impl FnOnce(Vec<H>, &str) -> Result<Built, Failure> + 'static,
) -> Box<dyn Builder> {
    Box::new(HashList { hashes: Vec::new(), bytes_per_key: lists * size_of::<H>(), hash, finish })
}

/// Returns the answers that `look_up` writes, if verification was requested.
pub(crate) fn answers(verify: bool, look_up: impl FnOnce(&mut Bitmask)) -> Bitmask {
    let mut answers = Bitmask::new();
    if verify {
        look_up(&mut answers);
    }
    answers
}

/// How a filter fits its keys; none if it was sized for them.
pub(crate) fn fit(
    expected_keys: Option<u64>,
    keys: u64,
    bytes: u64,
    needed: Option<u64>,
    false_positive_rate: f64,
) -> Option<Fit> {
    expected_keys.map(|_| Fit { keys, bytes, needed, false_positive_rate })
}

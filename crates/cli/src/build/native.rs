//! Building native filters from a file of keys, in one pass or in two.

use std::path::PathBuf;

use blocked_bloom::{Bitmask, BloomFilter, BuildError, FilterOptions};
use rayon::prelude::*;

use crate::failure::{Failure, warn};
use crate::keys::{Key, KeyBatch, KeyFormat, KeyReader, name_of_all};

/// Where keys come from.
pub(super) struct Input<'a> {
    pub(super) paths: &'a [PathBuf],
    pub(super) key_format: KeyFormat,
    pub(super) progress: bool,
    /// Whether to warn of doubtful keys: not when they are read again.
    pub(super) warn: bool,
}

/// Memory of the current pool besides the list of hashes and the filter: a batch of keys with
/// references to them, their hashes, and what each thread reorders.
pub(super) fn working_memory(max_key_bytes: u64) -> u64 {
    let others = (16 << 20) + (rayon::current_num_threads() as u64) * (4 << 20);
    KeyBatch::memory(max_key_bytes).saturating_add(others)
}

/// A filter of all keys, by the threads of the current pool, and the bytes of the list that its
/// hashes were kept in. With a number of expected keys there is no list: the filter is made for
/// their number, and keys are inserted as they are read.
pub(super) fn build(
    options: &FilterOptions,
    input: &Input<'_>,
    expected_keys: Option<u64>,
    verify: bool,
) -> Result<(BloomFilter, u64), Failure> {
    match expected_keys {
        Some(keys) => Ok((with_known_count(options, input, keys, verify)?, 0)),
        None => with_unknown_count(options, input, verify),
    }
}

/// Calls `take` with all keys, some at a time; returns the name of where they come from.
fn read(
    input: &Input<'_>,
    mut take: impl FnMut(&[&[u8]]) -> Result<(), BuildError>,
) -> Result<String, Failure> {
    let mut keys = KeyReader::open_all(input.paths, input.key_format, input.progress)?;
    let (mut batch, mut key) = (KeyBatch::default(), Key::default());
    while keys.read_batch(&mut batch, &mut key)? {
        take(&batch.keys()).map_err(|error| Failure::for_file(keys.name(), error))?;
    }
    if input.warn {
        keys.warn_of_doubtful_keys();
    }
    Ok(name_of_all(input.paths))
}

/// Collects hashes until all keys are read. If their list does not fit its limit, they were only
/// counted, and are read again.
fn with_unknown_count(
    options: &FilterOptions,
    input: &Input<'_>,
    verify: bool,
) -> Result<(BloomFilter, u64), Failure> {
    let Collected { name, list_bytes, filter } = collect(options, input, verify)?;
    let (keys, limit) = match filter {
        Ok(filter) => return Ok((filter, list_bytes)),
        Err(BuildError::MemoryLimit { keys, limit_bytes, .. }) => (keys, limit_bytes),
        Err(error) => return Err(Failure::for_file(&name, error)),
    };
    let has_prefixes = options.extractor().is_some();
    if !input.paths.iter().all(|path| path.is_file()) {
        let keys_option = if has_prefixes { String::new() } else { format!("--keys {keys}, ") };
        let message = format!(
            "the list of {keys} keys does not fit --max-memory {limit}: give {keys_option}more \
             memory, or a file by its name"
        );
        return Err(Failure::for_file(&name, message));
    }
    warn(format!(
        "{name}: the list of {keys} keys does not fit --max-memory {limit}: reading them again"
    ));
    let input = &Input { warn: false, ..*input };
    let filter = if has_prefixes {
        let options = options.clone().with_expected_items(keys);
        let again = collect(&options, input, verify)?;
        again.filter.map_err(|error| Failure::for_file(&name, error))?
    } else {
        with_known_count(options, input, keys, verify)?
    };
    let again = filter.keys_inserted();
    if again != keys {
        let message = format!(
            "{again} keys were read the second time, {keys} the first: do not change the file \
             meanwhile"
        );
        return Err(Failure::for_file(&name, message));
    }
    Ok((filter, limit))
}

/// The result of reading all keys into a builder.
struct Collected {
    /// Where the keys come from.
    name: String,
    /// Bytes of the builder's list.
    list_bytes: u64,
    filter: Result<BloomFilter, BuildError>,
}

fn collect(options: &FilterOptions, input: &Input<'_>, verify: bool) -> Result<Collected, Failure> {
    let mut builder = options.builder();
    let name = read(input, |keys| Ok(builder.par_extend(keys.par_iter())?))?;
    let list_bytes = builder.memory_bytes();
    let filter = if verify { builder.par_finish_verified() } else { builder.par_finish() };
    Ok(Collected { name, list_bytes, filter })
}

/// Inserts keys as they are read.
fn with_known_count(
    options: &FilterOptions,
    input: &Input<'_>,
    keys: u64,
    verify: bool,
) -> Result<BloomFilter, Failure> {
    let mut filter = options.empty_filter(keys).map_err(Failure::new)?;
    let mut hits = Bitmask::new();
    read(input, |keys| {
        filter.par_insert_batch(keys)?;
        if verify {
            filter.contains_batch(keys, &mut hits);
            if hits.count_misses() > 0 {
                let (missing, keys) = (hits.count_misses() as u64, keys.len() as u64);
                return Err(BuildError::KeysMissing { missing, keys });
            }
        }
        Ok(())
    })?;
    Ok(filter)
}

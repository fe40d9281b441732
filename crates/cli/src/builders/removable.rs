//! The removable filter of `blocked-bloom-removable`.

use blocked_bloom::Filter as _;
use blocked_bloom_removable::{RemovableError, RemovableFilter, RemovableOptions};

use crate::builder::{BuildFormat, BuildOptions, Builder, Built, answers, hash_list};
use crate::failure::Failure;
use crate::numbers::counted;

pub(super) static REMOVABLE: BuildFormat = BuildFormat {
    name: "removable",
    help: "A filter that keys can be removed from, of blocked-bloom-removable",
    extension: Some(".tags"),
    options: &["--keys", "--type"],
    builder: Some(builder),
};

/// Collects the hashes of keys.
fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let (verify, keys) =
        (options.verify, RemovableOptions::new(options.expected_keys.unwrap_or(0)));
    let hasher = keys.hasher().map_err(Failure::new)?;
    let finish = move |hashes: Vec<u64>, input: &str| {
        let filter = RemovableFilter::from_hashes(&keys, &hashes);
        let filter = filter.map_err(|error| match error {
            RemovableError::Full { inserted, taken, capacity } => {
                let key = inserted + 1;
                let advice =
                    "is a key there more than 64 times, or 32 if its two lines are one? Give each \
                     once";
                let full =
                    format!("both of its lines are full, with {taken} of {capacity} lanes taken");
                Failure::for_file(input, format!("key {key}: {full}: {advice}"))
            }
            error => Failure::for_file(input, error),
        })?;
        let answers = answers(verify, |hits| filter.contains_hashes(&hashes, hits));
        let (lines, load) = (filter.lines().len(), filter.load() * 100.0);
        let (keys, lines) = (counted(filter.keys_inserted(), "key"), counted(lines as u64, "line"));
        let summary = format!("{keys}, {lines}, load {load:.1} %");
        Ok(Built { fit: None, answers, summary, bytes: filter.to_bytes() })
    };
    Ok(hash_list(1, move |key| Ok(hasher.hash(key)), finish))
}

//! The removable filter of `blocked-bloom-removable`.

use blocked_bloom::{Bitmask, Filter as _};
use blocked_bloom_removable::{RemovableError, RemovableFilter, RemovableOptions};

use crate::builder::{BuildFormat, BuildOptions, Builder, Built, push};
use crate::failure::Failure;
use crate::keys::Key;
use crate::numbers::counted;

pub(super) static REMOVABLE: BuildFormat = BuildFormat {
    name: "removable",
    help: "A filter that keys can be removed from, of blocked-bloom-removable",
    extension: Some(".tags"),
    options: &["--keys", "--type"],
    builder: Some(builder),
};

/// Collects the hashes of keys.
struct Hashes {
    options: RemovableOptions,
    verify: bool,
    hashes: Vec<u64>,
}

fn builder(options: &BuildOptions<'_>) -> Result<Box<dyn Builder>, Failure> {
    let keys = RemovableOptions::new(options.expected_keys.unwrap_or(0));
    Ok(Box::new(Hashes { options: keys, verify: options.verify, hashes: Vec::new() }))
}

impl Builder for Hashes {
    fn add(&mut self, key: &Key) -> Result<(), String> {
        let hasher = self.options.hasher().map_err(|error| error.to_string())?;
        push(&mut self.hashes, hasher.hash(key))
    }

    fn finish(self: Box<Self>, input: &str) -> Result<Built, Failure> {
        let filter = RemovableFilter::from_hashes(&self.options, &self.hashes);
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
        let mut hits = Bitmask::new();
        if self.verify {
            filter.contains_hashes(&self.hashes, &mut hits);
        }
        let (lines, load) = (filter.lines().len(), filter.load() * 100.0);
        let (keys, lines) = (counted(filter.keys_inserted(), "key"), counted(lines as u64, "line"));
        let summary = format!("{keys}, {lines}, load {load:.1} %");
        Ok(Built { fit: None, answers: hits, summary, bytes: filter.to_bytes() })
    }
}

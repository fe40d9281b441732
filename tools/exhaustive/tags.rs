//! The kernels of the filter with removal: a tag of 16 bits in one of 32 lanes of two lines.

use blocked_bloom::{Bitmask, Block, Filter, Kernel, KeyHash};
use blocked_bloom_removable::tags::{self, LANES, Place};
use blocked_bloom_removable::{RemovableError, RemovableFilter, RemovableOptions};

use crate::calls::Calls;
use crate::{Check, N, numbers};

pub(crate) struct Tags {
    kernel: Kernel,
    filter: RemovableFilter,
    /// The same lines, changed one key at a time by the scheme.
    lines: Vec<Block>,
    found: Bitmask,
}

impl Tags {
    pub(crate) fn new(kernel: Kernel) -> Result<Self, RemovableError> {
        let filter = RemovableOptions::new(1_600).empty_filter()?.with_kernel(kernel);
        let lines = filter.lines().to_vec();
        Ok(Tags { kernel, filter, lines, found: Bitmask::new() })
    }

    fn compare(&self, change: &str) -> Result<(), String> {
        match self.filter.lines() == self.lines.as_slice() {
            true => Ok(()),
            false => Err(format!("{change} left other lines")),
        }
    }

    /// One tag in one lane is found, and none that differs from it in one bit.
    fn lane(&self, tag: u16, lane: usize, hash: u64) -> Result<(), String> {
        let place = Place::new(hash, self.lines.len() as u32);
        let hashes = [hash; 9];
        for line in [place.first, place.second] {
            for flipped in [0].into_iter().chain((0..16).map(|bit| 1 << bit)) {
                let mut bytes = self.filter.to_bytes();
                let header = bytes.len() - 64 * self.lines.len();
                let at = header + 64 * line as usize + 2 * lane;
                bytes[at..at + 2].copy_from_slice(&(tag ^ flipped).to_le_bytes());
                let filter = RemovableFilter::from_bytes_trusted(bytes, KeyHash::default());
                let filter = filter.map_err(|error| error.to_string())?.with_kernel(self.kernel);
                let mut word = [0];
                filter
                    .contains_hashes_into(&hashes, &mut word)
                    .map_err(|error| error.to_string())?;
                let single = filter.contains_hash(hash);
                if single != (flipped == 0) || word[0] != if single { 0x1ff } else { 0 } {
                    return Err(format!(
                        "lane {lane} of line {line} contains {:#06x}: wrong answer for {tag:#06x}",
                        tag ^ flipped
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Check for Tags {
    fn chunk(&mut self, chunk: u64) -> Result<(), String> {
        // Every tag with every value of the 16 bits that determine the first line.
        let hashes = numbers(chunk).map(|number| {
            let line = number & 0xffff;
            u64::from(number >> 16) << 48 | u64::from(line << 16 | line)
        });
        let fails = |error: RemovableError| error.to_string();
        self.filter.insert_hashes(&hashes).map_err(fails)?;
        if !hashes.iter().all(|&hash| tags::insert(&mut self.lines, hash)) {
            return Err("the scheme rejected a key".into());
        }
        self.compare("insertion")?;
        for calls in Calls::ALL {
            calls.check(&self.filter, &hashes, true, chunk as usize)?;
        }
        let removed = self.filter.remove_hashes(&hashes, &mut self.found);
        if removed != N || self.found.count_hits() != N {
            return Err(format!("{removed} of {N} keys were removed"));
        }
        if !hashes.iter().all(|&hash| tags::remove(&mut self.lines, hash)) {
            return Err("the scheme did not find a key".into());
        }
        self.compare("removal")?;
        for calls in Calls::ALL {
            calls.check(&self.filter, &hashes, false, chunk as usize)?;
        }
        // One chunk in eight: the 2^21 pairs of tag and lane. Tag 0 stands for an empty lane, and
        // hashes with it take tag 1.
        if !chunk.is_multiple_of(8) {
            return Ok(());
        }
        let (tag, lane) = (((chunk >> 3) as u16).max(1), (chunk >> 19) as usize % LANES);
        self.lane(tag, lane, u64::from(tag) << 48 | hashes[0] & 0xffff_ffff)
    }
}

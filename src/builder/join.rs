//! Joining builders: what several threads collected becomes what one would have.

use super::verify::mix;
use super::{BloomFilterBuilder, CHUNK};

impl BloomFilterBuilder {
    /// An empty builder of the same kind, for keys that will be [appended](Self::append).
    pub(crate) fn part(&self) -> Self {
        // With a number of expected items, a list that reaches the limit is flushed into a filter,
        // which only the whole builder has: a part has no limit then.
        let memory_limit = self.options.expected_items().map_or(self.memory_limit, |_| u64::MAX);
        BloomFilterBuilder { memory_limit, ..BloomFilterBuilder::new(self.options.clone()) }
    }

    /// Adds what was added to `part`, as if it came after what is here. The list is not copied.
    pub(crate) fn append(&mut self, mut part: Self) {
        if let Some(error) = part.failed {
            self.fail(error);
        }
        let Some(first) = part.first else { return };
        if self.last == Some(first) {
            // Drops the duplicate where the parts meet.
            part.sum = part.sum.wrapping_sub(mix(first));
            match part.chunks.first_mut() {
                Some(chunk) => _ = chunk.remove(0),
                None => part.keys_without_filter -= 1,
            }
        }
        self.first.get_or_insert(first);
        self.last = part.last;
        self.sum = self.sum.wrapping_add(part.sum);
        self.keys_without_filter += part.keys_without_filter;
        if self.failed.is_some() {
            self.keys_without_filter += part.len() - part.keys_without_filter;
            return;
        }
        for chunk in part.chunks {
            // Small chunks are copied: each would cost a thread's bookkeeping when the filter is
            // filled. Under a limit all are, so that nothing depends on how the parts were cut.
            let is_kept = chunk.len() >= CHUNK / 2 && self.memory_limit == u64::MAX;
            if is_kept && self.failed.is_none() && self.chunks.try_reserve(1).is_ok() {
                self.chunks.push(chunk);
            } else {
                self.copy(&chunk);
            }
        }
    }
}

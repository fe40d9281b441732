//! The prefixes that the keys between two bounds can have.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Bound::{self, Excluded, Included, Unbounded};

use super::{PrefixExtractor, Rule};

/// The most prefixes of a range: as many as there are bytes that can differ.
const MAX_PREFIXES: usize = 256;

/// The most bytes that the prefixes of a range take together, if there are several. Without this
/// limit, the prefixes of long bounds could take 256 times the memory of the bounds.
const MAX_BYTES: usize = 1 << 20;

impl PrefixExtractor {
    /// Declares that every key of the tables to look up has a prefix by this rule, so that
    /// [`range_prefixes`](Self::range_prefixes) also answers ranges that could contain keys without
    /// a prefix. This matters for [`fixed`](Self::fixed).
    ///
    /// The name and the id stay the same, and filters do not store the declaration: keep it with
    /// the table, or derive it from the schema of the keys. For a table that does contain a key
    /// without a prefix, a filter can answer "absent" for a range with that key.
    ///
    /// ```
    /// use std::ops::Bound::{Excluded, Included};
    /// use blocked_bloom::PrefixExtractor;
    /// let (lower, upper) = (Included(&b"az"[..]), Excluded(&b"bb"[..]));
    /// let rule = PrefixExtractor::fixed(2);
    /// // The key "b" would have no prefix.
    /// assert_eq!(rule.range_prefixes(lower, upper), None);
    /// // The prefixes are "az", "a{" to "a\xff" and "b\0" to "ba".
    /// let prefixes = rule.assume_keys_have_prefix().range_prefixes(lower, upper).unwrap();
    /// assert_eq!(prefixes.len(), 134 + 98);
    /// ```
    #[must_use]
    pub fn assume_keys_have_prefix(self) -> Self {
        PrefixExtractor { keys_have_prefix: true, ..self }
    }

    /// Returns the prefixes of all keys between two bounds, in the order of byte strings.
    ///
    /// | rule | result |
    /// |---|---|
    /// | [`fixed(n)`](Self::fixed) | prefixes that differ in the last byte, if `lower` has `n` bytes and all keys of the range start with its first `n - 1` |
    /// | [`capped(n)`](Self::capped) | all strings of at most `n` bytes from the prefix of `lower` up to `upper` |
    /// | [`delimiter`](Self::delimiter), `custom` | the [`scan_prefix`](Self::scan_prefix) of the longest common prefix of all keys of the range; for a range of a single key, its [`prefix`](Self::prefix) |
    ///
    /// [`assume_keys_have_prefix`](Self::assume_keys_have_prefix) lifts the condition of `fixed(n)`.
    /// The result is `None` if keys of the range may have no prefix, if there are more than 256
    /// prefixes, or if several prefixes would take more than about 1 MiB together: a filter then
    /// answers "maybe". Otherwise every key of the range has one of the prefixes, and a filter that
    /// contains none of them answers "absent". The list is empty if no key lies in the range.
    ///
    /// To look up one filter, call
    /// [`BloomFilter::contains_range`](crate::BloomFilter::contains_range). For many filters, hash
    /// the prefixes once and look the hashes up in each filter's
    /// [`prefixes`](crate::BloomFilter::prefixes).
    ///
    /// Cost: copies the bounds, and allocates each prefix, at most 256 even if the result is
    /// `None`.
    ///
    /// ```
    /// use std::ops::Bound::{Excluded, Included};
    /// use blocked_bloom::PrefixExtractor;
    /// let rule = PrefixExtractor::fixed(3);
    /// let range = |lower: &str, upper: &str| {
    ///     rule.range_prefixes(Included(lower.as_bytes()), Excluded(upper.as_bytes()))
    /// };
    /// assert_eq!(range("id3/a", "id4/b"), Some(vec![b"id3".to_vec(), b"id4".to_vec()]));
    /// assert_eq!(range("id4/b", "id3/a"), Some(vec![]));
    /// // The range contains keys such as "ie", which have no prefix.
    /// assert_eq!(range("id3/a", "ie4/b"), None);
    /// ```
    pub fn range_prefixes(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<Vec<Vec<u8>>> {
        // An inclusive upper bound, or an exclusive lower one, is replaced by the next byte string.
        let next = |bytes: &[u8]| [bytes, &[0]].concat();
        let lower = match lower {
            Included(bytes) => bytes.to_vec(),
            Excluded(bytes) => next(bytes),
            Unbounded => Vec::new(),
        };
        let upper = match upper {
            Included(bytes) => Some(next(bytes)),
            Excluded(bytes) => Some(bytes.to_vec()),
            Unbounded => None,
        };
        let is_below = |bytes: &[u8]| upper.as_deref().is_none_or(|upper| bytes < upper);
        if !is_below(&lower) {
            return Some(Vec::new());
        }
        let common = common_length(&lower, upper.as_deref());
        let (length, grows) = match self.rule {
            Rule::Capped(n) => (n, true),
            Rule::Fixed(n) if !self.keys_have_prefix && n > lower.len().min(common + 1) => {
                return None;
            }
            Rule::Fixed(n) => (n, false),
            _ => {
                let prefix = match upper == Some(next(&lower)) {
                    true => self.prefix(&lower),
                    false => self.scan_prefix(&lower[..common]),
                };
                return prefix.map(|prefix| vec![prefix.to_vec()]);
            }
        };
        // Prefixes that are two bytes longer than both bounds are none, or at least 65,536. That
        // is so for all longer ones, and a rule with a huge length allocates little.
        let longest = lower.len().max(upper.as_ref().map_or(0, Vec::len)) + 2;
        let length = length.min(longest);
        let (least, most) = (if grows { 0 } else { length }, 1 + MAX_BYTES / longest);
        let (mut prefix, mut prefixes) = (lower, Vec::new());
        prefix.truncate(length);
        prefix.resize(prefix.len().max(least), 0);
        while is_below(&prefix) {
            if prefixes.len() == most.min(MAX_PREFIXES) {
                return None;
            }
            prefixes.push(prefix.clone());
            if prefix.len() < length {
                prefix.push(0);
                continue;
            }
            // The next string that is not longer.
            while prefix.pop_if(|&mut last| last == u8::MAX).is_some() {}
            let Some(last) = prefix.last_mut() else { break };
            *last += 1;
            prefix.resize(prefix.len().max(least), 0);
        }
        Some(prefixes)
    }
}

/// Returns how many bytes of `lower` all keys from `lower` to below `upper` start with. At least
/// one key lies between them.
fn common_length(lower: &[u8], upper: Option<&[u8]>) -> usize {
    let run = |from: usize| from + lower[from..].iter().take_while(|&&b| b == u8::MAX).count();
    let Some(upper) = upper else { return run(0) };
    let same = lower.iter().zip(upper).take_while(|(a, b)| a == b).count();
    match (lower.get(same), &upper[same..]) {
        // Between "a\xff\xff" and "b", all keys start with "a\xff\xff".
        (Some(&byte), &[last]) if byte + 1 == last => run(same + 1),
        _ => same,
    }
}

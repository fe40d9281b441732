//! Lookups of a chunk of hashes in single, group or batch calls.

use blocked_bloom::Filter;

use crate::N;

/// Lengths of the group calls that together look up a chunk. Kernels have other code for up to 3
/// or 16 hashes, so both kinds are here.
const GROUPS: [usize; 11] = [2, 64, 3, 17, 5, 62, 8, 33, 15, 31, 16];

/// The kinds of calls, whose code in a kernel differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    Single,
    Group,
    Batch,
}

impl Calls {
    pub(crate) const ALL: [Calls; 3] = [Calls::Single, Calls::Group, Calls::Batch];

    /// Returns an error unless every hash of a chunk has the same answer, `expected`. `turn`
    /// selects which lengths of groups the hashes come into.
    pub(crate) fn check(
        self,
        filter: &impl Filter,
        hashes: &[u64; N],
        expected: bool,
        turn: usize,
    ) -> Result<(), String> {
        let wrong = match self {
            Calls::Single => {
                let present = hashes.iter().map(|&hash| usize::from(filter.contains_hash(hash)));
                match present.sum::<usize>() == if expected { N } else { 0 } {
                    true => None,
                    false => hashes.iter().position(|&hash| filter.contains_hash(hash) != expected),
                }
            }
            Calls::Group => {
                let lengths = GROUPS.iter().cycle().skip(turn % GROUPS.len());
                let ends = lengths.scan(0, |end, keys| {
                    *end += keys;
                    Some([*end - keys, *end])
                });
                let mut groups = ends.take(GROUPS.len());
                groups.find_map(|[start, end]| {
                    Some(start + first_wrong(filter, &hashes[start..end], expected)?)
                })
            }
            Calls::Batch => first_wrong(filter, hashes, expected),
        };
        match wrong {
            None => Ok(()),
            Some(i) => Err(format!(
                "a {self:?} call found hash {:#018x} {}",
                hashes[i.min(N - 1)],
                if expected { "absent" } else { "present" }
            )),
        }
    }
}

/// Returns the index of the first hash of one call with another answer. Bits past the last hash
/// must be 0.
#[inline]
fn first_wrong(filter: &impl Filter, hashes: &[u64], expected: bool) -> Option<usize> {
    let mut words = [0_u64; N / 64];
    let words = &mut words[..hashes.len().div_ceil(64)];
    if filter.contains_hashes_into(hashes, words).is_err() {
        return Some(0);
    }
    let all = |keys: usize| if expected { u64::MAX >> (64 - keys.min(64)) } else { 0 };
    let wrong = words.iter().enumerate().map(|(i, word)| word ^ all(hashes.len() - 64 * i));
    let mut wrong = wrong.enumerate().filter(|(_, wrong)| *wrong != 0);
    wrong.next().map(|(i, wrong)| 64 * i + wrong.trailing_zeros() as usize)
}

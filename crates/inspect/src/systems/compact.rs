//! This project's format without a header, for containers that have their own checksum.
//!
//! It has a trailer but no mark. A container knows the form of its filters; a user must name it.

use blocked_bloom::{BloomFilter, KeyHash, Stored as Blocks};

use super::classical;
use crate::blocks::Part;
use crate::error::Error;
use crate::facts::{Facts, Summary, bits};
use crate::system::{Answers, Format, LookupContext, Stored, System, answers};

impl Format {
    /// A Bloom filter of this project without a header, for containers that have their own
    /// checksum: blocks and eight bytes.
    pub const COMPACT: Format = Format::new(&System::new(
        "compact",
        "A Bloom filter of this project without a header: blocks and eight bytes",
        "has no mark: it is what its user says",
        |source| {
            source.boxed(
                BloomFilter::from_compact_bytes(source.bytes()?, KeyHash::default()).map(Compact),
            )
        },
    ));
}

/// Returns whether a file with these last bytes and this length may be such a filter.
pub(crate) fn is_candidate((tail, length): (&[u8], u64)) -> bool {
    let trailer = matches!(tail, [.., 0xbc, 1, 1..=30, 1 | 5, _, _, _, _]);
    trailer && length > 8 && (length - 8).is_multiple_of(64)
}

struct Compact<'a>(BloomFilter<Blocks<&'a [u8]>>);

impl Stored for Compact<'_> {
    fn describe(&self, about: &Summary) -> Facts {
        let params = self.0.params();
        let header = vec![
            ("pass_all", "pass-all", params.is_pass_all().into()),
            ("blocks", "blocks of 64 bytes", params.blocks().into()),
            ("probes", "probes", params.probes().into()),
            ("keys_inserted", "keys inserted", params.expected_items().into()),
        ];
        let bits = bits!(self.0);
        classical::facts(about, header, &bits)
    }

    fn hash_of_keys(&self) -> Option<KeyHash> {
        Some(self.0.key_hash())
    }

    fn lookup<'o>(&'o self, _: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        answers(|keys, hits| self.0.contains_batch(keys, hits))
    }

    fn parts(&self) -> usize {
        1
    }

    fn part(&self, part: usize) -> Option<Part<'_>> {
        (part == 0).then(|| Part::Bloom(self.0.view()))
    }
}

//! Guava's filters.

use blocked_bloom_formats::guava::{GuavaFilter, Strategy};

use super::classical;
use crate::error::Error;
use crate::facts::{Facts, Summary, bits};
use crate::system::{Answers, Format, LookupContext, Stored, System, answers};

impl Format {
    /// A filter written by `writeTo` of Guava's `BloomFilter`.
    pub const GUAVA: Format = Format::new(&System {
        recognise: |file| classical::recognise(file, GuavaFilter::from_bytes(file.head).err()),
        ..System::new(
            "guava",
            "What writeTo of Guava's BloomFilter wrote",
            "has as many bytes as its first numbers say",
            |source| source.boxed(GuavaFilter::from_bytes(source.bytes()?)),
        )
    });
}

impl Stored for GuavaFilter<&[u8]> {
    fn describe(&self, about: &Summary) -> Facts {
        let shape = self.shape();
        let strategy = match shape.scheme() {
            Strategy::Mitz32 => "MURMUR128_MITZ_32",
            Strategy::Mitz64 => "MURMUR128_MITZ_64",
            _ => "other",
        };
        let header = vec![
            ("strategy", "strategy", strategy.into()),
            ("probes", "probes", shape.probes().into()),
            ("words", "words of 8 bytes", shape.words().into()),
        ];
        let bits = bits!(self);
        classical::facts(about, header, &bits)
    }

    fn lookup<'o>(&'o self, _: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        answers(|keys, hits| self.contains_batch(keys, hits))
    }
}

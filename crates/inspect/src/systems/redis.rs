//! RedisBloom's chains of filters, in files of their dumps.

use blocked_bloom_formats::redis::RedisFilter;

use super::classical;
use crate::error::Error;
use crate::facts::{Bits, Facts, List, Summary};
use crate::numbers::percent;
use crate::system::{Answers, Evidence, Format, LookupContext, Mark, Stored, System, answers};
use crate::value::{Value, object};

impl Format {
    /// A file with the replies of RedisBloom's `BF.SCANDUMP`.
    pub const REDISBLOOM: Format = Format::new(&System {
        recognise,
        ..System::new(
            "redisbloom",
            "A file of the replies of RedisBloom's BF.SCANDUMP",
            "begins with as many links as its length says",
            |source| source.boxed(RedisFilter::from_bytes(source.bytes()?)),
        )
    });
}

/// Recognises a frame of iterator 1 with a header that has as many links as its length requires.
fn recognise(file: &Evidence<'_>) -> Option<Mark> {
    let number = |at: usize, bytes: usize| {
        let bytes = file.head.get(at..at + bytes)?;
        Some(bytes.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte)))
    };
    let (iterator, length, links, options) =
        (number(0, 8)?, number(8, 8)?, number(24, 4)?, number(28, 4)?);
    let is_marked = iterator == 1 && links > 0 && length == 20 + 53 * links && options < 16;
    is_marked.then_some(Mark::Length)
}

impl Stored for RedisFilter {
    fn describe(&self, about: &Summary) -> Facts {
        let bits: u64 = self.links().iter().map(|link| link.shape().bits()).sum();
        let set = self.links().iter().map(|link| link.fill_ratio() * link.shape().bits() as f64);
        let fill_ratio = set.sum::<f64>() / bits as f64;
        let heads =
            ["keys", "made for", "bits", "probes", "false positives, made for", "from the bits"];
        let (mut list, mut links) = (List::new(0, &heads), Vec::new());
        for link in self.links() {
            let rate = link.estimated_false_positive_rate();
            list.lines.push(vec![
                link.size().to_string(),
                link.entries().to_string(),
                link.shape().bits().to_string(),
                link.shape().probes().to_string(),
                percent(link.error_rate()),
                percent(rate),
            ]);
            links.push(object! {
                "keys": link.size(),
                "capacity": link.entries(),
                "bits": link.shape().bits(),
                "probes": link.shape().probes(),
                "error_rate": link.error_rate(),
                "fill_ratio": link.fill_ratio(),
                "estimated_false_positive_rate": rate,
            });
        }
        let header = vec![
            ("keys", "keys added", self.size().into()),
            ("capacity", "keys made for", self.capacity().into()),
            ("expansion", "expansion", self.expansion().into()),
            ("hash_bits", "bits of the hash", self.hash_bits().into()),
            ("links", "links", links.len().into()),
        ];
        let bits = Bits {
            fill_ratio,
            keys: Some(self.size()),
            false_positive_rate: self.estimated_false_positive_rate(),
        };
        let mut facts = Facts { list: Some(list), ..classical::facts(about, header, &bits) };
        // Programs get the list of links instead of their number.
        for (name, value) in &mut facts.fields {
            if *name == "links" {
                *value = Value::List(std::mem::take(&mut links));
            }
        }
        facts
    }

    fn lookup<'o>(&'o self, _: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        answers(|keys, hits| self.contains_batch(keys, hits))
    }
}

//! This project's static range filter: `docs/format.md`.

use std::ops::Bound::{self, Included};

use blocked_bloom::parts::HeaderError;
use blocked_bloom_range::{MAGIC, RangeError, RangeFilter};

use crate::error::Error;
use crate::facts::{Facts, Summary, sizes};
use crate::numbers::percent;
use crate::system::{Answers, Format, LookupContext, Stored, System, answers};
use crate::value::object;

impl Format {
    /// A static filter of `blocked-bloom-range`, for ranges of keys.
    pub const RANGE: Format = Format::new(&System {
        length: Some(|head| match RangeFilter::from_bytes(head).err()? {
            RangeError::Header(HeaderError::Length { expected, .. }) => Some(expected),
            _ => None,
        }),
        ..System::native(
            "range",
            "A static filter of this project for ranges of keys",
            MAGIC,
            |source| source.boxed(RangeFilter::from_bytes(source.bytes()?)),
        )
    });
}

impl Stored for RangeFilter<&[u8]> {
    fn describe(&self, about: &Summary) -> Facts {
        let rates = [1, 64].map(|units| self.max_false_positive_rate(units));
        let bits = 8.0 * self.memory_bytes() as f64 / self.codes().max(1) as f64;
        let json = object! {
            "stored_bytes": self.memory_bytes(),
            "keys_inserted": self.keys_inserted(),
            "codes": self.codes(),
            "bits_per_code": bits,
            "dropped_bits": self.dropped_bits(),
            "max_units": self.max_units(),
            "max_false_positive_rate": rates[0],
            "max_false_positive_rate_of_64_units": rates[1],
        };
        let rows = vec![
            ("format", format!("{}, version 1", about.format)),
            ("kind", "static: sorted codes of keys, for ranges".to_owned()),
            ("stored size", sizes(self.memory_bytes())),
            ("keys inserted", self.keys_inserted().to_string()),
            ("codes", format!("{}, {bits:.2} bits each", self.codes())),
            ("dropped bits", format!("{} of 128", self.dropped_bits())),
            ("longest range", format!("{} units", self.max_units())),
            ("false positives, at most", percent(rates[0])),
            ("the same for 64 units", percent(rates[1])),
            ("checksums", "ok".to_owned()),
        ];
        Facts::new(about, json, rows)
    }

    fn lookup<'o>(&'o self, _: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        answers(|keys, hits| {
            let points = keys.iter().map(|&key| (Included(key), Included(key)));
            self.contains_ranges(&points.collect::<Vec<_>>(), hits);
        })
    }

    fn contains_range(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<bool, Error> {
        Ok(RangeFilter::contains_range(self, lower, upper))
    }
}

//! A Parquet split-block filter without its file, and lookups of values in such filters.

use blocked_bloom::{Bitmask, Filter, Kernel};
use blocked_bloom_split::{SplitBlock, SplitBlockError, SplitBlockFilter, hash_value};

use crate::blocks::Part;
use crate::error::{BadKey, Error};
use crate::facts::{Facts, Summary, kernel, sizes};
use crate::message::{LookupOption, Message};
use crate::numbers::percent;
use crate::options::LookupOptions;
use crate::system::{Answers, Evidence, Format, LookupContext, Mark, Stored, System};
use crate::typed::ColumnType;
use crate::value::object;

impl Format {
    /// A Parquet Bloom filter: header and bitset, without the file around it.
    pub const PARQUET_FILTER: Format = Format::new(&System {
        recognise,
        length: Some(|head| match SplitBlockFilter::from_bytes(head).err()? {
            SplitBlockError::Length { expected, .. } => Some(expected),
            _ => None,
        }),
        wrong_length: |found, expected| SplitBlockError::Length { found, expected }.into(),
        options: &[LookupOption::ValueType],
        ..System::new(
            "parquet-filter",
            "A Bloom filter of Parquet, without the file around it",
            "begins with its header",
            |source| source.boxed(SplitBlockFilter::from_bytes(source.bytes()?)),
        )
    });
}

fn recognise(file: &Evidence<'_>) -> Option<Mark> {
    use SplitBlockError::{BitsetLength, Length};
    let found = SplitBlockFilter::from_bytes(file.head);
    matches!(found, Ok(_) | Err(Length { .. } | BitsetLength { .. })).then_some(Mark::Header)
}

impl<D: AsRef<[SplitBlock]> + Send + Sync> Stored for SplitBlockFilter<D> {
    fn describe(&self, about: &Summary) -> Facts {
        let (fill_ratio, rate) = (self.fill_ratio(), self.estimated_false_positive_rate());
        let blocks = self.blocks().len();
        let json = object! {
            "stored_bytes": about.length,
            "blocks": blocks,
            "fill_ratio": fill_ratio,
            "estimated_false_positive_rate": rate,
            "checksum": None::<bool>,
            "kernel": Kernel::default().name(),
        };
        let blocks = match blocks.is_power_of_two() {
            true => format!("{blocks} of 32 bytes"),
            false => format!("{blocks} of 32 bytes, not a power of two: some readers reject it"),
        };
        let rows = vec![
            ("format", about.format.to_owned()),
            ("stored size", sizes(about.length)),
            ("blocks", blocks),
            ("probes", "8".to_owned()),
            ("fill ratio", format!("{:.2} % of all bits", fill_ratio * 100.0)),
            ("false positives, from the bits", percent(rate)),
            ("checksum", "none: damage in the bits cannot be seen".to_owned()),
            ("kernel here", kernel()),
        ];
        Facts::new(about, json, rows)
    }

    fn lookup<'o>(&'o self, wanted: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        let physical_type = wanted.options.value_type.ok_or_else(|| {
            Error::Options(Message::naming(
                "give ",
                LookupOption::ValueType,
                ", such as int64 or byte-array: the filter does not say of which type its values \
                 are, and those of another are absent whatever it holds",
            ))
        })?;
        let (filters, encoded) = (vec![self.view()], wanted.options.encoded);
        Values { filters, column_type: physical_type.into(), encoded }.answers()
    }

    fn parts(&self) -> usize {
        1
    }

    fn part(&self, part: usize) -> Option<Part<'_>> {
        (part == 0).then(|| Part::SplitBlock(self.view()))
    }

    fn places(&self, key: &[u8], options: &LookupOptions) -> Option<Vec<(usize, u64)>> {
        let column_type = ColumnType::from(options.value_type?);
        Some(vec![(0, column_type.encode(key, options.encoded).ok()?.hash())])
    }
}

/// The hashes of keys, and each additional hash that a key may have with the index of the key.
pub(super) struct Hashes {
    hashes: Vec<u64>,
    others: Vec<(usize, u64)>,
}

impl Hashes {
    pub(super) fn new<K: AsRef<[u8]>>(
        keys: &[K],
        column_type: &ColumnType,
        encoded: bool,
    ) -> Result<Self, BadKey> {
        let (mut hashes, mut others) = (Vec::with_capacity(keys.len()), Vec::new());
        match column_type.integer_bytes().filter(|_| encoded) {
            Some(4) => hash_arrays::<4, K>(keys, &mut hashes),
            Some(8) => hash_arrays::<8, K>(keys, &mut hashes),
            _ => (),
        }
        for (index, key) in keys.iter().enumerate().skip(hashes.len()) {
            let value = column_type.encode(key.as_ref(), encoded);
            let value = value.map_err(|problem| BadKey { index, problem })?;
            hashes.push(value.hash());
            others.extend(value.others.iter().map(|other| (index, hash_value(other))));
        }
        Ok(Hashes { hashes, others })
    }

    pub(super) fn all(&self) -> Vec<u64> {
        let others = self.others.iter().map(|&(_, hash)| hash);
        self.hashes.iter().copied().chain(others).collect()
    }
}

/// Hashes keys up to the first whose length is not `N`. Hashing an array is faster, since the
/// compiler knows its length.
fn hash_arrays<const N: usize, K: AsRef<[u8]>>(keys: &[K], hashes: &mut Vec<u64>) {
    let arrays = keys.iter().map_while(|key| <[u8; N]>::try_from(key.as_ref()).ok());
    hashes.extend(arrays.map(hash_value));
}

/// Lookups of values in several filters. A value may be present if any filter may hold it.
pub(super) struct Values<'o> {
    pub(super) filters: Vec<SplitBlockFilter<&'o [SplitBlock]>>,
    pub(super) column_type: ColumnType,
    pub(super) encoded: bool,
}

impl<'o> Values<'o> {
    pub(super) fn answers(self) -> Result<Answers<'o>, Error> {
        Ok(Box::new(move |keys, hits| self.contains_batch(keys, hits)))
    }

    fn contains_batch(&self, keys: &[&[u8]], hits: &mut Bitmask) -> Result<(), BadKey> {
        let Hashes { hashes, others } = Hashes::new(keys, &self.column_type, self.encoded)?;
        let mut found = Bitmask::new();
        hits.write(keys.len(), |words| {
            words.fill(0);
            for filter in &self.filters {
                filter.contains_hashes(&hashes, &mut found);
                words.iter_mut().zip(found.words()).for_each(|(any, found)| *any |= found);
                for &(at, hash) in &others {
                    words[at / 64] |= u64::from(filter.contains_hash(hash)) << (at % 64);
                }
            }
        });
        Ok(())
    }
}

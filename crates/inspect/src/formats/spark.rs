//! Spark's filters.

use blocked_bloom::Bitmask;
use blocked_bloom_formats::parquet::{PhysicalType, Value};
use blocked_bloom_formats::spark::{SparkFilter, SparkHash, Version};

use super::classical;
use super::typed::value_of;
use crate::error::{BadKey, Error, KeyProblem};
use crate::facts::{Bits, Facts};
use crate::lookup::{Kind, LookupOptions};
use crate::opened::About;

/// The type of keys of a Spark filter: numbers, which Spark widens to 64 bits, or bytes, unless the user says otherwise.
///
/// # Errors
///
/// [`Error::SparkType`] for other types.
///
/// ```
/// use blocked_bloom_inspect::{Error, PhysicalType, spark_type};
/// assert_eq!(spark_type(None), Ok(PhysicalType::ByteArray));
/// assert_eq!(spark_type(Some(PhysicalType::Float)), Err(Error::SparkType { found: PhysicalType::Float }));
/// ```
pub fn spark_type(given: Option<PhysicalType>) -> Result<PhysicalType, Error> {
    match given.unwrap_or(PhysicalType::ByteArray) {
        known @ (PhysicalType::Int32 | PhysicalType::Int64 | PhysicalType::ByteArray) => Ok(known),
        found => Err(Error::SparkType { found }),
    }
}

/// The hash of a key of this type, text or plain-encoded bytes, in a Spark filter.
///
/// # Errors
///
/// [`KeyProblem`] for what is no value of the type.
///
/// ```
/// use blocked_bloom_formats::spark::Version;
/// use blocked_bloom_inspect::{PhysicalType, spark_hash};
/// assert_eq!(spark_hash(Version::V1, PhysicalType::Int32, b"42", false)?, Version::V1.hash_long(42));
/// # Ok::<(), blocked_bloom_inspect::KeyProblem>(())
/// ```
pub fn spark_hash(
    version: Version,
    physical_type: PhysicalType,
    key: &[u8],
    encoded: bool,
) -> Result<SparkHash, KeyProblem> {
    Ok(match value_of(physical_type, key, encoded)? {
        Value::Int32(number) => version.hash_long(number.into()),
        Value::Int64(number) => version.hash_long(number),
        _ => version.hash_bytes(key),
    })
}

/// Lookups of keys of a type.
pub(crate) struct Items<'o> {
    filter: &'o SparkFilter<&'o [u8]>,
    physical_type: PhysicalType,
    encoded: bool,
}

pub(crate) fn lookup<'o>(
    filter: &'o SparkFilter<&'o [u8]>,
    options: &LookupOptions,
) -> Result<Kind<'o>, Error> {
    let physical_type = spark_type(options.value_type)?;
    Ok(Kind::Spark(Items { filter, physical_type, encoded: options.encoded }))
}

impl Items<'_> {
    pub(crate) fn contains_batch<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        hits: &mut Bitmask,
    ) -> Result<(), BadKey> {
        let version = self.filter.shape().scheme();
        let hash = |(index, key): (usize, &K)| {
            let hash = spark_hash(version, self.physical_type, key.as_ref(), self.encoded);
            hash.map_err(|problem| BadKey { index, problem })
        };
        let hashes: Vec<SparkHash> = keys.iter().enumerate().map(hash).collect::<Result<_, _>>()?;
        self.filter.contains_hashes(&hashes, hits);
        Ok(())
    }
}

pub(crate) fn describe(about: &About, filter: &SparkFilter<&[u8]>) -> Facts {
    let shape = filter.shape();
    let version = shape.scheme();
    let header = vec![
        ("version", "version", version.number().into()),
        ("seed", "seed", version.seed().into()),
        ("probes", "probes", shape.probes().into()),
        ("words", "words of 8 bytes", shape.words().into()),
    ];
    let bits = Bits {
        fill_ratio: filter.fill_ratio(),
        keys: filter.estimated_keys(),
        false_positive_rate: filter.estimated_false_positive_rate(),
    };
    classical::facts(about, header, &bits)
}

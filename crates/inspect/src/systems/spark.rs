//! Spark's filters.

use blocked_bloom_formats::parquet::PhysicalType;
use blocked_bloom_formats::spark::{SparkFilter, SparkHash, Version};

use super::classical;
use crate::error::{BadKey, Error};
use crate::facts::{Facts, Summary, bits};
use crate::message::{LookupOption, Message};
use crate::system::{Answers, Format, LookupContext, Stored, System};
use crate::typed::{ColumnType, type_name};

impl Format {
    /// A filter written by `writeTo` of Spark's `BloomFilter`.
    pub const SPARK: Format = Format::new(&System {
        recognise: |file| classical::recognise(file, SparkFilter::from_bytes(file.head).err()),
        options: &[LookupOption::ValueType],
        check: |options| spark_type(options.value_type).map(drop),
        ..System::new(
            "spark",
            "What writeTo of Spark's BloomFilter wrote",
            "has as many bytes as its first numbers say",
            |source| source.boxed(SparkFilter::from_bytes(source.bytes()?)),
        )
    });
}

/// Returns the type of the keys in a Spark filter: bytes by default, or numbers, which Spark widens
/// to 64 bits.
///
/// # Errors
///
/// A [`Message`] for other types.
///
/// ```
/// use blocked_bloom_inspect::{PhysicalType, spark_type};
/// assert_eq!(spark_type(None), Ok(PhysicalType::ByteArray));
/// assert!(spark_type(Some(PhysicalType::Float)).is_err());
/// ```
pub fn spark_type(given: Option<PhysicalType>) -> Result<PhysicalType, Message> {
    match given.unwrap_or(PhysicalType::ByteArray) {
        known @ (PhysicalType::Int32 | PhysicalType::Int64 | PhysicalType::ByteArray) => Ok(known),
        found => Err(Message::naming(
            "",
            LookupOption::ValueType,
            format_args!(" {}: for spark give int32, int64 or byte-array", type_name(found)),
        )),
    }
}

/// Returns the hash of a key, given as text or plain-encoded bytes, in a Spark filter.
///
/// # Errors
///
/// A [`Message`] if the key is not a value of the type.
///
/// ```
/// use blocked_bloom_formats::spark::Version;
/// use blocked_bloom_inspect::{PhysicalType, spark_hash};
/// let hash = spark_hash(Version::V1, PhysicalType::Int32, b"42", false)?;
/// assert_eq!(hash, Version::V1.hash_long(42));
/// # Ok::<(), blocked_bloom_inspect::Message>(())
/// ```
pub fn spark_hash(
    version: Version,
    physical_type: PhysicalType,
    key: &[u8],
    encoded: bool,
) -> Result<SparkHash, Message> {
    let value = ColumnType::from(physical_type).encode(key, encoded)?.bytes;
    Ok(match (physical_type, value[..].try_into(), value[..].try_into()) {
        (PhysicalType::Int32, Ok(bytes), _) => version.hash_long(i32::from_le_bytes(bytes).into()),
        (PhysicalType::Int64, _, Ok(bytes)) => version.hash_long(i64::from_le_bytes(bytes)),
        _ => version.hash_bytes(key),
    })
}

impl Stored for SparkFilter<&[u8]> {
    fn describe(&self, about: &Summary) -> Facts {
        let shape = self.shape();
        let version = shape.scheme();
        let header = vec![
            ("version", "version", version.number().into()),
            ("seed", "seed", version.seed().into()),
            ("probes", "probes", shape.probes().into()),
            ("words", "words of 8 bytes", shape.words().into()),
        ];
        let bits = bits!(self);
        classical::facts(about, header, &bits)
    }

    fn lookup<'o>(&'o self, wanted: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        let physical_type = spark_type(wanted.options.value_type).map_err(Error::Options)?;
        let (version, encoded) = (self.shape().scheme(), wanted.options.encoded);
        Ok(Box::new(move |keys, hits| {
            let hash = |(index, key): (usize, &&[u8])| {
                let hash = spark_hash(version, physical_type, key, encoded);
                hash.map_err(|problem| BadKey { index, problem })
            };
            let hashes: Result<Vec<SparkHash>, _> = keys.iter().enumerate().map(hash).collect();
            self.contains_hashes(&hashes?, hits);
            Ok(())
        }))
    }
}

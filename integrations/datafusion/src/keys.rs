//! Hashes the values of Arrow arrays as keys.
//!
//! A key is the canonical form of a value, so that values that are equal in SQL have equal hashes
//! in every array type. Integers of all widths are one key type, and so are strings and binary
//! values of all layouts. The key type is the seed of the hash, which a stored filter records: a
//! filter of strings is never looked up with integers, which would wrongly answer "absent".

use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::*;
use datafusion::common::{Result, exec_datafusion_err, plan_err};

use blocked_bloom::{HashError, KeyHash, KeyHasher};

/// The key type of a column. A filter can only be looked up with the key type that it was built
/// with.
///
/// | columns | key | seed |
/// |---|---|---|
/// | `Boolean`, `Int8` to `Int64`, `UInt8` to `UInt64` | the value in 8 bytes, sign-extended if signed | 1 |
/// | `Float16`, `Float32`, `Float64` | the value as `Float64` in 8 bytes; -0.0 becomes 0.0, and all NaNs are equal | 2 |
/// | `Utf8`, `LargeUtf8`, `Utf8View`, `Binary`, `LargeBinary`, `BinaryView`, `FixedSizeBinary` | the bytes | 3 |
/// | `Date32` | days in 8 bytes | 4 |
/// | `Date64` | milliseconds in 8 bytes | 5 |
/// | `Timestamp` | the number in 8 bytes | 6 + 256 · unit, + 4096 with a time zone |
/// | `Time32`, `Time64` | the number in 8 bytes | 7 + 256 · unit |
/// | `Duration` | the number in 8 bytes | 8 + 256 · unit |
/// | `Decimal32` to `Decimal256` | the unscaled number in 16 bytes, or in 32 if necessary | 9 + 256 · scale (as a byte) |
/// | `Struct` (several columns) | the hashes of the fields, 8 bytes each | XXH3-64 of their seeds, 8 bytes each |
/// | `Dictionary` | as for its values | as for its values |
///
/// Units are 0 for seconds, 1 for milliseconds, 2 for microseconds and 3 for nanoseconds. The hash
/// is XXH3-64 with that seed. Numbers are little-endian. A struct with a NULL field is NULL.
///
/// ```
/// use blocked_bloom::KeyHash;
/// use blocked_bloom_datafusion::KeyType;
/// use datafusion::arrow::datatypes::DataType;
///
/// let key = KeyType::new(&DataType::Int32)?;
/// assert_eq!(key, KeyType::new(&DataType::UInt64)?);
/// assert_eq!(key.key_hash(), KeyHash::Xxh3 { seed: 1 });
/// assert_ne!(key, KeyType::new(&DataType::Utf8)?);
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyType {
    seed: u64,
}

const INTEGER: u64 = 1;
const FLOAT: u64 = 2;
const BYTES: u64 = 3;

impl KeyType {
    /// Returns the key type of a column.
    ///
    /// # Errors
    ///
    /// Returns a planning error that names the type if its values have no canonical form: lists,
    /// maps, unions, intervals, run-end encoded arrays and `Null`.
    pub fn new(column: &DataType) -> Result<Self> {
        let with = |number: u64, parameter: u64| number | parameter << 8;
        use DataType::*;
        let seed = match column {
            Boolean => INTEGER,
            integer if integer.is_integer() => INTEGER,
            Float16 | Float32 | Float64 => FLOAT,
            Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView
            | FixedSizeBinary(_) => BYTES,
            Date32 => 4,
            Date64 => 5,
            Timestamp(unit, zone) => {
                with(6, unit_number(unit) + if zone.is_some() { 16 } else { 0 })
            }
            Time32(unit) | Time64(unit) => with(7, unit_number(unit)),
            Duration(unit) => with(8, unit_number(unit)),
            Decimal32(_, scale)
            | Decimal64(_, scale)
            | Decimal128(_, scale)
            | Decimal256(_, scale) => with(9, u64::from(*scale as u8)),
            Dictionary(_, values) => return KeyType::new(values),
            Struct(fields) if !fields.is_empty() => {
                let mut seeds = Vec::new();
                for field in fields {
                    seeds.extend(KeyType::new(field.data_type())?.seed.to_le_bytes());
                }
                KeyHasher::default().hash(seeds)
            }
            other => return plan_err!("blocked-bloom: values of type {other} cannot be keys"),
        };
        Ok(KeyType { seed })
    }

    /// Returns the hash that filters with these keys record.
    pub fn key_hash(self) -> KeyHash {
        KeyHash::Xxh3 { seed: self.seed }
    }

    /// Returns the key type with this hash.
    pub(crate) fn from_key_hash(key_hash: KeyHash) -> Option<Self> {
        match key_hash {
            KeyHash::Xxh3 { seed } => Some(KeyType { seed }),
            _ => None,
        }
    }

    /// Returns the number that stands for the type in stored filters.
    pub(crate) fn seed(self) -> u64 {
        self.seed
    }
}

impl std::fmt::Display for KeyType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unit = ["seconds", "milliseconds", "microseconds", "nanoseconds"];
        let parameter = self.seed >> 8;
        let unit = unit[parameter as usize % 4];
        match (self.seed as u8, parameter) {
            (1, 0) => f.write_str("integers"),
            (2, 0) => f.write_str("floating-point numbers"),
            (3, 0) => f.write_str("strings or binary values"),
            (4, 0) => f.write_str("dates in days"),
            (5, 0) => f.write_str("dates in milliseconds"),
            (6, 0..4) => write!(f, "timestamps in {unit} without a time zone"),
            (6, 16..20) => write!(f, "timestamps in {unit} with a time zone"),
            (7, 0..4) => write!(f, "times in {unit}"),
            (8, 0..4) => write!(f, "durations in {unit}"),
            (9, 0..256) => write!(f, "decimals of scale {}", parameter as u8 as i8),
            _ => write!(f, "several columns (seed {:#x})", self.seed),
        }
    }
}

fn unit_number(unit: &TimeUnit) -> u64 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    }
}

/// Hashes every value of an array into `hashes`, replacing its contents. Returns which values are
/// valid; the hash of a NULL value is meaningless.
///
/// Integers, strings and binary values are hashed directly from Arrow's buffers. Other types are
/// converted to their canonical form in small batches.
///
/// # Errors
///
/// Those of [`KeyType::new`].
///
/// ```
/// use std::sync::Arc;
/// use blocked_bloom_datafusion::hash_array;
/// use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array};
///
/// let (narrow, wide): (ArrayRef, ArrayRef) =
///     (Arc::new(Int32Array::from(vec![Some(-7), None])), Arc::new(Int64Array::from(vec![-7])));
/// let (mut a, mut b) = (Vec::new(), Vec::new());
/// let valid = hash_array(&narrow, &mut a)?.expect("one is NULL");
/// assert!(valid.is_valid(0) && valid.is_null(1));
/// hash_array(&wide, &mut b)?;
/// assert_eq!(a[0], b[0]);
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
pub fn hash_array(array: &ArrayRef, hashes: &mut Vec<u64>) -> Result<Option<NullBuffer>> {
    let key = KeyType::new(array.data_type())?;
    hashes.resize(array.len(), 0);
    hash_into(key.seed, array, hashes)?;
    Ok(nulls_of(array))
}

/// Hashes the non-NULL values of an array.
pub(crate) fn hash_valid(array: &ArrayRef, hashes: &mut Vec<u64>) -> Result<()> {
    if let Some(nulls) = hash_array(array, hashes)? {
        let mut valid = nulls.iter();
        hashes.retain(|_| valid.next() == Some(true));
    }
    Ok(())
}

/// Returns the non-NULL values of an array as the 64-bit integers that are hashed. Returns `None`
/// if the values are not integers, dates or times.
pub(crate) fn signed_values(array: &ArrayRef) -> Option<Vec<i64>> {
    let data = array.to_data();
    macro_rules! extended {
        ($type:ty) => {
            data.buffer::<$type>(0)[..array.len()].iter().map(|&value| value as i64).collect()
        };
    }
    use DataType::*;
    let mut values: Vec<i64> = match array.data_type() {
        Int64 | UInt64 | Date64 | Timestamp(..) | Time64(_) | Duration(_) => extended!(i64),
        Int32 | Date32 | Time32(_) => extended!(i32),
        Int16 => extended!(i16),
        Int8 => extended!(i8),
        UInt32 => extended!(u32),
        UInt16 => extended!(u16),
        UInt8 => extended!(u8),
        _ => return None,
    };
    if let Some(nulls) = array.nulls() {
        let mut valid = nulls.iter();
        values.retain(|_| valid.next() == Some(true));
    }
    Some(values)
}

/// Returns the key type of these columns of a schema.
pub(crate) fn key_of(operator: &str, schema: &Schema, columns: &[usize]) -> Result<KeyType> {
    let field = |&column: &usize| match schema.fields().get(column) {
        Some(field) => Ok(field.clone()),
        None => plan_err!(
            "{operator}: column {column} does not exist (there are {})",
            schema.fields().len()
        ),
    };
    match columns {
        [] => plan_err!("{operator}: no key columns"),
        [column] => KeyType::new(field(column)?.data_type()),
        _ => {
            let fields: Result<Fields> = columns.iter().map(field).collect();
            KeyType::new(&DataType::Struct(fields?))
        }
    }
}

/// Returns the key values of these columns of a batch.
pub(crate) fn key_values(batch: &RecordBatch, columns: &[usize]) -> ArrayRef {
    match columns {
        [column] => batch.column(*column).clone(),
        _ => {
            let schema = batch.schema();
            let field = |&i: &usize| (schema.fields()[i].clone(), batch.column(i).clone());
            Arc::new(StructArray::from(columns.iter().map(field).collect::<Vec<_>>()))
        }
    }
}

/// Returns which keys are NULL. A struct is also NULL if one of its fields is.
fn nulls_of(array: &ArrayRef) -> Option<NullBuffer> {
    let own = array.logical_nulls();
    let Some(columns) = array.as_struct_opt() else { return own };
    let fields = columns.columns().iter().map(nulls_of);
    fields.fold(own, |nulls, field| NullBuffer::union(nulls.as_ref(), field.as_ref()))
}

fn hash_into(seed: u64, array: &ArrayRef, hashes: &mut [u64]) -> Result<()> {
    let hasher = KeyHasher::with_seed(seed);
    /// Hashes integers of one width, extended to 64 bits.
    macro_rules! hash_extended {
        ($type:ty) => {{
            let data = array.to_data();
            let values = data.buffer::<$type>(0);
            hash_computed(hasher, hashes, |i| values[i] as i64 as u64)
        }};
    }
    macro_rules! hash_decimals {
        ($type:ty) => {{
            let values = array.as_primitive::<$type>().values();
            hash_wide(hasher, hashes, |i| i128::from(values[i]))
        }};
    }
    use DataType::*;
    match array.data_type() {
        Int64 | UInt64 | Date64 | Timestamp(..) | Time64(_) | Duration(_) => {
            let data = array.to_data();
            hasher.hash_u64s(&data.buffer::<u64>(0)[..hashes.len()], hashes).map_err(internal_error)
        }
        Int8 => hash_extended!(i8),
        Int16 => hash_extended!(i16),
        Int32 | Date32 | Time32(_) => hash_extended!(i32),
        UInt8 => hash_extended!(u8),
        UInt16 => hash_extended!(u16),
        UInt32 => hash_extended!(u32),
        Boolean => {
            let values = array.as_boolean().values();
            hash_computed(hasher, hashes, |i| u64::from(values.value(i)))
        }
        Float16 => {
            let values = array.as_primitive::<Float16Type>().values();
            hash_computed(hasher, hashes, |i| canonical_bits(values[i].to_f64()))
        }
        Float32 => {
            let values = array.as_primitive::<Float32Type>().values();
            hash_computed(hasher, hashes, |i| canonical_bits(f64::from(values[i])))
        }
        Float64 => {
            let values = array.as_primitive::<Float64Type>().values();
            hash_computed(hasher, hashes, |i| canonical_bits(values[i]))
        }
        Decimal32(..) => hash_decimals!(Decimal32Type),
        Decimal64(..) => hash_decimals!(Decimal64Type),
        Decimal128(..) => hash_decimals!(Decimal128Type),
        Decimal256(..) => {
            let values = array.as_primitive::<Decimal256Type>().values();
            for (hash, value) in hashes.iter_mut().zip(values) {
                *hash = match value.to_i128() {
                    Some(value) => hasher.hash(value.to_le_bytes()),
                    None => hasher.hash(value.to_le_bytes()),
                };
            }
            Ok(())
        }
        Utf8 => hash_offsets(hasher, array.as_string::<i32>(), hashes),
        LargeUtf8 => hash_offsets(hasher, array.as_string::<i64>(), hashes),
        Binary => hash_offsets(hasher, array.as_binary::<i32>(), hashes),
        LargeBinary => hash_offsets(hasher, array.as_binary::<i64>(), hashes),
        Utf8View => {
            let values = array.as_string_view();
            hash_slices(hasher, hashes, |i| values.value(i).as_bytes())
        }
        BinaryView => {
            let values = array.as_binary_view();
            hash_slices(hasher, hashes, |i| values.value(i))
        }
        FixedSizeBinary(_) => {
            let values = array.as_fixed_size_binary();
            hash_slices(hasher, hashes, |i| values.value(i))
        }
        Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = dictionary.values();
            // If a dictionary has no values, every key is NULL.
            if values.is_empty() {
                return Ok(());
            }
            let mut value_hashes = vec![0; values.len()];
            hash_into(seed, values, &mut value_hashes)?;
            for (hash, key) in hashes.iter_mut().zip(dictionary.normalized_keys()) {
                *hash = value_hashes[key];
            }
            Ok(())
        }
        Struct(_) => hash_columns(hasher, array.as_struct(), hashes),
        other => plan_err!("blocked-bloom: values of type {other} cannot be keys"),
    }
}

fn hash_columns(hasher: KeyHasher, columns: &StructArray, hashes: &mut [u64]) -> Result<()> {
    let width = 8 * columns.num_columns();
    let mut rows = vec![0; width * hashes.len()];
    for (number, column) in columns.columns().iter().enumerate() {
        let seed = KeyType::new(column.data_type())?.seed;
        hash_into(seed, column, hashes)?;
        for (row, hash) in rows.chunks_exact_mut(width).zip(hashes.iter()) {
            row[8 * number..][..8].copy_from_slice(&hash.to_le_bytes());
        }
    }
    hash_slices(hasher, hashes, |i| &rows[i * width..][..width])
}

/// Returns the bits of a number. They are the same for all NaNs, and for both zeros.
fn canonical_bits(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() & !(1 << 63) } else { (value + 0.0).to_bits() }
}

/// Hashes keys of 8 bytes, computed from their index.
fn hash_computed(hasher: KeyHasher, hashes: &mut [u64], key: impl Fn(usize) -> u64) -> Result<()> {
    hash_in_batches([0; 1024], hashes, key, |keys, hashes| hasher.hash_u64s(keys, hashes))
}

/// Hashes keys of 16 bytes, computed from their index.
fn hash_wide(hasher: KeyHasher, hashes: &mut [u64], key: impl Fn(usize) -> i128) -> Result<()> {
    let key = |i| key(i).to_le_bytes();
    hash_in_batches([[0; 16]; 512], hashes, key, |keys, hashes| hasher.hash_fixed(keys, hashes))
}

/// Computes and hashes keys in batches as large as the buffer `keys`.
fn hash_in_batches<K, const N: usize>(
    mut keys: [K; N],
    hashes: &mut [u64],
    key: impl Fn(usize) -> K,
    hash: impl Fn(&[K], &mut [u64]) -> Result<(), HashError>,
) -> Result<()> {
    for (n, hashes) in hashes.chunks_mut(N).enumerate() {
        let keys = &mut keys[..hashes.len()];
        keys.iter_mut().enumerate().for_each(|(i, to)| *to = key(n * N + i));
        hash(keys, hashes).map_err(internal_error)?;
    }
    Ok(())
}

/// Hashes the bytes between Arrow's offsets.
fn hash_offsets<T>(hasher: KeyHasher, array: &GenericByteArray<T>, hashes: &mut [u64]) -> Result<()>
where
    T: ByteArrayType,
    T::Offset: Into<i128>,
{
    hasher.hash_offsets(array.value_data(), array.value_offsets(), hashes).map_err(internal_error)
}

/// Hashes keys that are not contiguous.
fn hash_slices<'a>(
    hasher: KeyHasher,
    hashes: &mut [u64],
    key: impl Fn(usize) -> &'a [u8],
) -> Result<()> {
    let keys = [[].as_slice(); 256];
    hash_in_batches(keys, hashes, key, |keys, hashes| hasher.hash_batch_into(keys, hashes))
}

/// Converts an error that is impossible: Arrow's offsets ascend, and an array has as many values as
/// its length.
fn internal_error(error: HashError) -> datafusion::error::DataFusionError {
    exec_datafusion_err!("blocked-bloom: {error}")
}

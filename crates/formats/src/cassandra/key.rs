//! The bytes of a partition key.

use alloc::vec::Vec;

use super::error::CassandraError;

/// Returns the bytes of a partition key of several columns: for each component its length in two
/// big-endian bytes, its bytes, and a zero byte.
///
/// Pass the components in the order of the table's `PRIMARY KEY ((a, b), …)`, each in the
/// serialized form of its type. A partition key of one column is the serialized form of that
/// column, without this function. Serialized forms:
///
/// | type | bytes |
/// |---|---|
/// | `text`, `ascii`, `blob` | unchanged |
/// | `int`, `bigint`, `smallint`, `timestamp` | `to_be_bytes` of `i32`, `i64`, `i16`, `i64` |
/// | `uuid`, `timeuuid` | the 16 bytes, as in the text form |
/// | `boolean` | one byte, 0 or 1 |
///
/// # Errors
///
/// [`CassandraError::ComponentTooLong`] if a component has more than 65,535 bytes.
///
/// ```
/// use blocked_bloom_formats::cassandra::composite_key;
/// // PRIMARY KEY ((country text, year int), …)
/// let key = composite_key(["nz".as_bytes(), &2024_i32.to_be_bytes()])?;
/// assert_eq!(key, [0, 2, b'n', b'z', 0, 0, 4, 0, 0, 0x07, 0xe8, 0]);
/// # Ok::<(), blocked_bloom_formats::cassandra::CassandraError>(())
/// ```
pub fn composite_key<C: AsRef<[u8]>>(
    components: impl IntoIterator<Item = C>,
) -> Result<Vec<u8>, CassandraError> {
    let mut key = Vec::new();
    for (index, component) in components.into_iter().enumerate() {
        let component = component.as_ref();
        let length = u16::try_from(component.len())
            .map_err(|_| CassandraError::ComponentTooLong { index, bytes: component.len() })?;
        key.extend_from_slice(&length.to_be_bytes());
        key.extend_from_slice(component);
        key.push(0);
    }
    Ok(key)
}

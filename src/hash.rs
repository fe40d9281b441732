//! From keys to hashes: which 64-bit hash a filter was built with, and how to compute it.
//!
//! `std::hash::Hash` is not used: its output differs by release and machine, and is stored here.

mod batch;
mod kernel;
pub(crate) use batch::HashKeys;
pub(crate) use kernel::hash_each;

pub use batch::HashError;

use core::fmt::{self, Display, Formatter};

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use crate::prefix::FilterContents;

/// Which hash a filter holds: part of its identity, stored in its bytes.
///
/// Filters of different identity cannot be merged; a key is looked up by the filter's own hash.
///
/// ```
/// use blocked_bloom::KeyHash;
/// assert_eq!(KeyHash::default(), KeyHash::Xxh3 { seed: 0 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum KeyHash {
    /// XXH3-64 of the key's bytes under `seed`. The default, with seed 0.
    Xxh3 {
        /// Seed of XXH3-64.
        seed: u64,
    },
    /// The caller supplies 64-bit hashes of its own. Both halves must be well mixed: the low half
    /// picks the block, the high half the bits. The filter cannot hash a key itself: adding one is
    /// an error, looking one up answers "maybe".
    Caller {
        /// Any number that tells the caller's hash from others; compared, never interpreted.
        tag: u64,
    },
}

impl Default for KeyHash {
    fn default() -> Self {
        KeyHash::Xxh3 { seed: 0 }
    }
}

impl Display for KeyHash {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            KeyHash::Xxh3 { seed } => write!(f, "XXH3-64 with seed {seed}"),
            KeyHash::Caller { tag } => write!(f, "the caller's hash with tag {tag}"),
        }
    }
}

impl KeyHash {
    /// The hasher of this identity. Filters and options have a `hasher`, which is this one.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoHasher`] if the caller hashes.
    #[inline]
    pub const fn hasher(self) -> Result<KeyHasher, KeyError> {
        match self {
            KeyHash::Xxh3 { seed } => Ok(KeyHasher { seed }),
            KeyHash::Caller { tag } => Err(KeyError::NoHasher { tag }),
        }
    }
}

/// A key is bytes: `&str`, `&[u8]`, `Vec<u8>`, `[u8; N]`, and whatever else lends some. An integer
/// is its little-endian bytes, `n.to_le_bytes()`.
///
/// ```
/// fn hash(key: impl blocked_bloom::Key) -> u64 {
///     blocked_bloom::KeyHasher::default().hash(key)
/// }
/// assert_eq!(hash("a"), hash([b'a']));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no key: a key is bytes",
    label = "does not lend bytes",
    note = "give an integer as its little-endian bytes, `n.to_le_bytes()`; a slice of `u64` is \
            for `hash_u64s`, and a filter's `insert_u64s` and `contains_u64s`"
)]
pub trait Key: AsRef<[u8]> {}

#[diagnostic::do_not_recommend]
impl<K: AsRef<[u8]> + ?Sized> Key for K {}

/// Hashes keys as a filter does, so that a batch is hashed once and looked up in many filters. A
/// filter hands out its own: `filter.hasher()?`.
///
/// ```
/// use blocked_bloom::{FilterOptions, Sizing};
/// let mut builder = FilterOptions::new(Sizing::BitsPerKey(10.0)).builder();
/// builder.insert("apple")?;
/// let filter = builder.finish()?;
/// let hasher = filter.hasher()?;
/// assert!(filter.contains_hash(hasher.hash("apple")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyHasher {
    seed: u64,
}

impl KeyHasher {
    /// A hasher with the given seed; `KeyHasher::default()` has seed 0.
    #[inline]
    pub const fn with_seed(seed: u64) -> Self {
        KeyHasher { seed }
    }

    /// XXH3-64 of the key's bytes.
    #[inline]
    pub fn hash(self, key: impl Key) -> u64 {
        xxh3_64_with_seed(key.as_ref(), self.seed)
    }

    /// XXH3-64 of a key in several parts, which need not lie next to each other: a row and a
    /// column, a tenant and a name.
    ///
    /// Equal to [`hash`](Self::hash) of the parts' encoding, in which each part is its length in
    /// bytes, as LEB128, followed by the bytes. No two lists of parts have the same encoding:
    /// `("ab", "c")`, `("a", "bc")` and `("abc")` are three keys. One part is encoded too, so that
    /// `hash_parts(&["abc"])` is not `hash("abc")`.
    ///
    /// A filter given the hash of the row and that of row and column answers for both.
    ///
    /// Cost: some 25 ns more than the same bytes in one piece; 600 bytes of stack.
    ///
    /// ```
    /// use blocked_bloom::{FilterOptions, Sizing};
    /// let mut builder = FilterOptions::new(Sizing::BitsPerKey(16.0)).builder();
    /// let hasher = builder.options().hasher()?;
    /// builder.insert_hash(hasher.hash_parts(&["row 1"]))?;
    /// builder.insert_hash(hasher.hash_parts(&["row 1", "name"]))?;
    /// let filter = builder.finish()?;
    /// assert!(filter.contains_hash(hasher.hash_parts(&["row 1"])));
    /// assert!(!filter.contains_hash(hasher.hash_parts(&["row 2"])));
    /// assert!(!filter.contains_hash(hasher.hash_parts(&["row 1", "age"])));
    /// assert_eq!(hasher.hash_parts(&["ab", "c"]), hasher.hash(b"\x02ab\x01c"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hash_parts<P: Key>(self, parts: &[P]) -> u64 {
        // Putting short parts together on the stack first takes as long, 30 ns for 32 bytes:
        // reading them back waits until they are stored.
        let mut state = Xxh3::with_seed(self.seed);
        for part in parts {
            let part = part.as_ref();
            let (length, bytes) = leb128(part.len());
            state.update(&length[..bytes]);
            state.update(part);
        }
        state.digest()
    }
}

/// The number in groups of seven bits, lowest first, each but the last with its top bit set; and
/// how many bytes that takes.
#[inline]
fn leb128(length: usize) -> ([u8; 10], usize) {
    let mut rest = length as u64;
    let mut bytes = [0; 10];
    let mut last = 0;
    while rest >= 0x80 {
        bytes[last] = rest as u8 | 0x80;
        rest >>= 7;
        last += 1;
    }
    bytes[last] = rest as u8;
    (bytes, last + 1)
}

/// Why a key or hash cannot be added, or a key cannot be hashed. Nothing was changed.
///
/// ```
/// use blocked_bloom::{BloomFilter, KeyError, KeyHash, Sizing};
/// let params = Sizing::BitsPerKey(10.0).params(1_000)?;
/// let mut filter = BloomFilter::new(params, KeyHash::Caller { tag: 7 })?;
/// assert_eq!(filter.insert("apple"), Err(KeyError::NoHasher { tag: 7 }));
/// assert_eq!(filter.insert_hash(0x9c1c_34f1_0a4e_7ab3), Ok(true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// The filter is of the caller's hashes and cannot hash a key itself.
    NoHasher {
        /// The tag of the caller's hash.
        tag: u64,
    },
    /// The filter holds prefixes, and the key or hash came without its own.
    NoPrefix {
        /// What the filter holds.
        contents: FilterContents,
    },
}

impl Display for KeyError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoHasher { tag } => {
                write!(
                    f,
                    "the filter is of {} and cannot hash keys: give hashes",
                    KeyHash::Caller { tag }
                )
            }
            Self::NoPrefix { contents } => write!(
                f,
                "the filter holds {contents}, and only a builder that is given keys knows their \
                 prefixes: build the filter by FilterOptions::builder, or make one of whole keys \
                 with FilterOptions::new(sizing).with_key_hash(key_hash)"
            ),
        }
    }
}

impl_error!(KeyError);

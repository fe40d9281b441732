//! One filter: owned, borrowed, with the bytes it was opened from, or shared by threads; how it is stored, folded and merged.

/// The queries of a type that lends a [`BloomFilterRef`] by `view`.
macro_rules! queries_by_view {
    ([$($generics:tt)*], $filter:ty) => {
        impl<$($generics)*> $filter {
            /// [`BloomFilterRef::contains`].
            #[inline]
            pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
                self.view().contains(key)
            }

            /// [`BloomFilterRef::contains_hash`].
            #[inline]
            pub fn contains_hash(&self, hash: u64) -> bool {
                self.view().contains_hash(hash)
            }

            /// [`BloomFilterRef::prefetch_hash`].
            #[inline]
            pub fn prefetch_hash(&self, hash: u64) {
                self.view().prefetch_hash(hash);
            }

            /// [`BloomFilterRef::hasher`].
            ///
            /// # Errors
            ///
            /// [`KeyError::NoHasher`](crate::KeyError::NoHasher) if the caller hashes.
            #[inline]
            pub fn hasher(&self) -> Result<crate::KeyHasher, crate::KeyError> {
                self.meta.key_hash.hasher()
            }
        }

        impl<$($generics)*> crate::BatchQuery for $filter {
            #[inline]
            fn contains_hashes_into(
                &self,
                hashes: &[u64],
                words: &mut [u64],
            ) -> Result<(), crate::LengthError> {
                self.view().contains_hashes_into(hashes, words)
            }

            #[inline]
            fn hash_keys<K: AsRef<[u8]>>(
                &self,
                keys: &[K],
                hashes: &mut [u64],
            ) -> Result<(), crate::KeyError> {
                self.view().hash_keys(keys, hashes)
            }

            #[inline]
            fn hash_u64s(&self, keys: &[u64], hashes: &mut [u64]) -> Result<(), crate::KeyError> {
                self.view().hash_u64s(keys, hashes)
            }
        }

        /// Same hash, contents, probes, keys inserted and bits; neither the kernel nor where the bytes are matters.
        impl<$($generics)*> PartialEq for $filter {
            fn eq(&self, other: &Self) -> bool {
                self.view() == other.view()
            }
        }

        impl<$($generics)*> Eq for $filter {}
    };
}

// Declared first, so that rustdoc begins with the constructors.
mod owned;

pub(crate) mod format;

#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
mod atomic;
mod bytes;
mod compact;
mod fold;
mod lookup;
mod merge;
mod statistics;
mod view;

#[cfg(any(target_has_atomic = "64", target_has_atomic = "32"))]
pub use atomic::AtomicBloomFilter;
pub use bytes::BloomFilterBytes;
#[cfg(feature = "rayon")]
pub(crate) use merge::{ForEachRange, one_by_one, views, without_input};
pub use owned::BloomFilter;
pub use view::BloomFilterRef;

//! Queries of a chain: a key may be there if any link says so. Written once over the views of the links, for the owned and the borrowed
//! chain.

use super::{AT_ONCE, ScalableBloomFilter, ScalableBloomFilterRef};
use crate::bitmask::{self, check_length};
use crate::error::{KeyError, LengthError};
use crate::filter::BloomFilterRef;
use crate::hash::{KeyHash, KeyHasher};
use crate::kernel::Kernel;
use crate::query::BatchQuery;

/// A thousand hashes are looked up in one link after the other, and the answers are joined; once half of the hashes are answered
/// "maybe", the rest of them are moved together, and only these are looked up in later links.
///
/// `docs/growing.md` has the figures: moving them after every link costs absent keys up to twice the time, looking up everything
/// in every link costs present keys ten times as much.
pub(super) fn hashes<'a>(
    views: impl Iterator<Item = BloomFilterRef<'a>> + Clone,
    hashes: &[u64],
    words: &mut [u64],
) {
    words.fill(0);
    let (mut answers, mut left) = ([0; AT_ONCE / 64], Left::new());
    for (hashes, words) in hashes.chunks(AT_ONCE).zip(words.chunks_mut(AT_ONCE / 64)) {
        let mut count = hashes.len();
        for link in views.clone() {
            let is_moved = count < hashes.len();
            let looked_up = if is_moved { &left.hashes[..count] } else { hashes };
            let answers = &mut answers[..count.div_ceil(64)];
            // The lengths agree by construction; if they did not, "maybe" would be the answer.
            if link.contains_hashes_into(looked_up, answers).is_err() {
                bitmask::fill_with_hits(answers, count);
            }
            if is_moved {
                for (i, &place) in left.places[..count].iter().enumerate() {
                    let hit = answers[i / 64] >> (i % 64) & 1;
                    words[usize::from(place) / 64] |= hit << (place % 64);
                }
            } else {
                words.iter_mut().zip(&*answers).for_each(|(word, answer)| *word |= answer);
            }
            let hits: u32 = words.iter().map(|word| word.count_ones()).sum();
            let unanswered = hashes.len() - hits as usize;
            if unanswered == 0 {
                break;
            }
            if unanswered <= count / 2 {
                count = left.gather(hashes, words);
            }
        }
    }
}

/// Hashes that no link has answered "maybe" yet, and where they stand in their batch.
struct Left {
    hashes: [u64; AT_ONCE],
    places: [u16; AT_ONCE],
}

impl Left {
    fn new() -> Self {
        Left { hashes: [0; AT_ONCE], places: [0; AT_ONCE] }
    }

    /// Takes the hashes whose bit is zero; returns how many.
    fn gather(&mut self, hashes: &[u64], words: &[u64]) -> usize {
        let mut count = 0;
        for (i, &hash) in hashes.iter().enumerate() {
            // Written whether or not it stays: no branch to guess.
            (self.hashes[count], self.places[count]) = (hash, i as u16);
            count += usize::from(words[i / 64] >> (i % 64) & 1 == 0);
        }
        count
    }
}

macro_rules! queries {
    ($filter:ty) => {
        impl $filter {
            /// The hash and seed the filter was made with.
            pub fn key_hash(&self) -> KeyHash {
                self.shape.key_hash
            }

            /// The hasher of the filter's keys.
            ///
            /// # Errors
            ///
            /// [`KeyError::NoHasher`] if the caller hashes.
            #[inline]
            pub fn hasher(&self) -> Result<KeyHasher, KeyError> {
                self.shape.key_hash.hasher()
            }

            /// Whether the key may have been added; false means certainly not. A filter of the caller's hashes answers "maybe".
            ///
            /// Cost: a cache line for each link, the newest first, until one may have the key.
            #[inline]
            pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
                self.hasher().map_or(true, |hasher| self.contains_hash(hasher.hash(key)))
            }

            /// Prefetches the cache lines that [`contains_hash`](Self::contains_hash) may read for this hash, one for each link.
            #[inline]
            pub fn prefetch_hash(&self, hash: u64) {
                self.views().for_each(|link| link.prefetch_hash(hash));
            }

            /// Whether the key with this hash may have been added.
            #[inline]
            pub fn contains_hash(&self, hash: u64) -> bool {
                self.views().any(|link| link.contains_hash(hash))
            }

            // What answers and hashes batches.
            fn kernel(&self) -> Kernel {
                self.views().next().map_or_else(Kernel::default, |link| link.kernel())
            }
        }

        impl BatchQuery for $filter {
            fn contains_hashes_into(
                &self,
                hashes: &[u64],
                words: &mut [u64],
            ) -> Result<(), LengthError> {
                check_length(hashes.len(), words)?;
                self::hashes(self.views(), hashes, words);
                Ok(())
            }

            #[inline]
            fn hash_keys<K: AsRef<[u8]>>(
                &self,
                keys: &[K],
                hashes: &mut [u64],
            ) -> Result<(), KeyError> {
                self.hasher()?.hash_by(self.kernel(), keys, hashes);
                Ok(())
            }

            #[inline]
            fn hash_u64s(&self, keys: &[u64], hashes: &mut [u64]) -> Result<(), KeyError> {
                self.hasher()?.hash_integers(self.kernel(), keys, hashes);
                Ok(())
            }
        }
    };
}

queries!(ScalableBloomFilter);
queries!(ScalableBloomFilterRef<'_>);

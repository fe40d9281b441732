//! Preparation of short keys for vectors: the first and last bytes of up to [`STAGED`] keys,
//! written without a branch that depends on a key's length.
//!
//! Everything here is always inlined, so that it is compiled for the caller's instruction set.

use core::hint::select_unpredictable;
use core::mem::MaybeUninit;

/// Number of keys at a time. All are staged before any is hashed: a load that is wider than the
/// preceding stores waits until they are done.
pub(super) const STAGED: usize = 64;

/// The ends of keys of 4 to 16 bytes. For key `i`:
///
/// | length | `first[i]` | `last[i]` |
/// |---|---|---|
/// | 4 to 8 | first four bytes and last four | unused; written only if longer keys are present |
/// | 9 to 16 | first eight bytes | last eight bytes |
///
/// Aligned, since a register that straddles two cache lines is stored and loaded twice.
#[repr(align(64))]
pub(super) struct Staging {
    pub(super) first: [MaybeUninit<u64>; STAGED],
    pub(super) last: [MaybeUninit<u64>; STAGED],
    pub(super) lengths: [MaybeUninit<u64>; STAGED],
    /// Indexes of the keys that are too short or too long.
    unfit: [u8; STAGED],
}

/// The fields of [`Staging`] that were written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Staged {
    /// `first` and `lengths`; all keys have 4 to 8 bytes.
    FourToEight,
    /// All fields; all keys have 9 to 16 bytes.
    NineToSixteen,
    /// All fields. The first `unfit` entries of [`Staging::unfit`] are keys that are too short or
    /// too long; their slots hold placeholder data.
    Mixed { unfit: usize },
    /// None: most keys are too short or too long.
    None,
}

impl Staging {
    #[inline(always)]
    pub(super) fn new() -> Self {
        let nothing = [const { MaybeUninit::uninit() }; STAGED];
        Staging { first: nothing, last: nothing, lengths: nothing, unfit: [0; STAGED] }
    }

    /// The indexes of the first `count` keys that were not staged.
    #[inline(always)]
    pub(super) fn unfit(&self, count: usize) -> impl Iterator<Item = usize> {
        self.unfit[..count].iter().map(|&i| usize::from(i))
    }

    /// Stages up to [`STAGED`] keys if all have 4 to `MAX_LENGTH` bytes. `MAX_LENGTH` is 8 or 16;
    /// with 16, it suffices that enough of them do.
    #[inline(always)]
    pub(super) fn stage<const MAX_LENGTH: usize, K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Staged {
        let (mut shortest, mut longest) = (usize::MAX, 0);
        for key in keys {
            let length = key.as_ref().len();
            shortest = shortest.min(length);
            longest = longest.max(length);
        }
        let staged = match (shortest, longest) {
            (4.., ..=8) => self.stage_short(keys),
            (9.., ..=16) if MAX_LENGTH == 16 => self.nine_to_sixteen(keys),
            (4.., ..=16) if MAX_LENGTH == 16 => self.mixed::<false, K>(keys),
            // This takes 0.5x the time of hashing one by one if 76 % of the keys have 4 to 16
            // bytes, and 1.4x if 38 % do (Zen 5).
            _ if MAX_LENGTH == 16 && fitting(keys) > keys.len() / 8 * 5 => {
                self.mixed::<true, K>(keys)
            }
            _ => None,
        };
        staged.unwrap_or(Staged::None)
    }

    /// Returns `None` if a key is too short for these loads: `as_ref` may return a different slice
    /// than before.
    #[inline(always)]
    fn stage_short<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Option<Staged> {
        for ((key, first), length) in keys.iter().zip(&mut self.first).zip(&mut self.lengths) {
            let key = key.as_ref();
            first.write(ends_of_short(key)?);
            length.write(key.len() as u64);
        }
        Some(Staged::FourToEight)
    }

    /// Returns `None` for the same reason as above.
    #[inline(always)]
    fn nine_to_sixteen<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Option<Staged> {
        let ends = self.first.iter_mut().zip(&mut self.last).zip(&mut self.lengths);
        for (key, ((first, last), length)) in keys.iter().zip(ends) {
            let key = key.as_ref();
            first.write(u64::from_le_bytes(*key.first_chunk()?));
            last.write(u64::from_le_bytes(*key.last_chunk()?));
            length.write(key.len() as u64);
        }
        Some(Staged::NineToSixteen)
    }

    /// Reads both ends of each key twice, as if the key were long and as if it were short, and
    /// selects without a branch. A read that does not fit the key reads [`STAND_IN`] instead. With
    /// `SKIP_UNFIT`, all reads of keys that are too short or too long do so too.
    #[inline(always)]
    fn mixed<const SKIP_UNFIT: bool, K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Option<Staged> {
        let mut unfit = 0;
        let ends = self.first.iter_mut().zip(&mut self.last).zip(&mut self.lengths);
        for (i, (key, ((first, last), length))) in keys.iter().zip(ends).enumerate() {
            let mut key = key.as_ref();
            if SKIP_UNFIT {
                let fits = (4..=16).contains(&key.len());
                self.unfit[unfit % STAGED] = i as u8;
                unfit += usize::from(!fits);
                key = select_unpredictable(fits, key, &STAND_IN);
            }
            let is_long = key.len() > 8;
            let long = select_unpredictable(is_long, key, &STAND_IN);
            let of_long = u64::from_le_bytes(*long.first_chunk()?);
            first.write(select_unpredictable(is_long, of_long, ends_of_short(key)?));
            last.write(u64::from_le_bytes(*long.last_chunk()?));
            length.write(key.len() as u64);
        }
        Some(Staged::Mixed { unfit })
    }
}

/// Number of keys with 4 to 16 bytes.
#[inline(always)]
fn fitting<K: AsRef<[u8]>>(keys: &[K]) -> usize {
    keys.iter().map(|key| usize::from((4..=16).contains(&key.as_ref().len()))).sum()
}

/// A placeholder key that is long enough for every read.
static STAND_IN: [u8; 8] = [0; 8];

/// Returns the first and the last four bytes.
#[inline(always)]
fn ends_of_short(key: &[u8]) -> Option<u64> {
    let low = u32::from_le_bytes(*key.first_chunk()?);
    let high = u32::from_le_bytes(*key.last_chunk()?);
    Some(u64::from(low) | u64::from(high) << 32)
}

//! XXH3-64 of several keys of 4 to 16 bytes at a time, with the vector instructions of a
//! [`Kernel`].
//!
//! Vectors change the speed, never a hash: the results equal those of the crate `xxhash-rust`,
//! which hashes all other keys. Each instruction set has a file with two functions. `integers`
//! hashes adjacent keys of 4 or 8 bytes. `staged` hashes any keys; it is generic, so that the code
//! that reads keys is compiled for the instruction set too. Staging keys in common code and hashing
//! them through a table of function pointers took 2.5 times as long for keys of 8 and 16 bytes
//! (Zen 5).

// Each call has its SAFETY comment here; the functions' own blocks have theirs.
#![expect(unsafe_code, reason = "SIMD kernels are unsafe functions behind these safe ones")]
#![allow(dead_code, reason = "other architectures than x86-64 have no AVX-512, or no vectors")]

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod staging;

use core::hint::black_box;
use core::mem::MaybeUninit;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use self::staging::STAGED;
use crate::kernel::{InstructionSet, Kernel};

/// Multiplier of keys of 4 to 8 bytes, `PRIME_MX2` of the specification of XXH3.
const MULTIPLIER_8: u64 = 0x9fb2_1c65_1e98_df25;

/// Multiplier of keys of 9 to 16 bytes, `PRIME_MX1`.
const MULTIPLIER_16: u64 = 0x1656_6791_9e37_79f9;

/// The value that is XORed with keys of 4 to 8 bytes: words 1 and 2 of the default secret and the
/// seed.
#[inline]
fn flip_8(seed: u64) -> u64 {
    let high = u64::from((seed as u32).swap_bytes()) << 32;
    (0x1cad_21f7_2c81_017c_u64 ^ 0xdb97_9083_e96d_d4de).wrapping_sub(seed ^ high)
}

/// The values that are XORed with the first and the last eight bytes of keys of 9 to 16 bytes:
/// words 3 to 6 of the secret and the seed.
#[inline]
fn flips_16(seed: u64) -> [u64; 2] {
    [
        (0x1f67_b3b7_a4a4_4072_u64 ^ 0x78e5_c0cc_4ee6_79cb).wrapping_add(seed),
        (0x2172_ffcc_7dd0_5a82_u64 ^ 0x8e24_43f7_7446_08b8).wrapping_sub(seed),
    ]
}

/// Fewer keys are hashed one by one. Staging takes 1.5x the time of that for 16 slices, 0.8x for 64
/// slices, and 0.5x for 16 arrays (Zen 5).
const MIN_KEYS: usize = 32;

/// Fewer integers are hashed one by one: selecting the vectors takes the time of hashing one key.
/// With vectors, calls of 4 and 6 integers took 1.2x to 1.4x that time (Zen 4).
const MIN_INTEGERS: usize = 8;

/// The vectors of a kernel's instruction set, if there is code for it here.
#[derive(Clone, Copy)]
pub(super) struct Vectors(pub(super) Kernel);

impl Vectors {
    /// Hashes every key into memory that need not be initialised, and returns that memory.
    ///
    /// # Panics
    ///
    /// If the numbers of keys and hashes differ, which only a bug in this crate can cause.
    #[inline(always)]
    pub(super) fn keys<'h, K: AsRef<[u8]>>(
        self,
        keys: &[K],
        seed: u64,
        hashes: &'h mut [MaybeUninit<u64>],
    ) -> &'h [u64] {
        assert_eq!(keys.len(), hashes.len());
        if keys.len() < MIN_KEYS {
            return hash_each(keys, hashes, |key| hash_one(key, seed));
        }
        self.staged(keys, seed, hashes);
        // SAFETY: `staged` writes a hash for every key.
        unsafe { written(hashes) }
    }

    /// [`keys`](Self::keys) for the little-endian bytes of integers.
    #[inline(always)]
    pub(super) fn integer_keys<'h>(
        self,
        keys: &[u64],
        seed: u64,
        hashes: &'h mut [MaybeUninit<u64>],
    ) -> &'h [u64] {
        assert_eq!(keys.len(), hashes.len());
        // All machines with these vectors are little-endian.
        if !self.integers::<8>(bytes_of(keys), seed, hashes) {
            for (hash, key) in hashes.iter_mut().zip(keys) {
                hash.write(xxh3_64_with_seed(&black_box(key).to_le_bytes(), seed));
            }
        }
        // SAFETY: `integers` and the loop each write a hash for every key.
        unsafe { written(hashes) }
    }

    /// Not inlined: that saves 2 % of a call with 128 keys of 16 bytes (AVX2, Zen 3).
    #[inline(never)]
    fn staged<K: AsRef<[u8]>>(self, keys: &[K], seed: u64, hashes: &mut [MaybeUninit<u64>]) {
        let most = match self.0.instructions() {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 => 16,
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            InstructionSet::Avx2 => 8,
            _ => 0,
        };
        let fits = |key: &K| (4..=most).contains(&key.as_ref().len());
        let mut done = 0;
        while done < keys.len() {
            let (keys, hashes) = (&keys[done..], &mut hashes[done..]);
            let end = keys.len().min(STAGED);
            // Usually all keys have similar lengths. If vectors cannot hash such lengths, two keys
            // of a chunk show it.
            if fits(&keys[0]) || fits(&keys[end / 2]) {
                let staged = match self.0.instructions() {
                    // SAFETY: a `Kernel` with AVX-512 exists only after detection; the numbers of
                    // keys and hashes are equal.
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512 => unsafe { avx512::staged(keys, seed, hashes) },
                    // SAFETY: a `Kernel` with AVX2 exists only after detection; the numbers of keys
                    // and hashes are equal.
                    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
                    InstructionSet::Avx2 => unsafe { avx2::staged(keys, seed, hashes) },
                    _ => 0,
                };
                done += staged;
                if staged > 0 {
                    continue;
                }
            }
            hash_in_fours(&keys[..end], seed, &mut hashes[..end]);
            done += end;
        }
    }

    /// Hashes adjacent keys of `WIDTH` bytes, 4 or 8. Returns false, without writing, for few keys
    /// and without vectors.
    ///
    /// # Panics
    ///
    /// If the numbers of keys and hashes differ, which only a bug in this crate can cause.
    #[allow(unused_variables, reason = "only x86 has vectors")]
    #[inline]
    pub(super) fn integers<const WIDTH: usize>(
        self,
        bytes: &[u8],
        seed: u64,
        hashes: &mut [MaybeUninit<u64>],
    ) -> bool {
        assert_eq!(hashes.len().checked_mul(WIDTH), Some(bytes.len()));
        if hashes.len() < MIN_INTEGERS {
            return false;
        }
        match self.0.instructions() {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 => {
                // SAFETY: a `Kernel` with AVX-512 exists only after detection; the assertion above
                // makes the numbers of keys and hashes equal.
                unsafe { avx512::integers::<WIDTH>(bytes.as_chunks().0, seed, hashes) };
                true
            }
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            InstructionSet::Avx2 => {
                // SAFETY: a `Kernel` with AVX2 exists only after detection; the assertion above
                // makes the numbers of keys and hashes equal.
                unsafe { avx2::integers::<WIDTH>(bytes.as_chunks().0, seed, hashes) };
                true
            }
            _ => false,
        }
    }
}

/// Writes the `hash` of every key to the start of uninitialised memory, and returns the hashes.
///
/// # Panics
///
/// If there are more keys than places for hashes, which only a bug in this crate can cause.
#[inline]
pub(crate) fn hash_each<'h, K>(
    keys: &[K],
    memory: &'h mut [MaybeUninit<u64>],
    mut hash: impl FnMut(&K) -> u64,
) -> &'h [u64] {
    let memory = &mut memory[..keys.len()];
    for (slot, key) in memory.iter_mut().zip(keys) {
        slot.write(hash(key));
    }
    // SAFETY: `memory` has one slot per key, and the loop wrote all of them.
    unsafe { written(memory) }
}

/// Hashes one key.
#[inline]
fn hash_one<K: AsRef<[u8]>>(key: &K, seed: u64) -> u64 {
    // Without `black_box`, the compiler vectorises the hash of keys of fixed width for SSE2, which
    // lacks 64-bit multiplication. Keys of 16 bytes then take 3.0 ns instead of 1.7 on Intel and
    // 1.9 instead of 1.5 on Zen 5; keys of 8 bytes 1.6 instead of 2.1, and 1.7 instead of 1.5.
    xxh3_64_with_seed(black_box(key).as_ref(), seed)
}

/// Hashes keys one by one, four per iteration. One per iteration takes up to 1.1 of the time (keys
/// of 16 bytes, Zen 3), though less for few keys. Not inlined: next to it, vectors took 1.1 of the
/// time (32 keys, Zen 4).
#[inline(never)]
fn hash_in_fours<K: AsRef<[u8]>>(keys: &[K], seed: u64, hashes: &mut [MaybeUninit<u64>]) {
    let (fours, rest) = keys.as_chunks::<4>();
    let (hashes, of_rest) = hashes.split_at_mut(4 * fours.len());
    for (hashes, keys) in hashes.as_chunks_mut::<4>().0.iter_mut().zip(fours) {
        hashes.iter_mut().zip(keys).for_each(|(hash, key)| _ = hash.write(hash_one(key, seed)));
    }
    hash_each(rest, of_rest, |key| hash_one(key, seed));
}

/// Returns the memory of the integers as bytes.
#[inline]
fn bytes_of(integers: &[u64]) -> &[u8] {
    // SAFETY: the same memory, borrowed for the same time. Integers have no padding, and bytes need
    // no alignment.
    unsafe { core::slice::from_raw_parts(integers.as_ptr().cast(), size_of_val(integers)) }
}

/// Returns the same memory in the form that [`Vectors`] take.
///
/// # Safety
///
/// No word becomes uninitialised: everything that is written to the memory is a number.
#[inline]
pub(super) unsafe fn overwritten(hashes: &mut [u64]) -> &mut [MaybeUninit<u64>] {
    // SAFETY: the same memory, borrowed for the same time. The caller promises to keep every word
    // initialised, as `hashes` requires.
    unsafe { core::slice::from_raw_parts_mut(hashes.as_mut_ptr().cast(), hashes.len()) }
}

/// Returns hashes that were written.
///
/// # Safety
///
/// Every hash has been written.
#[inline]
unsafe fn written(hashes: &mut [MaybeUninit<u64>]) -> &[u64] {
    // SAFETY: the same memory, borrowed for the same time; the caller promises that every word was
    // written.
    unsafe { core::slice::from_raw_parts(hashes.as_ptr().cast(), hashes.len()) }
}

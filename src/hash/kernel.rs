//! XXH3-64 of many keys of 4 to 16 bytes at a time, by vectors of a [`Kernel`]'s instructions.
//!
//! Vectors change the speed, never a hash: they give what the crate `xxhash-rust` gives, which
//! hashes all other keys. Each instruction set is a file with two functions of the same names.
//! `integers` hashes keys of 4 or of 8 bytes that lie one after the other. `staged` hashes any
//! keys; it is generic, so that the part that reads keys is compiled for the instruction set too.
//! Staging keys in a common part, and hashing them by a table of function pointers, took 2.5 times
//! as long for keys of 8 and of 16 bytes (Zen 5).

// Each call is argued where it is made; the functions' own blocks in their files.
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
use crate::kernel::Kernel;

/// Multiplier of keys of 4 to 8 bytes, `PRIME_MX2` of the specification of XXH3.
const MULTIPLIER_8: u64 = 0x9fb2_1c65_1e98_df25;

/// Multiplier of keys of 9 to 16 bytes, `PRIME_MX1`.
const MULTIPLIER_16: u64 = 0x1656_6791_9e37_79f9;

/// What keys of 4 to 8 bytes are combined with: words 1 and 2 of the default secret, and the seed.
#[inline]
fn flip_8(seed: u64) -> u64 {
    let high = u64::from((seed as u32).swap_bytes()) << 32;
    (0x1cad_21f7_2c81_017c_u64 ^ 0xdb97_9083_e96d_d4de).wrapping_sub(seed ^ high)
}

/// What the first and the last eight bytes of keys of 9 to 16 bytes are combined with: words 3 to 6
/// of the secret, and the seed.
#[inline]
fn flips_16(seed: u64) -> [u64; 2] {
    [
        (0x1f67_b3b7_a4a4_4072_u64 ^ 0x78e5_c0cc_4ee6_79cb).wrapping_add(seed),
        (0x2172_ffcc_7dd0_5a82_u64 ^ 0x8e24_43f7_7446_08b8).wrapping_sub(seed),
    ]
}

/// Fewer keys are hashed one by one. Staging 16 slices takes 1.5 times as long as that, 64 slices
/// 0.8 times, and 16 arrays 0.5 times (Zen 5).
const MIN_KEYS: usize = 32;

/// Fewer integers are hashed one by one: looking for the vectors takes as long as a key.
const MIN_INTEGERS: usize = 4;

/// An instruction set that this CPU has, or none.
#[derive(Clone, Copy)]
pub(super) struct Vectors(VectorKind);

#[derive(Clone, Copy)]
enum VectorKind {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    Avx2,
    /// Keys are hashed one by one.
    Scalar,
}

impl Vectors {
    /// The vectors of the kernel's instruction set.
    #[inline]
    pub(super) fn for_kernel(kernel: Kernel) -> Self {
        Vectors(match kernel.instructions() {
            #[cfg(target_arch = "x86_64")]
            crate::kernel::InstructionSet::Avx512 => VectorKind::Avx512,
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            crate::kernel::InstructionSet::Avx2 => VectorKind::Avx2,
            _ => VectorKind::Scalar,
        })
    }

    /// Hashes every key, into memory that need not be initialised and is given back.
    ///
    /// # Panics
    ///
    /// If there is not as much memory as keys: a bug of this crate, not an input.
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
        // SAFETY: it writes a hash for every key.
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
        // Machines that have vectors are little-endian.
        if !self.integers(bytes_of(keys), 8, seed, hashes) {
            for (hash, key) in hashes.iter_mut().zip(keys) {
                hash.write(xxh3_64_with_seed(&black_box(key).to_le_bytes(), seed));
            }
        }
        // SAFETY: both write a hash for every key.
        unsafe { written(hashes) }
    }

    /// Not inlined: two per cent of a call of 128 keys of 16 bytes (AVX2, Zen 3).
    #[inline(never)]
    fn staged<K: AsRef<[u8]>>(self, keys: &[K], seed: u64, hashes: &mut [MaybeUninit<u64>]) {
        let most = match self.0 {
            #[cfg(target_arch = "x86_64")]
            VectorKind::Avx512 => 16,
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            VectorKind::Avx2 => 8,
            VectorKind::Scalar => 0,
        };
        let fits = |key: &K| (4..=most).contains(&key.as_ref().len());
        let mut done = 0;
        while done < keys.len() {
            let (keys, hashes) = (&keys[done..], &mut hashes[done..]);
            let end = keys.len().min(STAGED);
            // Most often all keys have lengths of one kind. If vectors cannot hash that kind,
            // looking at two keys of a chunk shows it.
            if fits(&keys[0]) || fits(&keys[end / 2]) {
                let staged = match self.0 {
                    // SAFETY: `Vectors` are made of a `Kernel` of that instruction set, which
                    // exists only if detection found it; there are as many keys as hashes.
                    #[cfg(target_arch = "x86_64")]
                    VectorKind::Avx512 => unsafe { avx512::staged(keys, seed, hashes) },
                    // SAFETY: as above.
                    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
                    VectorKind::Avx2 => unsafe { avx2::staged(keys, seed, hashes) },
                    VectorKind::Scalar => 0,
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

    /// Hashes keys of `width` bytes, 4 or 8, which lie one after the other. Returns false, without
    /// writing, for other widths and for few keys.
    ///
    /// # Panics
    ///
    /// If there are not as many hashes as keys: a bug of this crate, not an input.
    #[allow(unused_variables, reason = "there are no vectors on other machines than x86")]
    #[inline]
    pub(super) fn integers(
        self,
        bytes: &[u8],
        width: usize,
        seed: u64,
        hashes: &mut [MaybeUninit<u64>],
    ) -> bool {
        assert_eq!(hashes.len().checked_mul(width), Some(bytes.len()));
        if hashes.len() < MIN_INTEGERS {
            return false;
        }
        match (self.0, width) {
            #[cfg(target_arch = "x86_64")]
            (VectorKind::Avx512, 4) => {
                // SAFETY: as above for the instruction set; there are as many keys as hashes.
                unsafe { avx512::integers::<4>(bytes.as_chunks().0, seed, hashes) };
                true
            }
            #[cfg(target_arch = "x86_64")]
            (VectorKind::Avx512, 8) => {
                // SAFETY: as above.
                unsafe { avx512::integers::<8>(bytes.as_chunks().0, seed, hashes) };
                true
            }
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            (VectorKind::Avx2, 4) => {
                // SAFETY: as above.
                unsafe { avx2::integers::<4>(bytes.as_chunks().0, seed, hashes) };
                true
            }
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            (VectorKind::Avx2, 8) => {
                // SAFETY: as above.
                unsafe { avx2::integers::<8>(bytes.as_chunks().0, seed, hashes) };
                true
            }
            _ => false,
        }
    }
}

/// Writes what `hash` gives for every key to the start of memory that is not initialised.
///
/// # Panics
///
/// If there is less memory than keys: a bug of this crate, not an input.
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
    // SAFETY: there is a slot for every key, and all were written.
    unsafe { written(memory) }
}

/// The hash of one key.
#[inline]
fn hash_one<K: AsRef<[u8]>>(key: &K, seed: u64) -> u64 {
    // Without `black_box` the compiler vectorises the hash of keys of fixed width for SSE2, which
    // has no 64-bit multiplication: keys of 16 bytes then take 3.0 ns in place of 1.7 on Intel and
    // 1.9 in place of 1.5 on Zen 5 (keys of 8 bytes 1.6 in place of 2.1, and 1.7 in place of 1.5).
    xxh3_64_with_seed(black_box(key).as_ref(), seed)
}

/// Hashes key after key, four an iteration: one takes up to 1.1 of the time (keys of 16 bytes, Zen
/// 3), but less for few keys. Not inlined: vectors took 1.1 of the time beside it (32 keys, Zen 4).
#[inline(never)]
fn hash_in_fours<K: AsRef<[u8]>>(keys: &[K], seed: u64, hashes: &mut [MaybeUninit<u64>]) {
    let (fours, rest) = keys.as_chunks::<4>();
    let (hashes, of_rest) = hashes.split_at_mut(4 * fours.len());
    for (hashes, keys) in hashes.as_chunks_mut::<4>().0.iter_mut().zip(fours) {
        hashes.iter_mut().zip(keys).for_each(|(hash, key)| _ = hash.write(hash_one(key, seed)));
    }
    hash_each(rest, of_rest, |key| hash_one(key, seed));
}

/// The bytes of the integers as they lie in memory.
#[inline]
fn bytes_of(integers: &[u64]) -> &[u8] {
    // SAFETY: the same memory, borrowed as long; integers have no padding, and bytes no alignment.
    unsafe { core::slice::from_raw_parts(integers.as_ptr().cast(), size_of_val(integers)) }
}

/// The same memory, as [`Vectors`] take it. They only write hashes to it, so that it stays
/// initialised; nobody else is given it.
#[inline]
pub(super) fn overwritten(hashes: &mut [u64]) -> &mut [MaybeUninit<u64>] {
    // SAFETY: the same memory, borrowed as long; `hash::batch` passes it to `Vectors` alone.
    unsafe { core::slice::from_raw_parts_mut(hashes.as_mut_ptr().cast(), hashes.len()) }
}

/// # Safety
///
/// Every hash was written.
#[inline]
unsafe fn written(hashes: &mut [MaybeUninit<u64>]) -> &[u64] {
    // SAFETY: the same memory, borrowed as long, all of it initialised.
    unsafe { core::slice::from_raw_parts(hashes.as_ptr().cast(), hashes.len()) }
}

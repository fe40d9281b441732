//! SIMD places equal those of the definition, for numbers of lines that no test could allocate.

use alloc::vec::Vec;

#[cfg(target_arch = "x86_64")]
use blocked_bloom::InstructionSet;

use super::driver::{KEYS, Places};
use crate::tags::Place;

/// Hashes at the edges of every range, and others.
fn hashes() -> Vec<[u64; KEYS]> {
    let halves = [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0x9e37_79b9, 0xffff_fffe, 0xffff_ffff];
    let highest = [0, 1, 2, 3, 0x61c8, 0x7fff, 0x8000, 0xfffe, 0xffff];
    let edges = highest.map(|tag| halves.map(|low| tag << 48 | low | low << 16 & 0xffff_0000_0000));
    let random = (0..2_000_u64).map(|i| {
        core::array::from_fn(|j| {
            (i * KEYS as u64 + j as u64 + 1)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29)
                .wrapping_mul(0xbf58_476d_1ce4_e5b9)
        })
    });
    edges.into_iter().chain(random).collect()
}

/// The definition, in arithmetic that shares nothing with `Place`.
fn naive(hash: u64, lines: u32) -> (u32, u32, u16) {
    let (hash, n) = (u128::from(hash), u128::from(lines));
    let tag = (hash / (1 << 48)).max(1);
    let first = hash % (1 << 32) * n / (1 << 32);
    let sum = tag * 0x9e37_79b9 % (1 << 32) * n / (1 << 32);
    (first as u32, ((sum + n - first) % n) as u32, tag as u16)
}

#[test]
fn places_of_every_number_of_lines() {
    const LINES: [u32; 13] = [
        1,
        2,
        3,
        31,
        1_000,
        65_537,
        0x7fff_ffff,
        0x8000_0000,
        0x8000_0001,
        0xaaaa_aaab,
        0xc000_0000,
        0xffff_fffe,
        0xffff_ffff,
    ];
    for lines in LINES {
        for hashes in hashes() {
            let expected = Places::scalar(&hashes, lines);
            for (i, &hash) in hashes.iter().enumerate() {
                let place = Place::new(hash, lines);
                assert_eq!(
                    (place.first, place.second, place.tag),
                    naive(hash, lines),
                    "{hash:#x}, {lines}"
                );
                assert_eq!((expected.first[i], expected.second[i]), (place.first, place.second));
                assert_eq!(expected.tags[i], u64::from(place.tag) * 0x0001_0001_0001_0001);
            }
            for (name, places) in supported() {
                let found = places(&hashes, lines);
                assert_eq!(found.first, expected.first, "{name}, {lines} lines, {hashes:x?}");
                assert_eq!(found.second, expected.second, "{name}, {lines} lines, {hashes:x?}");
                assert_eq!(found.tags, expected.tags, "{name}, {lines} lines, {hashes:x?}");
            }
        }
    }
}

type ComputePlaces = fn(&[u64; KEYS], u32) -> Places;

/// Tests the kernels that this machine supports.
fn supported() -> Vec<(&'static str, ComputePlaces)> {
    #[allow(unused_mut, reason = "other machines have none")]
    let mut all: Vec<(&'static str, ComputePlaces)> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    for kernel in blocked_bloom::Kernel::supported() {
        match kernel.instructions() {
            InstructionSet::Avx512 => all.push(("avx512", |keys, lines| {
                // SAFETY: `Kernel::supported` returned AVX2, so the CPU supports it.
                unsafe { super::avx512::places(keys, lines) }
            })),
            InstructionSet::Avx2 => all.push(("avx2", |keys, lines| {
                // SAFETY: `Kernel::supported` returned AVX-512, so the CPU supports it.
                unsafe { super::avx2::places(keys, lines) }
            })),
            _ => {}
        }
    }
    all
}

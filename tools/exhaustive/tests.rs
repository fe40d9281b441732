//! The checks pass for the kernels of this machine, and notice a kernel with other bits.

use blocked_bloom::Kernel;

use super::bloom::Bloom;
use super::calls::Calls;
use super::integers::Integers;
use super::split::Split;
use super::tags::Tags;
use super::{CHUNKS, Check, N, SPREAD, numbers, source};

#[test]
fn kernels_of_this_machine_pass() {
    for kernel in Kernel::supported() {
        for probes in [1, 6, 8, 9, 16, 17, 30] {
            let calls = Calls::ALL.map(Some).into_iter().chain([None]).collect();
            let mut check = Bloom::new(kernel, calls, probes, probes).unwrap();
            for chunk in [0, 1, CHUNKS / 2, CHUNKS - 1] {
                check.chunk(chunk).unwrap();
            }
        }
        for chunk in [0, 8, CHUNKS - 1] {
            Split::new(kernel).chunk(chunk).unwrap();
            Tags::new(kernel).unwrap().chunk(chunk).unwrap();
            Integers.chunk(chunk).unwrap();
        }
    }
}

#[test]
fn a_probe_too_many_or_too_few_is_noticed() {
    for kernel in Kernel::supported() {
        for (probes, expected) in [(6, 7), (7, 6), (16, 17), (17, 16), (29, 30)] {
            let error = |calls| {
                let mut check = Bloom::new(kernel, vec![calls], probes, expected).unwrap();
                check.chunk(3).unwrap_err()
            };
            assert!(error(None).contains("set other bits"), "{kernel}");
            for calls in Calls::ALL {
                // A missing test shows where its bit is clear, an additional one in the block with
                // no other bits.
                let found = if probes < expected { "present" } else { "absent" };
                let error = error(Some(calls));
                assert!(error.contains(found) && error.contains(&format!("{calls:?}")), "{error}");
            }
        }
    }
}

#[test]
fn every_number_occurs_in_one_chunk() {
    // SPREAD is odd, so that multiplication by it permutes the numbers of 32 bits.
    assert_eq!(SPREAD % 2, 1);
    assert_eq!(CHUNKS * N as u64, 1 << 32);
    assert_eq!(numbers(0)[1], SPREAD);
    assert_eq!(numbers(1)[0], SPREAD.wrapping_mul(N as u32));
    assert_eq!(numbers(CHUNKS - 1)[N - 1], SPREAD.wrapping_neg());
}

#[test]
fn code_is_found_for_every_kernel() {
    let mut hashes = Vec::new();
    for check in ["insert", "single", "group", "batch", "split", "tags", "integers"] {
        for kernel in ["avx512", "avx2", "neon", "portable", "scalar"] {
            hashes.push(source::hash(check, kernel).unwrap());
        }
    }
    hashes.sort_unstable();
    hashes.dedup();
    // Insertion and single calls of NEON, of the portable and of the scalar kernel have the same
    // files. The portable and the scalar kernel share the code of tags, and they and NEON that of
    // integers.
    assert_eq!(hashes.len(), 35 - 3 - 1 - 2);
    source::hash("batch", "sse9").unwrap_err();
}

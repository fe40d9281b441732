//! Back substitution by every kernel, of every number of columns, is that of the scalar definition.

use alloc::vec;
use alloc::vec::Vec;

use blocked_bloom::Kernel;

use super::{substitute_64, substitute_128};
use crate::scheme::rocksdb::{SEGMENT_BYTES, Shape, starts};
use crate::solve::rocksdb::{Solver, add_each};
use crate::solve::{Rows, rocksdb};
use crate::threads::Threads;

fn hashes(count: u64) -> Vec<u64> {
    (1..=count).map(|i| (i << 32 ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

#[test]
fn every_kernel_substitutes_alike() {
    let mut rows = Rows::default();
    let seed = (0..=u8::MAX).find(|&seed| rows.add_all(&hashes(600), seed, 704).unwrap());
    assert!(seed.is_some());
    let mut solver = Solver::default();
    let mut solve =
        |raw_seed: &u32| solver.add_all(&hashes(700), *raw_seed, 896, Threads::One).unwrap();
    assert!((0..).any(|seed| solve(&seed)));
    for columns in 1..=32 {
        for short in [0, 1, 4, 7] {
            let words = 11 * columns - short;
            let mut expected = vec![[0; 8]; words as usize];
            crate::solve::substitute(&rows, &mut expected, columns, short);
            let segments = (7 * columns - short) as usize;
            let shape = Shape::new(segments * SEGMENT_BYTES, 7);
            let mut expected_128 = vec![[0; 16]; segments];
            if let Some(shape) = shape {
                let (columns, short) = (shape.columns(), shape.short());
                rocksdb::substitute(&solver.rows, &mut expected_128, columns, short);
            }
            for kernel in Kernel::supported() {
                let mut found = vec![[0xff; 8]; words as usize];
                substitute_64(kernel, &rows, &mut found, columns, short);
                assert!(found == expected, "{kernel} {columns} {short}");
                let mut found = vec![[0; 16]; segments];
                if let Some(shape) = shape {
                    substitute_128(kernel, &solver.rows, &mut found, shape);
                }
                assert!(found == expected_128, "{kernel} {columns} {short}");
            }
        }
    }
}

/// Rows of every order have one solution.
#[test]
fn orders_of_insertion() {
    let hashes = hashes(70_000);
    let slots = 80_000_u32.next_multiple_of(128);
    let solution = |threads: Option<Threads>| {
        let mut solver = Solver::default();
        match threads {
            Some(threads) => assert!(solver.add_all(&hashes, 1, slots, threads).unwrap()),
            None => {
                Threads::One.refill(&mut solver.rows, slots as usize).unwrap();
                assert!(add_each(&mut solver.rows, &hashes, 1, starts(slots)));
            }
        }
        let mut out = vec![[0; 16]; slots as usize / 128 * 9];
        rocksdb::substitute(&solver.rows, &mut out, 9, 0);
        out
    };
    let expected = solution(None);
    assert!(solution(Some(Threads::One)) == expected);
    #[cfg(feature = "rayon")]
    assert!(solution(Some(Threads::Pool)) == expected);
}

/// The times of constructions, one after the other, which must give the same bytes: `cargo test --release -p blocked-bloom-ribbon --all-features -- --ignored --nocapture times`.
#[cfg(feature = "std")]
#[test]
#[ignore = "figures"]
#[expect(clippy::print_stdout, reason = "figures to be quoted")]
fn times() {
    use std::time::Instant;

    use std::println;

    use crate::RibbonOptions;
    use crate::rocksdb::{BuiltBlock, RibbonBlockOptions};

    let count = std::env::var("KEYS").map_or(1_000_000, |keys| keys.parse().unwrap());
    let hashes = hashes(count);
    let options = RibbonBlockOptions::new(10.0).unwrap();
    let rocksdb = |threads: Threads| match options.build_by(&hashes, None, threads).unwrap() {
        BuiltBlock::Ribbon(block) => block,
        BuiltBlock::Bloom(reason) => panic!("{reason:?}"),
    };
    let sharded = |threads: Threads| {
        let mut builder = RibbonOptions::new(options.false_positive_rate()).builder();
        builder.insert_hashes(&hashes);
        builder.finish_by(threads, false).unwrap().as_bytes().to_vec()
    };
    let ways: [(&str, &dyn Fn() -> Vec<u8>); _] = [
        ("ribbon-128 in buckets", &|| rocksdb(Threads::One)),
        #[cfg(feature = "rayon")]
        ("ribbon-128 by threads", &|| rocksdb(Threads::Pool)),
        ("sharded-64", &|| sharded(Threads::One)),
        #[cfg(feature = "rayon")]
        ("sharded-64 by threads", &|| sharded(Threads::Pool)),
    ];
    let mut times = vec![Vec::new(); ways.len()];
    for _ in 0..(10_000_000 / count).clamp(3, 300) {
        // By the first word of its name, a way makes one kind of filter.
        let mut first = Vec::<(&str, Vec<u8>)>::new();
        for ((name, way), times) in ways.iter().zip(&mut times) {
            let start = Instant::now();
            let bytes = way();
            times.push(start.elapsed().as_secs_f64() * 1e9 / count as f64);
            let kind = name.split(' ').next().unwrap();
            match first.iter().find(|(other, _)| *other == kind) {
                Some((_, expected)) => assert!(bytes == *expected, "{name}"),
                None => first.push((kind, bytes)),
            }
        }
    }
    for ((name, _), mut times) in ways.iter().zip(times) {
        times.sort_by(f64::total_cmp);
        println!("{name:24} {:6.1} ({:.1}) ns per key", times[times.len() / 2], times[0]);
    }
}

//! Every kernel's back substitution equals the scalar definition, for every number of columns.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use blocked_bloom::{Filter, Kernel};

use super::{
    contains_64, contains_128, contains_one_64, contains_one_128, driver, prefetch_equation,
    substitute_64, substitute_128,
};
use crate::scheme::rocksdb::{SEGMENT_BYTES, Segments, Shape, raw_seed, starts};
use crate::scheme::{Entry, Shards, Word};
use crate::solve::rocksdb::{Solver, add_each};
use crate::solve::{Rows, rocksdb};
use crate::threads::Threads;
use crate::watch::{Event, events, kernels, lines, note};

fn hashes(count: u64) -> Vec<u64> {
    (1..=count).map(|i| (i << 32 ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

fn segments(data: &[u8], blocks: u32) -> Segments<'_> {
    let shape = Box::leak(Box::new(Shape::new(data.len(), blocks).unwrap()));
    Segments::new(data, shape, raw_seed(1)).unwrap()
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

/// The kernel whose loops run on this CPU for a kernel of the core, determined without `table`.
/// Empty for the scalar kernel.
fn expected(kernel: Kernel) -> &'static [&'static str] {
    #[cfg(target_arch = "x86_64")]
    if kernel.name() == "avx512" && !std::is_x86_feature_detected!("avx512vpopcntdq") {
        return &["avx2"];
    }
    match kernel.name() {
        "avx512" => &["avx512"],
        "avx2" => &["avx2"],
        "neon" => &["neon"],
        "portable" => &["portable"],
        _ => &[],
    }
}

/// Every operation runs in the loops of its kernel, by default of the fastest: detects a kernel
/// that is never used.
#[test]
fn each_operation_runs_in_its_kernel() {
    let hashes = hashes(3_000);
    for kernel in Kernel::supported() {
        for columns in [3, 8, 9, 32] {
            let ran = |work: &mut dyn FnMut()| kernels(&events(work));
            let (directory, words) = directory(4, columns);
            let shards = Shards { directory: &directory, words: &words, columns };
            let data = vec![0x5a; 100 * columns as usize * SEGMENT_BYTES];
            let segments = segments(&data, 100);
            // The portable kernel uses the scalar definitions here, which have no loops.
            let alone = match expected(kernel) {
                ["avx512" | "avx2"] => expected(kernel),
                _ => &[],
            };
            for count in [1_usize, 6, 7, 3_000] {
                // Few hashes are looked up one by one.
                let batch_kernels = if count <= 6 { alone } else { expected(kernel) };
                let mut hits = vec![0; count.div_ceil(64)];
                let found_64 =
                    ran(&mut || contains_64(kernel.into(), &shards, &hashes[..count], &mut hits));
                assert_eq!(found_64, batch_kernels, "{kernel}, {columns} columns, {count}");
                let found_128 = ran(&mut || {
                    contains_128(kernel.into(), &segments, &hashes[..count], &mut hits)
                });
                assert_eq!(found_128, batch_kernels, "{kernel}, {columns} columns, {count}");
            }
            let found_64 = ran(&mut || _ = contains_one_64(kernel.into(), &shards, hashes[0]));
            assert_eq!(found_64, alone, "{kernel}, {columns} columns");
            let found_128 = ran(&mut || _ = contains_one_128(kernel.into(), &segments, hashes[0]));
            assert_eq!(found_128, alone, "{kernel}, {columns} columns");
            let mut rows = Rows::default();
            assert!(rows.add_all(&hashes[..10], 1, 128).unwrap());
            let mut out = vec![[0; 8]; 2 * columns as usize];
            let found_64 = ran(&mut || substitute_64(kernel, &rows, &mut out, columns, 0));
            assert_eq!(found_64, alone, "{kernel}, {columns} columns");
            let shape = segments.shape();
            let rows = vec![rocksdb::Row::default(); 100 * 128];
            let mut out = vec![[0; 16]; shape.segments()];
            let found_128 = ran(&mut || substitute_128(kernel, &rows, &mut out, shape));
            assert_eq!(found_128, alone, "{kernel}, {columns} columns");
        }
    }
    // The public methods use the default kernel.
    let mut builder = crate::RibbonOptions::new(0.01).builder();
    builder.insert_hashes(&hashes);
    let mut filter = None;
    let built = kernels(&events(|| filter = Some(builder.finish().unwrap())));
    let substitutes = matches!(expected(Kernel::default()), ["avx512" | "avx2"]);
    assert_eq!(built.is_empty(), !substitutes);
    assert!(built.is_empty() || built == expected(Kernel::default()));
    let mut hits = blocked_bloom::Bitmask::new();
    let looked_up = kernels(&events(|| filter.unwrap().contains_hashes(&hashes, &mut hits)));
    assert_eq!(looked_up, expected(Kernel::default()));
}

/// A directory of this many shards of 61 full blocks, and words for them.
fn directory(shards: u32, columns: u32) -> (Vec<Word>, Vec<Word>) {
    let entry =
        |shard| Entry { offset: 61 * columns * shard, starts: 60 * 64 + 1, short: 0, seed: 3 };
    let words = vec![[0xa5; 8]; (61 * columns * shards) as usize];
    ((0..shards).map(|shard| entry(shard).to_word()).collect(), words)
}

/// The cache lines of an equation's bytes.
fn read<S: driver::Source>(source: &S, hash: u64) -> Vec<usize> {
    let driver::Equation { start: at, next, columns, .. } = source.equation(hash);
    let start = source.bytes().as_ptr().addr();
    let range = |at: usize| (start + at) / 64..=(start + at + columns * S::WORD_BYTES - 1) / 64;
    let mut lines: Vec<usize> = range(at).chain(range(at + next)).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// Checks that the prefetched lines, equally many per key, are those that the lookup reads, in the
/// order of the keys.
fn check_lines<S: driver::Source>(source: &S, hashes: &[u64], prefetched: &[usize], about: &str) {
    // The last group of eight keys is padded.
    let keys = hashes.len().next_multiple_of(driver::KEYS);
    assert!(prefetched.len().is_multiple_of(keys), "{about}");
    let each = prefetched.len() / keys;
    let most = hashes.iter().map(|&hash| read(source, hash).len()).max().unwrap();
    // Few other lines are prefetched, because counts are powers of two and whole registers are
    // loaded.
    assert!(each <= 2 * most + 4, "{about}: {each} lines for {most}");
    for (i, (&hash, found)) in hashes.iter().zip(prefetched.chunks(each)).enumerate() {
        let read = read(source, hash);
        assert!(
            read.iter().all(|line| found.contains(line)),
            "{about}, key {i}: {found:?}, {read:?}"
        );
        let (first, last) = (read[0], read[read.len() - 1]);
        assert!(
            found.iter().all(|&line| (first..=last + each).contains(&line)),
            "{about}, key {i}: {found:?}, {read:?}"
        );
    }
}

/// A filter that exceeds the cache prefetches the lines that each key's lookup reads, and no
/// others. A filter that fits the cache prefetches nothing.
#[test]
fn lookups_prefetch_the_lines_that_they_read() {
    let hashes = hashes(203);
    for kernel in Kernel::supported() {
        for columns in [1, 7, 12, 20, 32] {
            let block = 8 * columns as usize;
            for outgrows in [false, true] {
                // A few blocks above or below the threshold.
                let bytes = kernel.prefetch_threshold();
                let shards = bytes / (61 * block) + usize::from(outgrows);
                let (directory, words) = directory(shards as u32, columns);
                let shards = Shards { directory: &directory, words: &words, columns };
                let blocks = bytes / (2 * block) + usize::from(outgrows);
                let data = vec![0x5a; blocks * 2 * block];
                let segments = segments(&data, blocks as u32);
                let mut hits = [0; 4];
                let about = std::format!("{kernel}, {columns} columns, {outgrows}");
                let found_64 =
                    lines(&events(|| contains_64(kernel.into(), &shards, &hashes, &mut hits)));
                let found_128 =
                    lines(&events(|| contains_128(kernel.into(), &segments, &hashes, &mut hits)));
                if outgrows && !expected(kernel).is_empty() {
                    check_lines(&shards, &hashes, &found_64, &about);
                    check_lines(&segments, &hashes, &found_128, &about);
                } else {
                    assert!(found_64.is_empty() && found_128.is_empty(), "{about}");
                }
                // Few hashes are looked up one by one.
                for count in [2, 3] {
                    let (few, hits) = (&hashes[..count], &mut [0]);
                    let found_64 =
                        lines(&events(|| contains_64(kernel.into(), &shards, few, hits)));
                    let found_128 =
                        lines(&events(|| contains_128(kernel.into(), &segments, few, hits)));
                    let is_ahead = outgrows && !expected(kernel).is_empty() && count > 2;
                    assert_eq!(
                        [!found_64.is_empty(), !found_128.is_empty()],
                        [is_ahead; 2],
                        "{about}"
                    );
                }
                for &hash in &hashes {
                    let mut found_64 = lines(&events(|| prefetch_equation(&shards, hash)));
                    let mut found_128 = lines(&events(|| prefetch_equation(&segments, hash)));
                    found_64.dedup();
                    found_128.dedup();
                    let range = |lines: Vec<usize>| {
                        (lines[0]..=lines[lines.len() - 1]).collect::<Vec<usize>>()
                    };
                    assert_eq!(found_64, range(read(&shards, hash)), "{about}");
                    assert_eq!(found_128, range(read(&segments, hash)), "{about}");
                }
            }
        }
    }
}

/// Eight keys are prepared, and so prefetched, three iterations before they are tested, and only
/// once.
#[test]
fn keys_are_prepared_some_iterations_before_they_are_tested() {
    for count in [1, 8, 9, 31, 32, 33, 64, 200] {
        let hashes: Vec<u64> = (0..count).collect();
        let mut hits = vec![0; hashes.len().div_ceil(64)];
        let all = events(|| {
            let prepare = |ring: &mut [u64; driver::RING], keys: &[u64; driver::KEYS], slot| {
                note(Event::Line(keys[0] as usize));
                ring[slot..slot + driver::KEYS].copy_from_slice(keys);
            };
            let first = |ring: &[u64; driver::RING], slot| {
                note(Event::Line(1_000 + ring[slot] as usize));
                driver::test_each(slot, |slot| ring[slot].is_multiple_of(3))
            };
            driver::batch(&mut [0; _], &hashes, &mut hits, false, prepare, first, |_, _| true);
        });
        let all = lines(&all);
        for first in (0..count as usize).step_by(driver::KEYS) {
            let at = |event| all.iter().position(|&found| found == event).unwrap();
            let (prepared, tested) = (at(first), at(1_000 + first));
            // Up to three iterations of later keys are between them.
            let between = &all[prepared..tested];
            let later = between.iter().filter(|&&event| event < 1_000 && event > first).count();
            let left = (count as usize - first).div_ceil(driver::KEYS) - 1;
            assert_eq!(later, left.min(driver::RING / driver::KEYS - 1), "{count} keys, {first}");
        }
        assert_eq!(all.len(), 2 * hashes.len().div_ceil(driver::KEYS));
        let hit = |i: &u64| hits[*i as usize / 64] >> (i % 64) & 1 == 1;
        assert!(hashes.iter().all(|i| hit(i) == i.is_multiple_of(3)));
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

/// The times of constructions, one after the other, which must give the same bytes: `cargo test
/// --release -p blocked-bloom-ribbon --all-features -- --ignored --nocapture times`.
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

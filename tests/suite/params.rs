//! Sizing: compares the formula with exact occupancy, and tests the choices and inputs at and past
//! every limit.

use blocked_bloom::{MAX_RECOMMENDED_BLOCKS, Params, ParamsError, Sizing};

fn params_for_bits(bits: f64, keys: u64) -> Params {
    Sizing::BitsPerKey(bits).params(keys).unwrap()
}

/// Computes `E[fill^k]` exactly: the distribution of occupied cells among 512 after `balls` balls,
/// one ball at a time.
fn exact_block_rates(probes: u32, most_keys: usize) -> Vec<f64> {
    let mut chance = vec![0.0; 513];
    chance[0] = 1.0;
    let mut rates = vec![0.0];
    for _ in 0..most_keys {
        for _ in 0..probes {
            for occupied in (1..=512).rev() {
                let stays = chance[occupied] * occupied as f64 / 512.0;
                let grows = chance[occupied - 1] * (513 - occupied) as f64 / 512.0;
                chance[occupied] = stays + grows;
            }
            chance[0] = 0.0;
        }
        let fill_to_k = |(occupied, chance): (usize, &f64)| {
            chance * (occupied as f64 / 512.0).powi(probes as i32)
        };
        rates.push(chance.iter().enumerate().map(fill_to_k).sum());
    }
    rates
}

#[test]
fn the_rate_is_exact_occupancy_within_a_thousandth() {
    for bits in [5.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0] {
        let params = params_for_bits(bits, 10_000_000);
        let mean = 512.0 / params.bits_per_key();
        let rates = exact_block_rates(params.probes(), (mean + 10.0 * mean.sqrt()) as usize + 10);
        // Poisson weights in log space: e^-mean mean^j / j!
        let (mut log_weight, mut exact) = (-mean, 0.0);
        for (j, rate) in rates.iter().enumerate() {
            if j > 0 {
                log_weight += (mean / j as f64).ln();
            }
            exact += log_weight.exp() * rate;
        }
        let ratio = params.false_positive_rate() / exact;
        assert!((ratio - 1.0).abs() < 1e-3, "{bits} bits/key: {ratio}");
    }
}

#[test]
fn one_block_is_exact_occupancy_too() {
    let rates = exact_block_rates(6, 200);
    let params = Sizing::MaxBytes(128).params(51).unwrap().with_probes(6).unwrap();
    for keys in [20, 51, 80, 200] {
        let ratio = params.false_positive_rate_at(keys as u64) / rates[keys];
        assert!((ratio - 1.0).abs() < 1e-3, "{keys} keys: {ratio}");
    }
    // With few keys, blocks vary less than the Poisson distribution says: 0.84 %, not 0.96 %.
    assert!((params.false_positive_rate_at(51) - 0.0084).abs() < 0.0001);
}

/// The formula of `src/params.rs` term by term: every number of keys in a block, and each power and
/// weight computed separately. The library stops when terms no longer change the sum, and computes
/// each term from its neighbour.
fn documented_rate(keys: u32, blocks: u32, probes: u32) -> f64 {
    let (share, k) = (1.0 / f64::from(blocks), f64::from(probes));
    let mut log_choices = 0.0;
    let mut sum = 0.0;
    for j in 1..=keys {
        log_choices += (f64::from(keys - j + 1) / f64::from(j)).ln();
        let (j, rest) = (f64::from(j), f64::from(keys - j));
        let weight = (log_choices + j * share.ln() + rest * (-share).ln_1p()).exp();
        let q = (511.0_f64 / 512.0).powf(j * k);
        let q2 = (510.0_f64 / 512.0).powf(j * k);
        let (p, v) =
            (1.0 - q, (512.0 * 511.0 * q2 + 512.0 * q - 512.0 * 512.0 * q * q) / 262_144.0);
        let fill = p.powf(k) * (1.0 + k * (k - 1.0) * v.max(0.0) / (2.0 * p * p));
        sum += weight * (fill + j / 4_294_967_296.0).min(1.0);
    }
    sum
}

/// Catches a window that is too narrow, a weight that drifts, and a missing term. At usual sizes,
/// these errors are below the tolerances of the other tests.
#[test]
fn the_rate_is_the_documented_formula() {
    for (keys, blocks) in [
        (1, 2),
        (30, 3_000),
        (7, 500),
        (3, 2),
        (40, 2),
        (60, 2),
        (900, 3),
        (1_000, 20),
        (2_000, 39),
        (3_000, 9),
    ] {
        let sized =
            Sizing::MaxBytes(64 + 64 * u64::from(blocks)).params(u64::from(blocks) * 64).unwrap();
        assert_eq!(sized.blocks(), blocks);
        for probes in 1..=30 {
            let found = sized.with_probes(probes).unwrap().false_positive_rate_at(keys.into());
            let expected = documented_rate(keys, blocks, probes);
            let name = format!("{keys} keys, {blocks} blocks, {probes} probes: {found} {expected}");
            assert!((found / expected - 1.0).abs() < 1e-7, "{name}");
        }
    }
}

#[test]
fn published_rates_of_this_scheme() {
    for (bits, probes, percent) in [
        (10.0, 6, 0.966),
        (12.0, 7, 0.414),
        (14.0, 8, 0.184),
        (16.0, 9, 0.0844),
        (20.0, 11, 0.0198),
    ] {
        let params = params_for_bits(bits, 10_000_000);
        assert_eq!(params.probes(), probes, "{bits} bits/key");
        let found = params.false_positive_rate() * 100.0;
        assert!((found / percent - 1.0).abs() < 3e-3, "{bits} bits/key: {found} %");
    }
    let three = params_for_bits(10.0, 10_000_000).with_probes(3).unwrap();
    assert!((three.false_positive_rate() - 0.018).abs() < 0.0005);
}

#[test]
fn probes_are_the_fewest_within_a_hundredth_of_the_best() {
    for keys in [10, 1_000, 1_000_000] {
        for tenths in (10..=400).step_by(13) {
            let params = params_for_bits(f64::from(tenths) / 10.0, keys);
            let rate = |probes| params.with_probes(probes).unwrap().false_positive_rate();
            let best = (1..=30).map(rate).fold(f64::INFINITY, f64::min);
            let fewest = (1..=30).find(|&probes| rate(probes) <= 1.01 * best).unwrap();
            assert_eq!(params.probes(), fewest, "{params}");
        }
    }
}

#[test]
fn more_keys_or_fewer_blocks_are_never_better() {
    for bits in [3.0, 10.0, 23.5] {
        let params = params_for_bits(bits, 100_000);
        let mut last = 0.0;
        for keys in (0..1_000_000).step_by(7_919) {
            let rate = params.false_positive_rate_at(keys);
            assert!((0.0..=1.0).contains(&rate) && rate >= last, "{keys} keys in {params}: {rate}");
            last = rate;
        }
    }
    let mut last = 1.0;
    for blocks in 1..400 {
        let rate = Sizing::MaxBytes(64 + 64 * blocks).params(2_000).unwrap().false_positive_rate();
        assert!(rate <= last, "{blocks} blocks: {rate} after {last}");
        last = rate;
    }
}

#[test]
fn a_rate_gets_the_smallest_filter_that_keeps_it() {
    for rate in [0.3, 0.05, 0.01, 1e-3, 1e-5, 1e-7] {
        for keys in [1, 51, 1_000, 123_456] {
            let params = Sizing::FalsePositiveRate(rate).params(keys).unwrap();
            assert!(params.false_positive_rate() <= rate, "{params}");
            if params.blocks() > 1 {
                let smaller = Sizing::MaxBytes(params.stored_bytes() - 64).params(keys).unwrap();
                assert!(smaller.false_positive_rate() > rate, "{smaller} would do for {rate}");
            }
        }
    }
}

#[test]
fn the_inverse_is_the_last_count_under_the_rate() {
    for bits in [5.0, 10.0, 16.0] {
        for keys in [1, 1_000, 50_000_000] {
            for rate in [0.5, 0.01, 1e-4] {
                let params = params_for_bits(bits, keys);
                let most = params.max_items(rate).unwrap();
                assert!(params.false_positive_rate_at(most) <= rate);
                assert!(params.false_positive_rate_at(most + 1) > rate);
            }
        }
    }
    assert_eq!(params_for_bits(10.0, 10).max_items(1.0), Ok(u64::MAX));
    assert_eq!(params_for_bits(0.0, 10).max_items(0.5), Ok(0));
}

#[test]
fn fractional_bits_count() {
    let blocks = |bits| params_for_bits(bits, 1_000_000).blocks();
    assert_eq!((blocks(10.0), blocks(10.4), blocks(10.5)), (19_532, 20_313, 20_508));
}

#[test]
fn a_budget_is_never_exceeded() {
    for bytes in [128, 129, 191, 192, 1_000, 1 << 20, (1 << 20) + 63] {
        let params = Sizing::MaxBytes(bytes).params(1_000_000).unwrap();
        assert!(params.stored_bytes() <= bytes && params.stored_bytes() + 64 > bytes);
    }
    // Memory without benefit stays unused.
    assert!(Sizing::MaxBytes(u64::MAX).params(10).unwrap().stored_bytes() <= 256);
}

#[test]
fn limits_are_errors_that_name_the_value() {
    for bits in [-1.0, -f64::MIN_POSITIVE, 100.1, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let error = Sizing::BitsPerKey(bits).params(1_000).unwrap_err();
        assert!(matches!(error, ParamsError::BitsPerKeyOutOfRange { .. }), "{error}");
        let text = error.to_string();
        // Huge numbers print in short form, which reads back as the same number.
        let number: f64 = text.split(' ').next().unwrap().parse().unwrap();
        assert!(number.total_cmp(&bits).is_eq() || (number.is_nan() && bits.is_nan()));
    }
    for rate in [0.0, -0.0, -1.0, 1.000_001, f64::INFINITY, f64::NAN] {
        for keys in [0, 1, u64::MAX] {
            let error = Sizing::FalsePositiveRate(rate).params(keys).unwrap_err();
            assert!(matches!(error, ParamsError::RateOutOfRange { .. }), "{error}");
            assert!(params_for_bits(10.0, 1_000).max_items(rate).is_err());
        }
    }
    for rate in [1e-300, f64::MIN_POSITIVE, 1e-10] {
        let error = Sizing::FalsePositiveRate(rate).params(1_000_000).unwrap_err();
        let ParamsError::RateUnreachable { lowest, needs_partition: false, .. } = error else {
            panic!("{error}");
        };
        assert!(lowest > rate && lowest < 1e-8);
        assert!(Sizing::FalsePositiveRate(lowest).params(1_000_000).is_ok());
    }
    for bytes in [0, 1, 63, 64, 127] {
        assert_eq!(Sizing::MaxBytes(bytes).params(9), Err(ParamsError::TooFewBytes { bytes }));
    }
    for probes in [0, 31, u32::MAX] {
        let error = params_for_bits(10.0, 9).with_probes(probes).unwrap_err();
        assert_eq!(error, ParamsError::ProbesOutOfRange { probes });
    }
}

#[test]
fn huge_counts_are_answered_at_once() {
    let blocks = |bits: f64, keys| Sizing::BitsPerKey(bits).params(keys);
    assert_eq!(
        blocks(10.0, 1 << 40),
        Err(ParamsError::BlocksOutOfRange { blocks: (1 << 40) / 512 * 10 })
    );
    assert!(matches!(blocks(100.0, u64::MAX), Err(ParamsError::BlocksOutOfRange { .. })));
    let big = blocks(1.0, 1 << 40).unwrap();
    assert_eq!(big.blocks(), 1 << 31);
    assert!(big.to_string().ends_with("partition it"), "{big}");
    assert!(!params_for_bits(10.0, 1_000).to_string().contains("partition"));
    let most = blocks(1.0, 1 << 37).unwrap();
    assert_eq!(most.blocks(), MAX_RECOMMENDED_BLOCKS);
    assert!(!most.to_string().contains("partition"), "{most}");
    assert_eq!(MAX_RECOMMENDED_BLOCKS, 1 << 28);
    assert_eq!(big.false_positive_rate_at(u64::MAX), 1.0);

    for keys in [1 << 40, u64::MAX] {
        let error = Sizing::FalsePositiveRate(0.01).params(keys).unwrap_err();
        assert!(matches!(error, ParamsError::RateUnreachable { needs_partition: true, .. }));
        assert!(error.to_string().contains("partition"), "{error}");
        assert!(Sizing::MaxBytes(1 << 30).params(keys).unwrap().false_positive_rate() > 0.999);
    }
}

#[test]
fn empty_and_pass_all_params() {
    for sizing in
        [Sizing::BitsPerKey(0.0), Sizing::BitsPerKey(-0.0), Sizing::FalsePositiveRate(1.0)]
    {
        let params = sizing.params(1 << 40).unwrap();
        assert!(sizing.is_pass_all() && params.is_pass_all());
        assert_eq!((params.blocks(), params.probes(), params.stored_bytes()), (1, 1, 128));
        assert_eq!(params.false_positive_rate(), 1.0);
        assert_eq!(params.with_probes(5).unwrap().probes(), 1);
        assert!(params.to_string().contains("no filter"));
    }
    for sizing in
        [Sizing::BitsPerKey(10.0), Sizing::FalsePositiveRate(1e-9), Sizing::MaxBytes(1 << 40)]
    {
        assert!(!sizing.is_pass_all());
        for keys in [0, 1] {
            let params = sizing.params(keys).unwrap();
            assert_eq!(params.blocks(), 1, "{params}");
            assert_eq!(params.expected_items(), keys);
            assert!((5..=8).contains(&params.probes()), "{params}");
        }
    }
}

#[test]
fn params_compare_and_print() {
    assert_eq!(params_for_bits(10.0, 1_000), params_for_bits(10.0, 1_000));
    assert_ne!(params_for_bits(10.0, 1_000), params_for_bits(10.0, 1_001));
    assert_ne!(params_for_bits(10.0, 1_000), params_for_bits(12.0, 1_000));
    assert_eq!(
        params_for_bits(100.0, 1_000).to_string(),
        "1000 keys, 196 blocks, 12608 bytes stored, 100.35 bits/key, 21 probes, 1.30e-7 % false positives"
    );
    assert_eq!(
        params_for_bits(10.0, 0).to_string(),
        "0 keys, 1 block, 128 bytes stored, 7 probes, 0 % false positives"
    );
    assert_eq!(Sizing::MaxBytes(7).to_string(), "at most 7 bytes");
}

/// Every documented property of a foldable size, for every kind of sizing. Catches rounding past a
/// budget or past the largest number of blocks, rounding down for bits or a rate, a step that costs
/// more than 1/64, and the probes of the size before rounding.
#[test]
fn foldable_sizes_keep_their_promises() {
    let sizings = (1..100)
        .map(|bits| Sizing::BitsPerKey(f64::from(bits)))
        .chain((1..27).map(|power| Sizing::FalsePositiveRate(0.5_f64.powi(power))))
        .chain((7..38).map(|power| Sizing::MaxBytes((1 << power) + (1 << power) / 3)));
    let mut rounded = 0;
    for sizing in sizings {
        for keys in [0, 1, 50, 1_000, 1_291, 12_345, 1_000_000, 77_777_777, 20_000_000_000] {
            let (plain, foldable) = match (sizing.params(keys), sizing.foldable_params(keys)) {
                (Ok(plain), Ok(foldable)) => (plain, foldable),
                (plain, foldable) => {
                    assert_eq!(plain, foldable);
                    continue;
                }
            };
            let name = format!("{sizing}, {keys} keys");
            let (before, after) = (u64::from(plain.blocks()), u64::from(foldable.blocks()));
            let step = if before < 128 { 1 } else { 1 << (before / 64).ilog2() };
            let last = u64::from(u32::MAX) / step * step;
            assert!(after.is_multiple_of(step) || before > last, "{name}");
            match sizing {
                Sizing::MaxBytes(bytes) => {
                    assert!(foldable.stored_bytes() <= bytes, "{name}");
                    assert!(after <= before && before - after <= before / 64, "{name}");
                }
                _ => assert!(after >= before && after - before <= before / 64, "{name}"),
            }
            if let Sizing::FalsePositiveRate(rate) = sizing {
                assert!(foldable.false_positive_rate() <= rate, "{name}");
            }
            // The probes are those of a filter with this number of blocks.
            let same = Sizing::MaxBytes(foldable.stored_bytes()).params(keys).unwrap();
            if same.blocks() == foldable.blocks() {
                assert_eq!(same, foldable, "{name}");
            }
            assert_eq!(foldable.expected_items(), keys);
            let four = foldable.with_probes(4).unwrap();
            assert_eq!((four.blocks(), four.probes()), (foldable.blocks(), 4));
            rounded += u32::from(after != before);
        }
    }
    assert!(rounded > 300, "{rounded}");
    assert!(Sizing::BitsPerKey(0.0).foldable_params(1_000_000).unwrap().is_pass_all());
}

/// Just below 2^32 blocks, a multiple may not exist: the number then stays.
#[test]
fn foldable_sizes_stay_under_the_most_blocks() {
    for (blocks, expected) in [
        (u32::MAX, u32::MAX),
        (u32::MAX - 1, u32::MAX - 1),
        ((127 << 25) + 1, (127 << 25) + 1),
        (127 << 25, 127 << 25),
        ((127 << 25) - 1, 127 << 25),
    ] {
        let params = Sizing::BitsPerKey(64.0).foldable_params(u64::from(blocks) * 8).unwrap();
        assert_eq!(params.blocks(), expected);
        let bytes = 64 + u64::from(blocks) * 64;
        let params = Sizing::MaxBytes(bytes).foldable_params(u64::from(blocks) * 8).unwrap();
        assert_eq!(params.blocks(), blocks >> 25 << 25);
    }
}

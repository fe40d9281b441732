//! Limits of shapes, and the choices of the sizing functions.

use blocked_bloom::Sizing;
use blocked_bloom_planes::{MAX_PLANES, Shape, ShapeError};

#[test]
fn shapes_that_cannot_be_are_errors() {
    for block_bits in [0, 15, 513, u32::MAX] {
        assert_eq!(
            Shape::new(1, block_bits, 1),
            Err(ShapeError::BlockBitsOutOfRange { block_bits })
        );
    }
    for probes in [0, 31, u32::MAX] {
        assert_eq!(Shape::new(1, 16, probes), Err(ShapeError::ProbesOutOfRange { probes }));
    }
    for blocks in [0, (1 << 17) + 1, u32::MAX] {
        let planes = u64::from(blocks) * 512;
        assert_eq!(Shape::new(blocks, 512, 1), Err(ShapeError::PlanesOutOfRange { planes }));
    }
    assert_eq!(Shape::new(1 << 17, 512, 30).unwrap().planes(), MAX_PLANES);
    for bits in [0.0, -1.0, 100.1, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            Shape::for_bits_per_item(9, bits),
            Err(ShapeError::BitsPerItemOutOfRange { .. })
        ));
    }
    for rate in [0.0, -1.0, 1.0, f64::NAN] {
        assert!(matches!(Shape::for_rate(9, rate), Err(ShapeError::RateOutOfRange { .. })));
    }
    assert!(matches!(
        Shape::for_bits_per_item(u64::MAX, 10.0),
        Err(ShapeError::PlanesOutOfRange { .. })
    ));
    assert!(matches!(Shape::for_rate(u64::MAX, 0.01), Err(ShapeError::RateUnreachable { .. })));
    assert!(matches!(Shape::for_rate(100, 1e-12), Err(ShapeError::RateUnreachable { .. })));
}

#[test]
fn bits_per_item_are_what_a_row_gets() {
    for items in [0, 1, 2, 10, 51, 52, 100, 1_000, 12_345] {
        for bits in [0.5, 4.0, 8.0, 10.0, 16.0, 33.3] {
            let shape = Shape::for_bits_per_item(items, bits).unwrap();
            let wanted = (items as f64 * bits).ceil().max(16.0) as u32;
            let most = wanted + shape.blocks();
            assert!((wanted..most).contains(&shape.planes()), "{items}, {bits}: {shape}");
            assert_eq!(shape.blocks(), wanted.div_ceil(512));
            // No number of probes has a rate better by more than 10 %, and no smaller number is
            // as good.
            let rate = |probes| {
                let other = Shape::new(shape.blocks(), shape.block_bits(), probes).unwrap();
                other.false_positive_rate(items.max(1))
            };
            let chosen = rate(shape.probes());
            let best = (1..=30).map(rate).fold(1.0, f64::min);
            assert!(chosen <= 1.1 * best);
            assert!((1..shape.probes()).all(|probes| rate(probes) > 1.1 * best));
        }
    }
}

#[test]
fn a_rate_is_reached_by_no_more_planes_than_necessary() {
    for items in [1, 2, 10, 40, 60, 500, 5_000] {
        for rate in [0.3, 0.1, 0.01, 0.001, 1e-5] {
            let shape = Shape::for_rate(items, rate).unwrap();
            assert!(shape.false_positive_rate(items) <= rate, "{items}, {rate}: {shape}");
            let fewer = (shape.planes() - shape.blocks()) as f64 / items as f64;
            if fewer * items as f64 >= 16.0 {
                let fewer = Shape::for_bits_per_item(items, fewer).unwrap();
                assert!(
                    fewer.planes() >= shape.planes() || fewer.false_positive_rate(items) > rate
                );
            }
        }
    }
}

/// The rate of one block is a sum over all sets of bits, which this test enumerates for small
/// numbers.
#[test]
fn the_rate_of_small_blocks_is_that_of_counting() {
    // All sequences of `balls` bits and of `probes` bits among four positions.
    let (bits, probes, balls) = (16_usize, 2_usize, 3_u32);
    let mut passed = 0_u64;
    for set in 0..bits.pow(balls) {
        let mut mask = 0_u32;
        let mut rest = set;
        for _ in 0..balls {
            mask |= 1 << (rest % bits);
            rest /= bits;
        }
        for looked_up in 0..bits.pow(probes as u32) {
            let (a, b) = (looked_up % bits, looked_up / bits);
            passed += u64::from(mask >> a & mask >> b & 1);
        }
    }
    let counted = passed as f64 / bits.pow(balls + probes as u32) as f64;
    // No shape looks up items of one probe with two probes, so three items of one probe are
    // compared.
    let one = Shape::new(1, 16, 1).unwrap().false_positive_rate(3);
    assert!((one - (1.0 - (15.0_f64 / 16.0).powi(3))).abs() < 1e-8);
    // Two probes with one item, then with two: sequences of two and of four bits.
    let mut passed = [0_u64; 2];
    for (items, passed) in (1..).zip(&mut passed) {
        for set in 0..bits.pow(2 * items) {
            let mask = (0..2 * items).fold(0_u32, |mask, i| mask | 1 << (set / bits.pow(i) % bits));
            for looked_up in 0..bits * bits {
                *passed += u64::from(mask >> (looked_up % bits) & mask >> (looked_up / bits) & 1);
            }
        }
    }
    let shape = Shape::new(1, 16, 2).unwrap();
    for (items, passed) in (1..).zip(passed) {
        let counted = passed as f64 / bits.pow(2 * items + 2) as f64;
        let rate = shape.false_positive_rate(u64::from(items));
        assert!((rate - counted).abs() < 1e-8, "{items}: {rate}, {counted}");
    }
    assert!(counted > 0.0);
}

#[test]
fn the_rate_with_512_bits_is_that_of_the_core() {
    for (blocks, items, probes) in
        [(1, 51, 6), (20, 1_024, 6), (200, 8_000, 8), (2_000, 100_000, 5)]
    {
        let params = Sizing::MaxBytes(64 + 64 * blocks).params(items).unwrap();
        let core = params.with_probes(probes).unwrap().false_positive_rate_at(items);
        let here = Shape::new(blocks as u32, 512, probes).unwrap().false_positive_rate(items);
        // The core uses a second-order approximation of this exact value.
        assert!((here / core - 1.0).abs() < 0.002, "{blocks}, {items}: {here}, {core}");
    }
}

#[test]
fn the_rate_grows_with_the_items_and_ends_at_one() {
    for (blocks, bits, probes) in [(1, 16, 1), (1, 128, 30), (7, 100, 4), (1 << 17, 512, 6)] {
        let shape = Shape::new(blocks, bits, probes).unwrap();
        let mut before = 0.0;
        for items in [0, 1, 2, 5, 10, 100, 1_000, 100_000, 10_000_000, 1 << 40, u64::MAX] {
            let rate = shape.false_positive_rate(items);
            assert!((before..=1.0).contains(&rate), "{shape}, {items}: {before}, {rate}");
            before = rate;
        }
        assert!(before > 0.999_999, "{shape}: {before}");
    }
}

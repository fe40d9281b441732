use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, UInt64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::logical_expr::ColumnarValue;

use super::*;

/// Returns numbers that look random.
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    (1..).map(move |i: u64| {
        let x = (seed << 32 | i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 8
    })
}

fn contains(ranges: &Ranges, key: i64) -> bool {
    ranges.ranges.iter().any(|(low, high)| (*low..=*high).contains(&key))
}

fn check(ranges: &Ranges, keys: &[i64], case: &str) {
    assert!(is_valid(&ranges.ranges) && ranges.ranges.len() <= 64, "{case}: {ranges:?}");
    let apart = |pair: &[(i64, i64)]| pair[0].1.checked_add(1).is_some_and(|next| next < pair[1].0);
    assert!(ranges.ranges.windows(2).all(apart), "{case}: {ranges:?}");
    for key in keys {
        assert!(contains(ranges, *key), "{case}: {key} is not in {ranges:?}");
    }
    // No range is longer than the keys require.
    for bound in ranges.ranges.iter().flat_map(|(low, high)| [low, high]) {
        assert!(keys.contains(bound), "{case}: {bound} is not a key");
    }
}

/// Returns keys of one distribution, with its name.
fn keys() -> Vec<(&'static str, Vec<i64>)> {
    let random = |count: usize, key: fn(u64) -> i64| numbers(7).take(count).map(key).collect();
    vec![
        ("none", vec![]),
        ("one", vec![5]),
        ("extremes", vec![i64::MIN, i64::MAX, 0, i64::MIN + 1, i64::MAX - 1]),
        ("ascending", (0..3000).collect()),
        ("descending", (0..3000).rev().collect()),
        ("every second", (0..3000).map(|i| 2 * i).collect()),
        ("63 gaps", (0..64).map(|i| i * 10).collect()),
        ("64 gaps", (0..65).map(|i| i * 10).collect()),
        ("growing gaps", (0..500).map(|i| i * i * i).collect()),
        ("spread", random(3000, |x| (x % 50_000) as i64 - 20_000)),
        ("everywhere", random(3000, |x| (x << 8) as i64)),
        ("ten clusters", random(3000, |x| (x % 10 * 1_000_000 + x / 10 % 500) as i64)),
        ("equal", vec![-3; 900]),
    ]
}

#[test]
fn all_keys_are_in_at_most_64_ranges() {
    for (name, keys) in keys() {
        for batch in [1, 7, 100, 8192] {
            let mut ranges = Ranges::default();
            keys.chunks(batch).for_each(|keys| ranges.insert(&mut keys.to_vec()));
            check(&ranges, &keys, &format!("{name} by {batch}"));
            // Partitions are merged in any order, also into ranges without keys.
            let (mut merged, half) = (Ranges::default(), keys.len() / 2);
            for part in [&keys[half..], &keys[..half]] {
                let mut ranges = Ranges::default();
                part.chunks(batch).for_each(|keys| ranges.insert(&mut keys.to_vec()));
                merged.merge(ranges);
            }
            check(&merged, &keys, &format!("{name} by {batch}, merged"));
        }
    }
}

#[test]
fn the_largest_gaps_remain() {
    let mut ranges = Ranges::default();
    for (name, keys) in keys().into_iter().filter(|(name, _)| *name == "ten clusters") {
        keys.chunks(500).for_each(|keys| ranges.insert(&mut keys.to_vec()));
        let within: i64 = ranges.ranges.iter().map(|(low, high)| high - low).sum();
        assert!(within <= 10 * 500, "{name}: {ranges:?}");
    }
    let mut spread = Ranges::default();
    spread.insert(&mut numbers(3).take(3000).map(|x| (x % 10_000) as i64).collect::<Vec<_>>());
    assert!(spread.are_spread && spread.ranges.len() == 1, "{spread:?}");
    // Keys nearby extend the range. Keys far away begin another one.
    spread.insert(&mut [15_000]);
    assert_eq!(spread.ranges.len(), 1, "{spread:?}");
    for far in [1_000_000, -1_000_000, i64::MAX, i64::MIN] {
        spread.insert(&mut [far, far]);
    }
    assert_eq!(spread.ranges.len(), 5, "{spread:?}");
    assert!(numbers(3).take(3000).all(|x| contains(&spread, (x % 10_000) as i64)));
}

#[test]
fn encoded_ranges_are_read_back_and_damaged_ones_are_errors() -> Result<()> {
    for (name, keys) in keys() {
        let mut ranges = Ranges::default();
        ranges.insert(&mut keys.clone());
        let mut bytes = Vec::new();
        ranges.encode(&mut bytes);
        let length = bytes.len();
        bytes.extend(b"rest");
        let (read, rest) = Ranges::decode(&bytes)?;
        assert_eq!((&read.ranges, rest), (&ranges.ranges, &b"rest"[..]), "{name}");
        for shorter in 0..length {
            let error = Ranges::decode(&bytes[..shorter]).unwrap_err().to_string();
            assert!(error.contains(&format!("{shorter} bytes with invalid key ranges")), "{error}");
        }
    }
    let bounds = |bounds: &[i64], count: u8| {
        let bounds = bounds.iter().flat_map(|bound| bound.to_le_bytes());
        [count].into_iter().chain(bounds).collect::<Vec<u8>>()
    };
    for damaged in [bounds(&[2, 1], 1), bounds(&[1, 5, 4, 9], 2), bounds(&[0; 130], 65)] {
        assert!(Ranges::decode(&damaged).is_err(), "{damaged:?}");
    }
    Ok(())
}

/// The predicate selects exactly the values in the ranges and up to the margin from them, whatever
/// the type of the column.
#[test]
fn the_predicate_of_every_type_selects_the_values_in_the_ranges() -> Result<()> {
    use DataType::*;
    let types = [
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Date32,
        Date64,
        Timestamp(Second, None),
        Timestamp(Second, Some("+05:00".into())),
        Timestamp(Millisecond, Some("+02:00".into())),
        Timestamp(Nanosecond, Some("Europe/Berlin".into())),
    ];
    let values: Vec<i64> = [0, 1, 100, 127, 128, 255, 256, 32_767, 32_768, 65_536, 2_147_483_647]
        .into_iter()
        .flat_map(|value| [value, -value])
        .chain([2_147_483_648, 4_294_967_295, 4_294_967_296, i64::MAX, -2_147_483_649])
        .collect();
    let mut ranges: Vec<Vec<(i64, i64)>> = vec![vec![], vec![(0, 0)], vec![(-128, 1), (100, 200)]];
    for low in &values {
        for high in values.iter().filter(|high| *high >= low) {
            ranges.push(vec![(*low, *high)]);
        }
    }
    for data_type in types {
        let all: ArrayRef = Arc::new(Int64Array::from(values.clone()));
        // Values that the type does not have become NULL.
        let column = match data_type {
            Date32 => cast(&cast(&all, &Int32)?, &data_type)?,
            // Values from 2^63 have the bits of negative keys.
            UInt64 => Arc::new(UInt64Array::from_iter_values(values.iter().map(|v| *v as u64))),
            _ => cast(&all, &data_type)?,
        };
        let keys = crate::keys::signed_values(&column).unwrap();
        let schema = Schema::new(vec![Field::new("k", data_type.clone(), true)]);
        let batch = RecordBatch::try_new(Arc::new(schema), vec![column.clone()])?;
        for ranges in &ranges {
            for count in [1, 64] {
                let known = Ranges { ranges: ranges.clone(), are_spread: false };
                let joined = match (count, &ranges[..]) {
                    (1, [first, .., last]) => vec![(first.0, last.1)],
                    _ => ranges.clone(),
                };
                let margin = margin(&data_type);
                let is_near = |key: &i64| {
                    joined.iter().any(|(low, high)| {
                        (low.saturating_sub(margin)..=high.saturating_add(margin)).contains(key)
                    })
                };
                let predicate = known.predicate(Column::new("k", 0), &data_type, count);
                let Some(predicate) = predicate else {
                    let is_in = |key: &i64| ranges.iter().any(|(a, b)| (*a..=*b).contains(key));
                    let other_order = data_type == UInt64 && ranges.iter().any(|(low, _)| *low < 0);
                    assert!(other_order || !keys.iter().any(is_in), "{data_type} {ranges:?}");
                    continue;
                };
                let ColumnarValue::Array(selected) =
                    predicate.evaluate(&batch)?.into_array(batch.num_rows()).map(Into::into)?
                else {
                    unreachable!("an array")
                };
                let selected = selected.as_boolean();
                let mut key = keys.iter();
                for row in (0..batch.num_rows()).filter(|row| column.is_valid(*row)) {
                    let key = key.next().unwrap();
                    // Keys above `i64::MAX` are negative, but they are not near 0.
                    let expected = is_near(key) && !(data_type == UInt64 && *key < 0);
                    assert_eq!(
                        selected.value(row),
                        expected,
                        "{data_type} {key} {ranges:?} {predicate}"
                    );
                }
            }
        }
    }
    Ok(())
}

/// Files can have other values than these types show, in another order.
#[test]
fn times_of_day_and_durations_have_no_predicate() {
    use DataType::*;
    for data_type in [Time32(Second), Time64(Nanosecond), Duration(Microsecond), Utf8, Float64] {
        let known = Ranges { ranges: vec![(1, 2)], are_spread: false };
        assert!(known.predicate(Column::new("k", 0), &data_type, 64).is_none(), "{data_type}");
    }
}

/// The margin of neighbouring ranges can cover the gap between them.
#[test]
fn ranges_that_touch_after_widening_are_merged() {
    let known = Ranges { ranges: vec![(1, 2), (5, 6), (10, 11)], are_spread: false };
    let predicate = known.predicate(Column::new("k", 0), &DataType::Int64, 64).unwrap();
    assert_eq!(predicate.to_string(), "k@0 >= 0 AND k@0 <= 7 OR k@0 >= 9 AND k@0 <= 12");
}

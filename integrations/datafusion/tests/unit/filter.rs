use std::sync::Arc;

use super::*;

#[test]
fn merging_a_pass_all_state_makes_a_pass_all_filter() -> Result<()> {
    let key = KeyType::new(&datafusion::arrow::datatypes::DataType::Int64)?;
    let mut known = Collector::new(key, Size { expected_keys: 1_000, rate: 0.01 })?;
    known.insert(&[7, 8])?;
    let other = Collector::new(key, Size { expected_keys: 1_000, rate: 0.01 })?;
    known.merge(&other.pass_all_state())?;
    // Later keys do not change this.
    let mut many = Collector::new(key, Size { expected_keys: 1_000, rate: 0.01 })?;
    many.insert(&(0..1_000).collect::<Vec<u64>>())?;
    assert!(matches!(many.keys, Keys::Filter(_)));
    known.merge(&many.state())?;
    known.merge(&other.state())?;
    known.insert(&[9])?;
    let merged = open(&known.finish()?, key, NAME)?;
    assert!(merged.is_pass_all() && merged.contains_hash(1 << 40));
    Ok(())
}

/// Ranges are sent only if each state has them: those of a part of the keys would exclude others.
#[test]
fn a_state_without_ranges_removes_those_of_the_others() -> Result<()> {
    use datafusion::arrow::array::Int64Array;
    let key = KeyType::new(&datafusion::arrow::datatypes::DataType::Int64)?;
    let size = Size { expected_keys: 1_000, rate: 0.01 };
    let state = |keys: std::ops::Range<i64>| -> Result<Vec<u8>> {
        let mut collector = Collector::with_ranges(key, size)?;
        let count = keys.clone().count();
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(keys));
        assert_eq!(collector.insert_array(&keys, &mut Vec::new())?, count);
        Ok(collector.state())
    };
    let ranges = |states: &[Vec<u8>]| -> Result<Option<Ranges>> {
        let mut merged = Collector::new(key, size)?;
        states.iter().try_for_each(|state| merged.merge(state))?;
        // The states of merged states are equivalent.
        let mut again = Collector::new(key, size)?;
        again.merge(&merged.state())?;
        let (filter, ranges) = open_with_ranges(&merged.finish()?, key, NAME)?;
        assert_eq!(open_with_ranges(&again.finish()?, key, NAME)?.1, ranges);
        assert!(filter.is_pass_all() <= ranges.is_none());
        Ok(ranges)
    };
    let expected = |bounds: &[(i64, i64)]| {
        let mut expected = Ranges::default();
        bounds.iter().for_each(|&(low, end)| {
            expected.insert(&mut (low..end).collect::<Vec<_>>());
        });
        Some(expected)
    };
    let (a, b, none) = (state(5..10)?, state(-900..900)?, state(0..0)?);
    let mut hashes = Collector::new(key, size)?;
    hashes.insert(&[1, 2, 3])?;
    let pass_all = Collector::with_ranges(key, size)?.pass_all_state();
    assert_eq!(ranges(&[])?, None);
    assert_eq!(ranges(std::slice::from_ref(&none))?, expected(&[]));
    assert_eq!(ranges(&[a.clone(), none.clone()])?, expected(&[(5, 10)]));
    assert_eq!(ranges(&[none, a.clone(), state(20..21)?])?, expected(&[(5, 10), (20, 21)]));
    assert_eq!(ranges(&[a.clone(), b.clone()])?, expected(&[(-900, 900)]));
    for other in [hashes.state(), pass_all] {
        assert_eq!(ranges(&[other.clone(), a.clone()])?, None);
        assert_eq!(ranges(&[a.clone(), other.clone()])?, None);
        assert_eq!(ranges(&[b.clone(), other, a.clone()])?, None);
    }
    Ok(())
}

/// SQL's aggregate returns a stored filter, which other programs can open.
#[test]
fn a_collector_of_hashes_returns_a_stored_filter() -> Result<()> {
    let key = KeyType::new(&datafusion::arrow::datatypes::DataType::Int64)?;
    let size = Size { expected_keys: 1_000, rate: 0.01 };
    for hashes in [vec![], (0..10).collect(), (0..2_000).collect::<Vec<u64>>()] {
        let mut collector = Collector::new(key, size)?;
        collector.insert(&hashes)?;
        let mut merged = Collector::new(key, size)?;
        merged.merge(&collector.state())?;
        for mut collector in [collector, merged] {
            open(&collector.finish()?, key, NAME)?;
        }
    }
    Ok(())
}

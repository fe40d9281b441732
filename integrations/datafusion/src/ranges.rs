//! The ranges that contain all keys of a filter, for keys that are integers, dates or timestamps. A
//! scan skips the row groups and pages outside them. The bits of a filter do not answer for the
//! minimum and maximum of a row group.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};

/// Maximum number of ranges. More are merged where the gaps between them are smallest.
pub(crate) const MAX_RANGES: usize = 64;

/// Ascending ranges, inclusive, with gaps between them, and at most [`MAX_RANGES`] of them. Every
/// key is in one of them. A key is the number in 8 bytes that is hashed, as a signed integer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ranges {
    ranges: Vec<(i64, i64)>,
    /// Whether the keys are spread over their whole range, so that only it is maintained.
    are_spread: bool,
}

impl Ranges {
    /// Adds keys, and may sort them.
    ///
    /// Cost: sorting them, or finding the smallest and the largest one if the keys are spread.
    pub(crate) fn insert(&mut self, keys: &mut [i64]) {
        if keys.is_empty() {
            return;
        }
        if self.are_spread {
            let (low, high) = &mut self.ranges[0];
            let least = keys.iter().fold(i64::MAX, |least, key| least.min(*key));
            let greatest = keys.iter().fold(i64::MIN, |greatest, key| greatest.max(*key));
            let gap = least.saturating_sub(*high).max(low.saturating_sub(greatest)).max(0);
            if gap as u64 <= high.abs_diff(*low) {
                (*low, *high) = (least.min(*low), greatest.max(*high));
                return;
            }
            self.are_spread = false;
        }
        keys.sort_unstable();
        let mut ranges: Vec<(i64, i64)> = Vec::new();
        for &key in &*keys {
            match ranges.last_mut() {
                Some((_, high)) if key <= high.saturating_add(1) => *high = key,
                _ => ranges.push((key, key)),
            }
        }
        self.merge(Ranges { ranges, are_spread: false });
    }

    /// Adds the keys of other ranges.
    pub(crate) fn merge(&mut self, other: Ranges) {
        self.ranges.extend(other.ranges);
        self.ranges.sort_unstable();
        self.ranges.dedup_by(|(low, high), (_, before)| {
            let touches = *low <= before.saturating_add(1);
            if touches {
                *before = (*before).max(*high);
            }
            touches
        });
        if self.ranges.len() > MAX_RANGES {
            self.merge_down_to(MAX_RANGES);
            // If most of the range is within ranges, no scan skips much.
            let (low, high) = (self.ranges[0].0, self.ranges[MAX_RANGES - 1].1);
            let within: u64 = self.ranges.iter().map(|(low, high)| high.abs_diff(*low)).sum();
            self.are_spread |= within > high.abs_diff(low) / 2;
        }
        if self.are_spread {
            self.merge_down_to(1);
        }
    }

    /// Merges ranges across the smallest gaps until at most `count` remain.
    fn merge_down_to(&mut self, count: usize) {
        let gaps = self.ranges.windows(2).map(|pair| pair[1].0.abs_diff(pair[0].1));
        let mut gaps: Vec<u64> = gaps.collect();
        gaps.sort_unstable_by(|a, b| b.cmp(a));
        let Some(&limit) = gaps.get(count - 1) else { return };
        // As many gaps of the limit remain as there is room for.
        let mut room = count - 1 - gaps.partition_point(|gap| *gap > limit);
        self.ranges.dedup_by(|(low, high), (_, before)| {
            let gap = low.abs_diff(*before);
            let remains = gap > limit || gap == limit && room > 0;
            room -= usize::from(remains && gap == limit);
            if !remains {
                *before = *high;
            }
            !remains
        });
    }

    /// Returns the predicate that a column's value is in one of at most `count` ranges. Each range
    /// is wider than that of the keys, by [`margin`] on both sides.
    ///
    /// Returns `None` if there are no ranges, or if values of this type may not be ordered as the
    /// keys are: a file can have timestamps where its table has times of day.
    pub(crate) fn predicate(
        mut self,
        column: Column,
        data_type: &DataType,
        count: usize,
    ) -> Option<Arc<dyn PhysicalExpr>> {
        use DataType::{Date32, Date64, Timestamp};
        if !data_type.is_integer() && !matches!(data_type, Date32 | Date64 | Timestamp(..)) {
            return None;
        }
        // Keys above `i64::MAX` are negative here.
        if *data_type == DataType::UInt64 && self.ranges.first().is_some_and(|(low, _)| *low < 0) {
            return None;
        }
        let margin = margin(data_type);
        for (low, high) in &mut self.ranges {
            (*low, *high) = (low.saturating_sub(margin), high.saturating_add(margin));
        }
        self.merge(Ranges::default());
        self.merge_down_to(count);
        let column: Arc<dyn PhysicalExpr> = Arc::new(column);
        let binary = |left, operator, right| -> Arc<dyn PhysicalExpr> {
            Arc::new(BinaryExpr::new(left, operator, right))
        };
        let compare = |operator, bound: i64| {
            let bound = match data_type {
                Date32 => ScalarValue::Int32(bound.try_into().ok()),
                _ => ScalarValue::Int64(Some(bound)),
            };
            let bound = bound.cast_to(data_type).ok().filter(|bound| !bound.is_null())?;
            Some(binary(column.clone(), operator, Arc::new(Literal::new(bound))))
        };
        let ranges = self.ranges.into_iter().filter_map(|(low, high)| {
            let bounds = (compare(Operator::GtEq, low), compare(Operator::LtEq, high));
            // A bound that is not a value of the type is below all of its values, or above them.
            match bounds {
                (Some(low), Some(high)) => Some(binary(low, Operator::And, high)),
                (None, None) if low < 0 && high > 0 => {
                    Some(Arc::new(Literal::new(ScalarValue::from(true))) as _)
                }
                (None, None) => None,
                (low, high) => low.or(high),
            }
        });
        ranges.reduce(|all, range| binary(all, Operator::Or, range))
    }

    /// Appends the number of ranges in a byte, and their bounds, 8 bytes each.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.ranges.len() as u8);
        for (low, high) in &self.ranges {
            bytes.extend(low.to_le_bytes());
            bytes.extend(high.to_le_bytes());
        }
    }

    /// Decodes ranges, and returns them with the bytes that follow.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Ranges, &[u8])> {
        let ranges = bytes.split_first().and_then(|(&count, rest)| {
            let (ranges, rest) = rest.split_at_checked(16 * usize::from(count))?;
            let bound = |bytes: &[u8; 8]| i64::from_le_bytes(*bytes);
            let (bounds, _) = ranges.as_chunks::<8>();
            let ranges = bounds.chunks_exact(2).map(|pair| (bound(&pair[0]), bound(&pair[1])));
            Some((ranges.collect::<Vec<_>>(), rest))
        });
        match ranges {
            Some((ranges, rest)) if is_valid(&ranges) => {
                Ok((Ranges { ranges, are_spread: false }, rest))
            }
            _ => exec_err!("blocked-bloom: {} bytes with invalid key ranges", bytes.len()),
        }
    }
}

/// Returns the largest difference between a value of a table and the number in a file of another
/// type with which the engine compares. The engine casts the bound to the file's type, and not the
/// values to the table's: the decimal 5.7 is 5 in a table of integers, but `5.7 <= 5` is false. A
/// timestamp without a zone gets that of the table, which moves it by less than a day.
fn margin(data_type: &DataType) -> i64 {
    const DAY: i64 = 86_400;
    match data_type {
        DataType::Timestamp(TimeUnit::Second, Some(_)) => DAY,
        DataType::Timestamp(TimeUnit::Millisecond, Some(_)) => DAY * 1_000,
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => DAY * 1_000_000,
        DataType::Timestamp(TimeUnit::Nanosecond, Some(_)) => DAY * 1_000_000_000,
        _ => 1,
    }
}

fn is_valid(ranges: &[(i64, i64)]) -> bool {
    ranges.len() <= MAX_RANGES && ranges.iter().flat_map(|(a, b)| [a, b]).is_sorted()
}

#[cfg(test)]
#[path = "../tests/unit/ranges.rs"]
mod tests;

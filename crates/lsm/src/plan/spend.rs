//! Distributes the bytes of a budget. The steps of all levels, from one corner of a curve to the
//! next, are taken in descending order of the savings per byte, until one does not fit.
//!
//! The savings come from the curves, which are approximate. The resulting plan is priced by its
//! real parameters.

use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec::Vec;
use core::cmp::Ordering;

use blocked_bloom::probe::BLOCK_BYTES;

use super::curve::{Curve, Point, rate};
use super::level::Level;
use super::size::level_bytes;

/// Equal levels, which grow together.
struct Group {
    members: Vec<usize>,
    level: Level,
    keys: u64,
    weight: f64,
    corners: Vec<Point>,
    /// The corner to which the next step leads.
    next: usize,
    size: Size,
}

/// Sizes of the members of a group: the first `active` members have `blocks` blocks, and the first
/// `larger` of these have one block more.
#[derive(Clone, Copy)]
struct Size {
    active: usize,
    blocks: u32,
    larger: usize,
    /// Blocks of the member after the active ones, if it gets the rest of the budget.
    last: u32,
}

/// A step of a group, for the heap. The step that saves most per byte comes first; among equal
/// ones, that of the first group.
struct Step {
    saved_per_byte: f64,
    group: usize,
}

impl Ord for Step {
    fn cmp(&self, other: &Self) -> Ordering {
        let saved = self.saved_per_byte.total_cmp(&other.saved_per_byte);
        saved.then(other.group.cmp(&self.group))
    }
}

impl PartialOrd for Step {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Step {}

/// Returns the blocks of the filters of each level, 0 for none, at most `bytes` in total.
pub(super) fn spend(levels: &[Level], bytes: u64) -> Vec<u32> {
    let mut groups = groups(levels);
    let mut heap: BinaryHeap<Step> = BinaryHeap::new();
    heap.extend((0..groups.len()).filter_map(|group| groups[group].first_step(group)));
    let mut rest = u128::from(bytes);
    let mut saved = 0.0;
    // The best way to stop early, with a small filter for the rest of the budget, and its savings.
    let mut best: Option<(f64, Vec<Size>)> = None;
    while let Some(Step { group: index, .. }) = heap.pop() {
        let group = &mut groups[index];
        let (step, gain) = (group.step_bytes(), group.step_gain());
        let active = group.size.active;
        if step * active as u128 <= rest {
            rest -= step * active as u128;
            saved += gain * active as f64;
            group.take_step();
            heap.extend(group.step(index));
        } else if group.size.blocks == 0 {
            let fit = (rest / step) as usize;
            rest -= step * fit as u128;
            saved += gain * fit as f64;
            group.size.active = fit;
            if fit > 0 {
                group.take_step();
                heap.extend(group.step(index));
            }
            // Tries both: one more filter that is smaller than planned, or these bytes for other
            // levels.
            let (blocks, extra) = group.size_for(rest);
            if saved + extra > best.as_ref().map_or(saved, |(best, _)| *best) {
                let mut sizes: Vec<Size> = groups.iter().map(Group::final_size).collect();
                sizes[index].last = blocks;
                best = Some((saved + extra, sizes));
            }
        } else {
            saved += group.grow_within(&mut rest);
        }
    }
    let sizes = match best {
        Some((best, sizes)) if best > saved => sizes,
        _ => groups.iter().map(Group::final_size).collect(),
    };
    let mut blocks = alloc::vec![0; levels.len()];
    for (group, size) in groups.iter().zip(sizes) {
        for (place, &level) in group.members.iter().enumerate() {
            blocks[level] = match place {
                _ if place < size.larger => size.blocks + 1,
                _ if place < size.active => size.blocks,
                _ if place == size.active => size.last,
                _ => 0,
            };
        }
    }
    blocks
}

/// Returns the levels for which a filter can pay, with equal levels grouped. The order does not
/// depend on that of the levels.
fn groups(levels: &[Level]) -> Vec<Group> {
    let mut members: BTreeMap<[u64; 4], Vec<usize>> = BTreeMap::new();
    for (index, level) in levels.iter().enumerate() {
        let (weight, queries) = (level.weight(), level.cost_of_queries());
        if weight > queries {
            let key =
                [level.keys_per_filter(), level.filters(), weight.to_bits(), queries.to_bits()];
            members.entry(key).or_default().push(index);
        }
    }
    let mut curves: BTreeMap<u64, Curve> = BTreeMap::new();
    let group = |([keys, ..], members): ([u64; 4], Vec<usize>)| {
        let class = Curve::class(keys);
        let curve = curves.entry(class).or_insert_with(|| Curve::new(class));
        let level = levels[members[0]];
        Group {
            size: Size { active: members.len(), blocks: 0, larger: 0, last: 0 },
            members,
            level,
            keys,
            weight: level.weight(),
            corners: curve.corners(keys),
            next: 0,
        }
    };
    members.into_iter().map(group).collect()
}

impl Group {
    /// Returns the bytes of the next step, per member.
    fn step_bytes(&self) -> u128 {
        let now = level_bytes(&self.level, self.size.blocks);
        level_bytes(&self.level, self.corners[self.next].blocks) - now
    }

    /// Returns the savings of the next step, per member: reads, less the cost of queries if there
    /// was no filter before.
    fn step_gain(&self) -> f64 {
        let after = self.corners[self.next].rate;
        match self.size.blocks {
            0 => self.weight * (1.0 - after) - self.level.cost_of_queries(),
            _ => self.weight * (self.corners[self.next - 1].rate - after),
        }
    }

    fn take_step(&mut self) {
        self.size.blocks = self.corners[self.next].blocks;
        self.next += 1;
    }

    /// Returns the step from no filter to the corner with the greatest savings per byte, or `None`
    /// if no filter pays.
    fn first_step(&mut self, group: usize) -> Option<Step> {
        let mut best: Option<(usize, Step)> = None;
        for next in 0..self.corners.len() {
            self.next = next;
            let step = self.step(group)?;
            if best.as_ref().is_none_or(|(_, best)| step.saved_per_byte > best.saved_per_byte) {
                best = Some((next, step));
            }
        }
        let (next, step) = best?;
        self.next = next;
        (step.saved_per_byte > 0.0).then_some(step)
    }

    /// Returns the next step, unless the curve ends.
    fn step(&self, group: usize) -> Option<Step> {
        (self.next < self.corners.len())
            .then(|| Step { saved_per_byte: self.step_gain() / self.step_bytes() as f64, group })
    }

    /// Returns the blocks of one more member that gets all of `rest`, and its savings.
    fn size_for(&self, rest: u128) -> (u32, f64) {
        let blocks = (rest / self.bytes_per_block()).saturating_sub(1) as u32;
        (blocks, self.weight * (1.0 - rate(self.keys, blocks)) - self.level.cost_of_queries())
    }

    /// Distributes `rest` evenly among the members, in whole blocks and one more for some of them.
    /// Returns the savings.
    fn grow_within(&mut self, rest: &mut u128) -> f64 {
        let active = self.size.active as u128;
        let all = (*rest / self.bytes_per_block()).min(u128::from(u32::MAX) * active);
        *rest -= all * self.bytes_per_block();
        if all == 0 {
            return 0.0;
        }
        let before = rate(self.keys, self.size.blocks);
        self.size.blocks += (all / active) as u32;
        self.size.larger = (all % active) as usize;
        let [after, larger] = [0, 1].map(|more| rate(self.keys, self.size.blocks + more));
        let larger = self.size.larger as f64 * (after - larger);
        self.weight * (active as f64 * (before - after) + larger)
    }

    fn bytes_per_block(&self) -> u128 {
        u128::from(self.level.filters()) * BLOCK_BYTES as u128
    }

    fn final_size(&self) -> Size {
        match self.size {
            // The first step was never taken, so no member has a filter.
            size if size.blocks == 0 => Size { active: 0, ..size },
            size => size,
        }
    }
}

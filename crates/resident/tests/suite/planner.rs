//! The planner alone: exact and relaxed optima, budgets, hysteresis, inheritance, expectations,
//! failures.

use std::time::Duration;

use blocked_bloom::{FilterOptions, Params, Sizing};
use blocked_bloom_resident::{
    MergeInput, ResidentOptions, ResidentPlanner, ResidentSize, ResidentTable,
};

use crate::common::Random;

const SECOND: Duration = Duration::from_secs(1);

fn share(random: &mut Random) -> f64 {
    (random.next() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Loads cost nothing, so that plans can be compared with sums.
pub(crate) fn free(budget: u64) -> ResidentOptions {
    ResidentOptions::new(budget).with_load_cost(0.0, f64::INFINITY).with_folding(false)
}

fn params(keys: u64) -> Params {
    FilterOptions::new(Sizing::BitsPerKey(10.0)).foldable().params(keys).unwrap()
}

fn table(number: u64, keys: u64) -> ResidentTable {
    let params = params(keys);
    ResidentTable::new(number, params.stored_bytes()).with_params(&params)
}

/// A tick after which all loads succeed.
fn tick(planner: &mut ResidentPlanner, elapsed: Duration) -> Vec<(usize, ResidentSize)> {
    let changes = planner.tick(elapsed);
    for &(index, size) in &changes {
        if planner.size(index) < size {
            assert!(planner.resize(index, size), "a load that is wanted fits");
        }
    }
    assert!(planner.resident_bytes() <= planner.budget());
    assert_eq!(planner.resident_bytes(), naive_bytes(planner));
    changes
}

/// Counts the resident bytes again, if no table was removed.
fn naive_bytes(planner: &ResidentPlanner) -> u64 {
    (0..planner.statistics().count())
        .map(|index| match planner.size(index) {
            ResidentSize::None => 0,
            ResidentSize::Half => (planner.table(index).bytes() - 64) / 2,
            ResidentSize::Whole => planner.table(index).bytes(),
        })
        .sum()
}

/// Best value of whole items within the budget, by dynamic programming over bytes.
fn knapsack(items: &[(u64, u64)], budget: usize) -> u64 {
    let mut best = vec![0; budget + 1];
    for &(bytes, value) in items {
        for room in (bytes as usize..=budget).rev() {
            best[room] = best[room].max(best[room - bytes as usize] + value);
        }
    }
    best[budget]
}

/// At most one filter below the exact optimum, and within 1 % for a budget of many filters.
#[test]
fn plans_reach_the_exact_optimum_of_whole_filters() {
    let mut random = Random(7);
    let (mut reached, mut optimum) = (0, 0);
    for _ in 0..200 {
        let items: Vec<(u64, u64)> = (0..60)
            .map(|_| (20 + random.next() % 100, 1 + (1_000.0 / (share(&mut random) + 0.01)) as u64))
            .collect();
        let budget = 200 + (random.next() % 2_000) as usize;
        let mut planner = ResidentPlanner::new(free(budget as u64));
        for (number, &(bytes, value)) in items.iter().enumerate() {
            let index = planner.add(ResidentTable::new(number as u64, bytes));
            planner.count(index, value);
        }
        tick(&mut planner, SECOND);
        let resident = (0..items.len()).filter(|&index| planner.size(index) == ResidentSize::Whole);
        let value: u64 = resident.map(|index| items[index].1).sum();
        let best = knapsack(&items, budget);
        let largest = items.iter().map(|item| item.1).max().unwrap();
        assert!(value <= best && value + largest > best, "{value} of {best}");
        reached += value;
        optimum += best;
    }
    assert!(reached as f64 > 0.985 * optimum as f64, "{reached} of {optimum}");
}

/// With several sizes, the plan is at most one step below the relaxed bound, and better than whole
/// filters only.
#[test]
fn folding_reaches_the_relaxed_optimum() {
    let mut random = Random(11);
    let tables: Vec<(u64, u64)> = (0..2_000)
        .map(|_| (8_000 + random.next() % 20_000, (2_000.0 / (share(&mut random) + 0.02)) as u64))
        .collect();
    let all: u64 = tables.iter().map(|&(keys, _)| params(keys).stored_bytes()).sum();
    let saved = |folding| {
        let mut planner = ResidentPlanner::new(free(all / 10).with_folding(folding));
        for (number, &(keys, value)) in tables.iter().enumerate() {
            let index = planner.add(table(number as u64, keys));
            planner.count(index, value);
        }
        tick(&mut planner, SECOND);
        let of_half = (0..tables.len()).filter(|&i| planner.size(i) == ResidentSize::Half).count();
        assert_eq!(of_half > 0, folding);
        planner.tick(Duration::ZERO); // estimates what the first plan loaded
        planner.saved_reads()
    };
    // The bound: steps by density, the last one in part.
    let mut steps = Vec::new();
    for &(keys, value) in &tables {
        let params = params(keys);
        let half_bytes = f64::from(params.blocks() / 2 * 64);
        let [whole, half] = [1, 2].map(|n| 1.0 - params.false_positive_rate_at(n * keys));
        let (whole, half) = (whole * value as f64, half * value as f64);
        steps.push((half / half_bytes, half_bytes));
        let rest = params.stored_bytes() as f64 - half_bytes;
        steps.push(((whole - half) / rest, rest));
    }
    steps.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let (mut left, mut bound) = (all as f64 / 10.0, 0.0);
    for (density, bytes) in steps {
        bound += density * f64::min(bytes, left);
        left -= f64::min(bytes, left);
    }
    let (folding, whole) = (saved(true), saved(false));
    assert!(folding <= bound * 1.000_1 && folding > 0.995 * bound, "{folding} of {bound}");
    assert!(folding > 1.03 * whole, "{folding} with folding, {whole} without");
}

/// Fails if the plan asks for half of a filter with an odd number of blocks.
#[test]
fn only_filters_with_an_even_number_of_blocks_are_folded() {
    for (blocks, folded) in [(8, ResidentSize::Half), (9, ResidentSize::None)] {
        let options = FilterOptions::new(Sizing::MaxBytes(64 + blocks * 64));
        let params = options.params(blocks * 50).unwrap();
        assert_eq!(u64::from(params.blocks()), blocks);
        let half = blocks / 2 * 64;
        let mut planner =
            ResidentPlanner::new(ResidentOptions::new(half).with_load_cost(0.0, f64::INFINITY));
        let known = ResidentTable::new(1, params.stored_bytes()).with_params(&params);
        let index = planner.add(known.with_absent_per_second(1_000.0));
        let wanted = planner.tick(SECOND);
        assert!(wanted.iter().all(|&change| change == (index, folded)), "{wanted:?}");
        assert_eq!(planner.resize(index, ResidentSize::Half), folded == ResidentSize::Half);
        assert_eq!((planner.size(index), wanted.len()), (folded, usize::from(blocks == 8)));
    }
}

/// Fails if the most valuable filters per byte are evicted first.
#[test]
fn a_smaller_budget_evicts_the_least_valuable_filters() {
    let mut planner = ResidentPlanner::new(free(100_000));
    for number in 0..100 {
        let index = planner.add(ResidentTable::new(number, 1_000));
        planner.count(index, 10 * (number + 1));
    }
    assert_eq!(tick(&mut planner, SECOND).len(), 100);
    for budget in [90_000, 50_500, 1_000, 0] {
        let changes = planner.set_budget(budget);
        assert!(changes.iter().all(|&(_, size)| size == ResidentSize::None));
        let kept = (budget / 1_000) as usize;
        for index in 0..100 {
            assert_eq!(planner.size(index) == ResidentSize::Whole, index >= 100 - kept, "{index}");
        }
        assert_eq!(planner.resident_bytes(), kept as u64 * 1_000);
    }
}

/// Fails if bytes are counted twice or not released, in any order of calls.
#[test]
fn resident_bytes_match_the_resident_filters() {
    let mut random = Random(3);
    let mut planner = ResidentPlanner::new(ResidentOptions::new(200_000));
    let mut alive = Vec::new();
    for _ in 0..20_000 {
        match random.next() % 8 {
            0 if alive.len() < 60 => {
                alive.push(planner.add(table(1, 7_000 + random.next() % 8_000)))
            }
            1 if alive.len() > 20 => {
                let index = alive.swap_remove((random.next() % alive.len() as u64) as usize);
                planner.remove(index);
            }
            2 => {
                planner.set_budget(60_000 + random.next() % 200_000);
            }
            3 => {
                for (index, size) in planner.tick(SECOND) {
                    // Some loads fail, others are done twice.
                    if random.next().is_multiple_of(7) {
                        planner.fail_load(index);
                    } else {
                        planner.resize(index, size);
                        planner.resize(index, size);
                    }
                }
            }
            _ if alive.is_empty() => {}
            4 => {
                let index = alive[(random.next() % alive.len() as u64) as usize];
                planner.offer(index);
            }
            5 => {
                let index = alive[(random.next() % alive.len() as u64) as usize];
                planner.resize(index, ResidentSize::None);
            }
            _ => {
                let index = alive[(random.next() % alive.len() as u64) as usize];
                planner.count(index, random.next() % 5_000);
            }
        }
        let bytes: u64 = alive
            .iter()
            .map(|&index| match planner.size(index) {
                ResidentSize::None => 0,
                ResidentSize::Half => (planner.table(index).bytes() - 64) / 2,
                ResidentSize::Whole => planner.table(index).bytes(),
            })
            .sum();
        assert_eq!(planner.resident_bytes(), bytes);
        assert!(bytes <= planner.budget());
    }
}

/// A load must pay back: filters of nearly equal value do not displace each other.
#[test]
fn filters_of_nearly_equal_value_are_not_exchanged() {
    let mut planner = ResidentPlanner::new(ResidentOptions::new(1_000_000).with_folding(false));
    let pair = [1, 2].map(|number| planner.add(ResidentTable::new(number, 1_000_000)));
    let seconds = Duration::from_secs(20);
    planner.count(pair[0], 22);
    planner.count(pair[1], 20);
    assert_eq!(tick(&mut planner, seconds), [(pair[0], ResidentSize::Whole)]);
    for _ in 0..9 {
        // The other filter would save up to 0.04 reads per second more, but its load costs six.
        planner.count(pair[0], 20);
        planner.count(pair[1], 21);
        assert_eq!(tick(&mut planner, seconds), []);
    }
    // Twice as many lookups are not chance.
    for _ in 0..20 {
        planner.count(pair[0], 1_000);
        planner.count(pair[1], 2_000);
        tick(&mut planner, SECOND);
    }
    assert_eq!(planner.size(pair[1]), ResidentSize::Whole);
}

/// The caller provides the clock: the same lookups per second give the same plan at any tick
/// length.
#[test]
fn rates_depend_on_elapsed_time_only() {
    let rates = [250, 1_000, 4_000].map(|milliseconds| {
        let mut planner = ResidentPlanner::new(free(1));
        let index = planner.add(ResidentTable::new(1, 1_000));
        for _ in 0..40_000 / milliseconds {
            planner.count(index, milliseconds / 10);
            planner.tick(Duration::from_millis(milliseconds));
        }
        planner.statistics().next().unwrap().1
    });
    assert!(rates.iter().all(|rate| (99.0..101.0).contains(rate)), "{rates:?}");
}

/// A hot table that becomes cold is replaced within part of the half-life, and noise changes
/// nothing.
#[test]
fn a_shift_is_followed_within_the_half_life() {
    let options = ResidentOptions::new(10_000).with_half_life(Duration::from_secs(8));
    let mut planner = ResidentPlanner::new(options.with_payback(Duration::from_secs(10)));
    let pair = [1, 2].map(|number| planner.add(ResidentTable::new(number, 10_000)));
    for _ in 0..300 {
        planner.count(pair[0], 500);
        planner.count(pair[1], 5);
        tick(&mut planner, SECOND);
    }
    assert_eq!(planner.size(pair[0]), ResidentSize::Whole);
    let mut seconds = 0;
    while planner.size(pair[1]) < ResidentSize::Whole {
        planner.count(pair[0], 5);
        planner.count(pair[1], 500);
        tick(&mut planner, SECOND);
        seconds += 1;
    }
    assert!(seconds <= 8, "{seconds} s");
}

/// If many filters change at once, filters with few lookups follow at once too. If only the total
/// traffic changes, no filter forgets.
#[test]
fn many_changes_at_once_make_all_filters_forget() {
    let rate_after = |is_shift: bool| {
        let options = free(1).with_half_life(Duration::from_secs(8));
        let mut planner = ResidentPlanner::new(options);
        let all: Vec<usize> =
            (0..100).map(|number| planner.add(ResidentTable::new(number, 1_000))).collect();
        let mut second = |of_hot: [u64; 2], of_cold: u64| {
            for &index in &all[..99] {
                planner.count(index, of_hot[index % 2]);
            }
            planner.count(all[99], of_cold);
            planner.tick(SECOND);
        };
        (0..200).for_each(|_| second([400, 100], 4));
        second(if is_shift { [100, 400] } else { [800, 200] }, 9);
        planner.statistics().nth(99).unwrap().1
    };
    assert_eq!(rate_after(true), 9.0);
    assert!(rate_after(false) < 4.1, "{}", rate_after(false));
}

/// A filter has changed only if its lookups and its share have both changed. If the hottest filter
/// gets no more lookups, the share of the others grows, but they do not forget.
#[test]
fn a_filter_without_lookups_does_not_reset_the_others() {
    let mut planner = ResidentPlanner::new(free(1).with_half_life(Duration::from_secs(8)));
    let hot = planner.add(ResidentTable::new(0, 1_000));
    let others: Vec<usize> =
        (1..=20).map(|number| planner.add(ResidentTable::new(number, 1_000))).collect();
    let mut second = |of_hot, of_first| {
        planner.count(hot, of_hot);
        others.iter().for_each(|&other| planner.count(other, 10));
        planner.count(others[0], of_first);
        planner.tick(SECOND);
        planner.statistics().map(|(_, rate)| rate).collect::<Vec<_>>()
    };
    (0..100).for_each(|_| drop(second(10_000, 0)));
    let rates = (0..5).map(|_| second(0, 2)).last().unwrap();
    assert!((10.05..10.2).contains(&rates[1]), "{}", rates[1]); // the mean of 100 seconds and five
    assert!((9.95..10.05).contains(&rates[2]), "{}", rates[2]);
    let rates = (0..25).map(|_| second(0, 0)).last().unwrap();
    assert!(rates[0] < 1.0, "{}", rates[0]);
}

/// Small counts are mostly chance: the expectation outweighs them, and large counts outweigh the
/// expectation.
#[test]
fn the_prior_weighs_as_much_as_three_lookups() {
    let options = free(1).with_expected_lookups(100.0);
    let mut planner = ResidentPlanner::new(options);
    let all: Vec<usize> = (0..100)
        .map(|number| planner.add(ResidentTable::new(number, 1_000).with_run_share(0.01)))
        .collect();
    let mut second = || {
        all.iter().for_each(|&index| planner.count(index, 1 + 3 * u64::from(index == 7)));
        planner.tick(SECOND);
        planner.statistics().nth(7).unwrap().1
    };
    let first = second();
    // Four lookups, one expected: (4 + 3) / (1 + 3) per second.
    assert!((1.7..1.8).contains(&first), "{first}");
    let last = (0..200).map(|_| second()).last().unwrap();
    assert!((3.9..4.0).contains(&last), "{last}");
}

/// Fails if new tables of a compaction start without the lookups of their inputs.
#[test]
fn new_tables_inherit_the_maximum_over_runs_by_overlap() {
    let mut planner = ResidentPlanner::new(free(1_000));
    let inputs: Vec<usize> =
        (0..4).map(|number| planner.add(ResidentTable::new(number, 1_000))).collect();
    // Two tables of run 1, two of run 2.
    for _ in 0..400 {
        for (&index, rate) in inputs.iter().zip([100, 60, 300, 20]) {
            planner.count(index, rate);
        }
        planner.tick(SECOND);
    }
    let input = |i: usize, run, share| MergeInput { table: inputs[i], run, share };
    let merged = planner.add_merged(
        ResidentTable::new(9, 1_000),
        &[input(0, 1, 1.0), input(2, 2, 0.25), input(1, 1, 0.5), input(3, 2, 1.0)],
    );
    let rate = |planner: &ResidentPlanner, number| {
        planner.statistics().find(|&(table, _)| table == number).unwrap().1
    };
    // Run 1: 100 + 30; run 2: 75 + 20.
    assert!((129.0..131.0).contains(&rate(&planner, 9)), "{}", rate(&planner, 9));
    // Lookups since the last tick are not lost.
    for (&index, counted) in inputs.iter().zip([0, 0, 300, 0]) {
        planner.count(index, counted);
    }
    planner.remove(merged);
    let second = planner.add_merged(ResidentTable::new(9, 1_000), &[input(2, 2, 1.0)]);
    for &index in &inputs {
        planner.remove(index);
    }
    planner.tick(SECOND);
    assert!((299.0..301.0).contains(&rate(&planner, 9)), "{}", rate(&planner, 9));
    assert_eq!(planner.size(second), ResidentSize::None);
    let without = planner.add_merged(ResidentTable::new(10, 1_000), &[]);
    assert_eq!(rate(&planner, 10), 0.0);
    assert_ne!(without, second);
}

/// Before the first lookup, each run is expected to be looked up evenly, so the smallest tables
/// come first.
#[test]
fn a_cold_start_loads_by_expected_lookups() {
    let mut planner = ResidentPlanner::new(ResidentOptions::new(700_000).with_folding(false));
    let mut indices = Vec::new();
    for level in 0..3_u32 {
        let tables = 4_u64.pow(level);
        for number in 0..tables {
            let table = ResidentTable::new(number, 100_000).with_run_share(1.0 / tables as f64);
            indices.push((level, planner.add(table)));
        }
    }
    tick(&mut planner, Duration::ZERO);
    for (level, index) in indices {
        let expected = if level < 2 { 1..=1 } else { 0..=1 };
        assert!(expected.contains(&usize::from(planner.size(index) == ResidentSize::Whole)));
    }
    assert_eq!(planner.resident_bytes(), 700_000);
}

/// The first tick shows the total traffic, and scales the expectation for later tables. A table
/// without any of many expected lookups is expected to get few.
#[test]
fn expectations_follow_the_counted_traffic() {
    let mut planner = ResidentPlanner::new(free(1).with_expected_lookups(10.0));
    let all: Vec<usize> = (0..100)
        .map(|number| planner.add(ResidentTable::new(number, 1_000).with_run_share(0.01)))
        .collect();
    for &index in &all[..50] {
        planner.count(index, 2_000);
    }
    planner.tick(SECOND);
    let silent = planner.statistics().nth(99).unwrap().1;
    assert!(silent < 10.0, "{silent}");
    planner.add(ResidentTable::new(100, 1_000).with_run_share(0.01));
    let unseen = planner.statistics().nth(100).unwrap().1;
    assert!((900.0..1_000.0).contains(&unseen), "{unseen}"); // 0.01 of 100,000
}

/// Fails if a first tick after a few microseconds without lookups predicts no traffic.
#[test]
fn a_first_tick_loads_by_expected_lookups() {
    let mut planner = ResidentPlanner::new(ResidentOptions::new(1 << 20));
    for number in 0..4 {
        planner.add(ResidentTable::new(number, 1_000).with_run_share(0.25));
    }
    assert_eq!(planner.tick(Duration::from_micros(400)).len(), 4);
}

#[test]
fn statistics_give_the_same_plan_after_a_restart() {
    let mut before = ResidentPlanner::new(ResidentOptions::new(20_000));
    let mut random = Random(5);
    let rates: Vec<u64> = (0..100).map(|_| random.next() % 5_000).collect();
    for number in 0..100 {
        before.add(table(number, 1_000));
    }
    for _ in 0..100 {
        rates.iter().enumerate().for_each(|(index, &rate)| before.count(index, rate));
        tick(&mut before, SECOND);
    }
    let mut after = ResidentPlanner::new(ResidentOptions::new(20_000));
    for (number, rate) in before.statistics() {
        after.add(table(number, 1_000).with_absent_per_second(rate));
    }
    tick(&mut after, Duration::ZERO);
    let differing = (0..100).filter(|&index| before.size(index) != after.size(index)).count();
    assert!(differing <= 4, "{differing} of 100");
    assert!(after.resident_bytes() > 19_000);
}

#[test]
fn a_failed_load_waits_longer_each_time() {
    let mut planner = ResidentPlanner::new(free(1_000));
    let index = planner.add(ResidentTable::new(1, 1_000));
    let mut waits = Vec::new();
    let mut waited = 0;
    while waits.len() < 9 {
        planner.count(index, 1_000);
        waited += 1;
        if !planner.tick(SECOND).is_empty() {
            waits.push(waited);
            waited = 0;
            planner.fail_load(index);
        }
    }
    assert_eq!(waits, [1, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
}

/// An offer needs no load, displaces only less valuable filters, and is rejected if all are more
/// valuable.
#[test]
fn an_offer_displaces_less_valuable_filters() {
    let mut planner = ResidentPlanner::new(free(3_000));
    let all: Vec<usize> = (0..5)
        .map(|number| {
            let rate = [50.0, 100.0, 200.0, 120.0, 10.0][number as usize];
            planner.add(ResidentTable::new(number, 1_000).with_absent_per_second(rate))
        })
        .collect();
    for index in [0, 1, 2] {
        assert_eq!(planner.offer(all[index]), Some(vec![]));
    }
    assert_eq!(planner.offer(all[4]), None);
    assert_eq!(planner.offer(all[3]), Some(vec![all[0]]));
    assert_eq!(planner.resident_bytes(), 3_000);
    assert_eq!(planner.size(all[0]), ResidentSize::None);
}

#[test]
fn cheap_reads_are_worth_little() {
    let mut planner = ResidentPlanner::new(free(1_000));
    let cached = planner.add(ResidentTable::new(1, 1_000).with_read_cost(0.01));
    let cold = planner.add(ResidentTable::new(2, 1_000));
    planner.count(cached, 5_000);
    planner.count(cold, 100);
    assert_eq!(tick(&mut planner, SECOND), [(cold, ResidentSize::Whole)]);
    planner.tick(Duration::ZERO);
    assert!((planner.saved_reads() - 99.0).abs() < 0.1 && planner.savable_reads() > 148.0);
    // The other filter: 50 reads per second less 1 %, for 1,000 bytes.
    assert!((planner.saved_reads_per_mib() - 49.5 * 1_048.576).abs() < 10.0);
}

#[test]
#[should_panic(expected = "no table has the index 3")]
fn an_unknown_index_panics() {
    ResidentPlanner::new(free(1)).count(3, 1);
}

#[test]
#[should_panic(expected = "no table has the index 0")]
fn a_removed_table_cannot_be_a_compaction_input() {
    let mut planner = ResidentPlanner::new(free(1));
    let removed = planner.add(ResidentTable::new(1, 1_000).with_absent_per_second(5_000.0));
    planner.remove(removed);
    planner.add_merged(ResidentTable::new(2, 1_000), &[input(removed, 1, 1.0)]);
}

#[test]
#[should_panic(expected = "no table has the index 7")]
fn an_unknown_input_panics() {
    let inputs = [input(7, 1, 1.0)];
    ResidentPlanner::new(free(1)).add_merged(ResidentTable::new(2, 1_000), &inputs);
}

fn input(table: usize, run: u64, share: f64) -> MergeInput<usize> {
    MergeInput { table, run, share }
}

/// If the bytes are fewer than half of the described filter, one of the two is wrong, and the
/// filter is not folded.
#[test]
fn a_half_larger_than_the_filter_is_not_folded() {
    let known = ResidentTable::new(1, 64).with_params(&params(100_000));
    let mut planner = ResidentPlanner::new(free(1 << 20).with_folding(true));
    let index = planner.add(known);
    assert!(!planner.resize(index, ResidentSize::Half));
    assert_eq!(planner.offer(index), Some(vec![]));
    assert_eq!(planner.resident_bytes(), 64);
    let other = planner.add(known);
    planner.count(other, 1_000);
    planner.count(index, 1_000);
    tick(&mut planner, SECOND);
    assert_eq!(planner.set_budget(0).len(), 2);
    assert_eq!(planner.resident_bytes(), 0);
}

/// Impossible sizes, as a damaged manifest may contain.
#[test]
fn huge_sizes_never_become_resident() {
    let mut planner = ResidentPlanner::new(free(u64::MAX));
    let tables = [1, 2].map(|number| planner.add(ResidentTable::new(number, u64::MAX - 1)));
    assert!(planner.resize(tables[0], ResidentSize::Whole));
    assert!(!planner.resize(tables[1], ResidentSize::Whole));
    assert_eq!(planner.resident_bytes(), u64::MAX - 1);
}

/// NaN and numbers out of range are replaced by the nearest sensible value.
#[test]
fn out_of_range_numbers_are_clamped() {
    const ODD: [f64; 8] =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -1.0, 0.0, 1e-300, 1e30];
    let mut random = Random(23);
    let mut odd = || ODD[(random.next() % 8) as usize];
    for round in 0..2_000 {
        let options = ResidentOptions::new(3_000)
            .with_load_cost(odd(), odd())
            .with_expected_lookups(odd())
            .with_half_life(if round % 7 == 0 { Duration::MAX } else { SECOND });
        let mut planner = ResidentPlanner::new(options);
        let sane = planner.add(ResidentTable::new(0, 1_000).with_run_share(0.5));
        let tables: Vec<usize> = (1..5)
            .map(|number| {
                let known = ResidentTable::new(number, 1_000).with_read_cost(odd());
                let known = known.with_run_share(odd());
                planner.add(known.with_absent_per_second(odd() as f32))
            })
            .collect();
        let inputs = tables.iter().map(|&table| input(table, 1, odd()));
        let inputs: Vec<_> = inputs.collect();
        planner.add_merged(ResidentTable::new(9, 1_000), &inputs);
        for elapsed in [SECOND, Duration::from_nanos(1), Duration::MAX, SECOND, SECOND] {
            tables.iter().for_each(|&table| planner.count(table, u64::MAX));
            planner.count(sane, 10);
            tick(&mut planner, elapsed);
            planner.offer(tables[0]);
            let sums = [planner.saved_reads(), planner.savable_reads()];
            assert!(sums.iter().all(|sum| sum.is_finite()), "{sums:?} in round {round}");
            let mut statistics = planner.statistics();
            assert!(statistics.all(|(_, rate)| rate.is_finite()), "in round {round}");
        }
    }
}

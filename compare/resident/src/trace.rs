//! Traces of a simulated LSM tree: which part of which table each get visits, and which sizes of
//! its filter would have said "absent".

use blocked_bloom::{Params, Sizing};

/// Partitions of a table's filter. Events name partitions, and whole filters are these taken
/// together.
pub(crate) const PARTS: u32 = 16;

/// Ticks of a second.
pub(crate) const TICKS: u64 = 4;

/// Gets of a tick: 20,000 are a second.
pub(crate) const TICK: u64 = 20_000 / TICKS;

/// Ranges of keys that are hot or cold together.
const RANGES: usize = 20_000;

/// Bits per key of every filter.
const BITS: f64 = 10.0;

/// What a table answers to one get.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// It has the key: the read is needed.
    Present,
    /// Absent, and a false positive of the whole filter.
    PassesWhole,
    /// Absent, and a false positive of the filter folded to half.
    PassesHalf,
    /// Absent, and either says so.
    Caught,
}

pub(crate) enum Event {
    Visit(Class, u32),
    Tick,
    Compaction,
}

/// An event in 32 bits: its class in three, the partition in the rest.
#[derive(Clone, Copy)]
pub(crate) struct Packed(u32);

impl Packed {
    const TICK: u32 = 6 << 29;
    const COMPACTION: u32 = 7 << 29;

    pub(crate) fn unpack(self) -> Event {
        let part = self.0 & 0x1fff_ffff;
        match self.0 >> 29 {
            0 => Event::Visit(Class::Present, part),
            1 => Event::Visit(Class::PassesWhole, part),
            2 => Event::Visit(Class::PassesHalf, part),
            3 => Event::Visit(Class::Caught, part),
            6 => Event::Tick,
            _ => Event::Compaction,
        }
    }
}

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// 0 to 1.
    pub(crate) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.share() * limit as f64) as usize
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) level: u8,
    /// Sorted run, as long as the table lives.
    pub(crate) run: u32,
    /// Of its filter.
    pub(crate) bytes: u64,
    /// Its range of keys, which are 0 to 1.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Ticks.
    pub(crate) born: u32,
    pub(crate) died: u32,
}

pub(crate) struct Compaction {
    pub(crate) dead: Vec<u32>,
    pub(crate) born: Vec<u32>,
}

pub(crate) struct Trace {
    pub(crate) events: Vec<Packed>,
    pub(crate) tables: Vec<Table>,
    /// Those that are there at the start.
    pub(crate) first_tables: usize,
    pub(crate) compactions: Vec<Compaction>,
    /// Cost of a read by level.
    pub(crate) costs: Vec<f64>,
    pub(crate) total_bytes: u64,
    pub(crate) ticks: u32,
    pub(crate) gets: u64,
    /// The share of keys below each of `RANGES`, from each tick on at which traffic changes.
    below: Vec<(u32, Vec<f64>)>,
    /// The share of gets that visit a run and do not find their key there.
    absent: Vec<f64>,
}

impl Trace {
    /// Whether traffic changes at this tick.
    pub(crate) fn shifts_at(&self, tick: u32) -> bool {
        tick > 0 && self.below.iter().any(|&(from, _)| from == tick)
    }

    /// Absent lookups a second that a range of a run's keys is to get in this tick.
    pub(crate) fn rate(&self, tick: u32, run: u32, (low, high): (f64, f64)) -> f64 {
        let epoch = self.below.partition_point(|&(from, _)| from <= tick) - 1;
        let below = |key: f64| {
            let (at, below) = (key * RANGES as f64, &self.below[epoch].1);
            let range = (at as usize).min(RANGES - 1);
            below[range] + (at - range as f64) * (below[range + 1] - below[range])
        };
        (TICK * TICKS) as f64 * (below(high) - below(low)) * self.absent[run as usize]
    }
}

#[derive(Clone)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// The share of gets whose key exists.
    pub(crate) present: f64,
    /// Exponent of the popularity of ranges of keys, 0 for uniform traffic.
    pub(crate) zipf: f64,
    /// How often, in the whole trace, other ranges become the hot ones.
    pub(crate) shifts: u64,
    /// The share of gets that walk over the keys in order.
    pub(crate) sweep: f64,
    /// Gets between two compactions, 0 for none.
    pub(crate) compact_every: u64,
    /// Four runs on each of six tiers, in place of seven levels of which the first has six runs.
    pub(crate) is_tiered: bool,
    /// The cost of a read by level, 1 where it is empty.
    pub(crate) costs: &'static [f64],
    /// Counted from the first get, with nothing in memory; else a fifth of the trace goes before.
    pub(crate) is_cold: bool,
}

const MIXED: Workload = Workload {
    name: "mixed",
    about: "50 % present",
    present: 0.5,
    zipf: 0.99,
    shifts: 0,
    sweep: 0.0,
    compact_every: 0,
    is_tiered: false,
    costs: &[],
    is_cold: false,
};

pub(crate) const WORKLOADS: [Workload; 11] = [
    Workload { name: "present", about: "95 % present", present: 0.95, ..MIXED },
    MIXED,
    Workload { name: "absent", about: "10 % present", present: 0.1, ..MIXED },
    Workload { name: "shift", about: "hot set shifts", shifts: 5, ..MIXED },
    Workload { name: "compact", about: "compaction", compact_every: 2_000, ..MIXED },
    Workload { name: "cold", about: "cold start", is_cold: true, ..MIXED },
    Workload { name: "sweep", about: "30 % of gets in key order", sweep: 0.3, ..MIXED },
    Workload {
        name: "cached",
        about: "upper levels in the block cache",
        costs: &[0.02, 0.02, 0.02, 0.05, 0.2, 1.0, 1.0],
        ..MIXED
    },
    Workload { name: "tiered", about: "tiered", is_tiered: true, ..MIXED },
    Workload {
        name: "tiershift",
        about: "tiered, hot set shifts",
        is_tiered: true,
        shifts: 5,
        ..MIXED
    },
    Workload { name: "uniform", about: "uniform traffic", zipf: 0.0, ..MIXED },
];

struct Run {
    level: u8,
    /// Where its tables begin.
    cuts: Vec<f64>,
    tables: Vec<u32>,
    /// Of the filters of all of its tables.
    bytes: f64,
}

impl Run {
    fn at(&self, key: f64) -> usize {
        let count = self.cuts.len();
        let mut index = ((key * count as f64) as usize).min(count - 1);
        while index > 0 && self.cuts[index] > key {
            index -= 1;
        }
        while index + 1 < count && self.cuts[index + 1] <= key {
            index += 1;
        }
        index
    }

    fn high(&self, index: usize) -> f64 {
        self.cuts.get(index + 1).copied().unwrap_or(1.0)
    }
}

/// The shape of a filter of about this many bytes.
pub(crate) fn params(bytes: u64) -> Params {
    let keys = (bytes as f64 * 8.0 / BITS) as u64;
    Sizing::BitsPerKey(BITS).foldable_params(keys.max(1)).expect("ten bits per key are legal")
}

/// The rates of a whole filter and of one folded to half.
fn rates() -> [f64; 2] {
    let params = params(1 << 20);
    [1, 2].map(|times| params.false_positive_rate_at(times * params.expected_items()))
}

/// Level, tables and bytes of each run.
fn shape(is_tiered: bool) -> Vec<(u8, usize, f64)> {
    let mut runs = Vec::new();
    if is_tiered {
        for (tier, tables) in [1, 2, 8, 32, 128, 512].into_iter().enumerate() {
            runs.extend([(tier as u8, tables, 400e3 * 4_f64.powi(tier as i32)); 4]);
        }
    } else {
        runs.extend([(0, 1, 25e3); 6]);
        for (level, tables) in (1_u8..).zip([2, 6, 32, 160, 800, 4_000]) {
            runs.push((level, tables, 25e3 * 2_f64.powi(level.into()) * tables as f64));
        }
    }
    runs
}

impl Workload {
    /// Whether traffic or tables change.
    pub(crate) fn changes(&self) -> bool {
        self.shifts > 0 || self.compact_every > 0
    }

    pub(crate) fn trace(&self, gets: u64) -> Trace {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ gets);
        let rates = rates();
        let mut tables: Vec<Table> = Vec::new();
        let mut runs: Vec<Run> = Vec::new();
        for (level, count, bytes) in shape(self.is_tiered) {
            let cuts: Vec<f64> = (0..count)
                .map(|i| match i {
                    0 => 0.0,
                    _ => (i as f64 + 0.7 * (random.share() - 0.5)) / count as f64,
                })
                .collect();
            let mut run = Run { level, cuts, tables: Vec::new(), bytes };
            for i in 0..count {
                run.tables.push(tables.len() as u32);
                tables.push(table(&run, runs.len(), i, 0));
            }
            runs.push(run);
        }
        let first_tables = tables.len();
        let total_bytes = tables.iter().map(|table| table.bytes).sum();
        let levels = runs.iter().map(|run| run.level).max().unwrap_or(0) as usize + 1;

        // Where a key that exists is: seven in ten by the sizes of the runs, three on any level.
        let all: f64 = runs.iter().map(|run| run.bytes).sum();
        let mut place = Vec::new();
        let mut sum = 0.0;
        for run in &runs {
            let of_level = runs.iter().filter(|other| other.level == run.level).count() as f64;
            sum += 0.7 * run.bytes / all + 0.3 / levels as f64 / of_level;
            place.push(sum);
        }
        let mut popularity = Vec::new();
        let mut mass = 0.0;
        for rank in 1..=RANGES {
            mass += (rank as f64).powf(-self.zipf);
            popularity.push(mass);
        }
        const GUIDES: usize = 4_096;
        let guides: Vec<usize> = (0..=GUIDES)
            .map(|guide| mass * guide as f64 / GUIDES as f64)
            .map(|least| popularity.partition_point(|&sum| sum < least))
            .collect();
        let mut order: Vec<u32> = (0..RANGES as u32).collect();
        shuffle(&mut order, &mut random);
        let share_below = |order: &[u32]| {
            let mut below = vec![0.0; RANGES + 1];
            for (rank, &range) in order.iter().enumerate() {
                below[range as usize + 1] = ((rank + 1) as f64).powf(-self.zipf) / mass;
            }
            (0..RANGES).for_each(|range| below[range + 1] += below[range]);
            below
        };
        let mut below = vec![(0, share_below(&order))];
        let absent = place.iter().map(|place| 1.0 - self.present * place / sum).collect();

        let mut events = Vec::with_capacity(gets as usize * runs.len());
        let mut compactions = Vec::new();
        let mut at = 0.0;
        for get in 0..gets {
            if get > 0 && get.is_multiple_of(TICK) {
                events.push(Packed(Packed::TICK));
            }
            if self.shifts > 0 && get > 0 && get.is_multiple_of(gets / self.shifts) {
                shuffle(&mut order, &mut random);
                below.push(((get / TICK) as u32, share_below(&order)));
            }
            if self.compact_every > 0 && get > 0 && get.is_multiple_of(self.compact_every) {
                let tick = (get / TICK) as u32;
                compactions.push(compact(&mut runs, &mut tables, tick, &mut random));
                events.push(Packed(Packed::COMPACTION));
            }
            let key = if self.sweep > 0.0 && random.share() < self.sweep {
                at += 3.0 / (gets as f64 * self.sweep); // three times over all keys
                at %= 1.0;
                at
            } else if self.zipf == 0.0 {
                random.share()
            } else {
                let share = random.share();
                let mut rank = guides[(share * GUIDES as f64) as usize];
                while popularity[rank] < share * mass {
                    rank += 1;
                }
                (f64::from(order[rank]) + random.share()) / RANGES as f64
            };
            let found_in = (random.share() < self.present).then(|| {
                let share = random.share() * sum;
                place.partition_point(|&sum| sum <= share)
            });
            for (number, run) in runs.iter().enumerate() {
                let index = run.at(key);
                let within = (key - run.cuts[index]) / (run.high(index) - run.cuts[index]);
                let part = ((within * f64::from(PARTS)) as u32).min(PARTS - 1);
                let class = if found_in == Some(number) {
                    0
                } else {
                    let share = random.share();
                    1 + rates.iter().map(|&rate| u32::from(share >= rate)).sum::<u32>()
                };
                events.push(Packed(class << 29 | (run.tables[index] * PARTS + part)));
                if class == 0 {
                    break;
                }
            }
        }
        let ticks = gets.div_ceil(TICK) as u32;
        for table in &mut tables {
            table.died = table.died.min(ticks);
        }
        let mut costs = self.costs.to_vec();
        costs.resize(levels, 1.0);
        Trace {
            events,
            tables,
            first_tables,
            compactions,
            costs,
            total_bytes,
            ticks,
            gets,
            below,
            absent,
        }
    }
}

fn table(run: &Run, number: usize, index: usize, born: u32) -> Table {
    let (low, high) = (run.cuts[index], run.high(index));
    let bytes = params(((high - low) * run.bytes) as u64).stored_bytes();
    Table { level: run.level, run: number as u32, bytes, low, high, born, died: u32::MAX }
}

fn shuffle(order: &mut [u32], random: &mut Random) {
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i + 1));
    }
}

/// One time in ten a flush, else a table of a level is merged into the tables of the next level
/// that overlap it.
fn compact(
    runs: &mut [Run],
    tables: &mut Vec<Table>,
    tick: u32,
    random: &mut Random,
) -> Compaction {
    let mut compaction = Compaction { dead: Vec::new(), born: Vec::new() };
    let mut replace =
        |run: &mut Run, number: usize, from: usize, to: usize, random: &mut Random| {
            let count = run.cuts.len() as f64;
            for i in from..to {
                compaction.dead.push(run.tables[i]);
                tables[run.tables[i] as usize].died = tick;
                if i > from {
                    run.cuts[i] = (i as f64 + 0.7 * (random.share() - 0.5)) / count;
                }
            }
            for i in from..to {
                run.tables[i] = tables.len() as u32;
                compaction.born.push(run.tables[i]);
                tables.push(table(run, number, i, tick));
            }
        };
    if random.share() < 0.1 {
        // The oldest of level 0 goes, and its run is the newest.
        replace(&mut runs[5], 5, 0, 1, random);
        runs[..6].rotate_right(1);
    } else {
        let upper = 6 + random.below(5);
        let i = random.below(runs[upper].cuts.len());
        let (low, high) = (runs[upper].cuts[i], runs[upper].high(i));
        replace(&mut runs[upper], upper, i, i + 1, random);
        let lower = &mut runs[upper + 1];
        let (from, to) = (lower.at(low), lower.at(high - 1e-12) + 1);
        replace(lower, upper + 1, from, to.min(from + 12), random);
    }
    compaction
}

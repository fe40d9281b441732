//! An engine with 200 tables on disk and memory for a tenth of their filters: `cargo run --release
//! -p blocked-bloom-resident --example resident`.
//!
//! Gets follow a Zipf distribution over ranges of keys; half of them look for absent keys. After
//! ten seconds other ranges become hot. A second is 20,000 gets, so that every run prints the same.
//! Each answer is compared with the data written.

#![allow(clippy::print_stdout, reason = "an example")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blocked_bloom::{Filter, FilterOptions, Sizing};
use blocked_bloom_lsm::{FilterIdentity, TableFilter};
use blocked_bloom_resident::{FilterPin, FilterSlot, ResidentOptions, ResidentSet, ResidentTable};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Tables of each level, which is one sorted run.
const LEVELS: [u64; 4] = [8, 24, 56, 112];
const TABLES: u64 = 200;
/// Keys are the even numbers below this.
const KEYS: u64 = 4_000_000;
const BLOCK: usize = 4_096;

const SECONDS: u64 = 20;
const GETS: u64 = 20_000;
/// Ranges of keys that are hot or cold together.
const RANGES: u64 = 400;

/// A table: its filter, followed by blocks of sorted 8-byte keys. Only the first key of each block
/// is in memory.
struct Table {
    file: File,
    filter_bytes: u64,
    /// From the engine's manifest.
    filter_identity: FilterIdentity,
    first_keys: Vec<u64>,
}

impl Table {
    fn write(path: &Path, keys: &[u64], options: &FilterOptions) -> Result<Self> {
        let mut builder = options.builder();
        builder.extend(keys.iter().map(|key| key.to_be_bytes()))?;
        let filter = builder.finish_verified()?.to_bytes();
        let filter_identity = TableFilter::from_bytes(&filter, options.key_hash())?.identity();
        let mut bytes = filter.clone();
        keys.iter().for_each(|key| bytes.extend(key.to_be_bytes()));
        File::create(path)?.write_all(&bytes)?;
        let first_keys = keys.chunks(BLOCK / 8).map(|block| block[0]).collect();
        let (file, filter_bytes) = (File::open(path)?, filter.len() as u64);
        Ok(Table { file, filter_bytes, filter_identity, first_keys })
    }

    fn read(&self, offset: u64, bytes: usize) -> Result<Vec<u8>> {
        let mut buffer = Vec::with_capacity(bytes);
        (&self.file).seek(SeekFrom::Start(offset))?;
        (&self.file).take(bytes as u64).read_to_end(&mut buffer)?;
        Ok(buffer)
    }

    fn read_filter(&self) -> Result<Vec<u8>> {
        self.read(0, self.filter_bytes as usize)
    }

    /// Reads the one block that may contain the key.
    fn contains(&self, key: u64) -> Result<bool> {
        let Some(block) = self.first_keys.partition_point(|&first| first <= key).checked_sub(1)
        else {
            return Ok(false);
        };
        let bytes = self.read(self.filter_bytes + (block * BLOCK) as u64, BLOCK)?;
        Ok(bytes.as_chunks().0.binary_search(&key.to_be_bytes()).is_ok())
    }
}

/// Returns the level of a key: a tenth of the tables contain a tenth of the keys.
fn level_of(key: u64) -> usize {
    let table = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % TABLES;
    let mut first = 0;
    LEVELS
        .iter()
        .position(|&tables| {
            first += tables;
            table < first
        })
        .unwrap_or(0)
}

/// The policy that chooses the filters in memory.
#[allow(clippy::large_enum_variant, reason = "there is one of it")]
enum Memory {
    Set(ResidentSet, Vec<Arc<FilterSlot>>),
    /// An LRU that loads every missing filter: filters with the time of their last use, and tables
    /// by that time.
    Lru {
        budget: u64,
        bytes: u64,
        now: u64,
        filters: Vec<Option<(u64, TableFilter)>>,
        tables_by_use: BTreeMap<u64, usize>,
    },
    All(Vec<TableFilter>),
}

#[derive(Default)]
struct Counts {
    wasted: u64,
    visits_of_absent: u64,
    loads: u64,
    loaded_bytes: u64,
}

struct Engine {
    tables: Vec<Table>,
    options: FilterOptions,
    memory: Memory,
    counts: Counts,
}

impl Engine {
    fn open_filter(&mut self, table: usize) -> Result<TableFilter> {
        let bytes = self.tables[table].read_filter()?;
        self.counts.loads += 1;
        self.counts.loaded_bytes += bytes.len() as u64;
        Ok(TableFilter::from_bytes(bytes, self.options.key_hash())?)
    }

    /// Returns whether a key exists.
    fn get(&mut self, key: u64) -> Result<bool> {
        let hash = self.options.hasher()?.hash(key.to_be_bytes());
        let mut first = 0;
        for tables in LEVELS {
            let table = (first + key * tables / KEYS) as usize;
            first += tables;
            let must_read = match &self.memory {
                // Normally one pin serves all tables of a get; here loads of the LRU come in
                // between.
                Memory::Set(_, slots) => slots[table].query(&FilterPin::new(), hash).must_read(),
                Memory::All(filters) => filters[table].contains_hash(hash),
                Memory::Lru { .. } => self.look_up_in_lru(table, hash)?,
            };
            if must_read && self.tables[table].contains(key)? {
                return Ok(true);
            }
            self.counts.visits_of_absent += 1;
            if must_read {
                self.counts.wasted += 1;
                if let Memory::Set(_, slots) = &self.memory {
                    slots[table].count_absent(1);
                }
            }
        }
        Ok(false)
    }

    fn look_up_in_lru(&mut self, table: usize, hash: u64) -> Result<bool> {
        let is_missing =
            matches!(&self.memory, Memory::Lru { filters, .. } if filters[table].is_none());
        let loaded = if is_missing { Some(self.open_filter(table)?) } else { None };
        let Memory::Lru { budget, bytes, now, filters, tables_by_use } = &mut self.memory else {
            return Ok(true);
        };
        *now += 1;
        if let Some(filter) = loaded {
            *bytes += filter.memory_bytes();
            filters[table] = Some((*now, filter));
        }
        let Some((used, filter)) = &mut filters[table] else { return Ok(true) };
        tables_by_use.remove(used);
        *used = *now;
        let may_have = filter.contains_hash(hash);
        tables_by_use.insert(*now, table);
        while *bytes > *budget {
            let Some((_, oldest)) = tables_by_use.pop_first() else { break };
            if let Some((_, evicted)) = filters[oldest].take() {
                *bytes -= evicted.memory_bytes();
            }
        }
        Ok(may_have)
    }

    /// Once a second: loads the requested filters.
    fn tick(&mut self) -> Result<()> {
        let Memory::Set(set, _) = &self.memory else { return Ok(()) };
        for load in set.tick(Duration::from_secs(1)) {
            self.counts.loads += 1;
            self.counts.loaded_bytes += load.bytes();
            match self.tables[load.table() as usize].read_filter() {
                Ok(bytes) => {
                    if let Err(error) = set.complete_load(load, bytes) {
                        eprintln!("a table goes without its filter: {error}");
                    }
                }
                Err(error) => {
                    eprintln!("cannot read a filter: {error}");
                    set.fail_load(load);
                }
            }
        }
        Ok(())
    }

    fn resident_bytes(&self) -> u64 {
        match &self.memory {
            Memory::Set(set, _) => set.snapshot().resident_bytes,
            Memory::Lru { bytes, .. } => *bytes,
            Memory::All(filters) => filters.iter().map(TableFilter::memory_bytes).sum(),
        }
    }

    /// Runs all gets; prints each second if `is_shown`. Returns the wasted reads, with loads
    /// counted at their cost in reads.
    fn run(&mut self, is_shown: bool) -> Result<f64> {
        let mut random = 88_172_645_463_325_252_u64;
        let mut share = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut before = Counts::default();
        self.tick()?;
        for second in 0..SECONDS {
            for _ in 0..GETS {
                // Rank r is visited about 1 / r as often. Another factor makes other ranges hot.
                let rank = (RANGES as f64).powf(share()) as u64 - 1;
                let range = rank * if second < SECONDS / 2 { 171 } else { 63 } % RANGES;
                let key = range * (KEYS / RANGES) + (share() * (KEYS / RANGES) as f64) as u64;
                assert_eq!(self.get(key)?, key.is_multiple_of(2), "key {key}");
            }
            let Counts { wasted, visits_of_absent, loads, .. } = self.counts;
            if is_shown {
                let (wasted, visits) =
                    (wasted - before.wasted, visits_of_absent - before.visits_of_absent);
                println!(
                    "{second:6}{:14}{wasted:14}{:8}{:10} KB",
                    visits - wasted,
                    loads - before.loads,
                    self.resident_bytes() / 1_000
                );
            }
            before = Counts { wasted, visits_of_absent, loads, ..Counts::default() };
            self.tick()?;
        }
        // A load costs one request, and a read per 200 KB.
        Ok(self.counts.wasted as f64
            + self.counts.loads as f64
            + self.counts.loaded_bytes as f64 / 200e3)
    }
}

fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let options = FilterOptions::new(Sizing::BitsPerKey(10.0)).foldable();
    let write = || -> Result<Vec<Table>> {
        let mut keys = vec![Vec::new(); TABLES as usize];
        for key in (0..KEYS).step_by(2) {
            let level = level_of(key);
            let first: u64 = LEVELS[..level].iter().sum();
            keys[(first + key * LEVELS[level] / KEYS) as usize].push(key);
        }
        let path = |table: usize| directory.path().join(format!("{table}.table"));
        keys.iter().enumerate().map(|(i, keys)| Table::write(&path(i), keys, &options)).collect()
    };
    let stored: u64 = write()?.iter().map(|table| table.filter_bytes).sum();
    let budget = stored / 10;
    println!("{TABLES} tables, {} KB of filters, budget {} KB\n", stored / 1_000, budget / 1_000);

    let set = ResidentSet::new(
        ResidentOptions::new(budget)
            .with_filters(&options)
            .with_half_life(Duration::from_secs(4))
            .with_payback(Duration::from_secs(5))
            .with_expected_lookups(GETS as f64),
    );
    let tables = write()?;
    let levels = LEVELS.iter().flat_map(|&tables| (0..tables).map(move |_| tables));
    let slots = tables.iter().zip(levels).enumerate().map(|(number, (table, of_level))| {
        let known = ResidentTable::new(number as u64, table.filter_bytes);
        set.add(known.with_run_share(1.0 / of_level as f64), table.filter_identity)
    });
    let slots = slots.collect();
    let all = |tables: &[Table]| -> Result<Vec<TableFilter>> {
        let open = |table: &Table| -> Result<TableFilter> {
            Ok(TableFilter::from_bytes(table.read_filter()?, options.key_hash())?)
        };
        tables.iter().map(open).collect()
    };
    let lru = Memory::Lru {
        budget,
        bytes: 0,
        now: 0,
        filters: (0..TABLES).map(|_| None).collect(),
        tables_by_use: BTreeMap::new(),
    };
    let (of_lru, of_all) = (write()?, write()?);
    let filters = all(&of_all)?;
    let ways = [
        ("resident set", tables, Memory::Set(set, slots)),
        ("LRU", of_lru, lru),
        ("all resident", of_all, Memory::All(filters)),
    ];

    println!("second   reads saved  reads wasted   loads    memory");
    let mut summary = Vec::new();
    for (name, tables, memory) in ways {
        let mut engine =
            Engine { tables, options: options.clone(), memory, counts: Counts::default() };
        let start = Instant::now();
        let cost = engine.run(name == "resident set")?;
        if let Memory::Set(set, _) = &engine.memory {
            println!("\n{}", set.snapshot());
        }
        let bytes = engine.resident_bytes();
        summary.push((name, cost, engine.counts, bytes, start.elapsed()));
    }
    println!("whole run       reads wasted     loads    memory     cost in reads    time");
    for (name, cost, counts, bytes, time) in &summary {
        println!(
            "{name:14}{:14}{:10}{:7} KB{cost:18.0}{:6.1} s",
            counts.wasted,
            counts.loads,
            bytes / 1_000,
            time.as_secs_f64()
        );
    }
    assert!(summary[0].1 < summary[1].1, "the resident set costs less than an LRU");
    Ok(())
}

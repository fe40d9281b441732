//! SurrealKV's own filters and this one, in one program: times relative to the default filter.
//!
//! Each round times all rows one after the other, and a row's ratio is the median over the rounds
//! of its time divided by that of the first row. The row "default again" is the noise.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use blocked_bloom::Sizing;
use blocked_bloom_surrealkv::BlockedBloomPolicy;
use surrealkv::{CompactRangeOptions, FilterPolicy, Options, RibbonFilter, Tree, TreeBuilder};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const NAMES: [&str; 4] = ["default", "RibbonFilter", "blocked-bloom", "default again"];
const ROUNDS: usize = 31;

/// A key of sixteen bytes, different for each number.
fn key(i: u64) -> Vec<u8> {
    let mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [mixed.to_be_bytes(), i.to_be_bytes()].concat()
}

fn policies() -> Result<[Arc<dyn FilterPolicy>; 4]> {
    let default = Options::default().filter_policy.ok_or("no default policy")?;
    let blocked = BlockedBloomPolicy::new(Sizing::BitsPerKey(10.0))?;
    let ribbon = RibbonFilter::new(10);
    Ok([default.clone(), Arc::new(ribbon), Arc::new(blocked), default])
}

/// Times each row in every round, and prints the medians of the ratios to the first row.
fn compare(title: &str, mut time: impl FnMut(usize) -> f64) {
    let mut ratios = [const { Vec::new() }; NAMES.len()];
    for round in 0..=ROUNDS {
        let times: [f64; NAMES.len()] = std::array::from_fn(&mut time);
        // The first round warms the caches.
        if round > 0 {
            (0..NAMES.len()).for_each(|row| ratios[row].push(times[row] / times[0]));
        }
    }
    print!("{title:<34}");
    for ratios in &mut ratios {
        ratios.sort_by(f64::total_cmp);
        print!("{:>16.2}", ratios[ROUNDS / 2]);
    }
    println!();
}

/// Returns the seconds that `f` takes.
fn seconds<T>(f: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    black_box(f());
    start.elapsed().as_secs_f64()
}

/// Filters without the engine: construction, lookups, and the rate of absent keys that pass.
fn filters(keys: u64) -> Result<()> {
    let policies = policies()?;
    let inside: Vec<_> = (0..keys).map(key).collect();
    let absent: Vec<_> = (keys..keys + 200_000).map(key).collect();
    let present: Vec<_> = (0..200_000).map(|i| key(i * 7919 % keys)).collect();
    let filters = policies.each_ref().map(|policy| policy.create_filter(&inside));
    let count = |row: usize, keys: &[Vec<u8>]| {
        keys.iter().filter(|key| policies[row].may_contain(&filters[row], key)).count()
    };
    let hashes = policies
        .each_ref()
        .map(|policy| inside.iter().map(|key| policy.key_hash(key)).collect::<Vec<_>>());
    compare(&format!("{keys} keys, build"), |row| {
        seconds(|| policies[row].create_filter_from_hashes(&hashes[row]))
    });
    for (kind, keys_of_kind) in [("absent", &absent), ("present", &present)] {
        let title = format!("{keys} keys, {kind}");
        compare(&title, |row| seconds(|| count(row, keys_of_kind)));
    }
    print!("{:<34}", format!("{keys} keys, false positives"));
    for row in 0..NAMES.len() {
        let passed = count(row, &absent) as f64 / absent.len() as f64;
        print!("{:>14.2} %", 100.0 * passed);
    }
    println!();
    Ok(())
}

/// A database with four tables of level 0.
async fn fill(path: &std::path::Path, policy: Arc<dyn FilterPolicy>) -> Result<Tree> {
    let builder = TreeBuilder::new().with_path(path.into()).with_filter_policy(Some(policy));
    let tree = builder.with_block_cache_capacity(256 << 20).build()?;
    for table in 0..4 {
        let mut transaction = tree.begin()?;
        for i in (table..200_000).step_by(4) {
            transaction.set(key(i), vec![b'v'; 20])?;
        }
        transaction.commit().await?;
        let options = CompactRangeOptions { target_level: Some(0), ..Default::default() };
        tree.compact_range(None, None, &options)?;
    }
    Ok(tree)
}

async fn engine() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut trees = Vec::new();
    for (row, policy) in policies()?.into_iter().enumerate() {
        trees.push(fill(&folder.path().join(row.to_string()), policy).await?);
    }
    for (kind, first) in [("absent", 200_000), ("present", 0)] {
        let keys: Vec<_> = (0..20_000).map(|i| key(first + i * 7919 % 200_000)).collect();
        compare(&format!("get, 4 tables, {kind}"), |row| {
            let transaction = trees[row].begin().expect("the tree is open");
            seconds(|| {
                keys.iter().filter(|key| transaction.get(key.as_slice()).unwrap().is_some()).count()
            })
        });
    }
    for tree in trees {
        tree.close().await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    print!("{:<34}", "time relative to the default");
    NAMES.iter().for_each(|name| print!("{name:>16}"));
    println!();
    // As many keys as a partition of 16 KiB holds, and a filter of 500 kB.
    filters(13_107)?;
    filters(400_000)?;
    engine().await
}

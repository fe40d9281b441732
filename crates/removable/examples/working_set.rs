//! An IP ban list: misbehaving addresses are banned for some time, and every request is looked up.
//! The list itself is slow to query (a database, another machine). The filter makes the query
//! unnecessary for nearly every request.
//!
//! ```text
//! cargo run --release -p blocked-bloom-removable --example working_set
//! cargo run --release -p blocked-bloom-removable --example working_set -- \
//!     --words tests/fixtures/keys/words.txt
//! ```
//!
//! With `--words`, the clients are the lines of a file instead of IPv4 addresses. The program also
//! keeps the exact set of bans, and fails at the first request of a banned client that the filter
//! lets through.
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::path::PathBuf;

use blocked_bloom::{Filter, FilterOptions};
use blocked_bloom_removable::{RemovableError, RemovableFilter, RemovableOptions};
use clap::Parser;

/// An IP ban list with expiry, and a filter in front of it.
#[derive(Parser)]
struct Args {
    /// File of clients, one per line [default: a million IPv4 addresses]
    #[arg(long, value_name = "FILE")]
    words: Option<PathBuf>,
    /// Number of requests
    #[arg(long, value_name = "N", default_value_t = 3_000_000)]
    requests: u64,
    /// Duration of a ban, in requests
    #[arg(long, value_name = "N", default_value_t = 400_000)]
    ban: u64,
}

/// The bans in force, and the filter in front of them.
struct Bans {
    options: RemovableOptions,
    filter: RemovableFilter,
    /// End and client of each ban, as in a database. A client that misbehaves again has a second
    /// ban.
    queue: VecDeque<(u64, u64)>,
    rebuilt: u32,
}

impl Bans {
    fn new(options: RemovableOptions) -> Result<Self, RemovableError> {
        let filter = options.empty_filter()?;
        Ok(Bans { options, filter, queue: VecDeque::new(), rebuilt: 0 })
    }

    /// Each ban inserts a copy of its key, so that the end of one ban does not end another.
    fn add(&mut self, hash: u64, ends: u64) -> Result<(), RemovableError> {
        self.queue.push_back((ends, hash));
        match self.filter.insert_hash(hash) {
            // Too many bans for this size: rebuild for twice as many, from those in force.
            Err(RemovableError::Full { .. }) => {
                self.options = self.options.with_keys(2 * self.options.keys());
                let hashes: Vec<u64> = self.queue.iter().map(|&(_, hash)| hash).collect();
                self.filter = RemovableFilter::from_hashes(&self.options, &hashes)?;
                self.rebuilt += 1;
                Ok(())
            }
            result => result.map(drop),
        }
    }

    /// Removes the keys of bans that have ended. The queue contains only keys that were inserted.
    fn expire(&mut self, now: u64) {
        while let Some(&(ends, hash)) = self.queue.front()
            && ends <= now
        {
            self.queue.pop_front();
            assert!(self.filter.remove_hash(hash), "a ban that was added is there");
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let clients: Vec<Vec<u8>> = match &args.words {
        Some(file) => std::fs::read_to_string(file)?.lines().map(|word| word.into()).collect(),
        None => (0..1_000_000_u64).map(|i| (mix(i) as u32).to_be_bytes().to_vec()).collect(),
    };
    if clients.is_empty() {
        return Err("no clients: give a file with a line for each".into());
    }
    // The hash and seed of every filter in this service, chosen once.
    let service = FilterOptions::default();
    let hasher = service.hasher()?;
    // Too small on purpose, so that the filter must be rebuilt.
    let mut bans = Bans::new(RemovableOptions::for_filters(&service, 1_000))?;
    // The exact set, to check the filter. A service would keep it in the database.
    let mut banned: HashMap<u64, u64> = HashMap::new();
    let (mut passed, mut stopped, mut queried_in_vain, mut most) = (0_u64, 0_u64, 0_u64, 0);
    for now in 0..args.requests {
        bans.expire(now);
        let client = &clients[pick(now, clients.len())];
        let hash = hasher.hash(client);
        let is_banned = banned.get(&hash).is_some_and(|&ends| ends > now);
        match (bans.filter.contains_hash(hash), is_banned) {
            (false, true) => return Err("a banned client was let in".into()),
            (false, false) => passed += 1,
            (true, true) => stopped += 1,
            (true, false) => queried_in_vain += 1,
        }
        // One request in 50 misbehaves. Banned clients do it too, and get another ban.
        if mix(now ^ 0xbad).is_multiple_of(50) {
            let ends = now + args.ban;
            banned.insert(hash, ends);
            bans.add(hash, ends)?;
        }
        most = most.max(bans.filter.keys_inserted());
    }
    println!("{} requests of {} clients", args.requests, clients.len());
    println!(
        "{passed} passed by the filter alone; the list was queried {} times",
        stopped + queried_in_vain
    );
    println!(
        "{stopped} of these were banned, {queried_in_vain} ({:.4} % of those not banned) were not",
        { 100.0 * queried_in_vain as f64 / (passed + queried_in_vain) as f64 }
    );
    println!(
        "{most} bans at a time at most; {} bytes, load {:.2}, made larger {} times",
        bans.filter.memory_bytes(),
        bans.filter.load(),
        bans.rebuilt
    );

    // Restart: the filter is stored, and opened in place.
    let stored = bans.filter.to_bytes();
    let opened = RemovableFilter::from_bytes(&stored, service.key_hash())?;
    assert!(bans.queue.iter().all(|&(_, hash)| opened.contains_hash(hash)));
    println!(
        "stored in {} bytes, and opened with {} bans in force",
        stored.len(),
        opened.keys_inserted()
    );
    bans.filter = opened.to_filter()?;
    bans.expire(u64::MAX);
    assert!(bans.filter.is_empty());
    Ok(())
}

/// Returns the client of request `i`. A few clients make many requests (the number falls with the
/// square root of the rank).
fn pick(i: u64, clients: usize) -> usize {
    let uniform = (mix(i ^ 0xc11e) >> 11) as f64 / (1_u64 << 53) as f64;
    ((uniform * uniform * clients as f64) as usize).min(clients - 1)
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(i: u64) -> u64 {
    let mut word = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

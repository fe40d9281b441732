//! `compare.sh stalls`, or `cargo run --locked --release --example stalls PATH-OF-REDISBLOOM.SO
//! [load | dump | capacity]`: how long a command blocks the server, and how much memory loading
//! takes, compared with RedisBloom; or one part of it.
//!
//! Times are those of the server's slow log: the command alone, without waiting and replies. Each
//! run is of two new servers, which get the same commands; the other module goes first.

#[path = "shared/client.rs"]
mod client;
#[path = "../tests/suite/server.rs"]
mod server;

use std::path::{Path, PathBuf};

use client::{Client, key};
use redis::{Cmd, Connection};
use server::{Server, call, command, dump, info, items, load_chunk, module};

/// Commands of a run.
const COMMANDS: u64 = 1_000_000;
/// Those after which the slow log is read.
const BATCH: u64 = 2_000;
/// The first run is printed apart: it may be the first one to use the machine's memory.
const RUNS: usize = 8;
/// How often each filter is loaded.
const LOADS: usize = 3;

/// Numbers that look random, the same for both servers.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }

    fn keys(&mut self, count: usize) -> Vec<[u8; 16]> {
        (0..count).map(|_| key(self.next(1 << 40))).collect()
    }
}

/// Of the slow log: number, moment, microseconds, words, client's address and name.
type Entry = (u64, u64, u64, Vec<Vec<u8>>, String, String);

/// The longest command since the slow log was read last, in microseconds, and its first words.
fn longest(connection: &mut Connection) -> (u64, String) {
    let entries: Vec<Entry> = call(connection, &["SLOWLOG", "GET", "-1"]);
    call::<()>(connection, &["SLOWLOG", "RESET"]);
    let all = entries.into_iter().map(|(_, _, time, words, ..)| {
        (time, format!("{} of {} words", String::from_utf8_lossy(&words[0]), words.len()))
    });
    all.filter(|(_, words)| words.starts_with("BF.")).max().unwrap_or_default()
}

fn log_all(connection: &mut Connection) {
    for words in [["slowlog-log-slower-than", "20"], ["slowlog-max-len", "4000"]] {
        call::<()>(connection, &["CONFIG", "SET", words[0], words[1]]);
    }
}

/// The longest of [`COMMANDS`] for a filter of this capacity and others that are made and freed.
fn run(path: &Path, capacity: u64) -> (u64, String) {
    let server = Server::start_with(path, &[]).expect("redis-server");
    let (mut client, mut connection) = (Client::new(server.port), server.connect());
    log_all(&mut connection);
    let capacity = capacity.to_string();
    call::<()>(&mut connection, &["BF.RESERVE", "f", "0.01", &capacity]);
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut most = (0, String::new());
    for first in (0..COMMANDS).step_by(BATCH as usize) {
        let (mut pipeline, mut lines) = (Vec::new(), 0);
        let mut pack = |packed: Cmd, replies: usize| {
            pipeline.extend(packed.get_packed_command());
            lines += replies;
        };
        for number in 0..BATCH {
            // A large filter that is made, begun by many keys and freed.
            match first % 20_000 + number {
                0 => {
                    pack(command("BF.RESERVE", "g", &["0.01", &capacity]), 1);
                    continue;
                }
                1..=3 => {
                    pack(command("BF.MADD", "g", &random.keys(1_000)), 1_001);
                    continue;
                }
                4 => {
                    pack(command::<&str>("UNLINK", "g", &[]), 1);
                    continue;
                }
                _ => {}
            }
            // One of a thousand filters that grow.
            let small = format!("small:{}", random.next(1_000));
            match random.next(100) {
                0..40 => pack(command("BF.EXISTS", "f", &random.keys(1)), 1),
                40..65 => pack(command("BF.ADD", "f", &random.keys(1)), 1),
                65..75 => pack(command("BF.MEXISTS", "f", &random.keys(10)), 11),
                75..85 => pack(command("BF.MADD", "f", &random.keys(10)), 11),
                85..90 => pack(command("BF.ADD", &small, &random.keys(1)), 1),
                90..95 => pack(command("BF.MADD", &small, &random.keys(5)), 6),
                95..99 => pack(command::<&str>("BF.CARD", "f", &[]), 1),
                _ => pack(command("BF.MEXISTS", "f", &random.keys(100)), 101),
            }
        }
        client.send(&pipeline, lines);
        most = most.max(longest(&mut connection));
    }
    most
}

fn median(mut numbers: Vec<u64>) -> u64 {
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}

/// Most memory that the server had, in MB: resident, and by its own count.
fn peaks(server: &Server) -> [u64; 2] {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let resident: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    [resident << 10, info(&mut server.connect(), "used_memory_peak")].map(|bytes| bytes / 1_000_000)
}

/// Loads a filter from an RDB file and from a dump.
fn load(path: &Path, name: &str, capacity: &str) {
    let mut server = Server::start_with(path, &[]).expect("redis-server");
    let mut connection = server.connect();
    call::<()>(&mut connection, &["BF.RESERVE", "f", "0.01", capacity]);
    let mut random = Random(1);
    for _ in 0..100 {
        items(&mut connection, "BF.MADD", "f", &random.keys(1_000));
    }
    call::<()>(&mut connection, &["SAVE"]);
    let pieces = dump(&mut connection, "f");
    let size: usize = pieces.iter().map(|(_, data)| data.len()).sum();
    server.kill();
    server.start_again();
    let [resident, counted] = peaks(&server);
    println!(
        "{name}: {} MB from an RDB file: at most {resident} MB resident, {counted} MB counted",
        size / 1_000_000
    );
    let other = Server::start_with(path, &[]).expect("redis-server");
    let mut connection = other.connect();
    log_all(&mut connection);
    let mut times = Vec::new();
    for (iterator, data) in &pieces {
        load_chunk(&mut connection, "f", *iterator, data).unwrap();
        times.push(longest(&mut connection).0);
    }
    let [resident, counted] = peaks(&other);
    println!(
        "{name}: {} MB by BF.LOADCHUNK: at most {resident} MB resident, {counted} MB counted; us \
         for the pieces: {times:?}",
        size / 1_000_000
    );
}

/// Dumps a filter with an addition after each reply, and copies it.
fn dump_and_copy(path: &Path, name: &str, capacity: &str) {
    let server = Server::start_with(path, &[]).expect("redis-server");
    let mut connection = server.connect();
    call::<()>(&mut connection, &["BF.RESERVE", "f", "0.01", capacity]);
    let mut random = Random(1);
    for _ in 0..1_000 {
        items(&mut connection, "BF.MADD", "f", &random.keys(1_000));
    }
    log_all(&mut connection);
    let (mut iterator, mut times, mut wall) = (0, Vec::new(), 0);
    loop {
        let before = server.cpu_nanoseconds();
        let (next, _): (i64, Vec<u8>) =
            redis::cmd("BF.SCANDUMP").arg("f").arg(iterator).query(&mut connection).unwrap();
        times.push((server.cpu_nanoseconds() - before) / 1_000);
        wall = wall.max(longest(&mut connection).0);
        if next == 0 {
            break;
        }
        iterator = next;
        items(&mut connection, "BF.MADD", "f", &random.keys(1));
    }
    times.sort_unstable();
    call::<()>(&mut connection, &["SLOWLOG", "RESET"]);
    let copied: Result<u64, _> = redis::cmd("COPY").arg("f").arg("g").query(&mut connection);
    let entries: Vec<Entry> = call(&mut connection, &["SLOWLOG", "GET", "-1"]);
    let copy = entries.into_iter().find(|entry| entry.3[0].eq_ignore_ascii_case(b"COPY"));
    println!(
        "{name}: us of CPU of {} BF.SCANDUMP: longest {}, median {}, all {}; longest by the slow \
         log {wall}; COPY: {copied:?}, {:?} us",
        times.len(),
        times[times.len() - 1],
        times[times.len() / 2],
        times.iter().sum::<u64>(),
        copy.map(|(_, _, time, ..)| time)
    );
}

fn main() {
    let path = std::env::args().nth(1).expect("the path of redisbloom.so");
    let [part, dumped] = [2, 3].map(|place| std::env::args().nth(place));
    let parts = ["load", "dump", "10000000", "40000000", "300000000"];
    let is_part = part.as_deref().is_none_or(|part| parts.contains(&part));
    assert!(is_part, "parts are {parts:?}");
    let is_wanted = |name: &str| part.as_ref().is_none_or(|part| part == name);
    let modules = [("this module", PathBuf::from(module())), ("RedisBloom", path.into())];
    for capacity in ["50000000", "150000000"].into_iter().filter(|_| is_wanted("load")) {
        // Each goes first in turn: the one that does may be the first to use the machine's memory.
        for round in 0..LOADS {
            for which in 0..2 {
                let (name, path) = &modules[(which + round + 1) % 2];
                load(path, name, capacity);
            }
        }
    }
    for round in 0..if is_wanted("dump") { 2 * LOADS } else { 0 } {
        let (name, path) = &modules[round % 2];
        dump_and_copy(path, name, dumped.as_deref().unwrap_or("150000000"));
    }
    let capacities = [10_000_000_u64, 40_000_000, 300_000_000].into_iter();
    for capacity in capacities.filter(|capacity| is_wanted(&capacity.to_string())) {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..RUNS {
            for which in 0..2 {
                let which = (which + round) % 2;
                let (time, words) = run(&modules[which].1, capacity);
                println!("  {capacity}, run {round}, {}: {time} us, {words}", modules[which].0);
                times[which].push(time);
            }
        }
        let first = times.each_ref().map(|times| times[0]);
        let [ours, theirs] = times.map(|times| median(times[1..].to_vec()));
        println!(
            "the longest of {COMMANDS} commands, capacity {capacity}, us: {ours}; RedisBloom \
             {theirs}; in the first run {} and {}",
            first[0], first[1]
        );
    }
}

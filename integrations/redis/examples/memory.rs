//! `compare.sh memory`, or `cargo run --locked --release --example memory PATH-OF-REDISBLOOM.SO
//! [PATH-OF-ANOTHER-MODULE ...]`: memory of filters of common capacities, and CPU time of single
//! additions and lookups in many of them, next to RedisBloom on the same server program.
//!
//! `used` is the growth of `used_memory` for each key, `MEMORY USAGE` the server's reply, both in
//! bytes. Times are the kernel's count for the server's threads, in ns for each command in
//! pipelines of 2,000; the median of interleaved rounds.

#[path = "shared/client.rs"]
mod client;
#[path = "../tests/suite/server.rs"]
mod server;

use std::path::{Path, PathBuf};

use client::{Client, key};
use redis::Connection;
use server::{Server, call, command, info, module};

const CAPACITIES: [u64; 9] = [10, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];
/// Filters of each capacity.
const FILTERS: u64 = 2_000;
const ROUNDS: u64 = 9;

fn name(number: u64) -> String {
    format!("filter:{number:06}")
}

/// Bytes for each filter of this capacity, by `used_memory` and by `MEMORY USAGE`.
fn measure(connection: &mut Connection, capacity: u64) -> [u64; 2] {
    let reserve = |connection: &mut Connection, number| {
        let (name, capacity) = (name(number), capacity.to_string());
        call::<()>(connection, &["BF.RESERVE", &name, "0.01", &capacity]);
        call::<()>(connection, &["BF.ADD", &name, "a"]);
    };
    // The table of keys and the buffers have their size before.
    for number in 0..FILTERS {
        reserve(connection, number);
    }
    (0..FILTERS).for_each(|number| call(connection, &["DEL", &name(number)]));
    let before = info(connection, "used_memory");
    (0..FILTERS).for_each(|number| reserve(connection, number));
    let used = (info(connection, "used_memory") - before) / FILTERS;
    [used, call(connection, &["MEMORY", "USAGE", &name(7)])]
}

/// A pipeline with one command for each filter.
fn pipeline(word: &str, item: u64) -> Vec<u8> {
    let each = |number| command(word, &name(number), &[key(item + number)]).get_packed_command();
    (0..FILTERS).flat_map(each).collect()
}

fn median(mut numbers: Vec<u64>) -> u64 {
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}

fn main() {
    let mut paths = std::env::args().skip(1);
    let redisbloom = paths.next().expect("the path of redisbloom.so");
    let others: Vec<String> = paths.collect();
    let write: &[&str] = &["--module-arguments", "REDISBLOOM_TYPE", "write"];
    let mut modules = vec![
        ("RedisBloom".to_string(), PathBuf::from(&redisbloom), &[][..]),
        ("this module".to_string(), module().into(), &[][..]),
        ("REDISBLOOM_TYPE write".to_string(), module().into(), write),
    ];
    for other in &others {
        modules.push((other.clone(), other.into(), &[]));
        modules.push((format!("{other}, REDISBLOOM_TYPE write"), other.into(), write));
    }
    let start = |path: &Path, options: &[&str]| {
        // String keys let the table of keys reach its size.
        let server = Server::start_with(path, options).expect("redis-server");
        let mut connection = server.connect();
        (0..20_000)
            .for_each(|i| call::<()>(&mut connection, &["SET", &format!("string:{i}"), "x"]));
        (Client::new(server.port), connection, server)
    };
    let mut servers: Vec<_> =
        modules.iter().map(|(_, path, options)| start(path, options)).collect();
    println!("| capacity | module | used | `MEMORY USAGE` | ns of `BF.ADD` | of `BF.EXISTS` |");
    println!("|---:|---|---:|---:|---:|---:|");
    let mut is_larger = false;
    for capacity in CAPACITIES {
        let bytes: Vec<[u64; 2]> =
            servers.iter_mut().map(|(_, connection, _)| measure(connection, capacity)).collect();
        let mut times = vec![[Vec::new(), Vec::new()]; servers.len()];
        // Few of the additions fill a filter: each round adds one item.
        for round in 0..ROUNDS {
            for ((client, _, server), times) in servers.iter_mut().zip(&mut times) {
                for (word, times) in ["BF.ADD", "BF.EXISTS"].into_iter().zip(times) {
                    let pipeline = pipeline(word, round % 8 * 1_000_000);
                    let before = server.cpu_nanoseconds();
                    client.send(&pipeline, FILTERS as usize);
                    times.push((server.cpu_nanoseconds() - before) / FILTERS);
                }
            }
        }
        for ((name, ..), (bytes, times)) in modules.iter().zip(bytes.iter().zip(times)) {
            let [add, exists] = times.map(median);
            println!("| {capacity} | {name} | {} | {} | {add} | {exists} |", bytes[0], bytes[1]);
        }
        is_larger |= (1..3).any(|which| (0..2).any(|kind| bytes[which][kind] > bytes[0][kind]));
        for (_, connection, _) in &mut servers {
            (0..FILTERS).for_each(|number| call(connection, &["DEL", &name(number)]));
        }
    }
    assert!(!is_larger, "a filter of this module takes more memory than RedisBloom's");
}

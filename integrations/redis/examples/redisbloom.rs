//! `compare.sh`, or `cargo run --locked --release --example redisbloom PATH-OF-REDISBLOOM.SO
//! [single] [keys [load arguments of this module]]`: CPU time of two servers, one with this module
//! and one with RedisBloom or valkey-bloom, for commands of few items, by one client that sends
//! many of them in a pipeline; or, with `single`, commands of one item, each after the reply to the
//! one before.
//!
//! The time is the kernel's count for the server's threads, user and system. Both servers run
//! on one CPU, the client on another, where `taskset` can say so: CPUs of a guest differ. Rounds
//! are interleaved, so that noise affects both alike; every round has keys of its own, and the
//! other module goes first. The ratio is the median of those of the rounds.

#[path = "shared/client.rs"]
mod client;
#[path = "../tests/suite/server.rs"]
mod server;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use client::{Client, key};
use server::{Server, call, command};

/// Commands of a pipeline.
const COMMANDS: u64 = 2_000;
const ROUNDS: u64 = 31;
/// Keys that the small filter is reserved for, which has half of them.
const SMALL: u64 = 100_000;

struct Module {
    server: Server,
    client: Client,
}

impl Module {
    /// Sends commands in pipelines. Each pipeline has this many replies of a line.
    fn send(&mut self, pipelines: &[Vec<u8>], lines: u64) -> f64 {
        let before = self.server.cpu_nanoseconds();
        pipelines.iter().for_each(|pipeline| self.client.send(pipeline, lines as usize));
        (self.server.cpu_nanoseconds() - before) as f64
    }

    /// Creates a filter and fills it.
    fn fill(&mut self, name: &str, capacity: u64, keys: u64) {
        let mut connection = self.server.connect();
        call::<()>(&mut connection, &["DEL", name]);
        call::<()>(&mut connection, &["BF.RESERVE", name, "0.01", &capacity.to_string()]);
        for first in (0..keys).step_by(1_000) {
            let batch: Vec<_> = (first..first + 1_000).map(key).collect();
            self.client.send(&command("BF.MADD", name, &batch).get_packed_command(), 1_001);
        }
    }
}

/// Has a process run on one CPU.
fn pin(process: u32, cpu: &str) {
    let mut taskset = Command::new("taskset");
    taskset.args(["-a", "-c", "-p", cpu, &process.to_string()]).stdout(Stdio::null());
    if !taskset.status().is_ok_and(|status| status.success()) {
        println!("process {process} is not pinned to a CPU: no taskset, or no CPU {cpu}");
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// How long a client waits for the first key of a filter that was reserved for very many.
fn first_add(modules: &mut [Module; 2]) {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..9 {
        for (module, times) in modules.iter_mut().zip(&mut times) {
            let mut connection = module.server.connect();
            call::<()>(&mut connection, &["BF.RESERVE", "huge", "0.01", "300000000"]);
            let start = Instant::now();
            call::<()>(&mut connection, &["BF.ADD", "huge", "a"]);
            times.push(start.elapsed().as_secs_f64() * 1e6);
            call::<()>(&mut connection, &["DEL", "huge"]);
        }
    }
    let most = times.each_ref().map(|times| times.iter().copied().fold(0.0, f64::max));
    let [ours, theirs] = times.map(median);
    println!(
        "us until the first key of a filter for 300 million is added: \
         {ours:.0} (at most {:.0}); the other {theirs:.0} ({:.0})",
        most[0], most[1]
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    let path = arguments.next().expect("the path of redisbloom.so");
    let is_single = arguments.next_if_eq("single").is_some();
    let large: u64 = arguments.next().map_or(10_000_000, |keys| keys.parse().unwrap());
    let start = |server: Option<Server>| {
        let server = server.expect("redis-server");
        let client = Client::new(server.port);
        Module { server, client }
    };
    let loaded: Vec<String> = arguments.collect();
    let loaded: Vec<&str> = loaded.iter().map(String::as_str).collect();
    let loaded = [&["--module-arguments"][..], &loaded].concat();
    // valkey-bloom limits its filters to 128 MiB.
    let theirs: &[&str] = match path.contains("valkey") {
        true => &["--module-arguments", "bloom-memory-usage-limit", "10000000000"],
        false => &[],
    };
    let theirs = Server::start_with(Path::new(&path), theirs);
    let mut modules = [start(Server::start(&loaded)), start(theirs)];
    pin(std::process::id(), "0");
    modules.iter().for_each(|module| pin(module.server.process(), "1"));
    first_add(&mut modules);
    // New keys come on top of these.
    let most_new = ROUNDS * COMMANDS * 10 * 8;
    for module in &mut modules {
        module.fill("large", large + most_new, large);
    }
    println!("ns of the server's CPU for a command, and the ratio    ours       other   ratio");
    let (mut fresh, mut worst) = (2 * large, 0.0_f64);
    for (filter, keys) in [("small", SMALL / 2), ("large", large)] {
        for (name, items) in [
            ("BF.ADD", 1),
            ("BF.EXISTS", 1),
            ("BF.MADD", 1),
            ("BF.MADD", 2),
            ("BF.MADD", 10),
            ("BF.MEXISTS", 1),
            ("BF.MEXISTS", 2),
            ("BF.MEXISTS", 10),
        ] {
            if is_single && items > 1 {
                continue;
            }
            for present in [true, false] {
                let (mut times, mut ratios) = ([Vec::new(), Vec::new()], Vec::new());
                for round in 0..ROUNDS {
                    let mut packed = Vec::new();
                    for number in 0..COMMANDS {
                        let batch: Vec<_> = (0..items)
                            .map(|item| {
                                if !present {
                                    fresh += 1;
                                    return key(fresh);
                                }
                                let any = (round * COMMANDS + number) * items + item;
                                key(any.wrapping_mul(0x9e37_79b9_7f4a_7c15) % keys)
                            })
                            .collect();
                        packed.push(command(name, filter, &batch).get_packed_command());
                    }
                    let lines = match name {
                        "BF.MADD" | "BF.MEXISTS" => 1 + items,
                        _ => 1,
                    };
                    let (pipelines, lines) = match is_single {
                        true => (packed, lines),
                        false => (vec![packed.concat()], COMMANDS * lines),
                    };
                    let mut ns = [0.0; 2];
                    for which in 0..2 {
                        let which = (which + round as usize) % 2;
                        let module = &mut modules[which];
                        if filter == "small" && (round == 0 || !present && name.ends_with("ADD")) {
                            module.fill(filter, SMALL, keys);
                        }
                        ns[which] = module.send(&pipelines, lines) / COMMANDS as f64;
                        times[which].push(ns[which]);
                    }
                    ratios.push(ns[0] / ns[1]);
                }
                let [ours, theirs] = times.map(median);
                let ratio = median(ratios);
                worst = worst.max(ratio);
                let case = format!(
                    "{name} of {items}, {}, {filter}",
                    if present { "present" } else { "absent" }
                );
                println!("{case:<50}{ours:>10.0}{theirs:>12.0}{ratio:>8.2}");
            }
        }
    }
    println!("largest ratio {worst:.2}");
}

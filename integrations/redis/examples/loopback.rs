//! `cargo run --locked --release --example loopback [keys]`: commands over loopback, by one client,
//! against a server of its own with a filter of 10 million keys: 1,000 keys by `BF.MEXISTS`, by
//! `BF.EXISTS` in a pipeline, compared with the filter itself in this program and with `MGET` of as
//! many absent keys. Rounds are interleaved, so that noise
//! affects all cases alike.

#[path = "shared/client.rs"]
mod client;
#[path = "../tests/suite/server.rs"]
mod server;

use std::time::Instant;

use blocked_bloom::{Bitmask, Filter};
use blocked_bloom_scalable::ScalableOptions;
use redis::Connection;

use client::{Client, key};
use server::{Server, call, command};

const BATCH: u64 = 1_000;
const ROUNDS: usize = 201;

/// The times of one case, in microseconds.
struct Case {
    name: &'static str,
    times: Vec<f64>,
}

impl Case {
    fn sorted(&self) -> Vec<f64> {
        let mut times = self.times.clone();
        times.sort_by(f64::total_cmp);
        times
    }

    fn least(&self) -> f64 {
        self.sorted()[0]
    }

    fn median(&self) -> f64 {
        self.sorted()[self.times.len() / 2]
    }
}

/// Microseconds that the server counts for a command, per call, since its statistics were reset.
fn server_time(connection: &mut Connection, name: &str) -> f64 {
    let info: String = call(connection, &["INFO", "commandstats"]);
    let line = info.lines().find(|line| line.starts_with(&format!("cmdstat_{name}:"))).unwrap();
    let field = line.split(',').find_map(|field| field.strip_prefix("usec_per_call=")).unwrap();
    field.parse().unwrap()
}

fn main() {
    let keys: u64 =
        std::env::args().nth(1).map_or(10_000_000, |keys| keys.parse().expect("a number of keys"));
    let server = Server::start(&[]).expect("redis-server");
    let mut connection = server.connect();
    let mut client = Client::new(server.port);
    for (name, of, items) in [("reserved", "BF.RESERVE", keys), ("grown", "BF.RESERVE", keys / 100)]
    {
        call::<()>(&mut connection, &[of, name, "0.01", &items.to_string()]);
        let start = Instant::now();
        for first in (0..keys).step_by(BATCH as usize) {
            let batch: Vec<_> = (first..first + BATCH).map(key).collect();
            client.send(&command("BF.MADD", name, &batch).get_packed_command(), 1 + BATCH as usize);
        }
        let [links]: [u64; 1] = call(&mut connection, &["BF.INFO", name, "FILTERS"]);
        let [bytes]: [u64; 1] = call(&mut connection, &["BF.INFO", name, "SIZE"]);
        let per_key = start.elapsed().as_nanos() as f64 / keys as f64;
        println!(
            "{name}: {keys} keys, {links} links, {:.1} MB; BF.MADD of {BATCH}: \
             {per_key:.0} ns a key",
            bytes as f64 / 1e6
        );
        measure(&mut connection, &mut client, name, keys, items);
    }
}

fn measure(connection: &mut Connection, client: &mut Client, name: &str, keys: u64, reserved: u64) {
    // The same filter in this program: its time without the server.
    let mut filter = ScalableOptions::new(0.01, reserved).build().unwrap();
    for first in (0..keys).step_by(BATCH as usize) {
        let batch: Vec<_> = (first..first + BATCH).map(key).collect();
        filter.insert_batch(&batch).unwrap();
    }
    call::<()>(connection, &["CONFIG", "RESETSTAT"]);
    let names =
        ["BF.MEXISTS", "BF.EXISTS, pipelined", "the filter alone, a batch", "MGET of nothing"];
    let mut cases = names.map(|name| Case { name, times: Vec::new() });
    for round in 0..ROUNDS as u64 {
        // Half of them are there. Cases have keys of their own, so that none finds lines in the
        // cache that another one brought.
        let batch = |case: u64| -> Vec<[u8; 16]> {
            let number = 2 * round + case;
            let first = number * BATCH * 47 % (keys - BATCH);
            let of = |i| if i % 2 == 0 { first + i } else { keys + number * BATCH + i };
            (0..BATCH).map(|i| key(of(i))).collect()
        };
        let (batch, other) = (batch(0), batch(1));
        let many = command("BF.MEXISTS", name, &batch).get_packed_command();
        let mut pipeline = redis::pipe();
        for key in &other {
            pipeline.cmd("BF.EXISTS").arg(name).arg(key);
        }
        let pipeline = pipeline.get_packed_pipeline();
        let nothing = command("MGET", "nothing", &batch[1..]).get_packed_command();
        let slices: Vec<&[u8]> = batch.iter().map(|key| &key[..]).collect();
        let mut hits = Bitmask::new();
        let mut run = |case: usize, work: &mut dyn FnMut()| {
            let start = Instant::now();
            work();
            cases[case].times.push(start.elapsed().as_nanos() as f64 / 1e3);
        };
        run(0, &mut || client.send(&many, 1 + BATCH as usize));
        run(1, &mut || client.send(&pipeline, BATCH as usize));
        run(2, &mut || filter.contains_batch(&slices, &mut hits));
        run(3, &mut || client.send(&nothing, 1 + BATCH as usize));
        std::hint::black_box(&hits);
    }
    println!(
        "{:<32}{:>12}{:>12}{:>14}",
        "microseconds for 1000 keys", "least", "median", "ns a key"
    );
    for case in &cases {
        println!(
            "{:<32}{:>12.1}{:>12.1}{:>14.1}",
            case.name,
            case.least(),
            case.median(),
            case.median()
        );
    }
    let within = server_time(connection, "bf.mexists");
    let alone = server_time(connection, "bf.exists") * BATCH as f64;
    println!("{:<32}{:>12}{within:>12.1}{within:>14.1}", "within the server: BF.MEXISTS", "");
    println!("{:<32}{:>12}{alone:>12.1}{alone:>14.1}", "within the server: BF.EXISTS", "");
    println!(
        "BF.MEXISTS {:.1} times as fast as pipelined BF.EXISTS (least {:.1}); \
         the filter is {:.1} % of the command, \
         {:.1} % of its time within the server",
        cases[1].median() / cases[0].median(),
        cases[1].least() / cases[0].least(),
        100.0 * cases[2].median() / cases[0].median(),
        100.0 * cases[2].median() / within,
    );
}

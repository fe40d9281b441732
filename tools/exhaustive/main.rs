//! `exhaustive CHECK KERNEL [PROBES] [--slice A-B/N] [--records FILE] [--machine NAME]`: compares a
//! kernel with its scheme on every 32-bit half of a hash, or on a slice of them.
//!
//! - `insert KERNEL PROBES`: the bits that insertion sets in a block of 64 bytes.
//! - `single`, `group`, `batch KERNEL PROBES`: the bits that lookups test, with calls for one hash,
//!   for 2 to 64, and for more.
//!   One run can check several of these four, as in `single,group,batch`, and then computes the
//!   positions of the scheme once.
//! - `split KERNEL`: all of these for split blocks.
//! - `tags KERNEL`: tags and lines of the removable filter.
//! - `integers KERNEL`: hashes of keys of 4 and 8 bytes, compared with the crate `xxhash-rust`.
//! - `list` prints the records, and which of them no longer describe this code.
//! - `kernels` prints the kernels of this machine.
//!
//! `--slice 3/30` checks one of 30 equal parts, `--slice 1-30/30` all of them one by one. A part
//! that passed is recorded at once and not checked again, so that a run can be stopped and resumed.
//! `tools/exhaustive/records.txt` explains the records.

mod bloom;
mod calls;
mod integers;
mod records;
mod source;
mod split;
mod tags;

use std::path::PathBuf;
use std::time::Instant;

use blocked_bloom::Kernel;

use bloom::Bloom;
use calls::Calls;
use records::{Record, Records};

type Failure = Box<dyn std::error::Error>;

/// Numbers that are checked together.
const N: usize = 256;

/// Chunks of [`N`] numbers: 2^32 numbers.
const CHUNKS: u64 = (1 << 32) / N as u64;

/// Maps the counter to the halves of hashes. Odd, so each half occurs once; and any slice is spread
/// over all of them. The probe scheme multiplies by another number.
const SPREAD: u32 = 0x85eb_ca77;

/// A comparison of [`N`] numbers at a time.
trait Check {
    /// Compares the numbers `spread(N * chunk + i)`. Returns the first difference.
    fn chunk(&mut self, chunk: u64) -> Result<(), String>;
}

/// Returns the numbers of a chunk.
fn numbers(chunk: u64) -> [u32; N] {
    let first = (chunk as u32).wrapping_mul(N as u32);
    std::array::from_fn(|i| first.wrapping_add(i as u32).wrapping_mul(SPREAD))
}

struct Arguments {
    checks: Vec<String>,
    kernel: Kernel,
    probes: u32,
    slices: std::ops::RangeInclusive<u64>,
    of: u64,
    records: PathBuf,
    machine: Option<String>,
}

fn arguments(given: &[String]) -> Result<Arguments, Failure> {
    let [checks, name, rest @ ..] = given else { return Err(USAGE.into()) };
    let kernel = Kernel::supported().find(|kernel| kernel.name() == name);
    let mut arguments = Arguments {
        checks: checks.split(',').map(str::to_owned).collect(),
        kernel: kernel.ok_or_else(|| format!("this CPU has no kernel {name}"))?,
        probes: 0,
        slices: 1..=1,
        of: 1,
        records: records::default_path(),
        machine: None,
    };
    let mut rest = rest.iter();
    if arguments.checks.iter().all(|check| calls_of(check).is_some()) {
        arguments.probes = rest.next().ok_or(USAGE)?.parse()?;
    }
    while let Some(option) = rest.next() {
        let value = rest.next().ok_or(USAGE)?;
        match option.as_str() {
            "--slice" => {
                let (slices, of) = value.split_once('/').ok_or(USAGE)?;
                let (first, last) = slices.split_once('-').unwrap_or((slices, slices));
                (arguments.slices, arguments.of) = (first.parse()?..=last.parse()?, of.parse()?);
            }
            "--records" => arguments.records = value.into(),
            "--machine" => arguments.machine = Some(value.clone()),
            _ => return Err(USAGE.into()),
        }
    }
    let (slices, of) = (&arguments.slices, arguments.of);
    if !(1..=CHUNKS).contains(&of) || *slices.start() < 1 || *slices.end() > of {
        return Err(format!("--slice: no slices {slices:?} of {of}, expected A-B/N").into());
    }
    Ok(arguments)
}

const USAGE: &str = "usage: exhaustive insert,single,group,batch KERNEL PROBES, or \
                     split|tags|integers KERNEL, with [--slice A-B/N] [--records FILE] \
                     [--machine NAME], or list, or kernels";

/// Returns the calls of a check of a Bloom filter, in which None is insertion.
fn calls_of(check: &str) -> Option<Option<Calls>> {
    Some(match check {
        "insert" => None,
        "single" => Some(Calls::Single),
        "group" => Some(Calls::Group),
        "batch" => Some(Calls::Batch),
        _ => return None,
    })
}

fn new_check(arguments: &Arguments, checks: &[&str]) -> Result<Box<dyn Check>, Failure> {
    let (kernel, probes) = (arguments.kernel, arguments.probes);
    Ok(match *checks {
        ["split"] => Box::new(split::Split::new(kernel)),
        ["tags"] => Box::new(tags::Tags::new(kernel)?),
        ["integers"] => Box::new(integers::Integers),
        _ => {
            let calls = checks.iter().map(|check| calls_of(check)).collect::<Option<_>>();
            Box::new(Bloom::new(kernel, calls.ok_or(USAGE)?, probes, probes)?)
        }
    })
}

fn main() -> Result<(), Failure> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    if given == ["list"] {
        return records::list();
    }
    if given == ["kernels"] {
        Kernel::supported().for_each(|kernel| println!("{kernel}"));
        return Ok(());
    }
    let arguments = arguments(&given)?;
    if Kernel::default() != arguments.kernel {
        // Hashes of keys are computed with the kernel of the process.
        let status = std::process::Command::new(std::env::current_exe()?)
            .args(&given)
            .env(blocked_bloom::KERNEL_VARIABLE, arguments.kernel.name())
            .status()?;
        std::process::exit(status.code().unwrap_or(1));
    }
    let mut records = Records::read(&arguments.records)?;
    let (name, probes, of) = (arguments.kernel.name(), arguments.probes, arguments.of);
    let machine = arguments.machine.as_deref();
    let mut kinds = Vec::new();
    for check in &arguments.checks {
        kinds.push((check.as_str(), Record::new(check, name, probes, of, machine)?));
    }
    for slice in arguments.slices.clone() {
        let missing = kinds.iter().filter(|(_, record)| !records.contain(record, slice));
        let missing: Vec<_> = missing.collect();
        if missing.is_empty() {
            continue;
        }
        let checks: Vec<_> = missing.iter().map(|(check, _)| *check).collect();
        let title = format!("{} {name} {probes}", checks.join(","));
        let mut check = new_check(&arguments, &checks)?;
        let start = Instant::now();
        let end = |slice| CHUNKS * slice / of;
        for chunk in end(slice - 1)..end(slice) {
            check.chunk(chunk).map_err(|difference| format!("{title}: {difference}"))?;
        }
        for (_, record) in missing {
            records.add(record, slice)?;
        }
        println!(
            "{title}: slice {slice}/{of} has no difference, {:.1} s",
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;

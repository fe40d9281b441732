//! `exhaustive CHECK KERNEL [PROBES] [--slice A-B/N] [--records FILE] [--machine NAME]`: compares a
//! kernel with its scheme on every 32-bit half of a hash, or on a slice of them.
//!
//! - `insert KERNEL PROBES`: the bits that insertion sets in a block of 64 bytes.
//! - `single`, `group`, `batch KERNEL PROBES`: the bits that lookups test, with calls for one hash,
//!   for 2 to 64, and for more.
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
    check: String,
    kernel: Kernel,
    probes: u32,
    slices: std::ops::RangeInclusive<u64>,
    of: u64,
    records: PathBuf,
    machine: Option<String>,
}

fn arguments(given: &[String]) -> Result<Arguments, Failure> {
    let [check, name, rest @ ..] = given else { return Err(USAGE.into()) };
    let kernel = Kernel::supported().find(|kernel| kernel.name() == name);
    let mut arguments = Arguments {
        check: check.clone(),
        kernel: kernel.ok_or_else(|| format!("this CPU has no kernel {name}"))?,
        probes: 0,
        slices: 1..=1,
        of: 1,
        records: records::default_path(),
        machine: None,
    };
    let mut rest = rest.iter();
    if matches!(check.as_str(), "insert" | "single" | "group" | "batch") {
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

const USAGE: &str = "usage: exhaustive insert|single|group|batch KERNEL PROBES, or \
                     split|tags|integers KERNEL, with [--slice A-B/N] [--records FILE] \
                     [--machine NAME], or list, or kernels";

fn new_check(arguments: &Arguments) -> Result<Box<dyn Check>, Failure> {
    let (kernel, probes) = (arguments.kernel, arguments.probes);
    let bloom = |calls| Bloom::new(kernel, calls, probes, probes);
    Ok(match arguments.check.as_str() {
        "insert" => Box::new(bloom(None)?),
        "single" => Box::new(bloom(Some(Calls::Single))?),
        "group" => Box::new(bloom(Some(Calls::Group))?),
        "batch" => Box::new(bloom(Some(Calls::Batch))?),
        "split" => Box::new(split::Split::new(kernel)),
        "tags" => Box::new(tags::Tags::new(kernel)?),
        "integers" => Box::new(integers::Integers),
        _ => return Err(USAGE.into()),
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
    let mut check = new_check(&arguments)?;
    let mut records = Records::read(&arguments.records)?;
    let name = arguments.kernel.name();
    let record = Record::new(
        &arguments.check,
        name,
        arguments.probes,
        arguments.of,
        arguments.machine.as_deref(),
    )?;
    for slice in arguments.slices.clone() {
        if records.contain(&record, slice) {
            continue;
        }
        let start = Instant::now();
        let end = |slice| CHUNKS * slice / arguments.of;
        for chunk in end(slice - 1)..end(slice) {
            check.chunk(chunk).map_err(|difference| {
                format!("{} {name} {}: {difference}", arguments.check, arguments.probes)
            })?;
        }
        records.add(&record, slice)?;
        println!(
            "{} {name} {}: slice {slice}/{} has no difference, {:.1} s",
            arguments.check,
            arguments.probes,
            arguments.of,
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;

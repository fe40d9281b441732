//! AVX-512: sixteen probes in a register, of two keys where eight are enough for one.
//!
//! The 64-byte line is one register; a probe's top four bits are the 32-bit word, five more the
//! bit. Needs the extensions F, BW, DQ, VL, VBMI, VBMI2 and GFNI: Ice Lake, Zen 4 and later. Older
//! parts with AVX-512 lower their clock for it and take the AVX2 kernel.

mod group;
mod insert;
mod single;

pub(super) use single::contains_one;

use super::InstructionSet;
use super::table::Table;

// All are checked: CPUs and hypervisors may have only some. AVX2 and BMI2 are part of all
// AVX-512 there is; the package `blocked-bloom-formats` takes AVX2's functions for this kernel.
cpufeatures::new!(
    detect,
    "avx2",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512vbmi",
    "avx512vbmi2",
    "bmi2",
    "gfni"
);

pub(super) const TABLE: Table = Table {
    instructions: InstructionSet::Avx512,
    is_supported: detect::get,
    contains_one,
    group: group::group,
    batch: group::batch,
    insert: insert::insert,
    overlapped: 8,
    short_calls: 64,
};

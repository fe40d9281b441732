//! AVX-512: sixteen probes in a register, from two keys if each has at most eight probes.
//!
//! The 64-byte block is one register. A probe's top four bits select the 32-bit word, the next five
//! the bit. The kernel requires the extensions F, BW, DQ, VL, VBMI, VBMI2 and GFNI: Ice Lake, Zen 4
//! and later. Older CPUs lower their clock for AVX-512, so they use the AVX2 kernel.

mod group;
mod insert;
mod single;

pub(super) use single::contains_one;

use super::InstructionSet;
use super::table::Table;

// All extensions are checked, since a CPU or hypervisor may offer only some. Every CPU with AVX-512
// has AVX2 and BMI2; the package `blocked-bloom-formats` calls AVX2 functions with this kernel.
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

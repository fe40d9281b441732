//! A campaign of damage: every format, damaged in every way that is cheap to enumerate and in many
//! that are not, and what became of the answers.
//!
//! Each damaged copy is opened, and keys that were added and keys that were not are looked up in
//! it. It is *rejected* (an error that says so), *harmless* (no key that was added is absent) or
//! *wrong* (one is). Where checksums cover a format, nothing may be wrong unless the test mends
//! them; where none do, or where they were mended, the answers must be those of a naive reading of
//! the bytes as they stand. The tables are printed: `cargo test --test suite damage:: --
//! --nocapture --test-threads 1`.

#[allow(dead_code, reason = "the tests of the filters of other systems use the rest")]
mod campaign;
#[allow(dead_code, reason = "the tests of the filters of other systems use the rest")]
mod naive;
mod native;

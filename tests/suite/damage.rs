//! A campaign of damage: every format is damaged in all ways that are cheap to enumerate and in
//! many others, and the answers are classified.
//!
//! Each damaged copy is opened, and inserted and absent keys are looked up in it. The copy is
//! *rejected* (with an error), *harmless* (no inserted key is absent) or *wrong* (an inserted key
//! is absent). If checksums cover a format, no copy may be wrong unless the test corrects the
//! checksums. Without checksums, or with corrected ones, the answers must be those of a simple
//! second reader of the same bytes. Print the tables with `cargo test --test suite damage:: --
//! --nocapture --test-threads 1`.

#[allow(dead_code, reason = "the tests of the filters of other systems use the rest")]
mod campaign;
#[allow(dead_code, reason = "the tests of the filters of other systems use the rest")]
mod naive;
mod native;

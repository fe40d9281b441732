//! For this package's tests alone, and not in what is published: see the file that it includes.

include!("tests/suite/common/build.rs");

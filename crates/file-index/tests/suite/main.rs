//! The tests of the package: one binary, a module for each area. `naive` is the definition that all
//! of them compare with.

mod answers;
mod build;
mod damage;
mod fields;
mod golden;
mod identity;
mod naive;
mod rates;

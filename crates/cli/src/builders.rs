//! The formats that `build` writes, one module per system. To add a format, add a module with all
//! of its code, and an entry in [`FORMATS`].

mod cassandra;
mod guava;
mod native;
mod parquet;
mod range;
mod redis;
mod removable;
mod ribbon;
mod rocksdb;
mod spark;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

pub(crate) use self::cassandra::CASSANDRA;
pub(crate) use self::native::NATIVE;
pub(crate) use self::range::look_up;
use crate::builder::BuildFormat;
use crate::failure::Failure;
use crate::wording::unsupported_option;

/// Every format, in the order of the help.
static FORMATS: [&BuildFormat; 12] = [
    &NATIVE,
    &native::COMPACT,
    &ribbon::RIBBON,
    &range::RANGE,
    &removable::REMOVABLE,
    &rocksdb::BLOCK,
    &rocksdb::RIBBON,
    &parquet::FILTER,
    &CASSANDRA,
    &guava::GUAVA,
    &spark::SPARK,
    &redis::REDISBLOOM,
];

/// The formats by name, each with its help.
pub(crate) fn format_parser() -> impl TypedValueParser<Value = &'static BuildFormat> {
    let values = FORMATS.iter().map(|format| PossibleValue::new(format.name).help(format.help));
    PossibleValuesParser::new(values).try_map(|name| {
        let found = FORMATS.iter().find(|format| format.name == name);
        found.copied().ok_or("no such format")
    })
}

/// Checks that the format has each of the options that were given, of those that not all have.
pub(crate) fn check_options(
    format: &BuildFormat,
    options: &[(&'static str, bool)],
) -> Result<(), Failure> {
    for (option, is_given) in options {
        if *is_given && !format.options.contains(option) {
            let with = FORMATS.iter().filter(|format| format.options.contains(option));
            let names: Vec<&str> = with.map(|format| format.name).collect();
            return Err(unsupported_option(option, &names, format.name));
        }
    }
    Ok(())
}

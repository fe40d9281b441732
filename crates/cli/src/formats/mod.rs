//! Looking up, describing and building filters of every format: one module for each system.

pub(crate) mod builder;
pub(crate) mod cassandra;
mod classical;
pub(crate) mod growing;
mod guava;
pub(crate) mod lookup;
pub(crate) mod native;
mod parquet;
pub(crate) mod planes;
mod redis;
mod removable;
mod ribbon;
mod rocksdb;
mod spark;
pub(crate) mod value;

use self::builder::{BuildOptions, Builder};
use self::lookup::{Lookup, LookupArgs};
use crate::facts::Facts;
use crate::failure::Failure;
use crate::file_format::{BuildFormat, Format};
use crate::stored::Stored;

/// Opens a filter for lookups.
pub(crate) fn lookup<'a>(stored: &'a Stored, args: &'a LookupArgs) -> Result<Lookup<'a>, Failure> {
    args.check(stored.format)?;
    match stored.format {
        Format::Native => native::lookup(stored, args),
        Format::Compact => native::lookup_compact(stored),
        Format::Planes => planes::lookup(stored),
        Format::Growing => growing::lookup(stored),
        Format::Removable => removable::lookup(stored),
        Format::Ribbon => ribbon::lookup(stored),
        Format::RocksdbBlock => rocksdb::lookup_block(stored),
        Format::RocksdbSst => rocksdb::lookup_sst(stored, args),
        Format::ParquetFilter => parquet::lookup_filter(stored, args),
        Format::Parquet => parquet::lookup_file(stored, args),
        Format::Cassandra => cassandra::lookup(stored, args),
        Format::Guava => guava::lookup(stored),
        Format::Spark => spark::lookup(stored, args),
        Format::Redisbloom => redis::lookup(stored),
    }
}

/// What is known of a filter, and what is wrong with it if it can be described all the same.
pub(crate) fn describe(stored: &Stored) -> Result<(Facts, Option<Failure>), Failure> {
    let sound = |facts| Ok((facts, None));
    match stored.format {
        Format::Native => native::describe(stored),
        Format::Compact => sound(native::describe_compact(stored)?),
        Format::Planes => sound(planes::describe(stored)?),
        Format::Growing => sound(growing::describe(stored)?),
        Format::Removable => removable::describe(stored),
        Format::Ribbon => sound(ribbon::describe(stored)?),
        Format::RocksdbBlock => sound(rocksdb::describe_block(stored)?),
        Format::RocksdbSst => sound(rocksdb::describe_sst(stored)?),
        Format::ParquetFilter => sound(parquet::describe_filter(stored)?),
        Format::Parquet => parquet::describe_file(stored),
        Format::Cassandra => sound(cassandra::describe(stored)?),
        Format::Guava => sound(guava::describe(stored)?),
        Format::Spark => sound(spark::describe(stored)?),
        Format::Redisbloom => sound(redis::describe(stored)?),
    }
}

/// A builder of filters of another format than that of Bloom filters of this project.
pub(crate) fn builder(
    format: BuildFormat,
    options: &BuildOptions<'_>,
) -> Result<Box<dyn Builder>, Failure> {
    match format {
        BuildFormat::Removable => removable::builder(options),
        BuildFormat::Ribbon => ribbon::builder(options),
        BuildFormat::RocksdbBlock | BuildFormat::RocksdbRibbon => rocksdb::builder(options),
        BuildFormat::ParquetFilter => parquet::builder(options),
        BuildFormat::Cassandra => cassandra::builder(options),
        BuildFormat::Guava => Ok(guava::builder(options)),
        BuildFormat::Spark => spark::builder(options),
        BuildFormat::Redisbloom => redis::builder(options),
        BuildFormat::Native | BuildFormat::Compact => {
            Err(Failure::new(format!("no builder for format {format}")))
        }
    }
}

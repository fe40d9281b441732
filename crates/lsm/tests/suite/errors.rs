//! Texts of the errors: their values, their offsets, and their sources. All are caused through the
//! public interface, except those for failing memory and 2^32 partitions.

use std::error::Error;

use crate::partitions::{Built, options, seal};
use blocked_bloom::{AllocError, BuildError, FilterOptions, KeyHash, Sizing};
use blocked_bloom_lsm::{
    FilterIdentity, PartitionBuildError, PartitionError, PartitionIndex, PartitionedFilterBuilder,
    TableFilter, TableFilterError,
};

const NO_MEMORY: &str = "no memory for 640 bytes";
const PROBES: &str = "31 probes: must be 1 to 30";

/// Fails if a text loses a value, if a case prints nothing, or if a chain of sources breaks off.
fn check(error: impl Error + 'static, text: &str, source: Option<&str>) {
    let error: Box<dyn Error> = Box::new(error);
    assert_eq!(error.to_string(), text);
    assert_eq!(error.source().map(ToString::to_string), source.map(String::from), "{text}");
}

/// The text begins with `start`. The advice that follows may change.
fn begins(error: impl Error, start: &str) {
    assert!(error.to_string().starts_with(start), "{error}: not {start}");
    assert!(error.source().is_none(), "{error}");
}

/// As [`begins`], for an error whose source is a header error.
fn begins_in_header(error: PartitionError, start: &str) {
    assert!(error.to_string().starts_with(start), "{error}: not {start}");
    assert_eq!(error.source().unwrap().to_string(), error.to_string());
}

/// The text for a filter that a slot or manifest rejects.
#[test]
fn identities() {
    let [none, owned]: [TableFilter; 2] =
        [TableFilter::None(KeyHash::default()), options().empty_filter(0).unwrap().into()];
    assert_eq!(none.identity(), FilterIdentity::Length(0));
    let FilterIdentity::HeaderChecksum(checksum) = owned.identity() else {
        panic!("{}", owned.identity())
    };
    let owned_text = format!("a filter with header checksum {checksum:016x}");
    let none_text = "a filter of 0 bytes without a header";
    for (found, expected, texts) in [
        (owned.identity(), none.identity(), [&*owned_text, none_text]),
        (none.identity(), owned.identity(), [none_text, &*owned_text]),
    ] {
        let text = format!(
            "{}, expected {}: it belongs to another table or partition",
            texts[0], texts[1]
        );
        check(TableFilterError::OtherFilter { found, expected }, &text, None);
    }
}

#[test]
fn partitions() {
    type Build = PartitionBuildError;
    let new = |options, bytes| PartitionedFilterBuilder::new(options, bytes).unwrap_err();
    check(new(options().with_probes(31), 4_096), PROBES, Some(PROBES));
    check(Build::from(AllocError::new(640)), NO_MEMORY, Some(NO_MEMORY));
    let caller = options().with_key_hash(KeyHash::Caller { tag: 5 });
    let text = "partitions are located by key, which the caller's hash with tag 5 cannot hash: use \
                options with XXH3";
    check(new(caller, 4_096), text, None);
    let by_bytes = FilterOptions::new(Sizing::MaxBytes(4_000));
    begins(
        new(by_bytes, 4_096),
        "a size of at most 4000 bytes does not limit the keys of a partition: ",
    );
    begins(new(options(), 127), "partitions of 127 bytes are too small: one key takes 128 bytes");
    let mut builder = PartitionedFilterBuilder::new(options(), 4_096).unwrap();
    ["b", "c", "d"].iter().for_each(|key| assert!(builder.insert(key).unwrap().is_none()));
    begins(builder.insert("a").unwrap_err(), "key 3 is less than the previous key");
    begins(Build::TooManyPartitions, "more than 4294967295 partitions");

    // A partition that cannot be finished, and the calls after it.
    let mut builder = PartitionedFilterBuilder::new(options().with_memory_limit(8), 128).unwrap();
    let error = (0..130_u8).find_map(|key| builder.insert([key]).err()).unwrap();
    let text = "the hashes of 51 keys do not fit the limit of 8 bytes: ";
    assert!(matches!(error, Build::Build(BuildError::MemoryLimit { keys: 51, .. })), "{error}");
    assert!(error.to_string().starts_with(text), "{error}");
    assert!(error.source().unwrap().to_string().starts_with(text));
    for error in [builder.insert("z").unwrap_err(), builder.finish().unwrap_err()] {
        begins(error, "the builder failed earlier");
    }
}

#[test]
fn indexes_of_partitions() {
    // Three partitions.
    let Built { index, partitions, .. } = &Built::new(options(), 128, (0..130_u8).map(|key| [key]));
    let first = &partitions[0];
    let changed = |at: usize, field: &[u8]| {
        let mut bytes = index.clone();
        bytes[at..at + field.len()].copy_from_slice(field);
        seal(&mut bytes);
        PartitionIndex::from_bytes_any_hash(bytes).unwrap_err()
    };
    let error = changed(64 + 24 + 8, &[200, 0]);
    assert_eq!(error.offset(), 96);
    begins_in_header(
        error,
        "offset 96: end of a partition 200 (must be one header and 1 to 4294967295 blocks ",
    );
    begins_in_header(
        changed(64 + 16, &[1]),
        "offset 80: end of a separator 1 (must be 0 for the first",
    );
    let text = "offset 104: end of a separator 9 (must be 0 for the first, and ";
    begins_in_header(changed(64 + 24 + 16, &[9]), text);
    let error = changed(64 + 3 * 24 + 1, &[0]);
    assert!(error.to_string().contains("must be greater than the previous one"), "{error}");
    begins_in_header(error, "offset 128: end of a separator ");
    let text = "offset 12: number of partitions 0 (allowed: 1 to 4294967295)";
    check(changed(12, &[0]), text, Some(text));

    let opened = PartitionIndex::from_bytes_any_hash(index).unwrap();
    let at = opened.locate([0]);
    assert!(opened.open(&at, first).is_ok());
    let other = opened.open(&opened.locate([129]), first).unwrap_err();
    let sum = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let (found, expected) = (sum(&first[56..64]), sum(&index[112..120]));
    assert_eq!(other, PartitionError::OtherPartition { found, expected });
    begins(
        other,
        &format!("offset 56: a filter with header checksum {found:016x}, expected {expected:016x}"),
    );
    let text = "offset 127: 127 bytes in all, expected 128: truncated";
    check(opened.open(&at, &first[..127]).unwrap_err(), text, Some(text));
}

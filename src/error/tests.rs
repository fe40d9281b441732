//! What errors say: the values that they carry, where, and which error they come from. Some cannot be provoked from outside.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::error::Error;

use super::*;
use crate::prefix::Added;

/// Catches a text that lost a value, a case that prints nothing, and a chain of causes that breaks off.
fn check(error: impl Error + 'static, text: &str, source: Option<&str>) {
    let error: Box<dyn Error> = Box::new(error);
    assert_eq!(error.to_string(), text);
    assert_eq!(error.source().map(ToString::to_string), source.map(String::from), "{text}");
}

/// Begins with `start`: what follows advises, and may be said better one day.
fn begins(error: impl Error, start: &str) {
    assert!(error.to_string().starts_with(start), "{error}: not {start}");
    assert!(error.source().is_none(), "{error}");
}

const ALLOC: AllocError = AllocError { bytes: 640 };
const PARAMS: ParamsError = ParamsError::ProbesOutOfRange { probes: 31 };
const FORMAT: FormatError = FormatError::Law { found: 9 };
const CALLER: KeyHash = KeyHash::Caller { tag: 5 };
const NO_MEMORY: &str = "no memory for 640 bytes";
const PROBES: &str = "31 probes: give 1 to 30";
const LAW: &str = "offset 10: found law 9, expected 1";

#[test]
fn building_and_sizing() {
    check(ALLOC, NO_MEMORY, None);
    check(PARAMS, PROBES, None);
    begins(LengthError { words: 2, expected: 3 }, "2 words for the results, 3 needed");
    check(BuildError::from(ALLOC), NO_MEMORY, Some(NO_MEMORY));
    check(BuildError::from(PARAMS), PROBES, Some(PROBES));
    let tagged = "a key was added to a filter of the caller's hash with tag 5: ";
    begins(BuildError::KeyWithoutHash { tag: 5 }, tagged);
    begins(BuildError::HashWithoutPrefix { hash: 77 }, "the hash 0x000000000000004d was added");
    begins(BuildError::PrefixesAfterKeys, "keys were added before");
    let limit = BuildError::MemoryLimit { limit_bytes: 9, keys: 8 };
    begins(limit, "the hashes of 8 keys do not fit the limit of 9 bytes");
    let changed = BuildError::HashesChanged { expected: 1, found: 2 };
    assert!(changed.to_string().contains("is 0x0000000000000002, expected 0x0000000000000001"));
    let missing = BuildError::KeysMissing { missing: 2, keys: 7 };
    begins(missing, "the finished filter lacks 2 of 7 keys");
    begins(PlanError::TooManyLevels { levels: 9, limit: 8 }, "9 levels: plan at most 8");
    let plan = PlanError::Params { level: 3, error: PARAMS };
    check(plan, "level 3: 31 probes: give 1 to 30", Some(PROBES));
}

#[test]
fn folding_and_merging() {
    check(FoldError::from(ALLOC), NO_MEMORY, Some(NO_MEMORY));
    begins(
        FoldError::NotADivisor { divisor: 4, blocks: 6, below: Some(3), above: Some(6) },
        "4 does not divide 6 blocks: fold by 3 or 6",
    );
    check(MergeError::from(ALLOC), NO_MEMORY, Some(NO_MEMORY));
    for (left, right, text) in [(1, 2, "1 block with"), (2, 1, "2 blocks with one of 1")] {
        let text = "cannot merge a filter of ".to_string() + text;
        begins(MergeError::BlocksMismatch { left, right }, &text);
        begins(MergeError::ProbesMismatch { left, right }, &text.replace("block", "probe"));
    }
    let added = MergeError::AddedMismatch {
        left: Added::WholeKeys,
        right: Added::Prefixes { extractor: 0x2a },
    };
    begins(
        added,
        "cannot merge a filter of whole keys with one of prefixes by extractor 000000000000002a",
    );
    let all = MergeAllError { left: None, right: 2, error: ALLOC.into() };
    check(all, "input 2: no memory for 640 bytes", Some(NO_MEMORY));
    let all = MergeAllError { left: Some(1), ..all };
    check(all, "inputs 1 and 2: no memory for 640 bytes", Some(NO_MEMORY));
}

#[test]
fn sets_and_matrices() {
    check(FilterSetError::from(ALLOC), NO_MEMORY, Some(NO_MEMORY));
    let mismatch =
        FilterSetError::HashMismatch { index: 4, found: CALLER, expected: KeyHash::default() };
    begins(
        mismatch,
        "filter 4: found the caller's hash with tag 5, expected XXH3-64 with seed 0: ",
    );
    begins(FilterSetError::TooManyFilters { limit: 8 }, "more than 8 filters");
    check(MatrixError::from(ALLOC), NO_MEMORY, Some(NO_MEMORY));
    let shape = MatrixError::Shape { filters: 1, keys: 2, expected_filters: 3, expected_keys: 4 };
    begins(shape, "a matrix of 1 filters and 2 keys, expected 3 and 4");
    begins(MatrixError::Filter { filter: 9, filters: 8 }, "filter 9 in a matrix of 8");
    begins(MatrixError::Keys { start: 1, end: 3, keys: 2 }, "keys 1 .. 3 in a matrix of 2");
}

#[test]
fn stored_bytes() {
    check(FORMAT, LAW, None);
    for (found, expected, text) in [
        (127, 128, "offset 127: found 127 bytes in all, expected 128: the filter is truncated"),
        (
            129,
            128,
            "offset 128: found 129 bytes in all, expected 128: the filter is followed by other bytes",
        ),
    ] {
        check(FormatError::Length { found, expected }, text, None);
        let text = text.replace("filter", "index");
        check(PartitionIndexError::Length { found, expected }, &text, None);
    }
}

#[test]
fn growing_filters() {
    check(ScalableError::from(ALLOC), NO_MEMORY, Some(NO_MEMORY));
    check(ScalableError::from(PARAMS), PROBES, Some(PROBES));
    begins(ScalableError::GrowthOutOfRange { growth: 17 }, "growth by a factor of 17: give 2");
    let tightening = ScalableError::TighteningOutOfRange { tightening: 0.5 };
    begins(tightening, "a tightening ratio of 0.5: give 0.05");
    begins(ScalableError::NotEmpty { links: 1 }, "the filter has 1 link already");
    begins(ScalableError::NotEmpty { links: 2 }, "the filter has 2 links already");
    begins(ScalableError::KeyWithoutHash { tag: 5 }, "a key was added to a filter of the caller's");
    let mismatch = ScalableError::HashMismatch { left: CALLER, right: KeyHash::default() };
    begins(
        mismatch,
        "cannot unite a filter of the caller's hash with tag 5 with one of XXH3-64 with seed 0",
    );
    check(ScalableFormatError::from(ALLOC), NO_MEMORY, Some(NO_MEMORY));
    let link = ScalableFormatError::Link { link: 2, start: 192, error: FORMAT };
    assert_eq!(link.offset(), 202);
    let text = "link 2, which begins at 192: ".to_string() + LAW;
    check(link, &text, Some(LAW));
    begins(ScalableFormatError::Growth { found: 1 }, "offset 11: found growth by a factor of 1, ");
}

#[test]
fn partitions() {
    type Build = PartitionBuildError<AllocError>;
    check(Build::from(PARAMS), PROBES, Some(PROBES));
    check(Build::from(ALLOC), NO_MEMORY, Some(NO_MEMORY));
    check(Build::from(BuildError::from(PARAMS)), PROBES, Some(PROBES));
    let text = "a partition could not be stored: no memory for 640 bytes";
    check(Build::Sink(ALLOC), text, Some(NO_MEMORY));
    begins(Build::Unsorted { position: 3 }, "key 3 is less than the one before");

    type Ask = PartitionError<AllocError>;
    let text = "the partition could not be loaded: no memory for 640 bytes";
    check(Ask::Load(ALLOC), text, Some(NO_MEMORY));
    check(Ask::from(FORMAT), LAW, Some(LAW));
    check(Ask::Alloc(ALLOC), NO_MEMORY, Some(NO_MEMORY));
    let other = Ask::OtherFilter { found: 1, expected: 2 };
    begins(other, "a filter with header checksum 0000000000000001, expected 0000000000000002");
    begins(Ask::IndexChanged, "the bytes of the index changed");
    let text = "partition 6: ".to_string() + LAW;
    check(PartitionFailure::new(6, Ask::from(FORMAT)), &text, Some(LAW));
}

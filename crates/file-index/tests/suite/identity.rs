//! Which listed file is the one that was indexed, and what is said of the others.

use blocked_bloom::KeyHash;
use blocked_bloom_file_index::{
    Column, FileIdentity, FileIndex, FileIndexOptions, Pruned, SameFile, UnknownReason,
};

const KEY_HASH: KeyHash = KeyHash::Xxh3 { seed: 3 };

/// An index of files that have no value at all: whatever is looked up, nothing is to be read of
/// those that are known.
fn index(files: &[FileIdentity<'_>]) -> FileIndex {
    let options = FileIndexOptions::new(vec![Column::new("id", KEY_HASH)], 1);
    let mut builder = options.builder().unwrap();
    let mut stored = Vec::new();
    for file in files {
        let mut adding = builder.file(*file, &[Some("Utf8")], 1).unwrap();
        stored.extend(adding.end_row_group().unwrap());
        adding.end().unwrap();
    }
    stored.extend(builder.finish().unwrap());
    FileIndex::from_bytes(stored).unwrap()
}

fn prune(index: &FileIndex, same_file: SameFile, listed: FileIdentity<'_>) -> Pruned {
    let index = index.clone().with_same_file(same_file);
    let lookup = index.manifest().lookup(0, KEY_HASH, |_| true, [1]).unwrap();
    index.manifest().prune(&index.candidates(&lookup).unwrap(), &listed)
}

#[test]
fn a_file_is_known_if_nothing_differs_and_enough_is_equal() {
    use SameFile::{LengthAndTime, Name, Tag};
    use UnknownReason::{NoTag, NotIndexed, OtherLength, OtherTag, OtherTime};
    let bare = FileIdentity::new("a", 10);
    let (etag, version, time) =
        (bare.with_etag("e"), bare.with_version("v"), bare.with_modified(5));
    let weak = bare.with_etag("W/\"e\"");
    let all = bare.with_etag("e").with_version("v").with_modified(5);
    let longer = FileIdentity::new("a", 11).with_etag("e").with_version("v").with_modified(5);
    let unknown = |why| Pruned::Unknown(why);
    let nothing = Pruned::Empty;
    for (indexed, listed, by_tag, by_time, by_name) in [
        (bare, bare, unknown(NoTag), unknown(NoTag), nothing.clone()),
        (etag, etag, nothing.clone(), nothing.clone(), nothing.clone()),
        (version, version, nothing.clone(), nothing.clone(), nothing.clone()),
        (time, time, unknown(NoTag), nothing.clone(), nothing.clone()),
        (all, all, nothing.clone(), nothing.clone(), nothing.clone()),
        (all, etag, nothing.clone(), nothing.clone(), nothing.clone()),
        (all, version, nothing.clone(), nothing.clone(), nothing.clone()),
        (all, time, unknown(NoTag), nothing.clone(), nothing.clone()),
        (all, bare, unknown(NoTag), unknown(NoTag), nothing.clone()),
        (etag, time, unknown(NoTag), unknown(NoTag), nothing.clone()),
        (etag, version, unknown(NoTag), unknown(NoTag), nothing.clone()),
        // Weak etags and empty ones: equal ones promise nothing, others are of other bytes.
        (weak, weak, unknown(NoTag), unknown(NoTag), nothing.clone()),
        (weak, bare.with_etag("W/f"), unknown(OtherTag), unknown(OtherTag), nothing.clone()),
        (bare.with_etag(""), bare.with_etag(""), unknown(NoTag), unknown(NoTag), nothing.clone()),
        // Overwritten in place by a file of the same length.
        (etag, bare.with_etag("f"), unknown(OtherTag), unknown(OtherTag), nothing.clone()),
        (all, all.with_etag("f"), unknown(OtherTag), unknown(OtherTag), nothing.clone()),
        (all, all.with_version("w"), unknown(OtherTag), unknown(OtherTag), nothing.clone()),
        (all, all.with_modified(6), unknown(OtherTime), unknown(OtherTime), nothing.clone()),
        (time, bare.with_modified(6), unknown(OtherTime), unknown(OtherTime), nothing.clone()),
        (all, longer, unknown(OtherLength), unknown(OtherLength), unknown(OtherLength)),
        (longer, all, unknown(OtherLength), unknown(OtherLength), unknown(OtherLength)),
    ] {
        let index = index(&[FileIdentity::new("b", 10).with_etag("e"), indexed]);
        for (same_file, expected) in [(Tag, by_tag), (LengthAndTime, by_time), (Name, by_name)] {
            let found = prune(&index, same_file, listed);
            assert_eq!(found, expected, "{indexed:?}, {listed:?}, {same_file:?}");
            let other = prune(&index, same_file, FileIdentity::new("A", 10).with_etag("e"));
            assert_eq!(other, unknown(NotIndexed));
        }
    }
}

/// A file that was replaced and indexed again is known as either, and as nothing else.
#[test]
fn a_file_that_was_indexed_again_is_known_as_it_is_now() {
    let [old, new, later] = ["e1", "e2", "e3"].map(|e| FileIdentity::new("a", 10).with_etag(e));
    let index = index(&[old, new]);
    assert_eq!(prune(&index, SameFile::Tag, old), Pruned::Empty);
    assert_eq!(prune(&index, SameFile::Tag, new), Pruned::Empty);
    let unknown = Pruned::Unknown(UnknownReason::OtherTag);
    assert_eq!(prune(&index, SameFile::Tag, later), unknown);
    assert_eq!(index.manifest().file(&new).unwrap().identity(), new);
    assert_eq!(index.manifest().file(&later).unwrap_err(), UnknownReason::OtherTag);
    // Where either may be meant, it is the one that was indexed last.
    let by_name = index.with_same_file(SameFile::Name);
    assert_eq!(by_name.manifest().file(&later).unwrap().identity(), new);
}

/// Of a name that was indexed more than once, the reason is that of the last entry.
#[test]
fn the_reason_is_that_of_the_entry_indexed_last() {
    let file = |length, etag| FileIdentity::new("a", length).with_etag(etag);
    for (indexed, expected) in [
        ([file(10, "e1"), file(11, "e1")], UnknownReason::OtherLength),
        ([file(11, "e1"), file(10, "e1")], UnknownReason::OtherTag),
    ] {
        let index = index(&indexed);
        assert_eq!(index.manifest().file(&file(10, "e2")).unwrap_err(), expected);
    }
}

#[test]
fn a_time_settles_after_its_resolution() {
    let second = 1_000_000_000_i64;
    let file = FileIdentity::new("a", 0x3e8);
    let whole = file.with_modified(7 * second);
    assert_eq!(whole.settle_time(), Some(10 * second));
    let fine = file.with_modified(7 * second + 123_456_789);
    assert_eq!(fine.settle_time(), Some(7 * second + 173_456_789));
    // Etags that are made of the time, or weak, or empty, say no more than the time.
    for etag in ["2a-6d1c6f-3e8", "W/\"5\"", ""] {
        let expected = if etag.starts_with('2') { 7_150_703_000 } else { fine.modified().unwrap() };
        let file = file.with_etag(etag).with_modified(expected);
        assert_eq!(file.settle_time(), Some(expected + 50_000_000), "{etag}");
    }
    assert_eq!(whole.with_etag("\"5\"").settle_time(), None);
    assert_eq!(whole.with_etag("2a-6d1c6f-3e9").settle_time(), None);
    assert_eq!(whole.with_version("5").settle_time(), None);
    assert_eq!(file.settle_time(), None);
    for extreme in [i64::MIN, i64::MAX] {
        assert!(file.with_modified(extreme).settle_time() > Some(i64::MIN));
    }
}

/// Stores report whole seconds for one file, and fractions in a listing.
#[test]
fn a_time_in_whole_seconds_is_that_of_a_listing_with_fractions() {
    use SameFile::{LengthAndTime, Tag};
    let second = 1_000_000_000_i64;
    let whole = FileIdentity::new("a", 10).with_modified(1_700_000_000 * second);
    let [fine, next] = [123_000_000, second].map(|more| whole.modified().unwrap() + more);
    let other = Pruned::Unknown(UnknownReason::OtherTime);
    let of_whole = index(&[whole]);
    assert_eq!(prune(&of_whole, LengthAndTime, whole.with_modified(fine)), Pruned::Empty);
    assert_eq!(prune(&of_whole, LengthAndTime, whole.with_modified(next)), other);
    assert_eq!(prune(&of_whole, LengthAndTime, whole.with_modified(next - second - 1)), other);
    // A fraction settles within its second, in which the file may have changed since.
    let of_fine = index(&[whole.with_modified(fine)]);
    assert_eq!(prune(&of_fine, LengthAndTime, whole), other);
    assert_eq!(prune(&of_fine, LengthAndTime, whole.with_modified(fine + 1)), other);
    // Before 1970.
    let early = index(&[whole.with_modified(-second)]);
    assert_eq!(prune(&early, LengthAndTime, whole.with_modified(-1)), Pruned::Empty);
    assert_eq!(prune(&early, LengthAndTime, whole.with_modified(1)), other);
    // Etags of contents decide alone, but not those of a time, weak or empty ones.
    for (etag, decides) in [
        ("\"9b74c9897bac770ffc029102a200c5de\"", true),
        ("\"9b74c9897bac770ffc029102a200c5de-2\"", true),
        ("\"6553f100-a\"", false),
        ("2a-60a24181e4000-a", false),
        ("W/\"9b74\"", false),
        ("", false),
    ] {
        let index = index(&[whole.with_etag(etag).with_modified(fine)]);
        let expected = if decides { Pruned::Empty } else { other.clone() };
        for rule in [Tag, LengthAndTime] {
            assert_eq!(prune(&index, rule, whole.with_etag(etag)), expected, "{etag}");
            let later = whole.with_etag(etag).with_modified(next);
            assert_eq!(prune(&index, rule, later), expected, "{etag}");
            let tag = Pruned::Unknown(UnknownReason::OtherTag);
            assert_eq!(prune(&index, rule, later.with_etag("\"5-5\"")), tag, "{etag}");
        }
    }
}

/// nginx makes etags of whole seconds and the length, in hex; Apache of the length and
/// microseconds.
#[test]
fn etags_of_web_servers_are_made_of_the_time() {
    let second = 1_000_000_000_i64;
    let file = FileIdentity::new("a", 0x3e8).with_modified(0x6553_f100 * second);
    for etag in ["\"6553f100-3e8\"", "6553f100-3e8", "\"3e8-60a24181e4000\"", "\"6553f100\""] {
        let settled = (0x6553_f100 + 3) * second;
        assert_eq!(file.with_etag(etag).settle_time(), Some(settled), "{etag}");
    }
    for etag in ["\"6553f100-3e9\"", "\"6553f101-3e8\"", "\"9b74c9897bac770ffc02-3e8\""] {
        assert_eq!(file.with_etag(etag).settle_time(), None, "{etag}");
    }
}

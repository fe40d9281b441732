//! A file that is read in ranges has the same description and answers as the whole file.

use blocked_bloom_inspect::{Error, FileRanges, Format, Opened};

use crate::stored::{StoredFilter, all_filters};

/// Opens a file in ranges and loads the filters of a column, or of all columns. The second value is
/// the number of loaded bytes. An SST file takes at most five ranges for any number of partitions,
/// since partitions are adjacent.
fn open_by_ranges<'b>(
    stored: &StoredFilter,
    bytes: &'b [u8],
    column: Option<Option<&str>>,
) -> Result<(Opened<'b>, u64), Error> {
    let mut file = FileRanges::new(bytes.len() as u64);
    let load = |file: &mut FileRanges<'b>, offset: u64, length: u64| {
        assert!(length > 0 && offset + length <= bytes.len() as u64, "{offset}, {length}");
        assert_eq!(file.get(offset, length), None, "asked twice for {length} at {offset}");
        file.insert(offset, &bytes[offset as usize..][..length as usize]);
    };
    for rounds in 0..20 {
        match Opened::new(&stored.name, &file, stored.format, stored.layout) {
            Err(Error::NotLoaded { offset, length }) => load(&mut file, offset, length),
            Err(error) => return Err(error),
            Ok(opened) => {
                assert!(stored.format != Format::ROCKSDB_SST || rounds <= 5, "{rounds} ranges");
                let missing = column.map(|column| opened.missing(column)).unwrap_or_default();
                if missing.is_empty() {
                    return Ok((opened, file.loaded()));
                }
                missing.into_iter().for_each(|(offset, length)| load(&mut file, offset, length));
            }
        }
    }
    panic!("{}: no end of ranges", stored.name)
}

pub(crate) fn check_ranges(filters: &[StoredFilter]) {
    for stored in filters {
        let whole = stored.open().unwrap();
        let (opened, loaded) = open_by_ranges(stored, &stored.bytes, Some(None)).unwrap();
        assert_eq!(opened.describe(), whole.describe(), "{}", stored.name);
        let is_container = [Format::ROCKSDB_SST, Format::PARQUET].contains(&stored.format);
        let length = stored.bytes.len() as u64;
        assert!(is_container || loaded == length, "{}", stored.name);
        if stored.format == Format::ROCKSDB_SST && length > 20_000 {
            assert!(loaded < length / 2, "{}: {loaded} of {length}", stored.name);
        }
        for (options, answers) in &stored.lookups {
            let keys: Vec<&[u8]> = answers.iter().map(|(key, _)| &key[..]).collect();
            let found = opened.lookup(options).unwrap().contains(&keys).unwrap();
            let lookup = whole.lookup(options).unwrap();
            assert_eq!(found, lookup.contains(&keys).unwrap(), "{}", stored.name);
            assert_eq!(opened.lookup(options).unwrap().warnings(), lookup.warnings());
        }
        for part in 0..whole.parts().min(10) {
            assert_eq!(opened.block_loads(part), whole.block_loads(part));
        }
    }
}

#[test]
fn every_filter_is_the_same_by_ranges() {
    check_ranges(&all_filters());
}

/// The filters of one column are enough to look it up. The others are reported as not loaded, which
/// is not damage.
#[test]
fn a_column_is_looked_up_without_the_others() {
    for stored in all_filters().iter().filter(|stored| stored.format == Format::PARQUET) {
        for (options, answers) in &stored.lookups {
            let name = options.column.as_deref().unwrap();
            let (opened, _) = open_by_ranges(stored, &stored.bytes, Some(Some(name))).unwrap();
            let keys: Vec<&[u8]> = answers.iter().map(|(key, _)| &key[..]).collect();
            let expected: Vec<bool> = answers.iter().map(|answer| answer.1).collect();
            assert_eq!(opened.lookup(options).unwrap().contains(&keys).unwrap(), expected);
            assert!(opened.describe().damage.is_none());
        }
        let (opened, footer) = open_by_ranges(stored, &stored.bytes, None).unwrap();
        assert!(footer < stored.bytes.len() as u64);
        let (options, answers) = &stored.lookups[0];
        let error = opened.lookup(options).unwrap_err();
        assert!(matches!(error, Error::NotLoaded { .. }), "{error}");
        let facts = opened.describe();
        assert_eq!(facts.damage, None);
        assert_eq!(facts.json().get("filters"), Some(&0_u64.into()));
        assert!(facts.list.unwrap().lines.iter().any(|line| line.contains(&"not loaded".into())));
        // No unloaded row group is skipped.
        let column = opened.column(options.column.as_deref().unwrap(), &[]).unwrap();
        let all: Vec<usize> = (0..column.row_groups().len()).collect();
        assert_eq!(column.row_groups_to_read(&[&answers[0].0], true).unwrap(), all);
    }
}

/// Damage causes the same error, or the same filter, however the file is read. Returns the number
/// of errors.
pub(crate) fn check_damage_by_ranges(filters: &[StoredFilter]) -> usize {
    let mut errors = 0;
    for stored in filters.iter().filter(|stored| stored.bytes.len() < 100_000) {
        for at in (0..stored.bytes.len()).rev().step_by(stored.bytes.len() / 40 + 1) {
            let mut bytes = stored.bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            for bytes in [&bytes[..], &stored.bytes[..at]] {
                let whole = stored.open_bytes(bytes).map(|opened| opened.describe());
                let ranged = open_by_ranges(stored, bytes, Some(None));
                let ranged = ranged.map(|(opened, _)| opened.describe());
                assert_eq!(ranged, whole, "{}, byte {at}", stored.name);
                errors += usize::from(whole.is_err());
            }
        }
    }
    errors
}

#[test]
fn damage_is_the_same_by_ranges() {
    let errors = check_damage_by_ranges(&all_filters());
    assert!(errors > 1_000, "{errors}");
}

#[test]
fn a_file_of_any_size_is_opened_by_its_end() {
    for (format, length) in
        [(Format::ROCKSDB_SST, 53), (Format::PARQUET, 4), (Format::NATIVE, 5 << 30)]
    {
        let file = FileRanges::new(5 << 30);
        let Err(Error::NotLoaded { offset, length: found }) = Opened::new("f", &file, format, None)
        else {
            panic!("{format}")
        };
        assert_eq!(found, length);
        assert!(offset + found <= 5 << 30);
    }
}

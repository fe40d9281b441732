//! What builders refuse, and that memory is bounded.

use blocked_bloom::KeyHash;
use blocked_bloom_file_index::{
    Column, FileIdentity, FileIndex, FileIndexBuilder, FileIndexError, FileIndexOptions,
    MAX_COLUMNS, MAX_ROW_GROUPS, Pruned, SameFile,
};
use blocked_bloom_planes::ShapeError;

use crate::naive::{Random, columns};

fn options() -> FileIndexOptions {
    FileIndexOptions::new(columns(1), 1)
}

#[test]
fn options_that_cannot_be_are_errors() {
    let error = |options: FileIndexOptions| options.builder().unwrap_err();
    for count in [0, MAX_COLUMNS + 1] {
        let options = FileIndexOptions::new(columns(count), 1);
        assert_eq!(error(options), FileIndexError::Columns { columns: count });
    }
    let named = |names: &[&str]| {
        let column = |name: &&str| Column::new(*name, KeyHash::default());
        FileIndexOptions::new(names.iter().map(column).collect(), 1)
    };
    assert_eq!(error(named(&["a", "b", "a"])), FileIndexError::ColumnName { column: 2 });
    assert_eq!(error(named(&[""])), FileIndexError::ColumnName { column: 0 });
    for values in [0, 15, 16_385, u32::MAX] {
        let options = options().with_part_values(values);
        assert_eq!(error(options), FileIndexError::PartValues { values });
    }
    for (false_row_groups, row_groups) in [(0.0, 9), (-1.0, 9), (9.0, 9), (1.0, 0), (f64::NAN, 9)] {
        let options = options().with_false_row_groups(false_row_groups, row_groups);
        let found = error(options);
        let is_rate = |error: &FileIndexError| {
            matches!(error, FileIndexError::Shape(ShapeError::RateOutOfRange { .. }))
        };
        assert!(is_rate(&found), "{found}");
    }
    let options = options().with_false_row_groups(1e-15, 1);
    assert!(matches!(error(options), FileIndexError::Shape(ShapeError::RateUnreachable { .. })));
}

#[test]
fn files_that_cannot_be_are_errors_and_change_nothing() {
    let mut builder = FileIndexOptions::new(columns(2), 1).builder().unwrap();
    let [first, second, third, behind, kept] = [1, 2, 3, 4, 5].map(|seed| Random(seed).next());
    let file = FileIdentity::new("a", 1).with_etag("e");
    for types in [&[][..], &[None], &[Some("a"); 3]] {
        let error = builder.file(file, types, 1).unwrap_err();
        assert_eq!(error, FileIndexError::TypeCount { found: types.len(), expected: 2 });
    }
    let error = builder.file(FileIdentity::new("", 1), &[None; 2], 1).unwrap_err();
    assert_eq!(error, FileIndexError::FileName);
    let error = builder.file(file, &[None; 2], MAX_ROW_GROUPS as u32 + 1).unwrap_err();
    assert_eq!(error, FileIndexError::TooMany { what: "row groups", most: MAX_ROW_GROUPS });

    let types = [Some("Int64"), None];
    let mut adding = builder.file(file, &types, 1).unwrap();
    let error = adding.insert_hashes(2, &[1]).unwrap_err();
    assert_eq!(error, FileIndexError::ColumnOutOfRange { column: 2, columns: 2 });
    assert_eq!(adding.set_unknown(9).unwrap_err().to_string(), "column 9, but there are 2");
    adding.insert_hashes(1, &[1]).unwrap();
    drop(adding);
    // More row groups than were said, fewer, values behind the last, and a last one that was begun.
    let mut stored = Vec::new();
    let cases =
        [(1, 2, false, 2), (2, 1, false, 1), (1, 1, true, 2), (2, 1, true, 1), (1, 0, true, 0)];
    for (said, ended, more, found) in cases {
        let mut adding = builder.file(file, &types, said).unwrap();
        for _ in 0..ended {
            adding.insert_hashes(0, &[first, second, third]).unwrap();
            stored.extend(adding.end_row_group().unwrap());
        }
        if more {
            adding.insert_hashes(0, &[behind]).unwrap();
        }
        let error = adding.end().unwrap_err();
        assert_eq!(error, FileIndexError::RowGroups { found, expected: said });
    }
    // Nothing of them is left but their rows.
    let mut adding = builder.file(file, &types, 1).unwrap();
    adding.insert_hashes(0, &[kept]).unwrap();
    stored.extend(adding.end_row_group().unwrap());
    adding.end().unwrap();
    assert_eq!(builder.files(), 1);
    stored.extend(builder.finish().unwrap());
    let index = FileIndex::from_bytes(&stored).unwrap();
    let manifest = index.manifest();
    assert_eq!((manifest.files().len(), manifest.row_groups()), (1, 1));
    let key_hash = KeyHash::Xxh3 { seed: 0 };
    for (hash, count) in [(kept, 1), (first, 0), (behind, 0)] {
        let lookup = manifest.lookup(0, key_hash, |_| true, [hash]).unwrap();
        assert_eq!(index.candidates(&lookup).unwrap().count(), count, "{hash}");
    }
}

/// Row groups count together: those of the builder, and those of the index that it appends to.
#[test]
fn the_limit_of_row_groups_counts_all_of_them() {
    let too_many = FileIndexError::TooMany { what: "row groups", most: MAX_ROW_GROUPS };
    let (first, most) = (FileIdentity::new("a", 1), MAX_ROW_GROUPS as u32);
    let check = |builder: &mut FileIndexBuilder, left: u32| {
        let more = FileIdentity::new("more", 1);
        assert_eq!(builder.file(more, &[None], left + 1).unwrap_err(), too_many);
        assert!(builder.file(more, &[None], left).is_ok());
    };
    let mut builder = options().builder().unwrap();
    check(&mut builder, most);
    let mut adding = builder.file(first, &[None], 2).unwrap();
    let mut stored = [adding.end_row_group().unwrap(), adding.end_row_group().unwrap()].concat();
    adding.end().unwrap();
    check(&mut builder, most - 2);
    stored.extend(builder.finish().unwrap());
    let index = FileIndex::from_bytes(&stored).unwrap();
    check(&mut index.manifest().appender(2), most - 2);
    check(&mut index.merging_appender(2, 1).unwrap().0, most - 2);
}

/// A file that fails after some columns of a row group have ended, at the first, second or third
/// row group, leaves no trace but its rows.
#[test]
fn a_file_that_fails_between_two_columns_does_not_shift_the_next() {
    for (ended, begun, with_end) in
        (0..3).flat_map(|e| (1..4).flat_map(move |b| [false, true].map(|w| (e, b, w))))
    {
        let mut random = Random(7);
        let mut builder = FileIndexOptions::new(columns(3), 1).builder().unwrap();
        let mut stored = Vec::new();
        let mut expected = Vec::new();
        for (name, fails) in [("a", false), ("b", true), ("c", false)] {
            let types = [Some("Int64"), None, Some("Utf8")];
            let mut adding = builder.file(FileIdentity::new(name, 1), &types, 3).unwrap();
            for row_group in 0..3 {
                for column in 0..3 {
                    let hashes = random.hashes(20);
                    adding.insert_hashes(column, &hashes).unwrap();
                    if fails && row_group == ended && column == begun {
                        break;
                    }
                    stored.extend(adding.end_column(column).unwrap());
                    if !fails && column != 1 {
                        expected.push((column, hashes[3], name));
                    }
                }
                if fails && row_group == ended {
                    break;
                }
                stored.extend(adding.end_row_group().unwrap());
            }
            match fails && !with_end {
                true => drop(adding),
                false => assert_eq!(adding.end().is_err(), fails, "{ended} {begun}"),
            }
        }
        stored.extend(builder.finish().unwrap());
        let index = FileIndex::from_bytes(stored).unwrap();
        let manifest = index.manifest();
        assert_eq!((manifest.files().len(), manifest.row_groups()), (2, 6));
        for (column, hash, name) in expected {
            let key_hash = columns(3)[column].key_hash();
            let lookup = manifest.lookup(column, key_hash, |_| true, [hash]).unwrap();
            let candidates = index.candidates(&lookup).unwrap();
            assert_eq!(candidates.count(), 1, "{ended} {begun} {column}");
            let by_name = index.clone().with_same_file(SameFile::Name);
            let pruned = by_name.manifest().prune(&candidates, &FileIdentity::new(name, 1));
            assert!(matches!(pruned, Pruned::RowGroups(_)), "{ended} {begun} {name}");
        }
    }
}

/// However many values come at once, all of them are in: around the sizes at which a builder makes
/// space.
#[test]
fn no_value_of_a_piece_is_lost() {
    let mut random = Random(3);
    for count in [1, 1_023, 1_024, 1_025, 1_026, 2_048, 2_049, 2_050, 4_097] {
        let values = random.hashes(count);
        let mut builder = options().builder().unwrap();
        let mut adding = builder.file(FileIdentity::new("a", 1), &[Some("Utf8")], 1).unwrap();
        adding.insert_hashes(0, &values).unwrap();
        let mut stored = adding.end_row_group().unwrap();
        adding.end().unwrap();
        assert_eq!(builder.values(), count as u64);
        stored.extend(builder.finish().unwrap());
        let index = FileIndex::from_bytes(stored).unwrap();
        for &hash in values.iter().rev().take(3) {
            let key_hash = KeyHash::Xxh3 { seed: 0 };
            let lookup = index.manifest().lookup(0, key_hash, |_| true, [hash]).unwrap();
            assert_eq!(index.candidates(&lookup).unwrap().count(), 1, "{count}");
        }
    }
}

/// A row group of more values than there is memory for is not indexed, and always read; of which
/// there are few different ones, it is.
#[test]
fn a_row_group_that_is_too_large_is_always_read() {
    let mut builder = options().with_memory(1 << 20).builder().unwrap();
    let mut random = Random(1);
    let few = random.hashes(30_000);
    let mut stored = Vec::new();
    let mut adding = builder.file(FileIdentity::new("a", 1), &[Some("Utf8")], 4).unwrap();
    for piece in random.hashes(80_000).chunks(999) {
        adding.insert_hashes(0, piece).unwrap();
    }
    stored.extend(adding.end_row_group().unwrap());
    for _ in 0..40 {
        adding.insert_hashes(0, &few).unwrap();
    }
    stored.extend(adding.end_row_group().unwrap());
    adding.insert_hashes(0, &few[..1]).unwrap();
    stored.extend(adding.end_row_group().unwrap());
    // Nearly as many as there is memory for, again and again.
    let many = random.hashes(65_500);
    for _ in 0..40 {
        adding.insert_hashes(0, &many).unwrap();
    }
    stored.extend(adding.end_row_group().unwrap());
    adding.end().unwrap();
    assert_eq!((builder.oversized(), builder.values()), (2, 30_001));
    stored.extend(builder.finish().unwrap());
    let index = FileIndex::from_bytes(&stored).unwrap();
    let file = index.manifest().files().next().unwrap();
    assert!(file.values(0).eq([None, Some(30_000), Some(1), None]));
    let lookup = |hash| {
        let key_hash = KeyHash::Xxh3 { seed: 0 };
        let lookup = index.manifest().lookup(0, key_hash, |_| true, [hash]).unwrap();
        file.candidates(&index.candidates(&lookup).unwrap()).iter().collect::<Vec<_>>()
    };
    assert_eq!(lookup(few[7]), [true, true, false, true]);
    assert_eq!(lookup(few[0]), [true, true, true, true]);
    assert_eq!(lookup(random.next()), [true, false, false, true]);
}

/// What a builder holds, and what its calls return, is within the memory that it was given.
#[test]
fn memory_is_bounded() {
    for (memory, columns_of) in [(1 << 20, 1), (8 << 20, 1), (8 << 20, 3)] {
        let options = FileIndexOptions::new(columns(columns_of), 1).with_memory(memory);
        let mut builder = options.builder().unwrap();
        let mut random = Random(memory);
        let mut most = 0;
        for number in 0..6 {
            let name = number.to_string();
            let types = vec![Some("Utf8"); columns_of];
            let mut adding = builder.file(FileIdentity::new(&name, 1), &types, 1).unwrap();
            for _ in 0..200 {
                for column in 0..columns_of {
                    adding.insert_hashes(column, &random.hashes(1_000)).unwrap();
                }
                most = most.max(adding.memory_bytes());
            }
            let out = adding.end_row_group().unwrap();
            most = most.max(adding.memory_bytes() + out.len() as u64);
            adding.end().unwrap();
        }
        assert!((memory / 3..=memory).contains(&most), "{memory}: {most}");
    }
}

fn count(index: &FileIndex<Vec<u8>>, column: usize, hash: u64) -> u64 {
    let key_hash = index.manifest().columns().nth(column).unwrap().key_hash();
    let lookup = index.manifest().lookup(column, key_hash, |_| true, [hash]).unwrap();
    index.candidates(&lookup).unwrap().count()
}

/// Ten columns of a row group that one column alone would nearly fill the memory with.
#[test]
fn columns_that_end_one_by_one_share_the_memory() {
    for one_by_one in [true, false] {
        let mut builder = FileIndexOptions::new(columns(10), 1).with_memory(4 << 20);
        builder = builder.with_false_row_groups(1.0, 100);
        let mut builder = builder.builder().unwrap();
        let values = 60_000;
        assert!(builder.max_values() > 2 * values && builder.max_values() < 10 * values);
        let mut random = Random(7);
        let hashes: Vec<Vec<u64>> = (0..10).map(|_| random.hashes(values as usize)).collect();
        let types = vec![Some("Utf8"); 10];
        let mut adding = builder.file(FileIdentity::new("a", 1), &types, 1).unwrap();
        let mut stored = Vec::new();
        for (column, hashes) in hashes.iter().enumerate() {
            hashes.chunks(999).for_each(|piece| adding.insert_hashes(column, piece).unwrap());
            assert!(adding.memory_bytes() <= 4 << 20);
            if one_by_one {
                stored.extend(adding.end_column(column).unwrap());
                let error = adding.insert_hashes(column, &[1]).unwrap_err();
                assert_eq!(error, FileIndexError::ColumnEnded { column });
                assert!(adding.end_column(column).is_err());
            }
        }
        stored.extend(adding.end_row_group().unwrap());
        adding.end().unwrap();
        let oversized = builder.oversized();
        stored.extend(builder.finish().unwrap());
        let index = FileIndex::from_bytes(stored).unwrap();
        for (column, hashes) in hashes.iter().enumerate() {
            assert!(hashes.iter().step_by(997).all(|&hash| count(&index, column, hash) == 1));
        }
        assert_eq!(oversized == 0, one_by_one, "{oversized}");
    }
}

#[test]
fn a_column_that_ended_without_its_row_group_is_an_error() {
    let mut builder = options().builder().unwrap();
    let mut adding = builder.file(FileIdentity::new("a", 1), &[Some("Utf8")], 0).unwrap();
    assert!(adding.end_column(1).is_err());
    adding.insert_hashes(0, &[1 << 40]).unwrap();
    adding.end_column(0).unwrap();
    let error = adding.end().unwrap_err();
    assert_eq!(error, FileIndexError::RowGroups { found: 1, expected: 0 });
}

/// Bits per value of many row groups with so many values.
fn bits(options: FileIndexOptions, values: usize) -> f64 {
    let mut builder = options.builder().unwrap();
    let mut random = Random(values as u64);
    let mut stored = Vec::new();
    let row_groups = if values < 1_000 { 1_024 } else { 32 };
    for number in 0..row_groups {
        let name = number.to_string();
        let mut adding = builder.file(FileIdentity::new(&name, 1), &[Some("Utf8")], 1).unwrap();
        adding.insert_hashes(0, &random.hashes(values)).unwrap();
        stored.extend(adding.end_row_group().unwrap());
        adding.end().unwrap();
    }
    stored.extend(builder.finish().unwrap());
    let index = FileIndex::from_bytes(stored).unwrap();
    8.0 * index.manifest().column_bytes(0) as f64 / (row_groups * values) as f64
}

#[test]
#[expect(clippy::print_stdout, reason = "figures to be quoted")]
fn parts_of_the_sizes_of_row_groups_take_few_bits() {
    for (values, most) in [(10, 41.0), (100, 29.0), (300, 26.0), (700, 27.0), (20_000, 26.0)] {
        let default = bits(options(), values);
        let chosen = bits(options().with_row_groups_of(&[values as u64; 9]), values);
        println!("| {values} values | {default:.1} bits a value | {chosen:.1} chosen |");
        assert!(chosen <= most && chosen <= 1.02 * default, "{values}: {default}, {chosen}");
    }
    let fixed = options().with_part_values(64);
    assert_eq!(fixed.clone().with_row_groups_of(&[300; 9]), fixed);
    for none in [&[][..], &[0], &[u64::MAX]] {
        assert_eq!(options().with_row_groups_of(none), options());
    }
}

/// Of one file at a time, or several.
#[test]
#[expect(clippy::print_stdout, reason = "figures to be quoted")]
fn many_small_updates_are_merged() {
    for (columns_of, files, values) in [(1, 1, 3), (3, 1, 700), (2, 3, 300)] {
        let options = FileIndexOptions::new(columns(columns_of), 1);
        let types = vec![Some("Utf8"); columns_of];
        let mut random = Random(5);
        let mut stored = options.builder().unwrap().finish().unwrap();
        let mut rebuilt = options.builder().unwrap();
        let (mut bytes, mut all) = (Vec::new(), Vec::new());
        for update in 0..200 {
            let index = FileIndex::from_bytes(stored).unwrap();
            let (mut builder, mut updated) = index.merging_appender(update, files).unwrap();
            for file in 0..files {
                let name = format!("{update}-{file}");
                let hashes = random.hashes(values);
                for (builder, out) in [(&mut builder, &mut updated), (&mut rebuilt, &mut bytes)] {
                    let mut adding = builder.file(FileIdentity::new(&name, 1), &types, 1).unwrap();
                    for column in 0..columns_of {
                        adding.insert_hashes(column, &hashes[column..]).unwrap();
                    }
                    out.extend(adding.end_row_group().unwrap());
                    adding.end().unwrap();
                }
                all.push(hashes);
            }
            updated.extend(builder.finish().unwrap());
            stored = updated;
        }
        bytes.extend(rebuilt.finish().unwrap());
        let ratio = stored.len() as f64 / bytes.len() as f64;
        println!("200 updates of {files} files take {ratio:.2} times the bytes of a rebuild");
        assert!(ratio <= 2.5, "{ratio}");
        let index = FileIndex::from_bytes(stored).unwrap();
        assert_eq!(index.manifest().files().len() as u64, 200 * files);
        for (number, hashes) in all.iter().enumerate().step_by(7) {
            for column in 0..columns_of {
                let key_hash = index.manifest().columns().nth(column).unwrap().key_hash();
                let hash = [hashes[columns_of - 1]];
                let lookup = index.manifest().lookup(column, key_hash, |_| true, hash).unwrap();
                let found = index.candidates(&lookup).unwrap();
                let file = index.manifest().files().nth(number).unwrap();
                assert!(file.candidates(&found).iter().eq([true]) && found.count() < 4);
            }
        }
    }
}

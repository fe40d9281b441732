//! Every lookup answers as the definition does: of built, appended and compacted indexes, in memory
//! and by ranges.

use blocked_bloom::KeyHash;
use blocked_bloom_file_index::{
    FileIndex, FileIndexError, FileIndexOptions, Pruned, UnknownReason,
};

use crate::naive::{File, Random, Reading, TYPES, add, build, candidates, columns, files};

/// Compares an index with the files that it is of, by row groups and by files.
fn check(stored: &[u8], files: &[&File], random: &mut Random) {
    let reading = Reading::new(stored);
    let index = FileIndex::from_bytes(stored).unwrap();
    let manifest = index.manifest();
    assert_eq!(manifest.files().len(), files.len());
    assert_eq!(reading.files.len(), files.len());
    let row_groups: usize = files.iter().map(|file| file.row_groups.len()).sum();
    assert_eq!(manifest.row_groups(), row_groups as u64);
    for (column, read) in manifest.columns().zip(&reading.columns) {
        assert_eq!(column.name(), read.name);
        let field_id = column.field_id().map_or(0, |field_id| u64::from(field_id as u32) + 1);
        assert_eq!(field_id, read.field_id);
        let hash = match column.key_hash() {
            KeyHash::Caller { tag } => (0, tag),
            KeyHash::Xxh3 { seed } => (1, seed),
            other => panic!("{other}"),
        };
        assert_eq!(hash, read.hash);
        let types: Vec<&str> = manifest.types(manifest.column(&read.name).unwrap()).collect();
        assert_eq!(types, read.types);
    }
    for (number, (file, entry)) in files.iter().zip(manifest.files()).enumerate() {
        let read = &reading.files[number];
        assert_eq!(entry.identity(), file.identity());
        let identity = (&read.name, read.length, &read.etag, &read.version, read.modified);
        let expected = (&file.name, file.length, &file.etag, &file.version, file.modified);
        assert_eq!(identity, expected);
        assert_eq!(entry.row_groups() as usize, file.row_groups.len());
        for (column, own) in file.types.iter().enumerate() {
            assert_eq!(entry.column_type(column), *own);
            assert_eq!(reading.type_of(number, column), *own);
            for (values, row_group) in entry.values(column).zip(&file.row_groups) {
                let expected = row_group[column].as_ref().map(|hashes| {
                    let mut distinct = hashes.clone();
                    distinct.sort_unstable();
                    distinct.dedup();
                    distinct.len() as u64
                });
                assert_eq!(values, expected.filter(|_| own.is_some()));
            }
        }
    }
    for _ in 0..12 {
        let column = random.next_below(reading.columns.len());
        let mut wanted = random.hashes(1);
        for _ in 0..[0, 1, 30][random.next_below(3)] {
            let file = files[random.next_below(files.len())];
            let known = file.row_groups.iter().filter_map(|group| group[column].as_ref());
            let known: Vec<u64> = known.flatten().copied().collect();
            wanted.extend((!known.is_empty()).then(|| known[random.next_below(known.len())]));
        }
        if random.next_below(8) == 0 {
            wanted.clear();
        }
        let wrong_type = if random.next_below(3) == 0 { TYPES[random.next_below(3)] } else { "" };
        let found = candidates(stored, column, |own| own != wrong_type, &wanted);
        let shape = reading.columns[column].shape;
        let mut count = 0;
        for (number, (file, entry)) in files.iter().zip(manifest.files()).enumerate() {
            let is_unknown = file.types[column].is_none_or(|own| own == wrong_type);
            let may_contain = |group: &Vec<Option<Vec<u64>>>| {
                let hashes = group[column].as_ref();
                is_unknown || hashes.is_none_or(|hashes| shape.may_contain(hashes, &wanted))
            };
            let expected: Vec<bool> = file.row_groups.iter().map(may_contain).collect();
            let here = entry.candidates(&found);
            assert!(here.iter().eq(expected.iter().copied()), "{file:?}, {wanted:x?}");
            if file.types[column] != Some(wrong_type) {
                assert_eq!(reading.candidates(number, column, &wanted), expected);
            }
            count += here.count_hits() as u64;
            let pruned = manifest.prune(&found, &file.identity());
            match expected.contains(&true) {
                // Of files of one name, the other may be meant.
                false => assert_eq!(pruned, Pruned::Empty),
                true => assert_eq!(pruned, Pruned::RowGroups(here)),
            }
        }
        assert_eq!(found.count(), count);
    }
}

fn complete(files: &[File]) -> Vec<&File> {
    files.iter().filter(|file| file.is_complete).collect()
}

#[test]
fn answers_are_those_of_the_definition() {
    let mut random = Random(1);
    // The last has several chunks: groups of 512 rows, parts of 16 values.
    for (columns_of, count, most, part_values) in
        [(1, 1, 0, 16), (1, 7, 40, 16), (3, 30, 3_000, 256), (2, 40, 8_000, 16), (3, 40, 700, 512)]
    {
        for false_row_groups in [1.0, 300.0] {
            let options = FileIndexOptions::new(columns(columns_of), random.next())
                .with_part_values(part_values)
                .with_false_row_groups(false_row_groups, 1_000)
                .with_memory(0);
            let files = files(count, columns_of, most, &mut random);
            let stored = build(&options, &files);
            check(&stored, &complete(&files), &mut random);
        }
    }
}

#[test]
fn an_appended_index_answers_like_a_rebuilt_one() {
    let mut random = Random(2);
    for part_values in [16, 100] {
        let options =
            FileIndexOptions::new(columns(2), 1).with_part_values(part_values).with_memory(1 << 20);
        let files = files(60, 2, 2_000, &mut random);
        let mut stored = build(&options, &files[..20]);
        for (tag, more) in [(2, &files[20..23]), (3, &files[23..23]), (4, &files[23..])] {
            let index = FileIndex::from_bytes(&stored).unwrap();
            let mut builder = index.manifest().appender(tag);
            let mut appended = stored[..builder.kept_bytes() as usize].to_vec();
            add(&mut builder, more, &mut appended);
            appended.extend(builder.finish().unwrap());
            stored = appended;
            let count = if tag == 2 || tag == 3 { 23 } else { 60 };
            check(&stored, &complete(&files[..count]), &mut random);
        }
        let index = FileIndex::from_bytes(&stored).unwrap();
        let compacted = index.compact(5, |_| true).unwrap();
        assert!(compacted.len() < stored.len());
        check(&compacted, &complete(&files), &mut random);

        let is_kept = |name: &str| !name.starts_with("day=1");
        let kept = index.compact(6, |file| is_kept(file.identity().name())).unwrap();
        let of_kept = complete(&files).into_iter().filter(|file| is_kept(&file.name));
        check(&kept, &of_kept.collect::<Vec<_>>(), &mut random);
        let none = FileIndex::from_bytes(index.compact(7, |_| false).unwrap()).unwrap();
        assert_eq!((none.manifest().files().len(), none.manifest().row_groups()), (0, 0));
        // And what was compacted can be appended to.
        let mut builder = none.manifest().appender(8);
        let mut appended = none.as_bytes()[..builder.kept_bytes() as usize].to_vec();
        add(&mut builder, &files, &mut appended);
        appended.extend(builder.finish().unwrap());
        check(&appended, &complete(&files), &mut random);
    }
}

/// Compacted, an index is that of the same files built at once.
#[test]
fn compacting_writes_what_building_writes() {
    let mut random = Random(3);
    let mut files = files(40, 2, 3_000, &mut random);
    files.retain(|file| file.is_complete);
    let options = FileIndexOptions::new(columns(2), 9).with_part_values(64);
    let built = build(&options, &files);
    let mut builder = options.builder().unwrap();
    let mut stored = Vec::new();
    add(&mut builder, &files[..10], &mut stored);
    stored.extend(builder.finish().unwrap());
    let index = FileIndex::from_bytes(&stored).unwrap();
    let mut builder = index.manifest().appender(10);
    let mut appended = stored[..builder.kept_bytes() as usize].to_vec();
    add(&mut builder, &files[10..], &mut appended);
    appended.extend(builder.finish().unwrap());
    assert!(appended != built);
    let compacted = FileIndex::from_bytes(&appended).unwrap().compact(9, |_| true).unwrap();
    assert!(compacted == built);
}

/// A column with more parts than one chunk holds, one row group over the boundary and one up to it.
#[test]
fn rows_around_the_end_of_a_chunk_are_copied() {
    let mut random = Random(6);
    for parts in [[512, 512], [500, 600], [511, 1_025]] {
        let options = FileIndexOptions::new(columns(1), 1).with_part_values(16).with_memory(0);
        let mut files = files(2, 1, 1, &mut random);
        for (file, parts) in files.iter_mut().zip(parts) {
            (file.types, file.is_complete) = (vec![Some("Int64")], true);
            file.row_groups = vec![vec![Some(random.hashes(16 * parts))]];
        }
        let stored = build(&options, &files);
        let compacted = FileIndex::from_bytes(&stored).unwrap().compact(1, |_| true).unwrap();
        assert!(compacted == stored, "{parts:?}");
        check(&compacted, &complete(&files), &mut random);
    }
}

#[test]
fn candidates_are_combined_row_group_by_row_group() {
    let mut random = Random(4);
    let files = files(30, 2, 400, &mut random);
    let stored = build(&FileIndexOptions::new(columns(2), 1), &files);
    let index = FileIndex::from_bytes(&stored).unwrap();
    let manifest = index.manifest();
    let values = |column: usize| -> Vec<u64> {
        let groups = files.iter().flat_map(|file| &file.row_groups);
        groups.filter_map(|group| group[column].as_ref()?.first().copied()).take(12).collect()
    };
    let [a, b] = [0, 1].map(|column| candidates(&stored, column, |_| true, &values(column)));
    let (mut both, mut either) = (a.clone(), a.clone());
    both.and(&b).unwrap();
    either.or(&b).unwrap();
    assert!(both.count() < a.count() && a.count() < either.count());
    for file in manifest.files() {
        let [a, b, both, either] = [&a, &b, &both, &either].map(|some| file.candidates(some));
        assert!(a.iter().zip(b.iter()).map(|(a, b)| a && b).eq(both.iter()));
        assert!(a.iter().zip(b.iter()).map(|(a, b)| a || b).eq(either.iter()));
    }
    // Several lookups at once, of one column and of two.
    let lookup = |column: usize, hashes: Vec<u64>| {
        let key_hash = manifest.columns().nth(column).unwrap().key_hash();
        manifest.lookup(column, key_hash, |_| true, hashes).unwrap()
    };
    let lookups = [lookup(0, values(0)), lookup(1, values(1)), lookup(0, random.hashes(3))];
    let located = manifest.locate(&lookups).unwrap();
    let loaded = crate::naive::load(&stored, located.ranges());
    let found = manifest.candidates(&located, &loaded).unwrap();
    for (lookup, found) in lookups.iter().zip(&found) {
        let alone = index.candidates(lookup).unwrap();
        assert!(manifest.files().all(|f| f.candidates(&alone) == f.candidates(found)));
    }
}

#[test]
fn rejects_candidates_of_another_index() {
    let mut random = Random(5);
    let files = files(10, 1, 100, &mut random);
    let stored = build(&FileIndexOptions::new(columns(1), 1), &files);
    let other = build(&FileIndexOptions::new(columns(1), 1), &files[1..]);
    let [index, other] = [stored, other].map(|stored| FileIndex::from_bytes(stored).unwrap());
    let (manifest, key_hash) = (index.manifest(), KeyHash::Xxh3 { seed: 0 });
    let lookups = [manifest.lookup(0, key_hash, |_| true, [1, 2]).unwrap()];
    assert_eq!(other.candidates(&lookups[0]).unwrap_err(), FileIndexError::OtherIndex);
    assert_eq!(other.manifest().locate(&lookups).unwrap_err(), FileIndexError::OtherIndex);
    let located = manifest.locate(&lookups).unwrap();
    let loaded = crate::naive::load(index.as_bytes(), located.ranges());
    let error = other.manifest().candidates(&located, &loaded).unwrap_err();
    assert_eq!(error, FileIndexError::OtherIndex);
    let error = manifest.candidates(&located, &loaded[1..]).unwrap_err();
    let (found, expected) = (loaded.len() - 1, loaded.len());
    assert_eq!(error, FileIndexError::RangeCount { found, expected });
    let found = index.candidates(&lookups[0]).unwrap();
    let pruned = other.manifest().prune(&found, &files[1].identity());
    assert_eq!(pruned, Pruned::Unknown(UnknownReason::OtherIndex));
    let of_other = other.manifest().lookup(0, key_hash, |_| true, [1, 2]).unwrap();
    let mut of_other = other.candidates(&of_other).unwrap();
    assert_eq!(of_other.and(&found).unwrap_err(), FileIndexError::OtherIndex);
    assert_eq!(of_other.or(&found).unwrap_err(), FileIndexError::OtherIndex);
    let file = other.manifest().files().next().unwrap();
    assert_eq!(file.candidates(&found).count_misses(), 0);

    let expected = KeyHash::Xxh3 { seed: 1 };
    let error = manifest.lookup(0, expected, |_| true, [1]).unwrap_err();
    assert_eq!(error, FileIndexError::HashMismatch { found: key_hash, expected });
    let error = manifest.lookup(1, key_hash, |_| true, [1]).unwrap_err();
    assert_eq!(error, FileIndexError::ColumnOutOfRange { column: 1, columns: 1 });
}

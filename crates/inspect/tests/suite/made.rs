//! Files that no fixture has: several row groups of one column, partitions that answer "maybe",
//! planes with items and words.

use blocked_bloom::{Bitmask, KeyHash};
use blocked_bloom_formats::parquet::Value;
use blocked_bloom_inspect::{
    Error, FileRanges, Format, LookupOption, LookupOptions, Opened, Warning, queries,
};
use blocked_bloom_planes::{Planes, PlanesOptions, Shape};
use blocked_bloom_split::SplitBlockFilter;

use crate::sst::{Sst, index};
use crate::stored::encoded;
use crate::written::{BINARY, I32, I64, LIST, STRUCT, binary, list, number, structure};

const INT32: i64 = 1;
const INT64: i64 = 2;
const DOUBLE: i64 = 5;

/// A column of a row group: its path, its type, and the hashes in its filter.
type Chunk<'c> = (&'c [&'c str], i64, &'c [u64]);

/// A Parquet file without data, with the schema of its first row group.
fn parquet(row_groups: &[&[Chunk<'_>]]) -> Vec<u8> {
    let mut bytes = b"PAR1".to_vec();
    let mut groups = Vec::new();
    for row_group in row_groups {
        let mut columns = Vec::new();
        for (path, kind, hashes) in *row_group {
            let mut filter = SplitBlockFilter::with_blocks(16).unwrap();
            filter.insert_hashes(hashes);
            let stored = filter.to_bytes();
            let path: Vec<Vec<u8>> = path.iter().map(|name| binary(name.as_bytes())).collect();
            let metadata = structure(&[
                (1, I32, number(*kind)),
                (3, LIST, list(BINARY, &path)),
                (14, I64, number(bytes.len() as i64)),
                (15, I32, number(stored.len() as i64)),
            ]);
            columns.push(structure(&[(3, STRUCT, metadata)]));
            bytes.extend(stored);
        }
        groups.push(structure(&[(1, LIST, list(STRUCT, &columns)), (3, I64, number(10))]));
    }
    let leaf = |(_, kind, _): &Chunk<'_>| structure(&[(1, I32, number(*kind))]);
    let root = structure(&[(5, I32, number(row_groups[0].len() as i64))]);
    let schema: Vec<Vec<u8>> = [root].into_iter().chain(row_groups[0].iter().map(leaf)).collect();
    let footer = structure(&[(2, LIST, list(STRUCT, &schema)), (4, LIST, list(STRUCT, &groups))]);
    let length = (footer.len() as u32).to_le_bytes();
    [&bytes[..], &footer, &length, b"PAR1"].concat()
}

fn open(bytes: &[u8], format: Format) -> Opened<'_> {
    Opened::new("f", &FileRanges::from(bytes), format, None).unwrap()
}

type FileWithZeros = (Vec<u8>, [Vec<u64>; 3], Vec<usize>);

/// Files with one column of three row groups, whose filters hold -0.0, 0.0 or another number, and
/// the row groups with a zero.
fn files_with_zeros() -> Vec<FileWithZeros> {
    let numbers = [-0.0, 0.0, 1.5].map(|value| Value::Double(value).hash());
    let of = |hashes: &[usize]| hashes.iter().map(|&at| numbers[at]).collect::<Vec<u64>>();
    let cases: [([&[usize]; 3], &[usize]); 5] = [
        ([&[0], &[1], &[2]], &[0, 1]),
        ([&[0, 2], &[2], &[2]], &[0]),
        ([&[2], &[2], &[0]], &[2]),
        ([&[1], &[2], &[2]], &[0]),
        ([&[2], &[2], &[2]], &[]),
    ];
    let file = |(groups, expected): ([&[usize]; 3], &[usize])| {
        let groups = groups.map(of);
        let chunks = groups.each_ref().map(|hashes| [(&["d"][..], DOUBLE, &hashes[..])]);
        let bytes = parquet(&chunks.each_ref().map(|chunks| &chunks[..]));
        (bytes, groups, expected.to_vec())
    };
    cases.into_iter().map(file).collect()
}

/// A zero of either sign is in the row groups with the other one, too.
#[test]
fn row_groups_with_either_zero_are_read() {
    for (bytes, groups, expected) in files_with_zeros() {
        let opened = open(&bytes, Format::PARQUET);
        let column = opened.column("d", &[]).unwrap();
        for keys in [&["0.0"][..], &["-0"], &["7", "0"], &["-0.0", "7"]] {
            assert_eq!(column.row_groups_to_read(keys, false).unwrap(), expected, "{keys:?}");
        }
        // Encoded, a zero is that one alone.
        for zero in [0.0_f64, -0.0] {
            let hash = Value::Double(zero).hash();
            let read = column.row_groups_to_read(&[zero.to_le_bytes()], true).unwrap();
            let having = (0..3).filter(|&group| groups[group].contains(&hash));
            assert!(read.into_iter().eq(having), "{zero:?}");
        }
    }
}

#[test]
fn either_zero_is_found_in_any_row_group() {
    for (bytes, _, expected) in files_with_zeros() {
        let opened = open(&bytes, Format::PARQUET);
        let mut options = LookupOptions::default();
        options.column = Some("d".to_owned());
        let found = opened.lookup(&options).unwrap().contains(&["7", "0", "-0.0", "8"]).unwrap();
        let has = !expected.is_empty();
        assert_eq!(found, [false, has, has, false]);
    }
}

fn refused(bytes: &[u8], name: &str, expected: &str) -> Error {
    let opened = open(bytes, Format::PARQUET);
    let error = opened.column(name, &[]).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
    let mut options = LookupOptions::default();
    options.column = Some(name.to_owned());
    let error = opened.lookup(&options).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
    error
}

#[test]
fn a_column_with_another_type_in_a_row_group_is_refused() {
    let of_type = |kind| [(&["a"][..], INT64, &[1][..]), (&["b"], kind, &[2])];
    let bytes = parquet(&[&of_type(INT32), &of_type(INT32), &of_type(INT64)]);
    let error = refused(&bytes, "b", "column \"b\" has another type in row group 2");
    let Error::Options(message) = error else { panic!("{error}") };
    assert_eq!(message.option(), Some(LookupOption::RowGroups));
    let opened = open(&bytes, Format::PARQUET);
    assert!(opened.column("a", &[]).is_ok());
    assert!(opened.column("b", &[0, 1]).is_ok() && opened.column("b", &[2]).is_ok());
}

/// A dot in a name, and a column within another.
#[test]
fn two_columns_of_one_name_are_refused() {
    let same = [(&["a.b"][..], INT32, &[1][..]), (&["c"], INT32, &[]), (&["a", "b"], INT32, &[2])];
    refused(&parquet(&[&same]), "a.b", "more than one column \"a.b\"");
}

/// The filter passes all keys only if all partitions do.
#[test]
fn partitions_that_pass_all_are_warned_of() {
    let (pass_all, bloom) = ([0, 0, 0, 0, 0], [&[0; 64][..], &[0xff, 0, 6, 0, 0]].concat());
    for (blocks, count, passes_all) in [
        ([&pass_all[..], &pass_all], 2, true),
        ([&pass_all, &bloom], 1, false),
        ([&bloom, &pass_all], 1, false),
        ([&bloom, &bloom], 0, false),
    ] {
        let mut sst = Sst::default();
        let places = blocks.map(|block| sst.block(block));
        let of = |key: &[u8], at: usize| ([key, &[1; 8]].concat(), places[at]);
        let place = sst.block(&index(&[of(b"f", 0), of(b"z", 1)], 1, false));
        let whole = ("rocksdb.block.based.table.whole.key.filtering", &b"1"[..]);
        let order = ("rocksdb.comparator", &b"leveldb.BytewiseComparator"[..]);
        let name = "partitionedfilter.rocksdb.BuiltinBloomFilter";
        let bytes = sst.finish(&[(name, place)], Some(&[whole, order]));
        let opened = open(&bytes, Format::ROCKSDB_SST);
        let lookup = opened.lookup(&encoded()).unwrap();
        assert_eq!(lookup.warnings().len(), count.min(1), "{:?}", lookup.warnings());
        if let [warning] = lookup.warnings() {
            assert!(warning.to_string().starts_with(&format!("{count} of 2 partitions")));
        }
        assert_eq!(lookup.warnings().iter().any(Warning::is_pass_all), passes_all, "{count}");
        let found = lookup.contains(&["a", "x"]).unwrap();
        assert_eq!(found, blocks.map(|block| block == pass_all));
    }
}

/// A phrase may be an item as a whole, or words; without words it is only the former.
#[test]
fn a_phrase_is_an_item_or_its_words() {
    let options = PlanesOptions::new(Shape::new(1, 128, 4).unwrap());
    let hasher = KeyHash::default().hasher().unwrap();
    let items: [&[&str]; 5] = [&["disk full"], &["disk", "full"], &["--"], &["disk"], &[]];
    let rows = items.iter().map(|items| items.iter().map(|item| hasher.hash(item)));
    let planes = Planes::from_hashes(&options, rows).unwrap();
    let mut hits = Bitmask::new();
    for (phrase, expected) in
        [("disk full", vec![0, 1]), ("--", vec![2]), ("disk", vec![1, 3]), ("- -", vec![])]
    {
        let mut found = Vec::new();
        for query in queries(&options, hasher, phrase.as_bytes()) {
            planes.query(&query, &mut hits);
            found.extend(hits.hits());
        }
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, expected, "{phrase}");
    }
}

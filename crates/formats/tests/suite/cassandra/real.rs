//! Files that Cassandra wrote. They are not part of the repository: see
//! `tests/suite/common/fixtures.rs`.
#![expect(clippy::print_stdout, reason = "a run shows what it covered")]

use std::io::Read;
use std::path::Path;

use blocked_bloom::Bitmask;
use blocked_bloom_formats::cassandra::{CassandraFilter, Layout, Shape, diagnose, hash_key};

use super::naive;
use crate::fixtures::{external, unhex};

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The fields of every line but comments and the heading.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = text(path);
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines.map(|line| line.split(',').map(String::from).collect()).collect()
}

struct Query {
    key: Vec<u8>,
    added: bool,
    expected: bool,
}

fn queries(path: &Path) -> Vec<Query> {
    let query = |row: Vec<String>| Query {
        key: unhex(&row[0]),
        added: row[1] == "1",
        expected: row[2] == "1",
    };
    rows(path).into_iter().map(query).collect()
}

/// Compares every answer, of single keys and of a batch, and the bytes with the writer's. Returns
/// how many answers.
fn check(path: &Path, layout: Layout, queries: &[Query], mut written: CassandraFilter) -> usize {
    let name = path.display();
    let bytes = std::fs::read(path).unwrap();
    let filter = CassandraFilter::from_bytes(&bytes, layout).unwrap();
    let keys: Vec<&[u8]> = queries.iter().map(|query| &query.key[..]).collect();
    let mut hits = Bitmask::new();
    filter.contains_batch(&keys, &mut hits);
    for (i, query) in queries.iter().enumerate() {
        let Query { key, added, expected } = query;
        assert_eq!(filter.contains(key), *expected, "{name}: {key:02x?}");
        assert_eq!(hits.get(i), Some(*expected), "{name}: {key:02x?} in a batch");
        assert_eq!(naive::contains(&bytes, layout, naive::murmur3(key)), *expected, "{name}");
        assert!(*expected || !added, "{name}: {key:02x?} was added");
    }
    written.extend(queries.iter().filter(|query| query.added).map(|it| &it.key));
    assert_eq!(written.view().shape(), filter.shape(), "{name}");
    assert!(written.into_inner() == bytes, "{name}: the writer's bytes differ");
    queries.len()
}

#[test]
#[ignore = "reads files of the folder BLOCKED_BLOOM_FIXTURES"]
fn every_answer_of_every_fixture() {
    let folder = external("cassandra").expect("the folder of fixtures");
    let (mut files, mut answers, mut mislabelled) = (0, 0, Vec::new());
    for row in rows_with_quotes(&folder.join("expected_index.csv")) {
        let [name, version, bits, order, hash_count, words, ..] = &row[..] else {
            panic!("{row:?}")
        };
        let layout = match (bits.starts_with("old"), order.starts_with("old")) {
            (true, true) => Layout::UpTo2,
            (true, false) => Layout::Since3,
            (false, false) => Layout::Since4,
            other => panic!("{name}: {other:?}"),
        };
        let path = folder.join(name);
        let queries = queries(&folder.join(name.replace("Filter.db", "keys.csv")));
        let named = Layout::from_file_name(path.to_str().unwrap()).unwrap();
        assert_eq!(Layout::from_version(version), Ok(named), "{name}");
        let added: Vec<_> = queries.iter().filter(|query| query.added).map(|it| &it.key).collect();
        let bytes = std::fs::read(&path).unwrap();
        let diagnosis = diagnose(&bytes, &added).unwrap();
        assert_eq!(diagnosis.found(layout), added.len(), "{name}");
        // A file of two keys can fit two layouts: then nothing is claimed. No wrong one is ever
        // named.
        assert!(diagnosis.layout() == Some(layout) || added.len() < 3, "{name}: {diagnosis:?}");
        if named != layout {
            assert!(diagnosis.found(named) < added.len(), "{name}: {diagnosis:?}");
            println!("{name}: named {named}, is {layout}: {diagnosis:?}");
            mislabelled.push(version.clone());
        }
        let (probes, words) = (hash_count.parse().unwrap(), words.parse().unwrap());
        let shape = Shape::new(layout, probes, words).unwrap();
        let written = CassandraFilter::with_shape(shape).unwrap();
        answers += check(&path, layout, &queries, written);
        files += 1;
    }
    assert_eq!(mislabelled, ["la", "na"]);
    let folder = folder.join("generated");
    for row in rows(&folder.join("index.csv")) {
        let [name, family, partitions, fp_chance, ..] = &row[..] else { panic!("{row:?}") };
        let (partitions, fp_chance) =
            (partitions.parse::<i32>().unwrap(), fp_chance.parse().unwrap());
        let queries = queries(&folder.join(format!("{name}.csv")));
        for version in ["ma", "nb"] {
            let layout = Layout::from_version(version).unwrap();
            let path = folder.join(format!("{name}-{version}-Filter.db"));
            let mut written = CassandraFilter::new(layout, partitions as u64, fp_chance).unwrap();
            if family == "int" {
                // Of the largest, the list has every tenth key.
                written.extend((0..partitions).map(|i| (7 * i).to_be_bytes()));
            }
            answers += check(&path, layout, &queries, written);
            files += 1;
        }
    }
    println!(
        "cassandra: {files} fixtures, {answers} answers checked (no kernels: a classical filter)"
    );
    assert_eq!((files, answers), (38, 13_323 + 2 * 32_971));
}

/// As [`rows`], with commas inside quotes left where they are.
fn rows_with_quotes(path: &Path) -> Vec<Vec<String>> {
    let unquoted = |line: &str| {
        let fields = line.split('"').enumerate();
        fields
            .map(|(i, part)| if i % 2 == 1 { part.replace(',', ";") } else { part.into() })
            .collect::<String>()
    };
    let text = text(path);
    text.lines().skip(1).map(|line| unquoted(line).split(',').map(String::from).collect()).collect()
}

#[test]
#[ignore = "reads files of the folder BLOCKED_BLOOM_FIXTURES"]
fn the_hash_of_every_vector() {
    let folder = external("cassandra/generated").expect("the folder of fixtures");
    let rows = rows(&folder.join("murmur3_vectors.csv"));
    for row in &rows {
        let hash = hash_key(unhex(&row[0]));
        assert_eq!(
            [row[1].clone(), row[2].clone()],
            [hash.h1, hash.h2].map(|half| format!("{half:016x}"))
        );
    }
    println!("cassandra: {} hashes checked", rows.len());
    assert_eq!(rows.len(), 213);
}

#[test]
#[ignore = "reads files of the folder BLOCKED_BLOOM_FIXTURES"]
fn cassandras_own_large_goldens() {
    let folder = external("cassandra/serialization").expect("the folder of fixtures");
    for (version, layout) in [("3.0", Layout::Since3), ("4.0", Layout::Since4)] {
        let file =
            std::fs::File::open(folder.join(format!("utils.BloomFilter1000-{version}.bin.gz")));
        let mut stored = Vec::new();
        flate2::read::GzDecoder::new(file.unwrap()).read_to_end(&mut stored).unwrap();
        let filter = CassandraFilter::from_bytes(&stored, layout).unwrap();
        let keys: Vec<[u8; 4]> = (0..2_000_i32).map(i32::to_be_bytes).collect();
        let mut hits = Bitmask::new();
        filter.contains_batch(&keys, &mut hits);
        assert!(hits.hits().eq(0..1_000), "{version}");
        assert!(keys.iter().enumerate().all(|(i, key)| filter.contains(key) == (i < 1_000)));

        let mut written = CassandraFilter::with_shape(filter.shape()).unwrap();
        written.extend(&keys[..1_000]);
        assert!(written.into_inner() == stored, "{version}: the writer's bytes differ");
        assert_eq!(diagnose(&stored, &keys[..3]).unwrap().layout(), Some(layout));
    }
}

#[test]
#[ignore = "reads files of the folder BLOCKED_BLOOM_FIXTURES"]
fn sizes_are_cassandras() {
    let folder = external("cassandra").expect("the folder of fixtures");
    let specs = rows(&folder.join("generated/spec.csv"));
    for row in &specs {
        let shape =
            Shape::for_partitions(Layout::Since4, row[1].parse().unwrap(), row[0].parse().unwrap());
        let shape = shape.unwrap();
        assert_eq!([shape.probes().to_string(), shape.words().to_string()], row[2..], "{row:?}");
    }
    assert_eq!(specs.len(), 102);

    // Every entry of the table, its neighbours, and a sweep between: the computed table and the
    // listed one choose alike.
    let mut table: Vec<Vec<f64>> = vec![Vec::new(); 21];
    for row in rows(&folder.join("probabilities.csv")) {
        let (bits, k): (usize, usize) = (row[0].parse().unwrap(), row[1].parse().unwrap());
        table[bits].push(row[2].parse().unwrap());
        assert_eq!(table[bits].len(), k);
    }
    let listed =
        table.iter().flatten().flat_map(|&entry| [entry.next_down(), entry, entry.next_up()]);
    let chances = listed.chain((1..20_000).map(|i| f64::from(i) / 20_000.0));
    let mut sizes = 0;
    for fp_chance in chances.filter(|chance| (6.71e-5..1.0).contains(chance)) {
        for partitions in [0, 1, 77, 1_000_000] {
            let shape = Shape::for_partitions(Layout::Since3, partitions, fp_chance).unwrap();
            let expected = naive::size(&table, partitions, fp_chance);
            assert_eq!((shape.probes(), u64::from(shape.words())), expected, "{fp_chance}");
            sizes += 1;
        }
    }
    println!("cassandra: {} sizes of Cassandra's and {sizes} by its table checked", specs.len());
}

//! All stored filters of the tests: those of other systems with these systems' answers, and one of
//! each format of this project.

use std::fs;
use std::path::{Path, PathBuf};

use blocked_bloom::{FilterOptions, KeyHash, PrefixExtractor, Sizing};
use blocked_bloom_file_index::{Column, FileIdentity, FileIndexOptions};
use blocked_bloom_formats::rocksdb::RibbonBlockBuilder;
use blocked_bloom_inspect::{
    Error, FileRanges, Format, Layout, LookupOptions, Opened, PhysicalType, recognise,
};
use blocked_bloom_lsm::PartitionedFilterBuilder;
use blocked_bloom_planes::{Planes, PlanesOptions, Shape};
use blocked_bloom_range::RangeOptions;
use blocked_bloom_removable::{RemovableFilter, RemovableOptions};
use blocked_bloom_ribbon::RibbonOptions;
use blocked_bloom_scalable::ScalableOptions;

use crate::fixtures::{committed, external, unhex};

/// Keys in the form that lookups take, and the answers of the system that wrote the filter.
pub(crate) type Answers = Vec<(Vec<u8>, bool)>;

pub(crate) struct StoredFilter {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) format: Format,
    /// Whether nothing marks the format, so that it must be given.
    pub(crate) is_unmarked: bool,
    pub(crate) layout: Option<Layout>,
    pub(crate) lookups: Vec<(LookupOptions, Answers)>,
}

impl StoredFilter {
    pub(crate) fn open(&self) -> Result<Opened<'_>, Error> {
        self.open_bytes(&self.bytes)
    }

    pub(crate) fn open_bytes<'b>(&self, bytes: &'b [u8]) -> Result<Opened<'b>, Error> {
        Opened::new(&self.name, &FileRanges::from(bytes), self.format, self.layout)
    }

    /// Returns whether a checksum covers all bytes that answers depend on.
    pub(crate) fn has_checksums(&self) -> bool {
        let with = [
            Format::FILE_INDEX,
            Format::GROWING,
            Format::NATIVE,
            Format::PARTITION_INDEX,
            Format::PLANES,
            Format::RANGE,
            Format::REMOVABLE,
            Format::RIBBON,
            Format::ROCKSDB_SST,
        ];
        with.contains(&self.format) && !self.name.contains("no_checksum")
    }
}

/// Options for keys that are bytes.
pub(crate) fn encoded() -> LookupOptions {
    let mut options = LookupOptions::default();
    options.encoded = true;
    options
}

/// Returns the result of `recognise` for whole bytes.
pub(crate) fn format_of(name: &str, bytes: &[u8]) -> Option<Format> {
    let (head, tail) = (bytes.len().min(64), bytes.len().saturating_sub(64));
    recognise(name, &bytes[..head], &bytes[tail..], Some(bytes.len() as u64)).ok()
}

fn rows(path: &Path) -> Vec<Vec<String>> {
    let csv = fs::read_to_string(path).unwrap();
    csv.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.to_string_lossy().ends_with(end)).collect();
    files.sort();
    assert!(!files.is_empty(), "no {end} in {}", folder.display());
    files
}

fn read_file(path: &Path, format: Format) -> StoredFilter {
    let bytes = fs::read(path).unwrap();
    StoredFilter {
        name: path.display().to_string(),
        bytes,
        format,
        is_unmarked: false,
        layout: None,
        lookups: Vec::new(),
    }
}

/// Reads keys from the cell `key` of each row, in hexadecimal digits, and answers from the cell
/// `answer`.
fn hex_answers(csv: &Path, key: usize, answer: usize) -> Answers {
    rows(csv).iter().map(|row| (unhex(&row[key]), row[answer] == "1")).collect()
}

fn rocksdb(all: &mut Vec<StoredFilter>) {
    for path in files(&committed("rocksdb"), ".sst") {
        let mut stored = read_file(&path, Format::ROCKSDB_SST);
        stored.lookups.push((encoded(), hex_answers(&path.with_extension("csv"), 0, 2)));
        all.push(stored);
    }
    for path in files(&committed("rocksdb/matrix"), ".sst") {
        let mut stored = read_file(&path, Format::ROCKSDB_SST);
        let absent = (0..200).map(|i| (format!("nobody {i}").into_bytes(), false)).collect();
        // Not all of these look up whole keys; the test is that all readers agree.
        stored.lookups.push((encoded(), absent));
        all.push(stored);
    }
    let folder = committed("rocksdb/raw");
    for row in rows(&folder.join("raw_answers.csv")) {
        let (name, family) = (&row[0], &row[1]);
        if name.contains("_n0_") {
            continue; // Five bytes, which are an error.
        }
        let mut stored = read_file(&folder.join(format!("{name}.filter")), Format::ROCKSDB_BLOCK);
        stored.is_unmarked = name.contains("ribbon") || name.contains("legacy");
        let keys = fs::read_to_string(folder.join(format!("keys_{family}_absent.hex"))).unwrap();
        let keys = keys.lines().map(unhex).zip(row[4].bytes().map(|answer| answer == b'1'));
        stored.lookups.push((encoded(), keys.collect()));
        all.push(stored);
    }
}

fn parquet(all: &mut Vec<StoredFilter>) {
    for path in files(&committed("parquet"), ".parquet") {
        let mut stored = read_file(&path, Format::PARQUET);
        let rows = rows(&path.with_extension("csv"));
        let mut columns: Vec<&str> = rows.iter().map(|row| &row[1][..]).collect();
        columns.dedup();
        for column in columns {
            let of_column = rows.iter().filter(|row| row[1] == column);
            let answers: Vec<(Vec<u8>, String)> =
                of_column.map(|row| (unhex(&row[3]), row[5].clone())).collect();
            for group in 0..answers[0].1.len() {
                let mut options = encoded();
                options.column = Some(column.to_owned());
                options.row_groups = vec![group];
                let hit = |answer: &String| answer.as_bytes()[group] == b'1';
                let answers = answers.iter().map(|(key, answer)| (key.clone(), hit(answer)));
                stored.lookups.push((options, answers.collect()));
            }
        }
        all.push(stored);
    }
    for path in files(&committed("parquet/raw"), ".sbbf") {
        if path.to_string_lossy().contains("arrowrs") {
            let mut stored = read_file(&path, Format::PARQUET_FILTER);
            let mut options = encoded();
            options.value_type = Some(PhysicalType::ByteArray);
            let keys = (0..100_u32).map(|i| (format!("key {i}").into_bytes(), true)).collect();
            stored.lookups.push((options, keys));
            // Another file has the keys; this one only tests that all readers agree.
            stored.lookups[0].1.iter_mut().for_each(|(_, hit)| *hit = false);
            all.push(stored);
        }
    }
}

fn java(all: &mut Vec<StoredFilter>) {
    for path in files(&committed("guava"), ".bin") {
        let mut stored = read_file(&path, Format::GUAVA);
        stored.lookups.push((encoded(), hex_answers(&path.with_extension("csv"), 0, 2)));
        all.push(stored);
    }
    for path in files(&committed("spark"), ".bin") {
        let mut stored = read_file(&path, Format::SPARK);
        let rows = rows(&path.with_extension("csv"));
        let of = |kind: &str| rows.iter().filter(move |row| row[0] == kind).collect::<Vec<_>>();
        let bytes = of("bin").iter().map(|row| (unhex(&row[1]), row[3] == "1")).collect();
        stored.lookups.push((encoded(), bytes));
        let mut options = LookupOptions::default();
        options.value_type = Some(PhysicalType::Int64);
        let numbers = of("long").iter().map(|row| (row[1].clone().into(), row[3] == "1")).collect();
        stored.lookups.push((options, numbers));
        let mut options = encoded();
        options.value_type = Some(PhysicalType::Int64);
        let plain = |text: &str| text.parse::<i64>().unwrap().to_le_bytes().to_vec();
        let numbers = of("long").iter().map(|row| (plain(&row[1]), row[3] == "1")).collect();
        stored.lookups.push((options, numbers));
        // Spark hashes integers of 32 bits as longs.
        let longs = of("long").into_iter();
        let narrow = longs.filter_map(|row| Some((row[1].parse::<i32>().ok()?, row[3] == "1")));
        let narrow: Vec<(i32, bool)> = narrow.collect();
        assert!(narrow.iter().any(|number| number.1) && narrow.len() >= 500);
        for is_encoded in [false, true] {
            let mut options = if is_encoded { encoded() } else { LookupOptions::default() };
            options.value_type = Some(PhysicalType::Int32);
            let key = |number: i32| match is_encoded {
                true => number.to_le_bytes().to_vec(),
                false => number.to_string().into(),
            };
            stored.lookups.push((options, narrow.iter().map(|&(n, hit)| (key(n), hit)).collect()));
        }
        all.push(stored);
    }
    let path = committed("cassandra").join("nb-1-big-Filter.db");
    let mut stored = read_file(&path, Format::CASSANDRA);
    let keys = fs::read_to_string(path.with_file_name("keys.txt")).unwrap();
    stored.lookups.push((
        LookupOptions::default(),
        keys.lines().map(|key| (key.to_owned().into_bytes(), true)).collect(),
    ));
    all.push(stored);
}

/// Number of keys in each filter of this project; the next key is absent.
pub(crate) const KEYS: u32 = 2_000;

pub(crate) fn key(i: u32) -> Vec<u8> {
    format!("key {i:06}").into_bytes()
}

fn native_filters(all: &mut Vec<StoredFilter>) {
    let keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
    let options = FilterOptions::new(Sizing::BitsPerKey(12.0));
    let mut add = |name: &str, format, bytes: Vec<u8>| {
        let lookups =
            vec![(LookupOptions::default(), keys.iter().map(|key| (key.clone(), true)).collect())];
        let name = name.to_owned();
        let is_unmarked = [Format::COMPACT, Format::ROCKSDB_BLOCK].contains(&format);
        all.push(StoredFilter { name, bytes, format, is_unmarked, layout: None, lookups });
    };
    let build = |options: &FilterOptions| {
        let mut builder = options.builder();
        builder.extend(&keys).unwrap();
        builder.finish().unwrap()
    };
    add("native", Format::NATIVE, build(&options).to_bytes());
    let compact = build(&options).to_compact_bytes().unwrap();
    add("compact", Format::COMPACT, compact);
    let prefixes = options.clone().with_prefixes(PrefixExtractor::fixed(5));
    add("prefixes", Format::NATIVE, build(&prefixes).to_bytes());
    let mut growing = ScalableOptions::for_filters(&options, 100).unwrap().build().unwrap();
    keys.iter().for_each(|key| _ = growing.insert(key).unwrap());
    assert!(growing.links().len() > 2);
    add("growing", Format::GROWING, growing.to_bytes());
    let mut ribbon = RibbonOptions::new(0.01).builder();
    ribbon.extend(&keys).unwrap();
    add("ribbon", Format::RIBBON, ribbon.finish().unwrap().as_bytes().to_vec());
    let mut range = RangeOptions::new(16.0).builder();
    let mut sorted: Vec<&[u8]> = keys.iter().map(|key| key.as_ref()).collect();
    sorted.sort_unstable();
    sorted.iter().for_each(|&key| range.insert(key).unwrap());
    add("range", Format::RANGE, range.finish().unwrap().as_bytes().to_vec());
    let mut removable = RemovableOptions::new(KEYS.into()).empty_filter().unwrap();
    removable.insert_batch(&keys).unwrap();
    add("removable", Format::REMOVABLE, RemovableFilter::to_bytes(&removable));
    let mut block = RibbonBlockBuilder::new(10.0).unwrap();
    block.extend(&keys);
    add("ribbon-block", Format::ROCKSDB_BLOCK, block.finish().unwrap());
    let mut parts = PartitionedFilterBuilder::new(options.clone(), 512).unwrap();
    for key in &keys {
        parts.insert(key).unwrap();
    }
    let (_, index) = parts.finish().unwrap();
    add("partition-index", Format::PARTITION_INDEX, index);
    let hasher = options.hasher().unwrap();
    let planes = PlanesOptions::new(Shape::new(1, 512, 4).unwrap());
    let rows = keys.chunks(10).map(|keys| keys.iter().map(|key| hasher.hash(key)).collect());
    let rows: Vec<Vec<u64>> = rows.collect();
    let planes = Planes::from_hashes(&planes, rows).unwrap();
    add("planes", Format::PLANES, planes.as_bytes().to_vec());
    // The seed of strings, which identifies how their keys were hashed.
    let column = Column::new("id", KeyHash::Xxh3 { seed: 3 });
    let hasher = column.hasher().unwrap();
    let mut builder = FileIndexOptions::new(vec![column], 1).builder().unwrap();
    let mut stored = Vec::new();
    for (number, keys) in keys.chunks(500).enumerate() {
        let name = format!("part-{number}.parquet");
        let file = FileIdentity::new(&name, 1).with_etag("1");
        let mut file = builder.file(file, &[Some("Utf8")], 2).unwrap();
        for keys in keys.chunks(250) {
            let hashes: Vec<u64> = keys.iter().map(|key| hasher.hash(key)).collect();
            file.insert_hashes(0, &hashes).unwrap();
            stored.extend(file.end_row_group().unwrap());
        }
        file.end().unwrap();
    }
    stored.extend(builder.finish().unwrap());
    add("file-index", Format::FILE_INDEX, stored);
}

/// Returns the filters outside of the repository: files of Cassandra and RedisBloom.
pub(crate) fn external_filters() -> Vec<StoredFilter> {
    let mut outside = Vec::new();
    let folder = external("cassandra/generated").expect("the folder of fixtures");
    for path in files(&folder, "-Filter.db") {
        let name = path.display().to_string();
        let (stem, version) = name.strip_suffix("-Filter.db").unwrap().rsplit_once('-').unwrap();
        let mut stored = read_file(&path, Format::CASSANDRA);
        stored.layout = Some(Layout::from_version(version).unwrap());
        stored.lookups.push((encoded(), hex_answers(format!("{stem}.csv").as_ref(), 0, 2)));
        outside.push(stored);
    }
    let folder = external("redisbloom").expect("the folder of fixtures");
    for path in files(&folder, ".scandump") {
        let mut stored = read_file(&path, Format::REDISBLOOM);
        stored.lookups.push((encoded(), hex_answers(&path.with_extension("csv"), 0, 2)));
        outside.push(stored);
    }
    outside
}

/// Returns all filters that the repository itself contains.
pub(crate) fn all_filters() -> Vec<StoredFilter> {
    let mut all = Vec::new();
    rocksdb(&mut all);
    parquet(&mut all);
    java(&mut all);
    native_filters(&mut all);
    assert!(all.len() > 70, "only {}", all.len());
    all
}

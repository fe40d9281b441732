//! The definition of an index, written to be read: what values are in which row group, and the
//! bytes read one by one as `docs/file-index.md` and `docs/planes.md` say. Shares with the crate
//! only XXH3, by the core.

use std::collections::BTreeSet;
use std::ops::Range;

use blocked_bloom::{KeyHash, KeyHasher};
use blocked_bloom_file_index::{
    Candidates, Column, FileIdentity, FileIndex, FileIndexBuilder, FileIndexOptions, Manifest,
};

/// Numbers that look like random ones.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(crate) fn next_below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub(crate) fn hashes(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.next()).collect()
    }
}

/// A file as it was, or is, with the hashes of each column in each row group: `None` if they are
/// not known.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) length: u64,
    pub(crate) etag: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) modified: Option<i64>,
    pub(crate) types: Vec<Option<&'static str>>,
    pub(crate) row_groups: Vec<Vec<Option<Vec<u64>>>>,
    /// Whether it was added to the end.
    pub(crate) is_complete: bool,
}

impl File {
    pub(crate) fn identity(&self) -> FileIdentity<'_> {
        let mut identity = FileIdentity::new(&self.name, self.length);
        if let Some(etag) = &self.etag {
            identity = identity.with_etag(etag);
        }
        if let Some(version) = &self.version {
            identity = identity.with_version(version);
        }
        match self.modified {
            Some(modified) => identity.with_modified(modified),
            None => identity,
        }
    }
}

pub(crate) const TYPES: [&str; 3] = ["Int64", "Utf8", "Decimal128(9, 2)"];

/// Files of up to six row groups of `columns` columns, with up to `most` values each.
pub(crate) fn files(count: usize, columns: usize, most: usize, random: &mut Random) -> Vec<File> {
    let common = random.hashes(50);
    let file = |number| {
        let types: Vec<_> =
            (0..columns)
                .map(|_| {
                    if random.next_below(8) == 0 { None } else { Some(TYPES[random.next_below(3)]) }
                })
                .collect();
        let mut values = |is_known: bool| {
            let count = match random.next_below(6) {
                0 => 0,
                1 => random.next_below(most + 1),
                _ => random.next_below(most / 8 + 1),
            };
            let value = |_| match random.next_below(4) {
                0 => common[random.next_below(50)],
                _ => random.next(),
            };
            let values: Vec<u64> = (0..count).map(value).collect();
            (is_known && random.next_below(20) > 0).then_some(values)
        };
        let count = (number * 5 + 3) % 7;
        let row_groups =
            (0..count).map(|_| types.iter().map(|own| values(own.is_some())).collect()).collect();
        File {
            name: format!("day={}/part-{number}.parquet", number % 3),
            length: 1_000 + number as u64,
            etag: Some(format!("\"{number:x}\"")),
            version: (number % 3 == 0).then(|| format!("v{number}")),
            modified: (number % 2 == 0).then_some(number as i64 - 3),
            types,
            row_groups,
            is_complete: number % 9 != 4,
        }
    };
    (0..count).map(file).collect()
}

pub(crate) fn columns(count: usize) -> Vec<Column> {
    let column = |i: usize| {
        let key_hash = match i % 3 {
            2 => KeyHash::Caller { tag: 77 },
            seed => KeyHash::Xxh3 { seed: seed as u64 },
        };
        let column = Column::new(format!("column_{i}"), key_hash);
        if i % 2 == 1 { column.with_field_id(-(i as i32)) } else { column }
    };
    (0..count).map(column).collect()
}

/// Adds files, and appends the bytes that the builder returns.
pub(crate) fn add(builder: &mut FileIndexBuilder, files: &[File], stored: &mut Vec<u8>) {
    for file in files {
        let row_groups = file.row_groups.len() as u32;
        let mut adding = builder.file(file.identity(), &file.types, row_groups).unwrap();
        for row_group in &file.row_groups {
            for (column, hashes) in row_group.iter().enumerate() {
                match hashes {
                    // In pieces, some of them twice.
                    Some(hashes) => hashes.chunks(100).for_each(|piece| {
                        adding.insert_hashes(column, piece).unwrap();
                        adding.insert_hashes(column, &piece[..piece.len() / 3]).unwrap();
                    }),
                    None => adding.set_unknown(column).unwrap(),
                }
            }
            stored.extend(adding.end_row_group().unwrap());
        }
        if file.is_complete {
            adding.end().unwrap();
        }
    }
}

pub(crate) fn build(options: &FileIndexOptions, files: &[File]) -> Vec<u8> {
    let mut builder = options.builder().unwrap();
    let mut stored = Vec::new();
    add(&mut builder, files, &mut stored);
    stored.extend(builder.finish().unwrap());
    stored
}

/// The part of a hash, in integers that cannot overflow.
fn part(hash: u64, parts: u64) -> u64 {
    let mixed = u128::from(hash ^ (hash >> 29)) * 0xd6e8_feb8_6659_fd93 % (1 << 64);
    (((mixed >> 32) * u128::from(parts)) >> 32) as u64
}

/// The shape of parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) blocks: u32,
    pub(crate) bits: u32,
    pub(crate) probes: u32,
    pub(crate) part_values: u64,
}

impl Shape {
    fn planes(&self, hash: u64) -> BTreeSet<usize> {
        let (n, m) = (u128::from(self.blocks), u128::from(self.bits));
        let (lo, mut product) = (u128::from(hash) % (1 << 32), u128::from(hash) >> 32);
        let block = (lo * n) >> 32;
        let mut planes = BTreeSet::new();
        for _ in 0..self.probes {
            planes.insert((block * m + ((product * m) >> 32)) as usize);
            product = product * 0x9e37_79b9 % (1 << 32);
        }
        planes
    }

    /// Whether a row group with these values may have one of some others.
    pub(crate) fn may_contain(&self, values: &[u64], wanted: &[u64]) -> bool {
        let distinct: BTreeSet<u64> = values.iter().copied().collect();
        let parts = (distinct.len() as u64).div_ceil(self.part_values);
        wanted.iter().any(|&hash| {
            let mine = distinct.iter().filter(|&&other| part(other, parts) == part(hash, parts));
            let planes: BTreeSet<usize> = mine.flat_map(|&other| self.planes(other)).collect();
            parts > 0 && self.planes(hash).is_subset(&planes)
        })
    }
}

/// An index read by the definition.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) columns: Vec<ReadColumn>,
    pub(crate) files: Vec<ReadFile>,
}

#[derive(Debug)]
pub(crate) struct ReadColumn {
    pub(crate) name: String,
    pub(crate) field_id: u64,
    pub(crate) shape: Shape,
    pub(crate) hash: (u8, u64),
    pub(crate) types: Vec<String>,
    /// Its rows, as the numbers of the planes that they are in.
    rows: Vec<BTreeSet<usize>>,
}

#[derive(Debug)]
pub(crate) struct ReadFile {
    pub(crate) name: String,
    pub(crate) length: u64,
    pub(crate) etag: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) modified: Option<i64>,
    /// By column and row group: the first row and how many values.
    row_groups: u64,
    columns: Vec<(u64, Vec<Rows>)>,
}

/// The first row of a row group and how many values it has, unless that is not known.
type Rows = Option<(usize, u64)>;

struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn take(&mut self, count: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken.to_vec()
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().unwrap())
    }

    fn number(&mut self) -> u64 {
        let mut number = 0;
        for shift in 0.. {
            let byte = u64::from(self.take(1)[0]);
            number += (byte % 128) << (7 * shift);
            if byte < 128 {
                break;
            }
        }
        number
    }

    fn text(&mut self) -> String {
        let length = self.number() as usize;
        String::from_utf8(self.take(length)).unwrap()
    }
}

fn integer_at(bytes: &[u8], offset: usize, length: usize) -> u64 {
    (0..length).map(|i| u64::from(bytes[offset + i]) << (8 * i)).sum()
}

fn check_record(record: &[u8], magic: &[u8; 8]) {
    assert_eq!((&record[..8], record.len()), (&magic[..], 64));
    assert_eq!(integer_at(record, 8, 2), 1, "version");
    assert_eq!(integer_at(record, 56, 8), KeyHasher::default().hash(&record[..56]));
}

/// The rows of planes.
fn read_planes(stored: &[u8]) -> Vec<BTreeSet<usize>> {
    let last = &stored[stored.len() - 64..];
    check_record(last, b"\x89BBPLNS\n");
    assert_eq!(last[13], 6, "the last record, and a short last group");
    let (planes, rows) =
        (integer_at(last, 14, 2) * integer_at(last, 24, 4), integer_at(last, 40, 8) as usize);
    let group_rows = integer_at(last, 28, 4) as usize;
    let (mut read, mut offset) = (vec![BTreeSet::new(); rows], 64);
    for first in (0..rows).step_by(group_rows) {
        let here = group_rows.min(rows - first);
        let length = here.next_multiple_of(64) / 8;
        for plane in 0..planes as usize {
            for row in 0..here {
                if stored[offset + row / 8] >> (row % 8) & 1 == 1 {
                    read[first + row].insert(plane);
                }
            }
            offset += length + 8;
        }
        offset += 64;
    }
    assert_eq!(offset + 64, stored.len());
    read
}

impl Reading {
    pub(crate) fn new(stored: &[u8]) -> Self {
        let (first, trailer) = (&stored[..64], &stored[stored.len() - 64..]);
        check_record(first, b"\x89BBFIDX\n");
        assert_eq!(first[10..56], [0; 46]);
        check_record(trailer, b"\x89BBFIDX\n");
        let [offset, length] = [16, 24].map(|field| integer_at(trailer, field, 8) as usize);
        assert_eq!(offset + length + 64, stored.len());
        let manifest = &stored[offset..offset + length];
        assert_eq!(integer_at(trailer, 32, 8), KeyHasher::default().hash(manifest));

        let mut bytes = Bytes(manifest);
        let mut columns = Vec::new();
        for _ in 0..bytes.number() {
            let (name, field_id, part_values) = (bytes.text(), bytes.number(), bytes.number());
            let record = bytes.take(64);
            check_record(&record, b"\x89BBPLNS\n");
            let shape = Shape {
                blocks: integer_at(&record, 24, 4) as u32,
                bits: integer_at(&record, 14, 2) as u32,
                probes: record[12].into(),
                part_values,
            };
            let hash = (record[11], integer_at(&record, 16, 8));
            let types = (0..bytes.number()).map(|_| bytes.text()).collect();
            columns.push(ReadColumn { name, field_id, shape, hash, types, rows: Vec::new() });
        }
        let mut begin = 64;
        for _ in 0..bytes.number() {
            let (column, length) = (bytes.number() as usize, bytes.number() as usize);
            let chunk = &stored[begin..begin + length];
            assert_eq!(chunk[length - 64..], bytes.take(64));
            columns[column].rows.extend(read_planes(chunk));
            begin += length;
        }
        assert_eq!(begin, offset);
        let (mut files, mut next_row) = (Vec::new(), vec![0; columns.len()]);
        for _ in 0..bytes.number() {
            let (name, length) = (bytes.text(), bytes.number());
            let flags = bytes.take(1)[0];
            let etag = (flags & 1 != 0).then(|| bytes.text());
            let version = (flags & 2 != 0).then(|| bytes.text());
            let modified = (flags & 4 != 0).then(|| bytes.u64() as i64);
            let row_groups = bytes.number();
            let of_columns = columns.iter().zip(&mut next_row).map(|(column, next_row)| {
                let own = bytes.number();
                let known = if own == 0 { 0 } else { row_groups };
                let groups = (0..known).map(|_| {
                    let values = bytes.number().checked_sub(1)?;
                    let first = *next_row;
                    *next_row += values.div_ceil(column.shape.part_values) as usize;
                    Some((first, values))
                });
                (own, groups.collect())
            });
            let of_columns = of_columns.collect();
            if !name.is_empty() {
                let columns = of_columns;
                files.push(ReadFile { name, length, etag, version, modified, row_groups, columns });
            }
        }
        assert!(bytes.0.is_empty());
        assert!(next_row.iter().zip(&columns).all(|(&rows, column)| rows == column.rows.len()));
        Reading { columns, files }
    }

    /// Which row groups of a file may have one of the values: all if it is not known.
    pub(crate) fn candidates(&self, file: usize, column: usize, hashes: &[u64]) -> Vec<bool> {
        let (read, column_of) = (&self.files[file], &self.columns[column]);
        let (own, groups) = &read.columns[column];
        if *own == 0 {
            return vec![true; read.row_groups as usize];
        }
        let may_contain = |&group: &Rows| {
            let Some((first, values)) = group else { return true };
            let parts = values.div_ceil(column_of.shape.part_values);
            parts > 0
                && hashes.iter().any(|&hash| {
                    let row = &column_of.rows[first + part(hash, parts) as usize];
                    column_of.shape.planes(hash).is_subset(row)
                })
        };
        groups.iter().map(may_contain).collect()
    }

    pub(crate) fn type_of(&self, file: usize, column: usize) -> Option<&str> {
        let number = self.files[file].columns[column].0.checked_sub(1)?;
        Some(&self.columns[column].types[number as usize])
    }
}

/// The bytes of ranges.
pub(crate) fn load(stored: &[u8], ranges: &[Range<u64>]) -> Vec<Vec<u8>> {
    let load = |range: &Range<u64>| stored[range.start as usize..range.end as usize].to_vec();
    ranges.iter().map(load).collect()
}

/// The candidates for some values, in memory and by ranges, which must be the same.
pub(crate) fn candidates(
    stored: &[u8],
    column: usize,
    is_type: impl Fn(&str) -> bool,
    hashes: &[u64],
) -> Candidates {
    let index = FileIndex::from_bytes(stored).unwrap();
    let tail = &stored[stored.len() - 64..];
    let needed = Manifest::locate_tail(tail, stored.len() as u64).unwrap();
    let tail = &stored[needed.start as usize..];
    let manifest = Manifest::from_tail(tail, stored.len() as u64).unwrap();
    let key_hash = manifest.columns().nth(column).unwrap().key_hash();
    let lookups = [manifest.lookup(column, key_hash, is_type, hashes).unwrap()];
    let in_memory = index.candidates(&lookups[0]).unwrap();
    let located = manifest.locate(&lookups).unwrap();
    assert!(located.ranges().windows(2).all(|pair| pair[0].end <= pair[1].start));
    let loaded = load(stored, located.ranges());
    let by_ranges = manifest.candidates(&located, &loaded).unwrap().remove(0);
    assert!(in_memory.damage().is_none() && by_ranges.damage().is_none());
    for file in manifest.files() {
        assert_eq!(file.candidates(&in_memory), file.candidates(&by_ranges));
    }
    in_memory
}

//! One field of a stored index is wrong, and all checksums fit: opening it is an error that names
//! the fault.

use std::num::NonZeroU32;

use blocked_bloom::KeyHasher;
use blocked_bloom_file_index::{FileIdentity, FileIndex, FileIndexOptions, Manifest};
use blocked_bloom_planes::{MAGIC as PLANES_MAGIC, PlanesOptions, TextRows};

use crate::naive::{Random, build, columns};

const RECORD: usize = 64;

/// The parts of a stored index.
#[derive(Clone)]
struct Parts {
    first: Vec<u8>,
    planes: Vec<u8>,
    manifest: Vec<u8>,
    last: Vec<u8>,
    /// Bytes between planes and manifest.
    gap: usize,
}

impl Parts {
    /// Two columns `column_0` and `column_1` of one file `a` with one row group.
    fn new() -> Parts {
        let mut builder = FileIndexOptions::new(columns(2), 1).builder().unwrap();
        let mut file = builder.file(FileIdentity::new("a", 7), &[Some("T"); 2], 1).unwrap();
        let hashes = Random(1).hashes(100);
        (0..2).for_each(|column| file.insert_hashes(column, &hashes).unwrap());
        let mut stored = file.end_row_group().unwrap();
        file.end().unwrap();
        stored.extend(builder.finish().unwrap());
        Parts::read(&stored)
    }

    /// Two columns and nothing else.
    fn empty() -> Parts {
        Parts::read(&build(&FileIndexOptions::new(columns(2), 1), &[]))
    }

    fn read(stored: &[u8]) -> Parts {
        let located = Manifest::locate_tail(stored, stored.len() as u64).unwrap();
        let (offset, end) = (located.start as usize, stored.len() - RECORD);
        let part = |from: usize, to: usize| stored[from..to].to_vec();
        let (first, planes) = (part(0, RECORD), part(RECORD, offset));
        Parts { first, planes, manifest: part(offset, end), last: part(end, end + RECORD), gap: 0 }
    }

    /// The bytes, with lengths and checksums that fit them.
    fn join(mut self) -> Vec<u8> {
        let planes = [&self.planes[..], &vec![0; self.gap]].concat();
        let offset = (RECORD + planes.len()) as u64;
        let checksum = KeyHasher::default().hash(&self.manifest);
        let fields = [offset, self.manifest.len() as u64, checksum].map(u64::to_le_bytes);
        self.last[16..40].copy_from_slice(fields.as_flattened());
        for record in [&mut self.first, &mut self.last] {
            let checksum = KeyHasher::default().hash(&record[..56]);
            record[56..].copy_from_slice(&checksum.to_le_bytes());
        }
        [self.first, planes, self.manifest, self.last].concat()
    }

    /// Replaces bytes that the manifest has once.
    fn replace(&mut self, from: &[u8], to: &[u8]) {
        let starts = self.manifest.windows(from.len()).enumerate();
        let starts: Vec<usize> = starts.filter(|(_, w)| *w == from).map(|(at, _)| at).collect();
        let [at] = starts[..] else { panic!("{from:?} at {starts:?}") };
        self.manifest.splice(at..at + from.len(), to.iter().copied());
    }

    /// Replaces the record of the planes of a column, by that of other options.
    fn set_record(&mut self, column: usize, change: fn(PlanesOptions) -> PlanesOptions) {
        let stored = self.clone().join();
        let index = FileIndex::from_bytes(&stored).unwrap();
        let (shape, _) = index.manifest().shape(column).unwrap();
        let key_hash = columns(2)[column].key_hash();
        let options = change(PlanesOptions::new(shape).with_key_hash(key_hash));
        let planes = options.builder().unwrap().finish().unwrap();
        let record = &planes[planes.len() - RECORD..];
        let name = format!("column_{column}");
        let at = self.manifest.windows(8).position(|window| window == name.as_bytes()).unwrap();
        let start = at + self.manifest[at..].windows(8).position(|w| *w == PLANES_MAGIC).unwrap();
        self.manifest[start..start + RECORD].copy_from_slice(record);
    }

    /// Where the entry of the second chunk begins: after the record of the first.
    fn second_chunk(&self) -> usize {
        let records = self.manifest.windows(8).enumerate().filter(|(_, w)| **w == PLANES_MAGIC);
        records.map(|(at, _)| at).nth(2).unwrap() + RECORD
    }
}

type Edit = fn(&mut Parts);

#[test]
fn one_wrong_field_is_an_error() {
    let with_file: [(&str, Edit, &str); 13] = [
        ("reserved byte of the first record", |p| p.first[10] = 1, "offset 10"),
        ("last reserved byte of the first record", |p| p.first[55] = 1, "offset 55"),
        ("reserved byte of the last record", |p| p.last[10] = 1, "offset 10"),
        ("reserved byte before the fields", |p| p.last[15] = 1, "offset 15"),
        ("reserved byte after the fields", |p| p.last[40] = 1, "offset 40"),
        ("last reserved byte", |p| p.last[55] = 1, "offset 55"),
        ("a byte more than the files take", |p| p.manifest.push(0), "more bytes than it says"),
        ("bytes between planes and manifest", |p| p.gap = 64, "at the end of the last planes"),
        ("one name twice", |p| p.replace(b"column_1", b"column_0"), "two columns of one name"),
        ("flags of a file", |p| p.replace(b"\x01a\x07\0", b"\x01a\x07\x08"), "flags of a file"),
        (
            "a number with a byte too many",
            |p| p.replace(b"\x01a\x07\0", b"\x01a\x87\0\0"),
            "a number that is not one",
        ),
        (
            "planes of one column in another",
            |p| {
                let at = p.second_chunk();
                assert_eq!(p.manifest[at], 1);
                p.manifest[at] = 0;
            },
            "planes that are not those of the column",
        ),
        ("no file", |p| p.manifest.truncate(p.second_chunk()), "it ends here"),
    ];
    let without_file: [(&str, Edit, &str); 2] = [
        ("a liveness plane", |p| p.set_record(1, PlanesOptions::with_liveness), "liveness plane"),
        (
            "rows of a text",
            |p| p.set_record(0, |options| options.with_text(TextRows::new(NonZeroU32::MIN))),
            "of a text",
        ),
    ];
    let mut unnoticed = Vec::new();
    let cases = with_file.map(|case| (case, Parts::new()));
    for ((field, edit, expected), parts) in
        cases.into_iter().chain(without_file.map(|case| (case, Parts::empty())))
    {
        // The parts without a change are those of an index.
        FileIndex::from_bytes(parts.clone().join()).unwrap();
        let mut edited = parts;
        edit(&mut edited);
        match FileIndex::from_bytes(edited.join()) {
            Err(error) if error.to_string().contains(expected) => {}
            found => unnoticed.push(format!("{field}: {:?}", found.err())),
        }
    }
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
}

//! Bytes and answers that never change. What is compared is never updated: bytes that change break
//! everybody's files.

use blocked_bloom_file_index::{FileIdentity, FileIndex, FileIndexOptions, Manifest};

use crate::naive::{File, Random, add, build, candidates, columns, files};

/// As it was first written, and with more appended.
const BUILT: &[u8] = include_bytes!("../golden/built.fileindex");
const APPENDED: &[u8] = include_bytes!("../golden/appended.fileindex");

fn sample() -> (FileIndexOptions, Vec<File>) {
    let options = FileIndexOptions::new(columns(3), 0x7a6)
        .with_part_values(32)
        .with_false_row_groups(1.0, 100);
    (options, files(16, 3, 150, &mut Random(9)))
}

fn append(index: &[u8], files: &[File]) -> Vec<u8> {
    let mut builder = Manifest::from_tail(index, index.len() as u64).unwrap().appender(0x7a7);
    let mut stored = index[..builder.kept_bytes() as usize].to_vec();
    add(&mut builder, files, &mut stored);
    stored.extend(builder.finish().unwrap());
    stored
}

#[test]
fn the_same_files_give_the_same_bytes() {
    let (options, files) = sample();
    assert!(build(&options, &files[..12]) == BUILT);
    assert!(append(BUILT, &files[12..]) == APPENDED);
}

#[test]
fn indexes_of_the_first_release_open_and_answer() {
    let (_, files) = sample();
    for (stored, count) in [(BUILT, 12), (APPENDED, 16)] {
        let index = FileIndex::from_bytes(stored).unwrap();
        let files: Vec<&File> = files[..count].iter().filter(|file| file.is_complete).collect();
        let identities: Vec<FileIdentity<'_>> = files.iter().map(|file| file.identity()).collect();
        assert!(index.manifest().files().map(|file| file.identity()).eq(identities));
        for column in 0..3 {
            for (entry, file) in index.manifest().files().zip(&files) {
                for (group, hashes) in file.row_groups.iter().enumerate() {
                    let hashes = hashes[column].as_deref().unwrap_or_default();
                    for &hash in hashes.iter().step_by(17) {
                        let found = candidates(stored, column, |_| true, &[hash]);
                        assert_eq!(entry.candidates(&found).get(group), Some(true));
                    }
                }
            }
        }
        // Row groups that a value which is nowhere leaves: those that are not known, and few more.
        let found = candidates(stored, 1, |own| own != "Utf8", &[Random(77).next()]);
        assert_eq!(found.count(), 9);
    }
}

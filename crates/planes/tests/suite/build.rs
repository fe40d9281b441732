//! Builders write the bytes of the definition, however rows are appended.

use std::num::NonZeroU32;

use blocked_bloom::KeyHash;
use blocked_bloom_planes::{MAX_GROUP_ROWS, Planes, PlanesError, PlanesOptions, Shape, TextRows};

use crate::naive::{Model, SHAPES, options, rows, sample};

#[test]
fn the_bytes_are_those_of_the_definition() {
    for (i, shape) in SHAPES.into_iter().enumerate() {
        for count in [0, 1, 63, 64, 65, 511, 512, 513, 1023, 1024, 1500] {
            let group_rows = [512, 1024][(i + count) % 2];
            let mut options = options(shape, group_rows).with_tag(count as u64);
            if i % 2 == 0 {
                options = options.with_liveness();
            }
            if (i + count) % 3 == 1 {
                options = options.with_short_last_group();
            }
            if i % 3 == 0 {
                options = options.with_key_hash(KeyHash::Caller { tag: 7 });
            }
            if i % 4 == 1 {
                let lines = NonZeroU32::new(u32::MAX - count as u32).unwrap();
                options = options.with_text(TextRows::new(lines));
            }
            let (_, model, planes) = sample(options, count, 1);
            assert_eq!(planes.as_bytes(), model.encode(), "{shape:?}, {count} rows");
            let opened = Planes::from_bytes_any_hash(planes.as_bytes()).unwrap();
            assert_eq!(opened.layout(), planes.layout());
            assert_eq!(opened.rows(), count);
            assert_eq!(opened.key_hash(), options.key_hash());
            assert_eq!(*opened.layout().options(), options);
            assert_eq!(planes.as_bytes()[8], if i % 4 == 1 { 2 } else { 1 }, "version");
        }
    }
}

#[test]
fn pieces_are_whole_groups_and_add_up() {
    let options = options((1, 80, 2), 512);
    let rows = rows(2_000, 2);
    let expected = Model::from_rows(options, &rows).encode();
    let mut builder = options.builder().unwrap();
    let mut stored = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(builder.rows(), i as u64);
        let group = builder.append(row.iter().copied()).unwrap();
        assert_eq!(group.is_some(), i % 512 == 511);
        stored.extend(group.unwrap_or_default());
        // 80 bits take two words.
        assert!(builder.memory_bytes() <= 512 * 16);
    }
    stored.extend(builder.finish().unwrap());
    assert_eq!(stored, expected);

    let mut builder = options.builder().unwrap();
    let mut stored = Vec::new();
    for rows in rows.chunks(700) {
        stored.extend(builder.append_all(rows).unwrap());
    }
    stored.extend(builder.finish().unwrap());
    assert_eq!(stored, expected);
}

#[test]
fn a_group_that_is_just_full_leaves_nothing() {
    let options = options((1, 80, 2), 512);
    let rows = rows(1_024, 3);
    let mut builder = options.builder().unwrap();
    let mut stored = builder.append_all(&rows).unwrap();
    let rest = builder.finish().unwrap();
    assert_eq!(rest.len(), 64);
    stored.extend(rest);
    assert_eq!(stored, Model::from_rows(options, &rows).encode());
}

#[cfg(feature = "rayon")]
#[test]
fn threads_write_the_same_bytes() {
    let rows = rows(5_000, 4);
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        for chunk in [1, 300, 512, 1_300, 5_000] {
            let options = options((1, 100, 3), 512).with_liveness();
            let mut builder = options.builder().unwrap();
            let mut stored = Vec::new();
            for rows in rows.chunks(chunk) {
                stored.extend(pool.install(|| builder.par_append_all(rows)).unwrap());
            }
            assert_eq!(builder.rows(), 5_000);
            stored.extend(builder.finish().unwrap());
            assert!(
                stored == Model::from_rows(options, &rows).encode(),
                "{threads} threads, {chunk} rows"
            );
        }
    }
}

/// Both threads of a pool build groups: the first that reads a row waits for the other.
#[cfg(feature = "rayon")]
#[test]
fn threads_of_the_pool_take_part() {
    use std::collections::HashSet;
    use std::sync::{Condvar, Mutex};
    use std::thread::{ThreadId, current};

    #[derive(Default)]
    struct Rendezvous(Mutex<HashSet<ThreadId>>, Condvar);
    struct Row<'m>([u64; 1], &'m Rendezvous);
    impl AsRef<[u64]> for Row<'_> {
        fn as_ref(&self) -> &[u64] {
            let Rendezvous(met, changed) = self.1;
            let mut met = met.lock().unwrap();
            let is_first = met.is_empty();
            met.insert(current().id());
            changed.notify_all();
            if is_first {
                let most = std::time::Duration::from_secs(20);
                drop(changed.wait_timeout_while(met, most, |met| met.len() < 2).unwrap());
            }
            &self.0
        }
    }
    let meeting = Rendezvous::default();
    let rows: Vec<Row<'_>> = (0..16 * 512).map(|row| Row([row << 40], &meeting)).collect();
    let mut builder = options((1, 80, 2), 512).builder().unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    pool.install(|| builder.par_append_all(&rows)).unwrap();
    assert_eq!((meeting.0.lock().unwrap().len(), builder.rows()), (2, 16 * 512));
}

/// A row whose items panic is not appended and leaves no bits.
#[test]
fn a_panic_among_the_items_appends_nothing() {
    let options = options((1, 80, 2), 512);
    let rows = rows(600, 5);
    let mut builder = options.builder().unwrap();
    let mut stored = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        if i % 100 == 11 {
            let items =
                (0..9_u64).map(|item| if item == 8 { panic!("no more") } else { item << 60 });
            let appended =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| builder.append(items)));
            assert!(appended.is_err());
        }
        stored.extend(builder.append(row.iter().copied()).unwrap().unwrap_or_default());
    }
    stored.extend(builder.finish().unwrap());
    assert_eq!(stored, Model::from_rows(options, &rows).encode());
}

#[test]
fn group_sizes_that_cannot_be_are_errors() {
    let options = PlanesOptions::new(Shape::new(1, 64, 1).unwrap());
    for group_rows in [0, 1, 511, 513, MAX_GROUP_ROWS + 512, u32::MAX] {
        let error = options.with_group_rows(group_rows).unwrap_err();
        assert_eq!(error, PlanesError::GroupRowsOutOfRange { group_rows });
        assert!(error.to_string().contains(&group_rows.to_string()));
    }
    assert!(
        options.with_group_rows(512).is_ok() && options.with_group_rows(MAX_GROUP_ROWS).is_ok()
    );
    // The default limits a group to 32 MiB.
    let rows = |blocks, bits| PlanesOptions::new(Shape::new(blocks, bits, 1).unwrap()).group_rows();
    assert_eq!(
        [rows(1, 16), rows(1, 256), rows(1, 512), rows(1 << 17, 512)],
        [1 << 20, 1 << 20, 1 << 19, 512]
    );
}

/// Rows of 4 KiB in groups of 65,536 rows: a whole group would take 256 MiB.
#[test]
fn memory_and_bytes_follow_the_rows() {
    let shape = Shape::new(64, 512, 4).unwrap();
    let options = PlanesOptions::new(shape).with_group_rows(1 << 16).unwrap();
    let mut builder = options.with_short_last_group().builder().unwrap();
    assert!(builder.memory_bytes() <= 4096);
    for row in 1..=100_u64 {
        builder.append([row << 40]).unwrap();
        assert!((row * 4096..=2 * row * 4096).contains(&builder.memory_bytes()), "{row}");
    }
    // Planes of 16 bytes, each with a checksum of 8 bytes, and three records.
    let stored = builder.finish().unwrap();
    assert_eq!(stored.len(), 64 * 512 * 24 + 3 * 64);
    assert_eq!(Planes::from_bytes_any_hash(&stored).unwrap().rows(), 100);
}

/// Rows copied from other planes equal the rows appended there. Deleted rows have no items.
#[test]
fn rows_of_other_planes_are_the_same_rows() {
    for (i, shape) in SHAPES.into_iter().enumerate() {
        let group_rows = [1_024, 512][i / 2 % 2];
        let (all, _, mut from) = sample(options(shape, group_rows).with_liveness(), 1_300, 7);
        let deleted = [0, 63, 64, 511, 512, 900, 1_299];
        deleted.iter().for_each(|&row| assert!(from.delete(row).unwrap()));
        let options = options(shape, [512, 1_024][i % 2]);
        let mut builder = options.builder().unwrap();
        let (mut stored, mut expected) = (Vec::new(), Vec::new());
        for range in [0..1, 60..70, 500..1_025, 1_025..1_025, 3..3, 63..64, 1_200..1_300, 0..1_300]
        {
            stored.extend(builder.append_rows(&from, range.clone()).unwrap());
            let row = |row| if deleted.contains(&row) { Vec::new() } else { all[row].clone() };
            expected.extend(range.map(row));
        }
        stored.extend(builder.finish().unwrap());
        assert!(stored == Model::from_rows(options, &expected).encode(), "{shape:?}");
    }
}

#[test]
fn rows_of_planes_that_do_not_fit_are_errors() {
    let options = options((1, 80, 2), 512);
    let (_, _, from) = sample(options, 100, 1);
    let mut builder = options.builder().unwrap();
    for (start, end) in [(0, 101), (101, 101), (5, 4), (usize::MAX, usize::MAX)] {
        let error = builder.append_rows(&from, start..end).unwrap_err();
        let (start, end) = (start as u64, end as u64);
        assert_eq!(error, PlanesError::RangeOutOfRange { start, end, rows: 100 });
    }
    let hashed = options.with_key_hash(KeyHash::Caller { tag: 1 });
    let error = hashed.builder().unwrap().append_rows(&from, 0..1).unwrap_err();
    assert!(matches!(error, PlanesError::HashMismatch { .. }));
    let mut wider = PlanesOptions::new(Shape::new(1, 81, 2).unwrap()).builder().unwrap();
    let error = wider.append_rows(&from, 0..1).unwrap_err();
    assert!(matches!(error, PlanesError::RowShape { .. }));
    assert_eq!((builder.rows(), wider.rows()), (0, 0));
}

/// Every stored setting takes part in the equality of options.
#[test]
fn options_are_equal_if_all_that_is_stored_is() {
    let plain = options((1, 80, 2), 512);
    for other in [
        plain.with_short_last_group(),
        plain.with_liveness(),
        plain.with_tag(1),
        plain.with_key_hash(KeyHash::Caller { tag: 1 }),
        options((1, 80, 2), 1_024),
        options((1, 80, 3), 512),
    ] {
        assert_ne!(plain, other);
    }
}

/// The definition of words, byte by byte.
#[test]
fn texts_are_divided_as_the_definition_says() {
    let text = TextRows::new(NonZeroU32::MIN);
    let every_byte: Vec<u8> = (0..=u8::MAX).flat_map(|byte| [b'a', byte, b'b']).collect();
    for line in [
        &b""[..],
        b"  -",
        b"err-code=17 node-3",
        b"/api/v1",
        "a\u{fc}b_c.d".as_bytes(),
        &every_byte,
    ] {
        let mut expected: Vec<Vec<u8>> = vec![Vec::new()];
        for &byte in line {
            match byte {
                b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | 0x80..=0xff => {
                    expected.last_mut().unwrap().push(byte);
                }
                _ => expected.push(Vec::new()),
            }
        }
        expected.retain(|word| !word.is_empty());
        assert!(text.words(line).eq(expected.iter().map(|word| &word[..])), "{line:?}");
    }
}

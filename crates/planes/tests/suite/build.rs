//! Builders write what the definition writes, however rows come to them.

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
            if i % 3 == 0 {
                options = options.with_key_hash(KeyHash::Caller { tag: 7 });
            }
            if i % 4 == 1 {
                let lines = NonZeroU32::new(u32::MAX - count as u32).unwrap();
                options = options.with_text(TextRows::new(lines));
            }
            let (_, model, planes) = sample(options, count, 1);
            assert_eq!(planes.as_bytes(), model.encode(), "{shape:?}, {count} rows");
            let opened = Planes::from_bytes(planes.as_bytes()).unwrap();
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
    let expected = Model::of(options, &rows).encode();
    let mut builder = options.builder().unwrap();
    let memory = builder.memory_bytes();
    let mut stored = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(builder.rows(), i as u64);
        let group = builder.append(row.iter().copied()).unwrap();
        assert_eq!(group.is_some(), i % 512 == 511);
        stored.extend(group.unwrap_or_default());
        assert_eq!(builder.memory_bytes(), memory);
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
    assert_eq!(stored, Model::of(options, &rows).encode());
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
                stored == Model::of(options, &rows).encode(),
                "{threads} threads, {chunk} rows"
            );
        }
    }
}

/// Both threads of a pool make groups: the first that reads a row of one waits for the other.
#[cfg(feature = "rayon")]
#[test]
fn threads_of_the_pool_take_part() {
    use std::collections::HashSet;
    use std::sync::{Condvar, Mutex};
    use std::thread::{ThreadId, current};

    #[derive(Default)]
    struct Meeting(Mutex<HashSet<ThreadId>>, Condvar);
    struct Row<'m>([u64; 1], &'m Meeting);
    impl AsRef<[u64]> for Row<'_> {
        fn as_ref(&self) -> &[u64] {
            let Meeting(met, changed) = self.1;
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
    let meeting = Meeting::default();
    let rows: Vec<Row<'_>> = (0..16 * 512).map(|row| Row([row << 40], &meeting)).collect();
    let mut builder = options((1, 80, 2), 512).builder().unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    pool.install(|| builder.par_append_all(&rows)).unwrap();
    assert_eq!((meeting.0.lock().unwrap().len(), builder.rows()), (2, 16 * 512));
}

/// A row whose items panic is not appended, and leaves nothing behind.
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
    assert_eq!(stored, Model::of(options, &rows).encode());
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
    // The default keeps a group at 32 MiB.
    let rows = |blocks, bits| PlanesOptions::new(Shape::new(blocks, bits, 1).unwrap()).group_rows();
    assert_eq!(
        [rows(1, 16), rows(1, 256), rows(1, 512), rows(1 << 17, 512)],
        [1 << 20, 1 << 20, 1 << 19, 512]
    );
}

#[test]
fn memory_that_is_not_there_is_an_error() {
    let shape = Shape::new(1 << 17, 512, 1).unwrap();
    let options = PlanesOptions::new(shape).with_group_rows(MAX_GROUP_ROWS).unwrap();
    assert!(matches!(options.builder().unwrap_err(), PlanesError::Alloc(_)));
}

/// Words by the definition, byte by byte.
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

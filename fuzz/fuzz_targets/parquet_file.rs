//! Property: any bytes are either rejected as a Parquet file, or read as a naive reading of the
//! footer reads them: the same columns, and for each the filter that the footer's offset and length
//! and its own header give, or an error if they do not agree, if it leaves the file or meets
//! another filter. The frame of the file, magic numbers and length of the footer, is also made to
//! fit. A filter without a bit is an error, unless the row group has no values.
//!
//! Input: two bytes that say how long the footer is; the file.
#![no_main]

use blocked_bloom::Filter;
use blocked_bloom_formats::parquet::ParquetFile;
use blocked_bloom_split::{SplitBlockFilter, hash_value};
use libfuzzer_sys::fuzz_target;

mod thrift;

use thrift::Naive;

/// A column chunk.
#[derive(Default)]
struct Chunk<'a> {
    /// The physical type; 0 is BOOLEAN.
    kind: Option<i64>,
    path: Vec<&'a str>,
    offset: Option<i64>,
    length: Option<i64>,
    encrypted: bool,
    is_external: bool,
    /// `num_values`, and `null_count` of the statistics.
    values: Option<i64>,
    nulls: Option<i64>,
}

fn int<'a>(reader: &mut Naive<'a>, kind: u8) -> Option<i64> {
    let number = reader.zigzag()?;
    (kind == 6 || kind == 5 && i32::try_from(number).is_ok()).then_some(number)
}

/// Calls `read` at every element of a list of this type.
fn elements<'a>(
    reader: &mut Naive<'a>,
    kind: u8,
    wanted: u8,
    mut read: impl FnMut(&mut Naive<'a>) -> Option<()>,
) -> Option<()> {
    (kind == 9).then_some(())?;
    let (found, count) = reader.list()?;
    (count == 0 || found == wanted).then_some(())?;
    (0..count).try_for_each(|_| read(reader))
}

fn column<'a>(reader: &mut Naive<'a>) -> Option<Chunk<'a>> {
    let mut chunk = Chunk::default();
    reader.fields(|reader, id, kind| {
        chunk.is_external |= id == 1;
        chunk.encrypted |= id == 8 || id == 9;
        if id != 3 {
            return reader.skip(kind, 1, false);
        }
        (kind == 12).then_some(())?;
        reader.fields(|reader, id, kind| match (id, kind) {
            (1, 5) => {
                chunk.kind = Some(int(reader, 5).filter(|kind| (0..8).contains(kind))?);
                Some(())
            }
            (3, _) => {
                chunk.path.clear();
                elements(reader, kind, 8, |reader| {
                    let length = reader.varint()?;
                    chunk.path.push(std::str::from_utf8(reader.bytes(length)?).ok()?);
                    Some(())
                })
            }
            (5, 6) => {
                chunk.values = Some(int(reader, 6)?);
                Some(())
            }
            (12, 12) => {
                chunk.nulls = None;
                reader.fields(|reader, id, kind| match (id, kind) {
                    (3, 6) => {
                        chunk.nulls = Some(int(reader, 6)?);
                        Some(())
                    }
                    (3, _) => None,
                    _ => reader.skip(kind, 1, false),
                })
            }
            (14, 6) => {
                chunk.offset = Some(int(reader, 6)?);
                Some(())
            }
            (15, 5) => {
                chunk.length = Some(int(reader, 5)?);
                Some(())
            }
            (1 | 5 | 12 | 14 | 15, _) => None,
            _ => reader.skip(kind, 1, false),
        })?;
        chunk.kind.map(drop)
    })?;
    (chunk.kind.is_some() || chunk.encrypted).then_some(chunk)
}

/// A `LogicalType`: a union of structures, with the numbers of decimals and integers and the units
/// of times.
fn logical_type(reader: &mut Naive<'_>) -> Option<()> {
    reader.fields(|reader, _, kind| {
        (kind == 12).then_some(())?;
        reader.fields(|reader, id, kind| match (id, kind) {
            (1 | 2, 5) => int(reader, 5).map(drop),
            (1 | 2, 12) => reader.fields(|reader, _, kind| reader.skip(kind, 1, false)),
            _ => reader.skip(kind, 1, false),
        })
    })
}

/// Rows and columns of every row group.
fn footer<'a>(reader: &mut Naive<'a>) -> Option<Vec<(i64, Vec<Chunk<'a>>)>> {
    let mut groups = None;
    reader.fields(|reader, id, kind| match id {
        2 => elements(reader, kind, 12, |reader| {
            reader.fields(|reader, id, kind| match (id, kind) {
                (1 | 2 | 6..=8, 5) => int(reader, 5).map(drop),
                (10, 12) => logical_type(reader),
                (1 | 2 | 6..=8 | 10, _) => None,
                _ => reader.skip(kind, 1, false),
            })
        }),
        4 => {
            let mut found = Vec::new();
            elements(reader, kind, 12, |reader| {
                let (mut rows, mut columns) = (None, None);
                reader.fields(|reader, id, kind| match (id, kind) {
                    (1, _) => {
                        let mut chunks = Vec::new();
                        elements(reader, kind, 12, |reader| {
                            chunks.push(column(reader)?);
                            Some(())
                        })?;
                        columns = Some(chunks);
                        Some(())
                    }
                    (3, 6) => {
                        rows = Some(int(reader, 6)?);
                        Some(())
                    }
                    (3, _) => None,
                    _ => reader.skip(kind, 1, false),
                })?;
                found.push((rows?, columns?));
                Some(())
            })?;
            groups = Some(found);
            Some(())
        }
        _ => reader.skip(kind, 1, false),
    })?;
    groups
}

/// Where a filter begins in the file, and where by its column chunk it ends: a byte later if that
/// does not say.
fn claim(chunk: &Chunk<'_>, data: &[u8]) -> Option<(i64, i64)> {
    let offset = chunk.offset.filter(|_| !chunk.is_external)?;
    let is_inside = (0..data.len() as i64).contains(&offset);
    is_inside.then_some((offset, offset + chunk.length.unwrap_or(1).max(1)))
}

/// The bitset of a column's filter. `others` are the claims of all other columns.
fn bitset<'d>(
    chunk: &Chunk<'_>,
    rows: i64,
    others: &[(i64, i64)],
    data: &'d [u8],
    deepest: &mut usize,
) -> Option<&'d [u8]> {
    let (start, end) = claim(chunk, data)?;
    let is_free = |end| others.iter().all(|other| other.1 <= start || end <= other.0);
    let bytes = &data[start as usize..];
    let mut reader = Naive { rest: bytes, deepest: 0 };
    let length = reader.header();
    *deepest = reader.deepest;
    let (header, length) = (bytes.len() - reader.rest.len(), length?);
    let fits = chunk.length.is_none_or(|said| said == (header + length) as i64);
    let is_whole = fits && is_free(end) && is_free(start + (header + length) as i64);
    let has_values = rows > 0 && (chunk.values.is_none() || chunk.values != chunk.nulls);
    bytes.get(header..header + length).filter(|bitset| {
        is_whole && chunk.kind != Some(0) && !(has_values && bitset.iter().all(|&byte| byte == 0))
    })
}

fn check(file: &[u8]) {
    let opened = ParquetFile::open(file);
    let frame = file.strip_prefix(b"PAR1").and_then(|rest| rest.strip_suffix(b"PAR1"));
    let parts = frame.and_then(|rest| {
        let (rest, length) = rest.split_last_chunk()?;
        let start = rest.len().checked_sub(u32::from_le_bytes(*length) as usize)?;
        Some((&file[..4 + start], &rest[start..]))
    });
    let Some((data, metadata)) = parts else { return assert!(opened.is_err()) };
    let mut reader = Naive { rest: metadata, deepest: 0 };
    let groups = footer(&mut reader);
    if reader.deepest > 25 {
        // Nested deeper than some readers go: rejected or not.
        return;
    }
    assert_eq!(opened.is_ok(), groups.is_some());
    let Some((opened, groups)) = opened.ok().zip(groups) else { return };
    assert_eq!(opened.row_groups().len(), groups.len());
    assert!(opened.filter(groups.len(), 0).is_err());
    let chunks = || groups.iter().flat_map(|(_, chunks)| chunks);
    for (row_group, (found, (rows, columns))) in
        opened.row_groups().iter().zip(&groups).enumerate().take(64)
    {
        assert_eq!((found.rows(), found.columns().len()), (*rows, columns.len()));
        assert!(opened.filter(row_group, columns.len()).is_err());
        for (column, (found, chunk)) in found.columns().iter().zip(columns).enumerate().take(64) {
            assert_eq!(found.path(), chunk.path);
            assert_eq!(found.filter_offset(), chunk.offset);
            assert_eq!(found.filter_length().map(i64::from), chunk.length);
            let filter = opened.filter(row_group, column);
            if let Err(error) = &filter {
                assert!(!error.to_string().is_empty());
            }
            if chunk.encrypted || chunk.offset.is_none() {
                assert!(if chunk.encrypted { filter.is_err() } else { filter == Ok(None) });
                continue;
            }
            let others = chunks().filter(|other| !std::ptr::eq(*other, chunk));
            let others: Vec<_> = others.filter_map(|other| claim(other, data)).collect();
            let mut deepest = 0;
            let expected = bitset(chunk, *rows, &others, data, &mut deepest);
            if deepest > 25 {
                continue;
            }
            assert_eq!(filter.is_ok(), expected.is_some(), "row group {row_group}, {column}");
            let Some((filter, expected)) = filter.ok().flatten().zip(expected) else { continue };
            assert_eq!(filter.blocks().as_flattened().as_ptr_range(), expected.as_ptr_range());
            let alone = SplitBlockFilter::from_bitset(expected).unwrap();
            for value in 0..20_u64 {
                let value = value.to_le_bytes();
                assert_eq!(filter.contains(value), alone.contains_hash(hash_value(value)));
            }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let [low, high, file @ ..] = input else { return };
    check(file);
    if file.len() >= 12 {
        let mut mended = file.to_vec();
        let most = file.len() - 12;
        let footer = usize::from(u16::from_le_bytes([*low, *high])) % (most + 1);
        let end = file.len() - 8;
        mended[..4].copy_from_slice(b"PAR1");
        mended[end..end + 4].copy_from_slice(&(footer as u32).to_le_bytes());
        mended[end + 4..].copy_from_slice(b"PAR1");
        check(&mended);
    }
});

//! Property: planes of any rows, made in any pieces or copied, answer every query, range and batch
//! as rows of `bool`s do, in memory and read by ranges; damaged bytes are an error, and records
//! whose checksums fit are an error or answer without a panic.
#![no_main]

use std::num::NonZeroU32;

use arbitrary::Arbitrary;
use blocked_bloom::{Bitmask, KeyHasher};
use blocked_bloom_planes::{Planes, PlanesLayout, PlanesOptions, Query, Shape, TextRows};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    blocks: u8,
    block_bits: u16,
    probes: u8,
    groups: u8,
    liveness: bool,
    short: bool,
    tag: u64,
    rows: Vec<Vec<u64>>,
    /// How often the rows are repeated, so that there are several groups.
    repeats: u8,
    pieces: u8,
    deleted: Vec<u16>,
    queries: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
    absent: Vec<u64>,
    range: (u16, u16),
    damage: Vec<(u32, u8)>,
    record: Vec<(u8, u8)>,
    /// Of rows that are lines of a text.
    lines: u32,
}

/// The rows as bits, by the definition.
struct Model {
    shape: Shape,
    rows: Vec<Vec<bool>>,
    live: Vec<bool>,
}

impl Model {
    fn bits(&self, hash: u64) -> Vec<usize> {
        let (n, m) = (u128::from(self.shape.blocks()), u128::from(self.shape.block_bits()));
        let block = ((u128::from(hash) % (1 << 32)) * n) >> 32;
        let mut product = u128::from(hash) >> 32;
        let mut bits = Vec::new();
        for _ in 0..self.shape.probes() {
            bits.push((block * m + ((product * m) >> 32)) as usize);
            product = product * 0x9e37_79b9 % (1 << 32);
        }
        bits
    }

    fn holds(&self, row: usize, all: &[u64], any: &[Vec<u64>]) -> bool {
        let has = |&hash: &u64| self.bits(hash).into_iter().all(|bit| self.rows[row][bit]);
        self.live[row] && all.iter().all(has) && any.iter().all(|list| list.iter().any(has))
    }
}

fn query_of(all: &[u64], any: &[Vec<u64>]) -> Query {
    let query = Query::all(all.iter().copied());
    any.iter().fold(query, |query, list| query.and_any(list.iter().copied()))
}

fuzz_target!(|input: Input| {
    let block_bits = 16 + u32::from(input.block_bits) % 497;
    let blocks = 1 + u32::from(input.blocks) % 4;
    let shape = Shape::new(blocks, block_bits, 1 + u32::from(input.probes) % 30).unwrap();
    let mut options = PlanesOptions::new(shape).with_tag(input.tag);
    options = options.with_group_rows(512 * (1 + u32::from(input.groups) % 3)).unwrap();
    if input.liveness {
        options = options.with_liveness();
    }
    if input.short {
        options = options.with_short_last_group();
    }
    if let Some(lines) = NonZeroU32::new(input.lines) {
        options = options.with_text(TextRows::new(lines));
    }
    let given = &input.rows[..input.rows.len().min(40)];
    let count = given.len() * (1 + usize::from(input.repeats) % 40);
    let rows: Vec<&[u64]> =
        given.iter().map(|row| &row[..row.len().min(20)]).cycle().take(count).collect();

    let mut model = Model { shape, rows: Vec::new(), live: vec![true; rows.len()] };
    for row in &rows {
        let mut bits = vec![false; shape.planes() as usize];
        row.iter().flat_map(|&hash| model.bits(hash)).for_each(|bit| bits[bit] = true);
        model.rows.push(bits);
    }
    // In pieces, by one thread and by several, and all at once.
    let mut builder = options.builder().unwrap();
    let mut stored = Vec::new();
    for (i, piece) in rows.chunks(1 + usize::from(input.pieces) * 8).enumerate() {
        stored.extend(match i % 2 {
            0 => builder.append_all(piece).unwrap(),
            _ => builder.par_append_all(piece).unwrap(),
        });
    }
    stored.extend(builder.finish().unwrap());
    let mut planes =
        Planes::from_hashes(&options, rows.iter().map(|row| row.iter().copied())).unwrap();
    assert!(planes.as_bytes() == stored);
    // In two pieces, from other planes.
    let mut builder = options.builder().unwrap();
    let cut = usize::from(input.range.0) % (rows.len() + 1);
    let mut copied = builder.append_rows(&planes, 0..cut).unwrap();
    copied.extend(builder.append_rows(&planes, cut..rows.len()).unwrap());
    copied.extend(builder.finish().unwrap());
    assert!(copied == stored);
    for &row in &input.deleted {
        let row = usize::from(row);
        match planes.delete(row) {
            Ok(was_live) => assert!(core::mem::take(&mut model.live[row]) == was_live),
            Err(_) => assert!(!input.liveness || row >= rows.len()),
        }
    }
    let bytes = planes.as_bytes();
    let view = Planes::from_bytes_any_hash(bytes).unwrap();

    let items: Vec<u64> = rows
        .iter()
        .take(40)
        .flat_map(|row| row.iter().copied())
        .chain(input.absent.iter().copied())
        .take(256)
        .collect();
    let pick = |numbers: &[u8]| -> Vec<u64> {
        numbers
            .iter()
            .take(12)
            .filter_map(|&number| items.get(usize::from(number)).copied())
            .collect()
    };
    let mut hits = Bitmask::new();
    let (start, end) = (usize::from(input.range.0), usize::from(input.range.1));
    let (mut queries, mut expected) = (Vec::new(), Vec::new());
    for (all, any) in input.queries.iter().take(6) {
        let (all, any): (Vec<u64>, Vec<Vec<u64>>) =
            (pick(all), any.iter().take(3).map(|list| pick(list)).collect());
        let query = query_of(&all, &any);
        let wanted: Vec<bool> = (0..rows.len()).map(|row| model.holds(row, &all, &any)).collect();
        planes.query(&query, &mut hits);
        assert!(hits.iter().eq(wanted.iter().copied()));
        match view.query_range(&query, start..end, &mut hits) {
            Ok(()) => assert!(hits.iter().eq(wanted[start..end].iter().copied())),
            Err(_) => assert!(start > end || end > rows.len()),
        }
        let layout =
            PlanesLayout::from_tail_any_hash(&bytes[bytes.len() - 64..], bytes.len() as u64)
                .unwrap();
        for group in 0..layout.groups() {
            let at = layout.locate(&query, group).unwrap();
            let loaded: Vec<&[u8]> = at
                .planes
                .iter()
                .map(|at| &bytes[at.offset as usize..][..at.length as usize])
                .collect();
            layout.open(&at, &loaded).unwrap().query(&query, &mut hits).unwrap();
            let rows = layout.rows_of(group);
            assert!(hits.iter().eq(wanted[rows.start as usize..rows.end as usize].iter().copied()));
        }
        queries.push(query);
        expected.push(wanted);
    }
    view.query_batch(&queries, |query, rows, hits| {
        assert!(hits.iter().eq(expected[query][rows].iter().copied()));
    });

    let mut damaged = bytes.to_vec();
    for &(at, change) in &input.damage {
        let at = at as usize % damaged.len();
        damaged[at] ^= change;
    }
    if damaged != bytes {
        assert!(Planes::from_bytes_any_hash(&damaged).is_err());
    }
    // The last record changed and mended, and the first too.
    for start in [0, damaged.len() - 64] {
        for &(at, value) in &input.record {
            damaged[start + usize::from(at) % 56] = value;
        }
        let sum = KeyHasher::default().hash(&damaged[start..start + 56]);
        damaged[start + 56..start + 64].copy_from_slice(&sum.to_le_bytes());
    }
    _ = Planes::from_bytes_any_hash(&damaged);
    if let Ok(view) = Planes::from_bytes_trusted(&damaged[..], view.key_hash()) {
        queries.iter().for_each(|query| view.query(query, &mut hits));
        _ = view.is_live(start);
    }
    let tail = &damaged[damaged.len() - 64..];
    _ = PlanesLayout::last_record(tail, u64::from(input.range.0) << 20);
    // Any length that fits the record, however many rows it says.
    if let Err(blocked_bloom_planes::PlanesError::Header(
        blocked_bloom::parts::HeaderError::Length { expected, .. },
    )) = PlanesLayout::from_tail_any_hash(tail, 1)
        && let Ok(layout) = PlanesLayout::from_tail_any_hash(tail, expected)
    {
        for (query, group) in queries.iter().zip([0, layout.groups().saturating_sub(1), u64::MAX]) {
            if let Ok(at) = layout.locate(query, group) {
                let loaded = vec![&damaged[..]; at.planes.len()];
                _ = layout.open(&at, &loaded).is_ok();
            }
        }
    }
});

//! A readable definition of planes: a row is a list of `bool`s, and files are written and read bit
//! by bit, as `docs/planes.md` says. It shares only XXH3 with the crate, through the core.

use std::collections::BTreeSet;
use std::ops::Range;

use blocked_bloom::{KeyHash, KeyHasher};
use blocked_bloom_planes::{Planes, PlanesOptions, Shape};

/// A generator of pseudo-random numbers.
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

/// The bits of a hash in a row, computed in integers that cannot overflow.
pub(crate) fn bits(shape: Shape, hash: u64) -> BTreeSet<usize> {
    let (n, m) = (u128::from(shape.blocks()), u128::from(shape.block_bits()));
    let (lo, mut product) = (u128::from(hash) % (1 << 32), u128::from(hash) >> 32);
    let block = (lo * n) >> 32;
    let mut bits = BTreeSet::new();
    for _ in 0..shape.probes() {
        bits.insert((block * m + ((product * m) >> 32)) as usize);
        product = product * 0x9e37_79b9 % (1 << 32);
    }
    bits
}

/// Rows as bits.
#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) options: PlanesOptions,
    pub(crate) rows: Vec<Vec<bool>>,
    pub(crate) live: Vec<bool>,
}

impl Model {
    pub(crate) fn new(options: PlanesOptions) -> Self {
        Model { options, rows: Vec::new(), live: Vec::new() }
    }

    pub(crate) fn from_rows(options: PlanesOptions, rows: &[Vec<u64>]) -> Self {
        let mut model = Model::new(options);
        rows.iter().for_each(|row| model.append(row));
        model
    }

    pub(crate) fn append(&mut self, hashes: &[u64]) {
        let shape = self.options.shape();
        let mut row = vec![false; shape.planes() as usize];
        for bit in hashes.iter().flat_map(|&hash| bits(shape, hash)) {
            row[bit] = true;
        }
        self.rows.push(row);
        self.live.push(true);
    }

    fn has_bits_of(&self, row: usize, hash: u64) -> bool {
        bits(self.options.shape(), hash).into_iter().all(|bit| self.rows[row][bit])
    }

    /// The rows of a range that have all of these hashes and one of each list.
    pub(crate) fn query(&self, all: &[u64], any: &[Vec<u64>], rows: Range<usize>) -> Vec<bool> {
        let holds = |row: usize| {
            let has = |&hash: &u64| self.has_bits_of(row, hash);
            self.live[row] && all.iter().all(has) && any.iter().all(|list| list.iter().any(has))
        };
        rows.map(holds).collect()
    }

    /// The stored form.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (shape, options) = (self.options.shape(), &self.options);
        let first = record(options, 0, false);
        let identity = u64::from_le_bytes(first[56..].try_into().unwrap());
        let planes = shape.planes() as usize + usize::from(options.has_liveness());
        let mut stored = Vec::from(first);
        let groups = self.rows.chunks(options.group_rows() as usize);
        let live = self.live.chunks(options.group_rows() as usize);
        let mut rows = 0;
        for (group, (members, live)) in groups.zip(live).enumerate() {
            for plane in 0..planes {
                let step = if options.has_short_last_group() { 64 } else { 512 };
                let mut bytes = vec![0; members.len().next_multiple_of(step) / 8];
                for (row, member) in members.iter().enumerate() {
                    if *member.get(plane).unwrap_or(&live[row]) {
                        bytes[row / 8] |= 1 << (row % 8);
                    }
                }
                let place = (group * planes + plane) as u64;
                let hasher = KeyHasher::with_seed(identity.wrapping_add(place));
                let sum = hasher.hash(&bytes);
                stored.extend(bytes);
                stored.extend(sum.to_le_bytes());
            }
            rows += members.len() as u64;
            stored.extend(record(options, rows, false));
        }
        stored.extend(record(options, rows, true));
        stored
    }
}

/// The record for this many rows. `complete` marks the closing record.
pub(crate) fn record(options: &PlanesOptions, rows: u64, complete: bool) -> [u8; 64] {
    let shape = options.shape();
    let (hash, seed) = match options.key_hash() {
        KeyHash::Caller { tag } => (0, tag),
        KeyHash::Xxh3 { seed } => (1, seed),
        other => panic!("{other}"),
    };
    let mut record = Vec::from(*b"\x89BBPLNS\n");
    record.extend([
        if options.text().is_some() { 2 } else { 1 },
        0,
        1,
        hash,
        shape.probes() as u8,
        u8::from(options.has_liveness())
            + 2 * u8::from(complete)
            + 4 * u8::from(options.has_short_last_group()),
    ]);
    record.extend((shape.block_bits() as u16).to_le_bytes());
    record.extend(seed.to_le_bytes());
    record.extend(shape.blocks().to_le_bytes());
    record.extend(options.group_rows().to_le_bytes());
    record.extend(options.tag().to_le_bytes());
    record.extend(rows.to_le_bytes());
    // Lines of a row, and 1 for words. Both are 0 in version 1.
    let lines = options.text().map_or(0, |text| text.lines().get());
    record.extend(lines.to_le_bytes());
    record.extend([u8::from(lines > 0), 0, 0, 0]);
    record.extend(KeyHasher::default().hash(&record).to_le_bytes());
    record.try_into().unwrap()
}

/// Shapes at the limits and between them.
pub(crate) const SHAPES: [(u32, u32, u32); 10] = [
    (1, 16, 1),
    (1, 17, 3),
    (1, 63, 2),
    (1, 64, 30),
    (1, 80, 2),
    (1, 128, 4),
    (2, 100, 5),
    (3, 65, 7),
    (1, 512, 6),
    (2, 512, 9),
];

pub(crate) fn options((blocks, bits, probes): (u32, u32, u32), group_rows: u32) -> PlanesOptions {
    let options = PlanesOptions::new(Shape::new(blocks, bits, probes).unwrap());
    options.with_group_rows(group_rows).unwrap()
}

/// Rows of up to eight hashes. Many hashes are in several rows.
pub(crate) fn rows(count: usize, seed: u64) -> Vec<Vec<u64>> {
    let mut random = Random(seed);
    let common = random.hashes(40);
    let mut row = || {
        let items = random.next_below(9);
        (0..items)
            .map(|_| match random.next_below(3) {
                0 => random.next(),
                _ => common[random.next_below(40)],
            })
            .collect()
    };
    (0..count).map(|_| row()).collect()
}

/// Rows, their model and their planes.
pub(crate) fn sample(
    options: PlanesOptions,
    count: usize,
    seed: u64,
) -> (Vec<Vec<u64>>, Model, Planes) {
    let rows = rows(count, seed);
    let planes = Planes::from_hashes(&options, rows.iter().map(|row| row.iter().copied())).unwrap();
    let model = Model::from_rows(options, &rows);
    (rows, model, planes)
}

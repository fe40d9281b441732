//! Filters of valkey-bloom, Valkey's own module. They come from `BF.LOAD` and RDB files, and from
//! `BF.INSERT` with a seed or a ratio of tightening, as its primaries replicate it.
//! They answer, grow and are stored as there.
//!
//! A link is the stored form of the crate `bloomfilter` 3: a header of 45 bytes (version 1, bytes
//! of bits, probes, two keys of SipHash-1-3) and the bits. Probe 0 is the hash by the first key,
//! probe 1 that by the second, and probe `i` their sum, `i` times the second, modulo a prime; each
//! modulo the bits. The hashed bytes are the length of an item, in 8 bytes, and the item.

use blocked_bloom::Bitmask;
use redis_module::raw;

use crate::allocator::{load_bytes, zeros};
use crate::data_type::{load_double, load_number, load_small};
use crate::memory::MAX_MEMORY;
use crate::outcome::{AddError, Added, CreateError, Shape};

/// The first byte of what `BF.LOAD` takes.
const VERSION: u8 = 1;

/// The first bytes of the header of a filter that is sent in pieces.
const MAGIC: [u8; 8] = *b"\x89BBVALK\n";

/// Of a link's header: where it has the number of bytes, of probes, and the keys; and its end.
const BYTES: usize = 1;
const PROBES: usize = 9;
const KEYS: usize = 13;
const BITS: usize = 45;

/// More probes than the least rate that an `f64` can be needs.
const MAX_PROBES: u32 = 1_100;

/// The largest prime below 2^64.
const PRIME: u64 = 0xffff_ffff_ffff_ffc5;

/// The two keys of a filter whose seed is not random.
pub(crate) const FIXED_SEED: Seed = [
    89, 15, 245, 34, 234, 120, 17, 218, 167, 20, 216, 9, 59, 62, 123, 217, 29, 137, 138, 115, 62,
    152, 136, 135, 48, 127, 151, 205, 40, 7, 51, 131,
];

pub(crate) type Seed = [u8; 32];

/// The options of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shaping {
    pub(crate) rate: f64,
    /// Part of the rate of a link that the next one has.
    pub(crate) tightening: f64,
    pub(crate) capacity: u64,
    /// 0 if the filter does not grow.
    pub(crate) expansion: u32,
    pub(crate) seed: Seed,
}

/// The default is only what is left of a filter that was taken.
#[derive(Default)]
pub(crate) struct ValkeyFilter {
    rate: f64,
    tightening: f64,
    expansion: u32,
    /// Oldest first, at least one, all of the same seed.
    links: Vec<Link>,
}

struct Link {
    /// Its header, which was checked, and its bits, at least eight.
    stored: Vec<u8>,
    items: u64,
    capacity: u64,
}

/// SipHash with one round for a word and three at the end.
fn sip_hash(key: &[u8], item: &[u8]) -> u64 {
    fn round([a, b, c, d]: [u64; 4]) -> [u64; 4] {
        let (a, c) = (a.wrapping_add(b), c.wrapping_add(d));
        let (b, d) = (b.rotate_left(13) ^ a, d.rotate_left(16) ^ c);
        let a = a.rotate_left(32);
        let (c, a) = (c.wrapping_add(b), a.wrapping_add(d));
        let (b, d) = (b.rotate_left(17) ^ c, d.rotate_left(21) ^ a);
        [a, b, c.rotate_left(32), d]
    }
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let (first, second) = (word(&key[..8]), word(&key[8..16]));
    let mut state = [
        first ^ 0x736f_6d65_7073_6575,
        second ^ 0x646f_7261_6e64_6f6d,
        first ^ 0x6c79_6765_6e65_7261,
        second ^ 0x7465_6462_7974_6573,
    ];
    let mut add = |word: u64| {
        state[3] ^= word;
        state = round(state);
        state[0] ^= word;
    };
    add(item.len() as u64);
    let (words, rest) = item.as_chunks::<8>();
    words.iter().for_each(|bytes| add(u64::from_le_bytes(*bytes)));
    add(word(rest) | (item.len() as u64 + 8) << 56);
    state[2] ^= 0xff;
    state = round(round(round(state)));
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

/// Both hashes of an item.
#[derive(Clone, Copy)]
struct Hashes(u64, u64);

impl Hashes {
    fn from_item(seed: &[u8], item: &[u8]) -> Self {
        Hashes(sip_hash(&seed[..16], item), sip_hash(&seed[16..], item))
    }

    fn probe(self, number: u32) -> u64 {
        match number {
            0 => self.0,
            1 => self.1,
            _ => self.0.wrapping_add(u64::from(number).wrapping_mul(self.1)) % PRIME,
        }
    }
}

/// Bytes of the bits for so many items at this rate; more than any memory if that is not a number.
fn bytes_for(capacity: u64, rate: f64) -> u64 {
    let bits_per_item = rate.ln() / (-8.0 * std::f64::consts::LN_2 * std::f64::consts::LN_2);
    ((capacity as f64 * bits_per_item).ceil() as u64).max(1)
}

impl Link {
    fn new(capacity: u64, rate: f64, seed: &[u8]) -> Result<Self, CreateError> {
        let bytes = bytes_for(capacity, rate);
        let length = usize::try_from(bytes).ok().and_then(|bytes| bytes.checked_add(BITS));
        let length = length.filter(|&length| length <= isize::MAX as usize);
        let probes = 8.0 * bytes as f64 / capacity as f64 * std::f64::consts::LN_2;
        let probes = (probes.round() as u32).clamp(1, MAX_PROBES);
        let mut stored = zeros(length.ok_or(CreateError::Memory)?).ok_or(CreateError::Memory)?;
        stored[0] = VERSION;
        stored[BYTES..PROBES].copy_from_slice(&bytes.to_le_bytes());
        stored[PROBES..KEYS].copy_from_slice(&probes.to_le_bytes());
        stored[KEYS..BITS].copy_from_slice(seed);
        Ok(Link { stored, items: 0, capacity })
    }

    /// A link with these stored bytes. Returns the field that is out of range, if one is.
    fn read(stored: Vec<u8>, items: u64, capacity: u64) -> Result<Self, String> {
        let link = Link { stored, items, capacity };
        let length = link.stored.len() as u64;
        check_range("bytes of a link", length, BITS as u64 + 1, i64::MAX as u64)?;
        let bytes =
            link.stored[BYTES..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let (version, known) = (link.stored[0].into(), VERSION.into());
        check_range("version of a link", version, known, known)?;
        check_range("bytes of bits", bytes, length - BITS as u64, length - BITS as u64)?;
        check_range("probes", link.probes().into(), 1, MAX_PROBES.into())?;
        check_range("capacity", capacity, 1, i64::MAX as u64)?;
        check_range("items", items, 0, i64::MAX as u64)?;
        Ok(link)
    }

    fn probes(&self) -> u32 {
        self.stored[PROBES..].first_chunk().map_or(1, |bytes| u32::from_le_bytes(*bytes))
    }

    fn seed(&self) -> &[u8] {
        &self.stored[KEYS..BITS]
    }

    /// Each place of an item: a byte of the bits, and a bit of it.
    fn places(&self, hashes: Hashes) -> impl Iterator<Item = (usize, u8)> {
        let bits = 8 * (self.stored.len() - BITS) as u64;
        (0..self.probes()).map(move |number| {
            let place = hashes.probe(number) % bits;
            (BITS + (place / 8) as usize, 1 << (place % 8))
        })
    }

    fn contains(&self, hashes: Hashes) -> bool {
        self.places(hashes).all(|(byte, bit)| self.stored[byte] & bit != 0)
    }

    fn insert(&mut self, hashes: Hashes) {
        let places: Vec<(usize, u8)> = self.places(hashes).collect();
        places.into_iter().for_each(|(byte, bit)| self.stored[byte] |= bit);
        self.items += 1;
    }
}

impl ValkeyFilter {
    /// An empty filter, if its bytes may be taken.
    pub(crate) fn new(
        shaping: &Shaping,
        may_take: impl FnOnce(u64) -> bool,
    ) -> Result<Self, CreateError> {
        let Shaping { rate, tightening, capacity, expansion, seed } = *shaping;
        match bytes_for(capacity, rate) {
            MAX_MEMORY.. => return Err(CreateError::TooLarge),
            bytes if !may_take(bytes) => return Err(CreateError::Memory),
            _ => {}
        }
        let links = vec![Link::new(capacity, rate, &seed)?];
        Ok(ValkeyFilter { rate, tightening, expansion, links })
    }

    fn hashes(&self, item: &[u8]) -> Hashes {
        Hashes::from_item(self.links[0].seed(), item)
    }

    fn contains_hashes(&self, hashes: Hashes) -> bool {
        self.links.iter().rev().any(|link| link.contains(hashes))
    }

    pub(crate) fn contains(&self, item: &[u8]) -> bool {
        self.contains_hashes(self.hashes(item))
    }

    pub(crate) fn contains_batch<K: AsRef<[u8]>>(&self, items: &[K], hits: &mut Bitmask) {
        hits.write(items.len(), |words| {
            words.fill(0);
            for (i, item) in items.iter().enumerate() {
                words[i / 64] |= u64::from(self.contains(item.as_ref())) << (i % 64);
            }
        });
    }

    /// Adds items in their order. A link is made for one that is not there, if its bytes may be
    /// taken.
    pub(crate) fn add<K: AsRef<[u8]>>(
        &mut self,
        items: &[K],
        may_take: impl Fn(u64) -> bool,
    ) -> Result<Added, AddError> {
        let mut added = Added::default();
        for (before, item) in items.iter().enumerate() {
            let hashes = self.hashes(item.as_ref());
            if self.contains_hashes(hashes) {
                added.is_new.push(false);
                continue;
            }
            let is_full = self.links.last().is_none_or(|link| link.items >= link.capacity);
            if is_full && self.expansion == 0 {
                added.is_full = true;
                break;
            }
            if is_full {
                let error = |is_memory| AddError { before, is_memory };
                let (capacity, rate) = self.next_link().ok_or(error(false))?;
                if !may_take(bytes_for(capacity, rate)) {
                    return Err(error(true));
                }
                let link = Link::new(capacity, rate, self.links[0].seed());
                self.links.push(link.map_err(|_| error(true))?);
            }
            if let Some(link) = self.links.last_mut() {
                link.insert(hashes);
            }
            added.is_new.push(true);
        }
        Ok(added)
    }

    /// Items and rate of the next link; none if there cannot be one.
    fn next_link(&self) -> Option<(u64, f64)> {
        let last = self.links.last()?;
        link_after(self.rate, self.tightening, self.links.len(), last.capacity, self.expansion)
    }

    /// Options that create the same filter, without its items.
    pub(crate) fn shaping(&self) -> Shaping {
        let mut seed = FIXED_SEED;
        seed.copy_from_slice(self.links[0].seed());
        let ValkeyFilter { rate, tightening, expansion, .. } = *self;
        Shaping { rate, tightening, capacity: self.links[0].capacity, expansion, seed }
    }

    pub(crate) fn keys(&self) -> u64 {
        self.links.iter().fold(0, |sum, link| sum.saturating_add(link.items))
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.links.iter().fold(0, |sum, link| sum.saturating_add(link.capacity))
    }

    pub(crate) fn links(&self) -> usize {
        self.links.len()
    }

    pub(crate) fn expansion(&self) -> Option<u32> {
        (self.expansion > 0).then_some(self.expansion)
    }

    /// Bytes of all links.
    pub(crate) fn bytes(&self) -> u64 {
        let links = self.links.iter().map(|link| link.stored.len() + size_of::<Link>());
        links.sum::<usize>() as u64
    }

    pub(crate) fn shapes(&self) -> Vec<Shape> {
        let rates = (0..).map(|number| self.rate * self.tightening.powi(number));
        let links = self.links.iter().zip(rates);
        let shape = |(link, rate): (&Link, f64)| Shape {
            bytes: (link.stored.len() - BITS) as u64,
            hashes: link.probes(),
            hash_bits: 64,
            capacity: link.capacity,
            size: link.items,
            rate,
        };
        links.map(shape).collect()
    }

    /// The same filter in memory of its own; none without memory for it.
    pub(crate) fn copy(&self) -> Option<Self> {
        let copy = |link: &Link| {
            let mut stored = Vec::new();
            stored.try_reserve_exact(link.stored.len()).ok()?;
            stored.extend_from_slice(&link.stored);
            Some(Link { stored, ..*link })
        };
        let links = self.links.iter().map(copy).collect::<Option<_>>()?;
        Some(ValkeyFilter { links, ..*self })
    }

    /// What `BF.LOAD` takes: a version, the numbers of the filter, and of each link its bytes and
    /// numbers, all little-endian; lists and bytes with their length before them. None without
    /// memory for it.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(64 + self.bytes() as usize).ok()?;
        self.write(&mut bytes, |link| &link.stored);
        Some(bytes)
    }

    /// The header of a filter that is sent in pieces: [`MAGIC`], the bytes of all bits, and what
    /// [`to_bytes`](Self::to_bytes) returns, without the bits.
    pub(crate) fn header(&self) -> Vec<u8> {
        let bits: usize = self.links.iter().map(|link| link.stored.len() - BITS).sum();
        let mut bytes = [MAGIC, (bits as u64).to_le_bytes()].concat();
        self.write(&mut bytes, |link| &link.stored[..BITS]);
        bytes
    }

    /// Whether bytes begin as a [`header`](Self::header).
    pub(crate) fn is_header(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    /// An empty filter with this header, and the bytes of its bits, if as many may be taken.
    pub(crate) fn from_header(
        header: &[u8],
        may_take: impl FnOnce(u64) -> bool,
    ) -> Result<(Self, u64), BytesError> {
        let total = header.get(MAGIC.len()..).and_then(|rest| rest.split_first_chunk());
        let (total, rest) = total.ok_or(BytesError::Damaged)?;
        let total = u64::from_le_bytes(*total);
        if !may_take(total) {
            return Err(BytesError::Memory);
        }
        let mut left = total;
        let filter = Self::read(rest, |rest, length| {
            let bits = length.checked_sub(BITS).map(|bits| bits as u64);
            let after = bits.and_then(|bits| left.checked_sub(bits));
            left = after.ok_or(BytesError::Damaged)?;
            let header = rest.split_off(..BITS).ok_or(BytesError::Damaged)?;
            let mut stored = zeros(length).ok_or(BytesError::Memory)?;
            stored[..BITS].copy_from_slice(header);
            Ok(stored)
        })?;
        if left > 0 { Err(BytesError::Damaged) } else { Ok((filter, total)) }
    }

    /// The bits of the link that has this byte of all links' bits, and where they begin there.
    pub(crate) fn bits_at(&self, offset: u64) -> Option<(u64, &[u8])> {
        let mut starts = self.links.iter().scan(0, |end, link| {
            let start = *end;
            *end += (link.stored.len() - BITS) as u64;
            Some((start, &link.stored[BITS..]))
        });
        starts.find(|(start, bits)| offset - start < bits.len() as u64)
    }

    /// Sets all links' bits from the byte `offset` on, which they must have.
    pub(crate) fn set_bits(&mut self, mut offset: u64, mut piece: &[u8]) {
        for link in &mut self.links {
            let bits = &mut link.stored[BITS..];
            let start = offset.min(bits.len() as u64);
            let bits = &mut bits[start as usize..];
            let (now, later) = piece.split_at(piece.len().min(bits.len()));
            bits[..now.len()].copy_from_slice(now);
            (offset, piece) = (offset - start, later);
        }
    }

    fn write(&self, bytes: &mut Vec<u8>, stored: impl Fn(&Link) -> &[u8]) {
        bytes.push(VERSION);
        bytes.extend(self.expansion.to_le_bytes());
        bytes.extend(self.rate.to_le_bytes());
        bytes.extend(self.tightening.to_le_bytes());
        bytes.push(self.seed_is_random().into());
        bytes.extend((self.links.len() as u64).to_le_bytes());
        for link in &self.links {
            bytes.extend((link.stored.len() as u64).to_le_bytes());
            bytes.extend_from_slice(stored(link));
            bytes.extend(link.items.to_le_bytes());
            bytes.extend(link.capacity.to_le_bytes());
        }
    }

    fn seed_is_random(&self) -> bool {
        self.links[0].seed() != FIXED_SEED
    }

    /// The filter of these bytes, if as many may be taken.
    pub(crate) fn from_bytes(
        bytes: &[u8],
        may_take: impl FnOnce(u64) -> bool,
    ) -> Result<Self, BytesError> {
        if !may_take(bytes.len() as u64) {
            return Err(BytesError::Memory);
        }
        Self::read(bytes, |rest, length| {
            let bytes = rest.split_off(..length).ok_or(BytesError::Damaged)?;
            let mut stored = Vec::new();
            stored.try_reserve_exact(bytes.len()).map_err(|_| BytesError::Memory)?;
            stored.extend_from_slice(bytes);
            Ok(stored)
        })
    }

    /// Reads a version and then a filter. `stored` makes the bytes of a link of this length.
    fn read(
        mut bytes: &[u8],
        mut stored: impl FnMut(&mut &[u8], usize) -> Result<Vec<u8>, BytesError>,
    ) -> Result<Self, BytesError> {
        fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], BytesError> {
            let (bytes, after) = rest.split_first_chunk().ok_or(BytesError::Damaged)?;
            *rest = after;
            Ok(*bytes)
        }
        let rest = &mut bytes;
        if take(rest)? != [VERSION] {
            return Err(BytesError::Version);
        }
        let expansion = u32::from_le_bytes(take(rest)?);
        let rate = f64::from_le_bytes(take(rest)?);
        let tightening = f64::from_le_bytes(take(rest)?);
        let is_random = take::<1>(rest)?[0];
        let mut links = Vec::new();
        for _ in 0..u64::from_le_bytes(take(rest)?) {
            let length = usize::try_from(u64::from_le_bytes(take(rest)?));
            let stored = stored(rest, length.map_err(|_| BytesError::Damaged)?)?;
            let (items, capacity) = (take(rest)?, take(rest)?);
            let link = Link::read(stored, u64::from_le_bytes(items), u64::from_le_bytes(capacity));
            links.push(link.map_err(|_| BytesError::Damaged)?);
        }
        let filter = ValkeyFilter { rate, tightening, expansion, links };
        let filter = filter.checked(is_random.into()).ok().filter(|_| rest.is_empty());
        filter.ok_or(BytesError::Damaged)
    }

    /// The filter, unless a number is out of range or the seeds contradict each other.
    fn checked(self, is_random: u64) -> Result<Self, String> {
        let first = self.links.first().ok_or("filters 0, expected 1 or more")?;
        for (field, found) in [("rate", self.rate), ("tightening", self.tightening)] {
            if !(found > 0.0 && found < 1.0) {
                return Err(format!("{field} {found}, expected a number above 0 and below 1"));
            }
        }
        if !self.links.iter().all(|link| link.seed() == first.seed()) {
            return Err("links have different seeds".into());
        }
        check_range("is_seed_random", is_random, self.seed_is_random().into(), 1)?;
        Ok(self)
    }
}

/// Items and rate of the link that follows so many; none if there cannot be one.
pub(crate) fn link_after(
    rate: f64,
    tightening: f64,
    links: usize,
    capacity: u64,
    expansion: u32,
) -> Option<(u64, f64)> {
    let rate = rate * tightening.powi(i32::try_from(links).ok()?);
    let capacity = capacity.checked_mul(expansion.into()).filter(|&items| items < 1 << 63)?;
    (rate > f64::MIN_POSITIVE).then_some((capacity, rate))
}

/// Items and bytes of each link of a filter that is made so.
pub(crate) fn links_of(shaping: Shaping) -> impl FnMut() -> Option<(u64, u64)> {
    let Shaping { rate, tightening, capacity, expansion, .. } = shaping;
    let (mut links, mut last) = (0, capacity);
    move || {
        let (items, rate) = match links {
            0 => (capacity, rate),
            _ => link_after(rate, tightening, links, last, expansion)?,
        };
        (links, last) = (links + 1, items);
        Some((items, bytes_for(items, rate)))
    }
}

/// Why bytes are not a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BytesError {
    Damaged,
    Version,
    Memory,
}

/// Checks that a number is within its range.
fn check_range(field: &str, found: u64, least: u64, most: u64) -> Result<(), String> {
    match (least..=most).contains(&found) {
        true => Ok(()),
        false if least == most => Err(format!("{field} {found}, expected {least}")),
        false => Err(format!("{field} {found}, expected {least} to {most}")),
    }
}

/// Reads a filter. Returns the reason if the value ends early or is damaged, or if memory runs out.
pub(crate) fn load(rdb: *mut raw::RedisModuleIO) -> Result<ValkeyFilter, String> {
    let (count, expansion) = (load_number(rdb, "filters")?, load_small(rdb, "expansion")?);
    let (rate, tightening) = (load_double(rdb, "rate")?, load_double(rdb, "tightening")?);
    let is_random = load_number(rdb, "is_seed_random")?;
    let mut links = Vec::new();
    for left in (0..count).rev() {
        let stored = load_bytes(rdb).ok_or("a link is missing, or the server has no memory")?;
        let capacity = load_number(rdb, "capacity")?;
        // All but the last are full.
        let items = if left == 0 { load_number(rdb, "items")? } else { capacity };
        links.push(Link::read(stored, items, capacity)?);
    }
    ValkeyFilter { rate, tightening, expansion, links }.checked(is_random)
}

/// Writes what [`load`] reads.
pub(crate) fn save(rdb: *mut raw::RedisModuleIO, filter: &ValkeyFilter) {
    raw::save_unsigned(rdb, filter.links.len() as u64);
    raw::save_unsigned(rdb, filter.expansion.into());
    raw::save_double(rdb, filter.rate);
    raw::save_double(rdb, filter.tightening);
    raw::save_unsigned(rdb, filter.seed_is_random().into());
    for (number, link) in filter.links.iter().enumerate() {
        raw::save_slice(rdb, &link.stored);
        raw::save_unsigned(rdb, link.capacity);
        if number + 1 == filter.links.len() {
            raw::save_unsigned(rdb, link.items);
        }
    }
}

//! Small filters of one link as bytes: their length (2 bytes), the growth of an own filter or 0 for
//! one of RedisBloom (1), the other facts, and the bits.

use std::alloc::{Layout, handle_alloc_error};
use std::sync::LazyLock;

use blocked_bloom_formats::redis::RedisFilter;

use crate::blocked::Blocked;
use crate::filter::Filter;
use crate::loading::{FIRST_LINK, LINK};

/// Most packed bytes: a size class of jemalloc. Filters of 10,000 keys at 1 % take less.
const MAX_BYTES: usize = 14 << 10;

/// Facts of RedisBloom's filters: length, 0, options (1 byte), growth (4), size, error and bits per
/// entry (8 each), hashes (1), entries (8) and n2 (1).
const FACTS: usize = 42;
const KIND: usize = 2;
const SIZE: usize = 8;
const HASHES: usize = 32;
const ENTRIES: usize = 33;
const N2: usize = 41;
const HEADER: usize = FIRST_LINK + LINK;

/// Any filter with hashes of 64 bits, which hashes keys.
static HASHER: LazyLock<RedisFilter> =
    LazyLock::new(|| RedisFilter::new(1, 0.5, None).expect("a filter of 8 bytes"));

/// Bytes of a small filter when packed; none if it is not small.
pub(crate) fn packed_bytes(filter: &Filter) -> Option<usize> {
    let bytes = match filter {
        Filter::Blocked(filter) => filter.packed_bytes()?,
        Filter::Redis(filter) if filter.hash_bits() == 64 => {
            let [link] = filter.links() else { return None };
            (link.shape().probes() <= u8::MAX.into()).then_some(FACTS + link.as_bytes().len())?
        }
        _ => return None,
    };
    (bytes <= MAX_BYTES).then_some(bytes)
}

pub(crate) fn pack(filter: &Filter) -> Option<Box<[u8]>> {
    let bytes = packed_bytes(filter)?;
    let mut packed = Vec::with_capacity(bytes);
    packed.extend((bytes as u16).to_le_bytes());
    match filter {
        Filter::Blocked(filter) => filter.pack(&mut packed),
        Filter::Redis(filter) => {
            let (_, header) = filter.dump().next()?;
            packed.push(0);
            // Options; growth; size, error and bits per entry; hashes; entries and n2.
            for range in [12..13, 16..20, 36..60, 60..61, 64..HEADER] {
                packed.extend(header.get(range)?);
            }
            packed.extend(filter.links().first()?.as_bytes());
        }
        Filter::Valkey(_) | Filter::Loading(_) => return None,
    }
    Some(packed.into_boxed_slice())
}

pub(crate) fn unpack(packed: &[u8]) -> Filter {
    let filter = match packed[KIND] {
        0 => unpack_redis(packed).map(|filter| Filter::Redis(Box::new(filter))),
        _ => Blocked::unpack(packed).map(Filter::Blocked),
    };
    // Packed bytes are those of a filter, so only memory can be missing.
    filter.unwrap_or_else(|| handle_alloc_error(Layout::for_value(packed)))
}

/// A filter of RedisBloom. Its header has the number of keys twice, one link, and the length of
/// the bits in bytes and in bits.
fn unpack_redis(packed: &[u8]) -> Option<RedisFilter> {
    let (facts, bits) = packed.split_at_checked(FACTS)?;
    let bytes = bits.len() as u64;
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&facts[SIZE..16]);
    header[8] = 1;
    header[12] = facts[3];
    header[16..20].copy_from_slice(&facts[4..SIZE]);
    header[20..28].copy_from_slice(&bytes.to_le_bytes());
    header[28..36].copy_from_slice(&(8 * bytes).to_le_bytes());
    header[36..61].copy_from_slice(&facts[SIZE..ENTRIES]);
    header[64..].copy_from_slice(&facts[ENTRIES..]);
    RedisFilter::from_links(&header, vec![bits.to_vec()]).ok()
}

/// The byte and the mask of each probe of a key in the bits of RedisBloom's filter.
#[inline]
fn probes(facts: &[u8], bytes: usize, key: &[u8]) -> impl Iterator<Item = (usize, u8)> + use<> {
    let hash = HASHER.hash_key(key);
    let (mut next, step, count) = (hash.first(), hash.second(), facts[HASHES]);
    let used = if facts[N2] == 0 { 8 * bytes as u64 } else { 1 << facts[N2] };
    (0..count).map(move |_| {
        let bit = next % used;
        next = next.wrapping_add(step);
        ((bit / 8) as usize, 1 << (bit % 8))
    })
}

#[inline]
pub(crate) fn contains(packed: &[u8], key: &[u8]) -> bool {
    if packed[KIND] != 0 {
        return Blocked::packed_link(packed).is_none_or(|link| link.contains(key));
    }
    let (facts, bits) = packed.split_at(FACTS);
    probes(facts, bits.len(), key).all(|(at, bit)| bits[at] & bit != 0)
}

/// Adds a key and returns whether it is new, or returns `None` if that needs another link.
#[inline]
pub(crate) fn add_one(packed: &mut [u8], key: &[u8]) -> Option<bool> {
    if packed[KIND] != 0 {
        return Blocked::add_packed(packed, key);
    }
    if contains(packed, key) {
        return Some(false);
    }
    let (facts, bits) = packed.split_at_mut(FACTS);
    let number = |at: usize| facts[at..].first_chunk().copied().map(u64::from_le_bytes);
    let (size, entries) = (number(SIZE)?, number(ENTRIES)?);
    if size >= entries {
        return None;
    }
    facts[SIZE..SIZE + 8].copy_from_slice(&(size + 1).to_le_bytes());
    probes(facts, bits.len(), key).for_each(|(at, bit)| bits[at] |= bit);
    Some(true)
}

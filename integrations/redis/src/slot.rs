//! The memory of a key's value. Small filters are bytes, without any number that others determine;
//! a command that changes one unpacks it and packs it again.

use std::alloc::{Layout, handle_alloc_error};
use std::ops::{Deref, DerefMut};

use blocked_bloom_formats::redis::RedisFilter;

use crate::allocator::{counted_bytes, move_box, move_bytes};
use crate::filter::Filter;
use crate::loading::{FIRST_LINK, LINK};
use crate::own::Own;

/// Most bytes of a small filter's blocks or bits.
pub(crate) const MOST_BYTES: usize = 2048;

/// The first packed byte.
const OWN: u8 = 0;
const REDIS: u8 = 1;

/// Bytes of a packed filter of RedisBloom before its bits.
const FACTS: usize = 40;
const HEADER: usize = FIRST_LINK + LINK;

pub(crate) enum Slot {
    Large(Box<Filter>),
    /// Packed.
    Small(Box<[u8]>),
}

impl From<Filter> for Slot {
    fn from(filter: Filter) -> Self {
        match pack(&filter) {
            Some(packed) => Slot::Small(packed),
            None => Slot::Large(Box::new(filter)),
        }
    }
}

impl Slot {
    /// The filter, to be read.
    #[inline]
    pub(crate) fn get(&self) -> Lent<'_> {
        match self {
            Slot::Large(filter) => Lent::Large(filter),
            Slot::Small(packed) => Lent::Small(unpack(packed)),
        }
    }

    /// The filter, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> LentMut<'_> {
        if let Slot::Small(packed) = self {
            *self = Slot::Large(Box::new(unpack(packed)));
        }
        LentMut(self)
    }

    /// Bytes that the server's allocator took.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let value = counted_bytes(Layout::new::<Slot>()) as u64;
        value.saturating_add(match self {
            Slot::Large(filter) => filter.memory_bytes(),
            Slot::Small(packed) => counted_bytes(Layout::for_value(&**packed)) as u64,
        })
    }

    /// Has the allocator move small allocations.
    pub(crate) fn reallocate(&mut self) {
        match self {
            Slot::Large(filter) => {
                filter.reallocate();
                move_box(filter);
            }
            Slot::Small(packed) => move_bytes(packed),
        }
    }
}

/// A filter that is read: one of a key, or one that was unpacked.
pub(crate) enum Lent<'a> {
    Large(&'a Filter),
    Small(Filter),
}

impl Deref for Lent<'_> {
    type Target = Filter;

    #[inline]
    fn deref(&self) -> &Filter {
        match self {
            Lent::Large(filter) => filter,
            Lent::Small(filter) => filter,
        }
    }
}

/// A filter that is changed, and packed afterwards if it is small. Its slot is large.
pub(crate) struct LentMut<'a>(&'a mut Slot);

impl Deref for LentMut<'_> {
    type Target = Filter;

    #[inline]
    fn deref(&self) -> &Filter {
        match &*self.0 {
            Slot::Large(filter) => filter,
            Slot::Small(_) => unreachable!("unpacked in `get_mut`"),
        }
    }
}

impl DerefMut for LentMut<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Filter {
        match self.0 {
            Slot::Large(filter) => filter,
            Slot::Small(_) => unreachable!("unpacked in `get_mut`"),
        }
    }
}

impl Drop for LentMut<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(packed) = pack(self) {
            *self.0 = Slot::Small(packed);
        }
    }
}

/// Bytes of a small filter when packed; none if it is not small.
pub(crate) fn packed_bytes(filter: &Filter) -> Option<usize> {
    match filter {
        Filter::Own(filter) => Some(1 + filter.packed_bytes()?),
        Filter::Redis(filter) => {
            let [link] = filter.links() else { return None };
            let bytes = link.as_bytes().len();
            let is_small = bytes <= MOST_BYTES && link.shape().probes() <= u8::MAX.into();
            is_small.then_some(FACTS + bytes)
        }
        Filter::Valkey(_) | Filter::Loading(_) => None,
    }
}

fn pack(filter: &Filter) -> Option<Box<[u8]>> {
    let mut packed = Vec::with_capacity(packed_bytes(filter)?);
    match filter {
        Filter::Own(filter) => {
            packed.push(OWN);
            filter.pack(&mut packed);
        }
        Filter::Redis(filter) => {
            let (_, header) = filter.dump().next()?;
            packed.push(REDIS);
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

fn unpack(packed: &[u8]) -> Filter {
    let filter = match packed.split_first() {
        Some((&OWN, rest)) => Own::unpack(rest).map(Filter::Own),
        _ => unpack_redis(packed).map(|filter| Filter::Redis(Box::new(filter))),
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
    header[..8].copy_from_slice(&facts[6..14]);
    header[8] = 1;
    header[12] = facts[1];
    header[16..20].copy_from_slice(&facts[2..6]);
    header[20..28].copy_from_slice(&bytes.to_le_bytes());
    header[28..36].copy_from_slice(&(8 * bytes).to_le_bytes());
    header[36..61].copy_from_slice(&facts[6..31]);
    header[64..].copy_from_slice(&facts[31..]);
    RedisFilter::from_links(&header, vec![bits.to_vec()]).ok()
}

//! The filter of a key: an own filter, one of RedisBloom's or valkey-bloom's, or one that is still
//! being loaded.

use std::alloc::Layout;

use blocked_bloom::{Bitmask, BloomFilter};
use blocked_bloom_formats::redis::{Link, RedisFilter};

use crate::allocator::{counted_bytes, move_box};
use crate::blocked::{Blocked, TIGHTENING};
use crate::loading::{Loaded, Loading};
use crate::outcome::{AddError, Added, Shape};
use crate::packed::packed_bytes;
use crate::redisbloom;
use crate::scaling::Scaling;
use crate::valkey::{self, ValkeyFilter};

pub(crate) enum Filter {
    Blocked(Blocked),
    /// A filter of RedisBloom's, which answers, grows and is dumped as there.
    Redis(Box<RedisFilter>),
    /// One of valkey-bloom's, likewise.
    Valkey(Box<ValkeyFilter>),
    Loading(Box<Loading>),
}

impl From<Loaded> for Filter {
    fn from(loaded: Loaded) -> Self {
        match loaded {
            Loaded::Blocked(filter) => Filter::Blocked(filter),
            Loaded::Redis(filter) => Filter::Redis(filter),
            Loaded::Valkey(filter) => Filter::Valkey(filter),
        }
    }
}

// A size class of jemalloc.
const _: () = assert!(size_of::<Filter>() <= 112);

impl Filter {
    /// Whether the key may be present; none while the filter is being loaded.
    pub(crate) fn contains(&self, key: &[u8]) -> Option<bool> {
        match self {
            Filter::Blocked(filter) => Some(filter.contains(key)),
            Filter::Redis(filter) => Some(filter.contains(key)),
            Filter::Valkey(filter) => Some(filter.contains(key)),
            Filter::Loading(_) => None,
        }
    }

    /// Looks up a few keys where that is quick, and calls `hit` for each; otherwise, without a
    /// call, false: then [`contains_batch`](Self::contains_batch) does it.
    #[inline]
    pub(crate) fn contains_few<K: AsRef<[u8]>>(&self, keys: &[K], hit: impl FnMut(bool)) -> bool {
        matches!(self, Filter::Blocked(filter) if filter.contains_few(keys, hit))
    }

    /// Looks up every key by the batch kernels; none while the filter is being loaded.
    pub(crate) fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K]) -> Option<Bitmask> {
        let mut hits = Bitmask::new();
        match self {
            Filter::Blocked(filter) => filter.contains_batch(keys, &mut hits),
            Filter::Redis(filter) => filter.contains_batch(keys, &mut hits),
            Filter::Valkey(filter) => filter.contains_batch(keys, &mut hits),
            Filter::Loading(_) => return None,
        }
        Some(hits)
    }

    /// Adds a key and returns whether it is new. Returns `None` if there is no quick way; then call
    /// [`add`](Self::add).
    #[inline]
    pub(crate) fn add_one(&mut self, key: &[u8]) -> Option<bool> {
        match self {
            Filter::Blocked(filter) => filter.add_one(key),
            _ => None,
        }
    }

    /// Adds keys in their order; none while the filter is being loaded. `may_take` says whether
    /// there is memory for the link that a new key needs.
    pub(crate) fn add<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        may_take: impl Fn(u64) -> bool,
    ) -> Option<Result<Added, AddError>> {
        match self {
            Filter::Blocked(filter) => Some(filter.add(keys, may_take)),
            Filter::Redis(filter) => Some(redisbloom::add(filter, keys, may_take)),
            Filter::Valkey(filter) => Some(filter.add(keys, may_take)),
            Filter::Loading(_) => None,
        }
    }

    /// Keys that were certainly new when they were added.
    pub(crate) fn keys(&self) -> u64 {
        match self {
            Filter::Blocked(filter) => filter.keys(),
            Filter::Redis(filter) => filter.size(),
            Filter::Valkey(filter) => filter.keys(),
            Filter::Loading(_) => 0,
        }
    }

    /// Keys that the links are for.
    pub(crate) fn capacity(&self) -> u64 {
        match self {
            Filter::Blocked(filter) => filter.capacity(),
            Filter::Redis(filter) => filter.capacity(),
            Filter::Valkey(filter) => filter.capacity(),
            Filter::Loading(_) => 0,
        }
    }

    /// Links that there are; dumps of former versions may have none, and make the first one with
    /// the first key.
    pub(crate) fn links(&self) -> usize {
        match self {
            Filter::Blocked(filter) => filter.links().len().max(1),
            Filter::Redis(filter) => filter.links().len(),
            Filter::Valkey(filter) => filter.links(),
            Filter::Loading(_) => 0,
        }
    }

    /// How many times as many keys the next link is for; none if there will be none.
    pub(crate) fn expansion(&self) -> Option<u32> {
        match self {
            Filter::Blocked(filter) => filter.expansion(),
            Filter::Redis(filter) => filter.expansion(),
            Filter::Valkey(filter) => filter.expansion(),
            Filter::Loading(_) => None,
        }
    }

    /// Of each link: bytes, bits for a key, keys that it is for, keys that it has, and the rate
    /// that it was made for.
    pub(crate) fn shapes(&self) -> Vec<Shape> {
        match self {
            Filter::Blocked(filter) => {
                let shapes = filter.links().iter().zip(filter.link_capacities());
                let shape = |(link, capacity): (&BloomFilter, u64)| Shape {
                    bytes: link.memory_bytes(),
                    hashes: link.params().probes(),
                    hash_bits: 64,
                    capacity,
                    size: link.keys_inserted(),
                    rate: link.params().false_positive_rate_at(capacity),
                };
                shapes.map(shape).collect()
            }
            Filter::Redis(filter) => {
                let shape = |link: &Link| Shape {
                    bytes: link.shape().bits() / 8,
                    hashes: link.shape().probes(),
                    hash_bits: filter.hash_bits(),
                    capacity: link.entries(),
                    size: link.size(),
                    rate: link.error_rate(),
                };
                filter.links().iter().map(shape).collect()
            }
            Filter::Valkey(filter) => filter.shapes(),
            Filter::Loading(_) => Vec::new(),
        }
    }

    /// The rate that all links together keep, or that other modules' filters were reserved for.
    pub(crate) fn rate(&self) -> f64 {
        match self {
            Filter::Blocked(filter) => filter.rate(),
            Filter::Redis(filter) => {
                let first = filter.links().first().map_or(0.0, Link::error_rate);
                if filter.expansion().is_some() { 2.0 * first } else { first }
            }
            Filter::Valkey(filter) => filter.shaping().rate,
            Filter::Loading(_) => 0.0,
        }
    }

    /// The next link's part of the last link's rate. For own filters, the part of the remaining
    /// rate that a link leaves.
    pub(crate) fn tightening(&self) -> f64 {
        match self {
            Filter::Blocked(_) => TIGHTENING,
            Filter::Valkey(filter) => filter.shaping().tightening,
            Filter::Redis(_) | Filter::Loading(_) => 0.5,
        }
    }

    /// How it would go on to grow.
    pub(crate) fn scaling(&self) -> Scaling<'_> {
        match self {
            Filter::Blocked(filter) => {
                Scaling::new(self.capacity(), self.size(), filter.links_to_come())
            }
            Filter::Valkey(filter) => Scaling::new(0, 0, valkey::links_of(filter.shaping())),
            Filter::Redis(filter) => {
                let next = redisbloom::links_to_come(filter);
                Scaling::new(self.capacity(), self.size(), next)
            }
            Filter::Loading(_) => Scaling::new(0, self.size(), || None),
        }
    }

    /// Bytes of the filter and its parts, in a key.
    pub(crate) fn size(&self) -> u64 {
        if let Some(packed) = packed_bytes(self) {
            return packed as u64;
        }
        let parts = match self {
            Filter::Blocked(filter) => filter.parts_bytes(),
            Filter::Redis(filter) => {
                let links = filter.links();
                let bits = links.iter().map(|link| link.shape().bits() / 8).sum::<u64>();
                bits + (size_of_val(links) + size_of::<RedisFilter>()) as u64
            }
            Filter::Valkey(filter) => filter.bytes() + size_of::<ValkeyFilter>() as u64,
            Filter::Loading(loading) => loading.memory_bytes() + size_of::<Loading>() as u64,
        };
        parts.saturating_add(size_of::<Filter>() as u64)
    }

    /// Bytes that the server's allocator took for a large filter: its size classes are up to a
    /// quarter larger than the request.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let value = counted_bytes(Layout::new::<Filter>()) as u64;
        let more = match self {
            Filter::Blocked(filter) => filter.heap_bytes(),
            Filter::Redis(filter) => {
                let links = filter.links();
                let bits = links.iter().map(|link| link.shape().bits() / 8).sum::<u64>();
                let filter = counted_bytes(Layout::new::<RedisFilter>());
                bits + (size_of_val(links) + filter) as u64
            }
            Filter::Valkey(filter) => {
                filter.bytes() + counted_bytes(Layout::new::<ValkeyFilter>()) as u64
            }
            Filter::Loading(loading) => {
                loading.memory_bytes() + counted_bytes(Layout::new::<Loading>()) as u64
            }
        };
        value.saturating_add(more)
    }

    /// The same filter in memory of its own; none without memory for it, and for one that is being
    /// loaded.
    pub(crate) fn copy(&self) -> Option<Self> {
        match self {
            Filter::Blocked(filter) => filter.copy().map(Filter::Blocked),
            Filter::Redis(filter) => {
                RedisFilter::load(filter.dump()).ok().map(|filter| Filter::Redis(Box::new(filter)))
            }
            Filter::Valkey(filter) => filter.copy().map(|filter| Filter::Valkey(Box::new(filter))),
            Filter::Loading(_) => None,
        }
    }

    /// Has the allocator move small allocations.
    pub(crate) fn reallocate(&mut self) {
        match self {
            Filter::Blocked(filter) => filter.reallocate(),
            Filter::Redis(filter) => move_box(filter),
            Filter::Valkey(filter) => move_box(filter),
            Filter::Loading(loading) => move_box(loading),
        }
    }
}

//! A filter that the module's own commands made: a filter of the core, and when that is full and
//! grows, a growing filter which it is the first link of.

use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;

use blocked_bloom::parts::{BlockBuffer, HEADER_BYTES, Header};
use blocked_bloom::{
    Bitmask, Block, BloomFilter, Filter as _, FilterContents, FilterOptions, KeyHash, Params,
    Sizing,
};
use blocked_bloom_scalable::{ScalableBloomFilter, ScalableError, ScalableOptions};

use crate::allocator::{counted_bytes, move_box};
use crate::outcome::{AddError, Added, CreateError};
use crate::reserve::{MAX_CAPACITY, Reserve};
use crate::settings::huge_pages;
use dump::Dump;

/// The first reply of a dump begins with this. RedisBloom's loader rejects the reply: its own
/// header has 20 bytes and 53 for each link, which is never 64, and the four bytes of its options
/// are all ones here, while it knows four bits.
const MAGIC: [u8; 8] = *b"\x89BBRDIS\n";
const VERSION: u16 = 1;
const NO_OPTIONS_OF_REDIS_BLOOM: (usize, u32) = (12, u32::MAX);
const FLAGS: usize = 16;
const LENGTH: usize = 24;
const FLAG_FIXED: u32 = 1;

/// Which part of the rate the first link gets, in a filter that grows and in one that does not.
///
/// `BF.RESERVE` says how many keys there will be, so most filters have one link, which should be no
/// larger than they need. With two thirds of the rate it takes 10.9 bits for a key at 1 %;
/// RedisBloom's takes 11.0, a link with half the rate 11.5, and a filter with the whole rate 9.9.
/// The second link gets 15 % of the last third, and takes 17.4 bits for a key. It would take 14.9
/// if the first one had 15 % of the rate too, but then that would take 14.5.
const FIRST_SHARE: f64 = 2.0 / 3.0;
const ONLY_SHARE: f64 = 0.95;

/// Which part of the remaining rate each later link leaves. Dumps of filters that do not grow have
/// another number, without a meaning.
pub(crate) const TIGHTENING: f64 = 0.85;
const TIGHTENING_FIXED: f64 = 0.05;

/// Lower rates are not taken: the first link of a filter that grows would need more probes than a
/// block can have.
pub(crate) const MIN_ERROR_RATE: f64 = 1e-8;

/// Keys whose cache lines are prefetched together.
const PREFETCHED: usize = 64;

/// Most keys of [`contains_few`](Blocked::contains_few).
pub(crate) const MAX_FEW: usize = 8;

/// Blocks of this many bytes may be on huge pages.
const LARGE: u64 = 2 << 20;

mod dump;
mod small;

pub(crate) struct Blocked {
    body: Body,
    /// A dump that a client has begun and not ended.
    dump: Cell<Option<Box<Dump>>>,
    /// Keys that the only link is for.
    keys: u32,
    growth: u8,
    /// Whether another link follows a full one.
    grows: bool,
}

/// Most filters have one link and few keys: they take one allocation besides their blocks.
enum Body {
    One { link: BloomFilter, rate: f64 },
    Chain(Box<ScalableBloomFilter>),
}

use Body::{Chain, One};

impl Blocked {
    /// An empty filter, if its bytes may be taken.
    pub(crate) fn new(
        reserve: &Reserve,
        may_take: impl FnOnce(u64) -> bool,
    ) -> Result<Self, CreateError> {
        let grows = reserve.expansion != 0;
        let rate = reserve.error_rate;
        if rate < MIN_ERROR_RATE || reserve.capacity > MAX_CAPACITY as u64 {
            return Err(CreateError::Shape);
        }
        let share = if grows { FIRST_SHARE } else { ONLY_SHARE };
        let options = FilterOptions::new(Sizing::FalsePositiveRate(share * rate));
        let params = options.params(reserve.capacity).map_err(|_| CreateError::Shape)?;
        if !may_take(params.stored_bytes()) {
            return Err(CreateError::Memory);
        }
        let blocks = BlockBuffer::zeroed(params.blocks(), huge_pages());
        let blocks = blocks.map_err(|_| CreateError::Memory)?;
        let link = BloomFilter::from_blocks(blocks, params.probes(), options.key_hash())
            .map_err(|_| CreateError::Shape)?;
        Ok(Blocked {
            body: One { link, rate },
            dump: Cell::default(),
            // At most 2^30, as checked.
            keys: reserve.capacity as u32,
            growth: reserve.expansion.clamp(2, 16) as u8,
            grows,
        })
    }

    /// Options of the growing filter whose first link is the only link.
    fn options(&self, link: &BloomFilter, rate: f64) -> ScalableOptions {
        ScalableOptions::new(rate, self.keys.into())
            .with_key_hash(link.key_hash())
            .with_growth(self.growth.into())
            .with_tightening(if self.grows { TIGHTENING } else { TIGHTENING_FIXED })
    }

    /// The only link as a growing filter.
    fn as_chain<'a>(
        &self,
        link: &'a BloomFilter,
        rate: f64,
    ) -> Result<ScalableBloomFilter<&'a [Block]>, ScalableError> {
        self.options(link, rate).continue_from(link.view())
    }

    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        match &self.body {
            One { link, .. } => link.contains(key),
            Chain(chain) => chain.contains(key),
        }
    }

    /// Looks up a few keys one by one, after prefetching their lines: this takes less than a batch
    /// does before its first key. For more keys returns false, without calling `hit`.
    #[inline]
    pub(crate) fn contains_few<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut hit: impl FnMut(bool),
    ) -> bool {
        let hasher = match &self.body {
            One { link, .. } => link.hasher(),
            Chain(chain) => chain.hasher(),
        };
        let (Ok(hasher), true) = (hasher, keys.len() <= MAX_FEW) else { return false };
        let mut hashes = [0; MAX_FEW];
        for (key, hash) in keys.iter().zip(&mut hashes) {
            *hash = hasher.hash(key);
            match &self.body {
                One { link, .. } => link.prefetch_hash(*hash),
                Chain(chain) => chain.prefetch_hash(*hash),
            }
        }
        for &hash in &hashes[..keys.len()] {
            hit(match &self.body {
                One { link, .. } => link.contains_hash(hash),
                Chain(chain) => chain.contains_hash(hash),
            });
        }
        true
    }

    pub(crate) fn contains_batch<K: AsRef<[u8]>>(&self, keys: &[K], hits: &mut Bitmask) {
        match &self.body {
            One { link, .. } => link.contains_batch(keys, hits),
            Chain(chain) => chain.contains_batch(keys, hits),
        }
    }

    /// Keys that can be added without another link; 0 where even the first one is missing, as in
    /// dumps of former versions.
    fn capacity_left(&self) -> u64 {
        match &self.body {
            One { link, .. } => u64::from(self.keys).saturating_sub(link.keys_inserted()),
            Chain(chain) if chain.links().is_empty() => 0,
            Chain(chain) => chain.capacity_left(),
        }
    }

    /// Adds a key, and returns whether it is new, unless that takes another link: then
    /// [`add`](Self::add) does it.
    #[inline]
    pub(crate) fn add_one(&mut self, key: &[u8]) -> Option<bool> {
        let left = self.capacity_left();
        match &mut self.body {
            One { link, .. } => {
                let hash = link.hasher().ok()?.hash(key);
                if link.contains_hash(hash) {
                    return Some(false);
                }
                if left == 0 {
                    return None;
                }
                link.insert_hash(hash).ok()
            }
            Chain(chain) if left > 0 => chain.insert(key).ok(),
            Chain(chain) => chain.contains(key).then_some(false),
        }
    }

    /// Adds keys in their order. A link is made for a key that is not there, if its bytes may be
    /// taken.
    pub(crate) fn add<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        may_take: impl Fn(u64) -> bool,
    ) -> Result<Added, AddError> {
        let mut added = Added { is_new: Vec::with_capacity(keys.len()), is_full: false };
        let mut rest = keys;
        while !rest.is_empty() {
            let left = usize::try_from(self.capacity_left()).unwrap_or(usize::MAX);
            if left > 0 {
                let (now, later) = rest.split_at(left.min(rest.len()));
                let result = self.insert(now, &mut added.is_new);
                result.map_err(|error| stopped(&error, added.is_new.len()))?;
                rest = later;
                continue;
            }
            // Keys that are present need no further link.
            let mut hits = Bitmask::new();
            self.contains_batch(rest, &mut hits);
            let present = hits.iter().position(|hit| !hit).unwrap_or(rest.len());
            added.is_new.resize(added.is_new.len() + present, false);
            let [key, later @ ..] = &rest[present..] else { break };
            if !self.grows {
                added.is_full = true;
                break;
            }
            let before = added.is_new.len();
            let params = self.next_link().ok_or(AddError { before, is_memory: false })?;
            if !may_take(params.stored_bytes()) {
                return Err(AddError { before, is_memory: true });
            }
            self.grow(key).map_err(|error| stopped(&error, before))?;
            added.is_new.push(true);
            rest = later;
        }
        Ok(added)
    }

    /// Adds keys for which there is capacity.
    fn insert<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        is_new: &mut Vec<bool>,
    ) -> Result<(), ScalableError> {
        let link = match &mut self.body {
            One { link, .. } => link,
            Chain(chain) => {
                let mut new = Bitmask::new();
                chain.insert_batch_new(keys, &mut new)?;
                is_new.extend(new.iter());
                return Ok(());
            }
        };
        let hasher = link.hasher()?;
        if keys.len() <= MAX_FEW {
            let mut hashes = [0; MAX_FEW];
            for (key, hash) in keys.iter().zip(&mut hashes) {
                *hash = hasher.hash(key);
                link.prefetch_hash(*hash);
            }
            for &hash in &hashes[..keys.len()] {
                is_new.push(!link.contains_hash(hash) && link.insert_hash(hash)?);
            }
            return Ok(());
        }
        let mut space = [0; PREFETCHED];
        for keys in keys.chunks(PREFETCHED) {
            let hashes = &mut space[..keys.len()];
            hasher.hash_batch_into(keys, hashes).expect("a hash per key");
            hashes.iter().for_each(|&hash| link.prefetch_hash(hash));
            for &hash in &*hashes {
                // Only what is new is counted.
                is_new.push(!link.contains_hash(hash) && link.insert_hash(hash)?);
            }
        }
        Ok(())
    }

    /// Shape of the next link; none if no link can keep what is left of the rate.
    fn next_link(&self) -> Option<Params> {
        match &self.body {
            One { link, rate } => self.as_chain(link, *rate).ok()?.next_link().ok(),
            Chain(chain) => chain.next_link().ok(),
        }
    }

    /// Adds a key that is not there, to another link.
    fn grow<K: AsRef<[u8]>>(&mut self, key: &K) -> Result<(), ScalableError> {
        let options = match &self.body {
            One { link, rate } => self.options(link, *rate),
            Chain(_) => return self.insert_into_chain(key),
        };
        // Replaces the link, which moves into the chain.
        let spare =
            BloomFilter::with_params(Sizing::BitsPerKey(8.0).params(1)?, KeyHash::default())?;
        if let One { link, .. } = &mut self.body {
            let link = std::mem::replace(link, spare);
            // The options have the link's hash and are in range, so only the list of one link can
            // fail.
            let chain = options.continue_from(link);
            let chain = chain.unwrap_or_else(|_| handle_alloc_error(Layout::new::<BloomFilter>()));
            self.body = Chain(Box::new(chain.with_huge_pages(huge_pages())));
        }
        self.insert_into_chain(key)
    }

    fn insert_into_chain<K: AsRef<[u8]>>(&mut self, key: &K) -> Result<(), ScalableError> {
        let Chain(chain) = &mut self.body else { return Ok(()) };
        chain.insert(key).map(|_| ())
    }

    pub(crate) fn keys(&self) -> u64 {
        match &self.body {
            One { link, .. } => link.keys_inserted(),
            Chain(chain) => chain.keys_inserted(),
        }
    }

    pub(crate) fn capacity(&self) -> u64 {
        let left = match &self.body {
            Chain(chain) => chain.capacity_left(),
            One { .. } => self.capacity_left(),
        };
        self.keys().saturating_add(left)
    }

    pub(crate) fn links(&self) -> &[BloomFilter] {
        match &self.body {
            One { link, .. } => std::slice::from_ref(link),
            Chain(chain) => chain.links(),
        }
    }

    /// Keys that each link is for: those that it has, and of the last one also those for which
    /// there is capacity.
    pub(crate) fn link_capacities(&self) -> impl Iterator<Item = u64> {
        let (links, left) = (self.links(), self.capacity_left());
        links.iter().enumerate().map(move |(i, link)| {
            link.keys_inserted() + if i + 1 == links.len() { left } else { 0 }
        })
    }

    pub(crate) fn expansion(&self) -> Option<u32> {
        self.grows.then_some(self.growth.into())
    }

    /// The rate that all links together keep.
    pub(crate) fn rate(&self) -> f64 {
        match &self.body {
            One { rate, .. } => *rate,
            Chain(chain) => chain.false_positive_rate(),
        }
    }

    /// Keys and bytes of each link to come.
    pub(crate) fn links_to_come(&self) -> impl FnMut() -> Option<(u64, u64)> + use<> {
        let capacities: Vec<u64> = self.link_capacities().collect();
        let rates = self.links().iter().zip(&capacities);
        let used = rates.map(|(link, &keys)| link.params().false_positive_rate_at(keys)).sum();
        let keys = capacities.last().copied().unwrap_or(1);
        further_links(self.rate(), used, keys, self.growth.into())
    }

    /// Bytes of the parts of the filter, without the value itself.
    pub(crate) fn parts_bytes(&self) -> u64 {
        let list = match &self.body {
            One { .. } => 0,
            Chain(chain) => size_of_val(&**chain) + size_of_val(chain.links()),
        };
        list as u64 + self.links().iter().map(BloomFilter::memory_bytes).sum::<u64>()
    }

    /// Bytes that the server's allocator took for these. Links of 2 MiB and more count with the
    /// bytes of their blocks: the up to 2 MiB more, which let them start at a huge page, are
    /// addresses without memory.
    pub(crate) fn heap_bytes(&self) -> u64 {
        let list = match &self.body {
            One { .. } => 0,
            // The list has a place for each link, and no more.
            Chain(chain) => {
                let list = counted_bytes(Layout::for_value(chain.links()));
                list + counted_bytes(Layout::new::<ScalableBloomFilter>())
            }
        };
        let kept = self.dump.take();
        let dump = kept.as_ref().map_or(0, |dump| dump.heap_bytes());
        self.dump.set(kept);
        let blocks = self.links().iter().map(|link| match link.memory_bytes() {
            large @ LARGE.. => large,
            small => {
                let layout = Layout::from_size_align(small as usize, size_of::<Block>());
                layout.map_or(small, |layout| counted_bytes(layout) as u64)
            }
        });
        (list + dump) as u64 + blocks.sum::<u64>()
    }

    /// Has the allocator move small allocations.
    pub(crate) fn reallocate(&mut self) {
        match &mut self.body {
            One { link, .. } => link.reallocate(),
            Chain(chain) => {
                chain.reallocate();
                move_box(chain);
            }
        }
    }

    /// The same filter in memory of its own; none without memory for it.
    pub(crate) fn copy(&self) -> Option<Self> {
        let body = match &self.body {
            One { link, rate } => One { link: link.to_filter().ok()?, rate: *rate },
            Chain(chain) => Chain(Box::new(chain.to_filter().ok()?)),
        };
        let Blocked { keys, growth, grows, .. } = *self;
        Some(Blocked { body, dump: Cell::default(), keys, growth, grows })
    }

    /// Whether the filter grows and how many bytes follow, from the first reply of a dump; none if
    /// that is not this module's.
    pub(crate) fn read_header(bytes: &[u8]) -> Option<(bool, u64)> {
        let header = Header::read(bytes, MAGIC, VERSION).ok()?;
        let (options, none) = NO_OPTIONS_OF_REDIS_BLOOM;
        let flags = header.u32_at(FLAGS);
        let zero =
            [10..12, 20..24, 32..56].into_iter().all(|range| header.check_zero(range).is_ok());
        let valid = bytes.len() == HEADER_BYTES
            && header.u32_at(options) == none
            && zero
            && flags & !FLAG_FIXED == 0;
        valid.then(|| (flags & FLAG_FIXED == 0, header.u64_at(LENGTH)))
    }

    /// Whether a stored chain of these headers and links is a filter: not if its first header is
    /// damaged or of other links, or if its keys are hashed by the caller.
    pub(crate) fn loads(
        grows: bool,
        headers: &[[u8; HEADER_BYTES]],
        links: Vec<BloomFilter<&[Block]>>,
    ) -> bool {
        let chain = ScalableBloomFilter::from_stored_headers(headers, links);
        chain.is_ok_and(|chain| (grows || chain.links().len() <= 1) && chain.hasher().is_ok())
    }

    /// The filter of a stored chain that [`loads`](Self::loads).
    pub(crate) fn load(
        grows: bool,
        headers: &[[u8; HEADER_BYTES]],
        mut links: Vec<BloomFilter>,
    ) -> Option<Self> {
        let views = links.iter().map(BloomFilter::view).collect();
        let chain = ScalableBloomFilter::from_stored_headers(headers, views).ok()?;
        let rate = chain.false_positive_rate();
        let keys = chain.keys_inserted().saturating_add(chain.capacity_left());
        // 2 to 16.
        let growth = chain.growth() as u8;
        // A chain of one link becomes a link again, if it is such as this module makes.
        let (body, keys) = match (&links[..], u32::try_from(keys)) {
            ([link], Ok(keys)) if rate < 1.0 && link.contents() == FilterContents::WholeKeys => {
                (One { link: links.pop()?, rate }, keys)
            }
            _ => {
                let chain = ScalableBloomFilter::from_stored_headers(headers, links).ok()?;
                (Chain(Box::new(chain.with_huge_pages(huge_pages()))), 0)
            }
        };
        Some(Blocked { body, dump: Cell::default(), keys, growth, grows })
    }
}

/// Keys and bytes of each link of a filter that is made so.
pub(crate) fn links_of(reserve: Reserve) -> impl FnMut() -> Option<(u64, u64)> {
    let sizing = Sizing::FalsePositiveRate(FIRST_SHARE * reserve.error_rate);
    let growth = reserve.expansion.clamp(2, 16);
    let mut first = sizing.params(reserve.capacity).ok();
    let used = first.map_or(0.0, |params| params.false_positive_rate_at(reserve.capacity));
    let mut further = further_links(reserve.error_rate, used, reserve.capacity, growth);
    let capacity = reserve.capacity;
    move || match first.take() {
        Some(params) => Some((capacity, params.stored_bytes())),
        None => further(),
    }
}

/// The same of the links after one for so many keys, if all links so far have used that much of
/// the rate.
fn further_links(
    rate: f64,
    mut used: f64,
    mut keys: u64,
    growth: u64,
) -> impl FnMut() -> Option<(u64, u64)> {
    move || {
        keys = keys.saturating_mul(growth);
        let sizing = Sizing::FalsePositiveRate((1.0 - TIGHTENING) * (rate - used));
        let params = sizing.params(keys).ok()?;
        used += params.false_positive_rate_at(keys);
        Some((keys, params.stored_bytes()))
    }
}

/// The error if only the first `before` keys are in the filter.
fn stopped(error: &ScalableError, before: usize) -> AddError {
    AddError { before, is_memory: matches!(error, ScalableError::Alloc(_)) }
}

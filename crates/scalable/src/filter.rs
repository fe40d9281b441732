//! A chain of filters, each larger and stricter than the one before: construction and properties.

use alloc::vec::Vec;
use core::fmt;

use blocked_bloom::parts::BlockBuffer;
use blocked_bloom::{
    AllocError, Block, BloomFilter, FilterContents, Kernel, KeyError, MAX_RECOMMENDED_BLOCKS,
    Params, ParamsError, Sizing,
};

use crate::error::ScalableError;
use crate::options::ScalableOptions;

/// A Bloom filter for an unknown number of keys: it grows and keeps its false-positive rate.
///
/// It is a chain of blocked filters ("links"), after Almeida, Baquero, Preguiça and Hutchison,
/// "Scalable Bloom Filters", Information Processing Letters 101 (2007). When the last link is full,
/// the next one is sized for [twice](ScalableOptions::with_growth) as many keys, and for 15 % of
/// the rate that the existing links leave of the target. So the sum of the links' rates, and with
/// it the rate of the chain, never exceeds the target.
///
/// A key is inserted only if no link may contain it. Repeated keys therefore cost no memory, and
/// only distinct keys are counted.
///
/// Cost: a filter of the same rate that is sized for the number of keys reads one cache line per
/// lookup instead of one per link, and uses less memory. The chain uses 1.4 to 1.8 times as much
/// when its last link is full, and 3.3 to 4.1 times as much after a new link was added.
/// `docs/growing.md` has the figures.
///
/// `ScalableBloomFilter` owns its links and accepts keys.
/// `ScalableBloomFilter<Stored<LinkBytes<B>>>` was opened by
/// [`from_bytes`](ScalableBloomFilter::from_bytes), and its links borrow the bytes in `B`. Both
/// have the same lookups.
///
/// ```
/// use blocked_bloom_scalable::ScalableOptions;
/// let mut seen = ScalableOptions::new(0.01, 1_000).build()?;
/// let mut fetched = 0;
/// for page in 0..100_000_u32 {
///     let url = format!("https://example.com/{}", page % 50_000);
///     if seen.insert(&url)? {
///         fetched += 1; // certainly new
///     }
/// }
/// assert!((49_500..=50_000).contains(&fetched));
/// assert_eq!(seen.keys_inserted(), fetched);
/// # Ok::<(), blocked_bloom_scalable::ScalableError>(())
/// ```
#[derive(Clone)]
pub struct ScalableBloomFilter<D = BlockBuffer> {
    /// The options, with two changes: `items` belongs to the last link, and `rate` is a sum after a
    /// union.
    pub(crate) shape: ScalableOptions,
    pub(crate) kernel: Kernel,
    /// Whether new links are advised to use huge pages.
    pub(crate) huge_pages: bool,
    /// Keys are inserted into the last link.
    pub(crate) links: Vec<BloomFilter<D>>,
}

impl ScalableOptions {
    /// Creates an empty filter. Allocates nothing.
    ///
    /// # Errors
    ///
    /// [`ScalableError::Params`] if the rate is out of range, cannot be reached by the first link,
    /// or needs a link that is too large; [`ScalableError::GrowthOutOfRange`];
    /// [`ScalableError::TighteningOutOfRange`]. A target of 10^-5 can be kept for over 40 links,
    /// and one of 10^-6 for 30. Insertions that need more links fail.
    pub fn build(self) -> Result<ScalableBloomFilter, ScalableError> {
        let shape = self.checked()?;
        let filter = ScalableBloomFilter::from_links(shape, Vec::new());
        filter.next_link()?;
        Ok(filter)
    }

    /// Creates a growing filter that continues `first`. Its first link counts as sized for the
    /// options' number of keys, whatever its rate, and later links share the rest of the options'
    /// rate.
    ///
    /// Use it for filters that rarely grow, to use more of the rate in one link than
    /// [`build`](Self::build) does. With a borrowed link, it can store a plain filter as a growing
    /// one. Copies no block.
    ///
    /// # Errors
    ///
    /// [`ScalableError::HashMismatch`] if the filter's hash differs from that of the options,
    /// [`ScalableError::Key`] if it contains prefixes, and the errors of [`build`](Self::build) for
    /// options out of range.
    ///
    /// ```
    /// use blocked_bloom::{Filter, FilterOptions, Sizing};
    /// use blocked_bloom_scalable::ScalableOptions;
    /// let sizing = Sizing::FalsePositiveRate(0.005);
    /// let mut filter = FilterOptions::new(sizing).empty_filter(100)?;
    /// filter.insert("apple")?;
    /// let filter = ScalableOptions::new(0.01, 100).continue_from(filter)?;
    /// assert_eq!((filter.keys_inserted(), filter.capacity_left()), (1, 99));
    /// assert!(filter.contains("apple"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn continue_from<D>(
        self,
        first: BloomFilter<D>,
    ) -> Result<ScalableBloomFilter<D>, ScalableError> {
        let shape = self.checked()?;
        let (left, right) = (shape.key_hash, first.key_hash());
        if left != right {
            return Err(ScalableError::HashMismatch { left, right });
        }
        if first.contents() != FilterContents::WholeKeys {
            return Err(KeyError::NoPrefix { contents: first.contents() }.into());
        }
        let mut links = Vec::new();
        let error = AllocError::new(size_of::<BloomFilter<D>>() as u64);
        links.try_reserve_exact(1).map_err(|_| error)?;
        let kernel = first.kernel();
        links.push(first);
        Ok(ScalableBloomFilter { kernel, ..ScalableBloomFilter::from_links(shape, links) })
    }
}

impl<D> ScalableBloomFilter<D> {
    pub(crate) fn from_links(shape: ScalableOptions, links: Vec<BloomFilter<D>>) -> Self {
        ScalableBloomFilter { shape, kernel: Kernel::default(), huge_pages: true, links }
    }

    /// Sets whether new links are advised to use huge pages (the default). With small pages, a new
    /// link of 2 MiB or more is not written at once: the system clears each page of 4 KiB, instead
    /// of 2 MiB, when it is first used.
    #[must_use]
    pub fn with_huge_pages(self, huge_pages: bool) -> Self {
        ScalableBloomFilter { huge_pages, ..self }
    }

    /// Sets the kernel that runs batches.
    #[must_use]
    pub fn with_kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self.links = self.links.into_iter().map(|link| link.with_kernel(kernel)).collect();
        self
    }

    /// Returns the links. The last one receives new keys.
    pub fn links(&self) -> &[BloomFilter<D>] {
        &self.links
    }

    /// Returns the number of keys that were certainly new when inserted: the distinct keys, except
    /// for false positives. After a union it is the sum of both.
    pub fn keys_inserted(&self) -> u64 {
        self.links.iter().fold(0, |sum, link| sum.saturating_add(link.keys_inserted()))
    }

    /// Returns the growth factor: see [`ScalableOptions::with_growth`].
    pub fn growth(&self) -> u32 {
        self.shape.growth
    }

    /// Returns how many new keys fit before the next link is created. Without links, returns the
    /// size of the first.
    pub fn capacity_left(&self) -> u64 {
        let used = self.links.last().map_or(0, BloomFilter::keys_inserted);
        self.shape.items.saturating_sub(used)
    }

    /// Returns the rate that the filter never exceeds for any number of distinct keys: the target
    /// of the [options](ScalableOptions), or the sum of the targets after a union.
    pub fn false_positive_rate(&self) -> f64 {
        self.shape.rate
    }
}

impl<D: AsRef<[Block]>> ScalableBloomFilter<D> {
    /// Returns the shape of the next link, and the number of keys it is sized for. It is created by
    /// the first new key when no [capacity](Self::capacity_left) is left.
    ///
    /// # Errors
    ///
    /// [`ParamsError`] if no link can keep the rest of the rate. Insertions then fail too.
    pub fn next_link(&self) -> Result<Params, ParamsError> {
        let ScalableOptions { rate, tightening, growth, items, .. } = self.shape;
        let used = self.links.iter().map(BloomFilter::expected_false_positive_rate).sum::<f64>();
        let sizing = Sizing::FalsePositiveRate((1.0 - tightening) * (rate - used));
        if !self.links.is_empty()
            && let Ok(params) = sizing.params(items.saturating_mul(growth.into()))
            && params.blocks() <= MAX_RECOMMENDED_BLOCKS
        {
            return Ok(params);
        }
        sizing.params(items)
    }

    /// Returns the current rate, as predicted from the number of keys in each link: the probability
    /// that at least one link answers "maybe" for an absent key.
    pub fn expected_false_positive_rate(&self) -> f64 {
        self.chain_rate(BloomFilter::expected_false_positive_rate)
    }

    /// Returns the current rate, as estimated from the bits: the probability that at least one link
    /// answers "maybe" for an absent key. Cost: reads every block.
    pub fn estimated_false_positive_rate(&self) -> f64 {
        self.chain_rate(BloomFilter::estimated_false_positive_rate)
    }

    fn chain_rate(&self, rate: impl Fn(&BloomFilter<D>) -> f64) -> f64 {
        1.0 - self.links.iter().map(|link| 1.0 - rate(link)).product::<f64>()
    }

    /// Returns the size of all links' blocks in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.links.iter().map(BloomFilter::memory_bytes).sum()
    }

    /// Copies the links into a filter that accepts keys.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if allocating the copies fails.
    pub fn to_filter(&self) -> Result<ScalableBloomFilter, AllocError> {
        let links = self.links.iter().map(BloomFilter::to_filter).collect::<Result<_, _>>()?;
        let ScalableBloomFilter { shape, kernel, huge_pages, .. } = *self;
        Ok(ScalableBloomFilter { shape, kernel, huge_pages, links })
    }
}

/// Compares hash, target, growth and links; kernel and storage do not matter.
impl<D, E> PartialEq<ScalableBloomFilter<E>> for ScalableBloomFilter<D>
where
    D: AsRef<[Block]>,
    E: AsRef<[Block]>,
{
    fn eq(&self, other: &ScalableBloomFilter<E>) -> bool {
        self.shape == other.shape && self.links == other.links
    }
}

/// Shows the shape, without the bits.
impl<D: AsRef<[Block]>> fmt::Debug for ScalableBloomFilter<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScalableBloomFilter")
            .field("shape", &self.shape)
            .field("links", &self.links)
            .finish()
    }
}

//! A chain of filters, each larger and stricter than the one before: how it is made, and what is
//! known of it.

use alloc::vec::Vec;
use core::fmt;

use blocked_bloom::parts::BlockBuffer;
use blocked_bloom::{
    AllocError, Block, BloomFilter, FilterContents, Kernel, KeyError, MAX_RECOMMENDED_BLOCKS,
    Params, ParamsError, Sizing,
};

use crate::error::ScalableError;
use crate::options::ScalableOptions;

/// A Bloom filter for an unknown number of keys: it grows, and keeps its false-positive rate.
///
/// A chain of blocked filters ("links"), after Almeida, Baquero, Preguiça and Hutchison, "Scalable
/// Bloom Filters", Information Processing Letters 101 (2007). When the last link has the keys it
/// was sized for, the next is made for [twice](ScalableOptions::with_growth) as many, and for 15 %
/// of the rate that the links so far leave of the target. So the rates of all links, and with them
/// the chance that any of them is wrong, never sum to more than the target.
///
/// A key is added only if no link may have it, so repeated keys cost no memory; and the keys that
/// are counted are distinct.
///
/// Price: a filter of the same rate that was sized for the number of keys needs one cache line for
/// a lookup instead of one for each link, and less memory: the chain takes 1.4 to 1.8 times as much
/// when its last link is full, 3.3 to 4.1 times when that has just been added. `docs/growing.md`
/// has the figures.
///
/// `ScalableBloomFilter` owns its links and can be added to;
/// `ScalableBloomFilter<Stored<LinkBytes<B>>>` was opened by
/// [`from_bytes`](ScalableBloomFilter::from_bytes), and its links lie in the bytes that `B` holds.
/// Both are looked up alike.
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
    /// The options, except that the keys are those of the last link, and the rate is a sum after a
    /// union.
    pub(crate) shape: ScalableOptions,
    pub(crate) kernel: Kernel,
    /// Whether links to come are advised to be on huge pages.
    pub(crate) huge_pages: bool,
    /// Keys go into the last one.
    pub(crate) links: Vec<BloomFilter<D>>,
}

impl ScalableOptions {
    /// An empty filter. Allocates nothing yet.
    ///
    /// # Errors
    ///
    /// [`ScalableError::Params`] if the rate is out of its range or out of reach of the first link,
    /// or the link would be too large; [`ScalableError::GrowthOutOfRange`];
    /// [`ScalableError::TighteningOutOfRange`]. A target of 10^-5 is kept for over 40 links, one of
    /// 10^-6 for 30; then adding fails.
    pub fn build(self) -> Result<ScalableBloomFilter, ScalableError> {
        let shape = self.checked()?;
        let filter = ScalableBloomFilter::from_links(shape, Vec::new());
        filter.next_link()?;
        Ok(filter)
    }

    /// A growing filter whose first link is `first`. The link is then for the options' number of
    /// keys, whatever rate it was sized for, and later links share what it leaves of the options'
    /// rate.
    ///
    /// For filters that are expected not to grow, whose one link gets more of the rate than
    /// [`build`](Self::build) gives it; and, with a borrowed link, to store a plain filter as a
    /// growing one. Copies no block.
    ///
    /// # Errors
    ///
    /// [`ScalableError::HashMismatch`] unless the filter is of the options' hash,
    /// [`ScalableError::Key`] if it holds prefixes, and those of [`build`](Self::build) for options
    /// out of range.
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

    /// Whether links that are made from now on are advised to be on huge pages, as they are unless
    /// this says otherwise. On small pages a new link of 2 MiB and more is not written, and a page
    /// of 4 KiB, not of 2 MiB, is cleared when it is first used.
    #[must_use]
    pub fn with_huge_pages(self, huge_pages: bool) -> Self {
        ScalableBloomFilter { huge_pages, ..self }
    }

    /// The same filter, with batches answered by `kernel`.
    #[must_use]
    pub fn with_kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self.links = self.links.into_iter().map(|link| link.with_kernel(kernel)).collect();
        self
    }

    /// The links, the one that receives keys last.
    pub fn links(&self) -> &[BloomFilter<D>] {
        &self.links
    }

    /// Keys that were certainly new when they were added: the distinct keys, less the false
    /// positives among them. After a union, the sum.
    pub fn keys_inserted(&self) -> u64 {
        self.links.iter().fold(0, |sum, link| sum.saturating_add(link.keys_inserted()))
    }

    /// By how much each link is larger than the one before: see [`ScalableOptions::with_growth`].
    pub fn growth(&self) -> u32 {
        self.shape.growth
    }

    /// New keys until the next link is made; without links, those that the first will be for.
    pub fn capacity_left(&self) -> u64 {
        let used = self.links.last().map_or(0, BloomFilter::keys_inserted);
        self.shape.items.saturating_sub(used)
    }

    /// The rate that is never exceeded, however many distinct keys are added: that of the
    /// [options](ScalableOptions), or after unions the sum.
    pub fn false_positive_rate(&self) -> f64 {
        self.shape.rate
    }
}

impl<D: AsRef<[Block]>> ScalableBloomFilter<D> {
    /// Shape of the next link, with the keys that it will be for: what a further new key costs when
    /// no [capacity](Self::capacity_left) is left.
    ///
    /// # Errors
    ///
    /// [`ParamsError`] if no link can keep what the others leave of the rate: then adding fails
    /// too.
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

    /// The current rate that the probe scheme predicts for the keys in each link: the chance that
    /// at least one link says "maybe" to an absent key.
    pub fn expected_false_positive_rate(&self) -> f64 {
        self.chain_rate(BloomFilter::expected_false_positive_rate)
    }

    /// The current rate, from the bits: the chance that at least one link says "maybe" to an absent
    /// key. Cost: reads every block.
    pub fn estimated_false_positive_rate(&self) -> f64 {
        self.chain_rate(BloomFilter::estimated_false_positive_rate)
    }

    fn chain_rate(&self, rate: impl Fn(&BloomFilter<D>) -> f64) -> f64 {
        1.0 - self.links.iter().map(|link| 1.0 - rate(link)).product::<f64>()
    }

    /// Bytes of the blocks of all links.
    pub fn memory_bytes(&self) -> u64 {
        self.links.iter().map(BloomFilter::memory_bytes).sum()
    }

    /// Copies the links into a filter that can be added to.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for the copies.
    pub fn to_filter(&self) -> Result<ScalableBloomFilter, AllocError> {
        let links = self.links.iter().map(BloomFilter::to_filter).collect::<Result<_, _>>()?;
        let ScalableBloomFilter { shape, kernel, huge_pages, .. } = *self;
        Ok(ScalableBloomFilter { shape, kernel, huge_pages, links })
    }
}

/// Same hash, target, growth and links; neither the kernel nor where the bytes are matters.
impl<D, E> PartialEq<ScalableBloomFilter<E>> for ScalableBloomFilter<D>
where
    D: AsRef<[Block]>,
    E: AsRef<[Block]>,
{
    fn eq(&self, other: &ScalableBloomFilter<E>) -> bool {
        self.shape == other.shape && self.links == other.links
    }
}

/// The shape, without the bits.
impl<D: AsRef<[Block]>> fmt::Debug for ScalableBloomFilter<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScalableBloomFilter")
            .field("shape", &self.shape)
            .field("links", &self.links)
            .finish()
    }
}

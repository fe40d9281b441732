//! A policy that wraps another policy and times it. The overhead is the same for every inner
//! policy.
//!
//! Keys are not timed one by one while a filter is built: entries are collected and added together.
//! Times are means of the middle half, or the best of several: a mean of all values would include
//! the machine's other work.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::BufMut;
use slatedb::{Filter, FilterBuilder, FilterPolicy, FilterQuery, RowEntry};

/// Most probes that are kept for [`replay`], and most times.
const KEPT: usize = 1_000_000;

/// Probes that are replayed together: few enough to stay in the cache.
const REPLAY_GROUP: usize = 64;

/// The measurements of a policy.
#[derive(Default)]
pub(crate) struct Profile {
    /// Thousandths of ns per key, of every table.
    build: Mutex<Vec<u64>>,
    bytes: AtomicU64,
    /// ns of every filter.
    decode: Mutex<Vec<u64>>,
    probes: AtomicU64,
    maybes: AtomicU64,
    recording: AtomicBool,
    kept: Mutex<Vec<Probe>>,
}

struct Probe {
    filter: Arc<dyn Filter>,
    query: FilterQuery,
    /// How long the answer took in the engine.
    ns: u64,
}

/// Probes of one phase.
#[derive(Clone, Copy, Default)]
pub(crate) struct Probes {
    pub(crate) count: u64,
    pub(crate) maybes: u64,
    /// In the engine, whose work in between has emptied the cache: the mean of the middle half,
    /// less the clock's own time.
    pub(crate) ns: f64,
    /// The same probes again, one after the other, without the engine and the clock between them.
    pub(crate) replayed_ns: f64,
}

impl Profile {
    pub(crate) fn build_ns_per_key(&self) -> f64 {
        minimum(&self.build) / 1e3
    }

    /// Of all filters that were built, as encoded.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    pub(crate) fn decode_us(&self) -> f64 {
        minimum(&self.decode) / 1e3
    }

    /// Starts a phase.
    pub(crate) fn start(&self) {
        self.probes.store(0, Relaxed);
        self.maybes.store(0, Relaxed);
        self.kept.lock().unwrap().clear();
        self.recording.store(true, Relaxed);
    }

    /// Ends a phase.
    pub(crate) fn stop(&self) -> Probes {
        self.recording.store(false, Relaxed);
        let kept = self.kept.lock().unwrap();
        let in_engine = middle(kept.iter().map(|probe| probe.ns).collect());
        Probes {
            count: self.probes.load(Relaxed),
            maybes: self.maybes.load(Relaxed),
            ns: (in_engine - clock_ns()).max(0.0),
            replayed_ns: replay(&kept),
        }
    }
}

fn minimum(times: &Mutex<Vec<u64>>) -> f64 {
    times.lock().unwrap().iter().min().copied().unwrap_or(0) as f64
}

/// The best of ten rounds of each few probes, in ns per probe.
fn replay(probes: &[Probe]) -> f64 {
    let mut total = Duration::ZERO;
    for some in probes.chunks(REPLAY_GROUP) {
        let rounds = (0..10).map(|_| {
            let start = Instant::now();
            let maybes = some.iter().filter(|probe| probe.filter.might_match(&probe.query));
            std::hint::black_box(maybes.count());
            start.elapsed()
        });
        total += rounds.min().unwrap_or_default();
    }
    total.as_nanos() as f64 / probes.len().max(1) as f64
}

/// The mean of the middle half: the clock counts in tens of nanoseconds on some machines, too
/// coarse for a median.
fn middle(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    let half = &values[values.len() / 4..values.len() - values.len() / 4];
    half.iter().sum::<u64>() as f64 / half.len().max(1) as f64
}

/// Time that the clock itself adds to a measured interval.
fn clock_ns() -> f64 {
    middle((0..100_000).map(|_| Instant::now().elapsed().as_nanos() as u64).collect())
}

pub(crate) struct Profiled {
    inner: Arc<dyn FilterPolicy>,
    profile: Arc<Profile>,
}

impl Profiled {
    pub(crate) fn new(inner: Arc<dyn FilterPolicy>) -> (Arc<Self>, Arc<Profile>) {
        let profile = Arc::new(Profile::default());
        (Arc::new(Profiled { inner, profile: Arc::clone(&profile) }), profile)
    }

    fn wrap(&self, inner: Arc<dyn Filter>) -> Arc<dyn Filter> {
        Arc::new(ProfiledFilter { inner, profile: Arc::clone(&self.profile) })
    }
}

impl FilterPolicy for Profiled {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn builder(&self) -> Box<dyn FilterBuilder> {
        let (inner, profile) = (self.inner.builder(), Arc::clone(&self.profile));
        Box::new(ProfiledBuilder { inner, entries: Vec::new(), profile })
    }

    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        let start = Instant::now();
        let filter = self.inner.decode(data);
        self.profile.decode.lock().unwrap().push(start.elapsed().as_nanos() as u64);
        self.wrap(filter)
    }

    fn estimate_size(&self, num_keys: usize) -> usize {
        self.inner.estimate_size(num_keys)
    }

    fn supports_range_queries(&self) -> bool {
        self.inner.supports_range_queries()
    }

    fn supports_prefix_queries(&self) -> bool {
        self.inner.supports_prefix_queries()
    }
}

struct ProfiledBuilder {
    inner: Box<dyn FilterBuilder>,
    entries: Vec<RowEntry>,
    profile: Arc<Profile>,
}

impl FilterBuilder for ProfiledBuilder {
    fn add_entry(&mut self, entry: &RowEntry) {
        self.entries.push(entry.clone());
    }

    fn build(&mut self) -> Arc<dyn Filter> {
        let entries = std::mem::take(&mut self.entries);
        let start = Instant::now();
        for entry in &entries {
            self.inner.add_entry(entry);
        }
        let filter = self.inner.build();
        let ns_per_key = 1_000 * start.elapsed().as_nanos() as u64 / entries.len().max(1) as u64;
        self.profile.build.lock().unwrap().push(ns_per_key);
        let mut encoded = Vec::new();
        filter.encode(&mut encoded);
        self.profile.bytes.fetch_add(encoded.len() as u64, Relaxed);
        Arc::new(ProfiledFilter { inner: filter, profile: Arc::clone(&self.profile) })
    }
}

struct ProfiledFilter {
    inner: Arc<dyn Filter>,
    profile: Arc<Profile>,
}

impl Filter for ProfiledFilter {
    fn might_match(&self, query: &FilterQuery) -> bool {
        // The first look at the clock is the dear one, and not the filter's fault.
        std::hint::black_box(Instant::now());
        let start = Instant::now();
        let maybe = self.inner.might_match(query);
        let ns = start.elapsed().as_nanos() as u64;
        if self.profile.recording.load(Relaxed) {
            self.profile.maybes.fetch_add(u64::from(maybe), Relaxed);
            if self.profile.probes.fetch_add(1, Relaxed) < KEPT as u64 {
                let (filter, query) = (Arc::clone(&self.inner), query.clone());
                self.profile.kept.lock().unwrap().push(Probe { filter, query, ns });
            }
        }
        maybe
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        self.inner.encode(writer);
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        let (inner, profile) = (self.inner.clamp_allocated_size(), Arc::clone(&self.profile));
        Arc::new(ProfiledFilter { inner, profile })
    }
}

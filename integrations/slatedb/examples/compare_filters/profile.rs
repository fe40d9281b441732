//! A policy around a policy, which times it: whatever is inside pays the same.
//!
//! This file owns the clocks and the record of questions. It refuses to time a key at a time while a filter is built: entries are kept, and
//! added in one go.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::BufMut;
use slatedb::{Filter, FilterBuilder, FilterPolicy, FilterQuery, RowEntry};

/// Most questions that are kept for [`Profile::replay`].
const KEPT: usize = 1_000_000;

/// What was measured inside a policy.
#[derive(Default)]
pub(crate) struct Profile {
    build_ns: AtomicU64,
    keys: AtomicU64,
    bytes: AtomicU64,
    decode_ns: AtomicU64,
    decoded: AtomicU64,
    probe_ns: AtomicU64,
    probes: AtomicU64,
    maybes: AtomicU64,
    recording: AtomicBool,
    questions: Mutex<Vec<(Arc<dyn Filter>, FilterQuery)>>,
}

/// Questions of one phase.
#[derive(Clone, Copy, Default)]
pub(crate) struct Probes {
    pub(crate) asked: u64,
    pub(crate) maybes: u64,
    /// In the engine, the clock's own time subtracted.
    pub(crate) ns: f64,
    /// The same questions again, one after the other, without the engine and without a clock between them.
    pub(crate) replayed_ns: f64,
}

impl Profile {
    pub(crate) fn build_ns_per_key(&self) -> f64 {
        self.build_ns.load(Relaxed) as f64 / self.keys.load(Relaxed).max(1) as f64
    }

    /// Of all filters that were built, as encoded.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    pub(crate) fn decode_us(&self) -> f64 {
        self.decode_ns.load(Relaxed) as f64 / 1e3 / self.decoded.load(Relaxed).max(1) as f64
    }

    /// Starts a phase.
    pub(crate) fn start(&self) {
        for counter in [&self.probe_ns, &self.probes, &self.maybes] {
            counter.store(0, Relaxed);
        }
        self.questions.lock().unwrap().clear();
        self.recording.store(true, Relaxed);
    }

    /// Ends a phase.
    pub(crate) fn stop(&self) -> Probes {
        self.recording.store(false, Relaxed);
        let asked = self.probes.load(Relaxed);
        let ns = self.probe_ns.load(Relaxed) as f64 / asked.max(1) as f64;
        Probes {
            asked,
            maybes: self.maybes.load(Relaxed),
            ns: (ns - clock_ns()).max(0.0),
            replayed_ns: self.replay(),
        }
    }

    /// The best of five rounds, in ns per question.
    fn replay(&self) -> f64 {
        let questions = self.questions.lock().unwrap();
        let rounds = (0..5).map(|_| {
            let start = Instant::now();
            let maybes = questions.iter().filter(|(filter, query)| filter.might_match(query));
            std::hint::black_box(maybes.count());
            start.elapsed().as_nanos() as f64 / questions.len().max(1) as f64
        });
        rounds.fold(f64::INFINITY, f64::min)
    }
}

/// What the clock adds to a measured interval.
fn clock_ns() -> f64 {
    let spans: Duration = (0..100_000).map(|_| Instant::now().elapsed()).sum();
    spans.as_nanos() as f64 / 100_000.0
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
        self.profile.decode_ns.fetch_add(start.elapsed().as_nanos() as u64, Relaxed);
        self.profile.decoded.fetch_add(1, Relaxed);
        self.wrap(filter)
    }

    fn estimate_size(&self, num_keys: usize) -> usize {
        self.inner.estimate_size(num_keys)
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
        self.profile.build_ns.fetch_add(start.elapsed().as_nanos() as u64, Relaxed);
        self.profile.keys.fetch_add(entries.len() as u64, Relaxed);
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
        let start = Instant::now();
        let maybe = self.inner.might_match(query);
        let ns = start.elapsed().as_nanos() as u64;
        if self.profile.recording.load(Relaxed) {
            self.profile.probe_ns.fetch_add(ns, Relaxed);
            self.profile.maybes.fetch_add(u64::from(maybe), Relaxed);
            if self.profile.probes.fetch_add(1, Relaxed) < KEPT as u64 {
                let question = (Arc::clone(&self.inner), query.clone());
                self.profile.questions.lock().unwrap().push(question);
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

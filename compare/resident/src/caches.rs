//! Caches that engines put filters in, behind one trait. Weights are bytes.

use quick_cache::unsync;

pub(crate) trait Cache {
    /// Looks up and counts as a use.
    fn touch(&mut self, unit: u32) -> bool;
    /// Looks up without that.
    fn has(&mut self, unit: u32) -> bool;
    fn insert(&mut self, unit: u32, bytes: u64);
    fn remove(&mut self, unit: u32);
}

const NONE: u32 = u32::MAX;

/// The list of an LRU, as indices of the units.
pub(crate) struct Lru {
    before: Vec<u32>,
    after: Vec<u32>,
    /// 0 for what is not in it.
    bytes: Vec<u64>,
    newest: u32,
    oldest: u32,
    free: i64,
}

impl Lru {
    pub(crate) fn new(units: usize, budget: u64) -> Self {
        let links = vec![NONE; units];
        let free = budget as i64;
        Lru {
            before: links.clone(),
            after: links,
            bytes: vec![0; units],
            newest: NONE,
            oldest: NONE,
            free,
        }
    }

    fn unlink(&mut self, unit: u32) {
        let (before, after) = (self.before[unit as usize], self.after[unit as usize]);
        match before {
            NONE => self.newest = after,
            _ => self.after[before as usize] = after,
        }
        match after {
            NONE => self.oldest = before,
            _ => self.before[after as usize] = before,
        }
    }

    fn link(&mut self, unit: u32) {
        self.before[unit as usize] = NONE;
        self.after[unit as usize] = self.newest;
        match self.newest {
            NONE => self.oldest = unit,
            newest => self.before[newest as usize] = unit,
        }
        self.newest = unit;
    }
}

impl Cache for Lru {
    fn touch(&mut self, unit: u32) -> bool {
        let is_in = self.has(unit);
        if is_in && self.newest != unit {
            self.unlink(unit);
            self.link(unit);
        }
        is_in
    }

    fn has(&mut self, unit: u32) -> bool {
        self.bytes[unit as usize] > 0
    }

    fn insert(&mut self, unit: u32, bytes: u64) {
        if self.has(unit) {
            return;
        }
        self.bytes[unit as usize] = bytes;
        self.free -= bytes as i64;
        self.link(unit);
        while self.free < 0 {
            self.remove(self.oldest);
        }
    }

    fn remove(&mut self, unit: u32) {
        if self.has(unit) {
            self.unlink(unit);
            self.free += self.bytes[unit as usize] as i64;
            self.bytes[unit as usize] = 0;
        }
    }
}

#[derive(Clone)]
pub(crate) struct Bytes;

impl quick_cache::Weighter<u32, u64> for Bytes {
    fn weight(&self, _: &u32, bytes: &u64) -> u64 {
        *bytes
    }
}

/// quick_cache, whose policy is a variant of S3-FIFO.
pub(crate) struct Quick(unsync::Cache<u32, u64, Bytes>);

impl Quick {
    pub(crate) fn new(units: usize, budget: u64) -> Self {
        Quick(unsync::Cache::with_weighter(units, budget, Bytes))
    }
}

impl Cache for Quick {
    fn touch(&mut self, unit: u32) -> bool {
        self.0.get(&unit).is_some()
    }

    fn has(&mut self, unit: u32) -> bool {
        self.0.peek(&unit).is_some()
    }

    fn insert(&mut self, unit: u32, bytes: u64) {
        self.0.insert(unit, bytes);
    }

    fn remove(&mut self, unit: u32) {
        self.0.remove(&unit);
    }
}

/// moka, whose policy is W-TinyLFU. Its weights have 32 bits.
pub(crate) struct Moka(moka::sync::Cache<u32, u32>);

impl Moka {
    pub(crate) fn new(budget: u64) -> Self {
        Moka(moka::sync::Cache::builder().max_capacity(budget).weigher(|_, &bytes| bytes).build())
    }
}

impl Cache for Moka {
    fn touch(&mut self, unit: u32) -> bool {
        self.0.get(&unit).is_some()
    }

    fn has(&mut self, unit: u32) -> bool {
        self.0.contains_key(&unit)
    }

    fn insert(&mut self, unit: u32, bytes: u64) {
        self.0.insert(unit, u32::try_from(bytes).expect("a filter of less than 4 GiB"));
    }

    fn remove(&mut self, unit: u32) {
        self.0.invalidate(&unit);
    }
}

//! How far a filter can grow within the limit of memory: for `BF.INSERT ... VALIDATESCALETO` and
//! `BF.INFO ... MAXSCALEDCAPACITY`.

use crate::memory::MAX_MEMORY;
use crate::settings::memory_limit;

/// Links beyond this many are not counted. Each is looked up for a key that is absent; with the
/// built-in tightening there can be 1,022.
const MAX_LINKS: usize = 1 << 12;

/// A filter that grows, in thought.
pub(crate) struct Scaling<'a> {
    /// Keys and bytes of the links so far.
    capacity: u64,
    bytes: u64,
    /// Keys and bytes of the next link; none if there cannot be one.
    next: Box<dyn FnMut() -> Option<(u64, u64)> + 'a>,
}

/// Why a filter cannot grow as far.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScaleError {
    Memory,
    Rate,
}

impl ScaleError {
    pub(crate) fn text(self) -> &'static str {
        match self {
            ScaleError::Memory => {
                "ERR provided VALIDATESCALETO causes bloom object to exceed memory limit"
            }
            ScaleError::Rate => {
                "ERR provided VALIDATESCALETO causes false positive to degrade to 0"
            }
        }
    }
}

impl<'a> Scaling<'a> {
    /// From links of so many keys and bytes.
    pub(crate) fn new(
        capacity: u64,
        bytes: u64,
        next: impl FnMut() -> Option<(u64, u64)> + 'a,
    ) -> Self {
        Scaling { capacity, bytes, next: Box::new(next) }
    }

    /// The keys that the filter can be for.
    pub(crate) fn max_capacity(self) -> u64 {
        self.grow(u64::MAX).0
    }

    /// Whether it can be for this many.
    pub(crate) fn check(self, capacity: u64) -> Result<(), ScaleError> {
        self.grow(capacity).1.map_or(Ok(()), Err)
    }

    fn grow(mut self, wanted: u64) -> (u64, Option<ScaleError>) {
        let limit = memory_limit().min(MAX_MEMORY);
        for _ in 0..MAX_LINKS {
            if self.capacity >= wanted {
                return (self.capacity, None);
            }
            let Some((capacity, bytes)) = (self.next)() else { break };
            self.bytes = self.bytes.saturating_add(bytes);
            if self.bytes > limit {
                return (self.capacity, Some(ScaleError::Memory));
            }
            self.capacity = self.capacity.saturating_add(capacity);
        }
        (self.capacity, Some(ScaleError::Rate))
    }
}

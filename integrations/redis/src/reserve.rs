//! What filters are made for, and its limits.

/// The most keys that a filter, or its first link, is made for, as in RedisBloom 8.
pub(crate) const MAX_CAPACITY: i64 = 1 << 30;
/// The most that a link is larger than the one before, as in RedisBloom 8. Own filters take 16 at
/// most.
pub(crate) const MAX_EXPANSION: i64 = 32_768;
/// A higher error rate counts as this one, as in RedisBloom 8.
pub(crate) const MAX_ERROR_RATE: f64 = 0.25;

/// What RedisBloom stores as the expansion of a filter that does not grow, unless the command has
/// another one.
pub(crate) const UNUSED_EXPANSION: u32 = 2;

/// What `BF.RESERVE` and `BF.INSERT` may say of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reserve {
    pub(crate) error_rate: f64,
    pub(crate) capacity: u64,
    /// 0 if the filter does not grow.
    pub(crate) expansion: u64,
    /// Expansion that RedisBloom stores for a filter that does not grow.
    pub(crate) unused_expansion: u32,
}

impl Reserve {
    /// What `BF.ADD` makes of a key that is not there, unless the settings say something else.
    pub(crate) const BUILT_IN: Reserve = Reserve {
        error_rate: 0.01,
        capacity: 100,
        expansion: 2,
        unused_expansion: UNUSED_EXPANSION,
    };
}

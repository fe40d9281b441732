//! Results of creating a filter of any kind and of adding to it.

/// Why there is no filter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CreateError {
    /// The rate cannot be kept, or there is no filter for so many keys.
    Shape,
    /// It would be larger than what any server has.
    TooLarge,
    Memory,
}

/// What adding keys did.
#[derive(Debug, Default)]
pub(crate) struct Added {
    /// Of each key whether it was certainly not there before; fewer than the keys if the filter
    /// became full.
    pub(crate) is_new: Vec<bool>,
    /// The filter does not grow, and there was no capacity for the next key.
    pub(crate) is_full: bool,
}

/// Keys could not be added: the link that they need cannot be made.
#[derive(Debug)]
pub(crate) struct AddError {
    /// This many keys are in the filter, added now or before.
    pub(crate) before: usize,
    /// Another server may have more memory, or another limit. Otherwise every server fails at the
    /// same key.
    pub(crate) is_memory: bool,
}

/// What `BF.DEBUG` tells of a link.
pub(crate) struct Shape {
    pub(crate) bytes: u64,
    pub(crate) hashes: u32,
    pub(crate) hash_bits: u32,
    pub(crate) capacity: u64,
    pub(crate) size: u64,
    pub(crate) rate: f64,
}

//! What authors of other filters need.

pub use crate::batch::look_up_keys;
pub use crate::bitmask::fill_with_hits;

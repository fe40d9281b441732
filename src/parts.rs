//! What authors of other filters need.

pub use crate::batch::look_up_keys;

//! Deserializing a plan.

use alloc::vec::Vec;

use blocked_bloom::Sizing;

use super::{Level, Plan, PlannedLevel, check};
use crate::error::PlanError;

/// The part of a serialized plan from which the rest follows. Other fields are ignored.
#[derive(serde::Deserialize)]
pub(super) struct StoredPlan {
    levels: Vec<StoredLevel>,
}

#[derive(serde::Deserialize)]
struct StoredLevel {
    level: Level,
    sizing: Sizing,
}

impl TryFrom<StoredPlan> for Plan {
    type Error = PlanError;

    fn try_from(stored: StoredPlan) -> Result<Self, PlanError> {
        let levels: Vec<Level> = stored.levels.iter().map(|stored| stored.level).collect();
        check(&levels)?;
        let sizings = stored.levels.iter().map(|stored| stored.sizing);
        Plan::of(levels.iter().zip(sizings), PlannedLevel::new)
    }
}

//! Errors of planning: one variant per cause, with the value at fault.

use core::fmt::{self, Display, Formatter};

use blocked_bloom::ParamsError;

/// The reason why a plan cannot be made. A budget is never at fault: with too little memory, the
/// plan has fewer filters, or none.
///
/// ```
/// use blocked_bloom_lsm::{Level, Plan, PlanError};
/// let error = Plan::for_budget(&[Level::new(1_000).present(1.5)], 1 << 20).unwrap_err();
/// assert!(matches!(error, PlanError::PresentOutOfRange { level: 0, .. }));
/// let text = "level 0: fraction 1.5 of present keys: must be between 0 and 1";
/// assert_eq!(error.to_string(), text);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// More levels than one plan can have.
    TooManyLevels {
        /// Number of levels.
        levels: usize,
        /// Maximum number of levels.
        limit: usize,
    },
    /// The lookups of a level are not a number from 0 to 10^15.
    LookupsOutOfRange {
        /// Index of the level, from 0.
        level: usize,
        /// The number of lookups.
        lookups: f64,
    },
    /// The cost of a read or query is not a number from 0 to 10^15.
    CostOutOfRange {
        /// Index of the level, from 0.
        level: usize,
        /// The cost.
        cost: f64,
    },
    /// The fraction of present keys is not from 0 to 1.
    PresentOutOfRange {
        /// Index of the level, from 0.
        level: usize,
        /// The fraction.
        present: f64,
    },
    /// A level with keys, but without runs or tables.
    NoTables {
        /// Index of the level, from 0.
        level: usize,
    },
    /// The cost of a query of a Ribbon filter is not a number from 0 to 10^15.
    RibbonQueryCost {
        /// The cost.
        cost: f64,
    },
    /// The price of memory is negative or not finite.
    MemoryPrice {
        /// The price of a byte.
        price: f64,
    },
    /// No filter can have this sizing.
    Params {
        /// Index of the level, from 0.
        level: usize,
        /// The reason.
        error: ParamsError,
    },
}

impl Display for PlanError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooManyLevels { levels, limit } => {
                write!(f, "{levels} levels: a plan can have at most {limit}")
            }
            Self::LookupsOutOfRange { level, lookups } => {
                write!(f, "level {level}: {lookups:?} lookups: must be between 0 and 1e15")
            }
            Self::CostOutOfRange { level, cost } => {
                write!(f, "level {level}: cost {cost:?}: must be between 0 and 1e15")
            }
            Self::PresentOutOfRange { level, present } => {
                write!(
                    f,
                    "level {level}: fraction {present:?} of present keys: must be between 0 and 1"
                )
            }
            Self::NoTables { level } => {
                write!(
                    f,
                    "level {level}: 0 runs or tables: must be at least 1 if the level has keys"
                )
            }
            Self::RibbonQueryCost { cost } => {
                write!(f, "Ribbon query cost {cost:?}: must be between 0 and 1e15")
            }
            Self::MemoryPrice { price } => {
                write!(f, "memory price {price:?} per byte: must be finite and at least 0")
            }
            Self::Params { level, error } => write!(f, "level {level}: {error}"),
        }
    }
}

impl core::error::Error for PlanError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Params { error, .. } => Some(error),
            _ => None,
        }
    }
}

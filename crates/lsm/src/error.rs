//! Why there is no plan: one variant per cause, each carrying the value at fault.

use core::fmt::{self, Display, Formatter};

use blocked_bloom::ParamsError;

/// Why no plan can be made. A budget is never at fault: too little memory gives a plan with fewer
/// filters, or none.
///
/// ```
/// use blocked_bloom_lsm::{Level, Plan, PlanError};
/// let error = Plan::for_budget(&[Level::new(1_000).present(1.5)], 1 << 20).unwrap_err();
/// assert!(matches!(error, PlanError::PresentOutOfRange { level: 0, .. }));
/// let text = "level 0: 1.5 of its lookups find their key: give a fraction of 0 to 1";
/// assert_eq!(error.to_string(), text);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// More levels than one plan can have.
    TooManyLevels {
        /// Levels given.
        levels: usize,
        /// The most.
        limit: usize,
    },
    /// Not 0 to 10^15 lookups.
    LookupsOutOfRange {
        /// Which level, from 0.
        level: usize,
        /// What was given.
        lookups: f64,
    },
    /// A read or a query costs less than 0 or more than 10^15.
    CostOutOfRange {
        /// Which level, from 0.
        level: usize,
        /// What was given.
        cost: f64,
    },
    /// A fraction that is not 0 to 1.
    PresentOutOfRange {
        /// Which level, from 0.
        level: usize,
        /// What was given.
        present: f64,
    },
    /// A level without a run, or a run without a table.
    NoTables {
        /// Which level, from 0.
        level: usize,
    },
    /// A query of a Ribbon filter costs less than 0 or more than 10^15.
    RibbonQueryCost {
        /// What was given.
        cost: f64,
    },
    /// A byte of memory costs less than 0, or no finite number.
    MemoryPrice {
        /// What was given for a byte.
        price: f64,
    },
    /// A filter cannot have as many bits per key.
    Params {
        /// Which level, from 0.
        level: usize,
        /// What is wrong with it.
        error: ParamsError,
    },
}

impl Display for PlanError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooManyLevels { levels, limit } => {
                write!(f, "{levels} levels: plan at most {limit} at once")
            }
            Self::LookupsOutOfRange { level, lookups } => {
                write!(f, "level {level}: {lookups} lookups: give a number of 0 to 1e15")
            }
            Self::CostOutOfRange { level, cost } => {
                write!(f, "level {level}: a cost of {cost}: give a number of 0 to 1e15")
            }
            Self::PresentOutOfRange { level, present } => {
                write!(
                    f,
                    "level {level}: {present} of its lookups find their key: give a fraction of 0 \
                     to 1"
                )
            }
            Self::NoTables { level } => {
                write!(f, "level {level}: 0 runs or tables: give at least 1 of each, or 0 keys")
            }
            Self::RibbonQueryCost { cost } => {
                write!(f, "a query of a Ribbon filter costs {cost}: give a number of 0 to 1e15")
            }
            Self::MemoryPrice { price } => {
                write!(f, "a byte of memory costs {price}: give a finite number of 0 or more")
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

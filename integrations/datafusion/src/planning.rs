//! The settings and estimates that one run of the rule uses.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::Statistics;
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::statistics::StatisticsContext;
use datafusion::physical_plan::{ExecutionPlan, StatisticsArgs};

use crate::broadcast::Prediction;
use crate::cost::Work;
use crate::operators::{Kind, kind};

type Plan = Arc<dyn ExecutionPlan>;

/// Rows and bytes according to statistics.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Estimate {
    pub(crate) rows: Option<usize>,
    pub(crate) bytes: Option<usize>,
}

/// Returns the share of rows in which a column is NULL, if statistics know it.
pub(crate) fn null_share(statistics: &Statistics, column: usize) -> Option<f64> {
    let nulls = *statistics.column_statistics.get(column)?.null_count.get_value()? as f64;
    Some((nulls / (*statistics.num_rows.get_value()? as f64).max(1.0)).min(1.0))
}

/// Values of plans. Plans are found by their addresses. As long as they are here, no other plan can
/// have such an address.
pub(crate) type PlanMap<T> = RefCell<HashMap<*const (), (Plan, T)>>;

/// Returns the value of a plan, and computes it the first time.
pub(crate) fn cached<T: Clone>(values: &PlanMap<T>, plan: &Plan, compute: impl FnOnce() -> T) -> T {
    let address = Arc::as_ptr(plan).cast::<()>();
    if let Some((_, value)) = values.borrow().get(&address) {
        return value.clone();
    }
    let value = compute();
    values.borrow_mut().insert(address, (plan.clone(), value.clone()));
    value
}

/// The settings of a session, and estimates of plans, each computed once. Without this, the
/// planning time would grow with the cube of the number of joins.
pub(crate) struct Planning<'a> {
    pub(crate) config: &'a ConfigOptions,
    context: StatisticsContext,
    statistics: PlanMap<Option<Arc<Statistics>>>,
    pub(crate) predictions: PlanMap<Option<Prediction>>,
    pub(crate) work: PlanMap<Option<Work>>,
}

impl<'a> Planning<'a> {
    pub(crate) fn new(config: &'a ConfigOptions) -> Self {
        Planning {
            config,
            context: StatisticsContext::new(),
            statistics: PlanMap::default(),
            predictions: PlanMap::default(),
            work: PlanMap::default(),
        }
    }

    pub(crate) fn statistics(&self, plan: &Plan) -> Option<Arc<Statistics>> {
        let compute = || self.context.compute(plan.as_ref(), &StatisticsArgs::new()).ok();
        cached(&self.statistics, plan, compute)
    }

    pub(crate) fn estimate(&self, plan: &Plan) -> Estimate {
        self.statistics(plan).map_or_else(Estimate::default, |statistics| Estimate {
            rows: statistics.num_rows.get_value().copied(),
            bytes: statistics.total_byte_size.get_value().copied(),
        })
    }

    /// Returns about the maximum number of keys: the rows of the tables that the keys can come
    /// from. Estimates of predicates can be too small by orders of magnitude; this number is not. A
    /// key that combines columns of two tables can still have more values.
    pub(crate) fn max_keys(&self, plan: &Plan) -> Option<usize> {
        let children = plan.children();
        match children.as_slice() {
            [] => self.estimate(plan).rows,
            [child] => self.max_keys(child),
            // The keys come from the first input. The second is the filter.
            [input, _] if kind(plan) == Kind::Probe => self.max_keys(input),
            inputs => {
                let keys: Option<Vec<usize>> =
                    inputs.iter().map(|plan| self.max_keys(plan)).collect();
                let keys = keys?;
                if matches!(kind(plan), Kind::Union | Kind::Interleave) {
                    keys.iter().try_fold(0, |sum: usize, keys| sum.checked_add(*keys))
                } else {
                    keys.into_iter().max()
                }
            }
        }
    }
}

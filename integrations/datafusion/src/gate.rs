//! [`Gate`] decides which rows are probed; [`Counts`] counts them.

use datafusion::physical_plan::metrics::{Count, Time};

/// Rows of a sample. The share of hits among them decides whether the next rows are probed.
const SAMPLE_ROWS: usize = 32 * 1024;

/// After a sample with too many hits, this many times its rows pass unprobed. A useless filter then
/// costs a seventeenth of its probing time.
const SAMPLES_SKIPPED: usize = 16;

/// Decides by samples whether rows are probed. A useless filter then costs next to nothing, and a
/// filter that becomes useful in a later part of the input is used there.
#[derive(Debug)]
pub(crate) struct Gate {
    stop_above: f64,
    rows: usize,
    hits: usize,
    unprobed: usize,
}

impl Gate {
    pub(crate) fn new(stop_above: f64) -> Self {
        Gate { stop_above, rows: 0, hits: 0, unprobed: 0 }
    }

    /// Whether to probe the next rows.
    pub(crate) fn is_open(&mut self, rows: usize) -> bool {
        let open = self.unprobed == 0;
        self.unprobed = self.unprobed.saturating_sub(rows);
        open
    }

    /// Records probed rows and the hits among them.
    pub(crate) fn probed(&mut self, rows: usize, hits: usize) {
        self.rows += rows;
        self.hits += hits;
        if self.rows >= SAMPLE_ROWS {
            if self.hits as f64 > self.stop_above * self.rows as f64 {
                self.unprobed = SAMPLES_SKIPPED * self.rows;
            }
            (self.rows, self.hits) = (0, 0);
        }
    }
}

/// Metrics of the probe operator. If a scan probes instead, the scan adds to them.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) input_rows: Count,
    pub(crate) unprobed_rows: Count,
    pub(crate) probe_time: Time,
}

#[cfg(test)]
#[path = "../tests/unit/gate.rs"]
mod tests;

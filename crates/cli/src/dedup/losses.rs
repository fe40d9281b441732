//! How many lines that were not there before have probably been dropped.

use blocked_bloom::parts::Blocks;
use blocked_bloom::{Bitmask, Block, BloomFilter, Params};

/// Counts lines that were taken for seen ones by mistake, from the false-positive rate at the time
/// of each lookup.
///
/// At a rate `r`, `1 / (1 - r)` new lines came for each line that was found to be new. The higher
/// the rate, the less the answers say. Above one half, the estimate uses the share of new lines
/// that was found before.
///
/// A line that is dropped has all its bits set already, so that the bits are those of all new
/// lines, whether they were dropped or not.
pub(super) struct Losses {
    /// Filters of the chain; only the last one takes lines.
    links: usize,
    /// The chance that the others do not take a new line for an old one.
    chain_accuracy: f64,
    /// Of the last filter.
    params: Option<Params>,
    /// Lines by the bits of the last filter.
    keys: f64,
    /// The rate of all filters when it was computed last, and for as many lines as there will be
    /// halfway up to `next_update`, when it is computed again.
    lower_bound: f64,
    rate: f64,
    next_update: f64,
    /// New lines and all lines that came while the rate was one half or less.
    fresh: f64,
    lines: f64,
    lost: f64,
}

impl Losses {
    /// Of a chain of filters, or an only one. Cost: reads their bits.
    pub(super) fn from_links(links: &[BloomFilter<&[Block]>]) -> Self {
        let mut losses = Losses {
            links: 0,
            chain_accuracy: 1.0,
            params: None,
            keys: 0.0,
            lower_bound: 0.0,
            rate: 0.0,
            next_update: 0.0,
            fresh: 0.0,
            lines: 0.0,
            lost: 0.0,
        };
        for link in links {
            losses.next(link.params(), keys_by_bits(link));
        }
        losses
    }

    /// Counts lines that were looked up; the bits are those of new ones.
    pub(super) fn count(&mut self, new: &Bitmask) {
        let hits = new.count_hits() as f64;
        // A few lines do not change the rate.
        if hits <= (self.next_update - self.keys) / 2.0 {
            self.count_at_rate(hits, new.len() as f64);
        } else {
            new.iter().for_each(|is_new| self.count_at_rate(f64::from(u8::from(is_new)), 1.0));
        }
    }

    fn count_at_rate(&mut self, new: f64, lines: f64) {
        let fresh = if self.rate <= 0.5 {
            let fresh = new / (1.0 - self.rate);
            self.fresh += fresh;
            self.lines += lines;
            fresh
        } else {
            let share = if self.lines == 0.0 { 1.0 } else { (self.fresh / self.lines).min(1.0) };
            let lost = share * self.rate;
            new + (lines - new) * lost / (lost + (1.0 - share))
        };
        self.lost += fresh - new;
        self.keys += fresh;
        if self.keys >= self.next_update {
            self.set_rate();
        }
    }

    /// Goes on with the filters that the chain has now.
    pub(super) fn grow<D: Blocks>(&mut self, links: &[BloomFilter<D>]) {
        for link in &links[self.links..] {
            self.next(link.params(), link.keys_inserted() as f64);
        }
    }

    fn next(&mut self, params: Params, keys: f64) {
        if self.links > 0 {
            self.chain_accuracy = 1.0 - self.rate();
        }
        self.links += 1;
        (self.params, self.keys) = (Some(params), keys);
        self.set_rate();
    }

    fn set_rate(&mut self) {
        let step = (self.keys / 32.0).max(1.0);
        self.next_update = self.keys + step;
        self.lower_bound = self.rate();
        self.rate = self.rate_at(self.keys + step / 2.0);
    }

    fn rate_at(&self, keys: f64) -> f64 {
        let last = self.params.map_or(0.0, |params| params.false_positive_rate_at(keys as u64));
        1.0 - self.chain_accuracy * (1.0 - last)
    }

    /// The chance that the next line that was not there before is dropped.
    pub(super) fn rate(&self) -> f64 {
        self.rate_at(self.keys)
    }

    /// Somewhat less than that, at no cost.
    pub(super) fn lower_bound(&self) -> f64 {
        self.lower_bound
    }

    /// Estimated number of lines that were dropped although they had not occurred before.
    pub(super) fn lost(&self) -> f64 {
        self.lost
    }
}

/// Estimates the number of lines from the bits of a filter. Some of its blocks may be full.
fn keys_by_bits(filter: &BloomFilter<&[Block]>) -> f64 {
    let by_rate = || filter.params().max_items(filter.estimated_false_positive_rate()).ok();
    filter.estimated_keys().or_else(by_rate).unwrap_or(filter.keys_inserted()) as f64
}

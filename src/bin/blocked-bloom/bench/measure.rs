//! Interleaved timing: in every round each case runs once, so that all see the same moods of the machine.

use std::time::Instant;

/// Nanoseconds per key of one case over all rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) median: f64,
    pub(crate) min: f64,
}

/// Something to time: a closure that handles `keys` keys each time it is called, and the work it must not be charged for.
pub(crate) struct Case<'a> {
    pub(crate) keys: usize,
    pub(crate) run: Box<dyn FnMut() + 'a>,
}

impl<'a> Case<'a> {
    pub(crate) fn new<R>(keys: usize, mut run: impl FnMut() -> R + 'a) -> Self {
        Case { keys, run: Box::new(move || drop(std::hint::black_box(run()))) }
    }
}

/// Runs every case once to warm up and then once in each round.
pub(crate) fn interleaved(cases: &mut [Case<'_>], rounds: usize) -> Vec<Timing> {
    let mut times = vec![Vec::with_capacity(rounds); cases.len()];
    for round in 0..=rounds {
        for (case, times) in cases.iter_mut().zip(&mut times) {
            let start = Instant::now();
            (case.run)();
            let nanoseconds = start.elapsed().as_secs_f64() * 1e9;
            if round > 0 {
                times.push(nanoseconds / case.keys as f64);
            }
        }
    }
    times.into_iter().map(timing).collect()
}

fn timing(mut times: Vec<f64>) -> Timing {
    times.sort_by(f64::total_cmp);
    Timing {
        median: times.get(times.len() / 2).copied().unwrap_or(f64::NAN),
        min: times.first().copied().unwrap_or(f64::NAN),
    }
}

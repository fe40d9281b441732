//! Interleaved timing: in every round each case runs once, so that noise affects all cases alike.

use std::hint::black_box;
use std::time::Instant;

/// Nanoseconds per key of one case over all rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) median: f64,
    pub(crate) min: f64,
}

/// Something to time, on `keys` keys at a time.
pub(crate) struct Case<'a> {
    keys: usize,
    /// Runs once and returns how long it took, in seconds.
    run: Box<dyn FnMut() -> f64 + 'a>,
}

impl<'a> Case<'a> {
    pub(crate) fn new<R>(keys: usize, mut run: impl FnMut() -> R + 'a) -> Self {
        Case::with_setup(keys, || (), move |()| run())
    }

    /// Neither `setup` nor dropping what `run` returns is timed.
    pub(crate) fn with_setup<T, R>(
        keys: usize,
        mut setup: impl FnMut() -> T + 'a,
        mut run: impl FnMut(T) -> R + 'a,
    ) -> Self {
        let run = move || {
            let input = setup();
            let start = Instant::now();
            let result = black_box(run(black_box(input)));
            let seconds = start.elapsed().as_secs_f64();
            drop(result);
            seconds
        };
        Case { keys, run: Box::new(run) }
    }
}

/// Runs every case once to warm up and then once in each round.
pub(crate) fn interleaved(cases: &mut [Case<'_>], rounds: usize) -> Vec<Timing> {
    let mut times = vec![Vec::with_capacity(rounds); cases.len()];
    for round in 0..=rounds {
        for (case, times) in cases.iter_mut().zip(&mut times) {
            let seconds = (case.run)();
            if round > 0 {
                times.push(seconds * 1e9 / case.keys as f64);
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

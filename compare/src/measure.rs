//! Interleaved timing: every case runs in every round, so that noise affects all cases alike.

use std::time::Instant;

use rayon::ThreadPool;
use serde::{Deserialize, Serialize};

/// Nanoseconds per key of one case over all rounds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Timing {
    pub(crate) median: f64,
    pub(crate) min: f64,
    /// Times that were taken.
    pub(crate) samples: usize,
}

/// How often each case runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub(crate) rounds: usize,
    /// Passes of a case in a round that bring the filter back into the caches, and are not timed.
    pub(crate) warm: usize,
    /// Passes of a case in a round that are timed, each for itself.
    pub(crate) timed: usize,
}

/// Something to time: runs one pass, given its number, and returns how many keys it handled and in how many seconds.
pub(crate) type Case<'a> = Box<dyn FnMut(usize) -> (usize, f64) + 'a>;

/// A case of this thread, timed from start to end by [`Clock::thread`].
pub(crate) fn case<'a>(keys: usize, mut run: impl FnMut(usize) + 'a) -> Case<'a> {
    Box::new(move |pass| {
        let start = Clock::thread();
        run(pass);
        (keys, start.seconds())
    })
}

/// A case of the threads of `pool`, timed by the one that was busy longest, and by this thread for what it does itself. A thread that
/// was kept waiting by other processes does not count as slow, but leaves its work to the others.
pub(crate) fn pool_case<'a>(
    pool: &'a ThreadPool,
    keys: usize,
    mut run: impl FnMut(usize) + 'a,
) -> Case<'a> {
    Box::new(move |pass| {
        let clocks = pool.broadcast(|_| Clock::thread().start);
        let start = Clock::thread();
        run(pass);
        let own = start.seconds();
        let Some(_) = cpu_seconds() else { return (keys, own) };
        let ends = pool.broadcast(|_| Clock::thread().start);
        let busiest = clocks.iter().zip(ends).map(|(start, end)| end - start).fold(0.0, f64::max);
        (keys, own + busiest)
    })
}

/// The time this thread has had a core: on a machine that others use too, the time that they had it is not ours. Where the system
/// is not Linux, the clock on the wall.
pub(crate) struct Clock {
    start: f64,
    wall: Instant,
}

impl Clock {
    pub(crate) fn thread() -> Self {
        Clock { start: cpu_seconds().unwrap_or_default(), wall: Instant::now() }
    }

    pub(crate) fn seconds(&self) -> f64 {
        cpu_seconds().map_or_else(|| self.wall.elapsed().as_secs_f64(), |now| now - self.start)
    }
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the clock of a thread")]
fn cpu_seconds() -> Option<f64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` may be written.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    (result == 0).then_some(time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9)
}

#[cfg(not(target_os = "linux"))]
fn cpu_seconds() -> Option<f64> {
    None
}

/// Runs every case in each round.
pub(crate) fn interleaved(cases: &mut [Case<'_>], schedule: Schedule) -> Vec<Timing> {
    let mut times = vec![Vec::new(); cases.len()];
    let passes = schedule.warm + schedule.timed;
    for round in 0..schedule.rounds {
        for (case, times) in cases.iter_mut().zip(&mut times) {
            for pass in 0..passes {
                let (keys, seconds) = case(round * passes + pass);
                if pass >= schedule.warm {
                    times.push(seconds * 1e9 / keys as f64);
                }
            }
        }
    }
    times.into_iter().map(timing).collect()
}

pub(crate) fn timing(mut times: Vec<f64>) -> Timing {
    times.sort_by(f64::total_cmp);
    Timing { median: times[times.len() / 2], min: times[0], samples: times.len() }
}

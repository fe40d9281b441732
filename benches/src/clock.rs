//! Times: the CPU time of threads, taken in interleaved rounds, so that noise affects all cases
//! alike.

use std::fmt;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

use rayon::ThreadPool;

use crate::timing::Timing;

/// The time for which this thread has had a core: the time that other processes took is not
/// counted. On systems other than Linux, the time of the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    cpu: Option<f64>,
    wall: Instant,
}

impl Clock {
    /// Starts a clock.
    pub fn start() -> Self {
        let wall = Instant::now();
        Clock { wall, cpu: cpu_seconds() }
    }

    /// Seconds since the start, on the thread that started the clock. The cost of reading the clock
    /// is subtracted: a system call of about 200 ns, 3 % of 16,384 lookups in cache.
    pub fn seconds(&self) -> f64 {
        static COST: OnceLock<f64> = OnceLock::new();
        let taken = self.taken();
        let nothing = |_| Clock::start().taken();
        let cost = COST.get_or_init(|| (0..1_000).map(nothing).fold(f64::INFINITY, f64::min));
        (taken - cost).max(0.0)
    }

    fn taken(&self) -> f64 {
        match (self.cpu, cpu_seconds()) {
            (Some(start), Some(now)) => now - start,
            _ => self.wall.elapsed().as_secs_f64(),
        }
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

/// Something to time, on this many keys at a time.
#[expect(missing_debug_implementations, reason = "a closure")]
pub struct Case<'a> {
    keys: usize,
    /// Runs the pass of this number, and returns its time in seconds.
    run: Box<dyn FnMut(usize) -> f64 + 'a>,
}

impl<'a> Case<'a> {
    /// A case that runs on this thread. `run` takes the number of the pass; dropping its result is
    /// not timed.
    pub fn new<R>(keys: usize, run: impl FnMut(usize) -> R + 'a) -> Self {
        Case::with_setup(None, keys, |pass| pass, run)
    }

    /// Batch after batch of `pass` of these items in a pass, from the first again if there are
    /// fewer left. There must be this many in all.
    pub fn batches<T, R>(
        items: &'a [T],
        pass: usize,
        batch: usize,
        mut run: impl FnMut(&[T]) -> R + 'a,
    ) -> Self {
        let passes = items.len() / pass;
        Case::new(pass, move |number| {
            for part in items[number % passes * pass..][..pass].chunks(batch) {
                black_box(run(black_box(part)));
            }
        })
    }

    /// A case that runs on the threads of `pool`. Its time is this thread's own plus that of the
    /// busiest pool thread: the elapsed time if every thread had its own core.
    pub fn pooled<R>(pool: &'a ThreadPool, keys: usize, run: impl FnMut(usize) -> R + 'a) -> Self {
        Case::with_setup(Some(pool), keys, |pass| pass, run)
    }

    /// A case that runs on this thread or on a pool. `setup` converts the number of the pass into
    /// the argument of `run`, and is not timed.
    pub fn with_setup<T, R>(
        pool: Option<&'a ThreadPool>,
        keys: usize,
        mut setup: impl FnMut(usize) -> T + 'a,
        mut run: impl FnMut(T) -> R + 'a,
    ) -> Self {
        let busy = move || pool.map_or_else(Vec::new, |pool| pool.broadcast(|_| cpu_seconds()));
        let run = move |pass| {
            let input = setup(pass);
            let starts = busy();
            let clock = Clock::start();
            let result = black_box(run(black_box(input)));
            let own = clock.seconds();
            let ends = busy();
            drop(result);
            let busy = starts.iter().zip(ends).map(|(start, end)| Some(end? - (*start)?));
            own + busy.flatten().fold(0.0, f64::max)
        };
        Case { keys, run: Box::new(run) }
    }
}

/// How often each case runs.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Rounds that count, after one that does not.
    pub rounds: usize,
    /// Passes of a case in a round that bring the filter back into the caches, and are not timed.
    pub warm: usize,
    /// Passes of a case in a round that are timed, each for itself.
    pub timed: usize,
}

impl Schedule {
    /// This many rounds of one pass.
    pub fn rounds(rounds: usize) -> Self {
        Schedule { rounds, warm: 0, timed: 1 }
    }
}

/// Runs every case in each round, and returns the nanoseconds per key of all rounds.
pub fn times(cases: &mut [Case<'_>], schedule: Schedule) -> Vec<Vec<f64>> {
    let mut times = vec![Vec::new(); cases.len()];
    let passes = schedule.warm + schedule.timed;
    for round in 0..=schedule.rounds {
        for (case, times) in cases.iter_mut().zip(&mut times) {
            for pass in 0..passes {
                let seconds = (case.run)(round * passes + pass);
                if round > 0 && pass >= schedule.warm {
                    times.push(seconds * 1e9 / case.keys as f64);
                }
            }
        }
    }
    times
}

/// The same of cases with labels, as medians and minima.
pub fn interleaved<L>(ways: Vec<(L, Case<'_>)>, schedule: Schedule) -> Vec<(L, Timing)> {
    let (labels, mut cases): (Vec<L>, Vec<Case<'_>>) = ways.into_iter().unzip();
    labels
        .into_iter()
        .zip(times(&mut cases, schedule).into_iter().map(Timing::from_times))
        .collect()
}

/// Cases by name, for a table of their own.
#[derive(Default)]
#[expect(missing_debug_implementations, reason = "closures")]
pub struct Named<'a> {
    names: Vec<String>,
    cases: Vec<Case<'a>>,
}

impl<'a> Named<'a> {
    /// One more.
    pub fn add(&mut self, name: impl Into<String>, case: Case<'a>) {
        self.names.push(name.into());
        self.cases.push(case);
    }

    /// Times the cases, and prints a line for each: the median time and, in brackets, the least;
    /// the median of the ratios to the first case in the same round; and the median of the
    /// differences from it. All numbers but the differences are also written to the file that
    /// `BLOCKED_BLOOM_RESULTS` names.
    #[expect(clippy::print_stdout, reason = "figures to be quoted")]
    pub fn print(mut self, title: impl fmt::Display, rounds: usize) {
        println!("\n{title}");
        let times = times(&mut self.cases, Schedule::rounds(rounds));
        #[cfg(feature = "serde")]
        let mut lines = Vec::new();
        for (name, mine) in self.names.iter().zip(&times) {
            let both = || mine.iter().zip(&times[0]);
            let ratio =
                Timing::from_times(both().map(|(mine, first)| mine / first).collect()).median;
            let more =
                Timing::from_times(both().map(|(mine, first)| mine - first).collect()).median;
            let time = Timing::from_times(mine.clone());
            println!("  {name:<24}{time:>20}{ratio:8.2}{more:+9.2}");
            #[cfg(feature = "serde")]
            lines.push(crate::results::Line { name: name.clone(), time, ratio });
        }
        #[cfg(feature = "serde")]
        crate::results::add_table(&title.to_string(), lines);
    }
}

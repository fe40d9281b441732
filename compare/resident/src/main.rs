//! Simulates which filters of an LSM engine are in memory: 5,006 tables, 7.1 GB of filters, and budgets of 5 to 50 % of them, under the
//! policies of `simulate`. Prints the extra cost per thousand gets, wasted reads and loads, in reads; then whether the bounds hold that
//! `docs/resident.md` states. Fails if one does not.
//!
//! `cargo run --release --manifest-path compare/Cargo.toml -p resident` takes some ten minutes and 700 MB of memory.

mod caches;
mod simulate;
mod trace;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use benches::chart::{Axis, Chart, Line, Mark, Panel, Point, Series};
use clap::Parser;

use crate::simulate::{Policy, World};
use crate::trace::{WORKLOADS, Workload};

const BUDGETS: [u64; 4] = [5, 10, 20, 50];
const PARTS: [u32; 2] = [1, 16];

/// Simulates which filters of an LSM engine are in memory, and compares policies.
#[derive(Debug, Parser)]
struct Arguments {
    /// Simulate only these workloads, such as mixed,shift [default: all].
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<String>,

    /// Gets of each trace: 20,000 are a second.
    #[arg(long, default_value_t = 2_000_000)]
    gets: u64,

    /// Write the figures to this file, one case and policy a line.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    /// Simulate nothing: read what earlier runs saved.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workloads", "gets", "save"])]
    from: Vec<PathBuf>,

    /// Draw cost against budget into this file.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

/// A workload by its place, partitions of a filter, budget in percent.
type Case = (usize, u32, u64);

/// The extra cost per thousand gets.
type Figures = BTreeMap<(Case, Policy), f64>;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments = Arguments::parse();
    let mut figures = Figures::new();
    for file in &arguments.from {
        read(&std::fs::read_to_string(file)?, &mut figures)?;
    }
    if arguments.from.is_empty() {
        let is_wanted = |workload: &Workload| {
            arguments.workloads.is_empty()
                || arguments.workloads.iter().any(|name| name == workload.name)
        };
        for (number, workload) in WORKLOADS.iter().enumerate().filter(|(_, w)| is_wanted(w)) {
            eprintln!("{}: {}", workload.name, workload.about);
            simulate(number, workload, arguments.gets, &mut figures);
        }
    }
    if let Some(file) = &arguments.save {
        std::fs::write(file, lines(&figures))?;
    }
    print_tables(&figures);
    if let Some(file) = &arguments.picture {
        std::fs::write(file, picture(&figures).svg())?;
    }
    Ok(if print_bounds(&figures) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn simulate(number: usize, workload: &Workload, gets: u64, figures: &mut Figures) {
    let trace = workload.trace(gets);
    for parts in PARTS {
        for percent in BUDGETS {
            let world = World::new(&trace, parts, percent, workload.is_cold, workload.changes());
            for policy in Policy::ALL {
                // Its locks and its bookkeeping take a minute with partitions.
                if policy == Policy::Moka && parts > 1 {
                    continue;
                }
                let cost = world.run(policy).extra();
                figures.insert(((number, parts, percent), policy), cost);
            }
        }
    }
}

fn lines(figures: &Figures) -> String {
    let mut lines = String::new();
    for (((workload, parts, percent), policy), extra) in figures {
        let (workload, policy) = (WORKLOADS[*workload].name, policy.name());
        _ = writeln!(lines, "{workload}\t{parts}\t{percent}\t{policy}\t{extra}");
    }
    lines
}

fn read(lines: &str, figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    for line in lines.lines() {
        let parse = || {
            let mut cells = line.split('\t');
            let name = cells.next()?;
            let workload = WORKLOADS.iter().position(|workload| workload.name == name)?;
            let (parts, percent) = (cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
            let name = cells.next()?;
            let policy = Policy::ALL.into_iter().find(|policy| policy.name() == name)?;
            Some((((workload, parts, percent), policy), cells.next()?.parse().ok()?))
        };
        let (key, extra) = parse().ok_or_else(|| format!("not a line of figures: {line}"))?;
        figures.insert(key, extra);
    }
    Ok(())
}

fn cases(figures: &Figures) -> Vec<Case> {
    let mut cases: Vec<Case> = figures.keys().map(|&(case, _)| case).collect();
    cases.dedup();
    cases
}

fn print_tables(figures: &Figures) {
    let names: Vec<&str> = Policy::ALL.into_iter().map(Policy::name).collect();
    println!("| workload | filters | budget | {} |", names.join(" | "));
    println!("|---|---|--:|{}", "--:|".repeat(names.len()));
    for case in cases(figures) {
        let (workload, parts, percent) = case;
        let filters = if parts == 1 { "whole" } else { "16 partitions" };
        print!("| {} | {filters} | {percent} % |", WORKLOADS[workload].about);
        for policy in Policy::ALL {
            match figures.get(&(case, policy)) {
                Some(extra) => print!(" {extra:.0} |"),
                None => print!(" |"),
            }
        }
        println!();
    }
}

/// A bound: what it says, the figures that it is about, and the most that they may be.
struct Bound {
    about: &'static str,
    ratios: Vec<(Case, f64)>,
    most: f64,
    /// Whether the median is bounded, not each.
    of_median: bool,
}

/// Prints how each bound holds; false if one does not.
fn print_bounds(figures: &Figures) -> bool {
    let ratio =
        |case: Case, policy, to| Some(figures.get(&(case, policy))? / figures.get(&(case, to))?);
    let of = |is_in: &dyn Fn(&Workload, u32, u64) -> bool, policy, to| -> Vec<(Case, f64)> {
        let cases = cases(figures).into_iter();
        let cases =
            cases.filter(|&(number, parts, percent)| is_in(&WORKLOADS[number], parts, percent));
        cases.filter_map(|case| Some((case, ratio(case, policy, to)?))).collect()
    };
    let is_steady = |w: &Workload| !w.changes() && !w.is_cold && w.sweep == 0.0;
    let shifts = |w: &Workload| w.shifts > 0;
    let bounds = [
        Bound {
            about: "by value / offline optimum, stationary, whole filters, budgets of 5 to 20 %",
            ratios: of(
                &|w, parts, percent| is_steady(w) && parts == 1 && percent <= 20,
                Policy::Value,
                Policy::Optimum,
            ),
            most: 1.03,
            of_median: false,
        },
        Bound {
            about: "by value / offline optimum, hot set shifts, whole filters, budgets of 5 to 20 %",
            ratios: of(
                &|w, parts, percent| shifts(w) && parts == 1 && percent <= 20,
                Policy::Value,
                Policy::Optimum,
            ),
            most: 1.25,
            of_median: false,
        },
        Bound {
            about: "by value, folding / load when repaid, all cases",
            ratios: of(&|_, _, _| true, Policy::Folding, Policy::Repaid),
            most: 0.60,
            of_median: true,
        },
        Bound {
            about: "by value / smallest levels first, all but uniform traffic",
            ratios: of(&|w, _, _| w.zipf > 0.0, Policy::Value, Policy::SmallestFirst),
            most: 1.0,
            of_median: false,
        },
        Bound {
            about: "by value / smallest levels first, uniform traffic",
            ratios: of(&|w, _, _| w.zipf == 0.0, Policy::Value, Policy::SmallestFirst),
            most: 1.05,
            of_median: false,
        },
    ];
    println!("\n| bound | median | worst | at | allowed | holds |\n|---|--:|--:|---|--:|---|");
    let mut all_hold = true;
    for Bound { about, mut ratios, most, of_median } in bounds {
        ratios.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
        let Some(&((workload, parts, percent), worst)) = ratios.last() else { continue };
        let median = ratios[ratios.len() / 2].1;
        let holds = if of_median { median } else { worst } <= most;
        all_hold &= holds;
        println!(
            "| {about} | {median:.3} | {worst:.3} | {}, {parts} part{}, {percent} % | {most:.2} | {} |",
            WORKLOADS[workload].about,
            if parts == 1 { "" } else { "s" },
            if holds { "yes" } else { "no" }
        );
    }
    all_hold
}

/// Cost against budget for the mixed workload, whole filters and partitions.
fn picture(figures: &Figures) -> Chart {
    let mixed = WORKLOADS.iter().position(|workload| workload.name == "mixed").unwrap_or(0);
    let panel = |parts: u32, title: &str| Panel {
        title: title.to_owned(),
        x: Axis {
            label: "budget, % of all filters".into(),
            is_log: true,
            min: 4.5,
            max: 55.0,
            ticks: BUDGETS.iter().map(|&percent| (percent as f64, percent.to_string())).collect(),
        },
        y: Axis::log(
            "extra reads per 1000 gets",
            (100.0, 10_000.0),
            &[100.0, 300.0, 1_000.0, 3_000.0, 10_000.0],
            "",
        ),
        series: Policy::ALL
            .into_iter()
            .filter_map(|policy| series(figures, (mixed, parts), policy))
            .collect(),
        height: 260.0,
        right: 210.0,
    };
    Chart {
        title: "What it costs that not all filters are in memory".into(),
        notes: vec![
            "Simulated: 5,006 tables, 7.1 GB of filters, half of the gets find their key, Zipf 0.99. Wasted reads and loads, in reads of \
             a table."
                .into(),
            "cargo run --release --manifest-path compare/Cargo.toml -p resident".into(),
        ],
        panels: vec![panel(1, "Whole filters"), panel(16, "16 partitions a filter")],
    }
}

fn series(figures: &Figures, (workload, parts): (usize, u32), policy: Policy) -> Option<Series> {
    let (colour, line, mark) = match policy {
        Policy::Optimum => ("#8b949e", Line::Thin, Mark::Dot),
        Policy::Value => ("#e8590c", Line::Thin, Mark::Ring),
        Policy::Folding => ("#e8590c", Line::Thick, Mark::Dot),
        Policy::ValueSampled | Policy::TrueRates => return None,
        Policy::SmallestFirst => ("#2f9e44", Line::Thin, Mark::Square),
        Policy::Repaid => ("#1098ad", Line::Thin, Mark::Diamond),
        Policy::Quick => ("#3b82f6", Line::Thin, Mark::Dot),
        Policy::Lru => ("#9c5de6", Line::Thin, Mark::Ring),
        Policy::Moka => ("#b0803a", Line::Thin, Mark::Square),
    };
    let at = |percent| {
        let y = *figures.get(&((workload, parts, percent), policy))?;
        Some(Point { x: percent as f64, y, to: y })
    };
    let points: Vec<Point> = BUDGETS.into_iter().filter_map(at).collect();
    let name = policy.name().to_owned();
    (!points.is_empty()).then_some(Series { name, colour, points, line, mark, is_listed: true })
}

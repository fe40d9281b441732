//! The `blocked-bloom` command: builds, asks, describes and merges stored filters, and plans their
//! size. This file owns the command line as a whole and the exit status.

mod build;
mod failure;
mod info;
mod keys;
mod merge;
mod numbers;
mod output;
mod plan;
mod query;
mod stored;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

const AFTER_HELP: &str = "\
EXAMPLES:
  blocked-bloom build words.txt                    writes words.txt.bloom, 10 bits per key
  blocked-bloom build --fpr 0.1% -o w.bloom words.txt
  blocked-bloom query w.bloom < asked.txt          keys that may be present
  blocked-bloom query --absent w.bloom asked.txt   keys that are certainly absent
  blocked-bloom info w.bloom
  blocked-bloom build --keys 1M a.txt              sized for the keys of all that will be merged
  blocked-bloom merge a.txt.bloom b.txt.bloom -o ab.bloom
  blocked-bloom plan --keys 10M --fpr 1% --fpr 0.1%

EXIT STATUS:
  0  success; for query: at least one key was selected
  1  for query: no key was selected
  2  an error, with a message on standard error";

/// Blocked Bloom filters: which keys of a set may be present, and which are certainly absent
#[derive(Parser)]
#[command(version, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Build(build::Args),
    Query(query::Args),
    Info(info::Args),
    Merge(merge::Args),
    Plan(plan::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Build(args) => build::run(&args),
        Command::Query(args) => query::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Plan(args) => plan::run(&args),
    };
    done.unwrap_or_else(|failure| {
        failure::report(&failure);
        ExitCode::from(2)
    })
}

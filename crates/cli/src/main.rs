//! The `blocked-bloom` command: builds, queries, describes and merges stored filters, plans their
//! size and measures the machine.
//!
//! The package `blocked-bloom-inspect` knows stored filters; this package adds files and the
//! terminal.
//!
//! Modules import only from those below them: the commands (`build`, `query`, `info`, `diagnose`,
//! `merge`, `dedup`, `plan`, `planes`, `bench`); the formats that are built (`builders`, a module
//! for each system) and builders (`builder`); files (`stored`, `mapping`, `keys`,
//! `output`) and options (`lookup`, `file_format`, `numbers`); text (`facts`, `wording`,
//! `failure`, `terminal`).

mod bench;
mod build;
mod builder;
mod builders;
mod dedup;
mod diagnose;
mod facts;
mod failure;
mod file_format;
mod info;
mod keys;
mod lookup;
mod mapping;
mod merge;
mod numbers;
mod output;
mod plan;
mod planes;
mod query;
mod stored;
mod terminal;
mod threads;
mod wording;

use std::process::ExitCode;

use blocked_bloom::{KERNEL_VARIABLE, Kernel};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::failure::Failure;
use crate::output::print;

const AFTER_HELP: &str = "\
EXAMPLES:
  blocked-bloom build words.txt                    writes words.txt.bloom, 10 bits per key
  blocked-bloom build --fpr 0.1% -o w.bloom words.txt
  blocked-bloom query w.bloom < keys.txt           keys that may be present
  blocked-bloom query --absent w.bloom keys.txt    keys that are certainly absent
  blocked-bloom query - keys.txt < w.bloom         the filter from standard input
  blocked-bloom build --prefix delimiter:2f:1 paths.txt   and then query --prefix delimiter:2f:1
  blocked-bloom info w.bloom
  blocked-bloom build --keys 1M a.txt              sized for the keys of all that will be merged
  blocked-bloom info 000012.sst                    and query: filters of RocksDB
  blocked-bloom query nb-1-big-Filter.db keys.txt  and of Cassandra, Guava, Spark, RedisBloom
  blocked-bloom diagnose me-1-big-Filter.db known.txt    a Cassandra filter whose name may be wrong
  blocked-bloom query orders.parquet --column customer.id < ids.txt
  blocked-bloom build --format rocksdb-block words.txt
  blocked-bloom merge a.txt.bloom b.txt.bloom -o ab.bloom
  blocked-bloom dedup --memory 1G --state seen.bloom today.log > new.log   lines that are new
  blocked-bloom plan --keys 10M --fpr 1% --fpr 0.1%
  blocked-bloom plan --levels 1M,10M,100M --budget 100MiB
  blocked-bloom planes build --lines 100 app.log   a skip index
  blocked-bloom planes query app.log.planes timeout
  blocked-bloom bench --quick

EXIT STATUS:
  0  success; for query: at least one key was selected
  1  for query: no key was selected
  2  an error, with a message on standard error

ENVIRONMENT:
  BLOCKED_BLOOM_KERNEL  name of the kernel to use instead of the fastest; info lists them
  NO_COLOR              no colours on a terminal";

/// Blocked Bloom filters: which keys of a set may be present, and which are certainly absent
#[derive(Parser)]
#[command(name = "blocked-bloom", version, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Say more: why a file is not recognised, and what memory build used
    #[arg(short, long, global = true)]
    verbose: bool,
}

#[derive(Subcommand)]
enum Command {
    Build(build::Args),
    Query(query::Args),
    Info(info::Args),
    Diagnose(diagnose::Args),
    Merge(merge::Args),
    Dedup(dedup::Args),
    Plan(plan::Args),
    Planes(planes::Args),
    Bench(bench::Args),
    /// Print a completion script for a shell
    Completions {
        /// Shell: source the script from its start-up file, or save it where it looks for such
        shell: Shell,
    },
    /// Print the manual page, as in blocked-bloom man | man -l -
    Man {
        /// Command whose page is printed, such as query [default: the page of blocked-bloom]
        command: Option<String>,
    },
}

fn main() -> ExitCode {
    let parsed = with_negative_numbers(Cli::command()).try_get_matches();
    let Cli { command, verbose } = match parsed.and_then(|found| Cli::from_arg_matches(&found)) {
        Ok(cli) => cli,
        Err(error) => with_tip(error).exit(),
    };
    let done = check_kernel().and_then(|()| match command {
        Command::Build(args) => build::run(&args, verbose),
        Command::Query(args) => query::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Diagnose(args) => diagnose::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Dedup(args) => dedup::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Planes(args) => planes::run(&args, verbose),
        Command::Bench(args) => bench::run(&args),
        Command::Completions { shell } => completions(shell),
        Command::Man { command } => man(command.as_deref()),
    });
    done.unwrap_or_else(|failure| {
        failure.report(verbose);
        ExitCode::from(2)
    })
}

/// Takes the argument after a numeric option as its value even if it begins with a hyphen: the
/// error is then about the number and its range, and not about an unknown option `-5`.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    const NUMBERS: [&str; 5] = ["N", "BITS", "BYTES", "RATE", "READS"];
    let is_number = |arg: &Arg| {
        let mut names = arg.get_value_names().unwrap_or_default().iter();
        names.any(|name| NUMBERS.contains(&name.as_str()))
    };
    let command = command.mut_args(|arg| match is_number(&arg) {
        true => arg.allow_hyphen_values(true),
        false => arg,
    });
    command.mut_subcommands(with_negative_numbers)
}

/// The parser suggests `-- --json` for an unknown option, which would make it a file: the tip names
/// the commands that have the option instead.
fn with_tip(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg).cloned() else {
        return error;
    };
    if error.kind() != ErrorKind::UnknownArgument || !option.starts_with("--") {
        return error;
    }
    let mut names = Vec::new();
    add_commands_with(&option, &Cli::command(), &mut names);
    error.remove(ContextKind::Suggested);
    if !names.is_empty() {
        let tip = format!("'{option}' is an option of {}", names.join(", "));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Adds the names of the commands below one that have an option.
fn add_commands_with(option: &str, command: &clap::Command, names: &mut Vec<String>) {
    for below in command.get_subcommands() {
        let name = format!("{} {}", command.get_name(), below.get_name());
        if below.get_arguments().any(|arg| arg.get_long() == option.strip_prefix("--")) {
            names.push(name.replace("blocked-bloom ", ""));
        }
        add_commands_with(option, below, names);
    }
}

fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "blocked-bloom", &mut script);
    print(&String::from_utf8_lossy(&script)).map(|_| ExitCode::SUCCESS)
}

fn man(name: Option<&str>) -> Result<ExitCode, Failure> {
    let (mut all, mut page) = (Cli::command(), Vec::new());
    all.build();
    let command = match name {
        None => all,
        Some(name) => {
            let names = all.get_subcommands().map(clap::Command::get_name).collect::<Vec<_>>();
            let unknown = format!("man {name}: no such command, give one of {}", names.join(", "));
            all.find_subcommand(name).cloned().ok_or_else(|| Failure::new(unknown))?
        }
    };
    let written = Man::new(command).render(&mut page);
    written.map_err(|error| Failure::io("the manual page", "write", &error))?;
    print(&String::from_utf8_lossy(&page)).map(|_| ExitCode::SUCCESS)
}

/// The library ignores a name that no kernel has; here it is an error.
fn check_kernel() -> Result<(), Failure> {
    let Some(name) = std::env::var_os(KERNEL_VARIABLE) else {
        return Ok(());
    };
    let names: Vec<&str> = Kernel::supported().map(Kernel::name).collect();
    if names.iter().any(|&supported| name == supported) {
        return Ok(());
    }
    let (name, names) = (name.display(), names.join(", "));
    let message = format!("no kernel \"{name}\" on this machine, expected one of {names}");
    Err(Failure::for_file(KERNEL_VARIABLE, message))
}

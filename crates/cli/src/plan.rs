//! `blocked-bloom plan`: a table of sizes and rates to choose from, or a budget shared among
//! levels.

mod levels;

use std::process::ExitCode;

use blocked_bloom::{MAX_RECOMMENDED_BLOCKS, Params, ParamsError, Sizing};
use blocked_bloom_inspect::numbers::{parse_bits, parse_bytes, parse_keys, parse_rate, percent};
use blocked_bloom_lsm::Level;
use indicatif::BinaryBytes;
use serde_json::{Value, json};

use self::levels::parse_level;
use crate::failure::Failure;
use crate::numbers::counted;
use crate::output::print;

const LADDER: [f64; 8] = [5.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0];

const EXPLANATION: &str = "\
\"rate doubles at\" is the number of distinct keys with which the same filter has twice the rate.
Rates are predicted for blocks of 512 bits and 32 bits of hash per block, by this library's own
formula. The classical one, (1 - e^(-kn/m))^k, knows no blocks and promises rates too low.
";

const AFTER_HELP: &str = "\
LEVELS are separated by commas, the smallest first by custom. Each is its number of keys, followed
by any of:
  xRUNS     sorted runs that a lookup queries, one after the other [1]
  /TABLES   tables that each run is cut into, of which a lookup queries one [1]
  @LOOKUPS  lookups that reach the level, per lookup of the tree [1]
  :COST     what a wasted read costs, in reads [1]
  =PRESENT  fraction of these lookups whose key is in the level, such as 90% [0]

EXAMPLES:
  blocked-bloom plan --keys 10M --fpr 1% --fpr 0.1%
  blocked-bloom plan --levels 1M,10M,100M,1G --budget 1GiB
  blocked-bloom plan --levels 1M,10M,100M --budget 100MiB --ribbon-query-cost 0.0032
  blocked-bloom plan --levels 100kx4:0.1,1M,10M@0.9/16=95% --budget 4MiB --bits-per-key 10";

const MODES: &str = "
  blocked-bloom plan --keys 10M --fpr 1%
      sizes and false-positive rates to choose from, for one filter of this many keys
  blocked-bloom plan --levels 1M,10M,100M --budget 100MiB
      bits per key for each of the levels of an LSM tree, which share a budget of memory

For more information, try 'blocked-bloom plan --help'.";

/// Print a table of filter sizes and false-positive rates: for a number of keys, or for levels that
/// share a budget of memory
///
/// With --keys and without a size it has a row for each of 5, 6, 8, 10, 12, 14, 16 and 20 bits per
/// key; otherwise one for every size given. Each size may be repeated or be a list separated by
/// commas.
///
/// With --levels and --budget it has a row for each level: the bits per key that waste the fewest
/// reads, next to the same bits per key for all levels in the same memory.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Distinct keys, at least 1: 1000000, 1_000_000, 1e6 and 1M are the same; also K and G
    #[arg(long, value_name = "N", value_parser = parse_keys)]
    keys: Option<u64>,

    /// Levels of a tree that share the budget, such as 1M,10Mx4,1G; see below
    #[arg(long, value_delimiter = ',', value_parser = parse_level, requires = "budget",
          conflicts_with_all = ["keys", "fpr", "max_bytes", "probes"])]
    levels: Vec<Level>,

    /// Bytes of all stored filters of the levels; suffixes K, M, G, KiB, MiB and GiB
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, requires = "levels")]
    budget: Option<u64>,

    /// Choose Bloom or Ribbon for each level: the cost of a query of a Ribbon filter, in reads,
    /// if that of a Bloom filter costs 0.001; measured: 0.0032
    #[arg(long, value_name = "READS", requires = "levels", conflicts_with = "bits_per_key")]
    ribbon_query_cost: Option<f64>,

    /// Bits of memory per key, 0 to 100, fractions allowed; 0 means no filter. With --levels, what
    /// else to compare with
    #[arg(long, value_name = "BITS", value_delimiter = ',', value_parser = parse_bits)]
    bits_per_key: Vec<f64>,

    /// Highest false-positive rate: 0.01 and 1% are the same
    #[arg(long, value_name = "RATE", value_delimiter = ',', value_parser = parse_rate)]
    fpr: Vec<f64>,

    /// Largest size of the stored filter in bytes; suffixes K, M, G, KiB, MiB and GiB
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = parse_bytes)]
    max_bytes: Vec<u64>,

    /// Bits set and tested per key, 1 to 30 [default: the best for each size]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=30))]
    probes: Option<u32>,

    /// Print one JSON object instead; rates are fractions, not percent
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match (args.keys, args.budget) {
        (None, Some(budget)) => {
            match args.ribbon_query_cost {
                Some(cost) => levels::run_kinds(&args.levels, budget, cost, args.json)?,
                None => levels::run(&args.levels, budget, &args.bits_per_key, args.json)?,
            }
            Ok(ExitCode::SUCCESS)
        }
        (Some(keys), _) => run_keys(args, keys),
        // The parser sees to it that levels have a budget.
        (None, None) => {
            Err(Failure::new("give --keys, or --levels and --budget").with_advice(MODES))
        }
    }
}

fn run_keys(args: &Args, keys: u64) -> Result<ExitCode, Failure> {
    let mut choices = Vec::new();
    let mut failures = Vec::new();
    for sizing in sizings(args) {
        match choice(args, keys, sizing) {
            Ok(choice) => choices.push(choice),
            Err(error @ ParamsError::BlocksOutOfRange { .. }) => {
                failures.push(Failure::for_file(&sizing.to_string(), error));
            }
            Err(error) => failures.push(Failure::new(error)),
        }
    }
    if args.is_default() {
        // Few keys share one block, whatever the bits per key.
        choices.dedup_by_key(|choice| choice.params);
    }
    if args.json {
        let choices: Vec<Value> = choices.iter().map(Choice::json).collect();
        let plan = json!({ "keys": keys, "choices": choices });
        print(&format!("{plan:#}\n"))?;
    } else if !choices.is_empty() {
        print(&table(keys, &choices))?;
    }
    for failure in &failures {
        failure.report(false);
    }
    Ok(ExitCode::from(if failures.is_empty() { 0 } else { 2 }))
}

impl Args {
    /// Whether no size was given.
    fn is_default(&self) -> bool {
        self.bits_per_key.is_empty() && self.fpr.is_empty() && self.max_bytes.is_empty()
    }
}

fn sizings(args: &Args) -> Vec<Sizing> {
    let bits = args.bits_per_key.iter().map(|&bits| Sizing::BitsPerKey(bits));
    let rates = args.fpr.iter().map(|&rate| Sizing::FalsePositiveRate(rate));
    let bytes = args.max_bytes.iter().map(|&bytes| Sizing::MaxBytes(bytes));
    let sizings: Vec<Sizing> = bits.chain(rates).chain(bytes).collect();
    if args.is_default() { LADDER.map(Sizing::BitsPerKey).to_vec() } else { sizings }
}

struct Choice {
    sizing: Sizing,
    params: Params,
    rate: f64,
    /// None if twice the rate is above 1.
    keys_at_double_rate: Option<u64>,
}

fn choice(args: &Args, keys: u64, sizing: Sizing) -> Result<Choice, ParamsError> {
    let params = sizing.params(keys)?;
    let params = match args.probes {
        Some(probes) => params.with_probes(probes)?,
        None => params,
    };
    let rate = params.false_positive_rate();
    let double = 2.0 * rate;
    Ok(Choice {
        sizing,
        params,
        rate,
        keys_at_double_rate: (double < 1.0).then(|| params.max_items(double)).transpose()?,
    })
}

impl Choice {
    fn is_too_large(&self) -> bool {
        self.params.blocks() > MAX_RECOMMENDED_BLOCKS
    }

    fn json(&self) -> Value {
        let params = &self.params;
        json!({
            "sizing": self.sizing.to_string(),
            "bits_per_key": params.bits_per_key(),
            "probes": params.probes(),
            "blocks": params.blocks(),
            "stored_bytes": params.stored_bytes(),
            "pass_all": params.is_pass_all(),
            "false_positive_rate": self.rate,
            "one_in": 1.0 / self.rate,
            "keys_at_double_rate": self.keys_at_double_rate,
            "partition_recommended": self.is_too_large(),
        })
    }

    fn row(&self) -> [String; 7] {
        let params = &self.params;
        let bits_per_key = if params.is_pass_all() {
            "no filter".to_owned()
        } else {
            format!("{:.2}", params.bits_per_key())
        };
        let one_in = match 1.0 / self.rate {
            one_in if one_in < 100.0 => format!("{one_in:.1}"),
            one_in if one_in < 1e9 => format!("{one_in:.0}"),
            one_in => format!("{one_in:.2e}"),
        };
        [
            bits_per_key,
            params.probes().to_string(),
            params.stored_bytes().to_string(),
            BinaryBytes(params.stored_bytes()).to_string(),
            percent(self.rate),
            one_in,
            match self.keys_at_double_rate {
                Some(keys) => keys.to_string(),
                None => "-".to_owned(),
            },
        ]
    }
}

fn table(keys: u64, choices: &[Choice]) -> String {
    let heads = [
        "bits/key",
        "probes",
        "stored bytes",
        "size",
        "false positives",
        "one in",
        "rate doubles at",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(choices.iter().map(Choice::row));
    let widths: [usize; 7] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0));
    let mut text = format!("{}\n\n", counted(keys, "key"));
    let marks = choices.iter().map(|choice| choice.is_too_large());
    for (row, is_marked) in rows.iter().zip([false].into_iter().chain(marks)) {
        let cells = row.iter().zip(widths);
        let cells: Vec<String> = cells.map(|(cell, width)| format!("{cell:>width$}")).collect();
        text += &cells.join("  ");
        text += if is_marked { " *\n" } else { "\n" };
    }
    text.push('\n');
    text += EXPLANATION;
    if choices.iter().any(Choice::is_too_large) {
        text += &format!(
            "* More than {MAX_RECOMMENDED_BLOCKS} blocks (16 GiB): the rate will be worse; \
             partition the keys over several filters.\n"
        );
    }
    text
}

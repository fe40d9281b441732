//! The command line: what is stored, how much of it, and how it is looked up.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use blocked_bloom::Sizing;
use blocked_bloom::probe::MAX_BITS_PER_KEY;
use lexopt::{Arg, Parser, ValueExt};

pub(crate) const HELP: &str = "\
Looks up batches of keys in table files, with and without filters.

Usage: multiget [OPTIONS]

Options:
      --keys <FILE>         File of keys, one per line
                            [default: the repository's tests/fixtures/keys/words.txt]
      --paths <FILE>        File of paths, one per line, whose directories are scanned
                            [default: the repository's tests/fixtures/keys/paths.txt]
      --tables <N>          Tables that the stored keys are spread over, 1 to 65535 [default: 8]
      --batch <N>           Keys looked up at once, 1 to 4294967295 [default: 128]
      --absent <PERCENT>    Share of lookups whose key is in no table, 0 to 100 [default: 50]
      --bits-per-key <B>    Filter bits per key, 0 (no filter) to 100 [default: 10]
  -h, --help                Print this text
  -V, --version             Print the version
";

/// What the program is to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    Run(Args),
    Help,
    Version,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Args {
    pub(crate) keys: PathBuf,
    pub(crate) paths: PathBuf,
    pub(crate) tables: u16,
    pub(crate) batch: u32,
    /// In percent.
    pub(crate) absent: u8,
    pub(crate) sizing: Sizing,
}

/// The command in the program's arguments, the first of which is its name.
pub(crate) fn parse(
    arguments: impl IntoIterator<Item = impl Into<OsString>, IntoIter: 'static>,
) -> Result<Command, lexopt::Error> {
    let mut args = Args {
        keys: fixture("words.txt"),
        paths: fixture("paths.txt"),
        tables: 8,
        batch: 128,
        absent: 50,
        sizing: Sizing::BitsPerKey(10.0),
    };
    let mut parser = Parser::from_iter(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("keys") => args.keys = parser.value()?.into(),
            Arg::Long("paths") => args.paths = parser.value()?.into(),
            Arg::Long("tables") => args.tables = number("--tables", &mut parser, 1..=u16::MAX)?,
            Arg::Long("batch") => args.batch = number("--batch", &mut parser, 1..=u32::MAX)?,
            Arg::Long("absent") => args.absent = number("--absent", &mut parser, 0..=100)?,
            Arg::Long("bits-per-key") => args.sizing = bits_per_key(&mut parser)?,
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Help),
            Arg::Short('V') | Arg::Long("version") => return Ok(Command::Version),
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(Command::Run(args))
}

/// One of the repository's key files.
fn fixture(name: &str) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let repository = package.ancestors().nth(2).unwrap_or(package);
    repository.join("tests/fixtures/keys").join(name)
}

fn number<N: TryFrom<u64> + PartialOrd + std::fmt::Display>(
    option: &str,
    parser: &mut Parser,
    range: RangeInclusive<N>,
) -> Result<N, lexopt::Error> {
    let text = parser.value()?.string()?;
    let number = text.parse::<u64>().ok().and_then(|number| N::try_from(number).ok());
    number.filter(|number| range.contains(number)).ok_or_else(|| {
        let (from, to) = range.into_inner();
        format!("{option} {text}: give a whole number from {from} to {to}").into()
    })
}

fn bits_per_key(parser: &mut Parser) -> Result<Sizing, lexopt::Error> {
    let text = parser.value()?.string()?;
    let sizing = text.parse().map(Sizing::BitsPerKey).ok();
    sizing.filter(|sizing| sizing.params(0).is_ok()).ok_or_else(|| {
        format!("--bits-per-key {text}: give a number from 0 (no filter) to {MAX_BITS_PER_KEY}")
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(arguments: &[&'static str]) -> Result<Command, String> {
        let arguments: Vec<&str> = [&["multiget"], arguments].concat();
        parse(arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn every_option_is_read() {
        let given = args(&[
            "--keys=a",
            "--paths",
            "b",
            "--tables",
            "65535",
            "--batch=1",
            "--absent",
            "0",
            "--bits-per-key",
            "12.5",
        ]);
        let expected = Args {
            keys: "a".into(),
            paths: "b".into(),
            tables: 65535,
            batch: 1,
            absent: 0,
            sizing: Sizing::BitsPerKey(12.5),
        };
        assert_eq!(given, Ok(Command::Run(expected)));
        for (argument, expected) in [
            ("-h", Command::Help),
            ("--help", Command::Help),
            ("-V", Command::Version),
            ("--version", Command::Version),
        ] {
            assert_eq!(args(&[argument]), Ok(expected));
        }
    }

    #[test]
    fn the_help_states_the_defaults() {
        let Ok(Command::Run(default)) = args(&[]) else { panic!("nothing has to be given") };
        for (option, value) in [
            ("--tables <N>", default.tables.to_string()),
            ("--batch <N>", default.batch.to_string()),
            ("--absent <PERCENT>", default.absent.to_string()),
            ("--bits-per-key <B>", "10".to_owned()),
        ] {
            let line = HELP.lines().find(|line| line.contains(option)).expect("a line of its own");
            assert!(line.ends_with(&format!("[default: {value}]")), "{line}");
        }
        assert_eq!(default.sizing, Sizing::BitsPerKey(10.0));
        assert!(default.keys.exists() && default.paths.exists());
    }

    #[test]
    fn errors_name_the_value_and_the_range() {
        for (arguments, expected) in [
            (&["--tables", "0"][..], "--tables 0: give a whole number from 1 to 65535"),
            (&["--tables=65536"], "--tables 65536: give a whole number from 1 to 65535"),
            (&["--batch", "-1"], "--batch -1: give a whole number from 1 to 4294967295"),
            (&["--absent", "101"], "--absent 101: give a whole number from 0 to 100"),
            (&["--absent", "half"], "--absent half: give a whole number from 0 to 100"),
            (
                &["--bits-per-key", "101"],
                "--bits-per-key 101: give a number from 0 (no filter) to 100",
            ),
            (
                &["--bits-per-key", "NaN"],
                "--bits-per-key NaN: give a number from 0 (no filter) to 100",
            ),
            (
                &["--bits-per-key", "ten"],
                "--bits-per-key ten: give a number from 0 (no filter) to 100",
            ),
            (&["--keys"], "missing argument for option '--keys'"),
            (&["--table", "8"], "invalid option '--table'"),
            (&["8"], "unexpected argument \"8\""),
        ] {
            assert_eq!(args(arguments), Err(expected.to_owned()));
        }
    }
}

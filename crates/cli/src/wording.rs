//! Errors and warnings about stored filters, worded with the options of this tool where one of them helps.

use std::path::Path;

use blocked_bloom::FormatError;
use blocked_bloom::parts::HeaderError;
use blocked_bloom_inspect::{
    Damage, Error, Format, KeyProblem, LookupOption, PhysicalType, Unrecognised, Warning,
    type_name, version_of,
};

use crate::failure::Failure;
use crate::file_format::{RECOGNISED, describe_version_error};

/// The error about the filter in a file.
pub(crate) fn error(file: &str, error: &Error) -> Failure {
    let message = match error {
        Error::Damaged { damage: Damage::Bloom(magic), format: Format::Native }
            if matches!(magic, FormatError::Header(HeaderError::Magic { .. })) =>
        {
            format!("{magic} (is it the file of keys? The filter comes first)")
        }
        Error::CassandraLayout(error) => {
            let error = describe_version_error(error);
            format!("{error}; or give --cassandra-version, such as nb or me")
        }
        Error::OptionOfOtherFormat { option, format } => {
            let name = match option {
                LookupOption::Prefix => "--prefix",
                LookupOption::Column => "--column",
                LookupOption::RowGroups => "--row-group",
                _ => "--type",
            };
            return Failure::new(not_of_format(name, option.formats(), format));
        }
        Error::TypeNotGiven => {
            "give --type, such as int64 or byte-array: the filter does not say of which type its values are, and those of another are \
             absent whatever it holds"
                .to_owned()
        }
        Error::SparkType { found } => {
            let found = type_name(*found);
            return Failure::new(format!(
                "--type {found}: for spark give int32, int64 or byte-array"
            ));
        }
        Error::ColumnNotGiven { columns } => {
            format!("give --column: columns with filters are {columns}")
        }
        Error::ColumnTypeChanges { column, row_group } => format!(
            "column {column:?} has another type in row group {row_group} than in those before: give --row-group"
        ),
        Error::ColumnDamaged { .. } => {
            error.to_string().replace("; choose other row groups (", "; --row-group selects the others (")
        }
        error => error.to_string(),
    };
    Failure::of(file, message)
}

/// The error for an option that is not one of the format.
pub(crate) fn not_of_format<F: ToString>(option: &str, formats: &[F], format: &F) -> String {
    let formats: Vec<String> = formats.iter().map(F::to_string).collect();
    format!("{option} is for {}, not for {}", formats.join(" and "), format.to_string())
}

/// What is wrong with a key.
pub(crate) fn key_problem(problem: &KeyProblem) -> String {
    let expected = match problem {
        KeyProblem::Text { physical_type: PhysicalType::Int96, .. } => "INT96 by --hex, 12 bytes",
        KeyProblem::Text { physical_type: PhysicalType::Float, .. } => {
            "a number within the range of FLOAT (NaN, which has many encodings, by --hex)"
        }
        KeyProblem::Text { physical_type: PhysicalType::Double, .. } => {
            "a number within the range of DOUBLE (NaN, which has many encodings, by --hex)"
        }
        _ => return problem.to_string(),
    };
    match problem {
        KeyProblem::Text { found, .. } => {
            format!("found '{}', expected {expected}", found.escape_ascii())
        }
        _ => problem.to_string(),
    }
}

/// The warning about the answers of the filter in a file.
pub(crate) fn warning(file: &str, warning: &Warning) -> String {
    let problem = warning.problem();
    let message = match warning {
        Warning::OnlyPrefixes { .. } => {
            format!("{problem}: give --prefix own: the answer is \"maybe\" for every line")
        }
        Warning::Contents { .. }
        | Warning::NoFilter { .. }
        | Warning::WholeKeysUnknown
        | Warning::NoPrefixes
        | Warning::UnknownExtractor { .. }
        | Warning::OtherExtractor { .. } => {
            format!("{problem}: the answer is \"maybe\" for every line")
        }
        Warning::NumberAsText { key } => format!(
            "'{}' and the like are looked up as text; if the partition key is an int, a uuid or composite, give its \
             serialized bytes by --hex, such as 0000002a for the int 42",
            key.escape_ascii(),
        ),
        Warning::OtherLayout { other, .. } => {
            format!("{problem}, give --cassandra-version {}", version_of(*other))
        }
        warning => warning.to_string(),
    };
    format!("{file}: {message}")
}

/// The error for a file of no known format: what may be meant, and with `--verbose` what was looked for. `keys` are the keys that were given
/// beside it, if any were, and their format if they are a filter.
pub(crate) fn unrecognised(
    file: &str,
    unrecognised: Unrecognised,
    keys: Option<(&Path, Option<Format>)>,
) -> Failure {
    let hint = match (unrecognised, keys) {
        (_, Some((path, Some(format)))) => {
            let path = path.display();
            format!("{path} is a filter ({format}): give the filter first, then the keys")
        }
        (Unrecognised::Empty, _) => "it is empty; give --format if it is a filter".to_owned(),
        (Unrecognised::Text, Some(_)) => {
            "it is text: the filter comes first, then the keys".to_owned()
        }
        (Unrecognised::Text, None) => "it is text; give --format if it is a filter".to_owned(),
        (Unrecognised::Container { .. }, _) => {
            "truncated or compressed? Fetch it again, or give --format".to_owned()
        }
        (Unrecognised::Stream, _) => {
            "a pipe, whose end is not known: give --format, such as rocksdb-sst".to_owned()
        }
        (Unrecognised::LooksCompact, _) => {
            "it ends as a filter in the compact form does: give --format compact".to_owned()
        }
        _ => "give --format if it is a filter".to_owned(),
    };
    let of_name = match unrecognised {
        Unrecognised::Container { extension: "parquet" } => {
            "  its name ends in .parquet, but its first bytes are not PAR1\n"
        }
        Unrecognised::Container { extension: "sst" } => {
            "  its name ends in .sst, but its last bytes are no magic number of RocksDB\n"
        }
        Unrecognised::Container { .. } => {
            "  its name ends in .db, but its first bytes are no number of probes and its last bytes no magic number of RocksDB\n"
        }
        _ => "",
    };
    let reasons = format!("{of_name}{RECOGNISED}");
    Failure::of(file, format!("not a recognised filter file: {hint}")).with_reasons(&reasons)
}

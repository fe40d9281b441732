//! Errors and warnings about stored filters, with the names that options have here.

use std::path::Path;

use blocked_bloom_inspect::{Content, Error, Format, LookupOption, Message, Unrecognised, Warning};

use crate::failure::Failure;

/// A text of the library with the names of this tool's options.
pub(crate) fn text(message: &Message) -> String {
    message.with_names(|option| match option {
        LookupOption::Prefix => "--prefix".to_owned(),
        LookupOption::Column => "--column".to_owned(),
        LookupOption::RowGroups => "--row-group".to_owned(),
        LookupOption::ValueType => "--type".to_owned(),
        LookupOption::Encoded => "--hex".to_owned(),
        LookupOption::Layout => "--cassandra-version".to_owned(),
        other => other.to_string(),
    })
}

/// The error about the filter in a file.
pub(crate) fn error(file: &str, error: &Error) -> Failure {
    if let Error::Damaged { format, damage } = error
        && *format == Format::NATIVE.name()
        && damage.is_other_magic()
    {
        let hint = "is it the file of keys? The filter comes first";
        return Failure::for_file(file, format!("{damage} ({hint})"));
    }
    Failure::for_file(file, text(&error.message()))
}

/// The error for an option that is not one of the format.
pub(crate) fn unsupported_option(option: &str, formats: &[&str], format: &str) -> Failure {
    Failure::new(format!("{option} is for {}, not for {format}", formats.join(" and ")))
}

/// The warning about the answers of the filter in a file.
pub(crate) fn warning(file: &str, warning: &Warning) -> String {
    format!("{file}: {}", text(warning.message()))
}

/// The error for a file of unknown format: a hint, and with `--verbose` the marks of all formats.
/// `head` has its first bytes. `keys` are the keys that were given with it, if any, and their
/// format if they are a filter.
pub(crate) fn unrecognised(
    file: &str,
    unrecognised: Unrecognised,
    head: &[u8],
    keys: Option<(&Path, Option<Format>)>,
) -> Failure {
    let hint = match (unrecognised, keys, Content::from_magic(head)) {
        (_, Some((path, Some(format))), _) => {
            let path = path.display();
            format!("{path} is a filter ({format}): give the filter first, then the keys")
        }
        (Unrecognised::Empty, ..) => "it is empty; give --format if it is a filter".to_owned(),
        (Unrecognised::Text, Some(_), _) => {
            "it is text: the filter comes first, then the keys".to_owned()
        }
        (Unrecognised::Text, None, _) => "it is text; give --format if it is a filter".to_owned(),
        (Unrecognised::Container { .. }, ..) => {
            "truncated or compressed? Fetch it again, or give --format".to_owned()
        }
        (Unrecognised::Stream, ..) => {
            "a pipe, whose end is not known: give --format, such as rocksdb-sst".to_owned()
        }
        (Unrecognised::LooksCompact, ..) => {
            "it ends as a filter in the compact form does: give --format compact".to_owned()
        }
        (.., Some(content)) => {
            let unpack = |command| format!(": unpack it first ({command})");
            let advice = content.command().map(unpack).unwrap_or_default();
            format!("it is {}{advice}", content.description())
        }
        _ => "give --format if it is a filter".to_owned(),
    };
    let of_name = match unrecognised {
        Unrecognised::Container { extension } => {
            format!("  its name ends in .{extension}, but it has not the mark of such a file\n")
        }
        _ => String::new(),
    };
    let reasons = format!("{of_name}{}", marks());
    Failure::for_file(file, format!("not a recognised filter file: {hint}")).with_reasons(&reasons)
}

/// Describes how a file of each format is recognised, one line per format.
pub(crate) fn marks() -> String {
    let formats = Format::ALL.into_iter();
    formats.map(|format| format!("  {:<16}{}\n", format.name(), format.mark())).collect()
}

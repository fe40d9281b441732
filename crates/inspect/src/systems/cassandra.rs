//! Cassandra's `Filter.db`.

use std::path::Path;

use blocked_bloom::Bitmask;
use blocked_bloom_formats::cassandra::{CassandraError, CassandraFilter, Layout, diagnose};

use crate::error::{Error, Warning};
use crate::facts::{Facts, Summary, bits, sizes};
use crate::message::{LookupOption, Message};
use crate::system::{
    Answers, Evidence, Format, LookupContext, Mark, Source, Stored, System, answers,
};
use crate::value::object;

impl Format {
    /// Cassandra's `Filter.db`.
    pub const CASSANDRA: Format = Format::new(&System {
        recognise,
        extension: Some("db"),
        ..System::new(
            "cassandra",
            "A Cassandra Filter.db",
            "is named as in nb-1-big-Filter.db, and begins with a number of probes",
            open,
        )
    });
}

/// Recognises the file by its name, since no byte marks it. The number of probes is at most 21, and
/// an empty file is a filter.
fn recognise(file: &Evidence<'_>) -> Option<Mark> {
    let may_be_probes = file.head.iter().take(3).all(|&byte| byte == 0);
    (is_cassandra_name(file.name) && may_be_probes).then_some(Mark::Name)
}

fn open<'a>(source: &Source<'_, 'a>) -> Result<Box<dyn Stored + 'a>, Error> {
    let layout = source.layout.map_or_else(|| layout_of_name(source.name), Ok);
    let layout = layout.map_err(Error::Options)?;
    let layout_given = source.layout.is_some();
    let filter = CassandraFilter::from_bytes(source.bytes()?, layout);
    source.boxed(filter.map(|filter| Cassandra { filter, layout_given }))
}

/// Returns whether Cassandra gives such a name to a filter.
///
/// ```
/// assert!(blocked_bloom_inspect::is_cassandra_name("data/nb-1-big-Filter.db"));
/// ```
pub fn is_cassandra_name(name: &str) -> bool {
    name.ends_with("Filter.db")
}

/// Returns a version of Cassandra's format that has the layout, for users who know the layout.
///
/// ```
/// use blocked_bloom_inspect::{Layout, version_of};
/// assert_eq!(Layout::from_version(version_of(Layout::Cassandra4)), Ok(Layout::Cassandra4));
/// ```
pub fn version_of(layout: Layout) -> &'static str {
    match layout {
        Layout::Cassandra2 => "la",
        Layout::Cassandra3 => "me",
        _ => "nb",
    }
}

/// Returns the layout of a version of Cassandra's format, such as `nb`.
///
/// # Errors
///
/// A [`Message`] for an unknown version.
///
/// ```
/// use blocked_bloom_inspect::{Layout, layout_of_version};
/// assert_eq!(layout_of_version("nb"), Ok(Layout::Cassandra4));
/// ```
pub fn layout_of_version(version: &str) -> Result<Layout, Message> {
    Layout::from_version(version).map_err(|error| Message::new(text_of(&error)))
}

/// Returns the layout of the version in the file's name.
///
/// # Errors
///
/// A [`Message`] if the name has no known version.
///
/// ```
/// use blocked_bloom_inspect::{Layout, layout_of_name};
/// assert_eq!(layout_of_name("data/nb-1-big-Filter.db"), Ok(Layout::Cassandra4));
/// ```
pub fn layout_of_name(path: &str) -> Result<Layout, Message> {
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    Layout::from_file_name(&name).map_err(|error| {
        let before = format!("{}; or give ", text_of(&error));
        Message::naming(before, LookupOption::Layout, ", such as nb or me")
    })
}

/// Returns the message about a version, for callers that cannot name a layout in another way.
fn text_of(error: &CassandraError) -> String {
    match error {
        CassandraError::Version { found } => {
            format!("version {found:?} is not known: give one from ic to oa, or da")
        }
        error => error.to_string(),
    }
}

/// Minimum number of keys to look up in other layouts. At a rate of 1 %, three absent keys are all
/// found there with a probability of one in a million.
const SUSPICIOUS: usize = 3;
const DIAGNOSED: usize = 64;

struct Cassandra<'a> {
    filter: CassandraFilter<&'a [u8]>,
    /// Whether the user gave the layout; otherwise the file's name determined it.
    layout_given: bool,
}

impl Stored for Cassandra<'_> {
    fn describe(&self, about: &Summary) -> Facts {
        let filter = &self.filter;
        let shape = (!filter.is_pass_all()).then(|| filter.shape());
        let (probes, words) = (shape.map(|shape| shape.probes()), shape.map(|shape| shape.words()));
        let bits = bits!(filter);
        let source = match self.layout_given {
            true => "as given",
            false => "by the file's name",
        };
        let number = |number: Option<u32>| match number {
            Some(number) => number.to_string(),
            None => "none: the file is empty, every answer is \"maybe\"".to_owned(),
        };
        let json = object! {
            "layout": filter.shape().scheme().to_string(),
            "pass_all": filter.is_pass_all(),
            "stored_bytes": about.length,
            "words": words,
            "probes": probes,
            "fill_ratio": bits.fill_ratio,
            "estimated_keys": bits.keys,
            "estimated_false_positive_rate": bits.false_positive_rate,
            "checksum": None::<bool>,
        };
        let rows = vec![
            ("format", about.format.to_owned()),
            ("layout", format!("{}, {source}", filter.shape().scheme())),
            ("stored size", sizes(about.length)),
            ("probes", number(probes)),
            ("words of 8 bytes", number(words)),
            ("distinct keys, estimated", bits.keys()),
            ("fill ratio", bits.fill()),
            ("false positives, from the bits", bits.rate()),
            ("checksum", "none: damage in the bits cannot be seen".to_owned()),
        ];
        Facts::new(about, json, rows)
    }

    fn lookup<'o>(&'o self, wanted: &mut LookupContext<'_>) -> Result<Answers<'o>, Error> {
        if self.filter.is_pass_all() {
            wanted.warnings.push(Warning::pass_all("the file is empty"));
        }
        answers(|keys, hits| self.filter.contains_batch(keys, hits))
    }

    /// Warns if keys are numbers as text, and if the file is perhaps read in a wrong layout.
    fn doubts(&self, keys: &[&[u8]], hits: &Bitmask, is_text: bool) -> Vec<Warning> {
        let number = keys.iter().find(|key| is_text && is_number_or_uuid(key));
        let number = number.map(|key| {
            let text = format!(
                "'{}' and the like are looked up as text; if the partition key is an int, a uuid \
                 or composite, give its serialized bytes by ",
                key.escape_ascii()
            );
            let after = ", such as 0000002a for the int 42";
            Warning::new(Message::naming(text, LookupOption::Encoded, after), false)
        });
        let layout = if hits.count_hits() == 0 { suggest_layout(&self.filter, keys) } else { None };
        number.into_iter().chain(layout).collect()
    }
}

/// Returns a warning if another layout finds all of these keys, which this one does not find.
fn suggest_layout(filter: &CassandraFilter<&[u8]>, keys: &[&[u8]]) -> Option<Warning> {
    let layout = filter.shape().scheme();
    let keys = &keys[..keys.len().min(DIAGNOSED)];
    let found = diagnose(filter.as_bytes(), keys).ok().and_then(|diagnosis| diagnosis.layout());
    let other = found.filter(|&other| keys.len() >= SUSPICIOUS && other != layout)?;
    let (count, version) = (keys.len(), version_of(other));
    let text = format!(
        "read as of {layout}, none of {count} keys is found; read as of {other}, all are: its \
         name may be wrong, give "
    );
    let message = Message::naming(text, LookupOption::Layout, format_args!(" {version}"));
    Some(Warning::new(message, false))
}

/// Returns whether a text looks like a number or a UUID, which Cassandra serializes differently.
fn is_number_or_uuid(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_number = (1..=20).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let uuid = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    is_number || (text.len() == 36 && text.iter().enumerate().all(uuid))
}

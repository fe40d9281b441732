//! The part of a line or CSV record that is compared.

use std::ops::Range;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};
use memchr::{memchr, memchr_iter, memchr2};

/// A field of a line that ends at delimiters; `None` if the line does not have it.
pub(super) fn field(line: &[u8], number: u32, delimiter: u8) -> Option<&[u8]> {
    let mut rest = line;
    for _ in 1..number {
        rest = &rest[memchr(delimiter, rest)? + 1..];
    }
    Some(memchr(delimiter, rest).map_or(rest, |at| &rest[..at]))
}

/// The problem with the quotes of a line that is divided at every delimiter: one of its fields up
/// to this one is quoted, or a quoted field goes on in the next line.
pub(super) fn quote_problem(line: &[u8], number: u32, delimiter: u8) -> Option<String> {
    memchr2(b'"', b'\'', line)?;
    let mut fields = (1..).zip(line.split(|&byte| byte == delimiter));
    let is_cut = |&(at, field): &(u32, &[u8])| match field.trim_ascii() {
        [b'"', ..] => true,
        // A quoted field that ends at a delimiter.
        [b'\'', rest @ ..] => at <= number && rest.last() != Some(&b'\''),
        _ => false,
    };
    let (found, field) = fields.find(is_cut)?;
    let is_open = memchr_iter(b'"', line).count() % 2 == 1;
    (found <= number || is_open).then(|| {
        let start = String::from_utf8_lossy(&field[..field.len().min(20)]).into_owned();
        format!(
            "field {found} begins with a quote ({start}): give --csv if quotes enclose fields \
             (double ones), or --raw to take them as they are"
        )
    })
}

/// A record of a CSV file.
pub(super) struct Record<'r> {
    /// Its bytes, with the line feed that ends it.
    pub(super) length: usize,
    /// The field without its quotes; `None` if it is empty, or the record does not have it.
    pub(super) field: Option<&'r [u8]>,
}

/// Divides CSV into records.
pub(super) struct Records {
    reader: Reader,
    number: usize,
    delimiter: u8,
    raw: bool,
    fields: Vec<u8>,
    ends: Vec<usize>,
}

impl Records {
    pub(super) fn new(number: u32, delimiter: u8, raw: bool) -> Self {
        // A carriage return alone does not end a record.
        let terminator = Terminator::Any(b'\n');
        let reader = ReaderBuilder::new().delimiter(delimiter).terminator(terminator).build();
        let (fields, ends) = (vec![0; 4096], vec![0; 64]);
        Records { reader, number: number as usize, delimiter, raw, fields, ends }
    }

    /// The first record of these bytes; `None` if they end before it does.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<Option<Record<'_>>, String> {
        // The reader skips empty lines.
        if let Some(length) = [&b"\n"[..], b"\r\n"].into_iter().find(|end| bytes.starts_with(end)) {
            return Ok(Some(Record { length: length.len(), field: None }));
        }
        self.reader.reset();
        let (mut length, mut filled, mut count) = (0, 0, 0);
        loop {
            let (result, read, written, ended) = self.reader.read_record(
                &bytes[length..],
                &mut self.fields[filled..],
                &mut self.ends[count..],
            );
            (length, filled, count) = (length + read, filled + written, count + ended);
            match result {
                ReadRecordResult::OutputFull => self.fields.resize(2 * self.fields.len(), 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                ReadRecordResult::InputEmpty | ReadRecordResult::End => return Ok(None),
                ReadRecordResult::Record => break,
            }
        }
        let starts = [0].into_iter().chain(self.ends[..count].iter().copied());
        let all: Vec<Range<usize>> =
            starts.zip(&self.ends[..count]).map(|(start, &end)| start..end).collect();
        let field = |i: usize| {
            let value = &self.fields[all[i].clone()];
            let is_last = i + 1 == count && bytes[..length].ends_with(b"\r\n");
            if is_last { value.strip_suffix(b"\r").unwrap_or(value) } else { value }
        };
        if !self.raw && memchr2(b'"', b'\'', &bytes[..length]).is_some() {
            let quotes = |value| memchr_iter(b'"', value).count();
            let mut at = 0;
            for i in 0..self.number.min(count) {
                let (value, is_quoted) = (field(i), bytes[at..].starts_with(b"\""));
                at += value.len() + if is_quoted { 2 + quotes(value) } else { 0 };
                let is_end = |&byte: &u8| [self.delimiter, b'\r', b'\n'].contains(&byte);
                let is_closed =
                    || bytes.get(at - 1) == Some(&b'"') && bytes.get(at).is_some_and(is_end);
                let mut later = (i + 1..count).map(field);
                let problem = match value.trim_ascii_start() {
                    _ if is_quoted && !is_closed() => Some("text after the quote"),
                    [.., b'\\'] if is_quoted => later
                        .any(|value| quotes(value) % 2 == 1)
                        .then_some("a backslash before the quote"),
                    _ if is_quoted => None,
                    [b'"', ..] => Some("blanks before the quote"),
                    [b'\'', rest @ ..] if rest.last() != Some(&b'\'') => later
                        .any(|value| value.trim_ascii_end().ends_with(b"'"))
                        .then_some("an apostrophe as the quote"),
                    _ => None,
                };
                if let Some(problem) = problem {
                    return Err(format!(
                        "{problem} of field {}: quotes are double, enclose all of a field and are \
                         doubled in it; give --raw to take the bytes as they are",
                        i + 1
                    ));
                }
                at += 1;
            }
        }
        let found = (self.number <= count).then(|| field(self.number - 1));
        Ok(Some(Record { length, field: found.filter(|field| !field.is_empty()) }))
    }
}

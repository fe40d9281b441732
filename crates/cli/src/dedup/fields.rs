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
    /// The field without its quotes; `None` if the record does not have it.
    pub(super) field: Option<&'r [u8]>,
}

/// Divides CSV into records.
pub(super) struct Records {
    reader: Reader,
    number: usize,
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
        Records { reader, number: number as usize, raw, fields, ends }
    }

    /// The first record of these bytes; `None` if they end before it does.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<Option<Record<'_>>, String> {
        // The reader skips empty lines.
        if let Some(length) = [&b"\n"[..], b"\r\n"].into_iter().find(|end| bytes.starts_with(end)) {
            let field = (self.number == 1).then_some(&[][..]);
            return Ok(Some(Record { length: length.len(), field }));
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
        let field = |range: &Range<usize>| &self.fields[range.clone()];
        let is_shifted = |range: &Range<usize>| {
            let bytes = field(range);
            let rest = bytes.trim_ascii_start();
            rest.len() < bytes.len() && rest.starts_with(b"\"")
        };
        if !self.raw
            && let Some(at) = all.iter().take(self.number).position(is_shifted)
        {
            return Err(format!(
                "blanks before the quote of field {}, which is then part of the field: remove \
                 them, or give --raw to take the quote as it is",
                at + 1
            ));
        }
        let is_last = self.number == count && bytes[..length].ends_with(b"\r\n");
        let found = all.get(self.number - 1).map(|range| {
            let bytes = field(range);
            if is_last { bytes.strip_suffix(b"\r").unwrap_or(bytes) } else { bytes }
        });
        Ok(Some(Record { length, field: found }))
    }
}

#[cfg(test)]
mod tests {
    use super::{Records, field, quote_problem};

    fn all(mut csv: &[u8], number: u32) -> Vec<(usize, Option<Vec<u8>>)> {
        let (mut records, mut found) = (Records::new(number, b',', false), Vec::new());
        while let Ok(Some(record)) = records.next(csv) {
            found.push((record.length, record.field.map(<[u8]>::to_vec)));
            csv = &csv[found.last().map_or(0, |record| record.0)..];
        }
        found
    }

    #[test]
    fn records_keep_their_bytes() {
        let csv = b"1,\"a, b\",x\n\n\r\n2,\"say \"\"hi\"\"\"\r\n3,c\r\n\"4\n4\",d\n5,\"open\n";
        let fields: Vec<_> = all(csv, 2).into_iter().map(|record| record.1).collect();
        let some = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(fields, [some("a, b"), None, None, some("say \"hi\""), some("c"), some("d")]);
        let lengths: usize = all(csv, 1).iter().map(|record| record.0).sum();
        assert_eq!(&csv[lengths..], b"5,\"open\n");
        // Longer than the buffers, in bytes and in fields.
        let long = format!("{},\"{}\"\n", "a,".repeat(300), "b".repeat(9_000));
        assert_eq!(all(long.as_bytes(), 302), [(long.len(), some(&"b".repeat(9_000)))]);
        assert!(Records::new(2, b',', false).next(b"1, \"a, b\"\n").is_err());
        assert!(Records::new(2, b',', true).next(b"1, \"a, b\"\n").is_ok());
    }

    #[test]
    fn quotes_that_matter_are_a_problem() {
        let problem = |line: &str, number| quote_problem(line.as_bytes(), number, b',').is_some();
        assert!(problem("1,\"Smith, John\"", 2) && problem("\"Smith, John\",1", 2));
        assert!(problem("1,'Smith, John'", 2) && problem("'Smith, John',1", 2));
        assert!(!problem("1,'Smith'", 2) && !problem("1,2,'s", 2) && problem("'", 1));
        assert!(problem("1, \"Smith, John\"", 2) && problem("1,2,\"two", 1));
        assert!(!problem("1,2,\"Smith, John\"", 1) && problem("1,5\" pipe,\"", 5));
        assert!(!problem("1,5\" pipe", 2));
        assert_eq!(field(b"a,b,c", 2, b','), Some(&b"b"[..]));
        assert_eq!(field(b"a", 2, b','), None);
    }
}

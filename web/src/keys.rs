//! Lines of keys, and how they are written.

use std::borrow::Cow;

use blocked_bloom_inspect::{Content, KeyEncoding};

use crate::Fault;

/// The keys of lines; the last line need not end in a line feed.
pub(crate) fn keys_of(lines: &[u8], encoding: KeyEncoding) -> Result<Vec<Cow<'_, [u8]>>, Fault> {
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let lines = lines.strip_suffix(b"\n").unwrap_or(lines);
    let has_returns = lines.strip_suffix(b"\r").unwrap_or(lines).contains(&b'\r');
    if encoding == KeyEncoding::Text && !lines.contains(&b'\n') && has_returns {
        let error = "one line with carriage returns in it: end the lines with line feeds";
        return Err(Fault::new("line", error));
    }
    let lines = lines.split(|&byte| byte == b'\n');
    lines.enumerate().map(|(at, line)| key_of(at, line, encoding)).collect()
}

/// Warnings about keys that may not be the ones that are meant.
pub(crate) fn doubts(keys: &[&[u8]]) -> impl Iterator<Item = String> {
    let returns = keys.iter().any(|key| key.ends_with(b"\r"));
    let others = keys.iter().any(|key| str::from_utf8(key).is_err());
    let doubts = [
        (returns, "Keys end in a carriage return, which is part of the key."),
        (others, "Keys are not UTF-8, and are looked up as they are."),
    ];
    doubts.into_iter().filter(|doubt| doubt.0).map(|doubt| doubt.1.to_owned())
}

fn key_of(at: usize, line: &[u8], encoding: KeyEncoding) -> Result<Cow<'_, [u8]>, Fault> {
    let fault = |error: String| Fault::new("line", format!("line {}: {error}", at + 1));
    if encoding == KeyEncoding::Text {
        return match line.contains(&0) {
            true => Err(fault("a NUL byte: give the keys as lines of UTF-8 text".to_owned())),
            false => Ok(line.into()),
        };
    }
    let mut bytes = Vec::new();
    let encoded = encoding.encode(line.trim_ascii(), &mut bytes);
    encoded.map(|()| bytes.into()).map_err(|error| fault(error.to_string()))
}

/// An error if a file with these first bytes is not lines of text.
pub(crate) fn check_start(head: &[u8]) -> Result<(), Fault> {
    let Some(content) = Content::from_head(head) else { return Ok(()) };
    let advice = match content.command() {
        Some(command) => format!("write its text to a file with {command}, and look that up"),
        None => "write the keys to a text file, one per line".to_owned(),
    };
    Err(Fault::new("line", format!("the file is {}: {advice}", content.description())))
}

#[cfg(test)]
mod tests {
    use super::{check_start, doubts, keys_of};

    fn keys(lines: &str, encoding: &str) -> Option<Vec<Vec<u8>>> {
        let keys = keys_of(lines.as_bytes(), encoding.parse().ok()?).ok()?;
        Some(keys.into_iter().map(|key| key.into_owned()).collect())
    }

    #[test]
    fn lines_are_keys() {
        assert_eq!(keys("", "text"), Some(vec![]));
        assert_eq!(keys("\n", "text"), Some(vec![vec![]]));
        assert_eq!(keys("a\n\nb", "text"), Some(vec![b"a".to_vec(), vec![], b"b".to_vec()]));
        assert_eq!(keys("a\nb\n", "text"), keys("a\nb", "text"));
        assert_eq!(keys("a\r\nb\r", "text"), Some(vec![b"a\r".to_vec(), b"b\r".to_vec()]));
        assert_eq!(keys("a\rb\r", "text"), None);
        assert_eq!(doubts(&[b"a\r", b"b"]).count(), 1);
        assert_eq!(doubts(&[b"gr\xfcn"]).count(), 1);
        assert_eq!(doubts(&["grün".as_bytes()]).count(), 0);
        assert_eq!(keys("0aFF\n0x00", "hex"), Some(vec![vec![10, 255], vec![0]]));
        assert_eq!(keys("abc", "hex"), None);
        assert_eq!(keys("+1", "hex"), None);
    }

    #[test]
    fn numbers_are_keys() {
        assert_eq!(keys("258", "int32"), Some(vec![vec![2, 1, 0, 0]]));
        assert_eq!(keys("258", "int32-be"), Some(vec![vec![0, 0, 1, 2]]));
        assert_eq!(keys("-1", "int64-be"), Some(vec![vec![255; 8]]));
        assert_eq!(keys("18446744073709551615", "uint64"), Some(vec![vec![255; 8]]));
        assert_eq!(keys("18446744073709551615", "int64"), None);
        assert_eq!(keys("128", "int8"), None);
        assert_eq!(keys("-1", "uint8-be"), None);
        assert_eq!(keys("4294967296", "int32"), None);
        assert_eq!(keys("-2147483649", "int32-be"), None);
        assert_eq!(keys("1.0", "int64"), None);
    }

    #[test]
    fn uuids_are_keys() {
        let bytes: Vec<u8> = (0..16).map(|byte| 17 * byte).collect();
        for text in ["00112233-4455-6677-8899-aabbccddeeff", "00112233445566778899AABBCCDDEEFF"] {
            assert_eq!(keys(text, "uuid"), Some(vec![bytes.clone()]));
        }
        assert_eq!(keys("00112233", "uuid"), None);
    }

    #[test]
    fn files_that_are_not_text_are_refused() {
        let gzip = check_start(b"\x1f\x8b\x08").err().map(|fault| fault.json().to_string());
        assert!(gzip.is_some_and(|error| error.contains("zcat")));
        for head in [&b"PAR1\x15\x04"[..], b"\xff\xfea\0\n\0", b"a\0b\0\n\0"] {
            assert!(check_start(head).is_err(), "{head:?}");
        }
        assert!(check_start(b"apple\n").is_ok());
        assert_eq!(keys("a\0b", "text"), None);
    }
}

//! Lines of keys, and how they are written.

use std::borrow::Cow;

use crate::Fault;

/// How a line says which bytes a key has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// The line is the key, or the value of a column as text.
    #[default]
    Text,
    /// Hex digits.
    Hex,
    /// A whole number in this many bytes.
    Integer { bytes: usize, is_big_endian: bool },
}

impl Encoding {
    /// `text`, `hex`, or such as `u64-le` and `u32-be`.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "text" => Encoding::Text,
            "hex" => Encoding::Hex,
            "u64-le" => Encoding::Integer { bytes: 8, is_big_endian: false },
            "u32-le" => Encoding::Integer { bytes: 4, is_big_endian: false },
            "u64-be" => Encoding::Integer { bytes: 8, is_big_endian: true },
            "u32-be" => Encoding::Integer { bytes: 4, is_big_endian: true },
            _ => return None,
        })
    }

    fn key(self, line: &[u8]) -> Result<Cow<'_, [u8]>, String> {
        match self {
            Encoding::Text => Ok(line.into()),
            Encoding::Hex => hex(line)
                .map(Cow::from)
                .ok_or_else(|| "give an even number of hex digits".to_owned()),
            Encoding::Integer { bytes, is_big_endian } => integer(line, bytes, is_big_endian)
                .map(Cow::from)
                .ok_or_else(|| format!("give a whole number that {} bits hold", 8 * bytes)),
        }
    }
}

/// The keys of lines, of which the last may end in a line feed or not.
pub(crate) fn keys_of(lines: &[u8], encoding: Encoding) -> Result<Vec<Cow<'_, [u8]>>, Fault> {
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let lines = lines.strip_suffix(b"\n").unwrap_or(lines).split(|&byte| byte == b'\n');
    let key = |(at, line)| {
        encoding.key(line).map_err(|error| Fault::new("line", format!("line {}: {error}", at + 1)))
    };
    lines.enumerate().map(key).collect()
}

fn hex(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.trim_ascii();
    let line = line.strip_prefix(b"0x").unwrap_or(line);
    let digits: Option<Vec<u8>> =
        line.iter().map(|&byte| Some(char::from(byte).to_digit(16)? as u8)).collect();
    let digits = digits?;
    digits
        .len()
        .is_multiple_of(2)
        .then(|| digits.chunks_exact(2).map(|pair| 16 * pair[0] + pair[1]).collect())
}

/// A whole number in this many bytes, if they hold it with or without a sign.
fn integer(line: &[u8], bytes: usize, is_big_endian: bool) -> Option<Vec<u8>> {
    let number: i128 = str::from_utf8(line).ok()?.trim().parse().ok()?;
    let bits = 8 * bytes;
    if !(-(1 << (bits - 1))..1 << bits).contains(&number) {
        return None;
    }
    Some(if is_big_endian {
        number.to_be_bytes()[16 - bytes..].to_vec()
    } else {
        number.to_le_bytes()[..bytes].to_vec()
    })
}

#[cfg(test)]
mod tests {
    use super::{Encoding, keys_of};

    fn keys(lines: &str, encoding: &str) -> Option<Vec<Vec<u8>>> {
        let keys = keys_of(lines.as_bytes(), Encoding::from_name(encoding)?).ok()?;
        Some(keys.into_iter().map(|key| key.into_owned()).collect())
    }

    #[test]
    fn lines_are_keys() {
        assert_eq!(keys("", "text"), Some(vec![]));
        assert_eq!(keys("\n", "text"), Some(vec![vec![]]));
        assert_eq!(keys("a\n\nb", "text"), Some(vec![b"a".to_vec(), vec![], b"b".to_vec()]));
        assert_eq!(keys("a\nb\n", "text"), keys("a\nb", "text"));
        assert_eq!(keys("0aFF\n0x00", "hex"), Some(vec![vec![10, 255], vec![0]]));
        assert_eq!(keys("abc", "hex"), None);
        assert_eq!(keys("+1", "hex"), None);
    }

    #[test]
    fn numbers_are_keys() {
        assert_eq!(keys("258", "u32-le"), Some(vec![vec![2, 1, 0, 0]]));
        assert_eq!(keys("258", "u32-be"), Some(vec![vec![0, 0, 1, 2]]));
        assert_eq!(keys("-1", "u64-be"), Some(vec![vec![255; 8]]));
        assert_eq!(keys("18446744073709551615", "u64-le"), Some(vec![vec![255; 8]]));
        assert_eq!(keys("4294967296", "u32-le"), None);
        assert_eq!(keys("-2147483649", "u32-be"), None);
        assert_eq!(keys("1.0", "u64-le"), None);
    }
}

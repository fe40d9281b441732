//! Keys written as text that stands for other bytes: hex digits, integers, UUIDs.

use std::str::FromStr;

use blocked_bloom::Bitmask;

use crate::error::BadKey;
use crate::message::Message;
use crate::opened::Lookup;
use crate::typed::uuid;

/// How the text of a key is converted to bytes, for filters that hash bytes.
///
/// ```
/// use blocked_bloom_inspect::KeyEncoding;
/// let mut key = Vec::new();
/// "int32".parse::<KeyEncoding>()?.encode(b"258", &mut key)?;
/// assert_eq!(key, [2, 1, 0, 0]);
/// assert!("int8".parse::<KeyEncoding>()?.encode(b"200", &mut key).is_err());
/// "uint8".parse::<KeyEncoding>()?.encode(b"200", &mut key)?;
/// # Ok::<(), blocked_bloom_inspect::Message>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyEncoding {
    /// The bytes of the text, unchanged.
    #[default]
    Text,
    /// The bytes of the text, without blanks and double quotes around it.
    Trimmed,
    /// Hex digits, two per byte.
    Hex,
    /// A decimal integer in this many bytes (1, 2, 4 or 8), in two's complement unless unsigned.
    Integer {
        /// Bytes per key.
        bytes: usize,
        /// Whether negative numbers are refused.
        is_unsigned: bool,
        /// Whether the most significant byte is first.
        is_big_endian: bool,
    },
    /// A UUID in hex digits, with or without hyphens, braces and `urn:uuid:`: its 16 bytes.
    Uuid,
}

/// The names that [`KeyEncoding`] parses.
const NAMES: [(&str, KeyEncoding); 21] = [
    ("text", KeyEncoding::Text),
    ("byte-array", KeyEncoding::Text),
    ("uuid", KeyEncoding::Uuid),
    ("int64", integer(8, false, false)),
    ("int32", integer(4, false, false)),
    ("int16", integer(2, false, false)),
    ("int8", integer(1, false, false)),
    ("int64-be", integer(8, false, true)),
    ("int32-be", integer(4, false, true)),
    ("int16-be", integer(2, false, true)),
    ("int8-be", integer(1, false, true)),
    ("uint64", integer(8, true, false)),
    ("uint32", integer(4, true, false)),
    ("uint16", integer(2, true, false)),
    ("uint8", integer(1, true, false)),
    ("uint64-be", integer(8, true, true)),
    ("uint32-be", integer(4, true, true)),
    ("uint16-be", integer(2, true, true)),
    ("uint8-be", integer(1, true, true)),
    ("hex", KeyEncoding::Hex),
    ("trimmed", KeyEncoding::Trimmed),
];

const fn integer(bytes: usize, is_unsigned: bool, is_big_endian: bool) -> KeyEncoding {
    KeyEncoding::Integer { bytes, is_unsigned, is_big_endian }
}

impl FromStr for KeyEncoding {
    type Err = Message;

    fn from_str(text: &str) -> Result<Self, Message> {
        let name = text.to_ascii_lowercase().replace('_', "-");
        let found = NAMES.into_iter().find(|known| known.0 == name).map(|known| known.1);
        found.ok_or_else(|| {
            Message::new(format_args!("unknown key type {text:?} (supported: {})", Self::names()))
        })
    }
}

impl KeyEncoding {
    /// Returns the names of all encodings, for messages.
    ///
    /// ```
    /// assert!(blocked_bloom_inspect::KeyEncoding::names().contains("uuid, int64, int32"));
    /// ```
    pub fn names() -> String {
        NAMES.map(|known| known.0).join(", ")
    }

    /// Replaces `key` with the bytes that the text stands for.
    ///
    /// # Errors
    ///
    /// A [`Message`] if the text is not a value of this kind.
    pub fn encode(self, text: &[u8], key: &mut Vec<u8>) -> Result<(), Message> {
        key.clear();
        match self {
            KeyEncoding::Text => key.extend_from_slice(text),
            KeyEncoding::Trimmed => {
                let text = text.trim_ascii();
                let inner = text.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
                key.extend_from_slice(inner.unwrap_or(text));
            }
            KeyEncoding::Hex => decode_hex(text, key).map_err(Message::new)?,
            KeyEncoding::Uuid => {
                let digits = str::from_utf8(text).ok().and_then(|text| uuid(text.trim()));
                *key =
                    digits.ok_or_else(|| expected(text, "a UUID of 32 hex digits".to_owned()))?;
            }
            KeyEncoding::Integer { bytes, is_unsigned, is_big_endian } => {
                let bits = 8 * bytes;
                let number = str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
                let (low, sign) = match is_unsigned {
                    true => (0, " without a sign"),
                    false => (-(1_i128 << (bits - 1)), ""),
                };
                let high = low + (1 << bits) - 1;
                let Some(number) = number.filter(|number| (low..=high).contains(number)) else {
                    let range = format!("a whole number of {bits} bits{sign}, {low} to {high}");
                    return Err(expected(text, range));
                };
                match is_big_endian {
                    true => key.extend_from_slice(&number.to_be_bytes()[16 - bytes..]),
                    false => key.extend_from_slice(&number.to_le_bytes()[..bytes]),
                }
            }
        }
        Ok(())
    }
}

fn expected(found: &[u8], what: String) -> Message {
    Message::new(format_args!("found '{}', expected {what}", found.escape_ascii()))
}

fn decode_hex(text: &[u8], bytes: &mut Vec<u8>) -> Result<(), String> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let text = text.strip_prefix(b"0x").filter(|rest| !rest.is_empty()).unwrap_or(text);
    if let Some(at) = text.iter().position(|&byte| digit(byte).is_none()) {
        let found = text[at].escape_ascii();
        let column = at + 1;
        return Err(format!("found '{found}' at column {column}, expected a hex digit"));
    }
    let (pairs, odd) = text.as_chunks();
    if !odd.is_empty() {
        let digits = text.len();
        return Err(format!("found an odd number of hex digits ({digits}), expected two per byte"));
    }
    bytes.extend(pairs.iter().filter_map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)));
    Ok(())
}

/// Returns the number of keys found with the best encoding other than `given`, and its name, if it
/// finds at least half of the keys and twice as many as `given`, because a filter finds some keys
/// by chance. Tries only encodings that fit all keys.
///
/// # Errors
///
/// Same as [`Lookup::contains`].
///
/// ```
/// use blocked_bloom::FilterOptions;
/// use blocked_bloom_inspect::{
///     FileRanges, Format, KeyEncoding, LookupOptions, Opened, encoding_hint,
/// };
/// let mut builder = FilterOptions::default().builder();
/// builder.extend((0..1_000_u64).map(u64::to_le_bytes))?;
/// let stored = builder.finish()?.to_bytes();
/// let opened = Opened::new("ids.bloom", &FileRanges::from(&stored[..]), Format::NATIVE, None)?;
/// let lookup = opened.lookup(&LookupOptions::default())?;
/// assert_eq!(encoding_hint(&lookup, &["5", "7"], KeyEncoding::Text)?, Some((2, "int64")));
/// assert_eq!(encoding_hint(&lookup, &["5", "seven"], KeyEncoding::Text)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn encoding_hint<K: AsRef<[u8]>>(
    lookup: &Lookup<'_>,
    texts: &[K],
    given: KeyEncoding,
) -> Result<Option<(usize, &'static str)>, BadKey> {
    let mut hits = Bitmask::new();
    let mut found_as = |encoding: KeyEncoding| -> Result<usize, BadKey> {
        let encode = |text: &K| {
            let mut key = Vec::new();
            encoding.encode(text.as_ref(), &mut key).ok().map(|()| key)
        };
        let Some(keys) = texts.iter().map(encode).collect::<Option<Vec<_>>>() else { return Ok(0) };
        lookup.contains_batch(&keys, &mut hits)?;
        Ok(hits.count_hits())
    };
    let (found, mut best) = (found_as(given)?, (0, ""));
    for (name, encoding) in NAMES.into_iter().filter(|known| known.1 != given) {
        let others = found_as(encoding)?;
        if others > best.0 {
            best = (others, name);
        }
    }
    Ok((best.0 > 0 && best.0 >= texts.len().div_ceil(2).max(2 * found)).then_some(best))
}

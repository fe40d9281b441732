//! Prefixes of keys: what a filter holds so that it can answer for a scan.
//!
//! The hash of the rule's name is stored with a filter, since prefixes cut by another rule would be
//! answered "absent". A key that no rule covers has no prefix; such a scan must read.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
#[cfg(target_has_atomic = "ptr")]
use alloc::sync::Arc;
use core::fmt::{self, Display, Formatter};

use crate::checksum::checksum;

/// Cuts prefixes off keys, for filters that answer for scans: does any key start with these bytes?
///
/// A rule with a name, whose hash filters store: it must change whenever the rule does.
///
/// | rule | name | prefix of a key | no prefix, nothing is added |
/// |---|---|---|---|
/// | [`fixed(4)`](Self::fixed) | `fixed:4` | its first four bytes | keys shorter than four bytes |
/// | [`capped(4)`](Self::capped) | `capped:4` | its first four bytes, or all of it if it has fewer | |
/// | [`delimiter(b'/', 2)`](Self::delimiter) | `delimiter:2f:2` | up to and with the second `/` | keys with fewer than two |
/// | [`custom("tenant", …)`](Self::custom) | `custom:tenant` | what the function says | where it says `None` |
///
/// ```
/// use blocked_bloom::{FilterOptions, PrefixExtractor, Sizing};
/// let directory = PrefixExtractor::delimiter(b'/', 2);
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0)).with_prefixes(directory.clone());
/// let mut builder = options.builder();
/// builder.extend(["usr/bin/awk", "usr/bin/sed", "usr/lib/libc.so"])?;
/// let filter = builder.finish()?;
///
/// assert!(filter.contains_prefix(&directory, "usr/bin/"));
/// assert!(!filter.contains_prefix(&directory, "etc/init.d/"));
/// // Every key of this scan starts with "usr/lib/", so that is what is looked up.
/// assert!(filter.contains_prefix(&directory, "usr/lib/libz"));
/// // The rule does not know what keys of this scan have in common: maybe.
/// assert!(filter.contains_prefix(&directory, "opt"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PrefixExtractor {
    name: Cow<'static, str>,
    id: u64,
    rule: Rule,
}

#[derive(Clone)]
enum Rule {
    Fixed(usize),
    Capped(usize),
    Delimiter {
        byte: u8,
        count: usize,
    },
    #[cfg(target_has_atomic = "ptr")]
    Custom {
        of_key: Arc<Length>,
        of_scan: Arc<Length>,
    },
}

/// How long the prefix of these bytes is.
#[cfg(target_has_atomic = "ptr")]
type Length = dyn Fn(&[u8]) -> Option<usize> + Send + Sync;

impl PrefixExtractor {
    fn new(name: String, rule: Rule) -> Self {
        // 0 means "no extractor" in a filter's bytes.
        let id = checksum(name.as_bytes()).max(1);
        PrefixExtractor { name: name.into(), id, rule }
    }

    /// The first `bytes` bytes of a key; shorter keys have no prefix.
    pub fn fixed(bytes: usize) -> Self {
        PrefixExtractor::new(format!("fixed:{bytes}"), Rule::Fixed(bytes))
    }

    /// The first `bytes` bytes of a key, or the whole key if it is shorter. Every key has a prefix.
    pub fn capped(bytes: usize) -> Self {
        PrefixExtractor::new(format!("capped:{bytes}"), Rule::Capped(bytes))
    }

    /// A key up to and with the `count`-th `byte`; keys with fewer have no prefix.
    pub fn delimiter(byte: u8, count: usize) -> Self {
        let name = format!("delimiter:{byte:02x}:{count}");
        PrefixExtractor::new(name, Rule::Delimiter { byte, count })
    }

    /// A rule of the caller's. `of_key` gives the length of a key's prefix, or `None` if it has
    /// none. `of_scan` gives the length of the prefix that *all* keys have which start with the
    /// given bytes, or `None` if they do not share one.
    ///
    /// The two must agree: wherever `of_scan(start)` is `Some(n)`, every key that starts with
    /// `start` must have `of_key(key) == Some(n)`. Otherwise a filter says "absent" about a scan
    /// that would find keys. Where the length depends on nothing but the bytes that it takes, both
    /// are the same function. A length beyond the end means all of a key, and `None` for a scan.
    ///
    /// The name should tell the rule and its version: filters are matched by it.
    ///
    /// ```
    /// use blocked_bloom::PrefixExtractor;
    /// // The first byte says how long the tenant's name is.
    /// let length = |bytes: &[u8]| {
    ///     bytes.first().map(|&n| 1 + usize::from(n)).filter(|&n| n <= bytes.len())
    /// };
    /// let tenant = PrefixExtractor::custom("tenant-1", length, length);
    /// assert_eq!(tenant.name(), "custom:tenant-1");
    /// assert_eq!(tenant.prefix(b"\x03abcde"), Some(&b"\x03abc"[..]));
    /// assert_eq!(tenant.scan_prefix(b"\x03a"), None);
    /// ```
    #[cfg(target_has_atomic = "ptr")]
    pub fn custom(
        name: &str,
        of_key: impl Fn(&[u8]) -> Option<usize> + Send + Sync + 'static,
        of_scan: impl Fn(&[u8]) -> Option<usize> + Send + Sync + 'static,
    ) -> Self {
        let rule = Rule::Custom { of_key: Arc::new(of_key), of_scan: Arc::new(of_scan) };
        PrefixExtractor::new(format!("custom:{name}"), rule)
    }

    /// The name, which tells the rule.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The hash of the name that filters store: XXH3-64 with seed 0, never 0.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The prefix of a key, or `None` if the rule gives it none.
    pub fn prefix<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let length = match &self.rule {
            Rule::Fixed(bytes) if key.len() < *bytes => return None,
            Rule::Fixed(bytes) | Rule::Capped(bytes) => *bytes,
            Rule::Delimiter { byte, count } => delimited(key, *byte, *count)?,
            #[cfg(target_has_atomic = "ptr")]
            Rule::Custom { of_key, .. } => of_key(key)?,
        };
        Some(&key[..length.min(key.len())])
    }

    /// The prefix that every key has which starts with `start`, or `None` if they need not share
    /// one: such a scan cannot be answered by a filter.
    pub fn scan_prefix<'k>(&self, start: &'k [u8]) -> Option<&'k [u8]> {
        let length = match &self.rule {
            Rule::Fixed(bytes) | Rule::Capped(bytes) => *bytes,
            Rule::Delimiter { byte, count } => delimited(start, *byte, *count)?,
            #[cfg(target_has_atomic = "ptr")]
            Rule::Custom { of_scan, .. } => of_scan(start)?,
        };
        start.get(..length)
    }
}

/// The length up to and with the `count`-th `delimiter`.
fn delimited(bytes: &[u8], delimiter: u8, count: usize) -> Option<usize> {
    if count == 0 {
        return Some(0);
    }
    let places = bytes.iter().enumerate().filter(|&(_, &byte)| byte == delimiter);
    places.map(|(place, _)| place + 1).nth(count - 1)
}

/// Rules of the same name are taken to be the same.
impl PartialEq for PrefixExtractor {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for PrefixExtractor {}

impl fmt::Debug for PrefixExtractor {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "PrefixExtractor({})", self.name)
    }
}

impl Display for PrefixExtractor {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The name is not that of a built-in rule.
///
/// ```
/// use blocked_bloom::PrefixExtractor;
/// let error = "fixed:four".parse::<PrefixExtractor>().unwrap_err();
/// assert!(error.to_string().contains("fixed:four"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtractorNameError {
    /// What was given.
    pub name: String,
}

impl Display for ExtractorNameError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        write!(
            f,
            "no prefix rule \"{name}\": give fixed:BYTES, capped:BYTES, or delimiter:HEX:COUNT as \
             in delimiter:2f:1 for the first \"/\""
        )
    }
}

impl core::error::Error for ExtractorNameError {}

/// The rule of a name, except custom ones: what a configuration file or a command line holds.
impl core::str::FromStr for PrefixExtractor {
    type Err = ExtractorNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let parsed = match name.split_once(':') {
            Some(("fixed", bytes)) => bytes.parse().ok().map(Self::fixed),
            Some(("capped", bytes)) => bytes.parse().ok().map(Self::capped),
            Some(("delimiter", rest)) => rest.split_once(':').and_then(|(byte, count)| {
                Some(Self::delimiter(u8::from_str_radix(byte, 16).ok()?, count.parse().ok()?))
            }),
            _ => None,
        };
        // Other spellings of a rule, "fixed:04", would look like other rules.
        match parsed {
            Some(rule) if rule.name() == name => Ok(rule),
            _ => Err(ExtractorNameError { name: name.into() }),
        }
    }
}

/// What a filter holds, and so which lookups it can answer: keys, prefixes of keys, or both.
///
/// ```
/// use blocked_bloom::{FilterContents, FilterOptions, PrefixExtractor, Sizing};
/// let tenant = PrefixExtractor::fixed(4);
/// let options = FilterOptions::new(Sizing::BitsPerKey(10.0)).with_only_prefixes(tenant.clone());
/// assert_eq!(options.contents(), FilterContents::Prefixes { extractor: tenant.id() });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FilterContents {
    /// Keys.
    WholeKeys,
    /// Prefixes of keys; looking up a key is answered "maybe".
    Prefixes {
        /// [`PrefixExtractor::id`] of the rule.
        extractor: u64,
    },
    /// Keys and their prefixes.
    WholeKeysAndPrefixes {
        /// [`PrefixExtractor::id`] of the rule.
        extractor: u64,
    },
}

pub(crate) const FLAG_WHOLE_KEYS: u8 = 1;
pub(crate) const FLAG_PREFIXES: u8 = 2;

impl FilterContents {
    /// The flags that containers store: 1 for whole keys, 2 for prefixes; no extractor.
    #[inline]
    pub const fn flags(self) -> u8 {
        match self {
            FilterContents::WholeKeys => FLAG_WHOLE_KEYS,
            FilterContents::Prefixes { .. } => FLAG_PREFIXES,
            FilterContents::WholeKeysAndPrefixes { .. } => FLAG_WHOLE_KEYS | FLAG_PREFIXES,
        }
    }

    /// What a filter of these flags holds; `None` for flags that there are not.
    pub const fn from_flags(flags: u8, extractor: u64) -> Option<Self> {
        const ALL_FLAGS: u8 = FLAG_WHOLE_KEYS | FLAG_PREFIXES;
        match flags {
            FLAG_WHOLE_KEYS => Some(FilterContents::WholeKeys),
            FLAG_PREFIXES => Some(FilterContents::Prefixes { extractor }),
            ALL_FLAGS => Some(FilterContents::WholeKeysAndPrefixes { extractor }),
            _ => None,
        }
    }

    /// Whether the filter holds whole keys.
    #[inline]
    pub const fn whole_keys(self) -> bool {
        !matches!(self, FilterContents::Prefixes { .. })
    }

    /// The rule of the prefixes that the filter holds, as [`PrefixExtractor::id`].
    #[inline]
    pub const fn extractor(self) -> Option<u64> {
        match self {
            FilterContents::WholeKeys => None,
            FilterContents::Prefixes { extractor }
            | FilterContents::WholeKeysAndPrefixes { extractor } => Some(extractor),
        }
    }
}

impl Display for FilterContents {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            FilterContents::WholeKeys => f.write_str("whole keys"),
            FilterContents::Prefixes { extractor } => {
                write!(f, "prefixes by extractor {extractor:016x}")
            }
            FilterContents::WholeKeysAndPrefixes { extractor } => {
                write!(f, "whole keys and prefixes by extractor {extractor:016x}")
            }
        }
    }
}

/// By name. A caller's rule is written, not read: its functions are not in its name.
#[cfg(feature = "serde")]
impl serde::Serialize for PrefixExtractor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for PrefixExtractor {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = <Cow<'_, str> as serde::Deserialize>::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

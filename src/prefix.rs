//! Prefixes of keys, with which a filter can rule out scans.
//!
//! A filter stores the hash of the prefix rule's name, since a prefix by another rule would be
//! "absent". Scans whose keys have no common prefix by the rule cannot be ruled out.

use alloc::format;
use alloc::string::String;
#[cfg(target_has_atomic = "ptr")]
use alloc::sync::Arc;
use core::fmt::{self, Display, Formatter};

use crate::checksum::checksum;

mod range;

/// A rule that returns the prefix of a key, for filters that can rule out scans: may any key start
/// with these bytes?
///
/// The rule has a name, and filters store the hash of the name. Change the name if the rule
/// changes.
///
/// | rule | name | prefix of a key | keys without a prefix |
/// |---|---|---|---|
/// | [`fixed(4)`](Self::fixed) | `fixed:4` | its first four bytes | keys shorter than four bytes |
/// | [`capped(4)`](Self::capped) | `capped:4` | its first four bytes, or the whole key if it is shorter | none |
/// | [`delimiter(b'/', 2)`](Self::delimiter) | `delimiter:2f:2` | the bytes up to and including the second `/` | keys with fewer than two |
/// | [`custom("tenant", …)`](Self::custom) | `custom:tenant` | the result of a function | keys for which it returns `None` |
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
/// // Every key of this scan starts with "usr/lib/", which is looked up.
/// assert!(filter.contains_prefix(&directory, "usr/lib/libz"));
/// // The keys of this scan may have different prefixes: "maybe".
/// assert!(filter.contains_prefix(&directory, "opt"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PrefixExtractor {
    name: String,
    id: u64,
    rule: Rule,
    /// Whether every key of the tables has a prefix.
    keys_have_prefix: bool,
}

#[derive(Clone)]
enum Rule {
    Fixed(usize),
    Capped(usize),
    /// The byte, and how many.
    Delimiter(u8, usize),
    /// The lengths for keys and for scans.
    #[cfg(target_has_atomic = "ptr")]
    Custom(Arc<Length>, Arc<Length>),
}

/// Returns the length of a prefix.
#[cfg(target_has_atomic = "ptr")]
type Length = dyn Fn(&[u8]) -> Option<usize> + Send + Sync;

impl PrefixExtractor {
    fn new(name: String, rule: Rule) -> Self {
        // In a stored filter, 0 means "no extractor".
        let id = checksum(name.as_bytes()).max(1);
        PrefixExtractor { name, id, rule, keys_have_prefix: false }
    }

    /// Creates a rule whose prefix is the first `bytes` bytes. Shorter keys have no prefix.
    pub fn fixed(bytes: usize) -> Self {
        PrefixExtractor::new(format!("fixed:{bytes}"), Rule::Fixed(bytes))
    }

    /// Creates a rule whose prefix is the first `bytes` bytes, or the whole key if it is shorter.
    pub fn capped(bytes: usize) -> Self {
        PrefixExtractor::new(format!("capped:{bytes}"), Rule::Capped(bytes))
    }

    /// Creates a rule whose prefix ends with the `count`-th `byte`. Keys with fewer have no prefix.
    pub fn delimiter(byte: u8, count: usize) -> Self {
        let name = format!("delimiter:{byte:02x}:{count}");
        PrefixExtractor::new(name, Rule::Delimiter(byte, count))
    }

    /// Creates a custom rule. `key_length` returns the length of a key's prefix, or `None` if the
    /// key has no prefix. `scan_length` returns the length of the common prefix of *all* keys that
    /// start with the given bytes, or `None` if they may have different prefixes.
    ///
    /// The functions must agree: if `scan_length(start)` is `Some(n)`, then `key_length(key)` must
    /// be `Some(n)` for every key that starts with `start`. Otherwise, a filter answers "absent"
    /// for a scan that would find keys. Use one function for both if the length depends only on
    /// bytes inside the prefix. A length beyond the end means the whole key, or `None` for a scan.
    ///
    /// The name should describe the rule and its version, since filters are matched by name.
    ///
    /// ```
    /// use blocked_bloom::PrefixExtractor;
    /// // The first byte is the length of the tenant's name.
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
        key_length: impl Fn(&[u8]) -> Option<usize> + Send + Sync + 'static,
        scan_length: impl Fn(&[u8]) -> Option<usize> + Send + Sync + 'static,
    ) -> Self {
        let rule = Rule::Custom(Arc::new(key_length), Arc::new(scan_length));
        PrefixExtractor::new(format!("custom:{name}"), rule)
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the hash of the name, which filters store: XXH3-64 with seed 0, but never 0.
    #[inline]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the prefix of a key, or `None` if it has none.
    pub fn prefix<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let length = match &self.rule {
            Rule::Fixed(bytes) if key.len() < *bytes => return None,
            Rule::Fixed(bytes) | Rule::Capped(bytes) => *bytes,
            Rule::Delimiter(byte, count) => delimited(key, *byte, *count)?,
            #[cfg(target_has_atomic = "ptr")]
            Rule::Custom(key_length, _) => key_length(key)?,
        };
        Some(&key[..length.min(key.len())])
    }

    /// Returns the common prefix of all keys that start with `start`, or `None` if they may have
    /// different prefixes. A filter cannot rule out such a scan.
    #[inline]
    pub fn scan_prefix<'k>(&self, start: &'k [u8]) -> Option<&'k [u8]> {
        let length = match &self.rule {
            Rule::Fixed(bytes) | Rule::Capped(bytes) => *bytes,
            Rule::Delimiter(byte, count) => delimited(start, *byte, *count)?,
            #[cfg(target_has_atomic = "ptr")]
            Rule::Custom(_, scan_length) => scan_length(start)?,
        };
        start.get(..length)
    }
}

/// Returns the length up to and including the `count`-th `delimiter`.
fn delimited(bytes: &[u8], delimiter: u8, count: usize) -> Option<usize> {
    let ends = (1..).zip(bytes).filter(|&(_, &byte)| byte == delimiter).map(|(end, _)| end);
    core::iter::once(0).chain(ends).nth(count)
}

/// Compares the names.
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

/// Error of parsing a name that does not denote a built-in rule.
///
/// ```
/// use blocked_bloom::PrefixExtractor;
/// let error = "fixed:four".parse::<PrefixExtractor>().unwrap_err();
/// assert!(error.to_string().contains("fixed:four"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtractorNameError {
    /// The rejected name.
    pub name: String,
}

impl_error!(ExtractorNameError;
    Self { name } => (
        "unknown prefix rule \"{name}\": use fixed:BYTES, capped:BYTES or delimiter:HEX:COUNT, \
         such as delimiter:2f:1 for the first \"/\""
    ),
);

/// Parses the name of a built-in rule, for configuration files and command lines.
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
        // Other spellings, such as "fixed:04", would have another id.
        match parsed {
            Some(rule) if rule.name() == name => Ok(rule),
            _ => Err(ExtractorNameError { name: name.into() }),
        }
    }
}

/// The contents of a filter, which determine the lookups that it can answer: keys, prefixes of
/// keys, or both.
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
    /// Prefixes of keys. Lookups of keys return "maybe".
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
    /// Returns the flags that containers store: 1 for whole keys, 2 for prefixes.
    #[inline]
    pub const fn flags(self) -> u8 {
        match self {
            FilterContents::WholeKeys => FLAG_WHOLE_KEYS,
            FilterContents::Prefixes { .. } => FLAG_PREFIXES,
            FilterContents::WholeKeysAndPrefixes { .. } => FLAG_WHOLE_KEYS | FLAG_PREFIXES,
        }
    }

    /// Returns the contents for these flags, or `None` for invalid flags.
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

    /// Returns the [`PrefixExtractor::id`] of the rule, if the filter holds prefixes.
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
        let contents = match self {
            FilterContents::WholeKeys => return f.write_str("whole keys"),
            FilterContents::Prefixes { .. } => "prefixes",
            FilterContents::WholeKeysAndPrefixes { .. } => "whole keys and prefixes",
        };
        write!(f, "{contents} by extractor {:016x}", self.extractor().unwrap_or_default())
    }
}

/// Serialises the name. A custom rule cannot be deserialised, since its functions are not in its
/// name.
#[cfg(feature = "serde")]
impl serde::Serialize for PrefixExtractor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for PrefixExtractor {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = <String as serde::Deserialize>::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

//! Identities of files.

/// Nanoseconds.
const SECOND: i64 = 1_000_000_000;

fn is_strong(etag: &str) -> bool {
    !etag.is_empty() && !etag.starts_with("W/")
}

/// A version of a file, as a listing reports it: name, length, and etag, version or time.
///
/// Names are compared byte for byte: give those of the engine's listing.
///
/// ```
/// use blocked_bloom_file_index::FileIdentity;
/// let file = FileIdentity::new("day=1/a.parquet", 12_345).with_etag("\"5d41402a\"");
/// assert_eq!((file.name(), file.length()), ("day=1/a.parquet", 12_345));
/// assert_eq!((file.etag(), file.version()), (Some("\"5d41402a\""), None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity<'a> {
    name: &'a str,
    length: u64,
    etag: Option<&'a str>,
    version: Option<&'a str>,
    modified: Option<i64>,
}

impl<'a> FileIdentity<'a> {
    /// A file with this name and number of bytes.
    pub fn new(name: &'a str, length: u64) -> Self {
        FileIdentity { name, length, etag: None, version: None, modified: None }
    }

    /// Sets the etag that the store reports.
    pub fn with_etag(self, etag: &'a str) -> Self {
        FileIdentity { etag: Some(etag), ..self }
    }

    /// Sets the version, for stores that keep several.
    pub fn with_version(self, version: &'a str) -> Self {
        FileIdentity { version: Some(version), ..self }
    }

    /// Sets the time of its last change, in nanoseconds since 1970 (UTC).
    pub fn with_modified(self, nanoseconds: i64) -> Self {
        FileIdentity { modified: Some(nanoseconds), ..self }
    }

    /// The name.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The etag, if it is known.
    pub fn etag(&self) -> Option<&'a str> {
        self.etag
    }

    /// The version, if it is known.
    pub fn version(&self) -> Option<&'a str> {
        self.version
    }

    /// The time of the last change, if it is known.
    pub fn modified(&self) -> Option<i64> {
        self.modified
    }

    /// Returns the time, in nanoseconds since 1970, from which each change of the file changes its
    /// version, etag or time too. `None` if that always holds: a version or an etag is made of the
    /// contents, or no time is known.
    ///
    /// Two changes within the resolution of a store's times have the same time. So does an etag
    /// that is made of it, as that of local files. Builders read a file after this time, or store
    /// its identity without etag and time, so that it stays unknown.
    ///
    /// ```
    /// use blocked_bloom_file_index::FileIdentity;
    /// let second = 1_000_000_000;
    /// let file = FileIdentity::new("a.parquet", 10).with_modified(1_700_000_000 * second);
    /// assert_eq!(file.settle_time(), Some(1_700_000_003 * second)); // whole seconds
    /// assert_eq!(file.with_etag("\"5d41402a\"").settle_time(), None);
    /// ```
    pub fn settle_time(&self) -> Option<i64> {
        let modified = self.modified?;
        if self.version.is_some() || self.has_content_etag() {
            return None;
        }
        // FAT has even seconds, object stores whole ones; others the ticks of a kernel.
        let is_whole = modified % SECOND == 0;
        Some(modified.saturating_add(if is_whole { 3 * SECOND } else { SECOND / 20 }))
    }

    /// Whether the etag is strong and made of the contents. `object_store` makes that of a local
    /// file of inode, microseconds and length, nginx of seconds and length: numbers in hex.
    fn has_content_etag(&self) -> bool {
        let Some(etag) = self.etag.filter(|etag| is_strong(etag)) else { return false };
        let numbers = || etag.trim_matches('"').split('-').map(|n| u64::from_str_radix(n, 16));
        let seconds = (self.modified.unwrap_or_default().max(0) / SECOND) as u64;
        let units = [1, 1_000, 1_000_000, SECOND as u64];
        let has_time = numbers().flatten().any(|n| units.iter().any(|unit| n / unit == seconds));
        let has_length = numbers().flatten().any(|n| n == self.length);
        !has_time || !has_length && etag.contains('-')
    }

    /// Whether a time in a listing is that of this file. Some requests report whole seconds, others
    /// of the same store fractions. A file with whole seconds was read after they had settled.
    fn has_time(&self, listed: i64) -> Option<bool> {
        let modified = self.modified?;
        let is_in_second =
            || modified % SECOND == 0 && listed.div_euclid(SECOND) == modified / SECOND;
        Some(modified == listed || is_in_second())
    }

    /// Whether a listed file of this name is the one that was indexed.
    pub(crate) fn check(
        &self,
        listed: &FileIdentity<'_>,
        rule: SameFile,
    ) -> Result<(), UnknownReason> {
        if self.length != listed.length {
            return Err(UnknownReason::OtherLength);
        }
        if rule == SameFile::Name {
            return Ok(());
        }
        // Those that both sides know.
        let version = self.version.zip(listed.version).map(|(a, b)| a == b);
        // Equal weak etags do not promise equal bytes; different ones are those of other bytes.
        let etag = self.etag.zip(listed.etag);
        let etag = etag.filter(|&(a, b)| a != b || is_strong(a)).map(|(a, b)| a == b);
        let decides = etag == Some(true) && self.has_content_etag();
        let modified = listed.modified.filter(|_| !decides).and_then(|time| self.has_time(time));
        match (version, etag, modified) {
            (Some(false), ..) | (_, Some(false), _) => Err(UnknownReason::OtherTag),
            (.., Some(false)) => Err(UnknownReason::OtherTime),
            (None, None, None) => Err(UnknownReason::NoTag),
            (None, None, Some(_)) if rule == SameFile::Tag => Err(UnknownReason::NoTag),
            _ => Ok(()),
        }
    }
}

/// The rule by which a listed file is the indexed one. Name and length must always be equal.
///
/// ```
/// use blocked_bloom_file_index::SameFile;
/// assert_eq!(SameFile::default(), SameFile::Tag);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SameFile {
    /// An equal version, or an equal etag that is not weak (`W/`), known on both sides. Of version,
    /// etag and time, none that both sides know may differ, with two exceptions. An equal etag that
    /// is made of the contents decides alone. A time stored in whole seconds equals each time
    /// within its second. An etag that is made of length and time, as that of files on a local
    /// disk, sees no more than these.
    #[default]
    Tag,
    /// An equal time of the last change suffices too. This does not see a file that was overwritten
    /// in place by one of the same length, with its time put back.
    LengthAndTime,
    /// Only name and length: for table formats whose files never change.
    Name,
}

/// Why the index does not know a file.
///
/// ```
/// use blocked_bloom_file_index::UnknownReason;
/// assert_eq!(UnknownReason::OtherTag.to_string(), "its etag or version is not the indexed one");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnknownReason {
    /// No file of this name was indexed.
    NotIndexed,
    /// It has another length than when it was indexed.
    OtherLength,
    /// It has another etag or version.
    OtherTag,
    /// It has another time of its last change.
    OtherTime,
    /// The listing or the index lacks the etag, version or time that [`SameFile`] requires.
    NoTag,
    /// The candidates are those of another index.
    OtherIndex,
}

impl core::fmt::Display for UnknownReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            UnknownReason::NotIndexed => "it is not in the index",
            UnknownReason::OtherLength => "its length is not the indexed one",
            UnknownReason::OtherTag => "its etag or version is not the indexed one",
            UnknownReason::OtherTime => "its modification time is not the indexed one",
            UnknownReason::NoTag => "its etag, version or time is not known",
            UnknownReason::OtherIndex => "the candidates are those of another index",
        })
    }
}

impl core::error::Error for UnknownReason {}

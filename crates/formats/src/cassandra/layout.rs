//! How a `Filter.db` is to be read: nothing in its bytes tells, only the version in its file name.
//! A version that is not known is an error, never a guess.

use alloc::string::String;

use super::error::CassandraError;

/// The order of a file's bits and of the hash's halves.
///
/// | layout | versions in file names | Cassandra | each 8 bytes | first probe, step |
/// |---|---|---|---|---|
/// | [`UpTo2`](Self::UpTo2) | `ic`, `ja` to `lb` | 1.2.5 to 2.2 | reversed | `h1`, `h2` |
/// | [`Since3`](Self::Since3) | `ma` to `me` | 3.0 to 3.11 | reversed | `h2`, `h1` |
/// | [`Since4`](Self::Since4) | `na` to `oa`, and `da` of the `bti` format | 4.0 onward | in order | `h2`, `h1` |
///
/// Read in the wrong layout, a filter answers "absent" for nearly every key that is there, and no
/// check can detect it: take the layout from the file name, and try [`diagnose`](super::diagnose)
/// with known keys where names are in doubt.
///
/// ```
/// use blocked_bloom_formats::cassandra::Layout;
/// assert_eq!(Layout::from_version("me")?, Layout::Since3);
/// assert_eq!(Layout::from_file_name("nb-1-big-Filter.db")?, Layout::Since4);
/// # Ok::<(), blocked_bloom_formats::cassandra::CassandraError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// Cassandra 1.2.5 to 2.2: `ic`, `ja`, `jb`, `ka`, `la`, `lb`.
    UpTo2,
    /// Cassandra 3.0 to 3.11: `ma` to `me`.
    Since3,
    /// Cassandra 4.0 onward: `na`, `nb`, `nc`, `oa`, and `da` of the `bti` format.
    Since4,
}

impl Layout {
    /// Every layout, oldest first.
    pub const ALL: [Layout; 3] = [Layout::UpTo2, Layout::Since3, Layout::Since4];

    /// The layout of an SSTable version such as `nb`.
    ///
    /// The first letter is the major version, which is what the layout depends on; the second may
    /// be any letter, so that a minor version unknown to this crate is read like its siblings. Of
    /// major version `i`, `ic` is the first that is known.
    ///
    /// # Errors
    ///
    /// [`CassandraError::Version`] for anything else: older than `ic`, a major version unknown to
    /// this crate, other text.
    pub fn from_version(version: &str) -> Result<Self, CassandraError> {
        match version.as_bytes() {
            [b'i', b'c'..=b'z'] | [b'j'..=b'l', b'a'..=b'z'] => Ok(Layout::UpTo2),
            [b'm', b'a'..=b'z'] => Ok(Layout::Since3),
            [b'n' | b'o' | b'd', b'a'..=b'z'] => Ok(Layout::Since4),
            _ => Err(CassandraError::Version { found: String::from(version) }),
        }
    }

    /// The layout of a filter from its file name, with or without a path (separated by `/` or `\`).
    ///
    /// Two forms are known: `nb-1-big-Filter.db` (the format is `big` or `bti`, the identifier
    /// anything) and, up to Cassandra 2.1, `Keyspace-table-jb-1-Filter.db`. Words before them, such
    /// as `tmp-`, are ignored.
    ///
    /// # Errors
    ///
    /// [`CassandraError::FileName`] if the name has neither form; [`CassandraError::Version`] if
    /// its version is not known, or not of the format named.
    ///
    /// ```
    /// use blocked_bloom_formats::cassandra::Layout;
    /// let path = "/var/lib/cassandra/data/ks/t-1f/da-1-bti-Filter.db";
    /// assert_eq!(Layout::from_file_name(path)?, Layout::Since4);
    /// assert_eq!(Layout::from_file_name("Keyspace1-Standard1-jb-0-Filter.db")?, Layout::UpTo2);
    /// assert!(Layout::from_file_name("nb-1-big-Data.db").is_err());
    /// # Ok::<(), blocked_bloom_formats::cassandra::CassandraError>(())
    /// ```
    pub fn from_file_name(path: &str) -> Result<Self, CassandraError> {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let mut words = name.rsplit('-');
        let mut word = || words.next().unwrap_or_default();
        let (component, format, id) = (word(), word(), word());
        let version = match format {
            "big" | "bti" if !id.is_empty() => word(),
            // The version is third from the end, after the keyspace and the table.
            _ if is_number(format) && !word().is_empty() && !word().is_empty() => id,
            _ => "",
        };
        if component != "Filter.db" || version.is_empty() {
            return Err(CassandraError::FileName { found: String::from(name) });
        }
        // `d` was a letter of the older format too, long before the first version that is known.
        if (format == "bti") != version.starts_with('d') {
            return Err(CassandraError::Version { found: String::from(version) });
        }
        Self::from_version(version)
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl core::fmt::Display for Layout {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Layout::UpTo2 => "Cassandra up to 2.2",
            Layout::Since3 => "Cassandra 3",
            Layout::Since4 => "Cassandra 4 and later",
        })
    }
}

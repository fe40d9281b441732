//! The layout of a `Filter.db`, which only the version in its file name determines. An unknown
//! version is an error.

use alloc::string::String;

use super::error::CassandraError;

/// The order of a file's bits and of the halves of the hash.
///
/// | layout | versions in file names | Cassandra | each 8 bytes | first probe, step |
/// |---|---|---|---|---|
/// | [`Cassandra2`](Self::Cassandra2) | `ic`, `ja` to `lb` | 1.2.5 to 2.2 | reversed | `h1`, `h2` |
/// | [`Cassandra3`](Self::Cassandra3) | `ma` to `me` | 3.0 to 3.11 | reversed | `h2`, `h1` |
/// | [`Cassandra4`](Self::Cassandra4) | `na` to `oa`, and `da` of the `bti` format | 4.0 onward | in order | `h2`, `h1` |
///
/// With the wrong layout, a filter answers "absent" for nearly every present key, and no check can
/// detect it. Take the layout from the file name, and use [`diagnose`](super::diagnose) with known
/// keys if names are doubtful.
///
/// ```
/// use blocked_bloom_formats::cassandra::Layout;
/// assert_eq!(Layout::from_version("me")?, Layout::Cassandra3);
/// assert_eq!(Layout::from_file_name("nb-1-big-Filter.db")?, Layout::Cassandra4);
/// # Ok::<(), blocked_bloom_formats::cassandra::CassandraError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// Cassandra 1.2.5 to 2.2: `ic`, `ja`, `jb`, `ka`, `la`, `lb`.
    Cassandra2,
    /// Cassandra 3.0 to 3.11: `ma` to `me`.
    Cassandra3,
    /// Cassandra 4.0 onward: `na`, `nb`, `nc`, `oa`, and `da` of the `bti` format.
    Cassandra4,
}

impl Layout {
    /// All layouts, oldest first.
    pub const ALL: [Layout; 3] = [Layout::Cassandra2, Layout::Cassandra3, Layout::Cassandra4];

    /// Returns the layout of an SSTable version such as `nb`.
    ///
    /// The first letter is the major version, which determines the layout. The second may be any
    /// letter, so that unknown minor versions are read like the known ones. For major version `i`,
    /// `ic` is the first known version.
    ///
    /// # Errors
    ///
    /// [`CassandraError::Version`] for versions before `ic`, unknown major versions, and other
    /// text.
    pub fn from_version(version: &str) -> Result<Self, CassandraError> {
        match version.as_bytes() {
            [b'i', b'c'..=b'z'] | [b'j'..=b'l', b'a'..=b'z'] => Ok(Layout::Cassandra2),
            [b'm', b'a'..=b'z'] => Ok(Layout::Cassandra3),
            [b'n' | b'o' | b'd', b'a'..=b'z'] => Ok(Layout::Cassandra4),
            _ => Err(CassandraError::Version { found: String::from(version) }),
        }
    }

    /// Returns the layout of a filter from its file name, with or without a path (separated by `/`
    /// or `\`).
    ///
    /// Two forms are known: `nb-1-big-Filter.db` (the format is `big` or `bti`, the identifier
    /// is arbitrary) and, up to Cassandra 2.1, `Keyspace-table-jb-1-Filter.db`. Words before them,
    /// such as `tmp-`, are ignored.
    ///
    /// # Errors
    ///
    /// [`CassandraError::FileName`] for other names, and [`CassandraError::Version`] if the version
    /// is unknown or does not belong to the format.
    ///
    /// ```
    /// use blocked_bloom_formats::cassandra::Layout;
    /// let path = "/var/lib/cassandra/data/ks/t-1f/da-1-bti-Filter.db";
    /// assert_eq!(Layout::from_file_name(path)?, Layout::Cassandra4);
    /// let layout = Layout::from_file_name("Keyspace1-Standard1-jb-0-Filter.db")?;
    /// assert_eq!(layout, Layout::Cassandra2);
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
        // `d` was also a letter of the older format, long before the first known version.
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
            Layout::Cassandra2 => "Cassandra up to 2.2",
            Layout::Cassandra3 => "Cassandra 3",
            Layout::Cassandra4 => "Cassandra 4 and later",
        })
    }
}

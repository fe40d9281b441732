//! Detects files that are not lines of UTF-8 text by their first bytes: compressed files, archives,
//! tables, and text in UTF-16 or UTF-32. Their bytes must not be read as keys.

/// The content of a file that is not UTF-8 text.
///
/// ```
/// use blocked_bloom_inspect::Content;
/// let gzip = Content::from_head(b"\x1f\x8b\x08\0").expect("gzip");
/// assert_eq!((gzip.description(), gzip.command()), ("compressed with gzip", Some("zcat")));
/// assert_eq!(Content::from_head(b"apple\n"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    description: &'static str,
    command: Option<&'static str>,
}

/// Magic numbers, descriptions that follow "is", and commands that write text to standard output.
const MAGICS: &[(&[u8], &str, &str)] = &[
    (b"\x89BBFIDX\n", "an index of files of blocked-bloom", ""),
    (b"\x1f\x8b\x08", "compressed with gzip", "zcat"),
    (b"\x1f\x9d", "compressed with compress", "zcat"),
    (b"\xfd7zXZ\0", "compressed with xz", "xzcat"),
    (b"BZh", "compressed with bzip2", "bzcat"),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard", "zstdcat"),
    (b"\x04\x22\x4d\x18", "compressed with LZ4", "lz4cat"),
    (b"\x02\x21\x4c\x18", "compressed with LZ4", "lz4cat"),
    (b"\x5d\0\0", "compressed with LZMA", "xzcat --format=lzma"),
    (b"LZIP\x01", "compressed with lzip", "lzip -dc"),
    (b"\xff\x06\0\0sNaPpY", "compressed with Snappy", "snzip -dc"),
    (b"PK\x03\x04", "a ZIP archive", "unzip -p"),
    (b"PK\x05\x06", "an empty ZIP archive", ""),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "7z x -so"),
    (b"Rar!\x1a\x07", "a RAR archive", "unrar p -inul"),
    (b"PAR1", "a Parquet file", ""),
    (b"PARE", "an encrypted Parquet file", ""),
    (b"ARROW1\0", "an Arrow file", ""),
    (b"ORC", "an ORC file", ""),
    (b"Obj\x01", "an Avro file", ""),
    (b"SQLite format 3\0", "an SQLite database", ""),
    (b"REDIS0", "a database of Redis (RDB)", ""),
    (b"\x89PNG\r\n", "a PNG picture", ""),
    (b"\xff\xd8\xff", "a JPEG picture", ""),
    (b"GIF8", "a GIF picture", ""),
    (b"%PDF-", "a PDF document", "pdftotext"),
    (b"\x7fELF", "a program (ELF)", ""),
    (b"\xff\xfe\0\0", "UTF-32 text", "iconv -f UTF-32 -t UTF-8"),
    (b"\0\0\xfe\xff", "UTF-32 text", "iconv -f UTF-32 -t UTF-8"),
    (b"\xff\xfe", "UTF-16 text", "iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "iconv -f UTF-16 -t UTF-8"),
];

/// Magic numbers of letters and digits, which may also begin a key, and the bytes that follow them
/// in a file.
const SECOND_BYTES: &[(&[u8], &[&[u8]])] = &[
    (b"BZh", &[b"1AY&SY", b"\x17\x72\x45\x38\x50\x90"]),
    (b"PAR1", &[b"\x15"]),
    (b"PARE", &[b"\x15", b"\x18", b"\x1c", b"\x2c"]),
    (b"ORC", &[b"\x08", b"\x12", b"\x1a"]),
    (b"REDIS0", &[b"0"]),
    (b"GIF8", &[b"7a", b"9a"]),
];

/// Number of bytes in which NULs are counted.
const COUNTED: usize = 4096;

impl Content {
    /// Detects the content from the first bytes of a file. Returns `None` for lines of UTF-8 and
    /// unknown bytes. UTF-16 and UTF-32 without a byte order mark are recognised by their share of
    /// NULs.
    ///
    /// ```
    /// use blocked_bloom_inspect::Content;
    /// let wide = Content::from_head(b"a\0p\0p\0l\0e\0\n\0").expect("UTF-16");
    /// assert_eq!(wide.command(), Some("iconv -f UTF-16LE -t UTF-8"));
    /// assert_eq!(Content::from_head(b"PAR1 is a key\n"), None);
    /// ```
    pub fn from_head(head: &[u8]) -> Option<Self> {
        Self::from_magic(head).or_else(|| Self::from_nuls(&head[..head.len().min(COUNTED)]))
    }

    /// Detects the content by its magic number alone, for bytes that may well contain NULs.
    ///
    /// ```
    /// use blocked_bloom_inspect::Content;
    /// let zip = Content::from_magic(b"PK\x03\x04").expect("a ZIP archive");
    /// assert_eq!(zip.command(), Some("unzip -p"));
    /// assert_eq!(Content::from_magic(b"a\0b\0"), None);
    /// ```
    pub fn from_magic(head: &[u8]) -> Option<Self> {
        let is_content = |&&(magic, ..): &&(&[u8], &str, &str)| {
            let Some(rest) = head.strip_prefix(magic) else { return false };
            let second = SECOND_BYTES.iter().find(|second| second.0 == magic);
            second.is_none_or(|(_, all)| {
                let rest = if magic == b"BZh" { rest.get(1..).unwrap_or_default() } else { rest };
                all.iter().any(|second| rest.starts_with(second))
            })
        };
        let &(_, description, command) = MAGICS.iter().find(is_content)?;
        Some(Content { description, command: Some(command).filter(|command| !command.is_empty()) })
    }

    fn from_nuls(head: &[u8]) -> Option<Self> {
        let share = |first: usize| {
            let all = head.iter().skip(first).step_by(2);
            let (nuls, all) = (all.clone().filter(|&&byte| byte == 0).count(), all.count());
            nuls as f64 / all.max(1) as f64
        };
        // ASCII text has NULs in one byte of two (UTF-16) or three of four (UTF-32); other text has
        // fewer.
        let (description, command) = match (share(0), share(1)) {
            (even, odd) if odd > 0.5 && even < 0.25 => {
                ("UTF-16 text", "iconv -f UTF-16LE -t UTF-8")
            }
            (even, odd) if even > 0.5 && odd < 0.25 => {
                ("UTF-16 text", "iconv -f UTF-16BE -t UTF-8")
            }
            (even, odd) if odd > 0.75 && even < 0.75 => {
                ("UTF-32 text", "iconv -f UTF-32LE -t UTF-8")
            }
            (even, odd) if even > 0.75 && odd < 0.75 => {
                ("UTF-32 text", "iconv -f UTF-32BE -t UTF-8")
            }
            _ => return None,
        };
        Some(Content { description, command: Some(command) })
    }

    /// Describes the file in words that follow "is", such as `compressed with gzip`.
    pub fn description(self) -> &'static str {
        self.description
    }

    /// Returns the command that writes the file's text to standard output, if there is one.
    pub fn command(self) -> Option<&'static str> {
        self.command
    }
}

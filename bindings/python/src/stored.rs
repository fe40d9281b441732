//! Filters in files.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use blocked_bloom::parts::{HEADER_BYTES, HeaderError};
use blocked_bloom::{BloomFilter, FormatError};
use blocked_bloom_inspect::{Format, recognise};
use blocked_bloom_scalable::ScalableBloomFilter;
use memmap2::Advice;
use xxhash_rust::xxh3::Xxh3;

use crate::bytes::{Bytes, SharedBytes};
use crate::error::Error;
use crate::store::Store;

/// Reads and verifies a filter for a known number of keys.
pub(crate) fn load(path: &Path) -> Result<Store, Error> {
    Store::open(Bytes::read(path, |head, len| {
        match BloomFilter::from_bytes_trusted_any_hash(head) {
            Err(FormatError::Header(HeaderError::Length { expected, .. })) if expected == len => {
                Ok(())
            }
            Err(FormatError::Header(HeaderError::Length { expected, .. })) => {
                Err(FormatError::Header(HeaderError::Length { found: len, expected }).into())
            }
            Err(error) => Err(error.into()),
            Ok(_) => Ok(()),
        }
    })?)
}

/// Reads and verifies a growing filter.
pub(crate) fn load_growing(path: &Path) -> Result<Store, Error> {
    Store::open_growing(Bytes::read(path, |head, _| match recognise("", head, head, None) {
        Ok(format) if format == Format::GROWING => Ok(()),
        // Parsing the header fails with the right error.
        _ => Ok(ScalableBloomFilter::from_bytes_any_hash(head).map(drop)?),
    })?)
}

/// Maps a filter for a known number of keys. Verification reads the file piece by piece, so the
/// process does not grow.
pub(crate) fn map(path: &Path, verify: bool) -> Result<Store, Error> {
    let (bytes, mut file) = Bytes::map(path)?;
    if let Bytes::Mapped(map) = &bytes {
        // Lookups read single pages at random, so read-ahead would be wasted.
        let _ = map.advise(Advice::Random);
    }
    let filter = BloomFilter::from_bytes_trusted_any_hash(bytes)?;
    if verify {
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header)?;
        let (mut sum, mut piece) = (Xxh3::new(), vec![0; 1 << 20]);
        loop {
            match file.read(&mut piece)? {
                0 => break,
                bytes => sum.update(&piece[..bytes]),
            }
        }
        // docs/format.md specifies the position of the blocks' checksum.
        let [stored, computed] =
            [u64::from_le_bytes(std::array::from_fn(|i| header[48 + i])), sum.digest()];
        if stored != computed {
            return Err(Error::Format(format!(
                "the checksum of the blocks is {computed:#018x}, expected {stored:#018x}"
            )));
        }
    }
    Ok(Store::Opened { filter, mapped: true })
}

/// Maps a growing filter. Verification reads the mapping and then gives its pages back.
pub(crate) fn map_growing(path: &Path, verify: bool) -> Result<Store, Error> {
    let (bytes, _) = Bytes::map(path)?;
    if verify {
        ScalableBloomFilter::from_bytes_any_hash(bytes.as_ref())?;
    }
    if let Bytes::Mapped(map) = &bytes {
        #[cfg(unix)]
        // SAFETY: the mapping is of a file and never written through: its pages can be read again.
        let _ = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        // Lookups read single pages at random, so read-ahead would be wasted.
        let _ = map.advise(Advice::Random);
    }
    let filter = ScalableBloomFilter::from_bytes_trusted_any_hash(SharedBytes::from(bytes))?;
    Ok(Store::OpenedGrowing { filter, mapped: true })
}

/// The kind of file that a path names.
pub(crate) enum Target {
    /// A regular file, after following links. It is replaced as a whole, and the new file takes its
    /// permissions.
    File(PathBuf, Option<Permissions>),
    /// A FIFO, a device, an open file without a name, or a path that cannot be written. It is
    /// opened and never replaced.
    Stream,
}

impl Target {
    pub(crate) fn from_path(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(old) if old.is_file() => match fs::canonicalize(path) {
                Ok(path) => Target::File(path, Some(old.permissions())),
                Err(_) => Target::Stream,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Target::File(end_of_links(path), None)
            }
            _ => Target::Stream,
        }
    }
}

/// Returns the path at which writing through dangling links would create a file. There is no loop
/// of links: that is a different error than "not found".
fn end_of_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    while let Ok(target) = fs::read_link(&path) {
        path = folder(&path).join(target);
    }
    path
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Creates a new file in the folder of `path` and returns its name, which is short even if that of
/// `path` is long. Only this user can open the file until it gets the permissions of the file that
/// it will replace.
fn temporary(path: &Path, old: Option<&Permissions>) -> io::Result<(PathBuf, File)> {
    static FILES: AtomicU64 = AtomicU64::new(0);
    loop {
        // A killed process may have had the same id and left its files.
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let name = format!(".blocked-bloom-{}-{number}.tmp", std::process::id());
        let temporary = folder(path).join(name);
        let mut options = File::options();
        #[cfg(unix)]
        if old.is_some() {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        match options.write(true).create_new(true).open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (temporary, file)),
        }
    }
}

/// A new file that replaces another as a whole once complete. Until then, and if the process is
/// killed, the path keeps the old file.
#[derive(Debug)]
pub(crate) struct Replacement {
    path: PathBuf,
    /// `None` once the file has its final name.
    temporary: Option<PathBuf>,
    pub(crate) file: File,
}

impl Replacement {
    pub(crate) fn begin(path: &Path, old: Option<Permissions>) -> io::Result<Self> {
        let (temporary, file) = temporary(path, old.as_ref())?;
        let new = Replacement { path: path.to_owned(), temporary: Some(temporary), file };
        if let Some(old) = old {
            new.file.set_permissions(old)?;
        }
        Ok(new)
    }

    /// Reads the bytes written so far.
    pub(crate) fn read(&mut self) -> io::Result<Vec<u8>> {
        self.file.flush()?;
        fs::read(self.temporary.as_ref().unwrap_or(&self.path))
    }

    pub(crate) fn commit(mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.sync_all()?;
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, &self.path)?;
        }
        self.temporary = None;
        if let Ok(folder) = File::open(folder(&self.path)) {
            // Makes the new name survive a crash of the machine. If the system cannot sync folders,
            // the file system takes care of it.
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Report the first error, not that of removing the file.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Writes a regular file as a whole.
pub(crate) fn replace(
    path: &Path,
    old: Option<Permissions>,
    write: impl FnOnce(&mut File) -> io::Result<u64>,
) -> io::Result<u64> {
    let mut new = Replacement::begin(path, old)?;
    let bytes = write(&mut new.file)?;
    new.commit()?;
    Ok(bytes)
}

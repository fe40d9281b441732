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

/// Reads a filter for a known number of keys, and verifies it.
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

/// Reads a growing filter, and verifies it.
pub(crate) fn load_growing(path: &Path) -> Result<Store, Error> {
    Store::open_growing(Bytes::read(path, |head, _| match recognise("", head, head, None) {
        Ok(format) if format == Format::GROWING => Ok(()),
        // The error says what is wrong with it.
        _ => Ok(ScalableBloomFilter::from_bytes_any_hash(head).map(drop)?),
    })?)
}

/// Maps a filter for a known number of keys. Verification reads the file piece by piece, so that it
/// adds nothing to the process.
pub(crate) fn map(path: &Path, verify: bool) -> Result<Store, Error> {
    let (bytes, mut file) = Bytes::map(path)?;
    if let Bytes::Mapped(map) = &bytes {
        // Lookups read single pages anywhere: reading ahead would be in vain.
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
        // Where docs/format.md has the checksum of the blocks.
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

/// Maps a growing filter. It is verified by way of the mapping, whose pages are then given back.
pub(crate) fn map_growing(path: &Path, verify: bool) -> Result<Store, Error> {
    let (bytes, _) = Bytes::map(path)?;
    if verify {
        ScalableBloomFilter::from_bytes_any_hash(bytes.as_ref())?;
    }
    if let Bytes::Mapped(map) = &bytes {
        #[cfg(unix)]
        // SAFETY: of a mapping of a file, that nobody writes through: its pages are read again from
        // the file.
        let _ = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        // Lookups read single pages anywhere: reading ahead would be in vain.
        let _ = map.advise(Advice::Random);
    }
    let filter = ScalableBloomFilter::from_bytes_trusted_any_hash(SharedBytes::from(bytes))?;
    Ok(Store::OpenedGrowing { filter, mapped: true })
}

/// What `path` names for a writer.
pub(crate) enum Target {
    /// A regular file, links followed, which is replaced as a whole; the new one has the
    /// permissions of the old one.
    File(PathBuf, Option<Permissions>),
    /// A FIFO, a device, an open file without a name, or what cannot be written: opened, and never
    /// replaced.
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

/// Where a link to a file that does not exist would create it. There is no loop: that is another
/// error than "not found".
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

/// A new file beside `path`, and its name, which is short whatever that of `path` is. Until it has
/// the permissions of the file that it will replace, nobody else may open it.
fn temporary(path: &Path, old: Option<&Permissions>) -> io::Result<(PathBuf, File)> {
    static FILES: AtomicU64 = AtomicU64::new(0);
    loop {
        // A process that was killed may have had this one's id, and left its files.
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

/// A new file that takes the place of another as a whole, once it is complete: whoever opens the
/// path meanwhile, or after the process was killed, has the file that was there before.
#[derive(Debug)]
pub(crate) struct Replacement {
    path: PathBuf,
    /// `None` once it has its name.
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

    pub(crate) fn commit(mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.sync_all()?;
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, &self.path)?;
        }
        self.temporary = None;
        if let Ok(folder) = File::open(folder(&self.path)) {
            // So that the name survives a crash of the machine. Where folders cannot be synced, the
            // file system sees to it.
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Reported is the first error, not that of removing the file.
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

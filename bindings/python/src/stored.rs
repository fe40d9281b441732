//! Filters in files.

use std::fs::{self, File};
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
    Store::open(Bytes::read(path, |head, len| match BloomFilter::from_bytes_trusted(head) {
        Err(FormatError::Header(HeaderError::Length { expected, .. })) if expected == len => Ok(()),
        Err(FormatError::Header(HeaderError::Length { expected, .. })) => {
            Err(FormatError::Header(HeaderError::Length { found: len, expected }).into())
        }
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    })?)
}

/// Reads a growing filter, and verifies it.
pub(crate) fn load_growing(path: &Path) -> Result<Store, Error> {
    Store::open_growing(Bytes::read(path, |head, _| match recognise("", head, head, None) {
        Ok(format) if format == Format::GROWING => Ok(()),
        // The error says what is wrong with it.
        _ => Store::open_growing(Bytes::copy_of(head)?).map(|_| ()),
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
    let filter = BloomFilter::from_bytes_trusted(bytes)?;
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
        ScalableBloomFilter::from_bytes(bytes.as_ref())?;
    }
    if let Bytes::Mapped(map) = &bytes {
        #[cfg(unix)]
        // SAFETY: of a mapping of a file, that nobody writes through: its pages are read again from
        // the file.
        let _ = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        // Lookups read single pages anywhere: reading ahead would be in vain.
        let _ = map.advise(Advice::Random);
    }
    let filter = ScalableBloomFilter::from_bytes_trusted(SharedBytes::from(bytes))?;
    Ok(Store::OpenedGrowing { filter, mapped: true })
}

/// Writes a file as a whole: whoever opens the path meanwhile, or after the process was killed, has
/// the file that was there before.
pub(crate) fn write_file(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<u64>,
) -> io::Result<u64> {
    static FILES: AtomicU64 = AtomicU64::new(0);
    // Of a symbolic link the target is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .map_or_else(|| PathBuf::from("."), Path::to_owned);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!(".{name}.{}-{number}.tmp", std::process::id()));
    let written = (|| {
        let mut file = File::options().write(true).create_new(true).open(&temporary)?;
        let bytes = write(&mut file)?;
        file.flush()?;
        file.sync_all()?;
        fs::rename(&temporary, &path)?;
        Ok(bytes)
    })();
    if written.is_err() {
        // Reported is the first error, not that of removing the file.
        let _ = fs::remove_file(&temporary);
    } else if let Ok(folder) = File::open(folder) {
        // So that the name survives a crash of the machine. Where folders cannot be synced, the
        // file system sees to it.
        let _ = folder.sync_all();
    }
    written
}

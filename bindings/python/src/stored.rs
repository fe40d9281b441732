//! Filters in files and in bytes.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use blocked_bloom::header::HEADER_BYTES;
use blocked_bloom::header::HeaderError;
use blocked_bloom::{BlockBuffer, BloomFilter, FormatError, Stored};
use blocked_bloom_inspect::{Format, recognise};
use blocked_bloom_scalable::ScalableBloomFilter;
use memmap2::{Advice, Mmap};
use xxhash_rust::xxh3::Xxh3;

use crate::store::{Error, Store};

/// The bytes that a filter was opened from.
#[derive(Debug)]
pub(crate) enum Bytes {
    Mapped(Mmap),
    /// In blocks of 64 bytes, so that each block of a filter is one cache line; the last may be used in part.
    Read(BlockBuffer, usize),
}

impl AsRef<[u8]> for Bytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Read(blocks, len) => &blocks.as_flattened()[..*len],
        }
    }
}

impl Bytes {
    /// Room for bytes of a file, as large as that and no larger.
    fn room(len: u64) -> Result<Self, Error> {
        let blocks = u32::try_from(len.div_ceil(64))
            .map_err(|_| Error::Value(format!("{len} bytes are no filter: too large")))?;
        Ok(Bytes::Read(BlockBuffer::zeroed(blocks.max(1), true)?, len as usize))
    }

    fn fill(&mut self, mut from: impl Read) -> io::Result<()> {
        match self {
            Bytes::Mapped(_) => unreachable!("a mapping is not filled"),
            Bytes::Read(blocks, len) => from.read_exact(&mut blocks.as_flattened_mut()[..*len]),
        }
    }

    /// A header and the blocks behind it.
    pub(crate) fn joined(header: [u8; HEADER_BYTES], blocks: BlockBuffer) -> Result<Self, Error> {
        let mut joined = Bytes::room((HEADER_BYTES + size_of_val(&*blocks)) as u64)?;
        joined.fill(header.as_slice().chain(blocks.as_flattened()))?;
        Ok(joined)
    }

    pub(crate) fn copy_of(bytes: &[u8]) -> Result<Self, Error> {
        let mut copy = Bytes::room(bytes.len() as u64)?;
        copy.fill(bytes)?;
        Ok(copy)
    }

    /// Reads a file into memory, once, if `check` finds no error in its first bytes, at most [`HEADER_BYTES`], and its length: what is no filter
    /// may be of any size.
    fn read(
        path: &Path,
        check: impl FnOnce(&[u8], u64) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        let mut head = Vec::with_capacity(HEADER_BYTES);
        (&mut file).take(HEADER_BYTES as u64).read_to_end(&mut head)?;
        check(&head, len)?;
        file.rewind()?;
        let mut bytes = Bytes::room(len)?;
        bytes.fill(&mut file)?;
        if file.read(&mut [0])? > 0 {
            return Err(Error::Value("the file grew while it was read".into()));
        }
        Ok(bytes)
    }

    /// Maps a file.
    pub(crate) fn map(path: &Path) -> Result<(Self, File), Error> {
        let file = File::open(path)?;
        // SAFETY: a file that another process shortens or changes is what `mmap` documents as the price of mapping: the first ends
        // the process, the second changes answers. No type relies on the bytes: each is valid, whatever it is.
        let map = unsafe { Mmap::map(&file) }?;
        Ok((Bytes::Mapped(map), file))
    }
}

self_cell::self_cell!(
    /// A growing filter and the bytes in which it is.
    pub(crate) struct OpenedChain {
        owner: Bytes,
        #[covariant]
        dependent: Chain,
    }

    impl {Debug}
);

type Chain<'a> = ScalableBloomFilter<Stored<&'a [u8]>>;

/// Reads a filter for a known number of keys, and verifies it.
pub(crate) fn load(path: &Path) -> Result<Store, Error> {
    open(Bytes::read(path, |head, len| match BloomFilter::from_bytes_trusted(head) {
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
    open_growing(Bytes::read(path, |head, _| match recognise("", head, head, None) {
        Ok(format) if format == Format::GROWING => Ok(()),
        // The error says what is wrong with it.
        _ => open_growing(Bytes::copy_of(head)?).map(|_| ()),
    })?)
}

/// Opens a filter for a known number of keys, and verifies it.
pub(crate) fn open(bytes: Bytes) -> Result<Store, Error> {
    let mapped = matches!(bytes, Bytes::Mapped(_));
    Ok(Store::Opened { filter: BloomFilter::from_bytes(bytes)?, mapped })
}

/// Opens a growing filter, and verifies it.
pub(crate) fn open_growing(bytes: Bytes) -> Result<Store, Error> {
    Ok(Store::OpenedGrowing(OpenedChain::try_new(bytes, |bytes| {
        ScalableBloomFilter::from_bytes(bytes.as_ref())
    })?))
}

/// Maps a filter for a known number of keys. Verification reads the file piece by piece, so that it adds nothing to the process.
pub(crate) fn map(path: &Path, verify: bool) -> Result<Store, Error> {
    let (bytes, mut file) = Bytes::map(path)?;
    if let Bytes::Mapped(map) = &bytes {
        // Lookups are anywhere: pages around them are not wanted.
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
        // SAFETY: of a mapping of a file, that nobody writes through: its pages are read again from the file.
        let _ = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        // Lookups are anywhere: pages around them are not wanted.
        let _ = map.advise(Advice::Random);
    }
    Ok(Store::OpenedGrowing(OpenedChain::try_new(bytes, |bytes| {
        ScalableBloomFilter::from_bytes_trusted(bytes.as_ref())
    })?))
}

/// Writes a file as a whole: whoever opens the path meanwhile, or after the process was killed, has the file that was there before.
pub(crate) fn write_file(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<u64>,
) -> io::Result<u64> {
    static FILES: AtomicU64 = AtomicU64::new(0);
    // Of a link, what it leads to is replaced.
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
        // What went wrong is told, not that its file could not be removed.
        let _ = fs::remove_file(&temporary);
    } else if let Ok(folder) = File::open(folder) {
        // So that the name survives a crash of the machine. Where folders cannot be synced, the file system sees to it.
        let _ = folder.sync_all();
    }
    written
}

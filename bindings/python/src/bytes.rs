//! Bytes from which filters are opened.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use blocked_bloom::parts::{BlockBuffer, HEADER_BYTES};
use memmap2::Mmap;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::Error;
use crate::memory;

/// The bytes of an opened filter.
#[derive(Debug)]
pub(crate) enum Bytes {
    Mapped(Mmap),
    /// Blocks of 64 bytes, so that each block of the filter is one cache line, and the length in
    /// bytes. The last block may be used in part.
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
    /// Returns the number of blocks for `len` bytes.
    fn blocks(len: u64) -> Result<u32, Error> {
        let blocks = u32::try_from(len.div_ceil(64)).map_err(|_| {
            Error::Value(format!("{len} bytes are too many for one filter (at most 256 GiB)"))
        })?;
        Ok(blocks.max(1))
    }

    /// Allocates exactly `len` bytes, rounded up to blocks.
    fn room(len: u64) -> Result<Self, Error> {
        Ok(Bytes::Read(BlockBuffer::zeroed(Bytes::blocks(len)?, true)?, len as usize))
    }

    fn fill(&mut self, mut from: impl Read) -> io::Result<()> {
        match self {
            Bytes::Mapped(_) => unreachable!("a mapping is not filled"),
            Bytes::Read(blocks, len) => from.read_exact(&mut blocks.as_flattened_mut()[..*len]),
        }
    }

    /// Joins a header and its blocks.
    pub(crate) fn joined(header: [u8; HEADER_BYTES], blocks: BlockBuffer) -> Result<Self, Error> {
        let mut joined = Bytes::room((HEADER_BYTES + size_of_val(&*blocks)) as u64)?;
        joined.fill(header.as_slice().chain(blocks.as_flattened()))?;
        Ok(joined)
    }

    /// Copies the bytes of a buffer, which another thread may change meanwhile.
    pub(crate) fn copy_of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err("the buffer has gaps: give bytes(data)"));
        }
        let (from, len) = (buffer.buf_ptr().cast_const().cast(), buffer.len_bytes());
        let mut copy =
            BlockBuffer::zeroed(Bytes::blocks(len as u64)?, true).map_err(Error::from)?;
        // SAFETY: the contiguous buffer has `len` bytes from its start and is held.
        unsafe { memory::copy(from, &mut copy.as_flattened_mut()[..len]) };
        Ok(Bytes::Read(copy, len))
    }

    /// Reads a file into memory if `check` accepts its first bytes, at most [`HEADER_BYTES`], and
    /// its length. The check comes first because a file that is not a filter may have any size.
    pub(crate) fn read(
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

    /// Memory-maps a file.
    pub(crate) fn map(path: &Path) -> Result<(Self, File), Error> {
        let file = File::open(path)?;
        // SAFETY: another process may shorten the file, which kills this process, or change it,
        // which changes answers; `mmap` documents both. Every byte value is valid, so no type
        // relies on the contents.
        let map = unsafe { Mmap::map(&file) }?;
        Ok((Bytes::Mapped(map), file))
    }
}

/// Bytes shared by the parts of a growing filter.
#[derive(Clone, Debug)]
pub(crate) struct SharedBytes(Arc<Bytes>);

impl From<Bytes> for SharedBytes {
    fn from(bytes: Bytes) -> Self {
        SharedBytes(Arc::new(bytes))
    }
}

impl AsRef<[u8]> for SharedBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

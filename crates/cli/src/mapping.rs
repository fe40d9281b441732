//! The bytes of a file: read into memory, or mapped if there are many.
//!
//! Mapped bytes take no memory of their own, and only the accessed pages are read. The price is
//! that they stay the file's. If another program truncates the file
//! meanwhile, an access past its new end is a SIGBUS, which ends the tool (Windows does not
//! truncate mapped files); if one overwrites it, answers may be wrong. This tool does neither: it
//! renames new files over old ones, whose bytes stay mapped.
#![expect(unsafe_code, reason = "bytes of a file that others may write to")]

use std::fs::File;
use std::io;
use std::ops::Deref;

use memmap2::Mmap;

/// Smallest file, in bytes, that is mapped. Reading a smaller file costs no more, and is not
/// affected by later changes to it.
pub(crate) const MAP_FROM: u64 = 16 << 20;

pub(crate) enum Bytes {
    Read(Vec<u8>),
    Mapped(Mmap),
}

impl Bytes {
    /// Maps all of a regular file.
    pub(crate) fn map(file: &File) -> io::Result<Self> {
        // Another process may still write to the file (see above). Every reader therefore loads a
        // length or count once, checks it against the slice, and uses the checked value. The
        // kernels' loads stay within the slice whatever the bytes are.
        //
        // SAFETY: this process never writes to a file in place. If another process does, readers
        // see changed bytes, but no access leaves the mapping, which keeps its length.
        unsafe { Mmap::map(file) }.map(Bytes::Mapped)
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Read(bytes) => bytes,
            Bytes::Mapped(bytes) => bytes,
        }
    }
}

//! Reading stored filters from files, pipes and devices.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use blocked_bloom_formats::cassandra::Layout;

use crate::detect::{Evidence, announced_bytes};
use crate::failure::Failure;
use crate::file_format::{Format, FormatArgs};

/// Bytes at the start and at the end of a file that its format is recognised by.
const HEAD: u64 = 64;

/// Most that is read of a pipe or a device whose header announces no length, since it may be endless.
const MAX_STREAM_BYTES: u64 = 1 << 30;

/// A filter, or a file that holds filters, as it was read: not yet verified.
pub(crate) struct Stored {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) format: Format,
    /// As the user gave it.
    pub(crate) cassandra_version: Option<Layout>,
}

impl Stored {
    pub(crate) fn read(path: &Path, args: &FormatArgs) -> Result<Self, Failure> {
        let given = args.format()?;
        let name = path.display().to_string();
        let fail = |operation, error: io::Error| Failure::io(&name, operation, &error);
        let mut file = File::open(path).map_err(|error| fail("open", error))?;
        let length = match file.metadata() {
            Ok(metadata) if metadata.is_file() => Some(metadata.len()),
            _ => None,
        };
        let mut bytes = Vec::new();
        let head = file.by_ref().take(HEAD).read_to_end(&mut bytes);
        head.map_err(|error| fail("read", error))?;
        let tail = match length {
            Some(length) => tail(&mut file, length).map_err(|error| fail("read", error))?,
            None => Vec::new(),
        };
        let evidence =
            Evidence { path, head: &bytes, end: length.map(|length| (&tail[..], length)) };
        let format = given.or_else(|| evidence.format()).ok_or_else(|| evidence.unknown())?;

        // Of what may be endless, one byte too many is enough.
        let announced = announced_bytes(format, &bytes);
        let most = match (length, announced) {
            (Some(_), _) => u64::MAX,
            (None, Some(announced)) => announced.saturating_add(1),
            (None, None) => MAX_STREAM_BYTES + 1,
        };
        let rest = file.take(most.saturating_sub(bytes.len() as u64)).read_to_end(&mut bytes);
        rest.map_err(|error| fail("read", error))?;
        if announced.is_none() && length.is_none() && bytes.len() as u64 == most {
            let message = format!(
                "a pipe or a device with more than {MAX_STREAM_BYTES} bytes: give a regular file"
            );
            return Err(Failure::of(&name, message));
        }
        Ok(Stored { name, bytes, format, cassandra_version: args.cassandra_version })
    }

    /// The error for a filter that cannot be used.
    pub(crate) fn damaged(&self, error: impl std::fmt::Display) -> Failure {
        let advice = "it must not be used to answer \"absent\"; rebuild it, or do without";
        Failure::of(&self.name, format!("{error} (read as {}; {advice})", self.format))
    }
}

/// The last bytes of a file, whose position stays as it is.
fn tail(file: &mut File, length: u64) -> io::Result<Vec<u8>> {
    let position = file.stream_position()?;
    file.seek(SeekFrom::Start(length.saturating_sub(HEAD)))?;
    let mut tail = Vec::new();
    file.by_ref().take(HEAD).read_to_end(&mut tail)?;
    file.seek(SeekFrom::Start(position))?;
    Ok(tail)
}

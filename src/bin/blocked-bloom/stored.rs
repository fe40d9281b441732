//! Reading stored filters from files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use blocked_bloom::{BloomFilterBytes, BloomFilterRef, FormatError};

use crate::failure::Failure;

/// Why a file is no usable filter. The bytes are kept for those who only describe the damage.
pub(crate) enum Unusable {
    Unread(Failure),
    Damaged { error: FormatError, bytes: Vec<u8> },
}

/// A verified filter, or a message with advice.
pub(crate) fn open(path: &Path) -> Result<BloomFilterBytes<Vec<u8>>, Failure> {
    verify(path).map_err(|unusable| match unusable {
        Unusable::Unread(failure) => failure,
        Unusable::Damaged { error, .. } => damaged(path, &error),
    })
}

pub(crate) fn damaged(path: &Path, error: &FormatError) -> Failure {
    let advice = match error {
        FormatError::Magic { .. } => "is it the file of keys? The filter comes first",
        _ => "it must not be used to answer \"absent\"; rebuild it, or do without",
    };
    Failure::of(&path.display().to_string(), format!("{error} ({advice})"))
}

pub(crate) fn verify(path: &Path) -> Result<BloomFilterBytes<Vec<u8>>, Unusable> {
    let bytes = read(path)?;
    match BloomFilterRef::from_bytes(&bytes) {
        Ok(_) => {}
        Err(error) => return Err(Unusable::Damaged { error, bytes }),
    }
    BloomFilterBytes::from_bytes_trusted(bytes)
        .map_err(|error| Unusable::Damaged { error, bytes: Vec::new() })
}

/// The file, if it begins as a filter does.
fn read(path: &Path) -> Result<Vec<u8>, Unusable> {
    let name = path.display().to_string();
    let fail = |operation, error| Unusable::Unread(Failure::io(&name, operation, &error));
    let mut file = File::open(path).map_err(|error| fail("open", error))?;
    let mut bytes = Vec::new();
    let header = file.by_ref().take(64).read_to_end(&mut bytes);
    header.map_err(|error| fail("read", error))?;
    let rest = match BloomFilterRef::from_bytes_trusted(&bytes) {
        Ok(_) => 0,
        Err(FormatError::Length { expected, .. }) => expected.saturating_sub(64),
        Err(error) => return Err(Unusable::Damaged { error, bytes }),
    };
    // Of what may be endless, one byte too many is enough.
    let whole = file.metadata().is_ok_and(|metadata| metadata.is_file());
    let rest = file.take(if whole { u64::MAX } else { rest + 1 }).read_to_end(&mut bytes);
    rest.map_err(|error| fail("read", error))?;
    Ok(bytes)
}

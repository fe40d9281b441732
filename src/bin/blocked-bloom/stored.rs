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
    let advice = "it must not be used to answer \"absent\"; rebuild it, or do without";
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

/// The whole file if it begins as a filter does: what is something else may be endless.
fn read(path: &Path) -> Result<Vec<u8>, Unusable> {
    let name = path.display().to_string();
    let fail = |operation, error| Unusable::Unread(Failure::io(&name, operation, &error));
    let mut file = File::open(path).map_err(|error| fail("open", error))?;
    let mut bytes = Vec::new();
    let header = file.by_ref().take(64).read_to_end(&mut bytes);
    header.map_err(|error| fail("read", error))?;
    match BloomFilterRef::from_bytes_trusted(&bytes) {
        Ok(_) | Err(FormatError::Length { .. }) => {}
        Err(error) => return Err(Unusable::Damaged { error, bytes }),
    }
    let rest = file.read_to_end(&mut bytes);
    rest.map_err(|error| fail("read", error))?;
    Ok(bytes)
}

//! Writes table files. A file appears under its name whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use blocked_bloom::FilterOptions;

use crate::block::BlockBuilder;
use crate::footer::{MAGIC, encode};

const CACHE_LINE: [u8; 64] = [0; 64];

/// Writes a table file from records in ascending order of distinct keys, with a filter of these options.
///
/// An engine would also sync the directory, for which the standard library has no portable way.
pub(crate) fn flush<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    path: &Path,
    run: impl IntoIterator<Item = (K, V)>,
    options: &FilterOptions,
) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let mut file = BufWriter::new(File::create(&temporary)?);
    let mut filter = options.builder();
    let mut block = BlockBuilder::default();
    let mut index = BlockBuilder::default();
    let mut end = 0;

    let mut run = run.into_iter().peekable();
    while let Some((key, value)) = run.next() {
        filter.insert(&key).map_err(io::Error::other)?;
        block.add(key.as_ref(), value.as_ref())?;
        let fits = |(key, value): &(K, V)| block.has_space_for(key.as_ref(), value.as_ref());
        if !run.peek().is_some_and(fits) {
            let start = end;
            end += block.write_to(&mut file)?;
            index.add(key.as_ref(), &encode(start..end))?;
        }
    }

    // From a multiple of 64 on, each block of the filter is one cache line of the mapping, so that a lookup touches one.
    let filter_start = end.next_multiple_of(CACHE_LINE.len() as u64);
    file.write_all(&CACHE_LINE[..(filter_start - end) as usize])?;
    let filter = filter.finish().map_err(io::Error::other)?;
    let index_start = filter_start + filter.write_to(&mut file)?;
    let index_end = index_start + index.write_to(&mut file)?;
    file.write_all(&encode(filter_start..index_start))?;
    file.write_all(&encode(index_start..index_end))?;
    file.write_all(&MAGIC)?;
    file.into_inner()?.sync_all()?;
    fs::rename(temporary, path)
}

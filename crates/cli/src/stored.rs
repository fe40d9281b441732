//! Opening stored filters: files, which are mapped if they are large, standard input, pipes and
//! devices.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, IsTerminal, Read, Seek, SeekFrom};
use std::path::Path;

use blocked_bloom::{BloomFilter, Stored as Blocks};
use blocked_bloom_formats::cassandra::Layout;
use blocked_bloom_inspect::{
    Damage, EVIDENCE_BYTES, FileRanges, Format, Opened, Unrecognised, begins_as_filter, recognise,
};
use indicatif::ProgressBar;

use crate::failure::Failure;
use crate::file_format::FormatArgs;
use crate::keys;
use crate::mapping::{Bytes, MAP_FROM};
use crate::output::STDIO;
use crate::terminal::progress_bar;
use crate::wording;

/// Most that is read of a pipe or a device whose header announces no length, since it may be
/// endless.
const MAX_STREAM_BYTES: u64 = 1 << 30;

/// Files with a magic number at their end.
const CONTAINERS: [Format; 2] = [Format::ROCKSDB_SST, Format::PARQUET];

/// A filter, or a file that holds filters: not yet verified.
pub(crate) struct Stored {
    pub(crate) name: String,
    pub(crate) bytes: Bytes,
    pub(crate) format: Format,
    /// From the command line.
    pub(crate) cassandra_version: Option<Layout>,
    /// Of the index of a partitioned filter, where they were given: name and bytes of the file.
    pub(crate) partitions: Option<(String, Bytes)>,
}

/// How a filter is read, apart from its format.
#[derive(Default)]
pub(crate) struct Reading<'a> {
    /// The keys that were given with it: if it is not a filter, the two may be swapped.
    pub(crate) keys: Option<&'a Path>,
    /// Shows the bytes of all filters that are read; otherwise this one has a bar of its own.
    pub(crate) bar: Option<&'a ProgressBar>,
}

impl Stored {
    /// Opens a file, or standard input for `-`.
    pub(crate) fn read(
        path: &Path,
        args: &FormatArgs,
        reading: &Reading<'_>,
    ) -> Result<Self, Failure> {
        let given = args.format()?;
        let source = Source::open(path)?;
        let name = source.name.clone();
        let format = match given.map_or_else(|| source.format(path), Ok) {
            Ok(format) => format,
            Err(unrecognised) => {
                let keys = reading.keys.map(|keys| (keys, format_of(keys)));
                return Err(wording::unrecognised(&name, unrecognised, &source.head, keys));
            }
        };
        // A filter that is read in another format may open, and answers "absent" for its keys.
        if let Ok(found) = source.format(Path::new(""))
            && found != format
            && given.is_some()
            && (begins_as_filter(&source.head) || CONTAINERS.contains(&found))
        {
            let message = format!("its bytes are those of format {found}, not of {format}");
            return Err(Failure::for_file(&name, message));
        }
        if let Some(found) = source.length
            && let Some(expected) = format.length_by_header(&source.head)
            && found != expected
        {
            return Err(wording::error(&name, &format.wrong_length(found, expected)));
        }
        let partitions = args.partitions.as_deref().map(|path| partitions(path, format));
        let partitions = partitions.transpose()?;
        let own_bar;
        let bar = match reading.bar {
            Some(bar) => bar,
            None => {
                own_bar = progress_bar(&name, source.length.unwrap_or(0), true);
                &own_bar
            }
        };
        let bytes = source.bytes(format, bar)?;
        Ok(Stored { name, bytes, format, cassandra_version: args.cassandra_version, partitions })
    }

    /// The filter, verified.
    pub(crate) fn open(&self) -> Result<Opened<'_>, Failure> {
        let file = FileRanges::from(&self.bytes[..]);
        let opened = Opened::new(&self.name, &file, self.format, self.cassandra_version);
        let opened = opened.map_err(|error| wording::error(&self.name, &error))?;
        let Some((name, partitions)) = &self.partitions else { return Ok(opened) };
        // The index is sound, so the error is about the partitions.
        let opened = Opened::partitioned(&self.name, &self.bytes, partitions);
        opened.map_err(|error| wording::error(name, &error))
    }

    /// A native filter, verified.
    pub(crate) fn open_native(&self) -> Result<BloomFilter<Blocks<&[u8]>>, Failure> {
        BloomFilter::from_bytes_any_hash(&self.bytes[..]).map_err(|error| self.damaged(error))
    }

    /// The error for a filter that cannot be used.
    pub(crate) fn damaged(&self, damage: impl Into<Damage>) -> Failure {
        wording::error(&self.name, &self.format.damaged(damage))
    }
}

/// The format of the file that was given as keys, if it is a filter.
fn format_of(path: &Path) -> Option<Format> {
    // A pipe must not be read for that.
    let source = path.is_file().then(|| Source::open(path).ok())??;
    source.format(path).ok()
}

/// The partitions of an index: name and bytes of their file.
fn partitions(path: &Path, format: Format) -> Result<(String, Bytes), Failure> {
    let expected = Format::PARTITION_INDEX;
    if format != expected {
        return Err(wording::unsupported_option("--partitions", &[expected.name()], format.name()));
    }
    if path == Path::new(STDIO) {
        return Err(Failure::new("--partitions: give a file, not standard input"));
    }
    let source = Source::open(path)?;
    let (name, bar) = (source.name.clone(), ProgressBar::hidden());
    Ok((name, source.bytes(expected, &bar)?))
}

/// An open file or stream, with the bytes read so far: its start and, for a regular file, its end.
struct Source {
    name: String,
    file: File,
    /// Length, for a regular file.
    length: Option<u64>,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Source {
    fn open(path: &Path) -> Result<Self, Failure> {
        let name = keys::name(path);
        let fail = |operation, error: io::Error| Failure::io(&name, operation, &error);
        let is_stdin = path == Path::new(STDIO);
        if is_stdin && io::stdin().is_terminal() {
            let advice = "a filter is binary: redirect it from a file or a pipe";
            return Err(Failure::for_file("standard input is a terminal", advice));
        }
        let file = if is_stdin { stdin() } else { File::open(path) };
        let mut file = file.map_err(|error| fail("open", error))?;
        let length = match file.metadata() {
            // Redirected, and perhaps read by others before.
            Ok(metadata) if metadata.is_file() && file.stream_position().ok() == Some(0) => {
                Some(metadata.len())
            }
            _ => None,
        };
        let mut head = Vec::new();
        let read = file.by_ref().take(EVIDENCE_BYTES).read_to_end(&mut head);
        read.map_err(|error| fail("read", error))?;
        let tail = match length {
            Some(length) => tail(&mut file, length).map_err(|error| fail("read", error))?,
            None => Vec::new(),
        };
        Ok(Source { name, file, length, head, tail })
    }

    fn format(&self, path: &Path) -> Result<Format, Unrecognised> {
        recognise(&path.to_string_lossy(), &self.head, &self.tail, self.length)
    }

    fn bytes(self, format: Format, bar: &ProgressBar) -> Result<Bytes, Failure> {
        // What cannot be mapped can be read.
        if self.length.is_some_and(|length| length >= MAP_FROM)
            && let Ok(bytes) = Bytes::map(&self.file)
        {
            if [Format::NATIVE, Format::REMOVABLE].contains(&format) {
                load(&bytes, bar);
            }
            return Ok(bytes);
        }
        let Source { name, file, length, head: mut bytes, .. } = self;
        // Of what may be endless, one byte too many is enough.
        let announced = format
            .has_length()
            .then(|| format.length_by_header(&bytes).unwrap_or(bytes.len() as u64));
        let most = match (length, announced) {
            (Some(_), _) => u64::MAX,
            (None, Some(announced)) => announced.saturating_add(1),
            (None, None) => MAX_STREAM_BYTES + 1,
        };
        bar.inc(bytes.len() as u64);
        let rest = file.take(most.saturating_sub(bytes.len() as u64));
        let read = bar.wrap_read(rest).read_to_end(&mut bytes);
        read.map_err(|error| Failure::io(&name, "read", &error))?;
        if announced.is_none() && length.is_none() && bytes.len() as u64 == most {
            let message = format!(
                "a pipe or a device with more than {MAX_STREAM_BYTES} bytes: give a regular file"
            );
            return Err(Failure::for_file(&name, message));
        }
        Ok(Bytes::Read(bytes))
    }
}

/// Standard input as a file, which may be a regular one.
pub(crate) fn stdin() -> io::Result<File> {
    #[cfg(windows)]
    let owned = std::os::windows::io::AsHandle::as_handle(&io::stdin()).try_clone_to_owned();
    #[cfg(not(windows))]
    let owned = std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned();
    owned.map(File::from)
}

/// The last bytes of a file, whose position stays as it is.
fn tail(file: &mut File, length: u64) -> io::Result<Vec<u8>> {
    let position = file.stream_position()?;
    file.seek(SeekFrom::Start(length.saturating_sub(EVIDENCE_BYTES)))?;
    let mut tail = Vec::new();
    file.by_ref().take(EVIDENCE_BYTES).read_to_end(&mut tail)?;
    file.seek(SeekFrom::Start(position))?;
    Ok(tail)
}

/// Reads the pages of a mapped file while a bar shows how many were read: the checksum, which takes
/// all bytes in one call, then finds them in memory. Does nothing if the bar is hidden. Price: a
/// file that does not fit the system's cache is read twice.
fn load(bytes: &[u8], bar: &ProgressBar) {
    const PIECE: usize = 1 << 20;
    const PAGE: usize = 4096;
    if bar.is_hidden() {
        return;
    }
    for piece in bytes.chunks(PIECE) {
        for page in piece.chunks(PAGE) {
            black_box(page[0]);
        }
        bar.inc(piece.len() as u64);
    }
}

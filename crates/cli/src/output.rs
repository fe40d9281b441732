//! Writing: filters that appear whole or not at all, and text for standard output.
//!
//! A new filter is written to a file `.blocked-bloom-` and six letters and digits, in the directory of the one that it will replace. An error
//! removes it. A run that is killed, or a machine that stops, may leave it behind: it is never read, and may be deleted.

#[cfg(unix)]
use std::fs::File;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use blocked_bloom::BloomFilter;

use crate::failure::{Failure, inform};

/// The path that stands for standard input or output.
pub(crate) const STDIO: &str = "-";

/// Where a filter is written. Made before the work, so that what cannot be written is an error at once.
pub(crate) struct Output {
    name: String,
    place: Place,
}

enum Place {
    Stdout,
    /// A pipe or a device: opened and written, never renamed over.
    Device(PathBuf),
    /// A regular file, links followed; the permissions are those of the file it replaces.
    File(PathBuf, Option<Permissions>),
}

impl Output {
    pub(crate) fn new(path: &Path) -> Result<Self, Failure> {
        if path == Path::new(STDIO) {
            if io::stdout().is_terminal() {
                let advice = "a filter is binary: redirect it to a file or a pipe, or give -o FILE";
                return Err(Failure::of("standard output is a terminal", advice));
            }
            return Ok(Output { name: "standard output".to_owned(), place: Place::Stdout });
        }
        let name = path.display().to_string();
        let place = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                return Err(Failure::of(&name, "is a directory, expected a file to write"));
            }
            Ok(metadata) if metadata.is_file() => match fs::canonicalize(path) {
                Ok(path) => Place::File(path, Some(metadata.permissions())),
                // An open file without a name, reached as /dev/stdout.
                Err(_) => Place::Device(path.to_owned()),
            },
            Ok(_) => Place::Device(path.to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Place::File(end_of_links(path), None)
            }
            Err(error) => return Err(Failure::io(&name, "write", &error)),
        };
        if let Place::File(path, _) = &place
            && !parent(path).is_dir()
        {
            let parent = parent(path).display();
            return Err(Failure::of(&name, format!("cannot write: no directory {parent}")));
        }
        Ok(Output { name, place })
    }

    /// The path of the regular file that will be replaced, if there is one.
    pub(crate) fn replaced(&self) -> Option<&Path> {
        match &self.place {
            Place::File(path, Some(_)) => Some(path),
            _ => None,
        }
    }

    /// Writes a native filter, and prints its summary unless `quiet`.
    pub(crate) fn save_filter(&self, filter: &BloomFilter, quiet: bool) -> Result<(), Failure> {
        let summary = (!quiet).then(|| filter.params().to_string());
        self.save(&|writer| filter.write_to(writer).map(drop), summary.as_deref())
    }

    /// Writes what `content` writes, and prints the summary.
    pub(crate) fn save(&self, content: &Content<'_>, summary: Option<&str>) -> Result<(), Failure> {
        let fail = |operation, error: io::Error| Failure::io(&self.name, operation, &error);
        match &self.place {
            Place::Stdout => {
                write(content, io::stdout().lock()).map_err(|error| fail("write", error))?;
            }
            Place::Device(path) => {
                let device = OpenOptions::new().write(true).open(path);
                let device = device.map_err(|error| fail("open", error))?;
                write(content, device).map_err(|error| fail("write", error))?;
            }
            Place::File(path, permissions) => {
                replace(path, permissions.as_ref(), content)
                    .map_err(|(operation, error)| fail(operation, error))?;
            }
        }
        if let Some(summary) = summary {
            inform(format!("{}: {summary}", self.name));
        }
        Ok(())
    }
}

type Content<'a> = dyn Fn(&mut dyn Write) -> io::Result<()> + 'a;

fn write(content: &Content<'_>, mut writer: impl Write) -> io::Result<()> {
    content(&mut writer)?;
    writer.flush()
}

type Step<T> = Result<T, (&'static str, io::Error)>;

fn step<T>(operation: &'static str, done: io::Result<T>) -> Step<T> {
    done.map_err(|error| (operation, error))
}

/// Writes beside the target and renames over it, so that no reader and no crash sees half a filter.
fn replace(path: &Path, permissions: Option<&Permissions>, content: &Content<'_>) -> Step<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".blocked-bloom-");
    // A new file gets what the umask leaves, as from any tool, not the 0600 of temporary files.
    #[cfg(unix)]
    let new_file = <Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666);
    #[cfg(unix)]
    if permissions.is_none() {
        builder.permissions(new_file);
    }
    let created = builder.tempfile_in(parent(path));
    let mut file = step("create a temporary file beside it", created)?;
    if let Some(permissions) = permissions {
        let set = file.as_file().set_permissions(permissions.clone());
        step("set the permissions of the new file", set)?;
    }
    step("write", write(content, &mut file))?;
    step("flush to disk", file.as_file().sync_all())?;
    let renamed = file.persist(path).map_err(|failed| failed.error);
    step("rename the new file", renamed)?;
    #[cfg(unix)]
    step("flush its directory to disk", File::open(parent(path)).and_then(|dir| dir.sync_all()))?;
    Ok(())
}

/// Where a link to a file that does not exist would create it. There is no loop: that is another error than "not found".
fn end_of_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    while let Ok(target) = fs::read_link(&path) {
        path = parent(&path).join(target);
    }
    path
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Text for standard output; false if nobody reads it any more. A reader that has seen enough is no error.
pub(crate) fn print(text: &str) -> Result<bool, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::io("standard output", "write", &error)),
    }
}

//! Writing: filters that appear whole or not at all, and text for standard output.
//!
//! A new filter is written to a file in the directory of the one that it will replace. On Linux
//! that file has no name until it is whole and on disk (`O_TMPFILE`): if the tool or the machine
//! stops, the system frees the written bytes. Then it is linked to its name; or, where that name is
//! taken, to `.blocked-bloom-` and six letters and digits and renamed, since a link does not
//! replace a file. A file remains under the second name only if the tool ends between these two
//! calls; it is whole. Where a file system has no such files, the file has that second name from
//! the start: an error removes it, a run that is killed leaves it. It is never read, and may be
//! deleted.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, inform};

/// The path that stands for standard input or output.
pub(crate) const STDIO: &str = "-";

/// Where a filter is written. Made before the work, so that what cannot be written is an error at
/// once.
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
                return Err(Failure::for_file("standard output is a terminal", advice));
            }
            return Ok(Output { name: "standard output".to_owned(), place: Place::Stdout });
        }
        let name = path.display().to_string();
        let place = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                return Err(Failure::for_file(&name, "is a directory, expected a file to write"));
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
            return Err(Failure::for_file(&name, format!("cannot write: no directory {parent}")));
        }
        Ok(Output { name, place })
    }

    /// Whether `input`, by any name or as standard input that was redirected from it, is the file
    /// that would be replaced.
    pub(crate) fn replaces(&self, input: &Path) -> bool {
        match &self.place {
            Place::File(path, Some(_)) if input == Path::new(STDIO) => is_standard_input(path),
            Place::File(path, Some(_)) => fs::canonicalize(input).is_ok_and(|input| input == *path),
            _ => false,
        }
    }

    /// Returns an error if the output would replace `input`, the source of the result.
    pub(crate) fn keep(&self, input: &Path, what: &str) -> Result<(), Failure> {
        match self.replaces(input) {
            true => Err(Failure::for_file(&self.name, format!("is {what} would replace"))),
            false => Ok(()),
        }
    }

    /// Prints a summary of the file, unless `quiet`.
    pub(crate) fn report(&self, summary: impl Display, quiet: bool) {
        if !quiet {
            inform(format!("{}: {summary}", self.name));
        }
    }

    /// Writes what `content` writes.
    pub(crate) fn save(&self, content: &Content<'_>) -> Result<(), Failure> {
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
        Ok(())
    }
}

/// Whether standard input was redirected from this file.
#[cfg(unix)]
fn is_standard_input(path: &Path) -> bool {
    use std::os::{fd::AsFd, unix::fs::MetadataExt};
    let stdin = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let stdin = stdin.and_then(|file| file.metadata()).map(identity);
    stdin.is_ok_and(|stdin| fs::metadata(path).map(identity).is_ok_and(|file| file == stdin))
}

/// Whether standard input was redirected from this file: not known.
#[cfg(not(unix))]
fn is_standard_input(_: &Path) -> bool {
    false
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

/// Writes a new file and renames it over the target, so that no reader and no crash sees half a
/// filter.
fn replace(path: &Path, permissions: Option<&Permissions>, content: &Content<'_>) -> Step<()> {
    let parent = parent(path);
    // Opened before there is anything to flush: a directory that cannot be flushed gets no new
    // file.
    #[cfg(unix)]
    let directory = step("open its directory", File::open(parent))?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".blocked-bloom-");
    // A new file gets 0666 less the umask, as from any tool, not the 0600 of temporary files.
    #[cfg(unix)]
    let new_file = <Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666);
    #[cfg(unix)]
    if permissions.is_none() {
        builder.permissions(new_file);
    }
    if let Some(file) = unnamed(parent) {
        fill(&file, permissions, content)?;
        // A new name is taken in one step.
        let is_linked = permissions.is_none() && link(&file, path).is_ok();
        if !is_linked {
            let linked = builder.make_in(parent, |path| link(&file, path));
            let linked = step("name the new file", linked)?;
            step("rename the new file", linked.persist(path).map_err(|failed| failed.error))?;
        }
    } else {
        let file = step("create a temporary file next to it", builder.tempfile_in(parent))?;
        fill(file.as_file(), permissions, content)?;
        step("rename the new file", file.persist(path).map_err(|failed| failed.error))?;
    }
    #[cfg(unix)]
    step("flush its directory to disk", directory.sync_all())?;
    Ok(())
}

/// Writes the whole content of a file to disk, before the file gets its name.
fn fill(file: &File, permissions: Option<&Permissions>, content: &Content<'_>) -> Step<()> {
    if let Some(permissions) = permissions {
        let set = file.set_permissions(permissions.clone());
        step("set the permissions of the new file", set)?;
    }
    step("write", write(content, file))?;
    step("flush to disk", file.sync_all())
}

/// A file without a name, if the file system has such and [`link`] can name it.
#[cfg(target_os = "linux")]
fn unnamed(directory: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(directory, flags, Mode::from_raw_mode(0o666)).ok()?);
    fs::symlink_metadata(descriptor(&file)).is_ok().then_some(file)
}

#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(CWD, descriptor(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// The name that the system gives to an open file.
#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> String {
    format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file))
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Path) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Where a link to a file that does not exist would create it. There is no loop: that is another
/// error than "not found".
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

/// Prints on standard output; false if its reader is gone. A reader that has seen enough is not an
/// error.
pub(crate) fn print(text: &str) -> Result<bool, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::io("standard output", "write", &error)),
    }
}

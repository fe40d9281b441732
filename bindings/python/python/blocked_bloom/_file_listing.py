"""Lists the files of a data set for an index over them: names, lengths, etags, times."""

# pyarrow and fsspec have no type information.
# mypy: ignore-errors

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

Path: TypeAlias = str | os.PathLike[str]
Data: TypeAlias = Path | Iterable[Path] | Any  # or a pyarrow.dataset.FileSystemDataset
#: Name, bytes, etag, nanoseconds of the last change.
Identity: TypeAlias = tuple[str, int, str | None, int | None]

_PARQUET = (".parquet", ".parq", ".pq")
#: Folders of table formats whose Parquet files hold the table's log, not its rows.
_LOGS = ("_delta_log",)
#: Files of this name have a footer and no rows.
_FOOTERS = ("_metadata", "_common_metadata")
#: The folders of columns with which a path ends.
_HIVE = re.compile(r"(/[^/]*=[^/]*)+$")


def fixed_data(data: Data) -> Data:
    """Reads an iterable of paths once, so that it can be listed again later."""
    if isinstance(data, (str, os.PathLike)) or hasattr(data, "files"):
        return data
    if isinstance(data, (bytes, Mapping)) or not isinstance(data, Iterable):
        if hasattr(data, "get_fragments"):
            raise TypeError(f"a {type(data).__name__} has no files: give a dataset of files")
        raise TypeError(f"{type(data).__name__}: give a path, paths, or a dataset of pyarrow")
    paths = [os.fspath(path) for path in data]
    if any(isinstance(path, bytes) for path in paths):
        raise TypeError("paths of bytes: give str, as os.fsdecode returns it")
    return list(dict.fromkeys(paths))


def relisted(data: Data) -> Data:
    """A dataset of the files that its folder has now. Other data are listed at each lookup."""
    import pyarrow.dataset as dataset

    if not isinstance(data, dataset.FileSystemDataset) or not data.files:
        return data
    folders = [_HIVE.sub("", path.rpartition("/")[0]).split("/") for path in data.files]
    handler = getattr(data.filesystem, "handler", None)
    if hasattr(getattr(handler, "fs", None), "invalidate_cache"):
        handler.fs.invalidate_cache()
    return dataset.dataset(
        "/".join(os.path.commonprefix(folders)), data.schema, data.format, data.filesystem,
        getattr(data, "partitioning", None),
    )


def hive_columns(path: str) -> frozenset[str]:
    """Columns that readers may take from the folders of a path (`day=1/`), in lower case."""
    if "=" not in path:
        return frozenset()
    folders = path.split("/")[:-1]
    return frozenset(unquote(f.split("=", 1)[0]).casefold() for f in folders if "=" in f)


class Listing:
    """The files that a data set has now. `besides` is the path of the index itself."""

    is_table = False

    def __init__(self, data: Data, root: Path | None, besides: Path | None = None) -> None:
        import pyarrow.dataset as dataset
        import pyarrow.fs as fs

        self.schema = None
        self.filesystem: Any = fs.LocalFileSystem()
        #: A URL of the store, if it was given one.
        self._url = ""
        #: Files that the listing of a folder has reported, with their details.
        self._listed: dict[str, Any] = {}
        self._absolute_folders: dict[str, str] = {}
        #: The folder or pattern without files.
        self.missing: str | None = None
        in_path: list[str] = []
        if isinstance(data, dataset.Dataset):
            if not isinstance(data, dataset.FileSystemDataset):
                raise TypeError(f"a {type(data).__name__} has no files: give a dataset of files")
            if not isinstance(data.format, dataset.ParquetFileFormat):
                raise TypeError(f"files of the format {data.format.default_extname}, not Parquet")
            self.schema, self.filesystem = data.schema, data.filesystem
            paths = list(dict.fromkeys(data.files))
            if getattr(data, "partitioning", None) is not None:
                in_path = data.partitioning.schema.names
                # Without such folders, pyarrow's schema has the columns of the files.
                if isinstance(data.partitioning, dataset.HivePartitioning):
                    found = frozenset().union(*map(hive_columns, paths))
                    in_path = [name for name in in_path if name.casefold() in found]
        else:
            paths = self._paths(data)
        #: Columns that the dataset takes from paths, in lower case.
        self.in_path = frozenset(name.casefold() for name in in_path)
        self.local = isinstance(self.filesystem, fs.LocalFileSystem)
        handler = getattr(self.filesystem, "handler", None)
        self._fsspec = handler.fs if isinstance(handler, fs.FSSpecHandler) else None
        root = os.fspath(root) if root is not None else "/" if self.local else ""
        self.root = os.path.abspath(root) if self.local else root
        if besides is not None and self.local != ("://" in os.fspath(besides)):
            own = os.path.realpath(besides) if self.local else self._inner(os.fspath(besides))
            own_name = os.path.basename(own)
            paths = [
                path for path in paths
                if os.path.basename(path) != own_name
                or (os.path.realpath(path) if self.local else path) != own
            ]
        self.paths = paths
        self.identities = self._identities()

    def _paths(self, data: Data) -> list[str]:
        if not isinstance(data, (str, os.PathLike)):
            paths = [os.fspath(path) for path in data]
            schemes = {urlsplit(path).scheme if "://" in path else "file" for path in paths}
            if len(schemes) > 1:
                stores = ", ".join(sorted(schemes))
                raise ValueError(f"paths of several stores ({stores}): give one")
            if not paths or "://" not in paths[0] or schemes == {"file"}:
                return [local_path(path) for path in paths]
            self._open_store(paths[0])
            return [self._fsspec._strip_protocol(path) for path in paths]
        path = os.fspath(data)
        if "://" in path and urlsplit(path).scheme != "file":
            self._open_store(path)
            self._fsspec.invalidate_cache()
            inner = self._fsspec._strip_protocol(path)
            if any(c in inner for c in "*?["):
                found = self._fsspec.glob(inner, detail=True)
            else:
                found = {
                    path: info for path, info in self._fsspec.find(inner, detail=True).items()
                    if path == inner or _is_data(path[len(inner):])
                }
            self._listed = {
                path: info for path, info in found.items() if info.get("type") == "file"
            }
            if not self._listed:
                self.missing = path
                is_file = not (glob.has_magic(inner) or self._fsspec.isdir(inner))
                return [inner] if is_file else []
            return sorted(self._listed)
        path = local_path(path)
        if os.path.isdir(path):
            found = sorted(_files_below(path, path, frozenset()))
        elif not os.path.exists(path) and glob.has_magic(path):
            matches = glob.glob(path, recursive=True, include_hidden=True)
            found = sorted(match for match in matches if not os.path.isdir(match))
        else:
            found = [path]
        if not found or found == [path] and not os.path.exists(path):
            self.missing = path
        return found

    def _open_store(self, url: str) -> None:
        import pyarrow.fs as fs

        self._fsspec, _ = open_store(url)
        self.filesystem = fs.PyFileSystem(fs.FSSpecHandler(self._fsspec))
        self._url = url

    def _inner(self, url: str) -> str:
        """The path of an index in the file system, or "" if it is in another one."""
        from fsspec import get_filesystem_class

        scheme = url.partition("://")[0]
        known = self._fsspec.protocol if self._fsspec is not None else scheme
        known = (known,) if isinstance(known, str) else known
        return get_filesystem_class(scheme)._strip_protocol(url) if scheme in known else ""

    def shown(self, path: str) -> str:
        """The path as a reader opens it."""
        if not self._url or "://" in path:
            return path
        return self._fsspec.unstrip_protocol(path)

    def open(self, path: str) -> Any:
        return self.filesystem.open_input_file(path)

    def hive_columns(self, path: str) -> frozenset[str]:
        return hive_columns(path)

    def column(self, name: str) -> tuple[str, int | None]:
        """The name and the field's number that the index has for a column."""
        return name, None

    def table_name(self, name: str, field_id: int | None) -> str:
        """The name that the data set has for a column of the index."""
        return name

    def locate(self, schema: Any, name: str, field_id: int | None) -> str | None:
        """A file's name of a column of the index."""
        return name if len(schema.get_all_field_indices(name)) == 1 else None

    def type_of_nulls(self, schema: Any, name: str, field_id: int | None) -> Any:
        """Readers of files without a column may take it from elsewhere."""
        return None

    def _name(self, path: str) -> str:
        root = self.root.rstrip("/")
        full = self._absolute(path) if self.local else path
        if root and not full.startswith(root + "/"):
            raise ValueError(f"{path} is not below {self.root}")
        return full[len(root):].lstrip("/")

    def _absolute(self, path: str) -> str:
        """The absolute path of a file. `abspath` is slower than `stat`, so once a folder."""
        folder, slash, name = path.rpartition("/")
        if folder + slash not in self._absolute_folders:
            self._absolute_folders[folder + slash] = os.path.abspath(folder + slash).rstrip("/")
        return f"{self._absolute_folders[folder + slash]}/{name}"

    def identity(self, path: str) -> Identity | None:
        """What identifies a file now; None if it does not exist, or its name is not UTF-8."""
        if self._fsspec is not None:
            self._fsspec.invalidate_cache()
            try:
                return self._from_fsspec(path, self._fsspec.info(path))
            except FileNotFoundError:
                return None
        if not self.local:
            return self._from_arrow(path, self.filesystem.get_file_info(path))
        try:
            found = os.stat(path)
            name = self._name(path)
            name.encode()
        except (FileNotFoundError, NotADirectoryError, UnicodeEncodeError):
            return None
        # The same etag as Rust's object_store computes.
        etag = f"{found.st_ino:x}-{max(found.st_mtime_ns, 0) // 1000:x}-{found.st_size:x}"
        return name, found.st_size, etag, found.st_mtime_ns

    def _from_arrow(self, path: str, info: Any) -> Identity | None:
        if not info.is_file or info.size is None:
            return None
        return self._name(path), info.size, None, info.mtime_ns

    def _from_fsspec(self, path: str, info: Mapping[str, Any]) -> Identity | None:
        if info.get("type") != "file" or info.get("size") is None:
            return None
        etag = next((info[key] for key in ("ETag", "etag") if info.get(key)), None)
        keys = ("LastModified", "last_modified", "updated", "mtime", "modified")
        changed = next((info[key] for key in keys if info.get(key) is not None), None)
        if changed is None and etag is None:
            try:
                changed = self._fsspec.modified(path)
            except (NotImplementedError, KeyError):
                changed = None
        return self._name(path), info["size"], etag, _nanoseconds(changed)

    def _identities(self) -> list[Identity | None]:
        if self.local:
            return [self.identity(path) for path in self.paths]
        if self._fsspec is not None:
            if not self._listed:
                self._fsspec.invalidate_cache()
                for folder, depth in self._folders():
                    self._listed |= self._fsspec.find(folder, maxdepth=depth, detail=True)
            return [
                self._from_fsspec(path, self._listed[path])
                if path in self._listed else self.identity(path)
                for path in self.paths
            ]
        found: dict[str, Any] = {}
        import pyarrow.fs as fs

        for folder, depth in self._folders():
            selector = fs.FileSelector(folder, allow_not_found=True, recursive=depth is None)
            found |= {info.path: info for info in self.filesystem.get_file_info(selector)}
        rest = [path for path in self.paths if path not in found]
        found |= dict(zip(rest, self.filesystem.get_file_info(rest) if rest else []))
        return [self._from_arrow(path, found[path]) for path in self.paths]

    def _folders(self) -> list[tuple[str, int | None]]:
        """Folders with several of the files, and the depth of their listing: 1, or None for folders
        of columns (`day=1/`), which are listed with their parent."""
        tops: dict[str, list[list[str]]] = {}
        for path in self.paths:
            folder = path.rpartition("/")[0]
            tops.setdefault(_HIVE.sub("", folder), []).append(folder.split("/"))
        found: list[tuple[str, int | None]] = []
        for folders in tops.values():
            common = os.path.commonprefix(folders)
            if len(folders) > 1 and any(common):
                depth = 1 if all(folder == common for folder in folders) else None
                found.append(("/".join(common), depth))
        return found

    def listed(self) -> list[Identity]:
        """The identities, with a name that no index has for files that do not exist."""
        return [identity or ("", 0, None, None) for identity in self.identities]


def open_store(url: str) -> tuple[Any, str]:
    """The file system of fsspec for a URL, and the path in it."""
    if "::" in url:
        raise ValueError(f"{url}: a chain of stores: give the URL of the last one")
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise ImportError(f"{url}: install fsspec, or give a dataset of pyarrow") from None
    return url_to_fs(url)


def local_path(path: str) -> str:
    if not path.startswith("file://"):
        return path
    return unquote(urlsplit(path).path)


def _nanoseconds(time: Any) -> int | None:
    """A time as stores report it: a datetime, seconds, or text."""
    import datetime

    if isinstance(time, str):
        try:
            time = datetime.datetime.fromisoformat(time)
        except ValueError:
            return None
    if isinstance(time, datetime.datetime):
        if time.tzinfo is None:
            time = time.replace(tzinfo=datetime.timezone.utc)
        since = time - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    if isinstance(time, (int, float)):
        return round(time * 1e9) if isinstance(time, float) else time * 10**9
    return None


def _is_data(path: str, first: bytes | None = None) -> bool:
    """Whether a path below a folder is a file with rows. Readers open hidden Parquet files too."""
    parts = path.strip("/").split("/")
    if any(part in _LOGS for part in parts[:-1]) or parts[-1] in _FOOTERS:
        return False
    if not any(part[:1] in ("_", ".") for part in parts):
        return True
    return parts[-1].lower().endswith(_PARQUET) or first == b"PAR1"


def _files_below(folder: str, top: str, above: frozenset[str]) -> Iterator[str]:
    """The data files of a folder and those below it. A link to a folder above ends the descent."""
    real = os.path.realpath(folder)
    if real in above:
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _files_below(entry.path, top, above | {real})
                continue
            path = entry.path[len(top):]
            if _is_data(path):
                yield entry.path
            elif "." not in entry.name[1:] and entry.is_file():
                with open(entry.path, "rb") as opened:
                    first = opened.read(4)
                if _is_data(path, first):
                    yield entry.path

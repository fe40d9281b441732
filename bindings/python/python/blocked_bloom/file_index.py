"""One index over the Parquet files of a data set: which row groups may have a value.

Files are read, and values typed, by pyarrow. What values are as keys is what DataFusion's functions
take them for, so that an index which one of them built is read by the other.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Self, TypeAlias
from uuid import UUID

import numpy as np

from ._native import FileIndexWriter, OpenedFileIndex

__all__ = ["FileIndex", "RowGroups"]

_Path: TypeAlias = str | os.PathLike[str]
_Data: TypeAlias = _Path | Iterable[_Path] | Any  # or a pyarrow.dataset.FileSystemDataset
_Identity: TypeAlias = tuple[str, int, str | None, int | None]

_UNITS = {"s": ("s", 0), "ms": ("ms", 1), "us": ("µs", 2), "ns": ("ns", 3)}
_BATCH_ROWS = 1 << 16


class RowGroups(NamedTuple):
    """What is to be read of a file: its row groups of these numbers, or, if they are None, all,
    since nothing is known of the file as it is now."""

    path: str
    row_groups: list[int] | None


def _key(data_type: Any) -> tuple[str, int]:
    """The name of a type in Rust's Arrow library, and the seed of its keys."""
    import pyarrow as pa
    import pyarrow.types as types

    if isinstance(data_type, pa.BaseExtensionType):
        data_type = data_type.storage_type
    if types.is_dictionary(data_type):
        (index, _), (values, seed) = _key(data_type.index_type), _key(data_type.value_type)
        return f"Dictionary({index}, {values})", seed
    name = str(data_type)
    if types.is_boolean(data_type):
        return "Boolean", 1
    if types.is_integer(data_type):
        return ("UInt" if name[0] == "u" else "Int") + str(data_type.bit_width), 1
    if types.is_floating(data_type):
        return f"Float{data_type.bit_width}", 2
    strings = {
        pa.string(): "Utf8", pa.large_string(): "LargeUtf8", pa.string_view(): "Utf8View",
        pa.binary(): "Binary", pa.large_binary(): "LargeBinary", pa.binary_view(): "BinaryView",
    }
    if data_type in strings:
        return strings[data_type], 3
    if types.is_fixed_size_binary(data_type):
        return f"FixedSizeBinary({data_type.byte_width})", 3
    if types.is_date(data_type):
        return f"Date{data_type.bit_width}", {32: 4, 64: 5}[data_type.bit_width]
    if types.is_timestamp(data_type):
        unit, number = _UNITS[data_type.unit]
        zone = f', "{data_type.tz}"' if data_type.tz is not None else ""
        return f"Timestamp({unit}{zone})", 6 + 256 * number + (4096 if zone else 0)
    if types.is_time(data_type):
        unit, number = _UNITS[data_type.unit]
        return f"Time{data_type.bit_width}({unit})", 7 + 256 * number
    if types.is_duration(data_type):
        unit, number = _UNITS[data_type.unit]
        return f"Duration({unit})", 8 + 256 * number
    if types.is_decimal(data_type):
        text = f"Decimal{data_type.bit_width}({data_type.precision}, {data_type.scale})"
        return text, 9 + 256 * (data_type.scale & 0xFF)
    raise TypeError(f"values of type {data_type} cannot be looked up in an index")


def _plain(name: str) -> str:
    """The type of the values of a dictionary, else the type."""
    while name.startswith("Dictionary("):
        name = name.split(", ", 1)[1][:-1]
    return name


_TEXTS = ("Utf8", "LargeUtf8", "Utf8View")
_BYTES = ("Binary", "LargeBinary", "BinaryView")
_WIDER = {
    "Int8": ("Int16", "Int32", "Int64"),
    "Int16": ("Int32", "Int64"),
    "Int32": ("Int64",),
    "UInt8": ("UInt16", "UInt32", "UInt64", "Int16", "Int32", "Int64"),
    "UInt16": ("UInt32", "UInt64", "Int32", "Int64"),
    "UInt32": ("UInt64", "Int64"),
    "Float16": ("Float32", "Float64"),
    "Float32": ("Float64",),
    **{text: _TEXTS + _BYTES for text in _TEXTS + _BYTES},
}
_DECIMAL = re.compile(r"Decimal\d+\((\d+), (-?\d+)\)")
_ZONED = re.compile(r'Timestamp\((\S+), ".*"\)')


def _keeps_keys(own: str, read: str) -> bool:
    """Whether each value of a file's own type has the key that it has as it is read. A type that is
    not known keeps none, and files of it are read."""
    own, read = _plain(own), _plain(read)
    if own == read or read in _WIDER.get(own, ()):
        return True
    if own.startswith("FixedSizeBinary("):
        return read in _BYTES
    if (a := _ZONED.fullmatch(own)) and (b := _ZONED.fullmatch(read)):
        return a[1] == b[1]
    if (a := _DECIMAL.fullmatch(own)) and (b := _DECIMAL.fullmatch(read)):
        return a[2] == b[2] and int(a[1]) <= int(b[1])
    return False


def _arrays(array: Any) -> list[Any]:
    """The values of an array in the form of their keys: integers, strings or bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as types

    if isinstance(array, pa.ChunkedArray):
        return [part for chunk in array.chunks for part in _arrays(chunk)]
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    data_type = array.type
    if types.is_dictionary(data_type):
        values = data_type.value_type
        if types.is_boolean(values) or types.is_integer(values) or _key(values)[1] == 3:
            return [array]
        return _arrays(array.dictionary_decode())
    if types.is_floating(data_type):
        floats = array.cast(pa.float64())
        # One zero, and one NaN.
        floats = pc.if_else(pc.is_nan(floats), float("nan"), pc.add(floats, 0.0))
        return [floats.view(pa.int64())]
    if types.is_decimal256(data_type):
        array = array.drop_null()
        data, size = array.buffers()[1], 32 * len(array)
        words = np.frombuffer(data, np.int64, size // 8, 32 * array.offset).reshape(-1, 4)
        # 16 bytes if they suffice.
        narrow = (words[:, 2:] == words[:, 1:2] >> 63).all(axis=1)
        return [
            pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(part.shape[1] * 8), len(part), [None, pa.py_buffer(part.tobytes())]
            )
            for part in (words[narrow, :2], words[~narrow])
        ]
    if types.is_decimal(data_type):
        return [array.cast(pa.decimal128(38, data_type.scale)).view(pa.binary(16))]
    if types.is_temporal(data_type):
        return [array.view(pa.int32() if data_type.bit_width == 32 else pa.int64())]
    return [array]


class _Listing:
    """The files that there are now: their paths, and what an index knows them by."""

    def __init__(self, data: _Data, root: _Path | None) -> None:
        import pyarrow.dataset as dataset
        import pyarrow.fs as fs

        self.schema = None
        self.filesystem: Any = fs.LocalFileSystem()
        if isinstance(data, dataset.Dataset):
            if not isinstance(data, dataset.FileSystemDataset):
                raise TypeError(f"a {type(data).__name__} has no files: give a dataset of files")
            if not isinstance(data.format, dataset.ParquetFileFormat):
                raise TypeError(f"files of the format {data.format.default_extname}, not Parquet")
            self.schema, self.filesystem, self.paths = data.schema, data.filesystem, data.files
        elif isinstance(data, (str, os.PathLike)):
            self.paths = sorted(_below(os.fspath(data)))
        else:
            self.paths = [os.fspath(path) for path in data]
        self.local = isinstance(self.filesystem, fs.LocalFileSystem)
        root = os.fspath(root) if root is not None else "/" if self.local else ""
        self.root = os.path.abspath(root) if self.local else root
        self.identities = self._identities()

    def _name(self, path: str) -> str:
        root = self.root.rstrip("/")
        full = os.path.abspath(path) if self.local else path
        if root and not full.startswith(root + "/"):
            raise ValueError(f"{path} is not below {self.root}")
        return full[len(root):].lstrip("/")

    def identity(self, path: str) -> _Identity | None:
        """What is known of a file; None if it is not there."""
        if not self.local:
            return self._of_info(path, self.filesystem.get_file_info(path))
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return None
        # As Rust's object_store makes it.
        etag = f"{found.st_ino:x}-{max(found.st_mtime_ns, 0) // 1000:x}-{found.st_size:x}"
        return self._name(path), found.st_size, etag, found.st_mtime_ns

    def _of_info(self, path: str, info: Any) -> _Identity | None:
        if not info.is_file or info.size is None:
            return None
        return self._name(path), info.size, None, info.mtime_ns

    def _identities(self) -> list[_Identity | None]:
        if self.local:
            return [self.identity(path) for path in self.paths]
        infos = self.filesystem.get_file_info(self.paths)
        return [self._of_info(path, info) for path, info in zip(self.paths, infos)]

    def listed(self) -> list[_Identity]:
        """Of files that are not there, a name that no index has."""
        return [identity or ("", 0, None, None) for identity in self.identities]


def _below(path: str) -> Iterator[str]:
    """The files of a directory, but for those that begin with "." or "_", as pyarrow has it."""
    if not os.path.isdir(path):
        yield path
        return
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.name[0] in "._":
                continue
            if entry.is_dir():
                yield from _below(entry.path)
            else:
                yield entry.path


class _Reader:
    """The columns of a file that are indexed."""

    def __init__(self, file: Any, columns: list[tuple[str, int]]) -> None:
        self.file = file
        schema = file.schema_arrow
        self.types: list[str | None] = []
        self.columns: list[tuple[int, str]] = []
        for number, (name, seed) in enumerate(columns):
            own = None
            if len(schema.get_all_field_indices(name)) == 1:
                try:
                    own, own_seed = _key(schema.field(name).type)
                except TypeError:
                    own_seed = None
                own = own if own_seed == seed else None
            self.types.append(own)
            if own is not None:
                self.columns.append((number, name))

    def batches(self) -> Iterator[list[tuple[int, Any]] | None]:
        """The columns of each batch, and None where a row group ends."""
        names = [name for _, name in self.columns]
        for group in range(self.file.metadata.num_row_groups):
            if names:
                batches = self.file.iter_batches(
                    batch_size=_BATCH_ROWS, row_groups=[group], columns=names
                )
                for batch in batches:
                    yield [
                        (number, part)
                        for number, name in self.columns
                        for part in _arrays(batch.column(batch.schema.get_field_index(name)))
                    ]
            yield None


def _write(
    writer: FileIndexWriter,
    columns: list[tuple[str, int]],
    listing: _Listing,
    paths: list[str],
    progress: Callable[[int, int, str], object] | None,
) -> dict[str, str]:
    """Adds files. Returns those that are left out, and why."""
    import pyarrow.parquet as parquet

    left_out = {}
    for done, path in enumerate(paths, 1):
        try:
            identity = listing.identity(path)
            if identity is None:
                raise FileNotFoundError(path)
            with listing.filesystem.open_input_file(path) as opened:
                reader = _Reader(parquet.ParquetFile(opened, pre_buffer=True), columns)

                def batches() -> Iterator[list[tuple[int, Any]] | None]:
                    yield from reader.batches()
                    # Before the file is in the index.
                    if listing.identity(path) != identity:
                        raise OSError("it changed while it was read")

                groups = reader.file.metadata.num_row_groups
                writer.add(identity, reader.types, groups, batches())
        except Exception as error:
            if writer.failed:
                raise
            left_out[path] = str(error) or type(error).__name__
        if progress is not None:
            progress(done, len(paths), path)
    return left_out


class FileIndex:
    """One index over the Parquet files of a data set: which row groups may have a value.

    `build` makes one, `open` opens it. An index never says which files there are: that is looked up
    in the data set each time. A file that is not known as it is now, by name, length and time, is
    always read.

    >>> import os, tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from blocked_bloom import FileIndex
    >>> folder = tempfile.TemporaryDirectory()
    >>> for day in range(3):
    ...     spans = pa.table({"trace": [f"{day}-{i}" for i in range(100)]})
    ...     pq.write_table(spans, f"{folder.name}/{day}.parquet", row_group_size=50)
    >>> index = FileIndex.build(folder.name, ["trace"], folder.name + ".index")
    >>> [(os.path.basename(path), groups) for path, groups in index.files(trace="1-70")]
    [('1.parquet', [1])]
    >>> os.remove(folder.name + ".index"); folder.cleanup()
    """

    def __init__(self, path: _Path, data: _Data, root: _Path | None, name_suffices: bool) -> None:
        self._path = os.fspath(path)
        if not isinstance(data, (str, os.PathLike)) and not hasattr(data, "files"):
            data = list(data)
        self._data, self._root, self._name_suffices = data, root, name_suffices
        self._index = OpenedFileIndex(self._path, name_suffices)
        #: The files that the last `build` or `update` could not read, and why. They are read.
        self.left_out: dict[str, str] = {}

    @classmethod
    def build(
        cls,
        data: _Data,
        columns: Iterable[str],
        path: _Path,
        *,
        root: _Path | None = None,
        name_suffices: bool = False,
        false_row_groups: float | None = None,
        part_values: int | None = None,
        memory: int | None = None,
        progress: Callable[[int, int, str], object] | None = None,
    ) -> Self:
        """Builds an index of columns of all files of a data set, and writes it to `path`, whose
        file it replaces as a whole.

        `data` is a dataset of pyarrow, a directory, a path or a list of paths; `columns` have
        strings, bytes, integers, booleans, floats, dates, times, durations or decimals, or
        dictionaries of them. A TypeError refuses others. Files that have a column in a type with
        other keys are not indexed in it.

        `progress(done, all, path)` is called after each file. Files that cannot be read are in
        `left_out`. `false_row_groups` (0.0001) is the share of row groups that the lookup of an
        absent value reads in vain; `part_values` (256) and `memory` (64 MiB) are those of
        docs/file-index.md.

        An index knows files by their paths below `root`: "/" for local files, as DataFusion's own
        store of local files has it. For a bucket it is the bucket's name. `name_suffices` is for
        table formats whose files never change: those of an indexed name and length are known.
        """
        columns = [columns] if isinstance(columns, str) else list(columns)
        listing = _Listing(data, root)
        schema = listing.schema
        if schema is None:
            import pyarrow.parquet as parquet

            if not listing.paths:
                raise ValueError("no files: their columns have no types")
            schema = parquet.read_schema(listing.paths[0])
        partitioning = getattr(data, "partitioning", None)
        in_path = partitioning.schema.names if partitioning is not None else []
        keys = []
        for name in columns:
            if name in in_path:
                raise ValueError(f"column {name!r} is part of the paths, and not of the files")
            if len(schema.get_all_field_indices(name)) != 1:
                raise ValueError(f"column {name!r} is not in the files, or there more than once")
            try:
                keys.append((name, _key(schema.field(name).type)[1]))
            except TypeError as error:
                raise TypeError(f"column {name!r}: {error}") from None
        writer = FileIndexWriter(
            path, keys, time.time_ns(), false_row_groups, part_values, memory
        )
        left_out = _write(writer, keys, listing, listing.paths, progress)
        writer.finish()
        index = cls(path, data, root, name_suffices)
        index.left_out = left_out
        return index

    @classmethod
    def open(
        cls,
        path: _Path,
        data: _Data,
        *,
        root: _Path | None = None,
        name_suffices: bool = False,
    ) -> Self:
        """Reads an index into memory, and verifies it. The arguments are those of `build`."""
        return cls(path, data, root, name_suffices)

    def update(self, *, progress: Callable[[int, int, str], object] | None = None) -> int:
        """Adds the files that are new or have changed, and drops those that are not there any more.
        Returns how many were added.

        The file of the index is replaced as a whole, if anything changes. What is added makes
        lookups slower for each update, until one that drops files merges all: add many at a time.
        """
        listing = _Listing(self._data, self._root)
        listed = [identity for identity in listing.identities if identity is not None]
        known = self._index.known(listing.listed())
        new = [
            path
            for path, identity, known in zip(listing.paths, listing.identities, known)
            if identity is not None and not known
        ]
        if not new and self._index.counts()[2] == sum(known):
            self.left_out = {}
            return 0
        tag = time.time_ns()
        writer = FileIndexWriter.from_index(self._path, self._index, listed, tag)
        keys = [(name, seed) for name, seed, _ in self._index.columns()]
        left_out = _write(writer, keys, listing, new, progress)
        writer.finish()
        self._index = OpenedFileIndex(self._path, self._name_suffices)
        self.left_out = left_out
        return len(new) - len(left_out)

    def _look_up(self, listing: _Listing, values: dict[str, Any]) -> list[list[int] | None]:
        lookups = []
        columns = self._index.columns()
        for name, given in values.items():
            numbers = [number for number, column in enumerate(columns) if column[0] == name]
            if not numbers:
                names = ", ".join(column[0] for column in columns)
                raise KeyError(f"no column {name!r} in the index (it has {names})")
            _, seed, types = columns[numbers[0]]
            lookups.append((numbers[0], seed, *_values(given, types, name, listing.schema, seed)))
        if not lookups:
            raise TypeError("no column: give column=value or column=[value, ...]")
        return self._index.row_groups(lookups, listing.listed())

    def files(self, /, **values: Any) -> list[RowGroups]:
        """The files that are to be read for the rows which have one of these values in each of
        these columns: `column=value`, or `column=[value, ...]`.

        Values are those of the column's type. None is no value: an index does not know NULL.
        """
        listing = _Listing(self._data, self._root)
        groups = self._look_up(listing, values)
        left = zip(listing.paths, groups)
        return [RowGroups(path, groups) for path, groups in left if groups != []]

    def fragments(self, dataset: Any, /, **values: Any) -> list[Any]:
        """The fragments of a dataset of pyarrow, each with the row groups that are to be read, as
        `files` has them. `FileSystemDataset(fragments, ...)` makes a dataset of them.

        The footers of files that are left are read.
        """
        listing = _Listing(dataset, self._root)
        groups = dict(zip(listing.paths, self._look_up(listing, values)))
        fragments = []
        for fragment in dataset.get_fragments():
            left = groups[fragment.path]
            if left:
                # It may have some of the file's row groups alone.
                own = {group.id for group in fragment.row_groups}
                left = [group for group in left if group in own]
            if left is None:
                fragments.append(fragment)
            elif left:
                fragments.append(fragment.subset(row_group_ids=left))
        return fragments

    @property
    def columns(self) -> list[str]:
        """The names of the columns that are indexed."""
        return [name for name, _, _ in self._index.columns()]

    def __len__(self) -> int:
        """How many files are indexed, be they still there or not."""
        return self._index.counts()[2]

    def __repr__(self) -> str:
        row_groups, size, files = self._index.counts()
        return (
            f"<FileIndex of {', '.join(self.columns)}: {files} files, "
            f"{row_groups} row groups, {size} bytes>"
        )


def _values(
    given: Any, types: list[str], name: str, schema: Any, seed: int
) -> tuple[set[str], list[Any]]:
    """The types of files in which values can be looked up, and the values as keys."""
    import pyarrow as pa

    if isinstance(given, pa.Scalar):
        given = [given.as_py()]
    elif isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        given = [given]
    if not hasattr(given, "__arrow_c_array__"):
        given = [value.bytes if isinstance(value, UUID) else value for value in given]
    found: set[str] = set()
    arrays: list[Any] = []
    # As a dataset has the column, or, of paths alone, as each file has it.
    if schema is not None:
        read_types = {_key(schema.field(name).type)[0]: schema.field(name).type}
    else:
        read_types = {own: _parsed(own) for own in types}
    refused: Exception | None = None
    for read, data_type in read_types.items():
        if data_type is None or _key(data_type)[1] != seed:
            continue
        try:
            array = _typed(given, data_type, name)
        except (TypeError, OverflowError, pa.ArrowException) as error:
            refused = error
            continue
        found |= {
            own for own in types if (_keeps_keys(own, read) if schema is not None else own == read)
        }
        arrays += _arrays(array)
        if pa.types.is_floating(array.type):
            # A narrower number is equal to what the value is rounded to, too.
            wide = pa.array([float(value) for value in array.to_pylist()], pa.float64())
            for narrow in (pa.float32(), pa.float16()):
                arrays += _arrays(wide.cast(narrow, safe=False))
    if refused is not None and not arrays:
        raise TypeError(f"{name}: {refused}") from refused
    return found, arrays


def _typed(given: Any, data_type: Any, name: str) -> Any:
    """Values as an array of the type of a column."""
    import pyarrow as pa

    if pa.types.is_dictionary(data_type):
        data_type = data_type.value_type
    if isinstance(data_type, pa.BaseExtensionType):
        data_type = data_type.storage_type
    if hasattr(given, "__arrow_c_array__"):
        array = pa.array(given).cast(data_type)
    else:
        array = pa.array(given, data_type)
    if array.null_count:
        raise ValueError(f"{name}: None is no value, since an index does not know NULL")
    return array


def _parsed(own: str) -> Any:
    """The type with a name; None for names that are not known."""
    import pyarrow as pa

    own = _plain(own)
    plain = {
        "Boolean": pa.bool_(), "Date32": pa.date32(), "Date64": pa.date64(),
        "Float16": pa.float16(), "Float32": pa.float32(), "Float64": pa.float64(),
    }
    if own in plain:
        return plain[own]
    if re.fullmatch(r"U?Int(8|16|32|64)", own):
        return getattr(pa, own.lower())()
    if own in _TEXTS:
        return pa.string()
    if own in _BYTES or own.startswith("FixedSizeBinary("):
        return pa.binary()
    if decimal := _DECIMAL.fullmatch(own):
        return getattr(pa, own.split("(")[0].lower())(int(decimal[1]), int(decimal[2]))
    if timed := re.fullmatch(r'(\w+)\((s|ms|µs|ns)(?:, "(.*)")?\)', own):
        unit = timed[2].replace("µ", "u")
        of = {"Timestamp": pa.timestamp, "Duration": pa.duration, "Time32": pa.time32,
              "Time64": pa.time64}
        if timed[1] == "Timestamp" and timed[3] is not None:
            return pa.timestamp(unit, timed[3])
        return of[timed[1]](unit) if timed[1] in of else None
    return None

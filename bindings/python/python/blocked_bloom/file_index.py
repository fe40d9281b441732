"""One index over the Parquet files of a data set, which returns row groups that may have a value.

pyarrow reads the files. Keys are those of DataFusion's functions, so that each side reads the
other's indexes.
"""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Self

from ._file_keys import key_arrays, keeps_keys, parse_type, type_key
from ._file_listing import Data, Listing, Path, fixed_data, relisted
from ._file_store import index_path, open_index, replaced
from ._file_tables import Snapshot, is_table, refresh, snapshot
from ._file_values import as_type, read_values
from ._native import FileIndexWriter

__all__ = ["FileIndex", "RowGroups"]

_BATCH_ROWS = 1 << 16
#: Footers that are read to choose the size of parts.
_FOOTERS = 64
#: Footers of Spark with one of these have dates, or times of type INT96, of the Julian calendar.
_LEGACY_DATES, _LEGACY_INT96 = b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"
#: A column of an index: its name, the seed of its keys, and the number of its field in a table.
_Column = tuple[str, int, int | None]


class RowGroups(NamedTuple):
    """A file to read, and the numbers of its row groups to read: None for all of a file that the
    index does not know as it is now."""

    path: str
    row_groups: list[int] | None


class _Reader:
    """Reads the indexed columns of a file. `max_values` is the writer's."""

    def __init__(
        self, file: Any, columns: list[_Column], listing: Listing | Snapshot, max_values: int
    ) -> None:
        self.file, self.max_values = file, max_values
        schema, footer = file.schema_arrow, file.metadata.metadata or {}
        leaves = map(file.schema.column, range(len(file.schema)))
        self.int96 = frozenset(leaf.path for leaf in leaves if leaf.physical_type == "INT96")
        self.types: list[str | None] = []
        self.columns: list[tuple[int, str]] = []
        #: Reasons for columns that are not indexed.
        self.reasons: list[str] = []
        for number, (name, seed, field_id) in enumerate(columns):
            inner = listing.locate(schema, name, field_id)
            if inner is not None:
                data_type = schema.field(inner).type
            else:
                data_type = listing.type_of_nulls(schema, name, field_id)
            own = _column_type(data_type, seed)
            if own is None:
                self.reasons.append(
                    f"column {name!r} is missing, or has values of another type"
                )
            elif own.startswith(("Date", "Timestamp")) and (
                _LEGACY_INT96 if inner in self.int96 else _LEGACY_DATES
            ) in footer:
                own = None
                self.reasons.append(
                    f"column {name!r} has dates of Spark's legacy calendar, which readers convert "
                    "differently"
                )
            self.types.append(own)
            if own is not None and inner is not None:
                self.columns.append((number, inner))

    def batches(self) -> Iterator[list[tuple[int, Any]] | int | None]:
        """Yields the columns of each batch, the number of a column at its end, and None at the end
        of a row group. Large row groups are read column by column, so that one column at a time
        needs memory."""
        metadata = self.file.metadata
        for group in range(metadata.num_row_groups):
            rows = metadata.row_group(group).num_rows
            if 2 * rows * len(self.columns) <= self.max_values:
                yield from self._read(group, self.columns)
            else:
                for column in self.columns:
                    yield from self._read(group, [column])
                    yield column[0]
            yield None

    def _read(self, group: int, columns: list[tuple[int, str]]) -> Iterator[list[tuple[int, Any]]]:
        if not columns:
            return
        names = [name for _, name in columns]
        for batch in self.file.iter_batches(
            batch_size=_BATCH_ROWS, row_groups=[group], columns=names
        ):
            yield [
                (number, part)
                for number, name in columns
                for array in self._forms(batch.column(batch.schema.get_field_index(name)), name)
                for part in key_arrays(array)
            ]

    def _forms(self, array: Any, name: str) -> list[Any]:
        """The values of a column as readers have them: DuckDB and Spark cut INT96 to microseconds,
        and others do not."""
        import pyarrow.compute as pc
        import pyarrow.types as types

        if name not in self.int96 or not types.is_timestamp(array.type):
            return [array]
        cut = pc.floor_temporal(array, unit="microsecond")
        return [array, cut.filter(pc.not_equal(cut, array))]


def _column_type(data_type: Any, seed: int) -> str | None:
    """The name of a type, if its values have keys with this seed."""
    if data_type is None:
        return None
    try:
        own, own_seed = type_key(data_type)
    except TypeError:
        return None
    return own if own_seed == seed else None


def _settles_in(identity: Any) -> float:
    """Seconds until a change of the file is certain to change its time: git calls the file "racily
    clean" until then. Negative if that is so already, infinite if the time is in the future."""
    settled = FileIndexWriter.settle_time(identity)
    if settled is None:
        return 0.0
    left = settled - time.time_ns()
    if identity[3] > time.time_ns():
        # Another clock, up to a quarter of an hour ahead. Later times were set by hand.
        return float("inf") if left < 900 * 10**9 else 0.0
    return left / 1e9


def _write(
    writer: FileIndexWriter,
    columns: list[_Column],
    listing: Listing | Snapshot,
    paths: list[str],
    progress: Callable[[int, int, str], object] | None,
) -> tuple[dict[str, str], int]:
    """Adds files. Returns the files that are not fully indexed, with the reason, and the number of
    those that were added. Files that changed just now are added last."""
    left_out: dict[str, str] = {}
    done, added = 0, 0
    fresh: list[str] = []

    def add(path: str, waits: bool) -> bool:
        nonlocal done, added
        try:
            identity = listing.identity(path)
            if identity is None:
                raise FileNotFoundError(f"{path}: no such file, or a name that is not UTF-8")
            settles_in = _settles_in(identity)
            if 0 < settles_in < float("inf"):
                if not waits:
                    return False
                time.sleep(settles_in)
                identity = listing.identity(path)
                if identity is None:
                    raise FileNotFoundError(path)
                settles_in = _settles_in(identity)
            known = identity if settles_in <= 0 else (*identity[:2], None, None)
            reason = _add(writer, columns, listing, path, identity, known)
            added += 1
        except Exception as error:
            if writer.failed:
                raise
            reason = str(error) or type(error).__name__
        if reason is not None:
            left_out[listing.shown(path)] = reason
        done += 1
        if progress is not None:
            progress(done, len(paths), listing.shown(path))
        return True

    for path in paths:
        if not add(path, False):
            fresh.append(path)
    for path in fresh:
        add(path, True)
    return left_out, added


def _add(
    writer: FileIndexWriter,
    columns: list[_Column],
    listing: Listing | Snapshot,
    path: str,
    identity: Any,
    known: Any,
) -> str | None:
    """Adds a file. Returns a reason if parts of it are not indexed."""
    import pyarrow.parquet as parquet

    with listing.open(path) as opened:
        file = parquet.ParquetFile(opened, pre_buffer=True)
        reader = _Reader(file, columns, listing, writer.max_values)

        def batches() -> Iterator[list[tuple[int, Any]] | int | None]:
            yield from reader.batches()
            # Before the file is in the index.
            if listing.identity(path) != identity:
                raise OSError("it changed while it was read")

        before = writer.oversized
        groups = file.metadata.num_row_groups
        writer.add(known, reader.types, groups, batches())
        reasons = reader.reasons
        if oversized := writer.oversized - before:
            reasons.append(
                f"{oversized} row groups of columns have more than {writer.max_values} different "
                "values: give more memory="
            )
        if known[2:] == (None, None) and identity[2:] != (None, None):
            reasons.append("its time is in the future: it stays unknown until an update")
        return "; ".join(reasons) or None


class FileIndex:
    """One index over the Parquet files of a data set, which returns the row groups to read.

    `build` writes an index, `open` opens it. Folders, patterns and URLs are listed again at each
    lookup, while a dataset of pyarrow keeps the files that it found when it was made. A file that
    is not known as it is now, by name, length, and etag or time, is always returned.

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

    def __init__(
        self,
        path: Path,
        data: Data,
        root: Path | None,
        name_suffices: bool,
        memory: int | None = None,
    ) -> None:
        self._path, self._data = index_path(path), _kept_data(data)
        # The files of a table never change.
        name_suffices = name_suffices or is_table(data)
        self._root, self._name_suffices, self._memory = root, name_suffices, memory
        self._index = open_index(self._path, name_suffices)
        self._snapshot: Snapshot | None = None
        #: The files that the last `build` or `update` could not index, or not in full, with the
        #: reason. Lookups return those files and row groups.
        self.left_out: dict[str, str] = {}

    def _list(self) -> Listing | Snapshot:
        if not is_table(self._data):
            return Listing(self._data, self._root, self._path)
        self._snapshot = snapshot(self._data, self._root, self._snapshot)
        return self._snapshot

    def _relist(self) -> None:
        if is_table(self._data):
            refresh(self._data)
        else:
            self._data = relisted(self._data)

    def __reduce__(self) -> Any:
        arguments = (self._path, self._data, self._root, self._name_suffices, self._memory)
        return type(self), arguments, {"left_out": self.left_out}

    @classmethod
    def build(
        cls,
        data: Data,
        columns: Iterable[str],
        path: Path,
        *,
        root: Path | None = None,
        name_suffices: bool = False,
        false_row_groups: float | None = None,
        part_values: int | None = None,
        memory: int | None = None,
        progress: Callable[[int, int, str], object] | None = None,
    ) -> Self:
        """Builds an index of columns of all files of a data set, and replaces the file at `path`, a
        local path or a URL of fsspec, by it.

        `data` is a dataset of pyarrow, a folder, a file, a glob pattern, a URL of fsspec, an
        iterable of paths, a DeltaTable, or a table or scan of pyiceberg. `columns` hold strings,
        bytes, integers, booleans, floats, dates, times, durations or decimals, or dictionaries of
        them; a TypeError refuses others. A file without a column, or with another type of keys in
        it, is not indexed in this column.

        `progress(done, all, path)` is called after each file. `left_out` names files that were not
        indexed, or not in full. `false_row_groups` (0.0001) is the share of row groups that the
        lookup of an absent value returns; `part_values` (by default chosen from the footers) and
        `memory` (64 MiB) are explained in docs/file-index.md.

        An index knows files by their paths below `root`: "/" for local files, as DataFusion's
        store of local files does. For a bucket it is the bucket's name. `name_suffices` is for
        table formats whose files never change: files with an indexed name and length are known.

        A file that has changed within the last seconds is read after its time has settled, which
        takes up to 3 seconds: a later change could have the same time otherwise.
        """
        import pyarrow as pa
        import pyarrow.parquet as parquet

        columns = [columns] if isinstance(columns, str) else list(columns)
        data, path = _kept_data(data), index_path(path)
        is_snapshot = is_table(data)
        listing = snapshot(data, root, None) if is_snapshot else Listing(data, root, path)
        if not is_snapshot and (not listing.paths or listing.missing is not None):
            where = f" in {listing.missing}" if listing.missing else ""
            raise ValueError(f"no files{where}: their columns have no types")
        keys: dict[str, _Column] = {}
        counts: list[int] = []

        def add_keys(schema: Any) -> None:
            for name in columns:
                if name not in keys and len(schema.get_all_field_indices(name)) == 1:
                    inner, field_id = listing.column(name)
                    keys[name] = (inner, _seed(schema, name), field_id)

        if listing.schema is not None:
            add_keys(listing.schema)
        every = -(-len(listing.paths) // _FOOTERS)
        for number, file in enumerate(listing.paths):
            if len(keys) == len(columns) and (number % every or part_values is not None):
                continue
            try:
                with listing.open(file) as opened:
                    footer = parquet.ParquetFile(opened)
                    groups = range(footer.metadata.num_row_groups)
                    counts += [footer.metadata.row_group(i).num_rows for i in groups]
                    schema = footer.schema_arrow
            except (OSError, UnicodeError, pa.ArrowException):
                continue  # It is left out below.
            if listing.schema is None:
                add_keys(schema)
        for name in columns:
            if listing.schema is not None and name.casefold() in listing.in_path:
                raise ValueError(
                    f"column {name!r} is part of the paths or the table's log, and not of the files"
                )
            if name not in keys:
                raise ValueError(f"column {name!r} is not in the files, or there more than once")
        ordered = [keys[name] for name in columns]
        with replaced(path) as new:
            writer = FileIndexWriter(
                new, ordered, time.time_ns(), false_row_groups, part_values, memory, counts
            )
            left_out, _ = _write(writer, ordered, listing, listing.paths, progress)
            writer.finish()
        index = cls(path, data, root, name_suffices, memory)
        index.left_out = left_out
        if not index._name_suffices:
            _warn_without_times(listing)
        return index

    @classmethod
    def open(
        cls,
        path: Path,
        data: Data,
        *,
        root: Path | None = None,
        name_suffices: bool = False,
        memory: int | None = None,
    ) -> Self:
        """Reads an index into memory, and verifies it. The arguments are those of `build`."""
        return cls(path, data, root, name_suffices, memory)

    def update(
        self,
        *,
        allow_empty: bool = False,
        refresh: bool = False,
        memory: int | None = None,
        progress: Callable[[int, int, str], object] | None = None,
    ) -> int:
        """Adds new and changed files, drops files that no longer exist, and returns the number of
        files added.

        If no file exists, a FileNotFoundError keeps the index: the folder may be missing for a
        while. `allow_empty=True` drops all files. `memory` is by default that of `build` or `open`.

        A dataset of pyarrow keeps its files, and a table its snapshot. `refresh=True` lists the
        folder of a dataset again, the deepest one with all of its files above folders of columns
        (`day=1/`), and loads the newest version of a table. Do not refresh a dataset of a table's
        snapshot: its folder also has the files of other snapshots.

        The file of the index is replaced as a whole, if anything changes. Small updates are merged,
        as an LSM tree merges its runs.
        """
        if refresh:
            self._relist()
        listing = self._list()
        listed = [identity for identity in listing.identities if identity is not None]
        if not listed and len(self) and not allow_empty and not listing.is_table:
            raise FileNotFoundError(
                f"{listing.missing or 'the data set'}: none of the files exists, but {len(self)} "
                "are indexed (allow_empty=True drops them)"
            )
        known = self._index.known(listing.listed())
        new = [
            path
            for path, identity, known in zip(listing.paths, listing.identities, known)
            if identity is not None and not known
        ]
        if not new and self._index.counts()[2] == sum(known):
            self.left_out = {}
            return 0
        keys = [(name, seed, field_id) for name, seed, _, field_id in self._index.columns()]
        with replaced(self._path) as path:
            writer = FileIndexWriter.from_index(
                path, self._index, listed, len(new), time.time_ns(), memory or self._memory
            )
            self.left_out, added = _write(writer, keys, listing, new, progress)
            writer.finish()
        self._index = open_index(self._path, self._name_suffices)
        return added

    def compact(self) -> None:
        """Rewrites the index with all updates merged, those of other processes included. Files are
        neither read nor listed."""
        self._index = open_index(self._path, self._name_suffices)
        with replaced(self._path) as path:
            FileIndexWriter.from_index(path, self._index, None, 0, time.time_ns()).finish()
        self._index = open_index(self._path, self._name_suffices)

    def _look_up(
        self, listing: Listing | Snapshot, values: dict[str, Any], in_paths: list[frozenset[str]]
    ) -> list[list[int] | None]:
        """The row groups of each listed file. A file is not pruned by columns in its path, whose
        values a reader may take from there."""
        if not values:
            raise TypeError("no column: give column=value or column=[value, ...]")
        lookups: dict[str, Any] = {}
        columns = self._index.columns()
        for name, given in values.items():
            own = listing.column(name)
            numbers = [
                number for number, (inner, _, _, field_id) in enumerate(columns)
                if (inner == own[0] if own[1] is None else field_id == own[1])
            ]
            if not numbers:
                names = ", ".join(listing.table_name(inner, id) for inner, _, _, id in columns)
                raise KeyError(f"no column {name!r} in the index (it has {names})")
            _, seed, types, _ = columns[numbers[0]]
            if not all(name.casefold() in in_path for in_path in in_paths):
                found = _values(given, types, name, listing.schema, seed)
                lookups[name] = (numbers[0], seed, *found)
        listed = listing.listed()
        groups: list[list[int] | None] = [None] * len(listed)
        places_by_columns: dict[tuple[str, ...], list[int]] = {}
        for place, in_path in enumerate(in_paths):
            usable = tuple(name for name in lookups if name.casefold() not in in_path)
            places_by_columns.setdefault(usable, []).append(place)
        for usable, places in places_by_columns.items():
            if usable:
                chosen = [lookups[name] for name in usable]
                found = self._index.row_groups(chosen, [listed[place] for place in places])
                for place, of_file in zip(places, found):
                    groups[place] = of_file
        return groups

    def files(self, /, **values: Any) -> list[RowGroups]:
        """Returns the files to read for rows that have one of these values in each of these
        columns: `column=value`, or `column=[value, ...]`.

        Values have the column's type, and keep their precision: a lookup of nanoseconds finds
        nothing in a column of microseconds. Arrow data, Series and arrays are columns of values.
        None cannot be looked up, since an index does not know NULL.

        Files are not pruned by a column that their path has too (`day=1/`).

        `refresh=True` lists a dataset or loads a table again, as `update` does, unless the index
        has a column of this name. Read the files of a table by `rows`: other readers may return
        deleted rows.
        """
        if "refresh" not in self.columns and values.pop("refresh", False):
            self._relist()
        listing = self._list()
        in_paths = [listing.hive_columns(path) | listing.in_path for path in listing.paths]
        groups = self._look_up(listing, values, in_paths)
        left = zip(listing.paths, groups)
        return [RowGroups(listing.shown(path), groups) for path, groups in left if groups != []]

    def fragments(self, dataset: Any, /, **values: Any) -> list[Any]:
        """Returns the fragments of a dataset of pyarrow to read, each with its row groups, as
        `files` does. `FileSystemDataset(fragments, ...)` makes a dataset of them.

        Reads the footers of the files that are returned.
        """
        import pyarrow.dataset as ds

        of_table = is_table(self._data)
        listing = self._list() if of_table else Listing(dataset, self._root)
        all_fragments = list(dataset.get_fragments())
        # pyarrow takes these columns from the path.
        in_path: dict[str, frozenset[str]] = {}
        for fragment in all_fragments:
            keys = ds.get_partition_keys(fragment.partition_expression)
            names = frozenset(name.casefold() for name in keys)
            in_path[fragment.path] = in_path.get(fragment.path, listing.in_path) | names
        in_paths = [in_path.get(path, listing.in_path) for path in listing.paths]
        groups = dict(zip(listing.paths, self._look_up(listing, values, in_paths)))
        fragments = []
        for fragment in all_fragments:
            path = fragment.path
            left = groups.get(listing.aliases.get(path, path)) if of_table else groups[path]
            if left:
                # A fragment may have only some of the file's row groups.
                own = {group.id for group in fragment.row_groups}
                left = [group for group in left if group in own]
            if left is None:
                fragments.append(fragment)
            elif left:
                fragments.append(fragment.subset(row_group_ids=left))
        return fragments

    def rows(self, columns: list[str] | None = None, /, **values: Any) -> Any:
        """Returns rows of a Delta or Iceberg table as a pyarrow.Table: those of the row groups that
        `files` finds, without deleted rows, with the table's columns. Filter them by the values.

        pyiceberg reads whole files, so there the rows of other row groups are returned too.
        """
        if not is_table(self._data):
            raise TypeError("rows() reads Delta and Iceberg tables: use fragments() for a dataset")
        # With `refresh=True`, this changes the snapshot.
        files = self.files(**values)
        return self._list().read(files, columns)

    @property
    def columns(self) -> list[str]:
        """The names of the indexed columns."""
        columns = self._index.columns()
        if not is_table(self._data):
            return [name for name, *_ in columns]
        listing = self._list()
        return [listing.table_name(name, field_id) for name, _, _, field_id in columns]

    def info(self) -> dict[str, Any]:
        """Describes the index and the files that exist: numbers of files that are known and
        unknown, and for each column its types, row groups, values, bits per value, and the row
        groups that the lookup of an absent value returns on average."""
        listing = self._list()
        known = sum(self._index.known(listing.listed()))
        row_groups, size, files = self._index.counts()
        columns = {}
        for column, (_, types, (indexed, absent, oversized, values, bytes), rate) in zip(
            self.columns, self._index.describe()
        ):
            columns[column] = {
                "types": types,
                "row_groups": indexed,
                "row_groups_without_column": absent,
                "row_groups_with_too_many_values": oversized,
                "values": values,
                "bits_per_value": 8 * bytes / values if values else None,
                "false_row_groups": rate,
            }
        return {
            "files_indexed": files,
            "files_known": known,
            "files_unknown": len(listing.paths) - known,
            "row_groups": row_groups,
            "bytes": size,
            "columns": columns,
        }

    def __len__(self) -> int:
        """The number of indexed files, whether they still exist or not."""
        return self._index.counts()[2]

    def __repr__(self) -> str:
        row_groups, size, files = self._index.counts()
        return (
            f"<FileIndex of {', '.join(self.columns)}: {files} files, "
            f"{row_groups} row groups, {size} bytes>"
        )


def _kept_data(data: Data) -> Data:
    return data if is_table(data) else fixed_data(data)


def _seed(schema: Any, name: str) -> int:
    try:
        return type_key(schema.field(name).type)[1]
    except TypeError as error:
        raise TypeError(f"column {name!r}: {error}") from None


def _warn_without_times(listing: Listing) -> None:
    listed = [identity for identity in listing.identities if identity is not None]
    if listed and all(identity[2:] == (None, None) for identity in listed):
        warnings.warn(
            "the file system reports neither etags nor times, so all files are always read: "
            "give name_suffices=True if files never change",
            stacklevel=3,
        )


def _values(
    given: Any, types: list[str], name: str, schema: Any, seed: int
) -> tuple[set[str], list[Any]]:
    """The types of files in which values can be looked up, and the values as keys."""
    import pyarrow as pa

    values = read_values(given, name)
    found: set[str] = set()
    arrays: list[Any] = []
    # As the dataset has the column, or, for paths alone, as each file has it.
    if schema is not None:
        read_types = {type_key(schema.field(name).type)[0]: schema.field(name).type}
    else:
        read_types = {own: parse_type(own) for own in types}
    refused: Exception | None = None
    for read, data_type in read_types.items():
        if data_type is None or type_key(data_type)[1] != seed:
            continue
        try:
            array = as_type(values, data_type)
        except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
            refused = error
            continue
        if data_type == pa.timestamp("ns") and len(array) < len(values):
            # pyarrow reads INT96 as nanoseconds, where years after 2262 wrap around. Other readers
            # have the right ones.
            continue
        found |= {
            own for own in types if (keeps_keys(own, read) if schema is not None else own == read)
        }
        arrays += key_arrays(array)
        if pa.types.is_floating(array.type):
            # A narrower float is equal to the value rounded to it, too.
            wide = pa.array([float(value) for value in array.to_pylist()], pa.float64())
            for narrow in (pa.float32(), pa.float16()):
                arrays += key_arrays(wide.cast(narrow, safe=False))
    if refused is not None and not arrays:
        raise TypeError(f"{name}: {refused}") from refused
    return found, arrays

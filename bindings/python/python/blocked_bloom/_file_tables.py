"""Lists the files of a snapshot of a table: Delta (`deltalake`) or Iceberg (`pyiceberg`).

The table's log has the names and lengths of the files, which never change. The store is not listed.
"""

# pyarrow, deltalake and pyiceberg have no type information here.
# mypy: ignore-errors

import os
import re
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urlsplit

from ._file_listing import Identity, Path

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|/")


def is_table(data: Any) -> bool:
    """Whether data is a DeltaTable, or a Table or a scan of Iceberg."""
    return hasattr(data, "get_add_actions") or _is_iceberg(data)


def _is_iceberg(data: Any) -> bool:
    return hasattr(data, "plan_files") or all(hasattr(data, n) for n in ("scan", "io", "metadata"))


def snapshot(table: Any, root: Path | None, last: "Snapshot | None") -> "Snapshot":
    """The files of a table. Returns `last` if the table still has its version."""
    kind = DeltaSnapshot if hasattr(table, "get_add_actions") else IcebergSnapshot
    version = kind.version(table)
    return last if last is not None and last.key == version else kind(table, root, version)


def refresh(table: Any) -> None:
    """Loads the newest version of a table. A scan of Iceberg keeps its snapshot."""
    if hasattr(table, "get_add_actions"):
        table.update_incremental()
    elif hasattr(table, "refresh"):
        table.refresh()


def _local(path: str) -> str:
    """A path without the scheme of local files: `file:///a` and `file:/a` are `/a`."""
    return re.sub(r"^file:/+", "/", path)


class Snapshot:
    """The files of a table's snapshot, in the form of `Listing`."""

    missing = None
    is_table = True
    schema: Any

    def __init__(self, table: Any, root: Path | None, key: Any) -> None:
        self.table, self.key, self._root = table, key, root
        #: Columns with values in the log instead of the files, in lower case.
        self.in_path: frozenset[str] = frozenset()
        #: Identities by path; and the paths by the names that a dataset of the table has for them.
        self._files: dict[str, Identity] = {}
        self.aliases: dict[str, str] = {}

    def _add(self, path: str, size: int) -> None:
        self._files[path] = (self._name(path), size, None, None)

    def _name(self, path: str) -> str:
        local = _local(path)
        if "://" in local:
            full, root = local.partition("://")[2], os.fspath(self._root or "")
        else:
            full, root = os.path.abspath(local), os.path.abspath(self._root or "/")
        root = root.rstrip("/")
        if root and not full.startswith(root + "/"):
            raise ValueError(f"{path} is not below {root}")
        return full[len(root):].lstrip("/")

    @property
    def paths(self) -> list[str]:
        return list(self._files)

    @property
    def identities(self) -> list[Identity]:
        return list(self._files.values())

    def listed(self) -> list[Identity]:
        return self.identities

    def identity(self, path: str) -> Identity:
        return self._files[path]

    def shown(self, path: str) -> str:
        return path

    def hive_columns(self, path: str) -> frozenset[str]:
        """Readers of a table do not take values from paths."""
        return frozenset()


class DeltaSnapshot(Snapshot):
    """Columns of the index have the names that the files have. They differ from those of the table
    if it maps columns (`delta.columnMapping.mode`)."""

    @staticmethod
    def version(table: Any) -> Any:
        return table.table_uri, table.version()

    def __init__(self, table: Any, root: Path | None, key: Any) -> None:
        import pyarrow as pa

        super().__init__(table, root, key)
        self.schema = pa.schema(table.schema().to_arrow())
        metadata = table.metadata()
        mode, protocol = "none", table.protocol()
        # Without the feature, the table's property means nothing.
        if protocol.min_reader_version == 2 or "columnMapping" in (protocol.reader_features or ()):
            mode = metadata.configuration.get("delta.columnMapping.mode", "none")
        self.physical: dict[str, str] = {}
        #: By names in the files, for tables that find columns by these numbers.
        self._ids: dict[str, bytes] = {}
        for field in self.schema:
            found = field.metadata or {} if mode != "none" else {}
            name = found.get(b"delta.columnMapping.physicalName", field.name.encode()).decode()
            self.physical[field.name] = name
            if mode == "id":
                self._ids[name] = found.get(b"delta.columnMapping.id", b"none")
        self.in_path = frozenset(name.casefold() for name in metadata.partition_columns)
        base = urlsplit(table.table_uri)
        self._store = "" if base.scheme in ("", "file") else f"{base.scheme}://{base.netloc}"
        folder = self._store + unquote(base.path).rstrip("/") + "/"
        actions = pa.table(table.get_add_actions())
        self._partitions: dict[str, dict[str, Any]] = {}
        has_partitions = "partition" in actions.column_names
        for number, path in enumerate(actions["path"].to_pylist()):
            relative = unquote(path)
            full = _local(relative) if _ABSOLUTE.match(path) else folder + relative
            if full.startswith("/"):
                full = self._store + full
            self._add(full, actions["size_bytes"][number].as_py())
            self.aliases[relative] = full
            if has_partitions:
                self._partitions[full] = dict(actions["partition"][number].items())

    def open(self, path: str) -> Any:
        import pyarrow.fs as fs

        if "://" not in path:
            return fs.LocalFileSystem().open_input_file(path)
        from deltalake.fs import DeltaStorageHandler

        scheme, _, rest = path.partition("://")
        bucket, _, name = rest.partition("/")
        options = getattr(self.table, "_storage_options", None)
        store = fs.PyFileSystem(DeltaStorageHandler(f"{scheme}://{bucket}/", options))
        return store.open_input_file(name)

    def column(self, name: str) -> tuple[str, int | None]:
        """The name and the field's number that the index has for a column of the table."""
        if name not in self.physical:
            raise KeyError(f"no column {name!r} in the table (it has {', '.join(self.physical)})")
        return self.physical[name], None

    def table_name(self, name: str, field_id: int | None) -> str:
        """The table's name of a column of the index."""
        return next((own for own, inner in self.physical.items() if inner == name), name)

    def locate(self, schema: Any, name: str, field_id: int | None) -> str | None:
        """A file's name of a column of the index."""
        if name in self._ids:
            return _ids_of_fields(schema).get(self._ids[name])
        return name if len(schema.get_all_field_indices(name)) == 1 else None

    def type_of_nulls(self, schema: Any, name: str, field_id: int | None) -> Any:
        """The column's type if a file without the column has only NULL in it."""
        own = self.table_name(name, field_id)
        if self.physical.get(own) != name or own.casefold() in self.in_path:
            return None
        if any(inner in (own, name) for inner in schema.names):
            return None
        if self._ids and not _ids_of_fields(schema):
            return None
        return self.schema.field(own).type

    @cached_property
    def _kept(self) -> dict[str, Any]:
        """For files with deletion vectors, by name: which rows are not deleted."""
        import pyarrow as pa

        if "deletionVectors" not in (self.table.protocol().reader_features or ()):
            return {}
        found = pa.table(self.table.deletion_vectors())
        names = (self._name(_local(unquote(uri))) for uri in found["filepath"].to_pylist())
        return dict(zip(names, (row.values for row in found["selection_vector"])))

    def read(self, files: list[tuple[str, list[int] | None]], columns: list[str] | None) -> Any:
        """The rows of these files and row groups that are not deleted."""
        import pyarrow as pa
        import pyarrow.parquet as parquet

        fields = [self.schema.field(name) for name in columns or self.schema.names]
        schema = pa.schema([field.remove_metadata() for field in fields])
        parts = [schema.empty_table()]
        for path, groups in files:
            with self.open(path) as opened:
                file = parquet.ParquetFile(opened)
                counts = [
                    file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)
                ]
                groups = list(range(len(counts))) if groups is None else groups
                inner = {
                    name: self.locate(file.schema_arrow, self.physical[name], None)
                    for name in schema.names if name.casefold() not in self.in_path
                }
                wanted = [name for name in inner.values() if name is not None]
                rows = file.read_row_groups(groups, columns=wanted or file.schema_arrow.names[:1])
            kept = self._kept.get(self._files[path][0])
            if kept is not None:
                # It may end before the file does, with rows that are kept.
                rest = sum(counts) - len(kept)
                kept = pa.concat_arrays([kept, pa.repeat(True, max(rest, 0))])
                masks = [kept.slice(sum(counts[:group]), counts[group]) for group in groups]
                rows = rows.filter(pa.chunked_array(masks, pa.bool_()))
            arrays = []
            for field in schema:
                if field.name.casefold() in self.in_path:
                    values = self._partitions[path]
                    value = values.get(field.name, values.get(self.physical[field.name]))
                    value = value if value is not None else pa.scalar(None)
                    arrays.append(pa.repeat(value.cast(field.type), rows.num_rows))
                elif inner[field.name] is None:
                    arrays.append(pa.nulls(rows.num_rows, field.type))
                else:
                    arrays.append(rows[inner[field.name]].cast(field.type))
            parts.append(pa.table(arrays, schema))
        return pa.concat_tables(parts)


def _ids_of_fields(schema: Any) -> dict[bytes, str]:
    """The names of a file's columns by the ids of their fields."""
    ids = ((field.metadata or {}).get(b"PARQUET:field_id") for field in schema)
    return {number: field.name for number, field in zip(ids, schema) if number is not None}


class IcebergSnapshot(Snapshot):
    """Columns of the index have the ids of the table's fields, which a renamed column keeps."""

    @staticmethod
    def version(table: Any) -> Any:
        if hasattr(table, "plan_files"):
            return table
        return table.metadata_location, table.metadata.current_snapshot_id

    def __init__(self, table: Any, root: Path | None, key: Any) -> None:
        super().__init__(table, root, key)
        self.scan = table if hasattr(table, "plan_files") else table.scan()
        self.metadata = self.scan.table_metadata
        self.fields = {field.name: field for field in self.scan.projection().fields}
        self.schema = self.scan.projection().as_arrow()
        #: Fields with values in the metadata, for files without the column.
        self._in_metadata = {
            field.source_id for spec in self.metadata.partition_specs for field in spec.fields
            if str(field.transform) == "identity"
        }
        self._names: dict[int, set[str]] = {}
        mapping = self.metadata.name_mapping()
        for field in mapping.root if mapping is not None else ():
            if field.field_id is not None:
                self._names[field.field_id] = set(field.names)
        self.tasks = {task.file.file_path: task for task in self.scan.plan_files()}
        for path, task in self.tasks.items():
            self._add(path, task.file.file_size_in_bytes)

    def open(self, path: str) -> Any:
        return self.scan.io.new_input(path).open()

    def column(self, name: str) -> tuple[str, int | None]:
        if name not in self.fields:
            raise KeyError(f"no column {name!r} in the table (it has {', '.join(self.fields)})")
        return name, self.fields[name].field_id

    def table_name(self, name: str, field_id: int | None) -> str:
        found = (own for own, field in self.fields.items() if field.field_id == field_id)
        return next(found, name)

    def locate(self, schema: Any, name: str, field_id: int | None) -> str | None:
        found = _ids_of_fields(schema)
        if found:
            return found.get(str(field_id).encode())
        # As of files that were added to the table.
        own = [inner for inner in schema.names if inner in self._names.get(field_id, ())]
        return own[0] if len(own) == 1 else None

    def type_of_nulls(self, schema: Any, name: str, field_id: int | None) -> Any:
        found, own = _ids_of_fields(schema), self.table_name(name, field_id)
        field = self.fields.get(own)
        if not found or str(field_id).encode() in found or field is None:
            return None
        if field.field_id != field_id or field_id in self._in_metadata:
            return None
        return self.schema.field(own).type if field.initial_default is None else None

    def read(self, files: list[tuple[str, list[int] | None]], columns: list[str] | None) -> Any:
        """The rows of these files that are not deleted. pyiceberg reads whole files."""
        from pyiceberg.io.pyarrow import ArrowScan

        schema = self.scan.select(*columns).projection() if columns else self.scan.projection()
        reader = ArrowScan(self.metadata, self.scan.io, schema, self.scan.row_filter)
        return reader.to_table([self.tasks[path] for path, _ in files])

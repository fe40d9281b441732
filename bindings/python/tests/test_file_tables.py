"""Indexes of Delta and Iceberg tables: snapshots, deleted rows, partitions, renamed columns."""

import json
import pathlib
import shutil
import struct

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from blocked_bloom import FileIndex
from blocked_bloom.file_index import RowGroups

deltalake = pytest.importorskip("deltalake")
pyiceberg = pytest.importorskip("pyiceberg")
from deltalake import DeltaTable, WriterProperties, write_deltalake  # noqa: E402
from pyiceberg import manifest  # noqa: E402
from pyiceberg.catalog.sql import SqlCatalog  # noqa: E402
from pyiceberg.expressions import EqualTo  # noqa: E402
from pyiceberg.io.pyarrow import ArrowScan  # noqa: E402
from pyiceberg.typedef import Record  # noqa: E402
from pyiceberg.types import LongType, StringType  # noqa: E402

PARTS = ["x y%/é=1", "b", None]


def sorted_rows(table):
    return sorted(map(str, table.to_pylist()))


def matching(table, column, value):
    return sorted(str(row) for row in table.to_pylist() if row[column] == value)


def scan(table):
    found = pa.table(table.scan())
    return found.select(table.schema().to_arrow().names)


def check(index, table, **values):
    """The rows that the index finds are those of the table."""
    [(column, value)] = values.items()
    assert matching(index.rows(**values), column, value) == matching(scan(table), column, value)
    return index.files(**values)


# Delta


def deletion_vector(rows):
    """As the protocol stores it in the log: a Roaring bitmap in base 85."""
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    found = struct.pack("<IQI", 1681511377, 1, 0)
    found += struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16)
    found += b"".join(struct.pack("<H", row) for row in sorted(rows))
    size = len(found)
    found += b"\0" * (-size % 4)
    words = struct.unpack(f">{len(found) // 4}I", found)
    text = "".join(digits[word // 85**k % 85] for word in words for k in (4, 3, 2, 1, 0))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": size,
            "cardinality": len(rows)}


def commit(folder, *actions):
    log = pathlib.Path(folder) / "_delta_log"
    version = 1 + max(int(path.stem) for path in log.glob("*.json"))
    (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, actions)) + "\n")


def added(folder):
    """The log's last additions, by paths."""
    found = {}
    for path in sorted(pathlib.Path(folder, "_delta_log").glob("*.json")):
        for line in path.read_text().splitlines():
            action = json.loads(line)
            found |= {action["add"]["path"]: action["add"]} if "add" in action else {}
            if "remove" in action and "add" not in action:
                found.pop(action["remove"]["path"], None)
    return found


def delete_rows(folder, path, rows):
    """Deletes rows of a file by a deletion vector, which deltalake reads and does not write."""
    add = added(folder)[path]
    stats = json.dumps(json.loads(add["stats"]) | {"tightBounds": False})
    new = {"deletionVector": deletion_vector(rows), "stats": stats}
    gone = {"path": path, "partitionValues": add["partitionValues"], "dataChange": True,
            "extendedFileMetadata": True, "size": add["size"], "deletionTimestamp": 1}
    commit(folder, {"remove": gone}, {"add": add | new})


def spans(letter, part="b", rows=6):
    return pa.table({
        "t": [f"{letter}{row}" for row in range(rows)], "p": pa.array([part] * rows, pa.string()),
        "n": list(range(rows)),
    })


SMALL = WriterProperties(max_row_group_size=2, write_batch_size=1)


def delta(folder, configuration=None):
    for number, part in enumerate(PARTS):
        write_deltalake(
            folder, spans("abc"[number], part), mode="append", partition_by=["p"],
            writer_properties=SMALL, configuration=configuration if not number else None)
    return DeltaTable(folder)


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_delta_snapshots(tmp_path, mode):
    folder = str(tmp_path / "a b%c")
    table = delta(folder, {"delta.columnMapping.mode": mode})
    logged = added(folder)
    index = FileIndex.build(table, ["t", "n"], tmp_path / "i")
    assert index.left_out == {} and len(index) == 3 and index.columns == ["t", "n"]
    assert index.info()["files_known"] == 3 and set(index.info()["columns"]) == {"t", "n"}
    [file] = check(index, table, t="a3")
    assert file.row_groups == [1] and pq.read_metadata(file.path).num_row_groups == 3
    assert index.files(t="a3", n=9) == [] and len(check(index, table, n=3)) == 3
    assert index.rows(["p"], t="a3").to_pylist() == [{"p": PARTS[0]}] * 2
    # Nothing is added to the table, and the handle keeps its version.
    assert added(folder) == logged
    write_deltalake(folder, spans("d"), mode="append", writer_properties=SMALL)
    assert index.files(t="d3") == [] and index.update() == 0
    newer = DeltaTable(folder)
    [unknown] = check(FileIndex.open(tmp_path / "i", newer), newer, t="d3")
    assert unknown.row_groups is None
    assert index.update(refresh=True) == 1 and table.version() == newer.version()
    [file] = check(index, table, t="d3")
    assert file.row_groups == [1]
    # Rewritten and deleted files leave; time travel reads those of its version.
    rewritten = set(table.file_uris())
    table.delete("n = 3")
    rewritten = set(table.file_uris()) - rewritten
    assert index.rows(t="d3").filter(pc.field("t") == "d3").num_rows == 0
    assert all(file.row_groups is None for file in check(index, table, t="d4"))
    assert index.update() == len(rewritten) == len(index) and index.files(t="d3") == []
    old = DeltaTable(folder, version=newer.version())
    travelled = FileIndex.open(tmp_path / "i", old)
    assert len(check(travelled, old, t="d3")) == 4
    if mode == "none":  # deltalake compacts no other tables.
        write_deltalake(folder, spans("e"), mode="append")
        table.update_incremental()
        assert table.optimize.compact()["numFilesAdded"] == index.update() == 1
        assert len(check(index, table, t="e4")) == 1 and index.files(t="d3") == []
    assert len(check(index, table, t="d4")) == 1
    table.delete()
    assert index.files(t="d4") == [] and index.update() == 0 and len(index) == 0
    with pytest.raises(KeyError, match="no column 'x' in the table"):
        index.files(x=1)
    with pytest.raises(KeyError, match=r"no column 'p' in the index \(it has t, n\)"):
        index.files(p="b")
    with pytest.raises(ValueError, match="column 'p' is part of the paths or the table"):
        FileIndex.build(table, ["p"], tmp_path / "other")


@pytest.mark.parametrize("mode", ["none", "without the feature", "name", "id"])
def test_delta_deletion_vectors(tmp_path, mode):
    folder = str(tmp_path / "d")
    vectors = {} if mode in ("name", "id") else {"delta.enableDeletionVectors": "true"}
    table = delta(folder, vectors | {"delta.columnMapping.mode": mode.split()[0].replace(
        "without", "name")})
    if mode in ("name", "id"):
        features = ["columnMapping", "deletionVectors"]
        commit(folder, {"protocol": {
            "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features,
            "writerFeatures": features}})
        table.update_incremental()
    index = FileIndex.build(table, ["t"], tmp_path / "i")
    for path in added(folder):
        delete_rows(folder, path, [1, 3])
    table.update_incremental()
    assert scan(table).num_rows == 12
    for letter in "abc":
        for row in range(6):
            [file] = check(index, table, t=f"{letter}{row}")
            # The same file, as the index knows it.
            assert file.row_groups == [row // 2]
    assert index.update() == 0
    assert sorted_rows(index.rows(t="a3")) == matching(scan(table), "t", "a2")
    # A file that the index does not know.
    write_deltalake(folder, spans("d"), mode="append", writer_properties=SMALL)
    path = next(path for path, add in added(folder).items() if '"d0"' in add["stats"])
    delete_rows(folder, path, [0])
    table.update_incremental()
    for row in (0, 5):
        assert check(index, table, t=f"d{row}")[0].row_groups is None


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_delta_columns_that_are_added_or_renamed(tmp_path, mode):
    folder = str(tmp_path / "d")
    table = delta(folder, {"delta.columnMapping.mode": mode})
    index = FileIndex.build(table, ["t"], tmp_path / "i")
    field = {"name": "u", "type": "string", "nullable": True, "metadata": {}}
    metadata = None
    for path in sorted(pathlib.Path(folder, "_delta_log").glob("*.json")):
        for line in path.read_text().splitlines():
            metadata = json.loads(line).get("metaData", metadata)
    schema = json.loads(metadata["schemaString"])
    if mode != "none":
        field["metadata"] = {
            "delta.columnMapping.id": 9, "delta.columnMapping.physicalName": "col-9"}
        # `t` is now called `old`, and the new column has its name.
        schema["fields"][0]["name"], field["name"] = "old", "t"
    schema["fields"].append(field)
    metadata |= {"schemaString": json.dumps(schema)}
    if mode != "none":
        metadata["configuration"]["delta.columnMapping.maxColumnId"] = "9"
    commit(folder, {"metaData": metadata})
    table.update_incremental()
    old, new = ("t", "u") if mode == "none" else ("old", "t")
    assert index.columns == [old]
    [file] = check(index, table, **{old: "a3"})
    assert file.row_groups == [1] and index.files(**{old: "zz"}) == []
    with pytest.raises(KeyError, match=f"no column '{new}' in the index"):
        index.files(**{new: "a3"})
    both = FileIndex.build(table, [old, new], tmp_path / "i")
    # Files without the column have NULL in it.
    assert both.left_out == {} and both.files(**{new: "a3"}) == []
    rows = {old: ["zz"], new: ["a3"], "p": ["b"], "n": [1]}
    write_deltalake(folder, pa.table(rows), mode="append")
    table.update_incremental()
    assert both.update() == 1
    for value in ("a3", "zz"):
        for name in (old, new):
            assert len(check(both, table, **{name: value})) == (
                1 if (name, value) in ((old, "a3"), (old, "zz"), (new, "a3")) else 0)
    assert FileIndex.open(tmp_path / "i", table).files(**{new: "zz"}) == []


def test_delta_paths_of_other_folders(tmp_path):
    """As shallow clones have them."""
    folder, other = str(tmp_path / "d"), tmp_path / "other dir"
    table = delta(folder)
    index = FileIndex.build(table, ["t"], tmp_path / "i")
    path, add = next((path, add) for path, add in added(folder).items() if '"b0"' in add["stats"])
    other.mkdir()
    shutil.move(f"{folder}/{path}", other / "b c.parquet")
    gone = {"path": path, "dataChange": True, "deletionTimestamp": 1}
    commit(folder, {"remove": gone}, {"add": add | {"path": (other / "b c.parquet").as_uri()}})
    table.update_incremental()
    assert index.files(t="b1") == [RowGroups(str(other / "b c.parquet"), None)]
    assert matching(index.rows(t="b1"), "t", "b1") == [str({"t": "b1", "p": "b", "n": 1})]
    assert index.update() == 1
    assert index.files(t="b1") == [RowGroups(str(other / "b c.parquet"), [0])]


def test_delta_datasets(tmp_path):
    folder = str(tmp_path / "d")
    table = delta(folder)
    index = FileIndex.build(table, ["t"], tmp_path / "i")
    write_deltalake(folder, spans("d"), mode="append", writer_properties=SMALL)
    dataset = DeltaTable(folder).to_pyarrow_dataset()
    for value, groups in (("a3", [[1]]), ("d3", None), ("zz", [])):
        parts = index.fragments(dataset, t=value)
        rows = ds.FileSystemDataset(parts, dataset.schema, dataset.format, dataset.filesystem)
        filter = pc.field("t") == value
        assert sorted_rows(rows.to_table(filter=filter)) == sorted_rows(
            dataset.to_table(filter=filter))
        # A file that is not in the index's snapshot is always read.
        found = [[group.id for group in part.row_groups] for part in parts]
        assert sorted(found) == [[0, 1, 2]] + (groups or [])


def test_delta_of_a_moved_table_and_of_its_folder(tmp_path):
    """Names below `root` are those of an index of the folder."""
    table = delta(str(tmp_path / "d"))
    FileIndex.build(table, ["t"], tmp_path / "i", root=tmp_path / "d")
    shutil.move(tmp_path / "d", tmp_path / "e")
    moved = DeltaTable(str(tmp_path / "e"))
    index = FileIndex.open(tmp_path / "i", moved, root=tmp_path / "e")
    [file] = check(index, moved, t="a3")
    assert file.row_groups == [1]
    FileIndex.build(tmp_path / "e", ["t"], tmp_path / "i")
    [file] = check(FileIndex.open(tmp_path / "i", moved), moved, t="a3")
    assert file.row_groups == [1]


def test_rows_are_for_tables(tmp_path):
    pq.write_table(spans("a"), tmp_path / "a.parquet")
    with pytest.raises(TypeError, match="rows"):
        FileIndex.build(tmp_path / "a.parquet", ["t"], tmp_path / "i").rows(t="a3")


# Iceberg


@pytest.fixture
def catalog(tmp_path):
    (tmp_path / "ice").mkdir()
    found = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/ice")
    found.create_namespace("n")
    yield found
    found.close()


def iceberg(catalog, name="n.x", **properties):
    sizes = {"write.parquet.row-group-limit": "2", "write.parquet.page-row-limit": "1"}
    table = catalog.create_table(name, spans("a").schema, properties=sizes | properties)
    for letter in "abc":
        table.append(spans(letter))
    return table


def check_iceberg(index, table, **values):
    [(column, value)] = values.items()
    expected = matching(table.scan().to_arrow(), column, value)
    assert matching(index.rows(**values), column, value) == expected
    # With pyiceberg's own plan and filter.
    paths = {file.path for file in index.files(**values)}
    plan = table.scan(row_filter=EqualTo(column, value))
    tasks = [task for task in plan.plan_files() if task.file.file_path in paths]
    rows = ArrowScan(table.metadata, table.io, plan.projection(), plan.row_filter).to_table(tasks)
    assert sorted_rows(rows) == expected
    return index.files(**values)


def test_iceberg_snapshots(tmp_path, catalog):
    table = iceberg(catalog)
    before = sorted(map(str, (tmp_path / "ice").rglob("*")))
    index = FileIndex.build(table, ["t", "n"], tmp_path / "i")
    assert index.left_out == {} and len(index) == 3
    assert sorted(map(str, (tmp_path / "ice").rglob("*"))) == before
    [file] = check_iceberg(index, table, t="a3")
    assert file.row_groups == [1] and file.path.startswith("file://")
    assert len(check_iceberg(index, table, n=3)) == 3 and index.files(t="d3") == []
    old = table.current_snapshot().snapshot_id
    other = catalog.load_table("n.x")
    other.append(spans("d"))
    assert index.files(t="d3") == []
    assert matching(index.rows(t="d3", refresh=True), "t", "d3") != []
    [unknown] = index.files(t="d3")
    assert unknown.row_groups is None and index.update() == 1
    [file] = check_iceberg(index, table, t="d3")
    assert file.row_groups == [1]
    # Rewritten files, time travel, and plans.
    table.delete(EqualTo("t", "a3"))
    assert matching(index.rows(t="a3"), "t", "a3") == []
    assert index.update() == 1 and index.files(t="a3") == []
    check_iceberg(index, table, t="a4")
    travelled = FileIndex.open(tmp_path / "i", table.scan(snapshot_id=old))
    assert matching(travelled.rows(t="a3"), "t", "a3") == matching(
        table.scan(snapshot_id=old).to_arrow(), "t", "a3") != []
    planned = FileIndex.open(tmp_path / "i", table.scan(row_filter=EqualTo("t", "b3")))
    assert len(planned.files(n=3)) == 1 and planned.files(t="a4") == []
    assert planned.rows(["n"], n=3).column_names == ["n"]
    table.delete()
    assert index.files(t="b3") == [] and index.update() == 0 and len(index) == 0


def test_iceberg_columns_that_are_added_or_renamed(tmp_path, catalog):
    table = iceberg(catalog)
    index = FileIndex.build(table, ["t", "n"], tmp_path / "i")
    with table.update_schema() as update:
        update.rename_column("t", "old")
    with table.update_schema() as update:
        update.add_column("t", StringType())
        update.delete_column("n")
    with table.update_schema() as update:
        update.add_column("n", LongType())
    assert index.columns == ["old", "n"]
    [file] = check_iceberg(index, table, old="a3")
    assert file.row_groups == [1] and index.files(old="zz") == []
    for name, value in (("t", "a3"), ("n", 3)):
        with pytest.raises(KeyError, match=f"no column '{name}' in the index"):
            index.files(**{name: value})
    assert FileIndex.build(table, ["old", "t", "n"], tmp_path / "i").left_out == {}
    index = FileIndex.open(tmp_path / "i", table)
    assert index.files(t="a3") == [] and index.files(n=3) == []
    table.append(pa.table({"old": ["zz"], "p": ["b"], "t": ["a3"], "n": [3]}))
    assert index.update() == 1
    for values in ({"t": "a3"}, {"n": 3}, {"old": "zz"}, {"old": "b2"}):
        assert len(check_iceberg(index, table, **values)) == 1, values
    assert index.files(t="zz") == [] == index.files(n=4)
    # An index of the files alone does not know the ids of fields.
    paths = [file.path.removeprefix("file://") for file in index.files(old=["a3", "b3", "c3"])]
    FileIndex.build(paths, ["t"], tmp_path / "i")
    with pytest.raises(KeyError, match="no column 'old' in the index"):
        FileIndex.open(tmp_path / "i", table).files(old="a3")


def test_iceberg_wider_columns(tmp_path, catalog):
    small = pa.table({"t": ["a"], "n": pa.array([7], pa.int32())})
    table = catalog.create_table("n.w", small.schema)
    table.append(small)
    index = FileIndex.build(table, ["n"], tmp_path / "i")
    with table.update_schema() as update:
        update.update_column("n", LongType())
    table.append(pa.table({"t": ["b"], "n": [2**40]}))
    assert [file.row_groups for file in check_iceberg(index, table, n=7)] == [None, [0]]
    assert index.update() == 1
    for value, count in ((7, 1), (2**40, 1), (8, 0)):
        assert len(check_iceberg(index, table, n=value)) == count


def test_iceberg_files_that_were_added(tmp_path, catalog):
    """They have no ids of fields, and may lack a column that is in their partition."""
    paths = []
    for day in (1, 2):
        folder = tmp_path / f"old/day={day}"
        folder.mkdir(parents=True)
        paths.append(f"file://{folder}/a.parquet")
        pq.write_table(pa.table({"t": [f"a{day}"], "day": [day]}), folder / "a.parquet")
    table = catalog.create_table("n.added", pa.schema([("t", pa.string()), ("day", pa.int64())]))
    table.add_files(paths)
    index = FileIndex.build(table, ["t", "day"], tmp_path / "i")
    assert index.left_out == {}
    for values in ({"t": "a1"}, {"day": 2}):
        assert len(check_iceberg(index, table, **values)) == 1
    with table.update_schema() as update:
        update.rename_column("t", "u")
    assert len(check_iceberg(index, table, u="a1")) == 1 and index.files(u="zz") == []


def entry(path, content, partition, spec_id=0):
    """A file of a manifest."""
    found = manifest.DataFile.from_args(
        content=content, file_path=f"file://{path}", file_format=manifest.FileFormat.PARQUET,
        partition=partition, record_count=2, file_size_in_bytes=path.stat().st_size,
        column_sizes={}, value_counts={}, null_value_counts={}, nan_value_counts={},
        lower_bounds={}, upper_bounds={}, key_metadata=None, split_offsets=None,
        equality_ids=None, sort_order_id=None)
    found.spec_id = spec_id
    return found


def test_iceberg_values_that_only_the_metadata_has(tmp_path, catalog):
    """Readers take a column that a file lacks from the file's partition."""
    schema = pa.schema([("t", pa.string()), ("day", pa.int64())])
    table = catalog.create_table("n.days", schema)
    with table.update_spec() as update:
        update.add_identity("day")
    path = tmp_path / "ice/a.parquet"
    field = pa.field("t", pa.string(), metadata={"PARQUET:field_id": "1"})
    pq.write_table(pa.table([["a", "b"]], pa.schema([field])), path)
    with table.transaction() as transaction:
        with transaction.update_snapshot().fast_append() as append:
            data = manifest.DataFileContent.DATA
            append.append_data_file(entry(path, data, Record(7), table.spec().spec_id))
    assert matching(table.scan().to_arrow(), "day", 7) != []
    index = FileIndex.build(table, ["t", "day"], tmp_path / "i")
    assert "day" in index.left_out[f"file://{path}"]
    assert len(check_iceberg(index, table, day=7)) == len(check_iceberg(index, table, t="a")) == 1


def test_iceberg_position_deletes(tmp_path, catalog, monkeypatch):
    """pyiceberg reads them, and writes none: their manifest is one of data with another kind."""
    table = iceberg(catalog)
    index = FileIndex.build(table, ["t"], tmp_path / "i")
    [(data, _)] = index.files(t="a3")
    deleted = pa.table({"file_path": [data] * 2, "pos": pa.array([1, 3], pa.int64())})
    path = tmp_path / "ice/deletes.parquet"
    pq.write_table(deleted, path)
    meta = manifest.ManifestWriterV2._meta.fget
    with monkeypatch.context() as patched:
        writer = manifest.ManifestWriterV2
        patched.setattr(writer, "content", lambda self: manifest.ManifestContent.DELETES)
        patched.setattr(
            writer, "_meta", property(lambda self: meta(self) | {"content": "deletes"}))
        with table.transaction() as transaction:
            with transaction.update_snapshot().fast_append() as append:
                kind = manifest.DataFileContent.POSITION_DELETES
                append.append_data_file(entry(path, kind, Record()))
    assert table.scan().to_arrow().num_rows == 16
    for row in range(6):
        [file] = check_iceberg(index, table, t=f"a{row}")
        assert file.row_groups == [row // 2]
    assert index.update() == 0 and matching(index.rows(t="a3"), "t", "a3") == []

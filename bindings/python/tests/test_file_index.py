"""A file index never leaves out a matching row, even after files were changed or moved."""

import datetime
import decimal
import os
import pathlib
import random
import stat
import subprocess
import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest

import blocked_bloom.file_index as module
from blocked_bloom import FileIndex, FormatError, key_hash

HERE = pathlib.Path(__file__).parent


def write(path, table, groups=2):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=max(1, -(-table.num_rows // groups)))


def spans(random, rows=60):
    traces = [f"{random.getrandbits(64):016x}" for _ in range(rows)]
    traces[rows // 2] = None
    return pa.table({
        "trace": traces,
        "user": pa.array([random.randrange(300) for _ in range(rows)], pa.int32()),
        "status": [random.choice([200, 404]) for _ in range(rows)],
    })


@pytest.fixture
def data(tmp_path):
    source = random.Random(1)
    for file in range(8):
        write(tmp_path / f"data/day={file % 2}/{file}.parquet", spans(source), 1 + file % 4)
    return tmp_path / "data"


def build(data, columns=("trace", "user"), **options):
    return FileIndex.build(data, columns, data.parent / "data.index", **options)


def found(index, **values):
    return {(os.path.basename(path), *groups) for path, groups in index.files(**values)}


def test_files_and_row_groups(data):
    calls = []
    index = build(data, progress=lambda *call: calls.append(call), false_row_groups=1e-6)
    assert [call[:2] for call in calls] == [(n, 8) for n in range(1, 9)]
    assert len(index) == 8 and index.columns == ["trace", "user"] and index.left_out == {}
    assert "8 files, 20 row groups" in repr(index)
    for path in sorted(data.rglob("*.parquet")):
        file = pq.ParquetFile(path)
        for group in range(file.num_row_groups):
            row = file.read_row_group(group).slice(3, 1).to_pylist()[0]
            assert found(index, trace=row["trace"]) == {(path.name, group)}
            wanted = [row["trace"], "absent"]
            assert found(index, trace=wanted, user=row["user"]) == {(path.name, group)}
            assert found(index, trace=row["trace"], user=-1) == set()
            assert any(path.name == name and group in groups
                       for name, *groups in found(index, user=np.array([row["user"]])))
    assert index.files(trace="absent") == index.files(trace=[]) == []
    again = FileIndex.open(data.parent / "data.index", data)
    assert again.files(user=7) == index.files(user=7) and len(index.files(user=7)) > 0
    assert again.files(user=pa.scalar(7)) == again.files(user=pa.array([7])) == index.files(user=7)
    as_list = FileIndex.open(data.parent / "data.index", sorted(map(str, data.rglob("*.parquet"))))
    assert sorted(as_list.files(user=7)) == sorted(index.files(user=7))


def rows(table):
    return sorted(map(str, table.to_pylist()))


def test_fragments_have_all_rows(data):
    dataset = ds.dataset(data, partitioning="hive")
    index = FileIndex.build(dataset, ["trace", "user"], data.parent / "i")
    source, values = random.Random(2), dataset.to_table()["trace"].to_pylist()
    # Unknown to the index: changed, replaced and new files.
    write(data / "day=0/0.parquet", spans(source), 3)
    write(data / "day=1/new.parquet", spans(source), 2)
    dataset = ds.dataset(data, partitioning="hive")
    read = 0
    for _ in range(100):
        traces = [source.choice(values) for _ in range(3)] + ["absent"]
        traces = [trace for trace in traces if trace is not None]
        user = source.randrange(300)
        for values_of, filter in [
            ({"trace": traces}, pc.field("trace").isin(traces)),
            ({"user": user}, pc.field("user") == user),
            ({"user": user, "trace": traces[0]},
             (pc.field("user") == user) & (pc.field("trace") == traces[0])),
        ]:
            fragments = index.fragments(dataset, **values_of)
            left = ds.FileSystemDataset(
                fragments, dataset.schema, dataset.format, dataset.filesystem
            )
            assert rows(left.to_table(filter=filter)) == rows(dataset.to_table(filter=filter))
            read += len(fragments)
            paths = {fragment.path for fragment in fragments}
            assert {str(data / "day=0/0.parquet"), str(data / "day=1/new.parquet")} <= paths
    assert read < 300 * 6
    # Fragments of a dataset may be parts of files.
    parts = [f.subset(row_group_ids=[0]) for f in dataset.get_fragments()]
    part = ds.FileSystemDataset(parts, dataset.schema, dataset.format, dataset.filesystem)
    user = int(part.to_table()["user"][5])
    left = ds.FileSystemDataset(
        index.fragments(part, user=user), part.schema, part.format, part.filesystem
    )
    filter = pc.field("user") == user
    assert rows(left.to_table(filter=filter)) == rows(part.to_table(filter=filter)) != []


def test_polars(data):
    index = build(data)
    trace = pl.read_parquet(data / "day=0/2.parquet")["trace"][5]
    paths = [path for path, _ in index.files(trace=trace)]
    assert len(paths) == 1
    everything = pl.scan_parquet(data / "**/*.parquet", hive_partitioning=False)
    query = pl.col("trace") == trace
    assert pl.scan_parquet(paths).filter(query).collect().equals(everything.filter(query).collect())


def test_unknown_files_are_read_until_an_update(data):
    index = build(data)
    source = random.Random(3)
    before = len((data.parent / "data.index").read_bytes())
    assert index.update() == 0
    new = spans(source)
    write(data / "day=0/new.parquet", new)
    write(data / "day=0/0.parquet", spans(source), 1)  # replaced
    (data / "day=1/1.parquet").unlink()
    same = data / "day=0/2.parquet"                    # same length, another time
    os.utime(same, ns=(1, os.stat(same).st_mtime_ns + 5_000))
    changed = {"new.parquet", "0.parquet", "2.parquet"}
    left = index.files(trace="absent")
    assert {os.path.basename(path) for path, groups in left} == changed
    assert all(groups is None for _, groups in left)
    calls = []
    assert index.update(progress=lambda *call: calls.append(call)) == 3 and len(calls) == 3
    assert len(index) == 8 and index.files(trace="absent") == []
    assert found(index, trace=new["trace"][2]) == {("new.parquet", 0)}
    assert found(index, trace=new["trace"][40].as_py()) == {("new.parquet", 1)}
    assert len((data.parent / "data.index").read_bytes()) < 3 * before
    # Only new files are appended.
    write(data / "day=1/newer.parquet", new)
    assert index.update() == 1 and len(index) == 9
    assert found(index, trace=new["trace"][2]) == {("new.parquet", 0), ("newer.parquet", 0)}
    # Copied back with the same time and length, the file has another inode.
    bytes_before, times = same.read_bytes(), os.stat(same)
    (data / "other").write_bytes(bytes_before)
    os.utime(data / "other", ns=(times.st_atime_ns, times.st_mtime_ns))
    os.replace(data / "other", same)
    assert [path for path, groups in index.files(trace="absent")] == [str(same)]
    named = FileIndex.open(data.parent / "data.index", data, name_suffices=True)
    assert named.files(trace="absent") == []


def test_files_that_are_not_there_are_left_to_the_reader(data):
    index = build(data)
    paths = [*map(str, data.rglob("*.parquet")), str(data / "gone.parquet")]
    listed = FileIndex.open(data.parent / "data.index", paths)
    assert listed.files(trace="absent") == [(str(data / "gone.parquet"), None)]
    assert listed.update() == 0 and index.files(trace="absent") == []


def test_another_directory_of_names(data, tmp_path):
    index = build(data, root=tmp_path)
    assert index.files(trace="absent") == []
    moved = tmp_path / "moved"
    moved.mkdir()
    os.rename(data, moved / "data")
    there = FileIndex.open(tmp_path / "data.index", moved / "data", root=moved)
    assert there.files(trace="absent") == []
    # Files under other names are unknown.
    other = FileIndex.open(tmp_path / "data.index", moved / "data")
    assert len(other.files(trace="absent")) == 8
    with pytest.raises(ValueError, match="is not below"):
        FileIndex.open(tmp_path / "data.index", moved / "data", root="/nowhere").files(trace="a")


def test_another_file_system(data):
    """A file system whose listing has no etags."""
    below = fs.SubTreeFileSystem(str(data), fs.LocalFileSystem())
    dataset = ds.dataset("", filesystem=below, format="parquet")
    index = FileIndex.build(dataset, ["trace"], data.parent / "i")
    assert index.files(trace="absent") == []
    path = data / "day=0/0.parquet"
    os.utime(path, ns=(1, os.stat(path).st_mtime_ns + 5_000))
    assert [groups for _, groups in index.files(trace="absent")] == [None]


SPECIAL = [float("nan"), -0.0, 0.1, 1e300]


def table_of_all_types(rows=240):
    """One column for each type of keys. Every fifth value is NULL."""
    number = list(range(rows))
    day = datetime.date(2026, 11, 27)
    nones = lambda values: [None if i % 5 == 4 else v for i, v in enumerate(values)]  # noqa: E731
    floats = [SPECIAL[i] if i < 4 else i / 8 for i in number]
    decimals = [decimal.Decimal(i - 20).scaleb(-2) for i in number]
    wide = [(-1) ** i * decimal.Decimal(7 ** (i % 80)).scaleb(-3) for i in number]
    columns = {"bool": pa.array(nones([i % 3 == 0 for i in number]), pa.bool_())}
    for bits in (8, 16, 32, 64):
        signed, unsigned = getattr(pa, f"int{bits}")(), getattr(pa, f"uint{bits}")()
        columns[f"i{bits}"] = pa.array(nones([i // 2 - 60 for i in number]), signed)
        columns[f"u{bits}"] = pa.array(nones(number), unsigned)
    columns |= {
        "f16": pa.array(nones([np.float16(i / 8) for i in number]), pa.float16()),
        "f32": pa.array(nones(floats), pa.float32()),
        "f64": pa.array(nones(floats), pa.float64()),
        "text": pa.array(nones([f"text {i}" for i in number])),
        "large": pa.array(nones([f"t{i}" for i in number]), pa.large_string()),
        "view": pa.array(nones([f"a view of text {i}" for i in number]), pa.string_view()),
        "bytes": pa.array(nones([b"\xff%d" % i for i in number]), pa.binary()),
        "fixed": pa.array(nones([b"%03d" % i for i in number]), pa.binary(3)),
        "uuid": pa.array(nones([b"%016d" % i for i in number]), pa.binary(16)).cast(pa.uuid()),
        "word": pa.array(nones([f"word {i % 7}" for i in number])).dictionary_encode(),
        "day": pa.array(nones([day + datetime.timedelta(i) for i in number])),
        "d64": pa.array(nones([86_400_000 * i for i in number]), pa.date64()),
        "t32": pa.array(nones(number), pa.time32("ms")),
        "t64": pa.array(nones(number), pa.time64("us")),
        "tns": pa.array(nones([1000 * i for i in number]), pa.time64("ns")),
        "took": pa.array(nones(number), pa.duration("us")),
        "dec": pa.array(nones(decimals), pa.decimal128(12, 2)),
        "dec256": pa.array(nones(wide), pa.decimal256(76, 3)),
        "dec32": pa.array(nones(decimals), pa.decimal32(9, 2)),
    }
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC", "+02:00"):
            name = f"ts_{unit}_{zone}"
            columns[name] = pa.array(nones([i * 1000 for i in number]), pa.timestamp(unit, zone))
    return pa.table(columns)


def test_values_of_every_type_are_found(tmp_path):
    table = table_of_all_types()
    write(tmp_path / "data/all.parquet", table, 20)
    paths = tmp_path / "data"
    by_path = build(paths, table.column_names, false_row_groups=1e-6)
    by_dataset = FileIndex.open(tmp_path / "data.index", ds.dataset(paths))
    read = pq.read_table(tmp_path / "data/all.parquet")
    # Each column is indexed with a known type.
    assert all(len(types) == 1 for _, _, types, _ in by_path._index.columns())
    for index in (by_path, by_dataset):
        pruned = 0
        for name in table.column_names:
            for row in [*range(4), 33, 57, 236]:
                value = read[name][row]
                if value.as_py() is None:
                    continue
                for given in (value, value.as_py()):
                    if isinstance(given, datetime.timedelta) and row > 4:
                        continue
                    [(_, groups)] = index.files(**{name: given})
                    assert row // 12 in groups, (name, row, given)
                    pruned += len(groups) < 20
        assert pruned > 400
    # Equal numbers of other types.
    assert by_path.files(f32=np.float32(0.1)) == by_path.files(f32=0.1) != []
    assert by_path.files(f64=0.0) == by_path.files(f64=-0.0) != []
    assert by_path.files(dec=decimal.Decimal("-0.20")) == by_path.files(dec=decimal.Decimal("-0.2"))


def test_golden(tmp_path, monkeypatch):
    """The index of a file equals DataFusion's byte for byte: its tests read the same file and the
    same hash of the index. `BLOCKED_BLOOM_BLESS=1` rewrites both."""
    parquet, golden = HERE / "golden_files.parquet", HERE / "golden_files.txt"
    if os.environ.get("BLOCKED_BLOOM_BLESS"):
        # Without types that the two read as different types.
        write(parquet, table_of_all_types().drop_columns(["d64", "ts_s_+02:00"]), 3)
    names = pq.read_schema(parquet).names
    size = parquet.stat().st_size
    identity = ("golden_files.parquet", size, None, 4_000_000_000_123_456_789)
    monkeypatch.setattr(module.Listing, "identity", lambda self, path: identity)
    monkeypatch.setattr(module.time, "time_ns", lambda: 1)
    index = FileIndex.build(
        parquet, names, tmp_path / "index", false_row_groups=0.001, part_values=256
    )
    types = [" ".join((name, str(seed), *types)) for name, seed, types, _ in index._index.columns()]
    found = "\n".join([f"{key_hash((tmp_path / 'index').read_bytes()):#018x}", *types, ""])
    if os.environ.get("BLOCKED_BLOOM_BLESS"):
        golden.write_text(found)
    assert found == golden.read_text()


def test_columns_of_several_types(tmp_path):
    """A file is pruned only if its type has the same keys as the type it is read as."""
    types = {"i8": pa.int8(), "i64": pa.int64(), "u16": pa.uint16(), "bool": pa.bool_()}
    for name, data_type in types.items():
        values = pa.array([True, False] if name == "bool" else [1, 7], data_type)
        write(tmp_path / f"data/{name}.parquet", pa.table({"v": values}), 1)
    write(tmp_path / "data/text.parquet", pa.table({"v": ["1", "7"]}), 1)
    write(tmp_path / "data/two.parquet", pa.Table.from_arrays([pa.array([1])] * 2, ["v", "v"]), 1)
    write(tmp_path / "data/none.parquet", pa.table({"w": [1]}), 1)
    files = [tmp_path / f"data/{name}.parquet" for name in
             ("i64", "i8", "u16", "bool", "text", "two", "none")]
    index = FileIndex.build(files, ["v"], tmp_path / "index")

    def left(index, value):
        return {pathlib.Path(path).stem for path, _ in index.files(v=value)}

    always = {"text", "two", "none"}
    # A value that a type cannot represent matches no row.
    assert left(index, 7) == {"i8", "i64", "u16", "bool"} | always
    assert left(index, 300) == {"bool"} | always
    for read, kept in [
        (pa.int64(), {"i8", "i64", "u16"}), (pa.int16(), {"i8"}), (pa.uint16(), {"u16"}),
        (pa.bool_(), {"bool"}), (pa.int32(), {"i8", "u16"}),
    ]:
        paths = [str(file) for file in files]
        dataset = ds.dataset(paths, schema=pa.schema({"v": read}), format="parquet")
        opened = FileIndex.open(tmp_path / "index", dataset)
        assert left(opened, 0 if read != pa.bool_() else True) >= set(types) - kept | always
        if read != pa.bool_():
            assert left(opened, 55) == set(types) - kept | always, read
    as_text = ds.dataset([str(files[4])], schema=pa.schema({"v": pa.string()}), format="parquet")
    assert left(FileIndex.open(tmp_path / "index", as_text), "55") == {"text"}


@pytest.mark.parametrize("column", [
    pa.array([[1]]), pa.array([{"a": 1}]), pa.array([None]),
    pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64())),
])
def test_refused_types(tmp_path, column):
    write(tmp_path / "data/a.parquet", pa.table({"v": column}), 1)
    with pytest.raises(TypeError, match="'v': values of type .* cannot be looked up"):
        build(tmp_path / "data", ["v"])
    assert not (tmp_path / "data.index").exists()


def test_misuse(data, tmp_path):
    index = build(data)
    for values, error, text in [
        ({}, TypeError, "no column"),
        ({"other": 1}, KeyError, "'other' in the index .it has trace, user"),
        ({"trace": None}, ValueError, "None cannot be looked up"),
        ({"trace": ["a", None]}, ValueError, "None cannot be looked up"),
        ({"trace": 7}, TypeError, "trace: "),
        ({"user": "7"}, TypeError, "user: "),
    ]:
        with pytest.raises(error, match=text):
            index.files(**values)
    for columns, text in [(["other"], "'other' is not in the files"), ([], "0 columns")]:
        with pytest.raises(ValueError, match=text):
            build(data, columns)
    with pytest.raises(ValueError, match="part of the paths"):
        FileIndex.build(ds.dataset(data, partitioning="hive"), ["day"], tmp_path / "x")
    with pytest.raises(TypeError, match="has no files"):
        FileIndex.build(ds.dataset(pa.table({"a": [1]})), ["a"], tmp_path / "x")
    with pytest.raises(TypeError, match="not Parquet"):
        csv = ds.dataset([str(next(data.rglob("*.parquet")))], format="csv",
                         schema=pa.schema({"a": pa.string()}))
        FileIndex.build(csv, ["a"], tmp_path / "x")
    with pytest.raises(ValueError, match="no files"):
        FileIndex.build([], ["a"], tmp_path / "x")
    for options, text in [({"part_values": 3}, "parts of 3 values"),
                          ({"false_row_groups": 0.0}, "rate")]:
        with pytest.raises(ValueError, match=text):
            build(data, ["trace"], **options)
    with pytest.raises(FileNotFoundError):
        FileIndex.open(tmp_path / "nothing.index", data)
    stored = bytearray((tmp_path / "data.index").read_bytes())
    for at in [0, 100, len(stored) // 2, len(stored) - 1]:
        damaged = bytearray(stored)
        damaged[at] ^= 1
        (tmp_path / "damaged").write_bytes(damaged)
        with pytest.raises(FormatError, match="damaged: "):
            FileIndex.open(tmp_path / "damaged", data)


def test_unreadable_files_are_left_out(data, monkeypatch):
    (data / "bad.parquet").write_bytes(b"PAR1 and nothing else")
    changing = data / "day=0/0.parquet"
    batches = module._Reader.batches

    def replaced(self):
        yield from batches(self)
        if self.file.metadata.num_row_groups == 1:
            os.utime(changing, ns=(1, 1))

    monkeypatch.setattr(module._Reader, "batches", replaced)
    paths = [*sorted(data.rglob("day*/*.parquet")), data / "bad.parquet"]
    index = FileIndex.build(paths, ["trace"], data.parent / "data.index")
    assert index.left_out == {
        str(changing): "it changed while it was read",
        str(data / "bad.parquet"): index.left_out[str(data / "bad.parquet")],
    }
    assert len(index) == 7
    assert {path for path, groups in index.files(trace="absent") if groups is None} == {
        str(changing), str(data / "bad.parquet")}


def test_an_index_is_replaced_as_a_whole(data, monkeypatch):
    path = data.parent / "data.index"
    build(data, ["trace"])
    os.chmod(path, 0o640)
    before, inode = path.read_bytes(), path.stat().st_ino

    class Stop(BaseException):
        pass

    def stop(done, count, name):
        if done == 5:
            raise Stop

    with pytest.raises(Stop):
        build(data, ["user"], progress=stop)
    assert path.read_bytes() == before
    assert [p.name for p in data.parent.iterdir() if p.name.startswith(".")] == []
    build(data, ["user"])
    assert path.read_bytes() != before and path.stat().st_ino != inode
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    os.mkfifo(data.parent / "fifo")
    with pytest.raises(ValueError, match="is not a regular file"):
        FileIndex.build(data, ["user"], data.parent / "fifo")
    assert stat.S_ISFIFO((data.parent / "fifo").stat().st_mode)


def test_a_full_disk_is_an_error_of_the_index(data):
    """The error does not blame the file that was being read."""
    program = f"""
import resource
import pytest
from blocked_bloom import FileIndex
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with pytest.raises(OSError, match="File too large"):
    FileIndex.build({str(data)!r}, ["trace"], {str(data.parent / "i")!r}, part_values=16, memory=1)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert sorted(path.name for path in data.parent.iterdir()) == ["data"]


def test_a_disk_that_is_full_for_a_while_is_an_error_of_the_index(tmp_path):
    """There is room again for the files after the one whose bytes are lost."""
    # The first has more parts than a group of rows, which is then written.
    for file, rows in enumerate((240_000, 100, 100)):
        values = np.arange(rows) + 1_000_000 * file
        write(tmp_path / f"data/{file}.parquet", pa.table({"id": values}), -(-rows // 40_000))
    program = f"""
import resource
import signal
import pytest
from blocked_bloom import FileIndex
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def progress(*_):
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
def build():
    FileIndex.build({str(tmp_path / "data")!r}, ["id"], {str(tmp_path / "i")!r}, part_values=16,
                    memory=1, progress=progress)
with pytest.raises(OSError, match="File too large"):
    build()
progress()
build()
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "i"]

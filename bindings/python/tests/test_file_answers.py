"""A file index never hides a row: iterators, precision, hive columns, times, names."""

import datetime
import decimal
import os
import pickle
import shutil
import uuid
import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest

import blocked_bloom._file_listing as file_listing
from blocked_bloom import BloomFilter, FileIndex, ScalableBloomFilter


def write(path, columns, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, **options)


def names(found):
    return sorted(os.path.basename(path) for path, _ in found)


@pytest.fixture
def folder(tmp_path):
    for letter in "abc":
        write(tmp_path / f"d/{letter}.parquet", {"t": [letter], "n": [ord(letter)]})
    return tmp_path / "d"


# A1: an argument is read once and kept.


def test_paths_of_an_iterator_are_kept(folder, tmp_path):
    paths = sorted(folder.glob("*.parquet"))
    for given in (folder.glob("*.parquet"), iter(paths), (p for p in paths), map(str, paths)):
        index = FileIndex.build(given, iter(["t", "n"]), tmp_path / "i")
        assert names(index.files(t="a")) == ["a.parquet"]
        assert index.update() == 0 and len(index) == 3
        assert names(index.files(t="a")) == ["a.parquet"]
    opened = FileIndex.open(tmp_path / "i", iter(paths))
    assert [names(opened.files(t=t)) for t in "abz"] == [["a.parquet"], ["b.parquet"], []]


def test_values_of_an_iterator_are_looked_up_in_every_type(tmp_path):
    write(tmp_path / "d/a.parquet", {"n": pa.array([1], pa.int32())})
    write(tmp_path / "d/b.parquet", {"n": pa.array([1], pa.int64())})
    index = FileIndex.build(tmp_path / "d", ["n"], tmp_path / "i")
    reader = pa.RecordBatchReader.from_batches(pa.schema({"n": pa.int64()}), [])
    for given in (iter([1]), (n for n in [1]), {1: 0}.keys(), {1}, range(1, 2)):
        assert names(index.files(n=given)) == ["a.parquet", "b.parquet"], given
    with pytest.raises(TypeError, match="n: "):
        index.files(n=reader)


def test_filters_read_an_iterator_once():
    keys = [f"key {i}" for i in range(100)]
    for make in (lambda: BloomFilter(100), ScalableBloomFilter):
        once, listed = make(), make()
        assert once.add_new(iter(keys)).tolist() == listed.add_new(keys).tolist()
        assert once.contains(iter(keys)).all() and once.to_bytes() == listed.to_bytes()


@pytest.mark.parametrize("data", [{"a.parquet": 1}, b"d", 7, [b"a.parquet"], None])
def test_data_that_is_not_paths_is_refused(tmp_path, data):
    with pytest.raises(TypeError):
        FileIndex.build(data, ["t"], tmp_path / "i")


# A2: a value keeps its precision or is refused.

NS = 1_700_000_000_123_456_789
NS_ABSENT = np.datetime64(NS + 1, "ns")


def times(path):
    write(path, {
        "ts": pa.array([NS], pa.timestamp("ns")),
        "zoned": pa.array([NS], pa.timestamp("ns", "UTC")),
        "took": pa.array([NS], pa.duration("ns")),
        "time": pa.array([123_456_789], pa.time64("ns")),
    })


def test_nanoseconds_are_found(tmp_path):
    times(tmp_path / "d/a.parquet")
    columns = ["ts", "zoned", "took", "time"]
    by_path = FileIndex.build(tmp_path / "d", columns, tmp_path / "i")
    by_dataset = FileIndex.open(tmp_path / "i", ds.dataset(tmp_path / "d"))
    table = pq.read_table(tmp_path / "d/a.parquet")
    frame = pl.from_arrow(table)
    moment = pd.Timestamp(NS)
    for index in (by_path, by_dataset):
        for name in columns:
            column = table[name]
            for given in (frame[name], column, column.chunk(0), column[0], [column[0]],
                          column.combine_chunks()):
                assert names(index.files(**{name: given})) == ["a.parquet"], (name, given)
        for given in (moment, [moment], np.datetime64(NS, "ns"), [np.datetime64(NS, "ns")],
                      np.array([NS], "datetime64[ns]"), pd.Series([moment]), pd.Index([moment])):
            assert names(index.files(ts=given)) == ["a.parquet"], given
        for given in (moment.tz_localize("UTC"), [moment.tz_localize("UTC").tz_convert("+05:00")]):
            assert names(index.files(zoned=given)) == ["a.parquet"], given
        for given in (pd.Timedelta(NS, "ns"), np.timedelta64(NS, "ns"), [np.timedelta64(NS, "ns")]):
            assert names(index.files(took=given)) == ["a.parquet"], given
        # Microseconds are other values, and times with a zone are not comparable to those without.
        assert index.files(ts=moment.to_pydatetime(warn=False)) == []
        for given in ({"zoned": moment}, {"ts": moment.tz_localize("UTC")},
                      {"zoned": datetime.date(2024, 1, 1)}, {"time": moment}, {"took": 5}):
            with pytest.raises(TypeError, match="cannot be compared"):
                index.files(**given)


def test_int96_is_found_as_every_reader_has_it(tmp_path):
    """pyarrow reads nanoseconds, of which years after 2262 wrap around. DuckDB cuts them to
    microseconds."""
    moments = [
        datetime.datetime(3000, 1, 1), datetime.datetime(1582, 10, 14, 23, 59, 59, 999_995),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime.datetime(2020, 9, 13)]
    options = {"use_deprecated_int96_timestamps": True}
    for number, moment in enumerate(moments):
        ts = pa.array([moment, None], pa.timestamp("us"))
        write(tmp_path / f"d/{number}.parquet", {"ts": ts, "n": [number, 9]}, **options)
    exact = pa.array([NS, -1, None], pa.timestamp("ns"))
    write(tmp_path / "d/ns.parquet", {"ts": exact, "n": [8, 9, 9]}, **options)
    index = FileIndex.build(tmp_path / "d", ["ts", "n"], tmp_path / "i", false_row_groups=1e-6)
    assert index.left_out == {}
    cut = [datetime.datetime(2023, 11, 14, 22, 13, 20, 123456), moments[2]]
    every = str(tmp_path / "d/*.parquet")
    for given in [*moments, *cut]:
        left = [path for path, _ in index.files(ts=given)]
        query = "select n from read_parquet(?) where ts = ? order by n"
        expected = duckdb.execute(query, [every, given]).fetchall()
        assert duckdb.execute(query, [left, given]).fetchall() == expected != [], given
    for value in exact.drop_null():
        assert "ns.parquet" in names(index.files(ts=value))
    assert index.files(ts=NS_ABSENT) == [] == index.files(ts=moments[0], n=7)
    assert len(index.files(ts=[moments[0], NS_ABSENT])) == 5


@pytest.mark.parametrize("key, left_out", [
    (b"org.apache.spark.legacyDateTime", ["day", "us"]), (b"org.apache.spark.legacyINT96", ["at"]),
    (b"org.apache.spark.version", [])])
def test_dates_of_sparks_legacy_calendar_are_not_pruned(tmp_path, key, left_out):
    day, at = datetime.date(1500, 6, 1), datetime.datetime(1700, 6, 1)
    columns = {"day": [day], "us": pa.array([at], pa.timestamp("us")), "at": [at], "n": [1]}
    for name, int96 in (("a", False), ("b", True)):
        kept = {k: v for k, v in columns.items() if (k == "at") == int96 or k == "n"}
        table = pa.table(kept).replace_schema_metadata({key: b""})
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "a.parquet", use_deprecated_int96_timestamps=int96)
        own = list(kept)
        index = FileIndex.build(tmp_path / name, own, tmp_path / "i")
        expected = [column for column in own if column in left_out]
        reasons = "".join(index.left_out.values())
        assert [column for column in own if f"{column!r} has dates of" in reasons] == expected
        for column in own:
            other = {"day": datetime.date(1500, 6, 11), "n": 2}.get(
                column, datetime.datetime(1700, 6, 11))
            assert len(index.files(**{column: kept[column][0]})) == 1
            assert len(index.files(**{column: other})) == (column in expected)


def test_a_time_of_day_is_not_cut_to_a_date(tmp_path):
    day = datetime.date(2024, 5, 17)
    midnight = datetime.datetime(2024, 5, 17)
    write(tmp_path / "d/a.parquet", {"day": [day], "at": pa.array([midnight], pa.timestamp("ms"))})
    index = FileIndex.build(tmp_path / "d", ["day", "at"], tmp_path / "i")
    later = midnight.replace(hour=5)
    for column in ("day", "at"):
        assert index.files(**{column: [day]}) == index.files(**{column: midnight}) != []
        assert index.files(**{column: later}) == []
        assert index.files(**{column: [later, day]}) != []
    # Out of range in nanoseconds, and finer than the column's unit.
    assert index.files(at=datetime.datetime(9999, 1, 1)) == []
    assert index.files(at=midnight.replace(microsecond=1)) == []


def test_numbers_are_exact_or_refused(tmp_path):
    big = 2**53
    write(tmp_path / "d/a.parquet", {
        "n": pa.array([7, big + 2], pa.int64()),
        "f": pa.array([7.0, float(big + 2)], pa.float64()),
        "u": pa.array([7, 255], pa.uint8()),
        "d": pa.array([decimal.Decimal("7.00"), decimal.Decimal("0.10")], pa.decimal128(6, 2)),
    })
    columns = ["n", "f", "u", "d"]
    index = FileIndex.build(tmp_path / "d", columns, tmp_path / "i", false_row_groups=1e-6)
    by_dataset = FileIndex.open(tmp_path / "i", ds.dataset(tmp_path / "d"))
    for index in (index, by_dataset):
        for column in columns:
            for given in (7, 7.0, np.int8(7), np.uint64(7), np.float32(7), decimal.Decimal(7),
                          pa.scalar(7, pa.uint16()), [7], pl.Series([7]), np.array([7, 8])):
                if column == "d" and isinstance(given, (float, np.floating)):
                    continue
                assert len(index.files(**{column: given})) == 1, (column, given)
        assert len(index.files(n=big + 2)) == len(index.files(f=big + 2)) == 1
        assert len(index.files(f=pa.array([big + 2], pa.int64()))) == 1
        # Values that the type cannot hold match no row, and are allowed in a list.
        for given in ({"u": 256}, {"u": -1}, {"n": 1 << 70}, {"n": 7.5}, {"n": float("inf")},
                      {"n": float("nan")}, {"u": [256, -1]}, {"d": decimal.Decimal("0.105")},
                      {"d": 10**9}, {"d": decimal.Decimal("NaN")}):
            assert index.files(**given) == [], given
        assert len(index.files(u=[256, 7, -1])) == len(index.files(d=[10**9, 7])) == 1
        assert len(index.files(d=decimal.Decimal("1E-1"))) == 1
        for given in ({"n": float(2**60)}, {"d": 0.1}, {"n": True}, {"n": "7"}, {"f": "7"},
                      {"n": pa.array(["7"])}, {"n": b"7"}, {"u": bytearray(b"\7")},
                      {"n": pl.Series([datetime.date(1970, 1, 8)])}, {"d": "7"}):
            with pytest.raises(TypeError):
                index.files(**given)


def test_lookups_of_other_objects_are_refused(folder, tmp_path):
    index = FileIndex.build(folder, ["t", "n"], tmp_path / "i")
    some = uuid.UUID(int=5)
    for given in (pl.DataFrame({"t": ["a"]}), pd.DataFrame({"t": ["a"]}), pa.table({"t": ["a"]}),
                  pa.record_batch({"t": ["a"]}), {"a": 1}, some, [some], np.array([["a"]]),
                  pl.LazyFrame({"t": ["a"]}), pa.array([{"t": "a"}]), [["a"]], [("a",)]):
        with pytest.raises(TypeError, match="t: "):
            index.files(t=given)
    for given in (pl.Series(["a"]), pd.Series(["a"]), pd.Index(["a"]), np.array(["a"]), {"a"},
                  pl.Series(["a"], dtype=pl.Categorical), pd.Series(["a"], dtype="category"),
                  pa.array(["a"]).dictionary_encode(), pa.chunked_array([["a"]]), b"a",
                  pd.Series(["a"], dtype="string"), np.str_("a"), memoryview(b"a")):
        assert names(index.files(t=given)) == ["a.parquet"], given
    for given in (pa.array(["a", None]), pl.Series([None, "a"]), [None], pa.scalar(None, "string")):
        with pytest.raises(ValueError, match="None cannot be looked up"):
            index.files(t=given)
    write(tmp_path / "u/a.parquet", {"u": pa.array([some.bytes], pa.binary(16))})
    index = FileIndex.build(tmp_path / "u", ["u"], tmp_path / "j")
    assert index.files(u=some) == index.files(u=[some.bytes]) != []
    for given in (str(some), some.hex[:16], b"short"):
        with pytest.raises(TypeError, match="give 16 bytes"):
            index.files(u=given)


# A3: a path column is not pruned by the values in the file.


def test_a_renamed_hive_folder(tmp_path):
    write(tmp_path / "h/day=2/a.parquet", {"day": pa.array([2, 2], pa.int32()), "n": [1, 2]})
    os.rename(tmp_path / "h/day=2", tmp_path / "h/day=1")
    folder, pattern = str(tmp_path / "h"), str(tmp_path / "h/**/*.parquet")
    index = FileIndex.build(folder, ["day", "n"], tmp_path / "i")
    dataset = ds.dataset(folder, partitioning="hive")
    assert dataset.to_table(filter=pc.field("day") == 1).num_rows == 2
    fragments = index.fragments(dataset, day=1)
    assert sum(f.to_table(filter=pc.field("day") == 1, schema=dataset.schema).num_rows
               for f in fragments) == 2
    for day in (1, 2):
        paths = [path for path, _ in index.files(day=day)]
        assert len(paths) == 1
        expected = pl.scan_parquet(pattern, hive_partitioning=True).filter(pl.col("day") == day)
        left = pl.scan_parquet(paths, hive_partitioning=True).filter(pl.col("day") == day)
        assert left.collect().equals(expected.collect())
        count = "SELECT count(*) FROM read_parquet(?, hive_partitioning=true) WHERE day = ?"
        assert duckdb.execute(count, [paths, day]).fetchall() == (
            duckdb.execute(count, [pattern, day]).fetchall())
    # Other columns still prune.
    assert index.files(day=1, n=9) == [] == index.fragments(dataset, n=9)
    # A dataset without partitioning uses the values in the file.
    plain = ds.dataset(folder)
    assert index.fragments(plain, day=1) == [] and len(index.fragments(plain, day=2)) == 1


@pytest.mark.parametrize("name", ["DAY", "d%61y"])
def test_hive_names_in_another_spelling(tmp_path, name):
    """DuckDB compares names case-insensitively, and writers percent-encode characters."""
    write(tmp_path / f"h/{name}=1/a.parquet", {"day": pa.array([2], pa.int32())})
    index = FileIndex.build(tmp_path / "h", ["day"], tmp_path / "i")
    assert len(index.files(day=1)) == len(index.files(day=2)) == 1


def test_partitions_without_names(tmp_path):
    write(tmp_path / "h/1/a.parquet", {"day": pa.array([2, 2], pa.int32())})
    index = FileIndex.build(tmp_path / "h", ["day"], tmp_path / "i")
    parts = ds.partitioning(pa.schema({"day": pa.int32()}))
    dataset = ds.dataset(tmp_path / "h", partitioning=parts)
    assert dataset.to_table(filter=pc.field("day") == 1).num_rows == 2
    assert len(index.fragments(dataset, day=1)) == 1
    # A dataset of fragments has no partitioning, but the same rows.
    again = ds.FileSystemDataset(
        list(dataset.get_fragments()), dataset.schema, dataset.format, dataset.filesystem)
    assert again.to_table(filter=pc.field("day") == 1).num_rows == 2
    assert len(index.fragments(again, day=1)) == 1


# A4: a time that a later change may share is not trusted.


def rewrite_same_length(path, old, new):
    """Replaces a file with one of the same length."""
    write(path, {"t": [old]})
    before = path.read_bytes()
    write(path.parent.parent / "other", {"t": [new]})
    after = (path.parent.parent / "other").read_bytes()
    assert len(before) == len(after) and before != after
    return after


class WholeSeconds(fs.FileSystemHandler):
    """A file system with times in whole seconds, like object stores."""

    def __init__(self, step=10**9):
        self.step, self.inner, self.heads = step, fs.LocalFileSystem(), 0

    def _cut(self, info):
        if info.mtime_ns is None or not self.step:
            return fs.FileInfo(info.path, info.type, size=info.size)
        at = info.mtime_ns // self.step * self.step
        return fs.FileInfo(info.path, info.type, size=info.size, mtime_ns=at)

    def get_file_info(self, paths):
        self.heads += len(paths)
        return [self._cut(info) for info in self.inner.get_file_info(paths)]

    def get_file_info_selector(self, selector):
        return [self._cut(info) for info in self.inner.get_file_info(selector)]

    def open_input_file(self, path):
        return pa.PythonFile(open(path, "rb"), mode="r")

    def __getattr__(self, name):
        return getattr(self.inner, name)


for _name in ("copy_file", "create_dir", "delete_dir", "delete_dir_contents", "delete_file",
              "delete_root_dir_contents", "get_type_name", "move", "normalize_path",
              "open_append_stream", "open_input_stream", "open_output_stream"):
    setattr(WholeSeconds, _name, lambda self, path="", *rest, **kept: path)
WholeSeconds.__abstractmethods__ = frozenset()


def dataset_of(paths, handler):
    format = ds.ParquetFileFormat()
    filesystem = fs.PyFileSystem(handler)
    fragments = [format.make_fragment(str(path), filesystem) for path in paths]
    return ds.FileSystemDataset(fragments, pa.schema({"t": pa.string()}), format, filesystem)


def test_a_file_replaced_within_the_second_of_the_build(tmp_path):
    path = tmp_path / "d/a.parquet"
    replaced = 0
    for _ in range(2):
        after = rewrite_same_length(path, "old", "new")
        index = FileIndex.build(dataset_of([path], WholeSeconds()), ["t"], tmp_path / "i")
        assert index.files(t="absent") == [], "the build waited until the time has settled"
        before = os.stat(path).st_mtime_ns // 10**9
        path.write_bytes(after)
        replaced += os.stat(path).st_mtime_ns // 10**9 == before
        assert len(index.files(t="new")) == 1
    assert replaced == 0


def test_a_local_file_replaced_within_a_tick(tmp_path):
    path = tmp_path / "d/a.parquet"
    for _ in range(30):
        after = rewrite_same_length(path, "old", "new")
        index = FileIndex.build(tmp_path / "d", ["t"], tmp_path / "i")
        path.write_bytes(after)
        assert len(index.files(t="new")) == 1


def test_a_time_of_a_clock_ahead_is_not_trusted(tmp_path):
    path = tmp_path / "d/a.parquet"
    write(path, {"t": ["old"]})
    ahead = os.stat(path).st_mtime_ns + 60 * 10**9
    os.utime(path, ns=(ahead, ahead))
    index = FileIndex.build(tmp_path / "d", ["t"], tmp_path / "i")
    assert "in the future" in index.left_out[str(path)]
    assert [groups for _, groups in index.files(t="old")] == [None]
    os.utime(path, ns=(ahead, ahead - 120 * 10**9))
    assert index.update() == 1 and index.files(t="absent") == [] and index.left_out == {}


# A5: files with hidden names.


def test_hidden_names_are_listed(tmp_path):
    folder = tmp_path / "d"
    for name in ("a", "_b", ".c"):
        write(folder / f"{name}.parquet", {"t": [name]})
    for name in ("_sub/x", ".sub/y", "sub/_z", "_delta_log/0.checkpoint"):
        write(folder / f"{name}.parquet", {"t": [name]})
    write(folder / "_part", {"t": ["_part"]})
    for name in ("_SUCCESS", ".a.parquet.crc", "_started_1"):
        (folder / name).write_bytes(b"")
    pq.write_metadata(pa.schema({"t": pa.string()}), folder / "_common_metadata")
    os.symlink(folder, folder / "sub/loop")
    index = FileIndex.build(folder, ["t"], folder / "_index")
    assert index.left_out == {} and len(index) == 7
    rows = duckdb.execute(
        "SELECT t FROM read_parquet(?)", [str(folder / "**/*.parquet")]).fetchall()
    for (name,) in rows:
        if name != "_delta_log/0.checkpoint" and "/loop/" not in name:
            assert [os.path.relpath(path, folder) for path, _ in index.files(t=name)] == [
                f"{name}.parquet"], name
    assert names(index.files(t="_part")) == ["_part"] and index.files(t="absent") == []
    # New hidden files are returned until they are indexed.
    write(folder / "_new.parquet", {"t": ["new"]})
    assert names(index.files(t="absent")) == ["_new.parquet"]
    assert index.update() == 1 and index.files(t="absent") == []


def test_the_index_in_its_own_folder(folder):
    index = FileIndex.build(folder, ["t"], folder / "d.index")
    assert index.left_out == {} and len(index) == 3 and index.update() == 0
    paths = [path for path, _ in index.files(t=["a", "b"])]
    assert pl.scan_parquet(paths).collect().height == 2
    pattern = FileIndex.open(folder / "d.index", str(folder / "*"))
    assert names(pattern.files(t="c")) == ["c.parquet"] and pattern.files(t="absent") == []


def test_names_that_are_not_utf8(folder, tmp_path):
    shutil.copy(folder / "a.parquet", os.fsencode(folder) + b"/\xff.parquet")
    index = FileIndex.build(folder, ["t"], tmp_path / "i")
    assert len(index) == 3 and ["not UTF-8" in why for why in index.left_out.values()] == [True]
    assert [os.fsencode(path)[-9:] for path, _ in index.files(t="absent")] == [b"\xff.parquet"]
    assert index.update() == 0


# B: memory, updates, missing folders, file systems without times.


def test_an_update_of_a_missing_folder_is_an_error(folder, tmp_path):
    index = FileIndex.build(folder, ["t"], tmp_path / "i")
    os.rename(folder, tmp_path / "away")
    with pytest.raises(FileNotFoundError, match="allow_empty=True"):
        index.update()
    folder.mkdir()
    with pytest.raises(FileNotFoundError, match="3 are indexed"):
        index.update()
    folder.rmdir()
    os.rename(tmp_path / "away", folder)
    assert len(FileIndex.open(tmp_path / "i", folder)) == 3 and index.files(t="absent") == []
    for path in folder.iterdir():
        path.unlink()
    assert index.update(allow_empty=True) == 0 and len(index) == 0


def test_a_file_system_without_times(folder, tmp_path):
    paths = sorted(folder.iterdir())
    dataset = dataset_of(paths, WholeSeconds(0))
    with pytest.warns(UserWarning, match="neither etags nor times"):
        index = FileIndex.build(dataset, ["t"], tmp_path / "i")
    assert len(index.files(t="absent")) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [index.update() for _ in range(3)] == [0, 0, 0] and len(index) == 3
        write(folder / "d.parquet", {"t": ["d"]})
        more = FileIndex.open(tmp_path / "i", dataset_of(sorted(folder.iterdir()), WholeSeconds(0)))
        assert [more.update(), more.update()] == [1, 0] and len(more) == 4
        named = FileIndex.build(dataset, ["t"], tmp_path / "j", name_suffices=True)
    assert named.files(t="absent") == []


@pytest.mark.parametrize("rows", [1 << 20, (128 << 20) // 80, 122_880])
def test_default_row_groups_of_ten_columns(tmp_path, rows):
    """Row groups of pyarrow, Spark (128 MiB) and DuckDB with ten columns of unique values fit the
    default memory."""
    values = np.random.default_rng(1).integers(0, 1 << 62, rows)
    table = {f"c{i}": values + i for i in range(10)}
    if rows != 122_880:
        write(tmp_path / "d/a.parquet", table, use_dictionary=False, row_group_size=rows)
    else:
        table = pa.table({name: np.resize(column, 2 * rows) for name, column in table.items()})
        duckdb.from_arrow(table).write_parquet(str(tmp_path / "a.parquet"))
        (tmp_path / "d").mkdir()
        os.rename(tmp_path / "a.parquet", tmp_path / "d/a.parquet")
    index = FileIndex.build(tmp_path / "d", list(f"c{i}" for i in range(10)), tmp_path / "i")
    assert index.left_out == {}
    for name, column in index.info()["columns"].items():
        assert column["row_groups_with_too_many_values"] == 0
        assert column["values"] >= rows and column["bits_per_value"] < 27, column
    assert index.files(c3=int(values[5] + 3)) != [] == index.files(c3=-5)


def test_columns_without_index_are_reported(tmp_path):
    values = np.arange(200_000)
    write(tmp_path / "d/a.parquet", {"n": values, "t": ["x"] * len(values)})
    write(tmp_path / "d/b.parquet", {"n": [1]})
    index = FileIndex.build(tmp_path / "d", ["t", "n"], tmp_path / "i", memory=1 << 20)
    large, lacks = [index.left_out[str(tmp_path / f"d/{name}.parquet")] for name in "ab"]
    assert "1 row groups of columns have more than" in large and "memory=" in large
    assert "column 't' is missing" in lacks
    info = index.info()
    assert info["columns"]["n"]["row_groups_with_too_many_values"] == 1
    assert info["columns"]["t"]["row_groups_without_column"] == 1
    assert (info["files_known"], info["files_unknown"]) == (2, 0)
    # An update keeps the memory limit.
    shutil.copy(tmp_path / "d/a.parquet", tmp_path / "d/c.parquet")
    assert index.update() == 1 and list(index.left_out) == [str(tmp_path / "d/c.parquet")]
    shutil.copy(tmp_path / "d/a.parquet", tmp_path / "d/e.parquet")
    assert index.update(memory=64 << 20) == 1 and index.left_out == {}


def test_many_small_updates(tmp_path):
    folder = tmp_path / "d"
    write(folder / "0.parquet", {"t": ["0"]})
    index = FileIndex.build(folder, ["t"], tmp_path / "i")
    for number in range(1, 201):
        write(folder / f"{number}.parquet", {"t": [str(number)]})
        path = folder / f"{number}.parquet"
        os.utime(path, (1, 1))
        assert index.update() == 1
    FileIndex.build(folder, ["t"], tmp_path / "rebuilt", part_values=16)
    updated = os.path.getsize(tmp_path / "i")
    assert updated <= 2.5 * os.path.getsize(tmp_path / "rebuilt")
    for number in (0, 1, 99, 200):
        assert names(index.files(t=str(number))) == [f"{number}.parquet"]
    index.compact()
    assert os.path.getsize(tmp_path / "i") <= updated and len(index) == 201
    assert names(index.files(t="77")) == ["77.parquet"] and index.files(t="absent") == []


# 256 row groups. For each part and plane, 64 bits of data take 8 more for a checksum.
@pytest.mark.parametrize("values, most", [(300, 29), (100, 34), (10, 47), (20_000, 26)])
def test_parts_follow_the_row_groups(tmp_path, values, most):
    for file in range(4):
        numbers = np.arange(values * 64) * 4 + file
        write(tmp_path / f"d/{file}.parquet", {"n": numbers}, row_group_size=values)
    index = FileIndex.build(tmp_path / "d", ["n"], tmp_path / "i")
    assert index.info()["columns"]["n"]["bits_per_value"] <= most


# D12: expectations of a data engineer.


def test_urls_and_patterns(folder, tmp_path):
    for data in (f"file://{folder}", str(folder / "*.parquet"), str(folder.parent / "**/*.parquet"),
                 [f"file://{folder}/{letter}.parquet" for letter in "abc"]):
        index = FileIndex.build(data, ["t"], tmp_path / "i")
        assert names(index.files(t="b")) == ["b.parquet"] and index.update() == 0
    with pytest.raises(ValueError, match="no files in .*none"):
        FileIndex.build(str(folder / "none*"), ["t"], tmp_path / "i")


def test_a_column_that_some_files_lack(tmp_path):
    for order in (("a", "b"), ("b", "a")):
        folder = tmp_path / order[0]
        write(folder / f"{order[0]}.parquet", {"t": ["x"]})
        write(folder / f"{order[1]}.parquet", {"u": ["y"]})
        for name in "ab":
            os.utime(folder / f"{name}.parquet", (1, 1))
        index = FileIndex.build(folder, ["t", "u"], tmp_path / "i")
        assert names(index.files(t="x", u="y")) == ["a.parquet", "b.parquet"]
        assert names(index.files(t="z", u="z")) == []


def test_pickling(folder, tmp_path):
    index = FileIndex.build(iter(sorted(folder.iterdir())), ["t"], tmp_path / "i", memory=1 << 21)
    again = pickle.loads(pickle.dumps(index))
    assert again.files(t="b") == index.files(t="b") and again._memory == 1 << 21


def test_recipes_when_no_file_is_left(folder, tmp_path):
    """As in the README: the first listed file has the columns but no matching row."""
    index = FileIndex.build(folder, ["t"], tmp_path / "i")
    for trace, rows in (("a", 1), ("absent", 0)):
        paths = [f.path for f in index.files(t=trace)] or [str(folder / "a.parquet")]
        assert pl.scan_parquet(paths).filter(pl.col("t") == trace).collect().height == rows
        query = "SELECT * FROM read_parquet(?) WHERE t = ?"
        assert len(duckdb.execute(query, [paths, trace]).fetchall()) == rows


def test_data_files_of_a_folder():
    is_data = file_listing._is_data
    assert all(is_data(path) for path in ("a", "b.parquet", "_c.parquet", "/.d/e.PARQUET", "x/y"))
    assert not any(is_data(path) for path in (
        "_SUCCESS", ".a.crc", "_delta_log/1.json", "_delta_log/1.parquet", "x/_metadata"))
    assert is_data("_part", b"PAR1")

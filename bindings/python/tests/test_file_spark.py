"""A file index over files that Spark writes. Needs pyspark and Java: `FILE_SPARK=1 test.sh`."""

import datetime
import decimal
import os
import shutil
import subprocess
import sys

import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from blocked_bloom import FileIndex

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java", allow_module_level=True)

from pyspark.sql import SparkSession  # noqa: E402

@pytest.fixture(scope="module")
def spark():
    session = SparkSession.builder.master("local[1]")
    for name, value in {
        "spark.driver.memory": "2g", "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1", "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    }.items():
        session = session.config(name, value)
    session = session.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def write(frame, path, partitions=(), **settings):
    conf = frame.sparkSession.conf
    settings = {f"spark.sql.parquet.{name}": value for name, value in settings.items()}
    kept = {name: conf.get(name) for name in settings}
    for name, value in settings.items():
        conf.set(name, value)
    frame.write.mode("overwrite").partitionBy(*partitions).parquet(str(path))
    for name, value in kept.items():
        conf.set(name, value)


def data_files(folder):
    return sorted(str(path) for path in folder.rglob("part-*.parquet"))


# Unique values of ten columns. The narrowest types have the most rows in a row group of 128 MiB.
NARROW = [f"cast(id * {2 * i + 1} as int) c{i}" for i in range(10)]
MIXED = [
    "cast(id * 3 as int) c0", "id * 1234567890123 c1", "concat('name-', id * 7919) c2",
    "concat(lpad(hex(id), 8, '0'), '-aaaa-4bbb-8ccc-', lpad(hex(id * 7), 12, '0')) c3",
    "cast(id as decimal(9,2)) c4", "cast(id as decimal(18,4)) c5", "cast(id as decimal(38,10)) c6",
    "timestamp_micros(1600000000000000 + id * 1000001) c7",
    "date_add(date'1600-01-01', cast(id as int)) c8", "cast(id as double) / 3 c9",
]
ABSENT = [
    -2, -2, "absent", "absent", decimal.Decimal("0.01"), decimal.Decimal("0.01"),
    decimal.Decimal("0.01"), datetime.datetime(2000, 1, 1), datetime.date(1599, 12, 31), -1.0,
]
#: Prints how much the memory grows while the files are read, without or with an index.
PEAK = """
import sys
import blocked_bloom.file_index as file_index
def status(name):
    lines = open("/proc/self/status")
    return int(next(line for line in lines if line.startswith(name)).split()[1]) << 10
class Reads:
    failed, oversized, max_values = False, 0, 3_670_016
    settle_time = staticmethod(lambda identity: None)
    def __init__(self, *_): pass
    def finish(self): pass
    def add(self, known, types, groups, batches):
        for _ in batches: pass
mode, folder, path = sys.argv[1:]
if mode == "read":
    file_index.FileIndexWriter, file_index.open_index = Reads, lambda *_: None
grown = []
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
file_index.FileIndex.build(
    folder, [f"c{i}" for i in range(10)], path, name_suffices=True,
    progress=lambda *_: grown.append(status("VmHWM") - before))
print(grown[-1])
"""


@pytest.mark.parametrize("columns, rows", [(NARROW, 3_500_000), (MIXED, 2_200_000)])
def test_default_row_groups_of_ten_columns(spark, tmp_path, columns, rows):
    folder, names = tmp_path / "d", [f"c{i}" for i in range(10)]
    write(spark.range(0, rows, 1, 1).selectExpr(*columns), folder)
    [path] = data_files(folder)
    file = pq.ParquetFile(path)
    groups = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
    assert len(groups) == 2 and groups[0] >= (3_300_000 if columns is NARROW else 1_900_000)
    index = FileIndex.build(folder, names, tmp_path / "i")
    assert index.left_out == {}
    for column in index.info()["columns"].values():
        assert column["row_groups_with_too_many_values"] == 0 and column["row_groups"] == 2
        assert column["bits_per_value"] < 27
    for number in range(2):
        for name in names:
            values = file.read_row_group(number, columns=[name])[name]
            for place in (0, len(values) // 2, len(values) - 1):
                [found] = index.files(**{name: values[place]})
                assert found.path == path and number in found.row_groups
    absent = [-2] * 10 if columns is NARROW else ABSENT
    assert all(index.files(**{name: value}) == [] for name, value in zip(names, absent))
    if sys.platform.startswith("linux"):
        read, build = [
            int(subprocess.run([sys.executable, "-c", PEAK, mode, folder, tmp_path / "j"],
                               check=True, capture_output=True, text=True).stdout)
            for mode in ("read", "build")]
        print(f"reading {read >> 20} MiB, building {build >> 20} MiB")
        assert build - read <= 64 << 20


TYPES = """
    cast(id as tinyint) b, cast(id as smallint) h, cast(id as int) i, id l, cast(id as float) f,
    cast(id as double) / 3 g, cast(id as string) s, cast(cast(id as string) as binary) y,
    cast(id / 100 as decimal(9,2)) d9, cast(id / 100 as decimal(18,4)) d18,
    cast(-id as decimal(38,10)) d38, id % 2 = 0 t, date_add(date'2020-01-01', cast(id as int)) dt,
    timestamp_micros(1600000000000000 + id * 1000001) ts,
    timestamp_millis(-1000000 * id) old,
    cast(timestamp_micros(1600000000000000 + id) as timestamp_ntz) ntz,
    make_dt_interval(0, 0, 0, id) took, if(id % 3 = 0, null, id) n
""".replace("\n", " ")


@pytest.mark.parametrize("times", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
@pytest.mark.parametrize("legacy", ["false", "true"])
def test_types(spark, tmp_path, times, legacy):
    """Each value of each type is found in its row group, as pyarrow reads it."""
    folder = tmp_path / "d"
    frame = spark.sql(f"select {TYPES} from range(0, 60, 1, 3)")
    write(frame, folder, outputTimestampType=times, writeLegacyFormat=legacy)
    files, names = data_files(folder), frame.columns
    assert len(files) == 3
    index = FileIndex.build(folder, names, tmp_path / "i", false_row_groups=1e-6)
    assert index.left_out == {} and index.update() == 0
    by_dataset = FileIndex.open(tmp_path / "i", ds.dataset(folder))
    found = 0
    for path in files:
        for name in names:
            for value in pq.read_table(path, columns=[name])[name].drop_null():
                for left in (index.files(**{name: value}), by_dataset.files(**{name: value})):
                    assert path in [file.path for file in left], (name, value)
                    found += len(left)
    # Booleans and little else are in several files.
    assert found < 2 * 1.4 * 60 * len(names)
    for name, own in zip(names, pq.read_schema(files[0]).types):
        if str(own) != "bool":
            other = {"b": 100, "h": 100, "i": 100, "l": 100, "f": 100, "g": 0.5, "s": "x",
                     "y": b"x", "n": 100, "dt": datetime.date(1990, 1, 1)}.get(name)
            if other is not None:
                assert index.files(**{name: other}) == []
    utc = datetime.timezone.utc if times != "INT96" else None
    for number in (0, 33, 59):
        moment = datetime.datetime(2020, 9, 13, 12, 26, 40, tzinfo=utc)
        moment += datetime.timedelta(seconds=number, microseconds=number)
        if times == "TIMESTAMP_MILLIS":
            moment = moment.replace(microsecond=0)
        [left] = index.files(ts=moment)
        kept = spark.read.parquet(left.path).where(f"l = {number}").collect()
        assert [row.l for row in kept] == [number]
        assert len(index.files(d18=decimal.Decimal(number) / 100)) == 1
        assert len(index.files(d38=decimal.Decimal(-number))) == 1
    assert index.files(ts=datetime.datetime(2020, 1, 1, tzinfo=utc)) == []


def test_folders_of_partitions(spark, tmp_path):
    """Spark's other files are neither indexed nor returned, but hidden data files are."""
    folder = tmp_path / "d"
    frame = spark.sql(
        "select id, concat('v', id % 20) v, if(id % 5 = 0, null, concat('a b/', id % 5)) p, "
        "cast(id % 2 as int) q from range(0, 200, 1, 2)")
    write(frame, folder, ["p", "q"])
    assert (folder / "_SUCCESS").exists() and any(folder.rglob(".*.crc"))
    files = data_files(folder)
    assert any("__HIVE_DEFAULT_PARTITION__" in path for path in files)
    index = FileIndex.build(folder, ["id", "v"], tmp_path / "i")
    assert index.left_out == {} and len(index) == len(files)
    dataset = ds.dataset(folder, partitioning="hive")
    for value in range(0, 220, 7):
        left = [path for path, _ in index.files(id=value)]
        count = spark.read.parquet(str(folder)).where(f"id = {value}").count()
        assert len(left) == count == (value < 200)
        if left:
            [row] = spark.read.option("basePath", str(folder)).parquet(*left).where(
                f"id = {value}").collect()
            assert (row.id, row.v, row.q) == (value, f"v{value % 20}", value % 2)
        assert len(index.fragments(dataset, id=value)) == len(left)
    for value in ("v3", "v19", "v20"):
        left = [path for path, _ in index.files(v=value)]
        count = spark.read.parquet(str(folder)).where(f"v = '{value}'").count()
        assert count == (10 if value != "v20" else 0) == sum(
            pq.read_table(path, partitioning=None)["v"].to_pylist().count(value) for path in left)
    # Files of a job that is running or was killed.
    attempt = folder / "_temporary/0/_temporary/attempt_1/p=x/q=1"
    attempt.mkdir(parents=True)
    shutil.copy(files[0], attempt / "part-00000.snappy.parquet")
    (attempt / "part-00001.snappy.parquet").write_bytes(b"PAR1")
    (attempt / ".part-00001.snappy.parquet.crc").write_bytes(b"crc\0")
    index.update()
    assert list(index.left_out) == [str(attempt / "part-00001.snappy.parquet")]
    assert [path for path, _ in index.files(id=-1)] == list(index.left_out)
    shutil.rmtree(folder / "_temporary")
    index.update()
    assert index.files(id=-1) == [] and len(index) == len(files)
    # An overwritten partition has other names.
    write(frame.where("id < 100"), folder, ["p", "q"])
    assert {path for path, _ in index.files(id=-1)} == set(data_files(folder))
    assert index.update() == len(data_files(folder)) and index.files(id=150) == []


def test_years_that_nanoseconds_cannot_hold(spark, tmp_path):
    """pyarrow reads another time from INT96, but Spark and DuckDB do not."""
    folder = tmp_path / "d"
    write(spark.sql("select timestamp'3000-01-01 00:00:00' ts, 1 n"), folder,
          outputTimestampType="INT96")
    index = FileIndex.build(folder, ["ts", "n"], tmp_path / "i")
    moment = datetime.datetime(3000, 1, 1)
    [left] = index.files(ts=moment)
    assert duckdb.execute("select n from read_parquet(?) where ts = ?",
                          [left.path, moment]).fetchall() == [(1,)]
    assert index.files(ts=[moment, datetime.datetime(2020, 1, 1)]) == [left]
    assert index.files(ts=moment, n=2) == [] == index.files(ts=datetime.datetime(2020, 1, 1))


@pytest.mark.parametrize("times", ["INT96", "TIMESTAMP_MICROS"])
def test_dates_of_the_julian_calendar(spark, tmp_path, times):
    """Spark converts them when it reads, and others do not."""
    query = "select date'1500-06-01' d, timestamp'1500-06-01 00:00:00' t, 1 n"
    for mode in ("LEGACY", "CORRECTED"):
        folder = tmp_path / mode
        write(spark.sql(query), folder, outputTimestampType=times,
              datetimeRebaseModeInWrite=mode, int96RebaseModeInWrite=mode)
        index = FileIndex.build(folder, ["d", "t", "n"], tmp_path / "i")
        assert spark.read.parquet(str(folder)).where("d = date'1500-06-01'").count() == 1
        assert len(index.files(d=datetime.date(1500, 6, 1))) == 1
        utc = datetime.timezone.utc if times != "INT96" else None
        assert len(index.files(t=datetime.datetime(1500, 6, 1, tzinfo=utc))) == 1
        assert index.files(n=2) == []
        [reason] = index.left_out.values() or [""]
        assert reason.count("legacy calendar") == (2 if mode == "LEGACY" else 0)
        assert bool(index.files(d=datetime.date(1500, 6, 2))) == (mode == "LEGACY")

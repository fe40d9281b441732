"""A key means the same value of a Parquet column in every form, or it is refused.

See the table "What an input means" in docs/testing.md."""

import datetime
import decimal
import subprocess
import sys
import uuid
import weakref

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blocked_bloom
from blocked_bloom import BloomFilter, ScalableBloomFilter, parquet_row_groups

ID = uuid.UUID("123e4567-e89b-12d3-a456-426614174000")
NOON = datetime.datetime(2026, 1, 31, 12, 0, 0, 250_000)
FIVE_HOURS_WEST = datetime.timezone(datetime.timedelta(hours=-5))
UTC = datetime.timezone.utc
D = decimal.Decimal


def column(values, type):
    return pa.array(values, type)


# For each type: the column, keys for its value, keys for other values, and refused keys.
TYPES = {
    "decimal32": (column([D("5.00")], pa.decimal128(9, 2)),
                  [5, D("5"), D("5.00"), 5.0, "5", "5.0", "5e0", np.int64(5), pa.scalar(5)],
                  [500, D("5.01"), -5, "-5.00"], [D("5.001"), 5.1, b"5", 10**7, "five", True]),
    "decimal64": (column([D("-0.05")], pa.decimal128(18, 2)),
                  [D("-0.05"), "-0.050", "-5e-2"], [-5, D("0.05")], [D("0.005"), float("nan")]),
    "decimal128": (column([D("12345678901234567890.5")], pa.decimal128(38, 1)),
                   [D("12345678901234567890.5"), "12345678901234567890.50"],
                   [12345678901234567890, D("-12345678901234567890.5")], [10**38, b"\0" * 16]),
    "date": (column([NOON.date()], pa.date32()),
             [NOON.date(), "2026-01-31", np.datetime64("2026-01-31"), 20_484],
             [datetime.date(2026, 2, 1)], [NOON, "2026-02-30", 0.5, b"2026"]),
    "time": (column([NOON.time()], pa.time64("us")),
             [NOON.time(), "12:00:00.25", 43_200_250_000],
             [datetime.time(12), "12:00"], ["12:00:00.0000001", NOON, datetime.timedelta(1)]),
    "timestamp": (column([NOON], pa.timestamp("us")),
                  [NOON, pd.Timestamp(NOON), np.datetime64(NOON), "2026-01-31 12:00:00.25",
                   pa.scalar(NOON)],
                  [datetime.datetime(2026, 1, 31), NOON.date()],
                  [NOON.replace(tzinfo=UTC), "2026-01-31T12:00Z", "noon", pd.NaT]),
    "instant": (column([NOON.replace(tzinfo=UTC)], pa.timestamp("ms", "UTC")),
                [NOON.replace(tzinfo=UTC), "2026-01-31T13:00:00.25+01:00",
                 NOON.replace(tzinfo=UTC).astimezone(FIVE_HOURS_WEST)],
                ["2026-01-31T12:00:00.25-01:00"], [NOON, "2026-01-31 12:00:00.2501Z"]),
    "float": (column([1 + 2**-24], pa.float32()),
              [1 + 2**-24, 1, "1.0000000596046448", np.float32(1), D(1)], [2.0, 1 + 2**-20],
              [1e300, float("nan"), "one"]),
    "zero": (column([-0.0], pa.float64()), [0, 0.0, -0.0, "0"], [1e-300], ["", b"0"]),
    "half": (column([np.float16(0.1)], pa.float16()), [np.float16(0.1), 0.1, "0.1"],
             [0.2, -0.1], [70_000, float("nan"), b"ab"]),
    "uint32": (column([2**32 - 1], pa.uint32()), [2**32 - 1, "4294967295", np.uint32(2**32 - 1)],
               [1], [-1, 2**32, 1.5]),
    "int8": (column([-5], pa.int8()), [-5, "-5", -5.0, D(-5)], [5], [128, 251, "x", NOON.date()]),
    "uint64": (column([2**64 - 1], pa.uint64()), [2**64 - 1, str(2**64 - 1)], [0], [-1, 2**64]),
    "string": (column(["grün"], pa.string()), ["grün", "grün".encode(), pa.scalar("grün")],
               ["GRÜN"], ["grün".encode("latin-1"), 7, ID]),
    "binary": (column([b"\xff\0"], pa.binary()), [b"\xff\0"], ["ab"], [7]),
    "fixed": (column([b"ab"], pa.binary(2)), [b"ab", "ab"], [b"ba"], [b"abc", b"a", b""]),
    "enum": (column(["red"], pa.string()).dictionary_encode(), ["red"], ["blue"], [1]),
}


def write(path, column, nulls=False):
    table = pa.table({"c": column})
    pq.write_table(table, path, store_decimal_as_integer=True,
                   bloom_filter_options={"c": {"ndv": 100, "fpp": 1e-6}})


@pytest.mark.parametrize("name", TYPES)
def test_keys_of_every_type_are_found_or_refused(name, tmp_path):
    values, same, others, refused = TYPES[name]
    path = tmp_path / "t.parquet"
    write(path, values)
    stored = blocked_bloom.open(path, column="c")
    for key in same:
        assert parquet_row_groups(path, "c", [key]) == [0], key
        assert key in stored and stored.contains([key]).tolist() == [True], key
    for key in others:
        assert parquet_row_groups(path, "c", [key]) == [], key
        assert key not in stored
    for key in refused:
        for look_up in (lambda: parquet_row_groups(path, "c", [key]), lambda: key in stored,
                        lambda: stored.contains([key])):
            with pytest.raises((TypeError, ValueError, OverflowError)):
                look_up()
    assert stored.contains(values).to_pylist() == [True]


def test_types_that_duckdb_writes(tmp_path):
    path = str(tmp_path / "d.parquet")
    duckdb.sql(
        "SELECT (i % 50)::DECIMAL(9,2) price, ('00000000-0000-0000-0000-0000000000' ||"
        " lpad((i % 50)::VARCHAR, 2, '0'))::UUID id,"
        " (DATE '2026-01-01' + (i % 50)::INTEGER) AS d FROM range(5000) t(i)"
    ).write_parquet(path)
    seven = uuid.UUID(int=7)
    for name, key in (
        ("price", 5), ("price", D("5.0")), ("id", seven), ("id", str(seven)), ("id", seven.bytes),
        ("d", datetime.date(2026, 1, 8)), ("d", "2026-01-08"),
    ):
        assert parquet_row_groups(path, name, [key]), (name, key)
    for name, key in (("price", 77), ("id", uuid.UUID(int=99)), ("d", datetime.date(2027, 1, 1))):
        assert parquet_row_groups(path, name, [key]) == []
    for name, key in (("price", D("5.001")), ("id", b"short"), ("id", "not a UUID")):
        with pytest.raises((TypeError, ValueError)):
            parquet_row_groups(path, name, [key])


def test_a_file_without_the_column_must_be_read(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, pa.array([1, 2]))
    with pytest.warns(UserWarning, match='no column "other": all row groups must be read'):
        assert parquet_row_groups(path, "other", [1]) == [0]
    # Columns of any type without filters must be read, too.
    for values, key in ((pa.array([True]), True), (pa.array([None]), 1)):
        pq.write_table(pa.table({"c": values}), path)
        assert parquet_row_groups(path, "c", [key]) == [0]


def test_a_filter_without_a_bit_is_damaged(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, pa.array(["a", "b"]))
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    data = bytearray(path.read_bytes())
    chunks = blocked_bloom.open(path, column="c").describe()["column_chunks"][0]
    start, end = chunks["filter_offset"], chunks["filter_offset"] + chunks["filter_length"]
    data[end - 32 * chunks["blocks"] : end] = bytes(32 * chunks["blocks"])
    assert start > 0 and chunk.num_values == 2
    path.write_bytes(data)
    with pytest.warns(UserWarning, match="no bit set"):
        assert parquet_row_groups(path, "c", ["a"]) == [0]
    stored = blocked_bloom.open(path, column="c")
    with pytest.warns(UserWarning, match="no bit set.*maybe"):
        assert "a" in stored and "z" in stored
    assert "no bit set" in stored.describe()["column_chunks"][0]["error"]
    # A filter without a bit is correct if there are only NULLs.
    write(path, pa.array([None, None], pa.string()))
    assert parquet_row_groups(path, "c", ["a"]) == []


def test_scalars_of_a_list_are_keys():
    seen = BloomFilter(100, 1e-6)
    seen.update(list(pa.array(["de", "fr", None])))
    assert "de" in seen and "fr" in seen and len(seen) == 2
    assert pa.scalar("de") in seen and seen.add(pa.scalar(7)) and 7 in seen
    seen.update(list(pa.array([b"ab", b"cd"])))
    assert b"cd" in seen
    with pytest.raises(TypeError, match="key 0: keys are str.*array"):
        seen.update([__import__("array").array("q", [1, 2])])


def test_a_list_of_one_column_makes_tuples():
    for make in (np.array, pa.array, pd.Series):
        seen = BloomFilter(100, 1e-6)
        seen.update([make(["a", "b"])])
        assert ("a",) in seen and "a" not in seen
        assert list(seen.contains([make(["a", "c"])])) == [True, False] or make is pa.array
        assert seen.add_new([make(["b", "c"])]).tolist() if make is pa.array else True


def test_parts_of_one_array_are_not_columns():
    seen = BloomFilter(100, 1e-6)
    array = np.arange(6).reshape(3, 2)
    own = np.array([[1, 2], [3, 4]])
    for rows in (list(array), list(own), list(own.T), list(pd.DataFrame(own).to_numpy())):
        with pytest.raises(TypeError, match="parts of one array.*copies"):
            seen.update(rows)
    assert len(seen) == 0
    seen.update([column.copy() for column in own.T])
    assert (1, 2) in seen and (3, 4) in seen
    records = np.array([(1, 2), (3, 4)], [("a", "i8"), ("b", "i8")])
    seen.update([records["a"], records["b"]])
    numbers = np.arange(100)
    seen.update([numbers[:-1], numbers[1:]])
    assert (98, 99) in seen


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
import pandas as pd
from blocked_bloom import BloomFilter
for series, keys in (
    (pd.Series(["a", None, "b"], dtype="string"), ["a", "b"]),
    (pd.Series([2**60 + 1, None, 7], dtype="Int64"), [2**60 + 1, 7]),
    (pd.Series(["a", None, "b"], dtype="category"), ["a", "b"]),
    (pd.Series([1, 2]), [1, 2]),
):
    seen = BloomFilter(100, 1e-6)
    seen.update(series)
    assert len(seen) == 2 and all(key in seen for key in keys), series
"""


def test_columns_of_pandas_without_pyarrow():
    subprocess.run([sys.executable, "-c", WITHOUT_PYARROW], check=True)


def test_rates_that_pass_everything_are_refused():
    for make, text in (
        (lambda: BloomFilter(10, fpr=1), "for 1 % give 0.01"),
        (lambda: BloomFilter(10, bits_per_key=0), "at least 1"),
        (lambda: BloomFilter(10, fpr=1e-12), "at least 1.3e-9"),
        (lambda: ScalableBloomFilter(5), "for 5 % give 0.05"),
        (lambda: ScalableBloomFilter(1e-12), "at least 9e-9"),
    ):
        with pytest.raises(ValueError, match=text):
            make()
    for make in (lambda: BloomFilter(-1), lambda: BloomFilter(1, seed=-1)):
        with pytest.raises(OverflowError, match="is -1: must be an int from 0"):
            make()
    assert BloomFilter(10, fpr=1.3e-9).fpr < 1e-8 and ScalableBloomFilter(9e-9) is not None


@pytest.mark.parametrize("make", [lambda: BloomFilter(10_000, 1e-6), ScalableBloomFilter])
def test_a_refused_list_adds_nothing(make):
    keys, seen = [f"key {i}" for i in range(5_001)], make()
    with pytest.raises(TypeError, match="key 5000") as error:
        seen.add_new([*keys[:5_000], float("nan")])
    assert len(error.value.answers) == 0 and len(seen) == 0
    assert seen.add_new(keys).sum() > 4_990
    with pytest.raises(KeyError):
        seen.add_new(key if key != "x" else {}["x"] for key in ["new", "x"])
    assert "new" not in seen


def test_an_interrupted_call_has_its_answers():
    seen, keys = BloomFilter(30_000_000), np.arange(30_000_000)
    import _thread
    import threading

    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt) as error:
        for _ in range(100):
            seen = BloomFilter(30_000_000)
            seen.add_new(keys)
    timer.join()
    done = error.value.answers
    assert len(done) == len(seen) < len(keys)
    assert done.sum() > 0.9 * len(done)


def test_weak_references():
    for make in (lambda: BloomFilter(1), ScalableBloomFilter):
        filter = make()
        reference = weakref.ref(filter)
        assert reference() is filter
        del filter
        assert reference() is None

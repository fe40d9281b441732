"""A key means the same value of a Parquet column in every form, or it is refused.

See the table "What an input means" in docs/testing.md."""

import datetime
import decimal
import pathlib
import subprocess
import sys
import types
import uuid
import weakref

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blocked_bloom
from blocked_bloom import BloomFilter, FormatError, ScalableBloomFilter, parquet_row_groups

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
             [datetime.time(12), "12:00"],
             ["12:00:00.0000001", NOON, datetime.timedelta(1), b"12:00"]),
    "timestamp": (column([NOON], pa.timestamp("us")),
                  [NOON, pd.Timestamp(NOON), np.datetime64(NOON), "2026-01-31 12:00:00.25",
                   pa.scalar(NOON), 1_769_860_800_250_000],
                  [datetime.datetime(2026, 1, 31), NOON.date()],
                  [NOON.replace(tzinfo=UTC), "2026-01-31T12:00Z", "noon", pd.NaT, b"noon"]),
    "instant": (column([NOON.replace(tzinfo=UTC)], pa.timestamp("ms", "UTC")),
                [NOON.replace(tzinfo=UTC), "2026-01-31T13:00:00.25+01:00",
                 NOON.replace(tzinfo=UTC).astimezone(FIVE_HOURS_WEST), 1_769_860_800_250],
                ["2026-01-31T12:00:00.25-01:00"],
                [NOON, "2026-01-31 12:00:00.2501Z", b"2026-01-31 12:00:00.25Z"]),
    "float": (column([1 + 2**-24], pa.float32()),
              [1 + 2**-24, 1, "1.0000000596046448", np.float32(1), D(1)], [2.0, 1 + 2**-20],
              [1e300, float("nan"), "one", b"1"]),
    "zero": (column([-0.0], pa.float64()), [0, 0.0, -0.0, "0", D(0)], [1e-300], ["", b"0"]),
    "half": (column([np.float16(0.1)], pa.float16()), [np.float16(0.1), 0.1, "0.1", D("0.1")],
             [0.2, -0.1], [70_000, float("nan"), b"ab"]),
    "uint32": (column([2**32 - 1], pa.uint32()), [2**32 - 1, "4294967295", np.uint32(2**32 - 1),
                                                  D(2**32 - 1), b"4294967295"],
               [1], [-1, 2**32, 1.5]),
    "int8": (column([-5], pa.int8()), [-5, "-5", -5.0, D(-5), b"-5"], [5],
             [128, 251, "x", NOON.date()]),
    "uint64": (column([2**64 - 1], pa.uint64()), [2**64 - 1, str(2**64 - 1), D(2**64 - 1),
                                                    str(2**64 - 1).encode()],
               [0], [-1, 2**64]),
    "string": (column(["grün"], pa.string()), ["grün", "grün".encode(), pa.scalar("grün")],
               ["GRÜN"], ["grün".encode("latin-1"), 7, ID, D(7), NOON]),
    "binary": (column([b"\xff\0"], pa.binary()), [b"\xff\0"], ["ab"], [7, ID, D(7)]),
    "bytes": (column([b"ab"], pa.binary()), [b"ab", "ab"], [b"ba"], [7, 7.5, ID, NOON]),
    "fixed": (column([b"ab"], pa.binary(2)), [b"ab", "ab"], [b"ba"],
              [b"abc", b"a", b"", 7, ID, NOON]),
    "fixed16": (column([b"0123456789abcdef"], pa.binary(16)),
                [b"0123456789abcdef", "0123456789abcdef", uuid.UUID(bytes=b"0123456789abcdef")],
                [ID], [7, str(ID), ID.bytes[:15], D(7)]),
    "uuid": (column([ID.bytes], pa.uuid()), [ID, str(ID), ID.hex, ID.urn, ID.bytes],
             [uuid.UUID(int=5), uuid.UUID(int=5).bytes],
             [5, ID.int, 10**31 + 7, D(10**31), np.int64(5), 5.0, True, ID.bytes[:15], "5", NOON]),
    "json": (column(['{"a": 5}'], pa.json_()), ['{"a": 5}', b'{"a": 5}'],
             ['{"a":5}', "5"], [5, 5.0, D(5), True, NOON, ID, {"a": 5}, b"\xff"]),
    "enum": (column(["red"], pa.string()).dictionary_encode(), ["red", b"red"], ["blue"],
             [1, D(1), NOON, ID]),
}


# Rows of the table in docs/testing.md, and their types here.
ROWS = {
    "INT8 to UINT64": ["int8", "uint32", "uint64"],
    "DECIMAL": ["decimal32", "decimal64", "decimal128"],
    "FLOAT, DOUBLE, FLOAT16": ["float", "zero", "half"],
    "DATE": ["date"],
    "TIME": ["time"],
    "TIMESTAMP": ["timestamp"],
    "TIMESTAMP in UTC": ["instant"],
    "UUID": ["uuid"],
    "STRING, ENUM, JSON": ["string", "enum", "json"],
    "bytes, fixed or not": ["binary", "bytes", "fixed", "fixed16"],
}
WAYS = [(int, float, np.number, bool), str,
        (D, datetime.date, datetime.time, uuid.UUID, np.datetime64), bytes]


def test_every_cell_of_the_table_has_keys():
    page = pathlib.Path(__file__).parents[3] / "docs" / "testing.md"
    table = page.read_text().split("## What an input means")[1].split("| unknown:")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line[:1] == "|"][2:]
    assert [row[0] for row in rows] == list(ROWS)
    assert sorted(sum(ROWS.values(), [])) == sorted(TYPES)
    for name, *cells in rows:
        for cell, way in zip(cells, WAYS, strict=True):
            found, refused = (
                [key for type in ROWS[name] for key in TYPES[type][i] if isinstance(key, way)]
                for i in (1, 3)
            )
            assert refused if cell.startswith("refused") else found, (name, cell)
            assert not (found and cell == "refused"), (name, cell)


def write(path, column, nulls=False):
    table = pa.table({"c": column})
    pq.write_table(table, path, store_decimal_as_integer=True,
                   bloom_filter_options={"c": {"ndv": 100, "fpp": 1e-6}})


def test_hours_of_numpy_are_times(tmp_path):
    path, hour = tmp_path / "t.parquet", np.datetime64("2026-01-31T12", "h")
    write(path, pa.array([hour.astype("M8[us]")]))
    for keys in ([hour], np.array([hour])):
        assert parquet_row_groups(path, "c", keys) == [0]
        assert list(blocked_bloom.open(path, column="c").contains(keys)) == [True]


def test_columns_of_large_integers(tmp_path):
    path, column = tmp_path / "t.parquet", pd.Series([2**64 - 1], dtype=object)
    write(path, pa.array([2**64 - 1], pa.uint64()))
    assert list(blocked_bloom.open(path, column="c").contains(column)) == [True]
    with pytest.raises(TypeError, match="no common type of Arrow: give series.tolist()"):
        BloomFilter(10).update(column)


# None would be false, as the empty list is, and callers would skip the file.
def test_an_encrypted_footer_is_an_error(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, pa.array([1]))
    path.write_bytes(b"PARE" + path.read_bytes()[4:-4] + b"PARE")
    with pytest.raises(FormatError, match="t.parquet: .*the footer is encrypted"):
        parquet_row_groups(path, "c", [1])


@pytest.mark.parametrize("name", TYPES)
def test_keys_of_every_type_are_found_or_refused(name, tmp_path):
    values, same, others, refused = TYPES[name]
    path = tmp_path / "t.parquet"
    write(path, values)
    if name == "enum":
        # pyarrow writes strings: the name of the leaf, its older type and its logical type.
        string, data = b"\x18\x01c\x25\x00\x4c\x1c\x00\x00", path.read_bytes()
        assert data.count(string) == 1
        path.write_bytes(data.replace(string, b"\x18\x01c\x25\x08\x4c\x4c\x00\x00"))
        assert "ENUM" in str(blocked_bloom.open(path, column="c").describe())
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


# The last row of the table: a number may be a decimal.
def test_numbers_without_a_known_meaning_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, column([D("5.00")], pa.decimal128(9, 2)))
    # The physical type of the leaf, OPTIONAL, and its name.
    leaf, data = b"\x15\x02\x25\x02\x18\x01c", path.read_bytes()
    assert data.count(leaf) == 1
    path.write_bytes(data.replace(leaf, b"\x15\x04" + leaf[2:]))
    stored = blocked_bloom.open(path, column="c")
    for key in (5, 5.0, "5", D(5), NOON, ID):
        for look_up in (lambda: key in stored, lambda: parquet_row_groups(path, "c", [key])):
            with pytest.raises((TypeError, ValueError), match="unknown logical type|not"):
                look_up()
    assert (500).to_bytes(4, "little") in stored
    assert parquet_row_groups(path, "c", [(500).to_bytes(4, "little")]) == [0]


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


def test_other_files_are_named(tmp_path):
    for head, name in ((b"\x1f\x8b\x08\0", "compressed with gzip"), (b"\x89PNG\r\n\x1a\n", "a PNG"),
                       (b"SQLite format 3\0", "an SQLite"), (b"\xff\xfea\0\n\0", "UTF-16 text")):
        (tmp_path / "f").write_bytes(head + bytes(range(200)))
        for call in (blocked_bloom.open, lambda path: parquet_row_groups(path, "c", [1])):
            with pytest.raises(FormatError, match="not a recognised filter file: it is " + name):
                call(tmp_path / "f")


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
    four, reshaped = np.array([[0, 1], [2, 3], [4, 5], [6, 7]]), np.arange(12).reshape(4, 3)
    for rows in ([four[0], four[1], four[3]], [reshaped[i] for i in (0, 2, 3)],
                 [reshaped[i, :2] for i in (3, 1, 0)], [four[0], four[0]]):
        with pytest.raises(TypeError, match="parts of one array.*copies"):
            seen.update(rows)
    for rows in (iter(four), (row for row in reshaped), iter(four[:, :1])):
        with pytest.raises(TypeError, match="key 0: keys are str.*numpy.ndarray; several columns"):
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
    for bits in (0, -1, 0.5, 101, 1e9, float("nan")):
        with pytest.raises(ValueError, match="bits_per_key is .*: must be at least 1, at most 100"):
            BloomFilter(10, bits_per_key=bits)
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
    import signal
    import threading

    # A process that a shell starts in the background ignores this signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for _ in range(10):
        timer = threading.Timer(0.3, _thread.interrupt_main)
        timer.start()
        with pytest.raises(KeyboardInterrupt) as error:
            for _ in range(100):
                seen = BloomFilter(30_000_000)
                seen.add_new(keys)
        timer.join()
        done = error.value.answers
        # The signal can also arrive with the last keys of a call.
        if len(done) < len(keys):
            break
    assert len(done) == len(seen) < len(keys)
    assert done.sum() > 0.9 * len(done)


def test_weak_references():
    for make in (lambda: BloomFilter(1), ScalableBloomFilter):
        filter = make()
        reference = weakref.ref(filter)
        assert reference() is filter
        del filter
        assert reference() is None


NANOSECONDS = 1_700_000_000_123_456_789


@pytest.mark.parametrize("type", ["timestamp", "instant", "time"])
def test_nanoseconds_of_columns_and_scalars_are_kept(type, tmp_path):
    count = NANOSECONDS % 86_400_000_000_000 if type == "time" else NANOSECONDS
    kinds = {"timestamp": (pa.timestamp("ns"), pl.Datetime("ns")),
             "instant": (pa.timestamp("ns", "UTC"), pl.Datetime("ns", "UTC")),
             "time": (pa.time64("ns"), pl.Time)}
    arrow, polars = kinds[type]
    stored = pa.array([count], arrow)
    micros = pa.timestamp("us", "UTC") if type == "instant" else pa.timestamp("us")
    exact, cut = tmp_path / "ns.parquet", tmp_path / "us.parquet"
    write(exact, stored)
    write(cut, stored.cast(pa.time64("us") if type == "time" else micros, safe=False))
    given = [stored, pa.chunked_array([stored]), pl.Series([count]).cast(polars),
             pd.Series(pd.arrays.ArrowExtensionArray(stored)), [stored[0]], list(stored),
             pd.Series(pd.arrays.ArrowExtensionArray(stored)).astype("category"),
             stored.dictionary_encode()]
    if type != "time":
        given += [pd.Series([pd.Timestamp(count, tz="UTC" if type == "instant" else None)])]
    filter = blocked_bloom.open(exact, column="c")
    for values in given:
        assert parquet_row_groups(exact, "c", values) == [0], values
        assert list(map(str, filter.contains(values))) == ["True"], values
        with pytest.raises(ValueError, match="more than 6 digits"):
            parquet_row_groups(cut, "c", values)
    assert stored[0] in filter and filter.contains(stored).to_pylist() == [True]
    nulls = pa.concat_arrays([stored, pa.nulls(1, arrow), pa.array([count + 1], arrow)])
    assert filter.contains(nulls).to_pylist() == [True, None, False]
    # Times are no keys of other columns.
    write(cut, pa.array(["a"]))
    with pytest.raises(TypeError):
        parquet_row_groups(cut, "c", stored)


def test_numbers_of_columns_keep_their_sign(tmp_path):
    path = tmp_path / "t.parquet"
    for stored, right, wrong in (
        (pa.array([-7]), np.array([-7]), np.array([2**64 - 7], np.uint64)),
        (pa.array([2**64 - 7], pa.uint64()), np.array([2**64 - 7], np.uint64), np.array([-7])),
        (pa.array([2**32 - 7], pa.uint32()), np.array([2**32 - 7]), np.array([-7], np.int32)),
    ):
        write(path, stored)
        filter = blocked_bloom.open(path, column="c")
        for make in (np.array, pa.array, pl.Series, lambda a: pa.array(a).dictionary_encode()):
            assert list(map(str, filter.contains(make(right)))) == ["True"]
            with pytest.raises(ValueError, match=f"key 0: found '{wrong[0]}'"):
                filter.contains(make(wrong))
        with pytest.raises(ValueError, match=f"found '{wrong[0]}'"):
            parquet_row_groups(path, "c", wrong)


@pytest.mark.parametrize("make", [np.array, pa.array, pl.Series, pd.Series, list])
def test_booleans_are_no_integers(make, tmp_path):
    path = tmp_path / "t.parquet"
    write(path, pa.array([0, 1]))
    filter = blocked_bloom.open(path, column="c")
    for look_up in (filter.contains, lambda keys: parquet_row_groups(path, "c", keys)):
        with pytest.raises(ValueError, match="found 'true', expected a whole number"):
            look_up(make([True, False]))


def test_tables_mappings_and_iterators_are_no_values(tmp_path):
    path, other = tmp_path / "t.parquet", tmp_path / "other.parquet"
    write(path, pa.array(["c", "a"]))
    pq.write_table(pa.table({"d": [1]}), other)
    filter = blocked_bloom.open(path, column="c")
    for table in (pd.DataFrame({"c": [1]}), pl.DataFrame({"c": [1]}), pa.table({"c": [1]}),
                  {"c": 1}, types.MappingProxyType({"c": 1})):
        for look_up in (filter.contains, lambda keys: parquet_row_groups(path, "c", keys)):
            with pytest.raises(TypeError, match="is not a list of keys: give a column"):
                look_up(table)
    for iterator in (iter(["a"]), (key for key in ["a"]), map(str, ["a"])):
        for file in (path, other):
            with pytest.raises(TypeError, match="iterator.*give a list"):
                parquet_row_groups(file, "c", iterator)
        assert list(filter.contains(iterator)) == [True]
    assert parquet_row_groups(path, "c", {"a"}) == parquet_row_groups(path, "c", ["a"]) == [0]


def test_bytes_of_integers_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    for type in (pa.int32(), pa.int64(), pa.uint8(), pa.int16()):
        write(path, pa.array([7], type))
        for key in (b"\x80", (7).to_bytes(4, "little") + b"\xff", bytes(3) + b"\x99"):
            with pytest.raises(TypeError, match="give an int"):
                parquet_row_groups(path, "c", [key])


def test_one_row_of_an_array_is_not_a_column():
    seen = BloomFilter(100, 1e-6)
    for make in (lambda: np.zeros((1, 3), int), lambda: np.array([["a", "b"]]),
                 lambda: np.zeros((2, 3), int)):
        with pytest.raises(TypeError, match="array of several dimensions.*give a copy"):
            seen.update(list(make())[:1])
    with pytest.raises(TypeError, match="array of several dimensions"):
        seen.update([np.array([[1, 2], [3, 4]])[:, 0]])
    # NumPy says the same of a view of a whole array as of the only row of a reshaped array.
    numbers, words = np.arange(6), np.array(["a", "b"])
    for items in (list(numbers.reshape(1, 6)), tuple(words.reshape(1, -1)), [numbers[:]],
                  list(numbers.reshape(1, 6)[:, ::-1])):
        for call in (seen.update, seen.contains, seen.add_new):
            with pytest.raises(TypeError, match="array of several dimensions.*give a copy"):
                call(items)
    assert len(seen) == 0
    seen.update([numbers])
    assert (5,) in seen
    seen.update([np.arange(10)[2:4]])
    seen.update([np.array([[1, 2], [3, 4]])[:, 1].copy()])
    assert (2,) in seen and (4,) in seen


COLUMNS_WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
import pandas as pd
from blocked_bloom import BloomFilter
frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
seen = BloomFilter(100, 1e-6)
seen.update([frame["a"], frame["b"]])
seen.update([frame["a"]])
assert (1, 3) in seen and (2, 4) in seen and (1,) in seen and (1, 2) not in seen
"""


def test_columns_of_a_frame_without_pyarrow():
    subprocess.run([sys.executable, "-c", COLUMNS_WITHOUT_PYARROW], check=True)


def test_years_and_days_without_hyphens_are_no_stored_numbers(tmp_path):
    path = tmp_path / "t.parquet"
    first = datetime.date(2020, 1, 1)
    for type in (pa.date32(), pa.timestamp("us")):
        write(path, pa.array([first]).cast(type))
        for key in (np.datetime64("2020", "Y"), np.datetime64("2020-01", "M"),
                    np.datetime64("2020-01-01", "D")):
            assert parquet_row_groups(path, "c", [key]) == [0], key
            assert parquet_row_groups(path, "c", np.array([key])) == [0], key
        for key in ("2020", "20200101"):
            with pytest.raises(ValueError, match=rf"2026-01-31, or \+{key} if this is the stored"):
                parquet_row_groups(path, "c", [key])
    wednesday = datetime.date(2020, 1, 2)
    write(path, pa.array([wednesday, datetime.date(1975, 7, 14)]))
    # The stored number of a day.
    for key in (np.datetime64(wednesday, "W"), 2020, "+2020", np.int64(2020), 18_263):
        assert parquet_row_groups(path, "c", [key]) == [0], key
    assert parquet_row_groups(path, "c", [20_200_101]) == []


def test_a_file_that_cannot_be_searched_must_be_read(tmp_path):
    path = tmp_path / "t.parquet"
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["c", "c"])
    pq.write_table(twice, path)
    with pytest.warns(UserWarning, match='more than one column "c".*all row groups must be read'):
        assert parquet_row_groups(path, "c", [1]) == [0]

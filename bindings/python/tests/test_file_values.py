"""Values that are looked up keep their digits, and missing ones are refused."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blocked_bloom import FileIndex

BIG = 2**53


def index(tmp_path, **columns):
    (tmp_path / "d").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "d/a.parquet")
    return FileIndex.build(tmp_path / "d", list(columns), tmp_path / "i", false_row_groups=1e-6)


def test_the_first_float_that_equals_two_integers_is_refused(tmp_path):
    built = index(tmp_path, n=[BIG + 1])
    for given in (float(BIG), -float(BIG), np.float64(BIG), np.float32(BIG)):
        with pytest.raises(TypeError, match="not exact as a float: give an int"):
            built.files(n=given)
    assert built.files(n=float(BIG - 1)) == built.files(n=BIG) == []
    assert len(built.files(n=BIG + 1)) == 1


@pytest.mark.parametrize("wrap", [lambda array: array, pd.Index, pd.Series])
@pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]", "category"])
def test_integers_of_pandas_keep_their_digits(tmp_path, dtype, wrap):
    built = index(tmp_path, n=[BIG + 1], u=pa.array([2**64 - 1], pa.uint64()))
    assert len(built.files(n=wrap(pd.array([BIG + 1, 5], dtype=dtype)))) == 1
    assert built.files(n=wrap(pd.array([BIG, BIG + 2], dtype=dtype))) == []
    with pytest.raises(ValueError, match="None cannot be looked up"):
        built.files(n=wrap(pd.array([BIG + 1, None], dtype=dtype)))
    unsigned = dtype.replace("I", "UI").replace("int64[", "uint64[")
    assert len(built.files(u=wrap(pd.array([2**64 - 1], dtype=unsigned)))) == 1


@pytest.mark.parametrize("wrap", [lambda array: array, pd.Index])
@pytest.mark.parametrize("value, dtype", [
    (1.5, "Float64"), (1.5, "double[pyarrow]"), ("a", "string"), ("a", "string[pyarrow]"),
    (True, "boolean"), (True, "bool[pyarrow]"),
    (pd.Timestamp("2026-11-28"), "timestamp[us][pyarrow]"),
])
def test_missing_values_of_pandas_are_refused(tmp_path, value, dtype, wrap):
    built = index(tmp_path, v=[value, float("nan") if value == 1.5 else value])
    assert len(built.files(v=wrap(pd.array([value], dtype=dtype)))) == 1
    for values in ([value, None], [None]):
        with pytest.raises(ValueError, match="None cannot be looked up"):
            built.files(v=wrap(pd.array(values, dtype=dtype)))


def test_pandas_of_several_levels_and_periods_are_refused(tmp_path):
    built = index(tmp_path, n=[1])
    for given in (pd.MultiIndex.from_tuples([(1, 2)]), pd.period_range("1970-01-02", periods=1)):
        with pytest.raises(TypeError):
            built.files(n=given)


def test_days_of_numpy(tmp_path):
    day = datetime.date(2026, 11, 28)
    built = index(tmp_path, d=[day], t=pa.array([datetime.datetime(2026, 11, 28)]))
    for column in ("d", "t"):
        for given in (np.datetime64(day), np.array([day], "M8[D]"), [np.datetime64(day)],
                      np.array(["1970-01-01", day], "M8[D]")):
            assert len(built.files(**{column: given})) == 1, given
        assert built.files(**{column: np.datetime64("2026-11-29")}) == []
        with pytest.raises(ValueError, match="None cannot be looked up"):
            built.files(**{column: np.array([day, "NaT"], "M8[D]")})
        with pytest.raises(TypeError, match="cannot be compared"):
            built.files(**{column: np.timedelta64(3, "D")})

"""Lookups inside other libraries: Polars expressions."""

import numpy as np
import polars as pl
import pytest

import blocked_bloom.polars
from blocked_bloom import BloomFilter, ScalableBloomFilter

ROWS = 400_000


@pytest.fixture(params=[lambda: BloomFilter(5_000), lambda: ScalableBloomFilter(0.01)])
def seen(request):
    filter = request.param()
    filter.update(range(0, ROWS, 100))
    filter.update(["a", "b"])
    return filter


def test_expressions_of_polars(seen, tmp_path):
    frame = pl.DataFrame({"id": np.arange(ROWS), "other": 1}).with_columns(
        maybe_null=pl.when(pl.col("id") % 10 > 0).then("id")
    )
    expected = frame.filter(seen.contains(frame["id"]))
    assert ROWS // 100 <= expected.height < ROWS // 10
    frame.write_parquet(tmp_path / "t.parquet", row_group_size=50_000)
    sources = {"lazy": frame.lazy(), "scan": pl.scan_parquet(tmp_path / "t.parquet")}
    found = pl.col("id").bloom.contains(seen)
    assert frame.filter(found).equals(expected)
    for name, lazy in sources.items():
        for engine in ("in-memory", "streaming"):
            assert lazy.filter(found).collect(engine=engine).sort("id").equals(expected), name
            some = pl.col("maybe_null").bloom.contains(seen)
            rows = lazy.with_columns(found.alias("found"), x=some)
            rows = rows.collect(engine=engine).sort("id")
            assert rows["found"].equals(seen.contains(frame["id"])), (name, engine)
            assert rows["x"].equals(seen.contains(frame["maybe_null"])), (name, engine)
            assert rows.schema["found"] == rows.schema["x"] == pl.Boolean
            count = lazy.filter(found).select(pl.len()).collect(engine=engine).item()
            assert count == len(expected)
    # No rows, and only NULL.
    assert frame.head(0).filter(found).height == 0
    assert pl.select(pl.lit(None, pl.String).bloom.contains(seen)).to_series().to_list() == [None]
    # Groups are looked up by rows, too.
    groups = frame.group_by("other").agg(found.sum().alias("n"))
    assert groups["n"].item() == len(expected)


def test_expressions_are_streamed(seen):
    """A streaming query is looked up batch by batch, not as one column."""
    lengths = []

    class Watch:
        def contains(self, keys):
            lengths.append(len(keys))
            return seen.contains(keys)

    lazy = pl.LazyFrame({"id": np.arange(ROWS)}).filter(pl.col("id").bloom.contains(Watch()))
    kept = lazy.collect(engine="streaming")
    assert sum(lengths) == ROWS and max(lengths) < ROWS and len(lengths) > 1
    assert kept.height == seen.contains(np.arange(ROWS)).sum()


def test_rows_of_polars_and_what_is_refused(seen):
    frame = pl.DataFrame({"tenant": ["a", "a", None, "b"], "id": [1, 2, 3, None]})
    seen.update([frame["tenant"], frame["id"]])
    rows = pl.DataFrame({"tenant": ["a", "a", None, "b"], "id": [2, 3, 3, None]})
    found = rows.select(found=pl.struct("tenant", "id").bloom.contains(seen))["found"]
    assert found.to_list() == [True, False, None, None]
    nulls = pl.DataFrame({"s": [{"tenant": "a", "id": 1}, None]})
    assert nulls.select(pl.col("s").bloom.contains(seen))["s"].to_list() == [True, None]
    with pytest.raises(Exception, match="keys of Arrow.s type .g. are floats"):
        pl.select(pl.lit(1.5).bloom.contains(seen))
    assert blocked_bloom.polars.__all__ == ["Bloom"]

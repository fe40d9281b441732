"""Filters in Polars expressions: after this module is imported, expressions have `.bloom`.

>>> import polars as pl
>>> import blocked_bloom.polars
>>> seen = blocked_bloom.BloomFilter(100)
>>> seen.update(["apple", "banana"])
>>> frame = pl.LazyFrame({"fruit": ["apple", None, "cherry"]})
>>> frame.filter(pl.col("fruit").bloom.contains(seen)).collect()["fruit"].to_list()
['apple']

Type checkers do not know `.bloom`. `Bloom(pl.col("fruit")).contains(seen)` is the same expression,
with types.
"""

import polars as pl

from . import Filter, StoredFilter

__all__ = ["Bloom"]


@pl.api.register_expr_namespace("bloom")
class Bloom:
    """The expressions `pl.col(...).bloom`."""

    def __init__(self, expr: pl.Expr) -> None:
        self._expr = expr

    def contains(self, filter: Filter | StoredFilter) -> pl.Expr:
        """Returns which keys may be in the filter; False means certainly absent, NULL stays NULL.

        The keys of `pl.struct("tenant", "id")` are the rows of both columns. A streaming query
        looks up one batch at a time.
        """

        def contains(keys: pl.Series) -> pl.Series:
            if keys.dtype == pl.Struct:
                return filter.contains(keys.struct.unnest().get_columns())
            return filter.contains(keys)

        return self._expr.map_batches(contains, return_dtype=pl.Boolean, is_elementwise=True)

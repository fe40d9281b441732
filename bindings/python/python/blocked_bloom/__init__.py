"""Bloom filters for whole columns of keys (NumPy, Arrow, Polars, pandas, lists) and single keys.

>>> from blocked_bloom import BloomFilter
>>> seen = BloomFilter(1_000_000, fpr=0.01)
>>> seen.update(["apple", "banana"])
>>> "apple" in seen
True
"""

from ._native import (
    BloomFilter,
    Filter,
    FormatError,
    ScalableBloomFilter,
    StoredFilter,
    __version__ as __version__,
    key_hash,
    open as open,
    parquet_row_groups,
)
from .file_index import FileIndex

__all__ = [
    "BloomFilter",
    "FileIndex",
    "Filter",
    "FormatError",
    "ScalableBloomFilter",
    "StoredFilter",
    "key_hash",
    "parquet_row_groups",
]
# `open` is left out: "import *" would replace Python's own.

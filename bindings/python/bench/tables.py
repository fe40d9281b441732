"""Looks up trace ids in a Delta and an Iceberg table: `python tables.py [FILES] [ROWS]`.

Each file has a partition of time and random ids, so that minimum and maximum rule out nothing.
Prints the milliseconds of a lookup (median of 9; ways interleaved) for present and absent ids.
"""

import os
import statistics
import sys
import tempfile
import time

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo

from blocked_bloom import FileIndex

FILES, ROWS = (int(float(text)) for text in (sys.argv[1:] + ["300", "20000"][len(sys.argv) - 1 :]))


def spans(hour):
    ids = [os.urandom(16).hex() for _ in range(ROWS)]
    return pa.table({"trace": ids, "hour": [hour] * ROWS, "ms": list(range(ROWS))}), ids[ROWS // 2]


def rows_of(parts, dataset, trace):
    left = ds.FileSystemDataset(parts, dataset.schema, dataset.format, dataset.filesystem)
    return left.to_table(filter=ds.field("trace") == trace).num_rows


with tempfile.TemporaryDirectory() as folder:
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    some, kept = [], None
    for hour in range(FILES):
        table, trace = spans(hour)
        some.append(trace)
        write_deltalake(f"{folder}/delta", table, mode="append", partition_by=["hour"])
        kept = kept or catalog.create_table("n.spans", table.schema)
        kept.append(table)
    delta = DeltaTable(f"{folder}/delta")
    began = time.perf_counter()
    index = FileIndex.build(delta, ["trace"], f"{folder}/delta.index")
    seconds = time.perf_counter() - began
    print(f"{FILES} files, {FILES * ROWS:,} rows; Delta index: {seconds:.1f} s, "
          f"{index.info()['columns']['trace']['bits_per_value']:.1f} bits per value")
    of_iceberg = FileIndex.build(kept, ["trace"], f"{folder}/iceberg.index")
    dataset = delta.to_pyarrow_dataset()

    def scan(trace):
        return pa.table(delta.scan(predicate=f"trace = '{trace}'")).num_rows

    ways = {
        "Delta, pyarrow": lambda trace: rows_of(list(dataset.get_fragments()), dataset, trace),
        "Delta, deltalake's scan": scan,
        "Delta, index": lambda trace: rows_of(
            index.fragments(dataset, trace=trace), dataset, trace),
        "Iceberg, pyiceberg": lambda trace: kept.scan(EqualTo("trace", trace)).to_arrow().num_rows,
        "Iceberg, index": lambda trace: of_iceberg.rows(trace=trace).filter(
            ds.field("trace") == trace).num_rows,
    }
    for kind, ids in (("present", some), ("absent", [os.urandom(16).hex() for _ in range(9)])):
        times = {name: [] for name in ways}
        for trace in ids[:9]:
            for name, way in ways.items():
                began = time.perf_counter()
                assert way(trace) == (kind == "present"), name
                times[name].append(1000 * (time.perf_counter() - began))
        for name, found in times.items():
            print(f"{kind}: {name}: {statistics.median(found):.1f} ms")

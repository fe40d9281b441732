"""Compares ways to drop duplicate lines: `python dedup.py [LINES]` generates lines, runs each way.

By default 20 M lines of 2 to 9 words, 40 % of them repeats. Each way runs in its own process.
Prints CPU seconds, peak memory above that of the imports, and the number of lines kept.
"""

import resource
import subprocess
import sys
import tempfile
import time
from itertools import compress

import numpy as np

FPR, BATCH = 0.001, 8 << 20


def make(path, n):
    random = np.random.default_rng(3)
    words = np.array([f"{w:x}".encode() for w in random.integers(16, 2**28, 50_000)], dtype=object)
    for part in np.array_split(random.integers(0, n * 3 // 5, n), max(1, n // 100_000)):
        x, columns = part.astype(np.uint64), []
        for j in range(9):
            x = (x ^ (x >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(j + 1)
            columns.append(
                words[((x >> np.uint64(20)) % np.uint64(len(words))).astype(np.int64)].tolist()
            )
        with open(path, "ab") as out:
            out.write(
                b"".join(
                    b" ".join(line[: i % 8 + 2]) + b"\n"
                    for line, i in zip(zip(*columns), part.tolist())
                )
            )


def lines(path):
    with open(path, "rb") as file:
        yield from file


def lists(path):
    with open(path, "rb") as file:
        while batch := file.readlines(BATCH):
            yield batch


def arrow(path):
    import pyarrow as pa
    import pyarrow.csv as csv

    return csv.open_csv(
        path, csv.ReadOptions(column_names=["l"], block_size=BATCH, use_threads=False),
        csv.ParseOptions(delimiter="\x01", quote_char=False),
        csv.ConvertOptions(column_types={"l": pa.binary()}),
    )


def count_set(path, n):
    seen, kept = set(), 0
    for line in lines(path):
        if line not in seen:
            seen.add(line)
            kept += 1
    return kept


def count_rbloom(path, n):
    import rbloom

    seen, kept = rbloom.Bloom(n, FPR), 0
    for line in lines(path):
        if line not in seen:
            seen.add(line)
            kept += 1
    return kept


def count_polars(path, n):
    import polars as pl

    frame = pl.scan_csv(
        path, has_header=False, separator="\x01", quote_char=None, new_columns=["l"]
    )
    return frame.unique().select(pl.len()).collect(engine="streaming").item()


def known(n):
    from blocked_bloom import BloomFilter

    return BloomFilter(n, FPR)


def growing(n):
    from blocked_bloom import ScalableBloomFilter

    return ScalableBloomFilter(FPR)


def arrow_batches(make):
    def count(path, n):
        seen = make(n)
        return sum(batch.filter(seen.add_new(batch.column(0))).num_rows for batch in arrow(path))

    return count


def dedup_lists(path, n):
    seen = known(n)
    return sum(len(list(compress(batch, seen.add_new(batch)))) for batch in lists(path))


WAYS = {
    "read only, lines": lambda path, n: sum(1 for _ in lines(path)),
    "read only, Arrow": lambda path, n: sum(len(batch) for batch in arrow(path)),
    "ours, Arrow batches": arrow_batches(known),
    "ours, growing, Arrow batches": arrow_batches(growing),
    "ours, lists of bytes": dedup_lists,
    "rbloom": count_rbloom,
    "set": count_set,
    "Polars unique": count_polars,
}

if __name__ == "__main__":
    if len(sys.argv) == 4:
        way, path, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
        import polars, pyarrow.csv, rbloom  # noqa: E401, F401  what is measured is not the import

        import blocked_bloom  # noqa: F401

        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        kept = WAYS[way](path, n)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(
            f"| {way} | {time.process_time() - start:.1f} | {memory >> 10} | {kept} |", flush=True
        )
    else:
        n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 20_000_000
        with tempfile.TemporaryDirectory() as folder:
            make(f"{folder}/lines", n)
            print(f"{n} lines\n|  | CPU s | MiB | kept |\n|---|---:|---:|---:|", flush=True)
            for way in WAYS:
                subprocess.run(
                    [sys.executable, __file__, way, f"{folder}/lines", str(n)], check=True
                )

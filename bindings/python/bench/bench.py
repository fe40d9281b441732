"""Compares the package with its peers: `python bench.py [KEYS [ROUNDS [CASE,CASE]]]`.

Cases: str, int, arrow, one, slow. Prints CPU nanoseconds per key (the least of the interleaved
rounds) for building, for lookups of present keys and for lookups of absent keys; the measured false
positive rate; and bits per key if the peer reports its size. Runs one thread, pinned to one core if
the system supports it.
"""

import gc
import os
import sys
import time

import abloom
import fastbloom_rs
import numpy as np
import polars as pl
import probables
import pyarrow as pa
import pybloom_live
import rbloom

import blocked_bloom

N = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
CASES = sys.argv[3].split(",") if len(sys.argv) > 3 else ["int", "arrow", "str", "one", "slow"]
FPR = 0.01


def strings(numbers):
    return [f"user-{number:016x}" for number in numbers.tolist()]


def add_each(filter, keys):
    add = filter.add
    for key in keys:
        add(key)


def count_each(filter, keys):
    return sum([key in filter for key in keys])


def ours(keys):
    return blocked_bloom.BloomFilter(keys, FPR)


def peer(module, **more):
    return lambda keys: module(keys, FPR, **more)


rbloom_, abloom_ = peer(rbloom.Bloom), peer(abloom.BloomFilter)


def update(filter, keys):
    filter.update(keys)


def contains(filter, keys):
    return int(np.asarray(filter.contains(keys)).sum())


# name: (make, add the present keys, count, form of the keys)
ROWS = {
    "int": [
        ("ours, int64 NumPy", ours, update, contains, None),
        (
            "rbloom, .tolist()", rbloom_, lambda f, k: f.update(k.tolist()),
            lambda f, k: count_each(f, k.tolist()), None,
        ),
        (
            "abloom, .tolist()", abloom_, lambda f, k: f.update(k.tolist()),
            lambda f, k: count_each(f, k.tolist()), None,
        ),
        (
            "fastbloom_rs, .tolist()", peer(fastbloom_rs.BloomFilter),
            lambda f, k: f.add_int_batch(k.tolist()),
            lambda f, k: sum(f.contains_int_batch(k.tolist())), None,
        ),
    ],
    "arrow": [
        ("ours, Arrow string", ours, update, lambda f, k: f.contains(k).true_count, pa.array),
        ("ours, Polars String", ours, update, lambda f, k: f.contains(k).sum(), pl.Series),
        (
            "rbloom, .to_pylist()", rbloom_, lambda f, k: f.update(k.to_pylist()),
            lambda f, k: count_each(f, k.to_pylist()), pa.array,
        ),
        (
            "abloom, .to_pylist()", abloom_, lambda f, k: f.update(k.to_pylist()),
            lambda f, k: count_each(f, k.to_pylist()), pa.array,
        ),
    ],
    "str": [
        ("ours, list of str", ours, update, contains, list),
        ("rbloom, list of str", rbloom_, update, count_each, list),
        ("abloom, list of str", abloom_, update, count_each, list),
        (
            "abloom, serializable", peer(abloom.BloomFilter, serializable=True), update, count_each,
            list,
        ),
        (
            "fastbloom_rs, batch of str", peer(fastbloom_rs.BloomFilter),
            lambda f, k: f.add_str_batch(k), lambda f, k: sum(f.contains_str_batch(k)), list,
        ),
    ],
    "one": [
        ("ours, one by one", ours, add_each, count_each, list),
        ("rbloom, one by one", rbloom_, add_each, count_each, list),
        ("abloom, one by one", abloom_, add_each, count_each, list),
    ],
    "slow": [
        ("pybloom-live, one by one", peer(pybloom_live.BloomFilter), add_each, count_each, list),
        (
            "pyprobables, one by one",
            lambda keys: probables.BloomFilter(est_elements=keys, false_positive_rate=FPR),
            add_each, lambda f, k: sum([f.check(x) for x in k]), list,
        ),
    ],
}


def bits(filter, keys):
    for name, factor in (
        ("memory", 8), ("size_in_bits", 1), ("byte_count", 8), ("num_bits", 1), ("number_bits", 1),
    ):
        if hasattr(filter, name):
            value = getattr(filter, name)
            return (value() if callable(value) else value) * factor / keys
    return float("nan")


def main():
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    random = np.random.default_rng(7)
    print(f"{N} keys, least of {ROUNDS} rounds, CPU ns per key; Python {sys.version.split()[0]}")
    print(
        "|  | build | present | absent | false positives, % | bits per key |\n"
        "|---|---:|---:|---:|---:|---:|"
    )
    for case in CASES:
        n = min(N, 200_000) if case == "slow" else N
        present, absent = random.integers(0, 2**62, n), random.integers(2**62, 2**63 - 1, n)
        texts = None if case == "int" else (strings(present), strings(absent))
        keys, best = {}, {}
        for round in range(ROUNDS):
            for name, make, build, count, form in ROWS[case]:
                if form not in keys:
                    keys[form] = (
                        (present, absent) if form is None else tuple(form(text) for text in texts)
                    )
                there, others = keys[form]
                gc.collect()
                gc.disable()
                filter = make(n)
                times = [time.process_time()]
                build(filter, there)
                times.append(time.process_time())
                found = count(filter, there)
                times.append(time.process_time())
                false = count(filter, others)
                times.append(time.process_time())
                gc.enable()
                assert found == n, (name, found)
                took = [(b - a) / n * 1e9 for a, b in zip(times, times[1:])]
                before = best.get(name)
                best[name] = (
                    [min(pair) for pair in zip(took, before[0])] if before else took,
                    false / n * 100, bits(filter, n),
                )
                del filter
        for name, (took, false, size) in best.items():
            print(
                f"| {name} | {took[0]:.1f} | {took[1]:.1f} | {took[2]:.1f} "
                f"| {false:.2f} | {size:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

"""Counts wrong answers over all forms of keys: `python answers.py [KEYS]`.

Each key is added in one form and looked up in all the others. Prints the number of lookups and the
number of added keys that were not found, which must be 0.
"""

import sys

import numpy as np
import polars as pl
import pyarrow as pa

from blocked_bloom import BloomFilter, ScalableBloomFilter


def words(numbers):
    """Texts of 0 to 40 bytes, some not ASCII."""
    text = pa.array(numbers).cast(pa.string()).to_pylist()
    numbers = numbers.tolist()
    return [(t * 3)[: n % 41] + ("ä" if n % 11 == 0 else "") for t, n in zip(text, numbers)]


FORMS = {
    int: [
        lambda a: a, lambda a: a.astype(">i8"), lambda a: np.repeat(a, 2)[::2],
        lambda a: a.tolist(), lambda a: (x for x in a.tolist()), lambda a: pa.array(a),
        lambda a: pa.chunked_array([a[: len(a) // 3], a[len(a) // 3 :]]), lambda a: pl.Series(a),
        lambda a: pa.array(a).dictionary_encode(),
    ],
    str: [
        lambda a: a, lambda a: tuple(a), lambda a: [x.encode() for x in a], lambda a: np.array(a),
        lambda a: np.array([x.encode() for x in a]), lambda a: np.array(a, dtype=object),
        lambda a: pa.array(a), lambda a: pa.array(a, pa.large_string()),
        lambda a: pa.array(a, pa.string_view()), lambda a: pl.Series(a),
        lambda a: pa.array(a).dictionary_encode(), lambda a: pa.array(["no", *a]).slice(1),
    ],
}


def run(total, chunk=200_000):
    """Looks up about `total` keys. Returns the number of lookups and of keys not found."""
    random, looked_up, wrong = np.random.default_rng(1), 0, 0
    while looked_up < total:
        numbers = random.integers(-(2**63), 2**63 - 1, chunk)
        for kind, values in ((int, numbers), (str, words(numbers))):
            forms = FORMS[kind]
            added = forms[random.integers(len(forms))]
            for filter in (BloomFilter(chunk), ScalableBloomFilter(0.01, first_keys=chunk // 5)):
                threads = int(random.integers(1, 3))
                filter.update(added(values), threads=threads)
                for form in forms:
                    found = filter.contains(form(values), threads=threads)
                    wrong += chunk - int(np.asarray(found).sum())
                    looked_up += chunk
                one_by_one = values[:2000] if kind is str else values[:2000].tolist()
                wrong += sum(value not in filter for value in one_by_one)
    return looked_up, wrong


if __name__ == "__main__":
    looked_up, wrong = run(float(sys.argv[1]) if len(sys.argv) > 1 else 1e7)
    print(f"{looked_up} keys looked up, {wrong} wrong answers")
    sys.exit(wrong > 0)

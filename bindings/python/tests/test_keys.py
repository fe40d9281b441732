"""A key is the same key in every form."""

import json
import pathlib
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blocked_bloom import BloomFilter, Filter, ScalableBloomFilter, key_hash

FOLDER = pathlib.Path(__file__).parent
WORDS = [
    "apple", "banana", "", "ä" * 3, "日本語", "x" * 12, "x" * 13, "y" * 100, "a\0b", "😀", "cherry",
]
NUMBERS = [0, 1, -1, 127, -128, 255, 2**31 - 1, -(2**31), 2**62, 12345]


def forms_of_words():
    raw = [word.encode() for word in WORDS]
    yield "list", WORDS
    yield "tuple", tuple(WORDS)
    yield "generator", lambda: (word for word in WORDS)
    yield "dict", dict.fromkeys(WORDS)
    yield "list of bytes", raw
    yield "numpy U", np.array(WORDS)
    yield "numpy U big-endian", np.array(WORDS, dtype=">U100")
    yield "numpy U every second", np.array([w for word in WORDS for w in (word, "no")])[::2]
    yield "numpy S", np.array(raw)
    yield "numpy S backwards", np.array(raw)[::-1]
    yield "numpy object", np.array(WORDS, dtype=object)
    yield "numpy StringDType", np.array(WORDS, dtype=np.dtypes.StringDType())
    yield "list of numpy str", list(np.array(WORDS))
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield str(kind), pa.array(WORDS, kind)
        yield f"{kind} sliced", pa.array(["no", "neither", *WORDS, "no"], kind).slice(2, len(WORDS))
        yield f"{kind} chunked", pa.chunked_array(
            [pa.array(WORDS[:4], kind), pa.array([], kind), pa.array(WORDS[4:], kind)]
        )
        yield f"{kind} dictionary", pa.DictionaryArray.from_arrays(
            list(range(len(WORDS))), pa.array(WORDS, kind)
        )
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield str(kind), pa.array(raw, kind)
    yield "dictionary sliced", pa.array(WORDS + WORDS).dictionary_encode().slice(len(WORDS))
    # Few of the values are used, so they are hashed row by row.
    yield "large dictionary", pa.DictionaryArray.from_arrays(
        pa.array([50 + i for i in range(len(WORDS))], pa.int8()), pa.array(["no"] * 50 + WORDS)
    )
    yield "polars", pl.Series(WORDS)
    yield "polars chunked", pl.concat([pl.Series(WORDS[:5]), pl.Series(WORDS[5:])], rechunk=False)
    yield "polars categorical", pl.Series(WORDS, dtype=pl.Categorical)
    yield "polars enum", pl.Series(WORDS, dtype=pl.Enum(WORDS))
    yield "polars binary", pl.Series(raw)
    yield "pandas", pd.Series(WORDS)
    yield "pandas object", pd.Series(WORDS, dtype=object)
    yield "pandas pyarrow", pd.Series(WORDS, dtype="string[pyarrow]")
    yield "pandas category", pd.Series(WORDS, dtype="category")
    yield "pandas index", pd.Index(WORDS)


def forms_of_numbers():
    yield "list", NUMBERS
    yield "list of numpy int64", list(np.array(NUMBERS))
    yield "numpy", np.array(NUMBERS)
    yield "numpy big-endian", np.array(NUMBERS, dtype=">i8")
    yield "numpy strided", np.repeat(np.array(NUMBERS), 3)[::3]
    yield "numpy backwards", np.array(NUMBERS)[::-1]
    yield "numpy field", np.array([(0, n) for n in NUMBERS], dtype=[("pad", "i1"), ("n", "i8")])[
        "n"
    ]
    yield "memoryview", memoryview(np.array(NUMBERS))
    yield "pyarrow", pa.array(NUMBERS)
    yield "pyarrow sliced", pa.array([99, *NUMBERS]).slice(1)
    yield "pyarrow dictionary", pa.array(NUMBERS).dictionary_encode()
    yield "polars", pl.Series(NUMBERS)
    yield "pandas", pd.Series(NUMBERS)
    yield "pandas Int64", pd.Series(NUMBERS, dtype="Int64")
    yield "range", range(100)
    for kind in "i1 i2 i4 i8 u1 u2 u4 u8".split():
        fits = [n for n in NUMBERS if np.iinfo(kind).min <= n <= np.iinfo(kind).max]
        for order in "<>":
            yield f"numpy {order}{kind}", np.array(fits, order + kind)
        yield f"pyarrow {kind}", pa.array(np.array(fits, kind))
    yield "numpy bool", np.array([True, False, True])
    yield "pyarrow bool", pa.array(
        [False, False, True, True, False, True, True, False, True, True]
    ).slice(1)
    yield "list of bool", [True, False]
    yield "list of numpy bool", [np.False_, np.True_, 5]
    yield "tuples of numpy bool", [(np.True_, "a"), (True, "a"), (1, "b")]


FORMS = [*forms_of_words(), *forms_of_numbers()]


def as_python(value):
    value = value.as_py() if hasattr(value, "as_py") else value
    return value if isinstance(value, (str, bytes, tuple)) else int(value)


@pytest.mark.parametrize(
    "make", [lambda: BloomFilter(1000, 1e-8), lambda: ScalableBloomFilter(1e-6, first_keys=10)]
)
@pytest.mark.parametrize(
    "name,form", FORMS, ids=[f"{name}-{i}" for i, (name, _) in enumerate(FORMS)]
)
def test_every_form_is_the_same_key(name, form, make):
    keys = (lambda: form()) if callable(form) else (lambda: form)
    values = [as_python(value) for value in keys()]
    one_by_one, batch, new = make(), make(), make()
    for value in values:
        one_by_one.add(value)
    assert np.asarray(one_by_one.contains(keys())).all()
    batch.update(keys())
    assert all(value in batch for value in values)
    assert np.asarray(batch.contains(values)).all()
    assert not np.asarray(
        batch.contains(["no", "neither", 99, 98, b"\0"] if name != "range" else ["no"])
    ).any()
    fresh = list(map(bool, np.asarray(new.add_new(keys()))))
    first = [value.encode() if isinstance(value, str) else value for value in values]
    assert fresh == [value not in first[:i] for i, value in enumerate(first)]


def test_single_booleans_of_numpy():
    filter = BloomFilter(100)
    assert filter.add(np.True_) and 1 in filter and np.True_ in filter and True in filter
    assert np.False_ not in filter and key_hash(np.False_) == key_hash(0)


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1, 0x0123_4567_89AB_CDEF])
def test_strings_of_every_length_are_hashed_as_one_key_is(seed):
    """Columns are hashed in place, in groups, by a separate formula for keys of up to 128 bytes."""
    text = "".join(chr(33 + i * 7 % 90) for i in range(400))
    of_one_length = [[text[i : i + length] for i in range(70)] for length in range(300)]
    mixed = [text[i : i + i % 150] for i in range(250)] * 2
    for keys in [*of_one_length, mixed, ["x" * 70_000, "y", text * 5]]:
        for kind in (pa.string(), pa.large_string(), pa.string_view()):
            filter = BloomFilter(len(keys), 1e-8, seed=seed)
            filter.update(pa.array(keys, kind))
            assert all(key in filter for key in keys), (kind, len(keys[0]))
            one_by_one = BloomFilter(len(keys), 1e-8, seed=seed)
            for key in keys:
                one_by_one.add(key)
            assert filter == one_by_one, (kind, len(keys[0]))


def test_views_in_any_order_and_of_many_buffers():
    words = [f"{i:020}" if i % 3 else f"{i:05}" for i in range(3000)]
    chunks = [
        pa.array(words[start : start + 100], pa.string_view()) for start in range(0, 3000, 100)
    ]
    order = np.random.default_rng(1).permutation(3000)
    filter = BloomFilter(3000, 1e-6)
    filter.update(words)
    shuffled = pl.Series(words).gather(order)
    for keys in (pa.concat_arrays(chunks), pl.Series(words).reverse(), shuffled):
        assert np.asarray(filter.contains(keys)).all()
        again = BloomFilter(3000, 1e-6)
        again.update(keys)
        assert again == filter
    with_null = shuffled.to_list()
    with_null[70] = None
    assert filter.contains(pl.Series(with_null)).to_list() == [True] * 70 + [None] + [True] * 2929


def test_a_uuid_is_its_16_bytes():
    step = 0x0102_0304_0506_0708_090A_0B0C_0D0E_0F11
    ids = [uuid.UUID(int=i * step % 2**128) for i in range(2500)]
    raw = [id.bytes for id in ids]
    nulls = [None if i % 7 == 3 else id for i, id in enumerate(ids)]

    class Uuid(uuid.UUID):
        pass

    assert key_hash(ids[9]) == key_hash(raw[9]) and key_hash(Uuid(int=7)) == key_hash(
        uuid.UUID(int=7).bytes
    )
    assert key_hash((ids[9], "a", 7)) == key_hash((raw[9], "a", 7))
    expected = BloomFilter(3000, 1e-8)
    expected.update(raw)
    column = pa.array(raw, pa.binary(16)).cast(pa.uuid())
    forms = [
        ids, tuple(ids), iter(ids), np.array(ids), [Uuid(int=id.int) for id in ids], column,
        pa.chunked_array([column[:700], column[700:]]), pd.Series(ids),
        pd.Series(column, dtype=pd.ArrowDtype(pa.uuid())), pl.Series(raw),
        pa.DictionaryArray.from_arrays(pa.array(range(2500)), column),
    ]
    for form in forms:
        filter = BloomFilter(3000, 1e-8)
        filter.update(form)
        assert filter == expected
    for call in (BloomFilter.add, Filter.add):
        filter = BloomFilter(3000, 1e-8)
        for id in ids:
            assert call(filter, id) and id in filter
        assert filter == expected
    # UUIDs, other keys and None in one list.
    mixed = BloomFilter(3000, 1e-8)
    mixed.update([ids[1], "a", None, 7, (ids[1], 7), b"b", ids[2]])
    assert len(mixed) == 6 and mixed.contains([raw[1], raw[2], "a", 7, (raw[1], 7), "b"]).all()
    assert expected.contains(nulls).tolist() == [id is not None for id in nulls]
    rows = BloomFilter(3000, 1e-8)
    rows.update([column, np.arange(2500)])
    assert rows.contains(list(zip(ids, range(2500)))).all()
    assert rows.contains(list(zip(raw, range(2500)))).all()


LAYOUT_ROWS = 2500


def columns_of_every_layout():
    """A name, whether rows are wide, and a list of keys with the column of exactly these keys."""
    numbers = [i * 37 % 251 - 125 for i in range(LAYOUT_ROWS)]
    names = [f"{i}" * (1 + i % 9) for i in range(LAYOUT_ROWS)]
    raw = [name.encode() for name in names]
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        yield kind, numbers
    for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()):
        yield kind, [abs(number) for number in numbers]
    yield pa.bool_(), [number % 3 == 0 for number in numbers]
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield kind, names
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield kind, raw
    # Rows of 999 bytes are staged 65 at a time because of the 64 KiB limit.
    for width in (16, 999):
        yield pa.binary(width), [(name * width)[:width] for name in raw]
    long = [name * 120 for name in names]
    yield pa.string(), long
    yield pa.string_view(), long
    for index in (pa.int8(), pa.uint16(), pa.int32(), pa.int64()):
        yield pa.dictionary(index, pa.string()), [names[i * 7 % 100] for i in range(LAYOUT_ROWS)]
    yield pa.dictionary(pa.int32(), pa.string()), names
    yield pa.dictionary(pa.int16(), pa.int64()), numbers
    yield pa.dictionary(pa.int16(), pa.binary(999)), [
        (name * 999)[:999] for name in (raw[i % 300] for i in range(LAYOUT_ROWS))
    ]


def with_layout(keys, kind, sparse):
    """Returns the keys as a column. A dictionary has its NULLs in the indices, its values in
    another order and, if `sparse`, more values than are hashed in advance."""
    if not isinstance(kind, pa.DictionaryType):
        return pa.array(keys, kind)
    values = sorted({key for key in keys if key is not None}, reverse=True)
    at = {key: i for i, key in enumerate(values)}
    if sparse and kind.index_type != pa.int8():
        more = 2 * len(keys) + 1
        fill = bytes(999) if kind.value_type == pa.binary(999) else values[0]
        values += [fill] * (min(more, 2**15 - 1) - len(values))
    indices = pa.array([None if key is None else at[key] for key in keys], kind.index_type)
    return pa.DictionaryArray.from_arrays(indices, pa.array(values, kind.value_type))


LAYOUTS = list(columns_of_every_layout())


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("at", range(len(LAYOUTS)), ids=[f"{kind}" for kind, _ in LAYOUTS])
def test_rows_of_every_layout_wherever_they_are(at, nulls):
    """Columns with an offset, surrounding rows, NULL, chunks, and next to other columns."""
    kind, keys = LAYOUTS[at]
    if nulls:
        keys = [None if i % 7 == 3 else key for i, key in enumerate(keys)]
    other = [f"other {i}" for i in range(LAYOUT_ROWS)]
    number = list(range(LAYOUT_ROWS))
    for start, end in ((0, LAYOUT_ROWS), (1, 1500), (13, 1514), (1023, 2500), (2100, 2300)):
        rows = end - start
        key_of = keys[start:end]
        for sparse in (False, True):
            if sparse and not isinstance(kind, pa.DictionaryType):
                continue
            # Slices keep the rows before and after them.
            sliced = with_layout(keys, kind, sparse).slice(start, rows)
            middle = rows // 3
            chunks = pa.chunked_array(
                [sliced.slice(0, middle), sliced.slice(middle, 5), sliced.slice(middle + 5)]
            )
            expected = BloomFilter(rows, 1e-8)
            expected.update(iter(key_of))
            for column in (sliced, chunks):
                found = BloomFilter(rows, 1e-8)
                found.update(column)
                assert found == expected, (start, end, sparse)
                answers = [None if key is None else True for key in key_of]
                assert expected.contains(column, threads=2).to_pylist() == answers
            # Rows of several columns: a NULL in any column makes the row NULL.
            beside = [
                pa.array(other).slice(start, rows), sliced, pa.array(number).slice(start, rows),
            ]
            expected = BloomFilter(rows, 1e-8)
            expected.update(
                None if key is None else (other[start + i], key, number[start + i])
                for i, key in enumerate(key_of)
            )
            for column in (sliced, chunks):
                found = BloomFilter(rows, 1e-8)
                found.update([beside[0], column, beside[2]])
                assert found == expected, (start, end, sparse)
                assert len(found) == sum(key is not None for key in key_of)


def test_golden_hashes():
    golden = json.loads((FOLDER / "golden_keys.json").read_text())
    assert len(golden) >= 20
    for case in golden:
        parts = [
            bytes.fromhex(part["bytes"]) if "bytes" in part else part.get("str", part.get("int"))
            for part in case["key"]
        ]
        key = parts[0] if case["one"] else tuple(parts)
        assert f"{key_hash(key, seed=case['seed']):016x}" == case["hash"], case


def test_golden_filter():
    golden = json.loads((FOLDER / "golden_keys.json").read_text())
    filter = BloomFilter(100, bits_per_key=10)
    for case in golden:
        if case["seed"] == 0:
            parts = [
                (
                    bytes.fromhex(part["bytes"])
                    if "bytes" in part
                    else part.get("str", part.get("int"))
                )
                for part in case["key"]
            ]
            filter.add(parts[0] if case["one"] else tuple(parts))
    assert filter.to_bytes() == (FOLDER / "golden.bloom").read_bytes()
    assert BloomFilter.load(FOLDER / "golden.bloom") == filter


def test_rows_of_columns_are_tuples():
    names, ids = ["a", "bb", "", "日本"] * 700, list(range(2800))
    rows = list(zip(names, ids))
    by_row = BloomFilter(2800, 1e-8)
    by_row.update(rows)
    forms = [
        [np.array(names), np.array(ids)],
        [pa.array(names), np.array(ids, ">u2")],
        (pl.Series(names), pl.Series(ids)),
        [pa.array(names).dictionary_encode(), pa.chunked_array([ids[:1500], ids[1500:]])],
        [pa.chunked_array([pa.array(names[:7]), pa.array(names[7:])]), pd.Series(ids)],
        [
            pa.DictionaryArray.from_arrays(np.arange(2800, dtype="i4"), names),
            pa.array(ids, pa.int16()),
        ],
    ]
    for columns in forms:
        by_columns = BloomFilter(2800, 1e-8)
        by_columns.update(columns)
        assert by_columns == by_row
        assert np.asarray(by_row.contains(keys=columns, threads=2)).all()
    assert ("a", 1) not in by_row and ("a", 0) in by_row
    # A single column is not a list of one-part tuples.
    assert key_hash(("a",)) != key_hash("a")
    with_null = [pa.array(["a", None, "a"]), pa.array([0, 1, None])]
    assert by_row.contains(with_null).to_pylist() == [True, None, None]
    with pytest.raises(ValueError, match="column 1 has 2 rows, column 0 has 3"):
        by_row.contains([np.arange(3), np.arange(2)])
    with pytest.raises(TypeError, match="item 1 of the list is not a column"):
        by_row.contains([np.arange(3), "text"])


def test_nulls():
    for filter in (BloomFilter(100), ScalableBloomFilter(0.001)):
        filter.update(pa.array(["a", None]))
        filter.update([None, "b"])
        assert len(filter) == 2
        assert filter.contains(pa.array(["a", None, "zzz"])).to_pylist() == [True, None, False]
        assert filter.contains(["a", None, "zzz"]).tolist() == [True, False, False]
        assert filter.contains(pl.Series(["b", None])).to_list() == [True, None]
        assert filter.add_new(pa.array(["q", None, "q", "r", None])).to_pylist() == [
            True, None, False, True, None,
        ]
        assert filter.contains(pa.nulls(3)).to_pylist() == [None] * 3
        assert filter.contains(pl.Series([None, None])).to_list() == [None] * 2
        assert filter.contains(pd.Series([1, None], dtype="Int64")).tolist() == [False, False]
        # A NULL in the dictionary, and one in the indices with an arbitrary index.
        values = pa.array(["a", None, "b"])
        indices = pa.array([0, 1, 2, None], pa.int8())
        assert filter.contains(pa.DictionaryArray.from_arrays(indices, values)).to_pylist() == [
            True, None, True, None,
        ]
        few = pa.DictionaryArray.from_arrays(
            pa.array([0, 1, None], pa.int8()), pa.array(["a", None] + ["no"] * 50)
        )
        assert filter.contains(few).to_pylist() == [True, None, None]


@pytest.mark.parametrize(
    "nulls_at", [[], [0], [63, 64, 65], list(range(0, 5000, 3)), list(range(5000))]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_nulls_at_any_place(nulls_at, threads):
    n = 5000
    mask = np.zeros(n, bool)
    mask[nulls_at] = True
    ids = np.arange(n)
    for kind in (pa.int64(), pa.string(), pa.string_view()):
        column = pa.array(
            [None if mask[i] else str(i) if kind != pa.int64() else i for i in range(n)], kind
        )
        # Chunks that do not start at a multiple of 64 rows.
        column = pa.chunked_array(
            [column.slice(0, 1000), column.slice(1000, 33), column.slice(1033)]
        )
        filter = BloomFilter(n, 1e-8)
        filter.update(column, threads=threads)
        assert len(filter) == n - mask.sum()
        expected = [None if mask[i] else bool(i % 2) for i in range(n)]
        odd = BloomFilter(n, 1e-8)
        odd.update([i if kind == pa.int64() else str(i) for i in ids.tolist() if i % 2])
        assert odd.contains(column, threads=threads).to_pylist() == expected


def test_kinds_of_answers():
    filter = BloomFilter(10)
    filter.update(["a", 1])
    for keys in (
        ["a", "b"], np.array(["a", "b"]), pd.Series(["a", "b"]), ("a", "b"), {"a": 1, "b": 2},
    ):
        answers = filter.contains(keys)
        assert (
            isinstance(answers, np.ndarray)
            and answers.dtype == bool
            and answers.tolist() == [True, False]
        )
        answers[0] = False  # the caller owns the answers
    assert isinstance(filter.contains(pa.array(["a"])), pa.BooleanArray)
    assert isinstance(filter.contains(pa.chunked_array([["a"]])), pa.BooleanArray)
    assert filter.contains(pl.Series(["a", "b"])).dtype == pl.Boolean
    assert isinstance(filter.contains([pa.array(["a"]), pa.array([1])]), pa.BooleanArray)
    table = pa.table({"k": ["a", "b"]})
    assert table.filter(filter.contains(table["k"])).num_rows == 1
    frame = pl.DataFrame({"k": ["a", "b"]})
    assert frame.filter(filter.contains(frame["k"])).height == 1
    assert (
        frame.filter(pl.col("k").map_batches(filter.contains, return_dtype=pl.Boolean)).height == 1
    )
    assert pd.DataFrame({"k": ["a", "b"]}).loc[lambda d: filter.contains(d.k)].shape == (1, 1)
    for empty in (
        [], np.array([], int), pa.array([], pa.string()), pl.Series([], dtype=pl.String), iter(()),
    ):
        assert len(filter.contains(empty)) == 0
        assert len(filter.add_new(empty)) == 0


KEY = st.one_of(st.text(), st.binary(), st.integers(-(2**63), 2**64 - 1))
TEXTS = st.lists(
    st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=40)),
    max_size=200,
)
NUMBERS_OF = st.integers(-(2**63), 2**63 - 1)


def forms(draw_texts, draw_numbers):
    """Every way to pass a list of texts and a list of numbers as a batch."""
    texts = [text for text in draw_texts if text is not None]
    yield draw_texts, draw_texts
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield draw_texts, pa.array(draw_texts, kind)
        yield draw_texts[1:], pa.array(draw_texts, kind).slice(1)
    yield draw_texts, pa.array(draw_texts, pa.string()).dictionary_encode()
    yield draw_texts, pl.Series(draw_texts, dtype=pl.String)
    yield texts, np.array(texts, dtype=np.dtypes.StringDType())
    # NumPy drops trailing zeros.
    plain = [text.rstrip("\0") for text in texts]
    yield plain, np.array(plain, dtype=str)
    yield plain, np.array([text.encode() for text in plain], dtype=bytes)
    yield draw_numbers, np.array(draw_numbers, "i8")
    yield draw_numbers, np.array(draw_numbers, "i8").view("u8")
    yield draw_numbers[::-2], np.array(draw_numbers, "i8")[::-2]
    yield draw_numbers, pa.array(draw_numbers, pa.int64())
    yield draw_numbers, pl.Series(draw_numbers, dtype=pl.Int64)
    yield [number % 2**16 for number in draw_numbers], np.array(
        [number % 2**16 for number in draw_numbers], "u2"
    )


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.lists(NUMBERS_OF, max_size=200), st.integers(0, 2**64 - 1))
def test_all_forms_make_one_filter(texts, numbers, seed):
    for values, batch in forms(texts, numbers):
        one_by_one, by_batch = BloomFilter(300, 1e-6, seed=seed), BloomFilter(300, 1e-6, seed=seed)
        for value in values:
            if value is not None:
                one_by_one.add(value)
        by_batch.update(batch)
        assert by_batch == one_by_one
        answers = one_by_one.contains(batch)
        expected = [None if value is None else True for value in values]
        found = (
            answers.tolist()
            if isinstance(answers, np.ndarray)
            else list(answers.to_pylist() if hasattr(answers, "to_pylist") else answers.to_list())
        )
        assert [bool(x) for x in found] == [bool(x) for x in expected]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(KEY, st.tuples(KEY, KEY), st.none())))
def test_no_key_is_lost(keys):
    def is_key(key):
        try:
            return key is not None and key_hash(key) is not None
        except UnicodeEncodeError:
            return False

    keys = [key for key in keys if key is None or is_key(key)]
    filter, growing = BloomFilter(len(keys) + 1), ScalableBloomFilter(0.01, first_keys=1)
    for seen in (filter, growing):
        seen.update(keys)
        assert all(key in seen for key in keys if key is not None)
        assert seen.contains(iter(keys)).tolist() == [key is not None for key in keys]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 50), max_size=100), max_size=10))
def test_add_new_is_a_set(parts):
    for seen in (BloomFilter(100, 1e-8), ScalableBloomFilter(1e-6, first_keys=5)):
        known = set()
        for part in parts:
            expected = []
            for key in part:
                expected.append(key not in known)
                known.add(key)
            assert seen.add_new(np.array(part, "i4")).tolist() == expected


def test_add_new_of_long_batches():
    keys = np.random.default_rng(1).integers(0, 50_000, 200_000)
    first = np.zeros(len(keys), bool)
    first[np.unique(keys, return_index=True)[1]] = True
    for make in (
        lambda: BloomFilter(50_000, 1e-8), lambda: ScalableBloomFilter(1e-7, first_keys=1000),
    ):
        for form in (
            lambda part: part, lambda part: pa.array(part.astype(str)), lambda part: part.tolist(),
        ):
            seen = make()
            new = np.concatenate(
                [np.asarray(seen.add_new(form(part))) for part in np.array_split(keys, 7)]
            )
            assert (new == first).all()


def test_long_keys():
    """Keys larger than one copy."""
    texts = [str(i) * (1 + i * 7000) for i in range(40)]
    one_by_one = BloomFilter(100, 1e-8)
    for text in texts:
        one_by_one.add(text)
    for form in (
        texts, pa.array(texts), pa.array(texts, pa.large_string()),
        pa.array(texts, pa.string_view()), pl.Series(texts), np.array(texts),
        np.array([t.encode() for t in texts]), pa.array(texts).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array(range(40), pa.int8()), texts + ["no"] * 80),
    ):
        batch = BloomFilter(100, 1e-8)
        batch.update(form)
        assert batch == one_by_one
        assert np.asarray(batch.contains(form, threads=2)).all()
    wide = pa.array([bytes([i]) * 40_000 for i in range(5)], pa.binary(40_000))
    filter = BloomFilter(100, 1e-8)
    filter.update(wide)
    assert all(bytes([i]) * 40_000 in filter for i in range(5))


def test_no_wrong_answers(monkeypatch):
    """Runs `bench/answers.py` with 2 M keys; the script accepts any number."""
    monkeypatch.syspath_prepend(FOLDER.parent / "bench")
    import answers

    looked_up, wrong = answers.run(2e6, chunk=20_000)
    assert looked_up >= 2e6 and wrong == 0


class Text(str):
    pass


@pytest.mark.parametrize("make", [lambda: BloomFilter(1000), lambda: ScalableBloomFilter(0.001)])
def test_one_key_at_a_time_is_the_same_in_all_ways(make, tmp_path):
    """C functions of the public classes, PyO3's functions for other keys, and batches agree."""
    keys = [
        "apple", "ä", "", Text("b"), b"c", 7, -1, 2**63 - 1, -(2**63), 2**64 - 2, True, ("a", 1),
        np.int64(9), np.str_("d"),
    ]
    fast, slow, batch = make(), make(), make()
    for key in keys:
        assert key not in fast and not Filter.__contains__(slow, key)
        assert fast.add(key) is True and fast.add(key) is False and Filter.add(slow, key) is True
        assert key in fast and Filter.__contains__(slow, key) and Filter.__contains__(fast, key)
        Filter.add(slow, key)
        batch.update([key, key])
    assert fast.to_bytes() == slow.to_bytes() == batch.to_bytes()
    assert (
        isinstance(fast, Filter)
        and type(fast).__module__ == "blocked_bloom"
        and type(fast).__qualname__ in repr(fast)
    )
    for wrong, error in (
        (1.5, TypeError), (None, TypeError), (2**64, OverflowError), ("\ud800", UnicodeEncodeError),
        (["a"], TypeError),
    ):
        for call in (lambda: wrong in fast, lambda: fast.add(wrong)):
            with pytest.raises(error):
                call()
    fast.save(tmp_path / "f")
    mapped = type(fast).mmap(tmp_path / "f")
    assert all(key in mapped for key in keys) and "absent" not in mapped
    with pytest.raises(TypeError, match="read only"):
        mapped.add("e")
    for other in (object(), "text", type(fast)):
        with pytest.raises(TypeError):
            type(fast).add(other, "a")
        with pytest.raises(TypeError):
            type(fast).__contains__(other, "a")


def test_lists_of_one_type_and_of_several_are_the_same():
    """Early items are hashed in place, later ones with counted references, 1,024 at a time."""
    words = [f"word {i}" * (i % 4) for i in range(3000)]
    for same in (words, [word.encode() for word in words], list(range(-1500, 1500))):
        for odd in (None, ("a", 1), Text("b"), 2**64 - 1, "c", 3):
            for at in (0, 1023, 1024, 2999):
                mixed = same[:at] + [odd] + same[at:]
                one, other = BloomFilter(5000), BloomFilter(5000)
                one.update(mixed)
                other.update(key for key in mixed)
                assert one == other and one.contains(mixed).tolist() == [
                    key is not None for key in mixed
                ]
                assert one.contains(same).all() and len(one) == len(mixed) - (odd is None)
    with pytest.raises(UnicodeEncodeError):
        BloomFilter(10).update(words + ["\ud800"])

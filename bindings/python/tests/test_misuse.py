"""Bad input is refused, and misuse breaks nothing."""

import ctypes
import datetime
import decimal
import re
import threading
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from blocked_bloom import BloomFilter, FormatError, ScalableBloomFilter, key_hash


@pytest.fixture
def filter():
    filter = BloomFilter(100)
    filter.update(["a", 1])
    return filter


PERIODS = pd.period_range("2026", periods=2, freq="M")


class ShortUuid(uuid.UUID):
    bytes = b"ab"


REFUSED = {
    "one key": ("text", "one key where many"),
    "one key of bytes": (b"bytes", "one key where many"),
    "bytearray": (bytearray(b"ab"), "one key where many"),
    "list of bytearrays": ([bytearray(b"ab"), bytearray(b"cd")], r"key 0: .*give bytes\(key\)"),
    "list of memoryviews": ([memoryview(b"ab")], r"key 0: .*give bytes\(key\)"),
    "a bytearray among columns": (
        [np.array([1, 2]), bytearray(b"ab")], "item 1 of the list is not a column",
    ),
    "a number": (7, "not iterable"),
    "numpy floats": (np.array([1.5]), "cast them"),
    "numpy half floats": (np.array([1.5], "f2"), "cast them"),
    "numpy complex": (np.array([1j]), "cast them"),
    "numpy dates": (np.array(["2026-01-01"], "M8[D]"), "astype"),
    "numpy durations": (np.array([1], "m8[s]"), "astype"),
    "numpy records": (np.array([(1, 2)], "i4,i4"), "cast them"),
    "numpy in two dimensions": (np.zeros((2, 2), int), "2 dimensions"),
    "numpy without dimension": (np.array(1), "0-d array|0 dimensions"),
    "numpy masked": (np.ma.masked_array([1, 2], [True, False]), "masked"),
    "arrow floats": (pa.array([1.5]), "floats"),
    "arrow dates": (pa.array([datetime.date(2026, 1, 1)]), "int32"),
    "arrow timestamps": (pa.array([datetime.datetime(2026, 1, 1)]), "int64"),
    "arrow decimals": (pa.array([decimal.Decimal("1.5")]), "strings"),
    "arrow lists": (pa.array([[1]]), "cast the column"),
    "arrow structs": (pa.array([{"a": 1}]), "list of columns"),
    "table": (pa.table({"a": [1]}), "list of columns"),
    "frame": (pl.DataFrame({"a": [1]}), "list of columns"),
    "run ends": (pa.RunEndEncodedArray.from_arrays([1], ["a"]), "run-end"),
    "dictionary of floats": (pa.array([1.5]).dictionary_encode(), "floats"),
    "polars floats": (pl.Series([1.5]), "floats"),
    "polars dates": (pl.Series([datetime.date(2026, 1, 1)]), "int32"),
    "pandas floats": (pd.Series([1.5]), "floats"),
    "list of floats": (["a", 1.5], "key 1: .*not float"),
    "list of numpy floats": (["a", np.float32(1.5)], "key 1: .*float32"),
    "list of dates": ([datetime.date(2026, 1, 1)], "key 0: .*isoformat"),
    "list of objects": ([1, object()], "key 1: .*not object"),
    "list of lists": ([["a"], ["b"]], "key 0: .*list of arrays"),
    "tuple with a float": ([("a", 1), ("a", 1.5)], "key 1: .*float"),
    "nested tuple": ([("a", ("b",))], "key 0: .*tuple"),
    # Types with the storage of a key type.
    "polars objects": (pl.Series(["a"], dtype=pl.Object), "Polars' type Object: give series.to_l"),
    "a column of polars objects": (
        [pl.Series(["a"]), pl.Series(["a"], dtype=pl.Object)], "Polars' type Object",
    ),
    "polars decimals": (pl.Series([decimal.Decimal("1.5")]), "decimals"),
    "polars times": (pl.Series([datetime.time(1)]), "dates or times"),
    "polars durations": (pl.Series([datetime.timedelta(1)]), "dates or times"),
    "polars timestamps": (pl.Series([datetime.datetime(2026, 1, 1)]), "dates or times"),
    "polars wide integers": (pl.Series([1], dtype=pl.Int128), "_pli128"),
    "periods": (pd.Series(PERIODS), "extension type .pandas.period.*storage type"),
    "periods of a category": (pd.Series(PERIODS).astype("category"), "pandas.period"),
    "index of periods": (PERIODS, r"key 0: .*Period: give str\(key\)"),
    "column of periods": ([pa.array([1, 2]), pd.Series(PERIODS)], "pandas.period"),
    "intervals": (pd.Series(pd.interval_range(0, 3)), "pandas.interval"),
    "timestamps of a category": (
        pd.Series(pd.date_range("2026", periods=2)).astype("category"), "dates or times",
    ),
    "no timestamps of a category": (
        pd.Series(pd.date_range("2026", periods=0)).astype("category"), "dates or times",
    ),
    "index of timestamps": (pd.date_range("2026", periods=2), "dates or times"),
    "index with a zone": (pd.date_range("2026", periods=2, tz="UTC"), "dates or times"),
    "arrow json": (pa.array(["{}"], pa.json_()), "extension type .arrow.json"),
    "arrow bool8": (pa.array([1], pa.int8()).cast(pa.bool8()), "extension type .arrow.bool8"),
    "arrow opaque": (
        pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), "a", "b"), pa.array([1])),
        "extension type .arrow.opaque",
    ),
    "arrow small decimals": (pa.array([decimal.Decimal("1")], pa.decimal32(5, 1)), "decimals"),
    "arrow intervals": (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "dates or times"),
    "numpy objects": (
        np.array([decimal.Decimal("1.5")]), r"key 0: .*Decimal: give str\(\(key \+ 0\)\.normalize"
    ),
    "list of periods": (list(PERIODS), r"key 0: .*Period: give str\(key\)"),
    "list of pandas timestamps": (list(pd.date_range("2026", periods=2)), "key 0: .*isoformat"),
    "list of numpy dates": ([np.datetime64("2026-01-01")], "key 0: .*isoformat"),
    "list of numpy durations": ([np.timedelta64(1, "s")], "key 0: .*timedelta64"),
    "list of durations": ([datetime.timedelta(1)], "key 0: .*timedelta"),
    "list of times": ([datetime.time(1)], "key 0: .*time"),
    "a UUID of another size": ([ShortUuid(int=1)], "key 0: a UUID whose bytes are 2, not 16"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_batches(filter, name):
    keys, text = REFUSED[name]
    for call in (filter.update, filter.contains, filter.add_new, ScalableBloomFilter().update):
        with pytest.raises((TypeError, ValueError), match=text):
            call(keys)


def test_the_advice_for_rows_of_several_columns_is_followed():
    table = pa.table({"tenant": ["a", "b", None], "id": [1, 2, 3]})
    frame, pandas = pl.from_arrow(table), table.to_pandas()
    structs = table.to_struct_array().combine_chunks()
    advice = (
        (table, "table.columns", table.columns),
        (table.to_batches()[0], "table.columns", table.to_batches()[0].columns),
        (frame, "frame.get_columns()", frame.get_columns()),
        (pandas, "[frame[name] for name in frame]", [pandas[name] for name in pandas]),
        (structs, "array.flatten()", structs.flatten()),
    )
    for refused, way, columns in advice:
        filter = BloomFilter(100, 1e-6)
        with pytest.raises(TypeError, match=re.escape(way)):
            filter.update(refused)
        assert len(filter) == 0
        filter.update(columns)
        assert len(filter) == 2 and ("a", 1) in filter and ("b", 2) in filter


def test_refused_keys(filter):
    for key in (1.5, None, [1], object(), ("a", None), bytearray(b"a"), np.float64(1)):
        for call in (filter.add, filter.__contains__, key_hash):
            with pytest.raises(TypeError, match="keys are str"):
                call(key)
    for key in (2**64, -(2**63) - 1, (1, 2**64)):
        with pytest.raises(OverflowError, match="-2\\*\\*63 to 2\\*\\*64"):
            filter.add(key)
        with pytest.raises(OverflowError, match="key 2000:"):
            filter.update([1] * 2000 + [key])
    with pytest.raises(UnicodeEncodeError):
        filter.add("\ud800")
    with pytest.raises(UnicodeEncodeError) as error:
        filter.update(["a"] * 1500 + ["\ud800"])
    assert "key 1500" in error.value.__notes__[0]
    with pytest.raises(ValueError, match="key 1: code point 0xd800"):
        filter.update(np.array(["a", "\ud800"]))
    with pytest.raises(ValueError, match="threads"):
        filter.contains(np.arange(3), threads=0)


def test_refused_sizes():
    for arguments in (
        {"fpr": 0.0}, {"fpr": 1.5}, {"fpr": float("nan")}, {"bits_per_key": -1.0}, {"fpr": 1e-30},
    ):
        with pytest.raises(ValueError):
            BloomFilter(100, **arguments)
    with pytest.raises(TypeError, match="not both"):
        BloomFilter(100, 0.01, bits_per_key=10)
    with pytest.raises((ValueError, MemoryError, OverflowError)):
        BloomFilter(2**63)
    with pytest.raises(OverflowError):
        BloomFilter(-1)
    with pytest.raises(ValueError):
        ScalableBloomFilter(0)


class Text(str):
    def __len__(self):
        return 1 << 40

    def encode(self, *_):
        return b"other"


class Raw(bytes):
    def __len__(self):
        return 1 << 40


class Number(int):
    def __index__(self):
        return 99

    __int__ = __index__


class Pair(tuple):
    def __len__(self):
        return 1 << 40

    def __iter__(self):
        return iter(["x"])


class Keys(list):
    def __len__(self):
        return 1 << 40


class Array(np.ndarray):
    def __len__(self):
        return 1 << 40


class Index:
    def __index__(self):
        return 7


def test_subclasses_that_lie(filter):
    assert key_hash(Text("a")) == key_hash("a")
    assert key_hash(Raw(b"a")) == key_hash("a")
    assert key_hash(Number(5)) == key_hash(5)
    assert key_hash(Pair(("a", 1))) == key_hash(("a", 1))
    assert key_hash(Index()) == key_hash(7)
    assert filter.contains(Keys(["a", Text("a"), Raw(b"a"), "b"])).tolist() == [
        True, True, True, False,
    ]
    assert filter.contains(np.arange(3).view(Array)).tolist() == [False, True, False]


def test_a_list_that_changes_while_it_is_read(filter):
    keys = ["x"] * 5000

    class Shrinks:
        def __index__(self):
            del keys[10:]
            return 3

    keys[5] = Shrinks()
    # Keys taken before the list changed, and none after its new end.
    assert len(filter.add_new(keys)) == 1024
    grows = ["x"] * 100

    class Grows:
        def __index__(self):
            grows.extend(["y"] * 100)
            return 3

    grows[50] = Grows()
    assert len(filter.add_new(grows)) in (100, 200)


def test_errors_of_who_is_called(filter):
    class Raises:
        def __index__(self):
            raise ZeroDivisionError("no")

    with pytest.raises(ZeroDivisionError):
        filter.update(["a", Raises()])

    def broken():
        yield "a"
        raise KeyError("no more")

    with pytest.raises(KeyError, match="no more"):
        filter.update(broken())

    class Lies:
        def __arrow_c_array__(self, requested_schema=None):
            return self.value

    for value, error in (
        ((1, 2), TypeError), (None, TypeError), ((), IndexError),
        (pa.array(["a"]).__arrow_c_array__()[::-1], ValueError),
    ):
        lies = Lies()
        lies.value = value
        with pytest.raises(error):
            filter.contains(lies)
    used = Lies()
    used.value = pa.array(["a"]).__arrow_c_array__()
    assert filter.contains(used).tolist() == [True]
    with pytest.raises(ValueError, match="used before"):
        filter.contains(used)

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.array(["a"]).__arrow_c_array__()[0]

    with pytest.raises(ValueError):
        filter.contains(Stream())

    class Fails:
        def __arrow_c_array__(self, requested_schema=None):
            raise RuntimeError("cannot")

    with pytest.raises(RuntimeError, match="cannot"):
        filter.contains(Fails())


def array(kind, length, buffers, offset=0, null_count=0, **more):
    return pa.Array.from_buffers(
        kind, length, [None if b is None else pa.py_buffer(b) for b in buffers], null_count, offset,
        **more,
    )


def repeat(keys):
    """The same keys from a fresh producer."""
    return producer(*keys.arguments) if hasattr(keys, "arguments") else keys


def test_arrow_that_lies(filter):
    def i32(*offsets):
        return np.array(offsets, "i4")

    def i64(*offsets):
        return np.array(offsets, "i8")

    text = b"applefig"
    bad = [
        (
            array(pa.string(), 3, [None, i32(0, 5, 3, 8), text]),
            "key 1: its bytes end at offset 3, expected 5 to 8",
        ),
        (
            array(pa.string(), 3, [None, i32(0, 5, 99, 8), text]),
            "key 1: its bytes end at offset 99, expected 5 to 8",
        ),
        (
            producer(b"u", 2, 0, 0, [None, i32(-5, 5, 8).tobytes(), text]),
            "key 0: its bytes end at offset 5, expected -5 to 8",
        ),
        (
            producer(b"u", 2, 0, 0, [None, i32(0, 5, -1).tobytes(), text]),
            "key 1: its bytes end at offset -1",
        ),
        (
            producer(b"u", 2, 0, 0, [None, i32(9, 9, 8).tobytes(), text]),
            "key 0: its bytes end at offset 9, expected 9 to 8",
        ),
        (
            producer(b"U", 2, 0, 0, [None, i64(0, 9, 8).tobytes(), text]),
            "key 0: its bytes end at offset 9, expected 0 to 8",
        ),
        (producer(b"Z", 2, 0, 0, [None, i64(0, 2**62, 8).tobytes(), text]), "key 0"),
        (
            pa.DictionaryArray.from_arrays(pa.array([0, 2]), pa.array(["a", "b"]), safe=False),
            "key 1: index 2 of a dictionary of 2",
        ),
        (
            pa.DictionaryArray.from_arrays(
                pa.array([0, -1], pa.int8()), pa.array(["a", "b"]), safe=False
            ),
            "key 1: index -1 of a dictionary of 2",
        ),
        (
            pa.DictionaryArray.from_arrays(
                pa.array([0, 70], pa.int8()), pa.array(["a"] * 60), safe=False
            ),
            "key 1: index 70 of a dictionary of 60",
        ),
    ]
    for keys, text in bad:
        for threads in (1, 2):
            with pytest.raises(ValueError, match=text):
                filter.contains(repeat(keys), threads=threads)
            with pytest.raises(ValueError, match=text):
                filter.update(repeat(keys), threads=threads)
    # The last offset of a group is out of bounds; the next group starts at a smaller one.
    for kind, width in ((pa.string(), "i4"), (pa.large_string(), "i8")):
        offsets = np.arange(131, dtype=width)
        offsets[64] = 2000
        with pytest.raises(
            ValueError, match="key 63: its bytes end at offset 2000, expected 63 to 130"
        ):
            filter.contains(array(kind, 130, [None, offsets, b"x" * 130]))
    # The index counts from the start of the column, across chunks.
    chunks = pa.chunked_array([pa.array(["a"] * 3000), bad[0][0]])
    for threads in (1, 2):
        with pytest.raises(ValueError, match="key 3001: its bytes end at offset 3"):
            filter.contains(chunks, threads=threads)
    # The index or view of a NULL is arbitrary.
    indices = array(pa.int8(), 2, [b"\x01", np.array([0, 99], "i1")], null_count=1)
    assert filter.contains(
        pa.DictionaryArray.from_arrays(indices, pa.array(["a"]), safe=False)
    ).to_pylist() == [True, None]


def view(length, prefix=b"user", buffer=0, offset=0):
    return np.frombuffer(
        np.array([length], "i4").tobytes() + prefix + np.array([buffer, offset], "i4").tobytes(),
        "u1",
    )


@pytest.mark.parametrize(
    "bad",
    [
        view(13, offset=8), view(13, buffer=1), view(13, buffer=-1), view(13, offset=-1),
        view(2**31 - 1), view(-1), view(21, offset=2**31 - 1),
    ],
)
def test_views_that_lie(filter, bad):
    text = b"user-0123456789abcdef"[:20]
    good = view(13)
    column = array(pa.string_view(), 3, [None, np.concatenate([good, good, bad]), text])
    for threads in (1, 2):
        with pytest.raises(ValueError, match="key 2: a view of"):
            filter.contains(column, threads=threads)
    null = array(
        pa.string_view(), 3, [b"\x03", np.concatenate([good, good, bad]), text], null_count=1
    )
    assert filter.contains(null).to_pylist() == [False, False, None]


class Schema(ctypes.Structure):
    _fields_ = [
        ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
        ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    ]


class CArray(ctypes.Structure):
    _fields_ = [
        ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.c_void_p),
        ("children", ctypes.c_void_p), ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p),
    ]


RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
released = []


@RELEASE
def release(pointer):
    # One structure has `release` two words later; only the calls matter here.
    released.append(pointer)


NEW = ctypes.pythonapi.PyCapsule_New
NEW.restype, NEW.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def producer(format, length, null_count, offset, buffers, metadata=None):
    """A producer of an array with arbitrary numbers."""
    kept = [None if b is None else ctypes.create_string_buffer(b, len(b)) for b in buffers]
    pointers = (ctypes.c_void_p * max(len(kept), 1))(
        *[None if b is None else ctypes.addressof(b) for b in kept]
    )
    call = ctypes.cast(release, ctypes.c_void_p).value
    schema = Schema(format=format, metadata=metadata, release=call)
    carray = CArray(
        length=length, null_count=null_count, offset=offset, n_buffers=len(buffers),
        buffers=ctypes.addressof(pointers), release=call,
    )

    class Producer:
        keep = (kept, pointers, schema, carray)
        arguments = (format, length, null_count, offset, buffers)

        def __arrow_c_array__(self, requested_schema=None):
            return NEW(ctypes.addressof(schema), b"arrow_schema", None), NEW(
                ctypes.addressof(carray), b"arrow_array", None
            )

    return Producer()


@pytest.mark.parametrize(
    "format,length,null_count,offset,buffers,text",
    [
        (b"l", -1, 0, 0, [None, b"12345678"], "negative"),
        (b"l", 1, 0, -1, [None, b"12345678"], "negative"),
        (b"l", 2**62, 0, 2**62, [None, b"12345678"], "too large"),
        (b"l", 2**61, 0, 0, [None, b"12345678"], "too large"),
        (b"l", 1, 0, 0, [None, None], "buffer 1 is null"),
        (b"l", 1, 0, 0, [None], "buffer 1 of 1 is missing"),
        (b"l", 1, 1, 0, [None, b"12345678"], "1 rows are NULL, and no bitmap says which"),
        (b"u", 1, 0, 0, [None, b"\0\0\0\0\x02\0\0\0"], "buffer 2 of 2 is missing"),
        (b"u", 1, 0, 0, [None, b"\0\0\0\0\x02\0\0\0", None], "its bytes end at offset 2"),
        (b"vu", 1, 0, 0, [None, b"\x02\0\0\0ab" + bytes(10)], "lengths of their buffers"),
        (
            b"vu", 1, 0, 0, [None, b"\x0d\0\0\0abcd" + bytes(8), b"abc", None],
            "lengths of their buffers",
        ),
        (b"w:-3", 1, 0, 0, [None, b"abc"], "no width"),
        (b"w:9223372036854775807", 2, 0, 0, [None, b"abc"], "too large"),
        (None, 1, 0, 0, [None, b"abc"], "without a format"),
        (b"\xff", 1, 0, 0, [None, b"abc"], "not UTF-8"),
        (b"", 1, 0, 0, [None, b"abc"], "no strings, bytes or integers"),
    ],
)
def test_producers_that_lie(filter, format, length, null_count, offset, buffers, text):
    released.clear()
    with pytest.raises((ValueError, TypeError), match=text):
        filter.contains(producer(format, length, null_count, offset, buffers))
    assert len(released) == 2


def metadata(*pairs, count=None):
    parts = [np.array([len(part)], "i4").tobytes() + part for pair in pairs for part in pair]
    return np.array([len(pairs) if count is None else count], "i4").tobytes() + b"".join(parts)


def test_metadata_of_a_type(filter):
    name, other = b"ARROW:extension:name", (b"comment", b"ARROW:extension:name")
    for pairs, format, text in [
        ([other], b"l", None),
        ([], b"l", None),
        ([(name, b"arrow.uuid")], b"l", "extension type .arrow.uuid"),
        ([other, (name, b"unit.test")], b"l", "extension type .unit.test"),
        ([(name, b"")], b"l", 'extension type ""'),
        ([(name, b"\xff")], b"l", "extension type"),
        ([other, (b"", b""), (name, b"arrow.uuid")], b"w:16", None),
    ]:
        for unaligned in (0, 1):
            # An odd address: the interface promises no alignment.
            kept = ctypes.create_string_buffer(b"x" * unaligned + metadata(*pairs))
            keys = producer(format, 1, 0, 0, [None, bytes([1]) + bytes(15)])
            ctypes.c_void_p.from_address(
                ctypes.addressof(keys.keep[2]) + Schema.metadata.offset
            ).value = ctypes.addressof(kept) + unaligned
            if text is None:
                assert filter.contains(keys).tolist() == [format == b"l"]
            else:
                with pytest.raises(TypeError, match=text):
                    filter.contains(keys)
    with pytest.raises(ValueError, match="metadata of the length -1"):
        filter.contains(
            producer(b"l", 1, 0, 0, [None, bytes(8)], metadata(count=1) + b"\xff" * 4)
        )


def test_dictionaries_that_lie(filter):
    values = producer(b"u", 1, 0, 0, [None, np.array([0, 1], "i4").tobytes(), b"a"])
    of_values, stored_values = (ctypes.addressof(structure) for structure in values.keep[2:])
    for schema, carray, text in [
        (of_values, stored_values, None),
        (of_values, None, "without values"),
        (of_values + 1, stored_values, "not aligned"),
        (of_values, stored_values + 4, "not aligned"),
    ]:
        released.clear()
        indices = producer(b"i", 1, 0, 0, [None, bytes(4)])
        indices.keep[2].dictionary, indices.keep[3].dictionary = schema, carray
        if text is None:
            assert filter.contains(indices).tolist() == [True]
        else:
            with pytest.raises(ValueError, match=text):
                filter.contains(indices)
        assert len(released) == 2


def test_places_of_buffers_that_are_not_aligned(filter):
    keys = producer(b"l", 2, 0, 0, [None, np.array([1, 2]).tobytes()])
    pointers = bytes(keys.keep[1])
    kept = ctypes.create_string_buffer(b"x" + pointers)
    keys.keep[3].buffers = ctypes.addressof(kept) + 1
    assert filter.contains(keys).tolist() == [True, False]


@pytest.mark.parametrize("count", [-(2**63), -(2**63) + 2, -1, 2])
def test_counts_of_buffers_that_lie(filter, count):
    keys = producer(b"vu", 0, 0, 0, [None, b"", b""])
    keys.keep[3].n_buffers = count
    with pytest.raises(ValueError, match="missing|lengths of their buffers"):
        filter.contains(keys)


def test_a_producer_that_is_right(filter):
    released.clear()
    assert filter.contains(
        producer(b"l", 2, -1, 1, [None, np.array([9, 1, 2]).tobytes()])
    ).tolist() == [True, False]
    assert filter.contains(
        producer(b"u", 2, -1, 0, [b"\x01", np.array([0, 1, 1], "i4").tobytes(), b"a"])
    ).tolist() == [True, False]
    assert filter.contains(producer(b"w:0", 2, 0, 0, [None, None])).tolist() == [False, False]
    assert len(released) == 6


def test_an_array_that_changes_during_the_call():
    """Answers are arbitrary, but nothing crashes, and unchanged keys are found."""
    filter = BloomFilter(100_000)
    numbers = np.arange(100_000)
    offsets = np.arange(0, 5 * 50_001, 5, dtype="i4")
    text = np.frombuffer(b"".join(b"%05d" % i for i in range(50_000)), "u1").copy()
    strings = array(pa.string(), 50_000, [None, offsets, text])
    filter.update(strings)
    filter.update(np.arange(0, 100_000, 2))
    stop = threading.Event()

    def change():
        random = np.random.default_rng(1)
        while not stop.is_set():
            numbers[1::2] = random.integers(0, 2**62, 50_000)
            offsets[1001:-1:97] = random.integers(-(2**31), 2**31 - 1, len(offsets[1001:-1:97]))
            text[40_000:] = random.integers(0, 255, len(text) - 40_000)
            offsets[1001:-1:97] = np.arange(0, 5 * 50_001, 5)[1001:-1:97]

    thread = threading.Thread(target=change)
    thread.start()
    refused = 0
    try:
        for round in range(300):
            assert filter.contains(numbers, threads=1 + round % 2)[::2].all()
            try:
                assert np.asarray(filter.contains(strings, threads=1 + round % 2))[:1000].all()
            except ValueError as error:
                assert "its bytes end at offset" in str(error)
                refused += 1
    finally:
        stop.set()
        thread.join()
    assert refused > 0


def test_damaged_bytes():
    for make in (lambda: BloomFilter(1000), lambda: ScalableBloomFilter(0.01, first_keys=100)):
        filter = make()
        filter.update(range(1000))
        good = filter.to_bytes()
        cls = type(filter)
        for at in (0, 9, 12, 30, 63, 64, 500, len(good) - 1):
            bad = bytearray(good)
            bad[at] ^= 1
            with pytest.raises(FormatError):
                cls.from_bytes(bytes(bad))
        for bad in (b"", good[:-1], good + b"\0", b"x" * 200):
            with pytest.raises(FormatError):
                cls.from_bytes(bad)
        with pytest.raises(TypeError):
            cls.from_bytes("text")
    with pytest.raises(FormatError):
        BloomFilter.from_bytes(ScalableBloomFilter().to_bytes())

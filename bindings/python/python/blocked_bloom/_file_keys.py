"""Types of columns, and the keys of their values, for an index over files.

Keys are those of DataFusion's functions, so that each side reads the other's indexes.
"""

# pyarrow and fsspec have no type information.
# mypy: ignore-errors

import re
from typing import Any

import numpy as np

_UNITS = {"s": ("s", 0), "ms": ("ms", 1), "us": ("µs", 2), "ns": ("ns", 3)}


def type_key(data_type: Any) -> tuple[str, int]:
    """The name of a type in Rust's Arrow library, and the seed of its keys."""
    import pyarrow as pa
    import pyarrow.types as types

    if isinstance(data_type, pa.BaseExtensionType):
        data_type = data_type.storage_type
    if types.is_dictionary(data_type):
        (index, _), (values, seed) = type_key(data_type.index_type), type_key(data_type.value_type)
        return f"Dictionary({index}, {values})", seed
    name = str(data_type)
    if types.is_boolean(data_type):
        return "Boolean", 1
    if types.is_integer(data_type):
        return ("UInt" if name[0] == "u" else "Int") + str(data_type.bit_width), 1
    if types.is_floating(data_type):
        return f"Float{data_type.bit_width}", 2
    strings = {
        pa.string(): "Utf8", pa.large_string(): "LargeUtf8", pa.string_view(): "Utf8View",
        pa.binary(): "Binary", pa.large_binary(): "LargeBinary", pa.binary_view(): "BinaryView",
    }
    if data_type in strings:
        return strings[data_type], 3
    if types.is_fixed_size_binary(data_type):
        return f"FixedSizeBinary({data_type.byte_width})", 3
    if types.is_date(data_type):
        return f"Date{data_type.bit_width}", {32: 4, 64: 5}[data_type.bit_width]
    if types.is_timestamp(data_type):
        unit, number = _UNITS[data_type.unit]
        zone = f', "{data_type.tz}"' if data_type.tz is not None else ""
        return f"Timestamp({unit}{zone})", 6 + 256 * number + (4096 if zone else 0)
    if types.is_time(data_type):
        unit, number = _UNITS[data_type.unit]
        return f"Time{data_type.bit_width}({unit})", 7 + 256 * number
    if types.is_duration(data_type):
        unit, number = _UNITS[data_type.unit]
        return f"Duration({unit})", 8 + 256 * number
    if types.is_decimal(data_type):
        text = f"Decimal{data_type.bit_width}({data_type.precision}, {data_type.scale})"
        return text, 9 + 256 * (data_type.scale & 0xFF)
    raise TypeError(f"values of type {data_type} cannot be looked up in an index")


def _plain(name: str) -> str:
    """The type of the values of a dictionary, else the type."""
    while name.startswith("Dictionary("):
        name = name.split(", ", 1)[1][:-1]
    return name


_TEXTS = ("Utf8", "LargeUtf8", "Utf8View")
_BYTES = ("Binary", "LargeBinary", "BinaryView")
_WIDER = {
    "Int8": ("Int16", "Int32", "Int64"),
    "Int16": ("Int32", "Int64"),
    "Int32": ("Int64",),
    "UInt8": ("UInt16", "UInt32", "UInt64", "Int16", "Int32", "Int64"),
    "UInt16": ("UInt32", "UInt64", "Int32", "Int64"),
    "UInt32": ("UInt64", "Int64"),
    "Float16": ("Float32", "Float64"),
    "Float32": ("Float64",),
    **{text: _TEXTS + _BYTES for text in _TEXTS + _BYTES},
}
_DECIMAL = re.compile(r"Decimal\d+\((\d+), (-?\d+)\)")
_ZONED = re.compile(r'Timestamp\((\S+), ".*"\)')


def keeps_keys(own: str, read: str) -> bool:
    """Whether each value of a file's own type has the key that it has as it is read. A type that is
    not known keeps none, and files of it are read."""
    own, read = _plain(own), _plain(read)
    if own == read or read in _WIDER.get(own, ()):
        return True
    if own.startswith("FixedSizeBinary("):
        return read in _BYTES
    if (a := _ZONED.fullmatch(own)) and (b := _ZONED.fullmatch(read)):
        return a[1] == b[1]
    if (a := _DECIMAL.fullmatch(own)) and (b := _DECIMAL.fullmatch(read)):
        return a[2] == b[2] and int(a[1]) <= int(b[1])
    return False


def key_arrays(array: Any) -> list[Any]:
    """The values of an array in the form of their keys: integers, strings or bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as types

    if isinstance(array, pa.ChunkedArray):
        return [part for chunk in array.chunks for part in key_arrays(chunk)]
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    data_type = array.type
    if types.is_dictionary(data_type):
        values = data_type.value_type
        if types.is_boolean(values) or types.is_integer(values) or type_key(values)[1] == 3:
            return [array]
        return key_arrays(array.dictionary_decode())
    if types.is_floating(data_type):
        floats = array.cast(pa.float64())
        # One zero, and one NaN.
        floats = pc.if_else(pc.is_nan(floats), float("nan"), pc.add(floats, 0.0))
        return [floats.view(pa.int64())]
    if types.is_decimal256(data_type):
        array = array.drop_null()
        data, size = array.buffers()[1], 32 * len(array)
        words = np.frombuffer(data, np.int64, size // 8, 32 * array.offset).reshape(-1, 4)
        # 16 bytes if they suffice.
        narrow = (words[:, 2:] == words[:, 1:2] >> 63).all(axis=1)
        return [
            pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(part.shape[1] * 8), len(part), [None, pa.py_buffer(part.tobytes())]
            )
            for part in (words[narrow, :2], words[~narrow])
        ]
    if types.is_decimal(data_type):
        return [array.cast(pa.decimal128(38, data_type.scale)).view(pa.binary(16))]
    if types.is_temporal(data_type):
        return [array.view(pa.int32() if data_type.bit_width == 32 else pa.int64())]
    return [array]


def parse_type(own: str) -> Any:
    """The type with a name; None for names that are not known."""
    import pyarrow as pa

    own = _plain(own)
    plain = {
        "Boolean": pa.bool_(), "Date32": pa.date32(), "Date64": pa.date64(),
        "Float16": pa.float16(), "Float32": pa.float32(), "Float64": pa.float64(),
    }
    if own in plain:
        return plain[own]
    if re.fullmatch(r"U?Int(8|16|32|64)", own):
        return getattr(pa, own.lower())()
    if own in _TEXTS:
        return pa.string()
    if own in _BYTES:
        return pa.binary()
    if fixed := re.fullmatch(r"FixedSizeBinary\((\d+)\)", own):
        return pa.binary(int(fixed[1]))
    if decimal := _DECIMAL.fullmatch(own):
        return getattr(pa, own.split("(")[0].lower())(int(decimal[1]), int(decimal[2]))
    if timed := re.fullmatch(r'(\w+)\((s|ms|µs|ns)(?:, "(.*)")?\)', own):
        unit = timed[2].replace("µ", "u")
        kinds = {
            "Timestamp": pa.timestamp, "Duration": pa.duration, "Time32": pa.time32,
            "Time64": pa.time64,
        }
        if timed[1] == "Timestamp" and timed[3] is not None:
            return pa.timestamp(unit, timed[3])
        return kinds[timed[1]](unit) if timed[1] in kinds else None
    return None

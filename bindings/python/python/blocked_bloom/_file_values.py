"""Values to look up in an index over files, as arrays of a column's type.

No value may lose precision on the way: one that is cut would be looked up as another, and a file
that has it would be skipped. A value that the type cannot represent equals no value of the column.
"""

# pyarrow and fsspec have no type information.
# mypy: ignore-errors

import datetime
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

#: As a float, it equals the next integer too.
_FIRST_INEXACT_FLOAT = 1 << 53


def read_values(given: Any, name: str) -> Any:
    """Reads the values of a lookup once: Arrow data as a ChunkedArray, all other as a list."""
    import pyarrow as pa

    if isinstance(given, pa.Scalar):
        return _column(pa.chunked_array([_scalar_array(given)]), name)
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        return _column(given, name)
    if isinstance(given, Mapping) or hasattr(type(given), "columns"):
        raise TypeError(f"{name}: a {type(given).__name__} is not a list of values: give a column")
    if hasattr(given, "__arrow_c_stream__"):
        return _column(pa.chunked_array(given), name)
    if hasattr(given, "__arrow_c_array__"):
        return _column(pa.array(given), name)
    # pandas' arrays, and those of its indexes: as numbers of NumPy they would lose digits and NA.
    array = getattr(given, "array", given) if getattr(given, "nlevels", 1) == 1 else given
    if hasattr(array, "__arrow_array__") or hasattr(array, "categories"):
        converted = pa.array(array)
        if not isinstance(converted.type, pa.BaseExtensionType):
            return _column(converted, name)
    # pandas' single times have `to_numpy` too, which drops their zone.
    if isinstance(given, np.ndarray) or (hasattr(given, "to_numpy") and hasattr(given, "__len__")):
        array = np.asarray(given if isinstance(given, np.ndarray) else given.to_numpy())
        if array.ndim > 1 or array.dtype.names:
            raise TypeError(f"{name}: give values in an array of one dimension")
        if array.ndim and array.dtype.kind in "mM":
            return _column(pa.array([_natural(value) for value in array] or array), name)
        given = list(array) if array.ndim else [array[()]]
    elif isinstance(given, (str, bytes, bytearray, memoryview, UUID)):
        given = [given]
    elif hasattr(given, "__iter__"):
        given = list(given)
    else:
        given = [given]
    if any(value is None for value in given):
        raise ValueError(_null(name))
    return given


def _null(name: str) -> str:
    return f"{name}: an index does not know NULL, so None cannot be looked up"


def _scalar_array(scalar: Any) -> Any:
    import pyarrow as pa

    if isinstance(scalar, pa.ExtensionScalar):
        return _scalar_array(scalar.value)
    if not scalar.is_valid:
        return pa.nulls(1, scalar.type)
    if pa.types.is_dictionary(scalar.type):
        return _scalar_array(scalar.value)
    return pa.repeat(scalar, 1)


def _column(array: Any, name: str) -> Any:
    import pyarrow as pa

    if isinstance(array, pa.Array):
        array = pa.chunked_array([array])
    if array.null_count:
        raise ValueError(_null(name))
    if isinstance(array.type, pa.BaseExtensionType):
        storage = array.type.storage_type
        array = pa.chunked_array([chunk.storage for chunk in array.chunks], storage)
    if pa.types.is_dictionary(array.type):
        chunks = [_plain_strings(chunk.dictionary).take(chunk.indices) for chunk in array.chunks]
        array = pa.chunked_array(chunks, None if chunks else array.type.value_type)
    if pa.types.is_nested(array.type):
        raise TypeError(f"{name}: values of type {array.type}: give a column of single values")
    return array


def _plain_strings(array: Any) -> Any:
    """Views as strings, from which pyarrow cannot take."""
    import pyarrow as pa

    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return array.cast(plain.get(array.type, array.type))


def as_type(values: Any, data_type: Any) -> Any:
    """Converts values to an array of a column's type, without those that no value of the type
    equals. A TypeError refuses values of another kind."""
    import pyarrow as pa
    import pyarrow.types as types

    if types.is_dictionary(data_type):
        data_type = data_type.value_type
    if isinstance(data_type, pa.BaseExtensionType):
        data_type = data_type.storage_type
    if isinstance(values, pa.ChunkedArray) and not len(values):
        return pa.array([], data_type)
    if types.is_temporal(data_type):
        return _times(values, data_type)
    if isinstance(values, pa.ChunkedArray):
        if types.is_temporal(values.type):
            raise _type_error(values.type, data_type)
        values = values.to_pylist()
    if types.is_boolean(data_type):
        return pa.array([_boolean(value, data_type) for value in values], data_type)
    if types.is_integer(data_type):
        found = [_integer(value, data_type) for value in values]
    elif types.is_floating(data_type):
        found = [_float(value, data_type) for value in values]
        if types.is_float16(data_type):
            return pa.array([np.float16(value) for value in found], data_type)
    elif types.is_decimal(data_type):
        found = [_decimal(value, data_type) for value in values]
    else:
        found = [_string(value, data_type) for value in values]
    return pa.array([value for value in found if value is not None], data_type)


def _type_error(kind: Any, data_type: Any) -> TypeError:
    return TypeError(f"a value of type {kind} cannot be compared with a column of type {data_type}")


def _python(value: Any) -> Any:
    """The value of a pyarrow scalar in a list. Only for types that Python represents exactly."""
    return value.as_py() if hasattr(value, "as_py") else value


def _boolean(value: Any, data_type: Any) -> bool:
    value = _python(value)
    if not isinstance(value, (bool, np.bool_)):
        raise _type_error(type(value).__name__, data_type)
    return bool(value)


def _number(value: Any, data_type: Any) -> int | float | Decimal:
    value = _python(value)
    if isinstance(value, np.generic):
        kind, wide = value.dtype.kind, isinstance(value, np.longdouble)
        value = value.item() if kind in "iu" or (kind == "f" and not wide) else value
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise _type_error(type(value).__name__, data_type)
    return value


def _integer(value: Any, data_type: Any) -> int | None:
    value = _number(value, data_type)
    if not isinstance(value, int):
        if value != value or value in (float("inf"), float("-inf")) or value != int(value):
            return None
        if isinstance(value, float) and abs(value) >= _FIRST_INEXACT_FLOAT:
            # An engine that compares floats finds several integers equal to it.
            raise TypeError(f"{value!r} is not exact as a float: give an int")
        value = int(value)
    bits = data_type.bit_width
    lowest = 0 if str(data_type)[0] == "u" else -1 << (bits - 1)
    return value if lowest <= value < lowest + (1 << bits) else None


def _float(value: Any, data_type: Any) -> float:
    number = _number(value, data_type)
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _decimal(value: Any, data_type: Any) -> Decimal | None:
    value = _number(value, data_type)
    if isinstance(value, float):
        raise TypeError(f"{value!r} is not exact as a float: give a decimal.Decimal")
    sign, digits, exponent = Decimal(value).as_tuple()
    if not isinstance(exponent, int):
        return None
    # In integers: the context of Decimal rounds.
    unscaled, shift = int("".join(map(str, digits))), exponent + data_type.scale
    if unscaled == 0:
        return Decimal(0)
    if shift > data_type.precision:
        return None
    if shift < 0:
        while shift < 0 and unscaled % 10 == 0:
            unscaled, shift = unscaled // 10, shift + 1
        if shift < 0:
            return None
    unscaled *= 10**shift
    if unscaled >= 10**data_type.precision:
        return None
    return Decimal((sign, tuple(map(int, str(unscaled))), -data_type.scale))


def _string(value: Any, data_type: Any) -> str | bytes:
    import pyarrow as pa
    import pyarrow.types as types

    value = _python(value)
    is_text = data_type in (pa.string(), pa.large_string(), pa.string_view())
    if isinstance(value, UUID) and not is_text:
        value = value.bytes
    if isinstance(value, (bytearray, memoryview)):
        value = bytes(value)
    if types.is_fixed_size_binary(data_type):
        if isinstance(value, bytes) and len(value) == data_type.byte_width:
            return value
        raise TypeError(f"{value!r}: give {data_type.byte_width} bytes, or a uuid.UUID for 16")
    if isinstance(value, UUID):
        raise TypeError(f"{value!r} for a column of strings: give str(..) of it")
    if not isinstance(value, (str, bytes)):
        raise _type_error(type(value).__name__, data_type)
    return value


def _natural(value: Any) -> Any:
    """A date or time as an Arrow scalar with the unit that it has."""
    import pyarrow as pa

    if isinstance(value, pa.Scalar):
        return value
    if hasattr(value, "to_datetime64"):  # pandas.Timestamp: a datetime with nanoseconds
        if value.tzinfo is None:
            return pa.array([value.to_datetime64()])[0]
        moment = value.tz_convert("UTC").tz_localize(None).to_datetime64()
        moment = pa.array([moment])
        return moment.cast(pa.timestamp(moment.type.unit, "UTC"))[0]
    if hasattr(value, "to_timedelta64"):
        value = value.to_timedelta64()
    if isinstance(value, np.datetime64) and np.datetime_data(value.dtype)[0] in "YMWDhm":
        value = value.astype("datetime64[s]")
    if isinstance(value, np.timedelta64) and np.datetime_data(value.dtype)[0] in "WDhm":
        value = value.astype("timedelta64[s]")
    if isinstance(value, datetime.time) and value.tzinfo is not None:
        raise TypeError(f"{value!r}: a time of day with a zone cannot be compared with a column")
    return pa.array([value])[0]


def _times(values: Any, data_type: Any) -> Any:
    import pyarrow as pa

    if not isinstance(values, pa.ChunkedArray):
        chunks: dict[Any, list[Any]] = {}
        for scalar in map(_natural, values):
            if not scalar.is_valid:
                raise TypeError(f"a missing value cannot be compared with {data_type}")
            chunks.setdefault(scalar.type, []).append(_scalar_array(scalar))
        parts = [_cast_times(pa.concat_arrays(arrays), data_type) for arrays in chunks.values()]
    else:
        parts = [_cast_times(chunk, data_type) for chunk in values.chunks]
    return pa.concat_arrays([pa.array([], data_type), *parts])


def _cast_times(array: Any, data_type: Any) -> Any:
    """Casts dates and times, and drops values that a cast would change."""
    import pyarrow as pa
    import pyarrow.compute as pc

    own, wanted = _kind_of_time(array.type), _kind_of_time(data_type)
    if own != wanted and {own, wanted} != {"date", "timestamp"}:
        raise _type_error(array.type, data_type)
    try:
        cast = array.cast(data_type)
    except pa.ArrowInvalid:
        if len(array) == 1:
            return pa.array([], data_type)
        parts = [array[i : i + 1] for i in range(len(array))]
        return pa.concat_arrays([_cast_times(part, data_type) for part in parts])
    # A cast to dates cuts the time of day.
    return cast.filter(pc.equal(cast.cast(array.type, safe=False), array))


def _kind_of_time(data_type: Any) -> str:
    import pyarrow.types as types

    if types.is_timestamp(data_type):
        return "timestamp with a zone" if data_type.tz is not None else "timestamp"
    if types.is_date(data_type):
        return "date"
    if types.is_time(data_type):
        return "time"
    return "duration" if types.is_duration(data_type) else str(data_type)


def time_texts(keys: Any) -> Any:
    """Times of Arrow and Polars as text with all of their digits, None for NULL. Their Python
    values have no nanoseconds. Returns other keys as a list or unchanged."""
    if type(keys).__module__.startswith("polars"):
        kind, dtype = str(getattr(keys, "dtype", "")), getattr(keys, "dtype", None)
        if not kind.startswith(("Datetime", "Time")):
            return keys
        counts = keys.to_physical().to_list()
        unit, zone = getattr(dtype, "time_unit", "ns"), getattr(dtype, "time_zone", None)
        is_clock = kind == "Time"
    elif hasattr(keys, "__arrow_c_array__") or hasattr(keys, "__arrow_c_stream__") or (
        type(keys).__module__.startswith("pyarrow") and hasattr(keys, "as_py")
    ):
        import pyarrow as pa
        import pyarrow.types as types

        if isinstance(keys, pa.Scalar):
            keys = pa.repeat(keys, 1)
        elif not isinstance(keys, (pa.Array, pa.ChunkedArray)):
            has_stream = hasattr(keys, "__arrow_c_stream__")
            keys = pa.chunked_array(keys) if has_stream else pa.array(keys)
        if types.is_dictionary(keys.type):
            keys = keys.cast(keys.type.value_type)
        is_clock = types.is_time(keys.type)
        if not is_clock and not types.is_timestamp(keys.type):
            return keys.to_pylist()
        unit, zone = keys.type.unit, getattr(keys.type, "tz", None)
        counts = keys.cast(f"int{keys.type.bit_width}").to_pylist()
    else:
        return keys

    def text(count: Any) -> str | None:
        if count is None:
            return None
        found = str(np.datetime64(count, unit))
        return found.partition("T")[2] if is_clock else found + ("Z" if zone else "")

    return [text(count) for count in counts]

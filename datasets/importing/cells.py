"""Conversion of columns to numbers, labels and times, with invalid cells counted."""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxanon.datasets.importing.csv_file import NULLS
from jaxanon.datasets.importing.table import Labels

MAX_VALUE = float(np.finfo(np.float32).max)
_NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"


def numbers(column, decimal: str = ".") -> tuple[np.ndarray, np.ndarray | None]:
    """Returns float64[rows] (float32 if the column is), and which cells are invalid.

    Text is parsed. A missing cell is NaN and valid. A cell is invalid, and NaN, if it
    is other text, or outside the range of float32.

    Args:
      column: NumPy or Arrow array.
      decimal: decimal mark of text; empty if unknown.
    """
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "fiub":
            return _in_range(column)
        column = _arrow(column)
    import pyarrow as pa

    column = _flat(column)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _parsed(column, decimal)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan), None
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return np.full(len(column), np.nan), np.asarray(column.is_valid())
    return _in_range(column.to_numpy(zero_copy_only=False))


def is_single(column) -> bool:
    """Returns whether the numbers of a column are float32."""
    kind = column.dtype if isinstance(column, np.ndarray) else column.type
    return str(kind) in ("float", "float32")


def _in_range(array):
    """Returns a float array, and which numbers are infinite or outside float32."""
    if array.dtype.kind != "f" or array.dtype.itemsize == 2:
        array = array.astype(np.float64)
    if not len(array):
        return array, None
    if -MAX_VALUE <= array.min() and array.max() <= MAX_VALUE:
        return array, None  # Nothing is missing.
    low, high = np.nanmin(array, initial=0.0), np.nanmax(array, initial=0.0)
    if -MAX_VALUE <= low and high <= MAX_VALUE:
        return array, None
    invalid = np.abs(array) > MAX_VALUE
    return np.where(invalid, np.nan, array), invalid


def _parsed(column, decimal):
    import pyarrow as pa

    # Its functions are made when it is imported, which type checkers cannot see.
    pc: Any = importlib.import_module("pyarrow.compute")
    plain = _plain(column, decimal, pc)
    if plain is not None:
        return _in_range(plain)
    text = pc.utf8_trim_whitespace(column)
    missing = pc.is_in(pc.utf8_lower(text), pa.array({x.lower() for x in NULLS}))
    missing = pc.or_(pc.fill_null(missing, True), pc.is_null(text))
    if not decimal:  # Integers so far: the first fraction decides.
        pieces = [pc.match_substring(text, mark) for mark in (".", ",")]
        point, comma = (pc.any(piece).as_py() for piece in pieces)
        decimal = "," if comma and not point else "."
    if decimal == ",":
        # A point may separate thousands, so it is not a decimal mark here.
        text = pc.replace_substring(pc.replace_substring(text, ".", "?"), ",", ".")
    valid = pc.fill_null(pc.match_substring_regex(text, _NUMBER), False)
    text = pc.utf8_ltrim(text, "+")
    text = pc.if_else(valid, text, pa.scalar(None, text.type))
    values, invalid = _in_range(pc.cast(text, pa.float64()).to_numpy(False))
    wrong = np.asarray(pc.invert(pc.or_(valid, missing)))
    if invalid is not None:
        wrong = wrong | invalid
    return values, wrong if wrong.any() else None


def _plain(text, decimal, pc):
    """Returns float64 of text that is finite numbers and empty cells; else None."""
    import pyarrow as pa

    if decimal != ".":
        comma = pc.any(pc.match_substring(text, ",")).as_py()
        if comma and (not decimal or pc.any(pc.match_substring(text, ".")).as_py()):
            return None
        text = pc.replace_substring(text, ",", ".") if comma else text
    try:
        try:
            values = pc.cast(text, pa.float64())
        except pa.ArrowInvalid:
            text = pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)
            values = pc.cast(text, pa.float64())
    except pa.ArrowInvalid:
        return None
    # Otherwise there is a word such as "inf" or "nan".
    is_finite = pc.all(pc.is_finite(values)).as_py() in (True, None)
    return values.to_numpy(zero_copy_only=False) if is_finite else None


def labels(column) -> Labels:
    """Returns a column as text, dictionary-encoded; blanks around names are stripped.

    Empty and NaN cells are missing.

    Example:
      >>> labels(np.array(["sit ", "NaN", "walk", "sit"]))
      Labels(codes=array([ 0, -1,  1,  0], dtype=int32), names=('sit', 'walk'))
    """
    import pyarrow as pa

    column = _flat(_arrow(column) if isinstance(column, np.ndarray) else column)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    entries = ["" if x is None else _name(x) for x in column.dictionary.to_pylist()]
    index = {name: n for n, name in enumerate(dict.fromkeys(x for x in entries if x))}
    indices = column.indices
    if indices.null_count:
        indices = indices.fill_null(len(entries))
    codes = indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    recode = np.array([*(index.get(name, -1) for name in entries), -1], np.int32)
    return Labels(_recoded(codes, recode), tuple(index))


def joined(parts: Sequence[Labels]) -> Labels:
    """Returns the labels of consecutive rows as one column."""
    if len(parts) == 1:
        return parts[0]
    index: dict[str, int] = {}
    for part in parts:
        for name in part.names:
            index.setdefault(name, len(index))
    codes = np.empty(sum(len(part.codes) for part in parts), np.int32)
    end = 0
    for part in parts:
        begin, end = end, end + len(part.codes)
        recode = np.array([*(index[name] for name in part.names), -1], np.int32)
        codes[begin:end] = _recoded(part.codes, recode)
    return Labels(codes, tuple(index))


def _recoded(codes, recode):
    """Returns ``recode[codes]``; its last entry is for missing labels."""
    if (recode[:-1] == np.arange(len(recode) - 1)).all() and (
        not len(codes) or codes.max() < len(recode) - 1
    ):
        return codes
    return recode[codes]


def _name(value):
    """Returns the name of a class; whole floating-point numbers are whole numbers."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    text = text.strip(" \t\r\n\0")
    return "" if text in ("NaN", "nan") else text  # "Nan" is a given name.


def times(column, decimal: str = ".") -> tuple[np.ndarray, np.ndarray | None]:
    """Returns a column of times as numbers, datetime64 or text, and invalid cells.

    Text becomes numbers if most of its cells are numbers. Missing times are NaN, NaT or
    empty.
    """
    if isinstance(column, np.ndarray) and column.dtype.kind in "fiuM":
        return column, None
    import pyarrow as pa

    column = _flat(_arrow(column) if isinstance(column, np.ndarray) else column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        values, invalid = _parsed(column, decimal)
        if 2 * np.isfinite(values).sum() > len(values):
            return values, invalid
        text = column.to_numpy(zero_copy_only=False)
        return np.array(["" if x is None else x for x in text.tolist()], str), None
    return column.to_numpy(zero_copy_only=False), None


def _arrow(array):
    """Returns a NumPy array of text or objects as an Arrow array."""
    import pyarrow as pa

    if array.dtype.kind == "O":
        array = array.tolist()
        if any(isinstance(x, bytes) for x in array):
            array = [
                x.decode(errors="replace") if type(x) is bytes else x for x in array
            ]
        try:
            return pa.array(array, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return pa.array(["" if x is None else str(x) for x in array])
    if array.dtype.kind == "S":
        return pa.array(np.char.decode(array, errors="replace"))
    return pa.array(array)


def _flat(column):
    """Returns an Arrow array of one chunk."""
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    return column.combine_chunks()

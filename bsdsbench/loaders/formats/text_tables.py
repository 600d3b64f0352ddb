"""Text of tables as spreadsheets and shells write it: encodings, separators and decimal commas."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

import numpy as np

from bsdsbench.arguments import Floats

_COMMA_NUMBER = re.compile(r"(?<![\w.,])[-+]?\d*,\d+(?:[eE][-+]?\d+)?(?![\w.,])")
_POINT_NUMBER = re.compile(r"(?<![\w.])\d*\.\d")
# The first line by which programs tell Excel the separator
_EXCEL_SEPARATOR = re.compile(r"\A(?i:sep=).\r?\n")
_POINT_THOUSANDS = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")


def decode_text(data: bytes) -> str:
    """Decode UTF-8, with or without its byte order mark, or UTF-16 with its mark.

    Spreadsheets save "Unicode text", and shells of Windows redirect output, as UTF-16. Raises
    UnicodeDecodeError for other bytes.
    """
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = data.decode("utf-16" if is_utf16 else "utf-8-sig")
    return _EXCEL_SEPARATOR.sub("\n", text)  # the numbers of lines are kept


def separator_of(line: str, default: str) -> str:
    """Return the separator of the columns in the first line of a table: ";", a tab or ",".

    The comma comes last, because it may be the decimal mark beside the others. If there is none,
    `default` is returned.
    """
    return next((mark for mark in ";\t," if mark in line), default)


def with_decimal_points(text: str) -> str:
    """Replace decimal commas by points, in a table whose columns are not separated by commas.

    The text is unchanged if some number has a decimal point, or if all commas may separate
    thousands, as in 1,234.

    >>> with_decimal_points("1;0,25")
    '1;0.25'
    """
    if "," not in text or _POINT_NUMBER.search(text):
        return text
    if all(_THOUSANDS.fullmatch(number) for number in _COMMA_NUMBER.findall(text)):
        return text
    return _COMMA_NUMBER.sub(lambda match: match[0].replace(",", "."), text)


class DoubtfulNumbers(NamedTuple):
    """Numbers of a column in which a point may separate thousands, or be the decimal mark."""

    whole: str  # a number without a point, such as 226
    with_point: str  # one with a point, such as 1.226


def points_of_thousands(numbers: Floats, text: str) -> DoubtfulNumbers | None:
    """Return examples, such as 226 and 1.226, if points may separate thousands, otherwise None.

    That is so if all `numbers` of a column of `text` are whole and below 1000, some above 100 (the
    end of percentages), or are written with exactly three decimals. Scores that are printed with as
    many decimals, or digits, do not look so: they have 226.000 or 226.1 beside 1.226.
    """
    is_whole = numbers == np.rint(numbers)
    whole = np.abs(numbers[is_whole])
    if whole.size == numbers.size or not 100 < whole.max(initial=0) < 1000:
        return None
    cells = dict.fromkeys(re.findall(r"\d+\.\d*", text))  # in their order
    three_digits = [f"{n:g}" for n in whole if n >= 100 and f"{n:.3f}" not in cells]
    if not three_digits or not all(map(_POINT_THOUSANDS.fullmatch, cells)):
        return None
    return DoubtfulNumbers(three_digits[0], next(iter(cells)))

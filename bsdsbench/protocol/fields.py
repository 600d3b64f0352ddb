"""Fields of protocols and of metric options: declaration, conversion and validation.

Protocols and options are attrs classes. A field's converter converts what users write, its
validator checks the value, and its `metadata` holds

- help: a sentence that explains the field
- caption: a short description of the value, in one of the forms that `protocol.captions` accepts
- others: value -> the programs that use it, for metrics that are not in in_use.toml
- usual: the default in words, if it depends on earlier fields (an attrs.Factory)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, TypeGuard, TypeVar

import attrs
import numpy as np

from bsdsbench.errors import ProtocolError
from bsdsbench.io import MAX_TOML_BYTES, PathLike, file_errors, parse_toml, read_bytes
from bsdsbench.text import did_you_mean, is_text, shorten

MAX_TEXT = 200  # characters in a text
HOME_MADE = "home-made scripts"  # marks values in in_use.toml that no known program uses
MAX_CLASSES = 65_536  # class names
MAX_LIST = 64  # values in any other list
MAX_SEVERAL = 16  # numbers in a field that usually has one, such as tolerances
DEFAULT = "default"  # the value of an option that is not set

Validator = Callable[[Any, Any, Any], None]
_T = TypeVar("_T")


def is_int(value: object) -> TypeGuard[int]:
    """Return True if the value is an int other than a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Return True if the value is an int or float, but not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def clipped(value: object) -> str:
    """Return the repr of a value, shortened to 60 characters."""
    return shorten(repr(value), 60)


def tidy(value: object) -> Any:
    """Convert a float without fraction to an int, so that 2.0 is written as 2.

    In lists and tuples, each value is converted, and a list is returned. Any other value is
    returned unchanged.
    """
    if isinstance(value, list | tuple):
        return [tidy(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def abbreviate(value: object) -> str:
    """Return a value as short text. A list of more than 4 becomes "99 of 0.01 .. 0.99"."""
    if isinstance(value, list | tuple) and len(value) > 4:
        ends = [f"{v:g}" if is_number(v) else str(v) for v in (value[0], value[-1])]
        return f"{len(value)} of {ends[0]} .. {ends[1]}"
    return str(tidy(value))


def read_packaged_toml(name: str) -> dict[str, Any]:
    """Return the content of a TOML file in the folder of this module."""
    return parse_toml(resources.files("bsdsbench.protocol").joinpath(name).read_bytes())


def read_toml(path: PathLike, what: str) -> dict[str, Any]:
    """Return the content of a TOML file. `what` describes the file in errors.

    Raises FileFormatError if the file is not valid TOML.
    """
    data = read_bytes(path, MAX_TOML_BYTES)
    with file_errors(path, what):
        return parse_toml(data)


def accepting(accepts: Callable[[Any], bool], expected: str) -> Validator:
    """Return an attrs validator that raises ProtocolError unless `accepts(value)` is True.

    `expected` describes valid values in the error message, here and in the validators below.
    """

    def validate(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if not accepts(value):
            raise ProtocolError(f"{attribute.name} {clipped(value)}: expected {expected}")

    return validate


def whole(low: int, high: float, expected: str) -> Validator:
    """Return a validator for integers from `low` to `high`, inclusive."""
    return accepting(lambda v: is_int(v) and low <= v <= high, expected)


def one_of(*choices: str | float) -> Validator:
    """Return a validator for one of the choices. All choices must have the same type."""
    texts = list(map(repr, choices))
    return accepting(
        lambda v: type(v) is type(choices[0]) and v in choices,
        f"{', '.join(texts[:-1])} or {texts[-1]}",
    )


def each(accepts: Callable[[Any], bool], least: int, most: int, expected: str) -> Validator:
    """Return a validator for tuples of `least` to `most` values that `accepts` returns True for."""
    return accepting(
        lambda v: isinstance(v, tuple) and least <= len(v) <= most and all(map(accepts, v)),
        expected,
    )


def some_of(*choices: str, least: int = 0) -> Validator:
    """Return a validator for tuples of at least `least` of the choices."""
    return each(choices.__contains__, least, MAX_LIST, f"some of {', '.join(choices)}")


def number_list(accepts: Callable[[float], bool], expected: str) -> Validator:
    """Return a validator for tuples of 1 to MAX_LIST numbers for which `accepts` returns True."""
    return each(lambda x: is_number(x) and accepts(x), 1, MAX_LIST, f"1 to {MAX_LIST} {expected}")


def plain(value: Any) -> Any:
    """Convert arrays, tensors and numbers of NumPy, also in a list or tuple, to values of Python.

    Arrays become lists, ranges and named tuples plain tuples. All other values are unchanged.
    """
    if isinstance(value, list):
        return list(map(plain, value))
    if isinstance(value, tuple | range):
        return tuple(map(plain, value))
    return value.tolist() if hasattr(value, "tolist") else value


def one_or_several(value: object) -> object:
    """Convert the user's value of a field that holds one or several numbers.

    Numbers become floats, and "none" becomes None. A list or tuple of one number becomes the
    number, and a longer one becomes a tuple. Other values, and numbers of magnitude 1e300 or more,
    are returned unchanged for the validator to reject.
    """
    if isinstance(value, list | tuple):
        values = tuple(map(one_or_several, value))
        return values[0] if len(values) == 1 else values
    if str(value).lower() == "none":
        return None
    return float(value) if is_number(value) and abs(value) < 1e300 else value


def several_of(accepts: Callable[[float], bool], expected: str) -> Validator:
    """Return a validator for one number, or a tuple of 1 to MAX_SEVERAL distinct numbers.

    `accepts` returns True for a valid number, which `expected` describes in the error message.
    """

    def is_accepted(value: object) -> bool:
        numbers = value if isinstance(value, tuple) else (value,)
        if not all(is_number(v) and accepts(v) for v in numbers):
            return False
        is_distinct = len(set(numbers)) == len(numbers)
        return is_distinct and 1 <= len(numbers) <= MAX_SEVERAL

    return accepting(is_accepted, f"{expected}, or up to {MAX_SEVERAL} different values")


def _is_text(value: object) -> bool:
    """Return True for a str of 1 to MAX_TEXT characters without lone surrogates."""
    return isinstance(value, str) and 0 < len(value) <= MAX_TEXT and is_text(value)


TEXT = accepting(_is_text, "text")
CLASS_NAMES = [
    each(_is_text, 0, MAX_CLASSES, "names, such as road,car (not their number)"),
    accepting(lambda v: len(set(v)) == len(v), "each name once"),
]
BOOL = accepting(lambda v: isinstance(v, bool), "true or false")
LABEL = whole(0, 2**31 - 1, "a label from 0")
VOIDS = each(
    lambda v: is_number(v) and 0 <= v < 2**31, 0, MAX_LIST, "values from 0, or -1 for none"
)
POSITIVE = accepting(lambda v: is_number(v) and 0 < v <= 1e6, "a number above 0, at most 1e6")
POSITIVES = number_list(lambda v: 0 < v <= 1e6, "numbers above 0, at most 1e6")
SIZES = "fractions of the diagonal up to 0.1 (0.0075 for 0.75 %), or pixels from 1 on"


def option(
    default: Any,
    help: str,
    validator: Validator | list[Validator] = BOOL,
    converter: Callable[[Any], Any] | None = None,
    **metadata: Any,
) -> Any:
    """Build an attrs field of a protocol or of metric options: default, help sentence, validator.

    validator: checks a value, or several do. Default: BOOL, as most options are true or false.
    metadata: caption, others, usual (see the docstring of this module).
    converter: converts what users write. Without one, lists become tuples. A single value becomes a
        tuple if the default is a tuple, a number a float if it is a float or None (so that 2 and
        2.0 are equal), and "none" becomes None if it is None.
    """
    is_list = isinstance(default, tuple)
    defaults = default if is_list else (default,)
    # An option without a default (None) is a number or a text
    may_be_float = defaults != () and all(v is None or isinstance(v, float) for v in defaults)

    def convert_element(value: object) -> object:
        """Convert the value of this option, or an item of it if its `default` is a tuple."""
        if isinstance(value, list):  # values of attrs classes must be hashable
            return tuple(value)
        if default is None and str(value).lower() == "none":
            return None
        # `float` fails for huge integers, which the validator rejects
        if may_be_float and is_number(value) and abs(value) < 1e300:
            return float(value)
        return value

    def convert(value: object) -> object:
        if not is_list:
            return convert_element(value)
        elements = value if isinstance(value, list | tuple) else [value]
        return tuple(map(convert_element, elements))

    metadata["help"] = help
    converter_of_plain = converter or convert
    return attrs.field(
        default=default,
        validator=validator,
        converter=lambda value: converter_of_plain(plain(value)),
        metadata=metadata,
    )


def listed_values(values: object) -> tuple[Any, ...]:
    """Convert a value or a list of values to a tuple. A single -1 means no values."""
    items = tuple(values) if isinstance(values, list | tuple) else (values,)
    return () if items == (-1,) else items


IGNORE = option(
    (),
    "Value, or values, of the ground-truth files that mark void pixels, which are not counted on "
    "either side; -1 or none if there are no void pixels.",
    VOIDS,
    listed_values,
    caption="void: {}",
)


def check_field_names(kind: type, values: Mapping[str, Any], what: str) -> None:
    """Raise ProtocolError if a key of `values` is not a field of the attrs class `kind`.

    `what` is the name of the class in the message.
    """
    known = attrs.fields_dict(kind)
    for name in values:
        if name not in known:
            choices = ", ".join(known)
            if "options" in known:  # a protocol's, which holds those of metrics
                choices += ", or METRIC.OPTION"
            hint = did_you_mean(str(name), known)
            raise ProtocolError(f"{what} field {name!r}: expected one of {choices}{hint}")


def record_of(kind: type[_T], values: Mapping[str, Any], what: str) -> _T:
    """Build an instance of the attrs class `kind` from its field values.

    `what` is the name of the instance in errors. Raises ProtocolError if a field is unknown or
    missing, or if a value is wrong.
    """
    check_field_names(kind, values, what)
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:  # validators of attrs raise these
        raise ProtocolError(f"{what} {error.args[0]}") from None


@cache
def defaults_of(kind: type[_T], what: str) -> _T:
    """Return the cached instance of a frozen attrs class with all fields at their defaults.

    Raises ProtocolError if a field has no default.
    """
    return record_of(kind, {}, what)


def in_use(kind: type, table: str) -> Iterator[tuple[str, Any, str]]:
    """Yield values that other programs use for the fields of the attrs class `kind`.

    Yields (field name, value, programs), such as ("max_dist", 0.011, "NYUDv2 programs"). They come
    from the metadata "others" of the fields, and from the table named `table` in in_use.toml: the
    name of a metric, or "protocol".
    """
    uses = read_packaged_toml("in_use.toml").get(table, {})
    for field in attrs.fields(kind):
        others = field.metadata.get("others", {})
        for value, programs in (*others.items(), *uses.get(field.name, ())):
            yield field.name, tuple(value) if isinstance(value, list) else value, programs


MAX_THRESHOLDS = 32_767  # the kernels index thresholds with 16-bit integers


@cache
def even_thresholds(count: int) -> tuple[float, ...]:
    """Return T = `count` even thresholds, 1/(T+1) to 1 - 1/(T+1), as the official program does."""
    return tuple(np.linspace(1 / (count + 1), 1 - 1 / (count + 1), count).tolist())


# Named threshold grids for protocol files and signatures
GRIDS = {
    "8bit": tuple((np.arange(1, 256) / 255).tolist()),  # all levels of an 8-bit image except 0
    "seism": (0.001, *(k / 100 for k in range(1, 100)), 0.999),  # used by SEISM's contour programs
    "deepcrack": tuple(k / 100 for k in range(100)),  # linspace differs in the last digits
}


def parse_thresholds(value: Any) -> tuple[float, ...]:
    """Convert thresholds, as written in files, on the command line or in signatures, to numbers.

    - 99 or "99": this many evenly spaced thresholds (see `even_thresholds`)
    - "8bit" or another name in GRIDS: this grid
    - "0+TEXT": threshold 0, which stands for the whole image, followed by the thresholds of TEXT
    - "FROM..TO/N": N evenly spaced thresholds from FROM to TO, inclusive
    - ".1,.2", "at .1,.2" or a sequence of numbers: exactly these thresholds

    Raises ProtocolError for any other value. Order and range are not checked here.
    """
    try:
        if isinstance(value, str):
            if value in GRIDS:
                return GRIDS[value]
            if value.startswith("0+"):
                return (0.0, *parse_thresholds(value.removeprefix("0+")))
            if ".." in value:
                low, high, count = re.split(r"\.\.|/", value)
                # A larger count would take memory, and the validator of the field rejects MAX + 1
                n_points = min(int(count), MAX_THRESHOLDS + 1)
                return tuple(np.linspace(float(low), float(high), n_points).tolist())
            if not value.isdecimal():
                return tuple(map(float, value.removeprefix("at ").split(",")))
            value = int(value)
        if not is_int(value):
            return tuple(map(float, value))
        if 1 <= value <= MAX_THRESHOLDS:
            return even_thresholds(value)
    except (TypeError, ValueError, ArithmeticError):
        pass
    forms = f"their number, 1 to {MAX_THRESHOLDS}, their values, FROM..TO/N"
    grids = ", ".join(GRIDS)
    raise ProtocolError(f"thresholds {clipped(value)}: expected {forms}, or one of {grids}")

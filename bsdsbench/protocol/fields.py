"""Building the fields of protocols and of metrics' options, and reading their declarations.

Protocols and options are attrs classes. The converter of a field converts what users write, the
validator accepts or refuses a value, and `metadata` holds

- help: a sentence with the meaning of the field
- caption: the text of captions. It is a format (used if the value is not the default), a text for
  each value, or a function of the whole record. An empty text is not printed.
- others: value -> the programs that use it, for metrics that are not in in_use.toml
- usual: the default in words, if it depends on the fields before (an attrs.Factory)
- signed: True for an option that signatures name even if it has its default
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from typing import Any, TypeGuard, TypeVar

import attrs

from bsdsbench.errors import ProtocolError
from bsdsbench.io import MAX_TOML_BYTES, PathLike, parse_toml, read_bytes, reading
from bsdsbench.text import clip, did_you_mean, is_text

MAX_TEXT = 200
HOME_MADE = "home-made scripts"  # marks values in in_use.toml that no known program uses
MAX_CLASSES = 65_536
MAX_LIST = 64
MAX_SEVERAL = 16
DEFAULT = "default"  # stands for an option that is not given
NUMBER = r"[0-9]*\.?[0-9]+(?:e-?[0-9]+)?"  # the pattern of `number_text`

Validator = Callable[[Any, Any, Any], None]
_T = TypeVar("_T")


def is_int(value: object) -> TypeGuard[int]:
    """Return True for an integer that is not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Return True for an integer or a float that is not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def clipped(value: object) -> str:
    """Return the repr of a value, cut to 60 characters."""
    return clip(repr(value), 60)


def tidy(value: object) -> Any:
    """Convert whole floats to integers, so that 2.0 is written as 2.

    Tuples become lists, and their items are converted.
    """
    if isinstance(value, list | tuple):
        return [tidy(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def number_text(value: float) -> str:
    """Return a number as Python writes it, but .5 for 0.5 and 2 for 2.0."""
    text = repr(tidy(value))
    return text[1:] if text.startswith("0.") else text


def abbreviated(value: object) -> str:
    """Return a value as text for one line. A long list is replaced by its length and its ends."""
    if isinstance(value, list | tuple) and len(value) > 4:
        first, last = (f"{v:g}" if is_number(v) else str(v) for v in (value[0], value[-1]))
        return f"{len(value)} of {first} .. {last}"
    return str(tidy(value))


def shipped(name: str) -> dict[str, Any]:
    """Return the content of a TOML file beside this module."""
    return parse_toml(resources.files("bsdsbench.protocol").joinpath(name).read_bytes())


def read_toml(path: PathLike, what: str) -> dict[str, Any]:
    """Return the content of a TOML file. `what` is its name in an error.

    Raises FileFormatError if the file is not TOML.
    """
    data = read_bytes(path, MAX_TOML_BYTES)
    with reading(path, what):
        return parse_toml(data)


def accepting(accepts: Callable[[Any], bool], expected: str) -> Validator:
    """Return a validator that accepts the values for which `accepts` returns True.

    Its error names the field, the value and the expected values.
    """

    def validate(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
        """Raise ProtocolError if the value is not accepted."""
        if not accepts(value):
            raise ProtocolError(f"{attribute.name} {clipped(value)}: expected {expected}")

    return validate


def whole(low: int, high: float, expected: str) -> Validator:
    """Return a validator for integers from `low` to `high`."""
    return accepting(lambda v: is_int(v) and low <= v <= high, expected)


def one_of(*choices: str | int) -> Validator:
    """Return a validator for one of the choices, which have one type."""
    texts = [repr(c) for c in choices]
    return accepting(
        lambda v: type(v) is type(choices[0]) and v in choices,
        f"{', '.join(texts[:-1])} or {texts[-1]}",
    )


def each(accepts: Callable[[Any], bool], least: int, most: int, expected: str) -> Validator:
    """Return a validator for tuples of `least` to `most` values, each of which is accepted."""
    return accepting(
        lambda v: isinstance(v, tuple) and least <= len(v) <= most and all(map(accepts, v)),
        expected,
    )


def some_of(*choices: str, least: int = 0) -> Validator:
    """Return a validator for tuples of at least `least` of the choices."""
    return each(choices.__contains__, least, MAX_LIST, f"some of {', '.join(choices)}")


def number_list(accepts: Callable[[float], bool], expected: str) -> Validator:
    """Return a validator for tuples of 1 to MAX_LIST numbers, each of which is accepted."""
    return each(lambda x: is_number(x) and accepts(x), 1, MAX_LIST, f"1 to {MAX_LIST} {expected}")


def one_or_several(value: object) -> object:
    """Convert a number, or a list of numbers, as files and the command line write them.

    A list of one number becomes that number, a longer list a tuple, and "none" becomes None.
    """
    if isinstance(value, list | tuple):
        values = tuple(map(one_or_several, value))
        return values[0] if len(values) == 1 else values
    if str(value).lower() == "none":
        return None
    return float(value) if is_number(value) and abs(value) < 1e300 else value


def several_of(accepts: Callable[[float], bool], expected: str) -> Validator:
    """Return a validator for an accepted number, or for several different ones."""

    def accepted(value: object) -> bool:
        numbers = value if isinstance(value, tuple) else (value,)
        are_accepted = all(is_number(v) and accepts(v) for v in numbers)
        return are_accepted and 1 <= len(set(numbers)) == len(numbers) <= MAX_SEVERAL

    return accepting(accepted, f"{expected}; or up to {MAX_SEVERAL} different ones")


def _is_text(value: object) -> bool:
    """Return True for printable text of 1 to MAX_TEXT characters."""
    return isinstance(value, str) and 0 < len(value) <= MAX_TEXT and is_text(value)


TEXT = accepting(_is_text, "text")
CLASS_NAMES = [
    each(_is_text, 0, MAX_CLASSES, "names"),
    accepting(lambda v: len(set(v)) == len(v), "each name once"),
]
BOOL = accepting(lambda v: isinstance(v, bool), "true or false")
LABEL = whole(0, 2**31 - 1, "a label from 0")
VOIDS = each(
    lambda v: is_number(v) and 0 <= v < 2**31, 0, MAX_LIST, "values from 0, or -1 for none"
)
POSITIVE = accepting(lambda v: is_number(v) and 0 < v <= 1e6, "a number above 0, at most 1e6")
POSITIVES = number_list(lambda v: 0 < v <= 1e6, "numbers above 0, at most 1e6")


def option(
    default: Any,
    help: str,
    validator: Validator | list[Validator] = BOOL,
    converter: Callable[[Any], Any] | None = None,
    **metadata: Any,
) -> Any:
    """Build an attrs field from a default, a help sentence and further metadata (see above).

    Without a converter a value is converted to the type of the default. Numbers become floats if
    the default has floats, so that 2 and 2.0 are equal. For a tuple, lists become tuples and a
    single value a tuple of one. The text "none" becomes None if that is the default.
    """
    is_list = isinstance(default, tuple)
    defaults = default if is_list else (default,)
    is_float = defaults != () and all(v is None or isinstance(v, float) for v in defaults)

    def convert_element(value: object) -> object:
        """Convert one value to the type of an element of the default."""
        if isinstance(value, list):
            return tuple(value)
        if default is None and str(value).lower() == "none":
            return None
        return float(value) if is_float and is_number(value) and abs(value) < 1e300 else value

    def convert(value: object) -> object:
        if not is_list:
            return convert_element(value)
        elements = value if isinstance(value, list | tuple) else [value]
        return tuple(map(convert_element, elements))

    metadata["help"] = help
    return attrs.field(
        default=default, validator=validator, converter=converter or convert, metadata=metadata
    )


def listed_values(values: object) -> tuple[Any, ...]:
    """Return one value or several as a tuple. The value -1 gives an empty tuple."""
    items = tuple(values) if isinstance(values, list | tuple) else (values,)
    return () if items == (-1,) else items


def check_names(kind: type, values: Mapping[str, Any], what: str) -> None:
    """Raise ProtocolError if a key of `values` is not a field of the attrs class `kind`.

    `what` is the name of the values in the error.
    """
    known = attrs.fields_dict(kind)
    for name in values:
        if name not in known:
            raise ProtocolError(
                f"{what} field {name!r}: expected one of {', '.join(known)}"
                f"{did_you_mean(str(name), known)}"
            )


def record_of(kind: type[_T], values: Mapping[str, Any], what: str) -> _T:
    """Build an instance of the attrs class `kind` from field values.

    Raises ProtocolError for unknown names and wrong values. `what` is the name of the values in the
    error.
    """
    check_names(kind, values, what)
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:  # validators of attrs raise these
        raise ProtocolError(f"{what} {error.args[0]}") from None


def in_use(kind: type, table: str) -> Iterator[tuple[str, Any, str]]:
    """Yield each (field name, value in use, programs that use the value) of an attrs class.

    `table` is the name of the options in in_use.toml: a metric, or "protocol".
    """
    uses = shipped("in_use.toml").get(table, {})
    for f in attrs.fields(kind):
        for value, programs in (*f.metadata.get("others", {}).items(), *uses.get(f.name, ())):
            yield f.name, tuple(value) if isinstance(value, list) else value, programs


def default_of(record: object, field: attrs.Attribute[Any]) -> object:
    """Return the default of a field, which may depend on earlier fields of the record."""
    default: Any = field.default
    if not isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        return default
    return default.factory(record) if default.takes_self else default.factory()


def captions(record: Any) -> dict[str, str]:
    """Return the captions of a record by field name, without empty captions."""
    texts = {}
    for f in attrs.fields(type(record)):
        value = getattr(record, f.name)
        caption = f.metadata.get("caption", "")
        if callable(caption):
            text = caption(record)
        elif isinstance(caption, Mapping):
            text = caption.get(value)
        else:
            text = caption.format(value) if value != default_of(record, f) else ""
        if text:
            texts[f.name] = text
    return texts

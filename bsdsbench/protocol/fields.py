"""Build the fields of protocols and of metrics' options, and read what their classes declare.

Protocols and options are attrs classes. The converter of a field turns what users write into a
value, the validator says which values are accepted, and `metadata` holds

    help    : the meaning of the field, a sentence
    caption : the text of captions: a format, used if the value is not the default; a text for each
              value; or a function of the whole record. "" is not printed
    others  : values in use -> the programs that use them, of metrics that in_use.toml does not have
    usual   : the default in words, if it depends on the fields before (an attrs.Factory)
    signed  : True for an option that signatures name even if it has its default
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
HOME_MADE = "home-made scripts"  # in in_use.toml: a value that no known program uses
MAX_CLASSES = 65_536
MAX_LIST = 64
MAX_SEVERAL = 16
DEFAULT = "default"  # an option that is not given
NUMBER = r"[0-9]*\.?[0-9]+(?:e-?[0-9]+)?"  # the pattern of `number_text`

Validator = Callable[[Any, Any, Any], None]
_T = TypeVar("_T")


def is_int(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer; True and False are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is an integer or a float; True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def clipped(value: object) -> str:
    """Return the value as Python writes it, cut to 60 characters."""
    return clip(repr(value), 60)


def tidy(value: object) -> Any:
    """Return a value with floats that are whole numbers as integers, so that 2.0 is written as 2.

    Tuples and lists become lists.
    """
    if isinstance(value, list | tuple):
        return [tidy(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def number_text(value: float) -> str:
    """Return a number as Python writes it, but .5 for 0.5 and 2 for 2.0."""
    text = repr(tidy(value))
    return text[1:] if text.startswith("0.") else text


def abbreviated(value: object) -> str:
    """Return a value as text for one line: of a long list its length and ends."""
    if isinstance(value, list | tuple) and len(value) > 4:
        first, last = (f"{v:g}" if is_number(v) else str(v) for v in (value[0], value[-1]))
        return f"{len(value)} of {first} .. {last}"
    return str(tidy(value))


def shipped(name: str) -> dict[str, Any]:
    """Return the content of a TOML file that lies beside this module."""
    return parse_toml(resources.files("bsdsbench.protocol").joinpath(name).read_bytes())


def read_toml(path: PathLike, what: str) -> dict[str, Any]:
    """Return the content of a TOML file; `what` names it in an error.

    Raises FileFormatError if it is not TOML.
    """
    data = read_bytes(path, MAX_TOML_BYTES)
    with reading(path, what):
        return parse_toml(data)


def accepting(accepts: Callable[[Any], bool], expected: str) -> Validator:
    """Return a validator for the values that `accepts` returns True for.

    Its error names the field, the value and what was expected.
    """

    def validate(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if not accepts(value):
            raise ProtocolError(f"{attribute.name} {clipped(value)}: expected {expected}")

    return validate


def whole(low: int, high: float, expected: str) -> Validator:
    """Return a validator for integers from low to high."""
    return accepting(lambda v: is_int(v) and low <= v <= high, expected)


def one_of(*choices: str | int) -> Validator:
    """Return a validator for one of the choices, which have one type."""
    texts = [repr(c) for c in choices]
    return accepting(
        lambda v: type(v) is type(choices[0]) and v in choices,
        f"{', '.join(texts[:-1])} or {texts[-1]}",
    )


def each(accepts: Callable[[Any], bool], least: int, most: int, expected: str) -> Validator:
    """Return a validator for tuples of `least` to `most` values, all of them accepted."""
    return accepting(
        lambda v: isinstance(v, tuple) and least <= len(v) <= most and all(map(accepts, v)),
        expected,
    )


def some_of(*choices: str, least: int = 0) -> Validator:
    """Return a validator for tuples of at least `least` of the choices."""
    return each(choices.__contains__, least, MAX_LIST, f"some of {', '.join(choices)}")


def number_list(accepts: Callable[[float], bool], expected: str) -> Validator:
    """Return a validator for tuples of 1 to MAX_LIST numbers, all of them accepted."""
    return each(lambda x: is_number(x) and accepts(x), 1, MAX_LIST, f"1 to {MAX_LIST} {expected}")


def one_or_several(given: object) -> object:
    """Return one number, or several as a tuple, as files and the command line write them."""
    if isinstance(given, list | tuple):
        several = tuple(map(one_or_several, given))
        return several[0] if len(several) == 1 else several
    if str(given).lower() == "none":
        return None
    return float(given) if is_number(given) and abs(given) < 1e300 else given


def several_of(accepts: Callable[[float], bool], expected: str) -> Validator:
    """Return a validator for an accepted number, or several different ones."""

    def accepted(value: object) -> bool:
        several = value if isinstance(value, tuple) else (value,)
        known = all(is_number(v) and accepts(v) for v in several)
        return known and 1 <= len(set(several)) == len(several) <= MAX_SEVERAL

    return accepting(accepted, f"{expected}; or up to {MAX_SEVERAL} different ones")


def _is_text(value: object) -> bool:
    """Return whether a value is printable text of 1 to MAX_TEXT characters."""
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
    """Return an attrs field with a default, a help sentence and further metadata (see above).

    Unless there is a converter, values take the form of the default: numbers become floats if it
    has floats (2 and 2.0 are one value), and if it is a tuple, lists become tuples and a single
    value a tuple of one. The text "none" is None if that is the default.
    """
    is_list = isinstance(default, tuple)
    defaults = default if is_list else (default,)
    is_float = defaults != () and all(v is None or isinstance(v, float) for v in defaults)

    def convert_element(value: object) -> object:
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
    """Return one value or several as a tuple; -1 stands for none."""
    listed = tuple(values) if isinstance(values, list | tuple) else (values,)
    return () if listed == (-1,) else listed


def check_names(kind: type, values: Mapping[str, Any], what: str) -> None:
    """Raise ProtocolError if a key of `values` is not the name of a field of the attrs class.

    `what` names the values in the error.
    """
    known = attrs.fields_dict(kind)
    for name in values:
        if name not in known:
            raise ProtocolError(
                f"{what} field {name!r}: expected one of {', '.join(known)}"
                f"{did_you_mean(str(name), known)}"
            )


def record_of(kind: type[_T], values: Mapping[str, Any], what: str) -> _T:
    """Return an instance of the attrs class `kind` with these field values.

    Raises ProtocolError for other names and values; `what` names the values in the error.
    """
    check_names(kind, values, what)
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:  # also of attrs' own validators
        raise ProtocolError(f"{what} {error.args[0]}") from None


def in_use(kind: type, table: str) -> Iterator[tuple[str, Any, str]]:
    """Yield the name of a field, a value that is in use, and the programs that use it.

    `table` is the name of the options in in_use.toml: that of a metric, or "protocol".
    """
    by_option = shipped("in_use.toml").get(table, {})
    for f in attrs.fields(kind):
        for value, programs in (*f.metadata.get("others", {}).items(), *by_option.get(f.name, ())):
            yield f.name, tuple(value) if isinstance(value, list) else value, programs


def default_of(record: object, field: attrs.Attribute[Any]) -> object:
    """Return the default of a field, which may depend on the fields before it."""
    made: Any = field.default
    if not isinstance(made, attrs.Factory):  # type: ignore[arg-type]
        return made
    return made.factory(record) if made.takes_self else made.factory()


def captions(record: Any) -> dict[str, str]:
    """Return the caption texts of an options record by field, without empty ones."""
    texts = {}
    for f in attrs.fields(type(record)):
        value, caption = getattr(record, f.name), f.metadata.get("caption", "")
        if callable(caption):
            text = caption(record)
        elif isinstance(caption, Mapping):
            text = caption.get(value)
        else:
            text = caption.format(value) if value != default_of(record, f) else ""
        if text:
            texts[f.name] = text
    return texts

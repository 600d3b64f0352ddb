"""What fields of protocols and of metrics' options are made of, and what is read off such classes.

They are attrs classes. A converter says what a given value means, a validator what is accepted,
and `metadata` holds

    help    : what the field means, in a sentence
    caption : what a caption says of it: a format, for values that are not the default; a text for
              each value; or a function of the whole record. "" is not printed
    others  : values in use -> whose programs have them; `explain` tries them
    usual   : the default in words, where it depends on the fields before (an attrs.Factory)
    signed  : True for an option that signatures name even where it has its default
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from typing import Any, TypeVar

import attrs

from bsdsbench.files.bounded import MAX_TOML_BYTES, PathLike, parse_toml, read_bytes, reading
from bsdsbench.files.errors import ProtocolError, clip, did_you_mean, is_text

MAX_TEXT = 200
HOME_MADE = "home-made scripts"  # have a value that no known program has
MAX_CLASSES = 65_536
MAX_LIST = 64
DEFAULT = "default"  # an option that is not given
NUMBER = r"[0-9]*\.?[0-9]+(?:e-?[0-9]+)?"  # what `number_text` writes

Validator = Callable[[Any, Any, Any], None]
_T = TypeVar("_T")


def is_int(value: Any) -> bool:
    """True for whole numbers, which True and False are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """True for whole and other numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def clipped(value: Any) -> str:
    """The value as Python writes it, at most 60 characters."""
    return clip(repr(value), 60)


def tidy(value: Any) -> Any:
    """A value to be written: whole numbers without a point, so that equal ones look equal."""
    if isinstance(value, list | tuple):
        return [tidy(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def number_text(value: float) -> str:
    """As Python writes it, without the zero before the point and a point behind whole numbers."""
    text = repr(tidy(value))
    return text[1:] if text.startswith("0.") else text


def short(value: Any) -> str:
    """A value for one line: a long list by its length and ends."""
    if isinstance(value, list | tuple) and len(value) > 4:
        first, last = (f"{v:g}" if is_number(v) else str(v) for v in (value[0], value[-1]))
        return f"{len(value)} of {first} .. {last}"
    return str(tidy(value))


def shipped(name: str) -> dict[str, Any]:
    """The table in a TOML file of this package, beside this module."""
    return parse_toml(resources.files("bsdsbench.protocol").joinpath(name).read_bytes())


def read_toml(path: PathLike, what: str) -> dict[str, Any]:
    """The table in a TOML file. Raises FileFormatError, one line, for anything else."""
    data = read_bytes(path, MAX_TOML_BYTES)
    with reading(path, what):
        return parse_toml(data)


def check(good: Callable[[Any], bool], expected: str) -> Validator:
    """A validator that names the field, its value and what was expected."""

    def validate(_: Any, attribute: Any, value: Any) -> None:
        if not good(value):
            raise ProtocolError(f"{attribute.name} {clipped(value)}: expected {expected}")

    return validate


def whole(low: int, high: float, expected: str) -> Validator:
    """Whole numbers from low to high."""
    return check(lambda v: is_int(v) and low <= v <= high, expected)


def one_of(*choices: str | int) -> Validator:
    """Some values."""
    shown = [repr(c) for c in choices]
    return check(
        lambda v: type(v) is type(choices[0]) and v in choices,
        f"{', '.join(shown[:-1])} or {shown[-1]}",
    )


def each(good: Callable[[Any], bool], least: int, most: int, expected: str) -> Validator:
    """Lists of `least` to `most` good values."""
    return check(
        lambda v: isinstance(v, tuple) and least <= len(v) <= most and all(map(good, v)), expected
    )


def some_of(*choices: str, least: int = 0) -> Validator:
    """A list of some values."""
    return each(choices.__contains__, least, MAX_LIST, f"some of {', '.join(choices)}")


def numbers(good: Callable[[float], bool], expected: str) -> Validator:
    """Lists of 1 to MAX_LIST of some numbers."""
    return each(lambda x: is_number(x) and good(x), 1, MAX_LIST, f"1 to {MAX_LIST} {expected}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_TEXT and is_text(value)


TEXT = check(_is_text, "text")
NAMES = [
    each(_is_text, 0, MAX_CLASSES, "names"),
    check(lambda v: len(set(v)) == len(v), "each name once"),
]
BOOL = check(lambda v: isinstance(v, bool), "true or false")
LABEL = whole(0, 2**31 - 1, "a label from 0")
LABELS = each(lambda v: is_int(v) and 0 <= v < 2**31, 0, MAX_LIST, "labels from 0, or -1 for none")
POSITIVE = check(lambda v: is_number(v) and 0 < v <= 1e6, "a number above 0, at most 1e6")
POSITIVES = numbers(lambda v: 0 < v <= 1e6, "numbers above 0, at most 1e6")


def option(
    default: Any,
    help: str,
    validator: Validator | list[Validator] = BOOL,
    converter: Callable[[Any], Any] | None = None,
    **metadata: Any,
) -> Any:
    """A field. Numbers become floats where the default has them (2 and 2.0 are one value), lists
    tuples, one value a list of itself; "none" is None where that is the default."""
    many = isinstance(default, tuple)
    usual = default if many else (default,)
    real = usual != () and all(v is None or isinstance(v, float) for v in usual)

    def one(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(value)
        if default is None and str(value).lower() == "none":
            return None
        return float(value) if real and is_number(value) and abs(value) < 1e300 else value

    def read(value: Any) -> Any:
        if not many:
            return one(value)
        return tuple(map(one, value if isinstance(value, list | tuple) else [value]))

    metadata["help"] = help
    return attrs.field(
        default=default, validator=validator, converter=converter or read, metadata=metadata
    )


def listed_labels(given: Any) -> Any:
    """One label or several as a tuple; -1 is none."""
    labels = tuple(given) if isinstance(given, list | tuple) else (given,)
    return () if labels == (-1,) else labels


def check_names(kind: type, given: Mapping[str, Any], what: str) -> None:
    """Raise ProtocolError for a name that is no field's."""
    known = attrs.fields_dict(kind)
    for name in given:
        if name not in known:
            raise ProtocolError(
                f"{what} field {name!r}: expected one of {', '.join(known)}"
                f"{did_you_mean(str(name), known)}"
            )


def record_of(kind: type[_T], values: Mapping[str, Any], what: str) -> _T:
    """The record of plain values. Raises ProtocolError, which says `what` the values are of."""
    check_names(kind, values, what)
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:  # also of attrs' own validators
        raise ProtocolError(f"{what} {error.args[0]}") from None


def in_use(kind: type) -> Iterator[tuple[str, Any, str]]:
    """(field, value, whose programs have it) of the values said to be in use."""
    for f in attrs.fields(kind):
        for value, who in f.metadata.get("others", {}).items():
            yield f.name, value, who


def default_of(record: Any, field: attrs.Attribute[Any]) -> Any:
    """Return the default of a field, which may depend on the fields before it."""
    made: Any = field.default
    if not isinstance(made, attrs.Factory):  # type: ignore[arg-type]
        return made
    return made.factory(record) if made.takes_self else made.factory()


def captions(record: Any) -> dict[str, str]:
    """Field -> what a caption says of it, without those of which it says nothing."""
    out = {}
    for f in attrs.fields(type(record)):
        value, how = getattr(record, f.name), f.metadata.get("caption", "")
        if callable(how):
            text = how(record)
        elif isinstance(how, Mapping):
            text = how.get(value)
        else:
            text = how.format(value) if value != default_of(record, f) else ""
        if text:
            out[f.name] = text
    return out

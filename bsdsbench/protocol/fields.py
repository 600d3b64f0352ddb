"""What fields of protocols and of metrics' options are made of, and what is read off such classes.

They are attrs classes. A converter says what a given value means, a validator what is accepted,
and `metadata` holds

    help    : what the field means, in a sentence
    caption : what a caption says of it: a format, for values that are not the default; a text for
              each value; or a function of the whole record. "" is not printed
    others  : values in use -> whose programs have them; `explain` tries them
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import attrs

from bsdsbench.files.errors import ProtocolError, clip, did_you_mean, is_text

MAX_TEXT = 200
HOME_MADE = "home-made scripts"  # have a value that no known program has
MAX_CLASSES = 65_536
MAX_LIST = 64
DEFAULT = "default"  # an option that is not given

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
    if isinstance(value, tuple | list) and len(value) > 100:
        return f"of {len(value)} values"
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


def toml_text(values: Mapping[str, Any]) -> str:
    """TOML of plain values and one level of tables; None is left out, as TOML has none."""
    lines, tables = [], []
    for name, value in values.items():
        if isinstance(value, dict):
            head = json.dumps(name) if "." in name else name
            tables += ["", f"[{head}]", toml_text(value).rstrip()]
        elif value is not None:
            lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines + tables) + "\n"


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


def some_of(*choices: str, least: int = 0) -> Validator:
    """A list of some values."""
    return check(
        lambda v: isinstance(v, tuple) and len(v) >= least and all(n in choices for n in v),
        f"some of {', '.join(choices)}",
    )


def numbers(good: Callable[[float], bool], expected: str) -> Validator:
    """Lists of 1 to MAX_LIST of some numbers."""
    return check(
        lambda v: (
            isinstance(v, tuple)
            and 0 < len(v) <= MAX_LIST
            and all(is_number(x) and good(x) for x in v)
        ),
        f"1 to {MAX_LIST} {expected}",
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_TEXT and is_text(value)


TEXT = check(_is_text, "text")
NAMES = check(
    lambda v: (
        isinstance(v, tuple)
        and len(v) <= MAX_CLASSES
        and all(map(_is_text, v))
        and len(set(v)) == len(v)
    ),
    "names, each once",
)
BOOL = check(lambda v: isinstance(v, bool), "true or false")
LABEL = whole(0, 2**31 - 1, "a label from 0")
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
    real = default != () and all(
        v is None or isinstance(v, float) for v in (default if many else [default])
    )

    def number(value: Any) -> Any:
        return float(value) if real and is_number(value) and abs(value) < 1e300 else value

    def read(value: Any) -> Any:
        if many:
            given = value if isinstance(value, list | tuple) else [value]
            return tuple(tuple(v) if isinstance(v, list) else number(v) for v in given)
        return None if default is None and str(value).lower() == "none" else number(value)

    metadata["help"] = help
    usual = read if many or real else None
    return attrs.field(
        default=default, validator=validator, converter=converter or usual, metadata=metadata
    )


def check_names(kind: type, given: Mapping[str, Any], what: str) -> None:
    """Raise ProtocolError for a name that is no field's."""
    known = [f.name for f in attrs.fields(kind)]
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


def captions(record: Any) -> dict[str, str]:
    """Field -> what a caption says of it, without those of which it says nothing."""
    out = {}
    for f in attrs.fields(type(record)):
        value, how = getattr(record, f.name), f.metadata.get("caption", "")
        if isinstance(how, str):
            out[f.name] = how.format(value) if value != f.default else ""
        else:
            out[f.name] = how.get(value, "") if isinstance(how, Mapping) else how(record)
    return {name: text for name, text in out.items() if text}

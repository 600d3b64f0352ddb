"""Fields with a default, a range and words, of which a protocol and a metric's options are made.

A `Settings` class is a frozen dataclass whose fields are made by `setting`. All else follows from
the fields: the checks, the docstring, plain values and TOML, `--set`, signatures, descriptions.

The constants of edge NMS, and those of published programs by name: `--nms rcf`.

Names with equal constants are one recipe under several names; a protocol is described by the first.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from bsdsbench.files.errors import ProtocolError, clip, did_you_mean, is_text

MAX_TEXT = 200
HOME_MADE = "home-made scripts"  # have a value that no known program has
MAX_CLASSES = 65_536
MAX_LIST = 64

# What is accepted, and the words after "expected".
Rule = tuple[Callable[[Any], bool], str]
_S = TypeVar("_S", bound="Settings")
_SETTING = "setting"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a field knows beside its type and default, see `setting`."""

    help: str
    rules: tuple[Rule, ...]
    read: Callable[[Any], Any]
    describe: str | Mapping[Any, str] | Callable[[Any], str]
    others: Mapping[Any, str]


def setting(
    default: Any,
    words: str,
    *rules: Rule,
    read: Callable[[Any], Any] | None = None,
    describe: str | Mapping[Any, str] | Callable[[Any], str] = "",
    others: Mapping[Any, str] = {},
    **more: Any,
) -> Any:
    """A field of a `Settings` class.

    default  : its value where none is given
    words    : what it means, for the docstring
    rules    : what is accepted; the first rule that a value breaks is named
    read     : makes the value of what is given; without it lists become tuples, and a text does
               where the default is one
    describe : words for a caption: a format that is printed where the value is not the default, a
               text for each value, or a function of the whole record; "" is not printed
    others   : values in use -> whose programs have them; `explain` tries them
    more     : what `dataclasses.field` takes
    """
    found = Setting(words, rules, read or _tuples, describe, dict(others))
    return field(default=default, metadata={_SETTING: found}, **more)


class Settings:
    """The base of frozen dataclasses with slots whose fields are settings."""

    __slots__ = ()
    called: ClassVar[str] = ""  # before the name of a field in errors

    def __init_subclass__(cls) -> None:
        """Write the fields into the docstring. A dataclass with slots comes here twice."""
        own = {k: v for k, v in vars(cls).items() if isinstance(v, Field)}
        inherited = getattr(cls, "__dataclass_fields__", {})
        if not inherited | own or _PARAMETERS in (cls.__doc__ or ""):
            return
        kinds = {k: f.type for k, f in inherited.items()} | cls.__annotations__
        lines = [
            f"{k} : {kinds[k]}\n    {f.metadata[_SETTING].help}"
            for k, f in (inherited | own).items()
        ]
        head, mark, examples = inspect.cleandoc(cls.__doc__ or "").partition("\n\nExamples\n")
        cls.__doc__ = "\n".join([head, "", _PARAMETERS, *lines]) + mark + examples

    def __post_init__(self) -> None:
        """Check every field. Raises ProtocolError for the first value out of its range."""
        defaults = {f.name: f.default for f in fields(self)}  # type: ignore[arg-type]
        for name, found in self._settings():
            given, default = getattr(self, name), defaults[name]
            if found.read is _tuples and isinstance(given, str) and isinstance(default, tuple):
                given = (given,)
            value = found.read(given)
            for good, expected in found.rules:
                if not good(value):
                    raise ProtocolError(
                        f"{self.called}{name} {clipped(value)}: expected {expected}"
                    )
            object.__setattr__(self, name, value)

    @classmethod
    def _settings(cls) -> Iterator[tuple[str, Setting]]:
        return ((f.name, f.metadata[_SETTING]) for f in fields(cls))  # type: ignore[arg-type]

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(name for name, _ in cls._settings())

    @classmethod
    def in_use(cls) -> Iterator[tuple[str, Any, str]]:
        """(field, value, whose programs have it) of the values said to be in use."""
        for name, found in cls._settings():
            for value, who in found.others.items():
                yield name, value, who

    @classmethod
    def check_names(cls, given: Collection[str], called: str | None = None) -> None:
        """Raise ProtocolError for a name that is no field's.

        Parameters
        ----------
        given : collection of str
            Names to check.
        called : str, optional
            What messages call the record.
        """
        known = cls.names()
        for name in given:
            if name not in known:
                raise ProtocolError(
                    f"{cls.called if called is None else called}field {name!r}: expected one of "
                    f"{', '.join(known)}{did_you_mean(str(name), known)}"
                )

    @classmethod
    def from_mapping(cls: type[_S], values: Mapping[str, Any]) -> _S:
        """The record of plain values. Raises ProtocolError for unknown names and wrong values.

        Parameters
        ----------
        values : mapping
            Field -> plain value.
        """
        cls.check_names(values)
        return cls(**values)

    def to_mapping(self) -> dict[str, Any]:
        """Plain values, which `from_mapping` reads back to an equal record.

        Returns
        -------
        dict
            Field -> plain value.
        """
        return {name: plain(getattr(self, name)) for name in self.names()}

    def changed(self) -> dict[str, Any]:
        """The values that are not the default.

        Returns
        -------
        dict
            Field -> value.
        """
        values = {f.name: (getattr(self, f.name), f.default) for f in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, (value, default) in values.items() if value != default}

    def words(self) -> dict[str, str]:
        """Field -> what a caption says of it, without those of which it says nothing.

        Returns
        -------
        dict
            Field -> text.
        """
        changed, out = self.changed(), {}
        for name, found in self._settings():
            how = found.describe
            if isinstance(how, str):
                text = how.format(changed[name]) if name in changed else ""
            else:
                text = how.get(getattr(self, name), "") if isinstance(how, Mapping) else how(self)
            if text:
                out[name] = text
        return out

    def describe(self) -> str:
        """What moves a score, in a few words."""
        return "; ".join(self.words().values())


_PARAMETERS = "Parameters\n----------"


def plain(value: Any) -> Any:
    """A value as JSON has it: tuples as lists, records and mappings as dicts."""
    if isinstance(value, Settings):
        return value.to_mapping()
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, tuple) else value


def toml_text(values: Mapping[str, Any]) -> str:
    """TOML of plain values and one level of tables; None is left out, as TOML has none."""
    tables = {k: v for k, v in values.items() if isinstance(v, dict)}
    lines = [
        f"{k} = {json.dumps(v, ensure_ascii=False)}"
        for k, v in values.items()
        if v is not None and k not in tables
    ]
    for name, table in tables.items():
        lines += ["", f"[{json.dumps(name) if '.' in name else name}]", toml_text(table).rstrip()]
    return "\n".join(lines) + "\n"


def short(value: Any) -> str:
    """A value for one line: a long list by its length and ends."""
    if isinstance(value, list | tuple) and len(value) > 4:
        first, last = (f"{v:g}" if is_number(v) else str(v) for v in (value[0], value[-1]))
        return f"{len(value)} of {first} .. {last}"
    return str(plain(value))


def clipped(value: Any) -> str:
    """The value as Python writes it, at most 60 characters."""
    if isinstance(value, tuple | list) and len(value) > 100:
        return f"of {len(value)} values"
    return clip(repr(value), 60)


def option_tables(given: Any) -> Mapping[str, Mapping[str, Any]]:
    """Metric -> its options, read-only; None stands for the default. Raises ProtocolError."""
    from bsdsbench.tables.read_only import ReadOnlyDict  # with numpy, which names need not

    if not isinstance(given, Mapping):
        raise ProtocolError(f"options {clipped(given)}: expected a table for each metric")
    tables = {}
    for name, table in given.items():
        values = table.changed() if isinstance(table, Settings) else table
        named = isinstance(values, Mapping) and all(isinstance(k, str) for k in (name, *values))
        if not named:
            raise ProtocolError(f"options {clipped({name: table})}: expected a table of options")
        kept = {k: _value(v, f"{name} {k}") for k, v in values.items() if v is not None}
        if kept:
            tables[name] = ReadOnlyDict(kept)
    return ReadOnlyDict(tables)


def _value(value: Any, what: str) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_value(v, what) for v in value)
    if not isinstance(value, str | int | float):
        raise ProtocolError(f"{what} {clipped(value)}: expected a number, text or a list of them")
    return value


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def floats(value: Any) -> Any:
    """A list with its whole numbers as floats."""
    if not isinstance(value, list | tuple):
        return value
    return tuple(float(v) if type(v) is int else v for v in value)


def is_int(value: Any) -> bool:
    """True for whole numbers, which True and False are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """True for whole and other numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_TEXT and is_text(value)


def _is_names(values: Any) -> bool:
    good = isinstance(values, tuple) and len(values) <= MAX_CLASSES
    good = good and all(map(_is_text, values))
    return good and len(set(values)) == len(values)


def whole(low: int, high: float, expected: str) -> Rule:
    """Whole numbers from low to high."""
    return lambda v: is_int(v) and low <= v <= high, expected


def one_of(*choices: Any) -> Rule:
    """Some values."""
    shown = [repr(c) for c in choices]
    expected = f"{', '.join(shown[:-1])} or {shown[-1]}"
    return lambda v: type(v) in {type(c) for c in choices} and v in choices, expected


def optional(rule: Rule) -> Rule:
    """What the rule accepts, or None."""
    check, expected = rule
    return lambda v: v is None or check(v), expected


def each(rule: Rule, expected: str) -> Rule:
    """Lists of 1 to MAX_LIST of what the rule accepts."""
    check, _ = rule
    good: Callable[[Any], bool] = lambda v: (  # noqa: E731
        isinstance(v, tuple) and 0 < len(v) <= MAX_LIST and all(map(check, v))
    )
    return good, f"1 to {MAX_LIST} {expected}"


TEXT: Rule = (_is_text, "text")
NAMES: Rule = (_is_names, "names")
BOOL: Rule = (lambda v: isinstance(v, bool), "true or false")
LABEL: Rule = whole(0, 2**31 - 1, "a label from 0")
POSITIVE: Rule = (lambda v: is_number(v) and 0 < v <= 1e6, "a number above 0, at most 1e6")
POSITIVES: Rule = each(POSITIVE, "numbers above 0, at most 1e6")


@dataclass(frozen=True, slots=True)
class NMSParams(Settings):
    """Edge non-maximum suppression as a data set's users run it: `bsdsbench.metrics.maps`.

    Examples
    --------
    >>> NMSParams.recipe("rcf").describe()
    'rcf: 2, 5, 1.01 (8 bit, not smoothed)'
    >>> NMSParams(radius=2).changed()
    {'radius': 2}
    """

    called: ClassVar[str] = "nms "

    radius: int = setting(
        1, "Pixels compared on each side along the normal.", whole(1, 99, "1 to 99 pixels")
    )
    border: int = setting(5, "Pixels faded at the border.", whole(0, 9999, "0 to 9999 pixels"))
    multiplier: float = setting(
        1.01,
        "A pixel survives if multiplier * value is not below its neighbours.",
        (lambda v: is_number(v) and 0 < v <= 1e6, "a number above 0"),
    )
    smooth: bool = setting(True, "Filter the soft map once more before the comparison.", BOOL)
    bits: int = setting(
        8,
        "8 or 16: the result is rounded as a PNG of that depth would; 0: kept in float32.",
        one_of(0, 8, 16),
    )

    @classmethod
    def recipe(cls, name: str) -> NMSParams:
        """The constants of a recipe. Raises ProtocolError.

        Parameters
        ----------
        name : str
            Such as "hed" or "rcf".
        """
        if name not in RECIPES:
            raise ProtocolError(f"NMS recipe {name!r}: expected one of {', '.join(RECIPES)}")
        return cls(*RECIPES[name].constants)

    @classmethod
    def read(cls, given: Any) -> Any:
        """The constants from the name of a recipe, or from their values.

        Parameters
        ----------
        given : str, mapping or NMSParams
            What a caller gave.
        """
        if isinstance(given, str):
            return cls.recipe(given)
        return cls.from_mapping(given) if isinstance(given, Mapping) else given

    def describe(self) -> str:
        """The constants in a few words, with the name of their recipe.

        Returns
        -------
        str
            Such as "hed: 1, 5, 1.01 (8 bit)".
        """
        depth = f"{self.bits} bit" if self.bits else "float"
        smooth = "" if self.smooth else ", not smoothed"
        name = f"{self.recipe_name}: " if self.recipe_name else ""
        return f"{name}{self.radius}, {self.border}, {self.multiplier:g} ({depth}{smooth})"

    @property
    def recipe_name(self) -> str | None:
        """The first recipe with these constants, or None."""
        mine = (self.radius, self.border, self.multiplier, self.smooth, self.bits)
        return next((name for name, r in RECIPES.items() if r.constants == mine), None)


@dataclass(frozen=True, slots=True)
class Recipe:
    """The constants of `NMSParams` in their order, and the program they were read in."""

    constants: tuple[int, int, float, bool, int]
    source: str


RECIPES: dict[str, Recipe] = {
    "hed": Recipe((1, 5, 1.01, True, 8), "HED, nms_process.m and EvalEdge.m; also FCL-Net"),
    "rcf": Recipe((2, 5, 1.01, False, 8), "RCF, edge_nms.m, BSDS500 and Multicue"),
    "rcf-nyud": Recipe((4, 5, 1.01, False, 8), "RCF, edge_nms.m, the comment on NYUD"),
    "cats": Recipe((1, 4, 1.01, True, 8), "CATS, eval_edge.m, BSDS500"),
    "cats-nyud": Recipe((4, 4, 1.01, True, 8), "CATS, eval_edge.m, NYUD"),
    "dexined": Recipe((1, 5, 1.03, False, 8), "DexiNed, the author in issue 8"),
    "teed": Recipe((1, 5, 1.04, False, 8), "TEED, the author in issue 21"),
    "edter": Recipe((1, 5, 1.01, True, 8), "EDTER, eval_bsds.m; also EdgeNAT"),
    "edter-nyud": Recipe((2, 5, 1.01, True, 8), "EDTER, eval_nyud.m; also EdgeNAT"),
    "rindnet": Recipe((1, 5, 1.01, True, 8), "RINDNet, eval.m"),
    "pidinet": Recipe((1, 5, 1.01, True, 8), "PiDiNet, from a derived copy of its script"),
    "skeleton": Recipe((1, 5, 1.01, False, 0), "skeval, nms.m"),
    "seism": Recipe((1, 5, 1.01, False, 0), "SEISM, read_one_cont_png.m; multi-task learning"),
    "occlusion": Recipe((1, 5, 1.01, False, 0), "DOOBNet, edge_nms.m; also P2ORM"),
    "se": Recipe((1, 5, 1.01, False, 0), "structured edges, edgesDetect"),
    "crack": Recipe((2, 5, 1.01, False, 0), "pavement-crack-detection, crack_nms.m"),
    "crispness": Recipe((2, 5, 1.01, False, 0), "average crispness, eval_crispness.m"),
    "strict": Recipe((1, 5, 1.01, False, 8), "SDPED, benchmarkBoundary.m"),
    "plain": Recipe((1, 0, 1.0, False, 0), "the comparison alone"),
}

"""One line that says how a score was made, to be printed under tables and read back.

    bsdsbench 0.2.0|bsds500-test:200/200|gt:fa866d15|ann:all|pred:soft8|thr:99|tol:.0075d|\\
    match:1to1|nms:none|thin|ap:bsds

| word | what |
|---|---|
| bsdsbench V | the version of this package |
| SET:N/M | N of the M images of a known set; `set:N` for a set without a name |
| gt | the ground truth's fingerprint, its first digits |
| ann | which annotators count |
| pred | what the predictions are: soft8, soft16, float, ucm2, segs, labels ... |
| maps | how many maps were taken over from an earlier call of the detector, if any |
| proto | the preset where it is not bsds500, and its version; what else differs from it follows |
| thr | how many even thresholds; 8bit or seism; `0+` before it for the whole image; or values |
| tol | the tolerance, d a fraction of the diagonal, px pixels |
| match | 1to1; random, by the official solver (reference runs); 1toN, a wrong reading (`explain`) |
| nms | none, a recipe, or radius,border,multiplier,smooth or raw,bits |
| thin | thin or unthinned |
| op, ods | the threshold operator and the ODS rule where they are not >= and interpolated |
| ap | the AP rule |
| FIELD=VALUE | any other field that differs from the preset, options as saliency.beta2=0.5 |

A line has only words of what its metrics use; a word that is not there means the preset's value.

`?` is what is not known. `|` and `%` inside a word are written %7C and %25.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from bsdsbench import __version__
from bsdsbench.files.bounded import parse_toml
from bsdsbench.files.errors import ProtocolError
from bsdsbench.protocol.constants import GRIDS, even_thresholds
from bsdsbench.protocol.difference_costs import COSTS
from bsdsbench.protocol.protocol import DEFAULT, UNSTATED, UNSTATED_GRID, Protocol, preset_names
from bsdsbench.protocol.settings import NMSParams

UNKNOWN = "?"
GT_DIGITS = 8
_BASE = "bsds500"


@dataclass(frozen=True, slots=True, repr=False)
class Signature:
    """How a score was made.

    protocol   : the protocol
    set_name   : the known set, or None for a set without a name
    n_images   : images evaluated; None where that is not known
    set_size   : images of the known set
    gt         : first digits of the ground truth's fingerprint
    annotators : "all", or "first", "union" in wrong readings
    pred       : the kind of prediction
    match      : "1to1", or "1toN" in a wrong reading
    version    : of this package
    unused     : fields of the protocol, and metrics with options, that have no word here
    taken_over : maps that an earlier call of the detector made

    Examples
    --------
    >>> str(Signature(Protocol.preset("bsds500"), "bsds500-val", 100, 100, version="0.2.0"))
    'bsdsbench 0.2.0|bsds500-val:100/100|gt:?|ann:all|pred:?|thr:99|tol:.0075d|match:1to1|nms:none|thin|ap:bsds'
    """  # noqa: E501

    protocol: Protocol
    set_name: str | None = None
    n_images: int | None = None
    set_size: int | None = None
    gt: str = UNKNOWN
    annotators: str = "all"
    pred: str = UNKNOWN
    match: str = "1to1"
    version: str = field(default=__version__)
    unused: frozenset[str] = frozenset()
    taken_over: int = 0

    def __repr__(self) -> str:
        return f"<Signature {self}>"

    def __str__(self) -> str:
        return "|".join(_escape(word) for word in self.words())

    def words(self) -> list[str]:
        """The words of the line, in order."""
        return [f"bsdsbench {self.version}", self._set_word(), *self._input_words()]

    def _set_word(self) -> str:
        count = UNKNOWN if self.n_images is None else str(self.n_images)
        return f"{self.set_name}:{count}/{self.set_size}" if self.set_name else f"set:{count}"

    def _input_words(self) -> Iterator[str]:
        yield f"gt:{self.gt[:GT_DIGITS]}"
        yield f"ann:{self.annotators}"
        yield f"pred:{self.pred}"
        if self.taken_over:
            yield f"maps:{self.taken_over} taken over"
        yield from protocol_words(self.protocol, self.match, self.unused)

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read what `str` writes. Raises ProtocolError that names the word that is wrong."""
        words = [_unescape(word) for word in text.strip().split("|")]
        start = words[0].split(" ")
        if len(start) != 2 or start[0] != "bsdsbench" or len(words) < 2:
            raise ProtocolError(f"signature {words[0]!r}: expected 'bsdsbench VERSION|SET:N/M|...'")
        name, n, size = _parse_set(words[1])
        given: dict[str, str] = {}
        others: list[str] = []
        for word in words[2:]:
            key, colon, value = word.partition(":")
            if colon and "=" not in key:
                given[key] = value
            elif word in ("thin", "unthinned"):
                given["thin"] = word
            else:
                others.append(word)
        keys = set(given)
        maps = given.pop("maps", "0").partition(" ")[0]
        inputs = {k: given.pop(k, UNKNOWN) for k in ("gt", "ann", "pred", "match")}
        return cls(
            parse_protocol(given, others),
            name,
            n,
            size,
            inputs["gt"],
            inputs["ann"],
            inputs["pred"],
            inputs["match"],
            start[1],
            _fields(w for w in _WORDS if w.usual is None and w.key not in keys)
            - _fields(w for w in _WORDS if w.key in keys),
            int(maps) if maps.isdecimal() else 0,
        )

    def differences(self, other: Signature) -> list[Difference]:
        """What differs, in the order of the line; unknown words differ from nothing.

        Only words that both lines can have are compared.
        """
        unused = self.unused | other.unused
        mine, theirs = _by_key(self, unused), _by_key(other, unused)
        found = []
        for key in [*mine, *(k for k in theirs if k not in mine)]:
            a, b = mine.get(key, ""), theirs.get(key, "")
            if a != b and UNKNOWN not in (a, b) and not (a and b and _equal(key, a, b)):
                title, cost = COSTS.get(key.partition(".")[0], (key, ""))
                found.append(Difference(key, a, b, title, cost))
        return found


@dataclass(frozen=True, slots=True)
class Difference:
    """One word in which two signatures differ.

    key, a, b : the word's key and both values; "" where one has no such word
    title     : what it is, in words
    cost      : what it usually costs, with the source; "" if that is not known
    """

    key: str
    a: str
    b: str
    title: str
    cost: str

    def line(self) -> str:
        """For people, without a full stop: "tolerance: .0075d / .011d; usually ..."."""
        tail = f"; {self.cost}" if self.cost else ""
        return f"{self.title}: {self.a or 'as the preset'} / {self.b or 'as the preset'}{tail}"


def protocol_words(
    protocol: Protocol, match: str = "1to1", unused: frozenset[str] = frozenset()
) -> Iterator[str]:
    """The part of the line that the protocol fills, without the words of unused fields."""
    p, base = protocol, _base(protocol)
    words = [w for w in _WORDS if not w.fields <= unused]
    if not p.stated:
        yield f"thr:{UNKNOWN if p.name == UNSTATED_GRID else _thresholds_word(p.thresholds)}"
        yield from (f"{w.key}:{UNKNOWN}" for w in words if w.usual is None and w.key != "thr")
        return
    if (base.name, base.version) != (_BASE, 1):
        yield f"proto:{base.name}.{base.version}"
    for word in words:
        text = match if word.key == "match" else word.write(p)
        if (text, word.write(base)) != (word.usual, word.usual):
            yield text if word.key == "thin" else f"{word.key}:{text}"
    said = {"name", "version"} | _fields(_WORDS)
    said -= {"max_dist"} if p.max_dist_px is not None else set()
    mine, usual = p.leaves(), base.leaves()
    for name in {**mine, **usual}:
        value = mine.get(name, DEFAULT)
        if {name, name.rpartition(".")[0]} & (said | unused) or value == usual.get(name, DEFAULT):
            continue
        plain = value is None or name not in mine
        text = (value or "none") if plain else json.dumps(value, ensure_ascii=False)
        yield f"{name}={text}"


def parse_protocol(given: dict[str, str], others: list[str]) -> Protocol:
    """The protocol of the words `key:value` and `FIELD=VALUE`. Raises ProtocolError."""
    base = _named(given.pop("proto", f"{_BASE}.1"))
    changes: dict[str, Any] = {}
    if UNKNOWN in given.values():
        changes["name"] = UNSTATED_GRID if given.get("thr") == UNKNOWN else UNSTATED
        given = {k: v for k, v in given.items() if v != UNKNOWN}
    readers = {w.key: w.read for w in _WORDS}
    for key, text in given.items():
        if key not in readers:
            known = ", ".join(k for k in readers if k != "match")
            raise ProtocolError(f"signature {key}:{text}: expected one of {known}, proto")
        changes |= readers[key](text)
    try:
        changes |= parse_overrides(others)
        return base.replace(**changes)
    except ProtocolError as error:
        raise ProtocolError(f"signature: {error}") from None


def _base(protocol: Protocol) -> Protocol:
    """The preset that the protocol starts from, bsds500 where its name is no preset's."""
    name = protocol.name.rstrip("*")
    return Protocol.preset(name if name in preset_names() else _BASE)


def _named(word: str) -> Protocol:
    name, _, version = word.rpartition(".")
    preset = Protocol.preset(name)
    if version != str(preset.version):
        raise ProtocolError(
            f"signature proto:{word}: made with version {version} of {name}, expected "
            f"{preset.version}, as this package has"
        )
    return preset


def _by_key(signature: Signature, unused: frozenset[str]) -> dict[str, str]:
    """Key -> value of every word but the package's version and those of unused fields."""
    found = {}
    for word in replace(signature, taken_over=0).words()[2:]:  # they are the same maps
        if word in ("thin", "unthinned"):
            found["thin"] = word
            continue
        colon, equals = word.find(":"), word.find("=")
        at = colon if colon >= 0 and not 0 <= equals < colon else equals
        found[word[:at]] = word[at + 1 :]
    silent = {w.key for w in _WORDS if w.fields <= unused}
    kept = {k: v for k, v in found.items() if not {k, k.rpartition(".")[0]} & (silent | unused)}
    return {"set": signature._set_word(), **kept}


def _equal(key: str, a: str, b: str) -> bool:
    """Whether two values of a word mean the same, as 2px and 2.0px."""
    if read := next((w.read for w in _WORDS if w.key == key), None):
        return bool(read(a)) and read(a) == read(b)  # that of `match` reads nothing
    same = "." in key or key in Protocol.names()
    return same and parse_overrides([f"{key}={a}"]) == parse_overrides([f"{key}={b}"])


def _parse_set(word: str) -> tuple[str | None, int | None, int | None]:
    name, _, counts = word.rpartition(":")
    n, slash, size = counts.partition("/")
    numbers = [None if part == UNKNOWN else part for part in ([n, size] if slash else [n])]
    if not name or any(part is not None and not part.isdigit() for part in numbers):
        raise ProtocolError(f"signature {word!r}: expected SET:N/M or set:N")
    first, *rest = [None if part is None else int(part) for part in numbers]
    return (name, first, rest[0]) if rest else (None, first, None)


def _number(value: float) -> str:
    """As Python writes it, without the zero before the point."""
    text = repr(value)
    return text[1:] if text.startswith("0.") else text


def _thresholds_word(values: tuple[float, ...]) -> str:
    if values and values[0] == 0 and len(values) > 1:
        return f"0+{_thresholds_word(values[1:])}"
    for name, grid in GRIDS.items():
        if values == grid:
            return name
    if values == even_thresholds(len(values)):
        return str(len(values))
    return "at " + ",".join(map(_number, values))


def _parse_thresholds(text: str) -> Any:
    if text.startswith("0+"):
        rest = Protocol(thresholds=_parse_thresholds(text[2:])).thresholds
        return (0.0, *rest)
    if text in GRIDS:
        return text
    if text.startswith("at "):
        return tuple(_float(part, "thr") for part in text[3:].split(","))
    if not text.isdigit():
        raise ProtocolError(f"signature thr:{text}: expected a number of them, 8bit or values")
    return int(text)


def _parse_tolerance(text: str) -> dict[str, Any]:
    if text.endswith("px"):
        return {"max_dist_px": _float(text[:-2], "tol")}
    if not text.endswith("d"):
        raise ProtocolError(f"signature tol:{text}: expected a number and d or px")
    return {"max_dist": _float(text[:-1], "tol"), "max_dist_px": None}


def _nms_word(p: NMSParams) -> str:
    smooth = "smooth" if p.smooth else "raw"
    return p.recipe_name or f"{p.radius},{p.border},{_number(p.multiplier)},{smooth},{p.bits}"


def _parse_nms(text: str) -> dict[str, Any]:
    if text == "none":
        return {"nms": False}
    parts = text.split(",")
    if len(parts) == 1:
        return {"nms": True, "nms_params": text}
    if len(parts) != 5 or parts[3] not in ("smooth", "raw"):
        raise ProtocolError(
            f"signature nms:{text}: expected a recipe, or radius,border,multiplier,smooth|raw,bits"
        )
    radius, border, bits = (int(_float(parts[k], "nms")) for k in (0, 1, 4))
    multiplier = _float(parts[2], "nms")
    return {
        "nms": True,
        "nms_params": NMSParams(radius, border, multiplier, parts[3] == "smooth", bits),
    }


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the line: the fields it stands for, how it is written and read.

    usual : the text that is left out where the preset has it too; None is never left out
    """

    key: str
    fields: frozenset[str]
    write: Callable[[Protocol], str]
    read: Callable[[str], dict[str, Any]]
    usual: str | None = None


def _tolerance_word(p: Protocol) -> str:
    px = p.max_dist_px
    return f"{_number(p.max_dist)}d" if px is None else f"{_number(px)}px"


def _plain(key: str, name: str, usual: str | None = None) -> _Word:
    """The word of a field whose value is text."""
    return _Word(
        key, frozenset([name]), lambda p: getattr(p, name), lambda text: {name: text}, usual
    )


def _fields(words: Iterable[_Word]) -> frozenset[str]:
    return frozenset[str]().union(*(word.fields for word in words))


_TOLERANCE = frozenset(["max_dist", "max_dist_px"])
_WORDS = (
    _Word(
        "thr",
        frozenset(["thresholds"]),
        lambda p: _thresholds_word(p.thresholds),
        lambda text: {"thresholds": _parse_thresholds(text)},
    ),
    _Word("tol", _TOLERANCE, _tolerance_word, lambda text: _parse_tolerance(text)),
    _Word("match", _TOLERANCE, lambda p: "1to1", lambda text: {}),
    _Word(
        "nms",
        frozenset(["nms", "nms_params"]),
        lambda p: _nms_word(p.nms_params) if p.nms else "none",
        lambda text: _parse_nms(text),
    ),
    _Word(
        "thin",
        frozenset(["thin"]),
        lambda p: "thin" if p.thin else "unthinned",
        lambda text: {"thin": text == "thin"},
    ),
    _plain("op", "operator", ">="),
    _plain("ods", "ods_rule", "interpolated"),
    _plain("ap", "ap_rule"),
)


def _float(text: str, key: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ProtocolError(f"signature {key}: {text!r}, expected a number") from None


def _escape(word: str) -> str:
    return word.replace("%", "%25").replace("|", "%7C")


def _unescape(word: str) -> str:
    return word.replace("%7C", "|").replace("%25", "%")


def parse_overrides(items: Iterable[str]) -> dict[str, Any]:
    """`["max_dist=0.011", "nms_params.radius=2"]` -> the changes for `Protocol.replace`.

    Values are TOML (true, 0.011, [0.2, 0.5], "text"); anything else is taken as text, or as a list
    where it has commas. Options of a metric are `saliency.beta2=.5`, or `saliency.beta2=default`.
    Raises ProtocolError for an item without "=", and for a field that is given twice.
    """
    changes: dict[str, Any] = {}
    for item in items:
        key, equals, text = item.partition("=")
        table, dot, name = key.strip().rpartition(".")
        name, text = name.replace("-", "_"), text.strip()
        if not (equals and name and text and bool(dot) == bool(table)):
            raise ProtocolError(f"{item!r}: expected FIELD=VALUE")
        place: Any = changes
        if table and (own := table.replace("-", "_")) in Protocol.names():
            place, table = changes.setdefault(own, {}), own
        elif table:
            place = changes.setdefault("options", {})
            place = place.setdefault(table, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict):
            raise ProtocolError(f"{item!r}: {table} is already given whole")
        if name in place:
            raise ProtocolError(f"{item!r}: {key.strip()} is given more than once")
        place[name] = None if table and text == DEFAULT else _override(text)
    return changes


def _override(text: str) -> Any:
    """TOML, also numbers without the zero before the point; other text, or parts between commas."""
    number = re.sub(r"^(-?)\.(?=[0-9])", r"\g<1>0.", text)
    try:
        return parse_toml(f"value = {number}".encode("utf-8", "surrogatepass"))["value"]
    except (ValueError, RecursionError):
        parts = [] if set(text) & set("[]{}\"'") else text.split(",")
        if len(parts) > 1 and all(map(str.strip, parts)):
            return [_override(part.strip()) for part in parts]
        return None if text in ("none", "None") else text

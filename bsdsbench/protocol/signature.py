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
| proto | the preset where it is not bsds500, and its version; what else differs from it follows |
| thr | how many even thresholds; 8bit for k/255; `0+` before it for the whole image; or values |
| tol | the tolerance, d a fraction of the diagonal, px pixels |
| match | 1to1; 1toN is a wrong reading that `explain` knows |
| nms | none, a recipe, or radius,border,multiplier,smooth or raw,bits |
| thin | thin or unthinned |
| op, ods | the threshold operator and the ODS rule where they are not >= and interpolated |
| ap | the AP rule |
| FIELD=VALUE | any other field of the protocol that differs from the preset |

`?` is what is not known. `|` and `%` inside a word are written %7C and %25.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from bsdsbench import __version__
from bsdsbench.files.errors import ProtocolError
from bsdsbench.protocol.contour_params import ContourParams
from bsdsbench.protocol.difference_costs import COSTS
from bsdsbench.protocol.protocol import (
    UNSTATED,
    UNSTATED_GRID,
    NMSParams,
    Protocol,
    byte_thresholds,
    even_thresholds,
    parse_overrides,
    preset_names,
)

UNKNOWN = "?"
GT_DIGITS = 8
_BASE = "bsds500"
# Fields that have a word of their own.
_WORDS = (
    *("name", "version", "thresholds", "max_dist_px", "nms", "nms_params", "thin"),
    *("ap_rule", "ods_rule", "operator"),
)


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
        yield from protocol_words(self.protocol, self.match)

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
        )

    def differences(self, other: Signature) -> list[Difference]:
        """What differs, in the order of the line; unknown words differ from nothing."""
        mine, theirs = _by_key(self), _by_key(other)
        found = []
        for key in [*mine, *(k for k in theirs if k not in mine)]:
            a, b = mine.get(key, ""), theirs.get(key, "")
            if a != b and UNKNOWN not in (a, b):
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


def protocol_words(protocol: Protocol, match: str = "1to1") -> Iterator[str]:
    """The part of the line that the protocol fills."""
    p = protocol
    if not p.stated:
        yield f"thr:{UNKNOWN if p.name == UNSTATED_GRID else _thresholds_word(p.thresholds)}"
        yield from (f"{key}:{UNKNOWN}" for key in ("tol", "match", "nms", "thin", "ap"))
        return
    base = _base(p)
    if (base.name, base.version) != (_BASE, 1):
        yield f"proto:{base.name}.{base.version}"
    yield f"thr:{_thresholds_word(p.thresholds)}"
    px = p.max_dist_px
    yield f"tol:{_number(p.max_dist)}d" if px is None else f"tol:{_number(px)}px"
    yield f"match:{match}"
    yield f"nms:{_nms_word(p.nms_params) if p.nms else 'none'}"
    yield "thin" if p.thin else "unthinned"
    if (p.operator, base.operator) != (">=", ">="):
        yield f"op:{p.operator}"
    if (p.ods_rule, base.ods_rule) != ("interpolated", "interpolated"):
        yield f"ods:{p.ods_rule}"
    yield f"ap:{p.ap_rule}"
    said = (*_WORDS, *(("max_dist",) if px is None else ()))
    mine, usual = _leaves(p.to_mapping(), said), _leaves(base.to_mapping(), said)
    if p.contour and not base.contour:
        # Only what differs from the defaults, and always what empty masks give.
        usual |= _leaves(replace(p, contour=ContourParams()).to_mapping(), said)
        usual.pop("contour.empty")
    for name, value in mine.items():
        if name not in usual or usual[name] != value:
            yield f"{name}={'none' if value is None else json.dumps(value, ensure_ascii=False)}"


def parse_protocol(given: dict[str, str], others: list[str]) -> Protocol:
    """The protocol of the words `key:value` and `FIELD=VALUE`. Raises ProtocolError."""
    base = _named(given.pop("proto", f"{_BASE}.1"))
    changes: dict[str, Any] = {}
    if UNKNOWN in given.values():
        changes["name"] = UNSTATED_GRID if given.get("thr") == UNKNOWN else UNSTATED
        given = {k: v for k, v in given.items() if v != UNKNOWN}
    readers = {
        "thr": lambda text: {"thresholds": _parse_thresholds(text)},
        "tol": _parse_tolerance,
        "nms": _parse_nms,
        "thin": lambda text: {"thin": text == "thin"},
        "op": lambda text: {"operator": text},
        "ods": lambda text: {"ods_rule": text},
        "ap": lambda text: {"ap_rule": text},
    }
    for key, text in given.items():
        if key not in readers:
            known = ", ".join(readers)
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


def _leaves(mapping: dict[str, Any], said: tuple[str, ...]) -> dict[str, Any]:
    """Fields without a word of their own; those of tables as table.field."""
    out: dict[str, Any] = {}
    for name, value in mapping.items():
        if name in said:
            continue
        if isinstance(value, dict):
            out |= {f"{name}.{inner}": entry for inner, entry in value.items()}
        else:
            out[name] = value
    return out


def _by_key(signature: Signature) -> dict[str, str]:
    """Key -> value of every word but the package's version."""
    found = {}
    for word in signature.words()[2:]:
        if word in ("thin", "unthinned"):
            found["thin"] = word
            continue
        colon, equals = word.find(":"), word.find("=")
        at = colon if colon >= 0 and not 0 <= equals < colon else equals
        found[word[:at]] = word[at + 1 :]
    return {"set": signature._set_word(), **found}


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
    if values == byte_thresholds():
        return "8bit"
    if values == even_thresholds(len(values)):
        return str(len(values))
    return "at " + ",".join(map(_number, values))


def _parse_thresholds(text: str) -> Any:
    if text.startswith("0+"):
        rest = Protocol(thresholds=_parse_thresholds(text[2:])).thresholds
        return (0.0, *rest)
    if text == "8bit":
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


def _float(text: str, key: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ProtocolError(f"signature {key}: {text!r}, expected a number") from None


def _escape(word: str) -> str:
    return word.replace("%", "%25").replace("|", "%7C")


def _unescape(word: str) -> str:
    return word.replace("%7C", "|").replace("%25", "%")

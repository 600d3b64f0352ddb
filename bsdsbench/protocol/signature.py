"""One line that says how a score was made, to be printed under tables and read back.

    bsdsbench 0.2.0|bsds500-test:200/200|gt:fa866d15|ann:all|pred:soft8|thr:99|tol:.0075d|\\
    match:1to1|nms:none|thin|ap:bsds

`TABLE` has the words. A line has only words of what its metrics use; a word that is not there means
the preset's value.

`?` is what is not known. `|` and `%` inside a word are written %7C and %25.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from operator import attrgetter
from typing import Any

from attrs import Factory, evolve, fields, frozen

from bsdsbench import __version__
from bsdsbench.files.bounded import parse_toml
from bsdsbench.files.errors import ProtocolError
from bsdsbench.protocol.constants import thresholds_text
from bsdsbench.protocol.fields import DEFAULT, number_text, tidy
from bsdsbench.protocol.protocol import UNSTATED, UNSTATED_GRID, Protocol, preset_names
from bsdsbench.scores.curve import AP_RULES, ODS_RULES

UNKNOWN = "?"
GT_DIGITS = 8
_BASE = "bsds500"


@frozen(repr=False, str=False)
class Signature:
    """How a score was made.

    n_images   : images evaluated, of set_size in the known set; None where that is not known
    gt         : first digits of the ground truth's fingerprint
    annotators : "all"; "first", "union" in wrong readings, as is match "1toN"
    unused     : fields of the protocol, and metrics with options, that have no word here
    taken_over : maps that an earlier call of the detector made
    """

    protocol: Protocol
    set_name: str | None = None
    n_images: int | None = None
    set_size: int | None = None
    gt: str = UNKNOWN
    annotators: str = "all"
    pred: str = UNKNOWN
    match: str = "1to1"
    version: str = __version__
    unused: frozenset[str] = frozenset()
    taken_over: int = 0

    def __repr__(self) -> str:
        return f"<Signature {self}>"

    def __str__(self) -> str:
        return "|".join(w.replace("%", "%25").replace("|", "%7C") for w in self.words())

    def words(self) -> list[str]:
        """The words of the line, in order."""
        found = [f"bsdsbench {self.version}"]
        for key, text in self.texts().items():
            bare = key == "set" or (key == "thin" and text != UNKNOWN)
            found.append(text if bare else f"{key}{':' if key in TABLE else '='}{text}")
        return found

    @property
    def base(self) -> Protocol:
        """The preset that the protocol starts from, bsds500 where its name is no preset's."""
        name = self.protocol.name.rstrip("*")
        return Protocol.preset(name if name in preset_names() else _BASE)

    def texts(self) -> dict[str, str]:
        """Key of each word -> its text; fields that have no word of their own by name."""
        p, usual = self.protocol, evolve(self, protocol=self.base)
        found = {}
        for word in TABLE.values():
            text = word.write(self)
            if word.fields and not p.stated:
                known = word.key == "thr" and p.name != UNSTATED_GRID
                text = "" if word.usual else text if known else UNKNOWN
            silent = word.fields and self.unused.issuperset(word.fields)
            if text and not silent and not text == word.usual == word.write(usual):
                found[word.key] = text
        if not p.stated:
            return found
        said = {"name", "version"}.union(*(word.fields for word in TABLE.values()))
        said -= {"max_dist"} if p.max_dist_px is not None else set()
        mine, theirs = p.leaves(), self.base.leaves()
        for name in {**mine, **theirs}:
            a, b = mine.get(name, DEFAULT), theirs.get(name, DEFAULT)
            if a != b and not {name, name.rpartition(".")[0]} & (said | self.unused):
                bare = a is None or name not in mine
                found[name] = (a or "none") if bare else json.dumps(tidy(a), ensure_ascii=False)
        return found

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read what `str` writes. Raises ProtocolError that names the word that is wrong."""
        first, *words = (w.replace("%7C", "|").replace("%25", "%") for w in text.strip().split("|"))
        start = first.split(" ")
        if len(start) != 2 or start[0] != "bsdsbench" or not words:
            raise ProtocolError(f"signature {first!r}: expected 'bsdsbench VERSION|SET:N/M|...'")
        found, others = {"set": words[0]}, []
        for word in words[1:]:
            key, colon, value = word.partition(":")
            if word in ("thin", "unthinned"):
                found["thin"] = word
            elif not colon or "=" in key:
                others.append(word)
            elif key in TABLE and key not in found:
                found[key] = value
            else:
                raise ProtocolError(f"signature {word}: expected one of {', '.join(TABLE)}, once")
        stated = [w for w in TABLE.values() if w.fields and w.key != "match"]
        unknown = [w.key for w in stated if found.get(w.key) == UNKNOWN]
        changes: dict[str, Any] = dict.fromkeys(("gt", "annotators", "pred", "match"), UNKNOWN)
        changes["base"] = _BASE
        if unknown:
            changes["name"] = UNSTATED_GRID if "thr" in unknown else UNSTATED
        try:
            for key, value in found.items():
                changes |= {} if key in unknown else TABLE[key].read(value)
            own = {f.name: changes.pop(f.name) for f in fields(cls) if f.name in changes}
            changes |= parse_overrides(others)
            protocol = Protocol.preset(changes.pop("base")).replace(**changes)
        except ProtocolError as error:
            raise ProtocolError(f"signature: {error}") from None
        left_out = (w.fields for w in TABLE.values() if not w.usual and w.key not in found)
        unused = {*chain(*left_out)}.difference(*(TABLE[key].fields for key in found))
        return cls(protocol, version=start[1], unused=frozenset(unused), **own)

    def differences(self, other: Signature) -> list[Difference]:
        """What differs, of words that both lines can have; unknown ones differ from nothing."""
        same: dict[str, Any] = {"unused": self.unused | other.unused, "taken_over": 0}
        mine, theirs = evolve(self, **same).texts(), evolve(other, **same).texts()
        pairs = {k: (mine.get(k, ""), theirs.get(k, "")) for k in {**mine, **theirs}}
        field = Word("", "", "", "")  # a field that has no word of its own
        return [
            Difference(key, a, b, word.title or key, word.cost)
            for key, (a, b) in pairs.items()
            if (word := TABLE.get(key, field)) and a != b and UNKNOWN not in (a, b)
        ]


@frozen
class Difference:
    """One word in which two signatures differ, both texts ("" without it), and what that costs."""

    key: str
    a: str
    b: str
    title: str
    cost: str

    def line(self) -> str:
        """For people, without a full stop: "tolerance: .0075d / .011d; usually ..."."""
        tail = f"; {self.cost}" if self.cost else ""
        return f"{self.title}: {self.a or 'as the preset'} / {self.b or 'as the preset'}{tail}"


@frozen
class Word:
    """A word of the line.

    cost    : what a difference usually costs, by published counts or our own runs
    meaning : a sentence about {value}, its text, and {said}, by `names` or the protocol's caption
    fields  : those of the protocol that it stands for, the one with the caption first
    usual   : the text that is left out where the preset has it too
    holds   : the attribute of the signature, or else of the protocol, that is the text
    write, read : or else its text, "" for none; the changes a text makes in signature and protocol
    """

    key: str
    title: str
    cost: str
    meaning: str
    fields: tuple[str, ...] = ()
    usual: str = ""
    names: Mapping[str, str] = {}
    holds: str = ""
    write: Callable[[Signature], str] = Factory(
        lambda word: attrgetter(f"protocol.{word.holds}" if word.fields else word.holds),
        takes_self=True,
    )
    read: Callable[[str], dict[str, Any]] = Factory(
        lambda word: lambda text: {word.holds: text}, takes_self=True
    )


def _write_set(s: Signature) -> str:
    count = UNKNOWN if s.n_images is None else str(s.n_images)
    return f"{s.set_name}:{count}/{s.set_size}" if s.set_name else f"set:{count}"


def _read_set(text: str) -> dict[str, Any]:
    found = re.fullmatch(r"(.+):([0-9]+|\?)(?:/([0-9]+|\?))?", text, re.S)
    if not found:
        raise ProtocolError(f"{text!r}, expected SET:N/M or set:N")
    name, n, size = found.groups()
    changes: dict[str, Any] = {"n_images": None if n == UNKNOWN else int(n)}
    if size is not None:
        changes |= {"set_name": name, "set_size": None if size == UNKNOWN else int(size)}
    return changes


def _write_proto(s: Signature) -> str:
    name = f"{s.base.name}.{s.base.version}"
    return name if s.protocol.stated and name != f"{_BASE}.1" else ""


def _read_proto(text: str) -> dict[str, Any]:
    name, _, version = text.rpartition(".")
    ours = Protocol.preset(name).version
    if version != str(ours):
        raise ProtocolError(
            f"proto:{text}: made with version {version} of {name}, expected {ours}, as this "
            "package has"
        )
    return {"base": name}


def _write_tolerance(s: Signature) -> str:
    px = s.protocol.max_dist_px
    return f"{number_text(s.protocol.max_dist)}d" if px is None else f"{number_text(px)}px"


def _read_tolerance(text: str) -> dict[str, Any]:
    in_pixels = text.endswith("px")
    try:
        value = float(text.removesuffix("px") if in_pixels else text.removesuffix("d"))
    except ValueError:
        value = math.nan
    if math.isnan(value) or text[-1:] not in ("x", "d"):
        raise ProtocolError(f"tol:{text}, expected a number and d or px")
    return {"max_dist_px": value} if in_pixels else {"max_dist": value, "max_dist_px": None}


_WORDS = (
    Word(
        "set",
        "images",
        "scores of other images are not comparable",
        "",
        write=_write_set,
        read=_read_set,
    ),
    Word(
        "gt",
        "ground truth",
        "the same names, other annotations: scores are not comparable",
        "The fingerprint of the ground truth begins with {value}.",
        write=lambda s: s.gt[:GT_DIGITS],
        holds="gt",
    ),
    Word(
        "ann",
        "annotators",
        "all of them count in the benchmark; with one, precision falls, as pixels that only "
        "others drew are false",
        "{said}.",
        holds="annotators",
        names={
            "all": "All annotators count",
            "first": "Only the first annotator counts",
            "union": "All annotators are drawn into one map",
        },
    ),
    Word(
        "pred",
        "kind of prediction",
        "",
        "The predictions are {said}.",
        holds="pred",
        names={
            "soft8": "8-bit soft maps",
            "soft16": "16-bit soft maps",
            "float": "floating-point soft maps",
            "binary": "binary maps",
            "ucm2": "ultrametric contour maps (`ucm2`)",
            "segs": "stacks of label maps (`segs`)",
            "labels": "label maps",
            "classes": "class maps",
        },
    ),
    Word(
        "maps",
        "maps",
        "",
        "Maps of an earlier call of the detector were used again: {value}.",
        write=lambda s: f"{s.taken_over} taken over" if s.taken_over else "",
        read=lambda text: {"taken_over": int(n) if (n := text.split(" ")[0]).isdecimal() else 0},
    ),
    Word(
        "proto",
        "preset",
        "",
        "Whatever is not named is as in the preset {value} (name and version).",
        write=_write_proto,
        read=_read_proto,
    ),
    Word(
        "thr",
        "thresholds",
        "fewer of them lose AP at both ends of the curve",
        "Soft maps are cut at {said}.",
        ("thresholds",),
        write=lambda s: thresholds_text(s.protocol.thresholds),
        holds="thresholds",
    ),
    Word(
        "tol",
        "tolerance",
        "a larger one raises every score",
        "Two matched pixels are at most this far apart: {said}.",
        ("max_dist", "max_dist_px"),
        write=_write_tolerance,
        read=_read_tolerance,
    ),
    Word(
        "match",
        "matching",
        "many to one raises ODS by some .04: .8038 against .7657 on the first 40 images of HED",
        "Predicted and annotated pixels are matched {said}.",
        ("max_dist", "max_dist_px"),
        write=lambda s: s.match,
        holds="match",
        names={
            "1to1": "one to one",
            "1toN": "many to one, which is not the benchmark's rule",
            "random": "one to one, by the official solver",
        },
    ),
    Word(
        "nms",
        "edge NMS",
        "without it thick edges cost precision",
        "Edge non-maximum suppression before the cut: {said}.",
        ("nms", "nms_params"),
        write=lambda s: str(s.protocol.nms_params) if s.protocol.nms else "none",
        read=lambda text: {"nms": False} if text == "none" else {"nms": True, "nms_params": text},
    ),
    Word(
        "thin",
        "thinning",
        "unthinned edges cost precision; many-to-one matching hides that",
        "The cut maps are {said}.",
        ("thin",),
        write=lambda s: "thin" if s.protocol.thin else "unthinned",
        read=lambda text: {"thin": text == "thin"},
        names={"thin": "thinned to lines of one pixel", "unthinned": "not thinned"},
    ),
    Word(
        "op",
        "threshold operator",
        "moves only pixels exactly at a threshold",
        "A pixel is on where {said}.",
        ("operator",),
        ">=",
        holds="operator",
    ),
    Word(
        "ods",
        "ODS rule",
        "interpolation adds little with 99 thresholds, more with few",
        "ODS is {said}.",
        ("ods_rule",),
        "interpolated",
        ODS_RULES,
        "ods_rule",
    ),
    Word(
        "ap",
        "AP rule",
        "on BSDS500 test: edter +.019 to +.024 over bsds (four sets of SAUGE), on NYUD +.041; "
        "endpoints +.017 (HED .840 to .858); seism +.010 (COB .849 to .859); ODS and OIS stay",
        "AP follows the rule {value}: {said}.",
        ("ap_rule",),
        names=AP_RULES,
        holds="ap_rule",
    ),
)
TABLE = {word.key: word for word in _WORDS}


def parse_overrides(items: Iterable[str]) -> dict[str, Any]:
    """`["max_dist=0.011", "nms_params.radius=2"]` -> the changes for `Protocol.replace`.

    Values are TOML, anything else is text, or a list where it has commas; the field's converter
    says what a text means. Raises ProtocolError for an item without "=", and for a field given
    twice.
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
        place[name] = _override(text)
    return changes


def _override(text: str) -> Any:
    """TOML, also numbers without the zero before the point; inf and nan are words here."""
    number = re.sub(r"^(-?)\.(?=[0-9])", r"\g<1>0.", text)
    try:
        value = parse_toml(f"value = {number}".encode("utf-8", "surrogatepass"))["value"]
    except (ValueError, RecursionError):
        parts = [] if set(text) & set("[]{}\"'") else text.split(",")
        return [_override(p.strip()) for p in parts] if len(parts) > 1 and all(parts) else text
    return text if isinstance(value, float) and not math.isfinite(value) else value

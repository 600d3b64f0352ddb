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
from operator import attrgetter
from typing import Any, NamedTuple

from attrs import evolve, fields, frozen

from bsdsbench import __version__
from bsdsbench.files.bounded import parse_toml
from bsdsbench.files.errors import ProtocolError
from bsdsbench.protocol.fields import DEFAULT, captions, number_text, tidy
from bsdsbench.protocol.protocol import (
    UNSTATED,
    UNSTATED_GRID,
    Protocol,
    preset_names,
    thresholds_text,
)
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
        p, base, found = self.protocol, self.base, {}
        for key, word in TABLE.items():
            text = word.write(self)
            if word.fields and not p.stated and (key != "thr" or p.name == UNSTATED_GRID):
                text = "" if word.usual else UNKNOWN
            said = not word.fields or not self.unused.issuperset(word.fields)
            usual = text == word.usual == word.write(evolve(self, protocol=base))
            if text and said and not usual:
                found[key] = text
        if p.stated:
            silent = {"name", "version"}.union(self.unused, *(w.fields for w in TABLE.values()))
            silent -= {"max_dist"} if p.max_dist_px is not None else set()
            mine, theirs = p.leaves(), base.leaves()
            for name in {**mine, **theirs}:
                a, b = mine.get(name, DEFAULT), theirs.get(name, DEFAULT)
                if a != b and not {name, name.rpartition(".")[0]} & silent:
                    bare = a is None or name not in mine
                    found[name] = (a or "none") if bare else json.dumps(tidy(a), ensure_ascii=False)
        return found

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read what `str` writes. Raises ProtocolError that names the word that is wrong."""
        first, *words = (w.replace("%7C", "|").replace("%25", "%") for w in text.strip().split("|"))
        package, _, version = first.partition(" ")
        if package != "bsdsbench" or not version or not words:
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
        own = {f.name for f in fields(cls)}
        changes: dict[str, Any] = dict.fromkeys(("gt", "annotators", "pred", "match"), UNKNOWN)
        unused: set[str] = set()
        try:
            for key, how in TABLE.items():
                told = found.get(key)
                if told == UNKNOWN and how.fields and key != "match":
                    name = UNSTATED_GRID if key == "thr" else changes.get("name", UNSTATED)
                    changes["name"] = name
                elif told is not None:
                    changes |= how.read(told)
                if told is None and not how.usual:
                    unused.update(how.fields)
            unused.difference_update(*(TABLE[key].fields for key in found))
            given = {name: changes.pop(name) for name in own & changes.keys()}
            changes |= parse_overrides(others)
            protocol = Protocol.preset(changes.pop("base", _BASE)).replace(**changes)
        except ProtocolError as error:
            raise ProtocolError(f"signature: {error}") from None
        return cls(protocol, version=version, unused=frozenset(unused), **given)

    def differences(self, other: Signature) -> list[Difference]:
        """What differs, of words that both lines can have; unknown ones differ from nothing."""
        same: dict[str, Any] = {"unused": self.unused | other.unused, "taken_over": 0}
        mine, theirs = evolve(self, **same).texts(), evolve(other, **same).texts()
        pairs = [(key, mine.get(key, ""), theirs.get(key, "")) for key in {**mine, **theirs}]
        return [Difference(*p) for p in pairs if p[1] != p[2] and UNKNOWN not in p]

    def decode(self) -> list[tuple[str, str]]:
        """Each word of the line, in its order, with a sentence that says what it means.

        Examples
        --------
        >>> line = "bsdsbench 0.2.0|bsds500-test:200/200|gt:fa86|ann:all|pred:soft8|thr:99"
        >>> for word, meaning in Signature.parse(line).decode()[1:4]:
        ...     print(word, "-", meaning)
        bsds500-test:200/200 - All 200 images of bsds500-test.
        gt:fa86 - The fingerprint of the ground truth begins with fa86.
        ann:all - All annotators count.
        """
        which, known = self._images(), captions(self.protocol)
        meanings = [f"Computed with version {self.version} of bsdsbench."]
        for key, text in self.texts().items():
            word = TABLE.get(key)
            if word is None:
                meanings.append(f"A setting that differs from the preset: {key}={text}.")
            elif text == UNKNOWN:
                meanings.append(f"Not known: {word.title}.")
            else:
                said = word.names.get(text) or known.get("".join(word.fields[:1]), text)
                images = which[0].upper() + which[1:]
                meanings.append(word.meaning.format(value=text, said=said, images=images))
        return list(zip(self.words(), meanings, strict=True))

    def _images(self) -> str:
        n, size, name = self.n_images, self.set_size, self.set_name
        if n is None:
            return f"images of {name or 'a set that is not named'}"
        if not name:
            return f"{n} images of a set without a name"
        return f"{f'all {n}' if n == size else f'{n} of the {size}'} images of {name}"

    def sentence(self) -> str:
        """How the scores were made, for the text of a paper; it says what the line says."""
        known, parts = captions(self.protocol), []
        for key, text in self.texts().items():
            if key == "tol":
                matching = TABLE["match"].names.get(self.match, self.match)
                parts.append(f"matching {matching} with {known['max_dist']}")
            elif key not in TABLE:
                parts.append(f"{key}={text}")
            elif key != "match" and TABLE[key].fields:
                parts.append(known.get(TABLE[key].fields[0], text))
        annotators = " against all annotators" if self.annotators == "all" else ""
        settings = f" ({'; '.join(parts)})" if parts else ""
        return (
            f"Scores were computed with bsdsbench {self.version} on {self._images()}"
            f"{annotators}, by the protocol {self.protocol.name}{settings}."
        )


class Difference(NamedTuple):
    """One word in which two signatures differ, and both texts ("" without it)."""

    key: str
    a: str
    b: str

    def line(self) -> str:
        """For people, without a full stop: "tolerance: .0075d / .011d; usually ..."."""
        word = TABLE.get(self.key)
        title, cost = (word.title, word.cost) if word else (self.key, "")
        tail = f"; {cost}" if cost else ""
        return f"{title}: {self.a or 'as the preset'} / {self.b or 'as the preset'}{tail}"


@frozen
class Word:
    """A word of the line.

    write   : its text, "" for none
    read    : the changes that a text makes in signature and protocol
    cost    : what a difference usually costs, by published counts or our own runs
    meaning : a sentence about {value}, its text, and {said}, by `names` or the protocol's caption
    fields  : those of the protocol that it stands for, the one with the caption first
    usual   : the text that is left out where the preset has it too
    """

    write: Callable[[Signature], str]
    read: Callable[[str], dict[str, Any]]
    title: str
    cost: str
    meaning: str
    fields: tuple[str, ...] = ()
    usual: str = ""
    names: Mapping[str, str] = {}


def _held(path: str) -> tuple[Callable[[Signature], str], Callable[[str], dict[str, Any]]]:
    """How a word is written and read that is an attribute."""
    name = path.rpartition(".")[2]
    return attrgetter(path), lambda text: {name: text}


def _write_set(s: Signature) -> str:
    count = UNKNOWN if s.n_images is None else str(s.n_images)
    return f"{s.set_name}:{count}/{s.set_size}" if s.set_name else f"set:{count}"


def _read_set(text: str) -> dict[str, Any]:
    found = re.fullmatch(r"(.+):([0-9]+|\?)(?:/([0-9]+|\?))?", text, re.S)
    if not found:
        raise ProtocolError(f"{text!r}, expected SET:N/M or set:N")
    n, size = (int(k) if k and k != UNKNOWN else None for k in found.group(2, 3))
    return {"n_images": n, "set_size": size, "set_name": found[1] if found[3] else None}


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
    if not (found := re.fullmatch(r"([0-9]*\.?[0-9]+(?:e-?[0-9]+)?)(px|d)", text)):
        raise ProtocolError(f"tol:{text}, expected a number and d or px")
    value = float(found[1])
    in_pixels = found[2] == "px"
    return {"max_dist_px": value} if in_pixels else {"max_dist": value, "max_dist_px": None}


TABLE = {
    "set": Word(
        _write_set,
        _read_set,
        "images",
        "scores of other images are not comparable",
        "{images}.",
    ),
    "gt": Word(
        lambda s: s.gt[:GT_DIGITS],
        lambda text: {"gt": text},
        "ground truth",
        "the same names, other annotations: scores are not comparable",
        "The fingerprint of the ground truth begins with {value}.",
    ),
    "ann": Word(
        *_held("annotators"),
        "annotators",
        "all of them count in the benchmark; with one, precision falls, as pixels that only "
        "others drew are false",
        "{said}.",
        names={
            "all": "All annotators count",
            "first": "Only the first annotator counts",
            "union": "All annotators are drawn into one map",
        },
    ),
    "pred": Word(
        *_held("pred"),
        "kind of prediction",
        "",
        "The predictions are {said}.",
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
    "maps": Word(
        lambda s: f"{s.taken_over} taken over" if s.taken_over else "",
        lambda text: {"taken_over": int(n) if (n := text.split(" ")[0]).isdecimal() else 0},
        "maps",
        "",
        "Maps of an earlier call of the detector were used again: {value}.",
    ),
    "proto": Word(
        _write_proto,
        _read_proto,
        "preset",
        "",
        "Whatever is not named is as in the preset {value} (name and version).",
    ),
    "thr": Word(
        lambda s: thresholds_text(s.protocol.thresholds),
        lambda text: {"thresholds": text},
        "thresholds",
        "fewer of them lose AP at both ends of the curve",
        "Soft maps are cut at {said}.",
        ("thresholds",),
    ),
    "tol": Word(
        _write_tolerance,
        _read_tolerance,
        "tolerance",
        "a larger one raises every score",
        "Two matched pixels are at most this far apart: {said}.",
        ("max_dist", "max_dist_px"),
    ),
    "match": Word(
        *_held("match"),
        "matching",
        "many to one raises ODS by some .04: .8038 against .7657 on the first 40 images of HED",
        "Predicted and annotated pixels are matched {said}.",
        ("max_dist", "max_dist_px"),
        names={
            "1to1": "one to one",
            "1toN": "many to one, which is not the benchmark's rule",
            "random": "one to one, by the official solver",
        },
    ),
    "nms": Word(
        lambda s: str(s.protocol.nms_params) if s.protocol.nms else "none",
        lambda text: {"nms": False} if text == "none" else {"nms": True, "nms_params": text},
        "edge NMS",
        "without it thick edges cost precision",
        "Edge non-maximum suppression before the cut: {said}.",
        ("nms", "nms_params"),
    ),
    "thin": Word(
        lambda s: "thin" if s.protocol.thin else "unthinned",
        lambda text: {"thin": text == "thin"},
        "thinning",
        "unthinned edges cost precision; many-to-one matching hides that",
        "The cut maps are {said}.",
        ("thin",),
        names={"thin": "thinned to lines of one pixel", "unthinned": "not thinned"},
    ),
    "op": Word(
        *_held("protocol.operator"),
        "threshold operator",
        "moves only pixels exactly at a threshold",
        "A pixel is on where {said}.",
        ("operator",),
        ">=",
    ),
    "ods": Word(
        *_held("protocol.ods_rule"),
        "ODS rule",
        "interpolation adds little with 99 thresholds, more with few",
        "ODS is {said}.",
        ("ods_rule",),
        "interpolated",
        ODS_RULES,
    ),
    "ap": Word(
        *_held("protocol.ap_rule"),
        "AP rule",
        "on BSDS500 test: edter +.019 to +.024 over bsds (four sets of SAUGE), on NYUD +.041; "
        "endpoints +.017 (HED .840 to .858); seism +.010 (COB .849 to .859); ODS and OIS stay",
        "AP follows the rule {value}: {said}.",
        ("ap_rule",),
        names=AP_RULES,
    ),
}


def parse_overrides(items: Iterable[str]) -> dict[str, Any]:
    """`["max_dist=0.011", "nms_params.radius=2"]` -> the changes for `Protocol.replace`.

    Values are TOML, anything else is text, or a list where it has commas; the field's converter
    says what a text means. Raises ProtocolError for an item without "=", and for a field given
    twice.
    """
    changes: dict[str, Any] = {}
    for item in items:
        key, equals, text = (part.strip() for part in item.partition("="))
        table, _, name = key.rpartition(".")
        own = table.replace("-", "_")
        place: Any = changes
        if own in Protocol.names():
            place = changes.setdefault(own, {})
        elif table:
            place = changes.setdefault("options", {})
            place = place.setdefault(table, {}) if isinstance(place, dict) else None
        name = name.replace("-", "_")
        if not (equals and name and text) or key.startswith("."):
            raise ProtocolError(f"{item!r}: expected FIELD=VALUE")
        if not isinstance(place, dict) or name in place:
            raise ProtocolError(f"{item!r}: {key} is given more than once")
        place[name] = _override(text)
    return changes


def overridden(protocol: Protocol | str | None, items: Iterable[str], **others: Any) -> Protocol:
    """A protocol, or the one of that name, with what `parse_overrides` makes of the items.

    others : further changes; entries of a table are under those of the items
    """
    changes = parse_overrides(items)
    for name, value in others.items():
        changes[name] = {**value, **changes.get(name, {})} if isinstance(value, dict) else value
    return Protocol.load(protocol).replace(**changes)


def _override(text: str) -> Any:
    """TOML, also numbers without the zero before the point; inf and nan are words here."""
    number = re.sub(r"^(-?)\.(?=[0-9])", r"\g<1>0.", text)
    try:
        value = parse_toml(f"value = {number}".encode("utf-8", "surrogatepass"))["value"]
    except (ValueError, RecursionError):
        parts = [] if set(text) & set("[]{}\"'") else text.split(",")
        return [_override(p.strip()) for p in parts] if len(parts) > 1 and all(parts) else text
    return text if isinstance(value, float) and not math.isfinite(value) else value

"""One line that says how a score was made, to be printed under tables and read back.

    bsdsbench 0.2.0|bsds500-test:200/200|gt:fa866d15|ann:all|pred:soft8|thr:99|tol:.0075d|\\
    match:1to1|nms:none|thin|ap:bsds

words.toml has the words. A line has only words of what its metrics use; a word that is not there
means the preset's value.

`?` is what is not known. `|` and `%` inside a word are written %7C and %25.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from operator import attrgetter
from typing import Any

from attrs import field, frozen

from bsdsbench import __version__
from bsdsbench.errors import ProtocolError
from bsdsbench.io import parse_toml
from bsdsbench.protocol.fields import DEFAULT, NUMBER, captions, number_text, shipped, tidy
from bsdsbench.protocol.protocol import (
    UNSTATED,
    UNSTATED_GRID,
    Protocol,
    preset_names,
    thresholds_text,
)
from bsdsbench.scores.curve import AP_RULES, ODS_RULES

UNKNOWN = "?"  # and no difference from anything
_BASE = "bsds500"
_SET = re.compile(r"(.+):([0-9]+|\?)(?:/([0-9]+|\?))?", re.S)


class Severity(Enum):
    """What a difference between two runs does to a comparison of their scores."""

    IGNORED = "ignored"  # no score that both have depends on it, or a reference run has its own
    SAID = "said"  # they may be compared, and the reader is told
    FORBIDS = "forbids"  # they are not comparable


@frozen
class Word:
    """A word of the line, as words.toml explains."""

    title: str
    meaning: str
    cost: str = ""
    severity: Severity = field(default=Severity.FORBIDS, converter=Severity)
    fields: tuple[str, ...] = field(default=(), converter=tuple)
    usual: str = ""
    names: Mapping[str, str] = {}


WORDS = {key: Word(**row) for key, row in shipped("words.toml").items()}
WORDED = {name for word in WORDS.values() for name in word.fields}
NO_FIELDS = ("set", "gt", "valid", "ann", "pred", "maps", "ms", "match")  # no fields of a protocol
_SELDOM = ("valid", "maps", "ms")  # of these, where a line has none nothing is left to know


@frozen(repr=False, str=False)
class Signature:
    """How a score was made. The fields of the names of words hold their texts.

    set      : SET:N/M, N images of the M in a known set, or set:N
    gt       : first digits of the ground truth's fingerprint
    ann      : "all"; "first", "union" in wrong readings, as is match "1toN"
    valid    : "masks" where a folder of masks says which pixels are counted, its field of view
    maps     : how many an earlier call of the detector made
    ms       : scales at which the detector was called, "" for one call
    unused   : fields of the protocol, and metrics with options, that have no word here
    named    : METRIC.OPTION -> text, options that have a word also where they are usual
    """

    protocol: Protocol
    set: str = "set:?"
    gt: str = UNKNOWN
    ann: str = "all"
    pred: str = UNKNOWN
    match: str = "1to1"
    maps: str = ""
    ms: str = ""
    valid: str = ""
    version: str = __version__
    unused: frozenset[str] = frozenset()
    named: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"<Signature {self}>"

    def __str__(self) -> str:
        return "|".join(w.replace("%", "%25").replace("|", "%7C") for w in self.words())

    def words(self) -> list[str]:
        """The words of the line, in order."""
        words = [f"bsdsbench {self.version}"]
        for key, text in self.texts().items():
            bare = key == "set" or (key == "thin" and text != UNKNOWN)
            words.append(text if bare else f"{key}{':' if key in WORDS else '='}{text}")
        return words

    def texts(self) -> dict[str, str]:
        """Return the text of each word by its key; fields that have no word by their names."""
        p, base = self.protocol, _base_of(self.protocol)
        every, usual, texts = self._every_text(), _written(base, base), {}
        for key, word in WORDS.items():
            text, unused = every.get(key), word.fields and self.unused.issuperset(word.fields)
            if text and not unused and not text == word.usual == usual.get(key):
                texts[key] = text
        if p.stated:
            texts |= self.named
            silent = self.unused | WORDED
            silent -= {"max_dist"} if p.max_dist_px is not None else set()
            for name, (value, _) in p.changed(base).items():
                if not {name, name.rpartition(".")[0]} & silent:
                    texts[name] = _value_text(value)
        return texts

    def _every_text(self) -> dict[str, str]:
        """Return the texts of all words, also of those that the line leaves out."""
        of_run = dict(zip(NO_FIELDS, attrgetter(*NO_FIELDS)(self), strict=True))
        return of_run | _written(self.protocol, _base_of(self.protocol))

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read what `str` writes. Raises ProtocolError that names the word that is wrong."""
        first, *words = (w.replace("%7C", "|").replace("%25", "%") for w in text.strip().split("|"))
        package, _, version = first.partition(" ")
        if package != "bsdsbench" or not version or not words or not _SET.fullmatch(words[0]):
            begin = "|".join([first, *words[:1]])
            raise ProtocolError(f"signature {begin!r}: expected 'bsdsbench VERSION|SET:N/M|...'")
        texts, settings = {"set": words[0]}, []
        for word in words[1:]:
            key, colon, value = word.partition(":")
            if word in ("thin", "unthinned"):
                texts["thin"] = word
            elif not colon or "=" in key:
                settings.append(word)
            elif key in WORDS and key not in texts:
                texts[key] = value
            else:
                raise ProtocolError(f"signature {word}: expected one of {', '.join(WORDS)}, once")
        try:
            changes = _changes_of(texts) | parse_overrides(settings)
            protocol = Protocol.preset(str(changes.pop("base", _BASE))).replace(**changes)
        except ProtocolError as error:
            raise ProtocolError(f"signature: {error}") from None
        of_run: dict[str, Any] = {key: texts.get(key, UNKNOWN) for key in NO_FIELDS}
        of_run |= {key: texts.get(key, "") for key in _SELDOM}
        absent = (w.fields for key, w in WORDS.items() if key not in texts and not w.usual)
        unused = {name for names in absent for name in names}
        unused.difference_update(*(WORDS[key].fields for key in texts))
        return cls(protocol, version=version, unused=frozenset(unused), **of_run)

    def differences(self, other: Signature) -> list[Difference]:
        """List the differences in words that both lines know; an unused word counts as IGNORED."""
        p, q, unused = self.protocol, other.protocol, self.unused | other.unused
        both, differing = (self._every_text(), other._every_text()), []
        for key, word in WORDS.items():
            values = [texts.get(key, UNKNOWN) for texts in both]
            if key == "ms":
                values = [scales or "1" for scales in values]
            if values[0] != values[1] and key != "maps" and UNKNOWN not in values:
                useless = word.fields and unused.issuperset(word.fields)
                severity = Severity.IGNORED if useless else word.severity
                if key == "tol" and len({text.partition(",")[0] for text in values}) == 1:
                    severity = min(severity, Severity.SAID, key=[*Severity].index)  # the others
                name = word.fields[0] if word.fields and key not in NO_FIELDS else key
                differing.append(Difference(name, values[0], values[1], severity, word.cost))
        for name, pair in p.changed(q).items() if p.stated and q.stated else ():
            spellings = {name, name.rpartition(".")[0]}
            if not spellings & WORDED:
                values = list(map(_value_text, pair))
                severity = Severity.IGNORED if spellings & unused else Severity.FORBIDS
                differing.append(Difference(name, values[0], values[1], severity))
        return differing

    def decode(self) -> list[tuple[str, str]]:
        """Return each word of the line, in order, with a sentence that explains it.

        Examples
        --------
        >>> line = "bsdsbench 0.2.0|bsds500-test:200/200|gt:fa86|ann:all|pred:soft8|thr:99"
        >>> for word, meaning in Signature.parse(line).decode()[1:4]:
        ...     print(word, "-", meaning)
        bsds500-test:200/200 - All 200 images of bsds500-test.
        gt:fa86 - The fingerprint of the ground truth begins with fa86.
        ann:all - All annotators count.
        """
        known = captions(self.protocol)
        meanings = [f"Computed with version {self.version} of bsdsbench."]
        for key, text in self.texts().items():
            word = WORDS.get(key)
            if key in self.named:
                meanings.append(f"The option {key} is {json.loads(text)}.")
            elif word is None:
                meanings.append(f"A setting that differs from the preset: {key}={text}.")
            elif text == UNKNOWN:
                meanings.append(f"Not known: {word.title}.")
            else:
                names = {**word.names, **AP_RULES, **ODS_RULES, self.set: self._images()}
                words = names.get(text) or known.get("".join(word.fields[:1]), text)
                meaning = word.meaning.format(value=text, words=words)
                meanings.append(meaning[0].upper() + meaning[1:])
        return list(zip(self.words(), meanings, strict=True))

    def _images(self) -> str:
        """Return the images in words: "all 200 images of bsds500-test"."""
        parts = _SET.fullmatch(self.set)
        name, n, size = parts.groups() if parts else ("", UNKNOWN, None)
        if n == UNKNOWN:
            return f"images of {name if size else 'a set that is not named'}"
        if not size:
            return f"{n} images of a set without a name"
        return f"{f'all {n}' if n == size else f'{n} of the {size}'} images of {name}"

    def sentence(self) -> str:
        """Return the line as a sentence for the text of a paper."""
        known, parts = captions(self.protocol), []
        for key, text in self.texts().items():
            if key == "tol":
                matching = WORDS["match"].names.get(self.match, self.match)
                parts.append(f"matching {matching} with {known['max_dist']}")
            elif key not in WORDS:
                parts.append(f"{key}={text}")
            elif key != "match" and WORDS[key].fields:
                parts.append(known.get(WORDS[key].fields[0], text))
        annotators = " against all annotators" if self.ann == "all" else ""
        settings = f" ({'; '.join(parts)})" if parts else ""
        return (
            f"Scores were computed with bsdsbench {self.version} on {self._images()}"
            f"{annotators}, by the protocol {self.protocol.name}{settings}."
        )


@frozen
class Difference:
    """A respect in which two runs differ.

    Parameters
    ----------
    field : str
        A field of the protocol, METRIC.OPTION, or "set", "gt", "pred" ... as in signatures;
        "images", "truth", "reading", "metrics" and "source of metric NAME" of whole runs.
    ours, theirs : str
        Both sides, as signatures write them.
    severity : Severity
        What it does to a comparison.
    cost : str
        What it usually costs, or "".
    image : str
        The first image that shows it, "" where it is of the whole runs.
    """

    field: str
    ours: str
    theirs: str
    severity: Severity
    cost: str = ""
    image: str = ""

    @property
    def of_protocol(self) -> bool:
        """True for a field of the protocol or an option of a metric."""
        return self.field in Protocol.names() or "." in self.field

    def line(self) -> str:
        """Return it for people, without a full stop: "tolerance: .0075d / .011d; usually ..."."""
        titles = {"reading": "masks of predictions"}
        for key, word in WORDS.items():
            titles[word.fields[0] if word.fields and key not in NO_FIELDS else key] = word.title
        tail = f"; {self.cost}" if self.cost else ""
        if self.image:
            return f"ground truth of image {self.image!r} differs{tail}"
        title = titles.get(self.field, self.field)
        return f"{title}: {self.ours or 'as the preset'} / {self.theirs or 'as the preset'}{tail}"

    def fault(self) -> str:
        """Return the line, with the name of the field that makes two protocols differ."""
        if not self.of_protocol:
            return self.line()
        line = self.line()
        named = line if line.startswith(f"{self.field}:") else f"{self.field} ({line})"
        return f"protocols differ in {named}"


def _base_of(protocol: Protocol) -> Protocol:
    """Return the preset that a protocol starts from, by its name."""
    name = protocol.name.rstrip("*")
    return Protocol.preset(name if name in preset_names() else _BASE)


def _value_text(value: object) -> str:
    """Return a value as JSON, without the zeros that it does not need."""
    if value in (None, DEFAULT):
        return str(value or "none")
    return json.dumps(tidy(value), ensure_ascii=False)


def _written(p: Protocol, base: Protocol) -> dict[str, str]:
    """Return the texts of a protocol's words, where it starts from the preset `base`."""
    preset, px = f"{base.name}.{base.version}", p.max_dist_px
    texts = {
        "proto": preset if preset != f"{_BASE}.1" else "",
        "thr": thresholds_text(p.thresholds),
        "tol": ",".join(f"{number_text(v)}{'d' if px is None else 'px'}" for v in p.tolerances),
        "nms": str(p.nms_params) if p.nms else "none",
        "thin": "thin" if p.thin else "unthinned",
        "op": p.operator,
        "ods": p.ods_rule,
        "ap": p.ap_rule,
    }
    if p.stated:
        return texts
    known = {} if p.name == UNSTATED_GRID else {"thr": texts["thr"]}
    unknown = {key: UNKNOWN for key, word in WORDS.items() if word.fields and not word.usual}
    return unknown | known


def _changes_of(texts: Mapping[str, str]) -> dict[str, object]:
    """Return the fields of a protocol that the words of a line change; `base` names its preset."""
    changes: dict[str, Any] = {}
    for key, text in texts.items():
        if key in NO_FIELDS:
            continue
        if text != UNKNOWN:
            changes |= _fields_of(key, text)
        elif key == "thr":
            changes["name"] = UNSTATED_GRID
        else:
            changes.setdefault("name", UNSTATED)
    return changes


def _fields_of(key: str, text: str) -> dict[str, object]:
    """Return the fields of a protocol that a text of `_written` stands for."""
    if key == "proto":
        name, _, version = text.rpartition(".")
        ours = Protocol.preset(name).version
        if version != str(ours):
            raise ProtocolError(
                f"proto:{text}: made with version {version} of {name}, expected {ours}, as this "
                "package has"
            )
        return {"base": name}
    if key == "tol":
        parts = [re.fullmatch(rf"({NUMBER})(px|d)", part) for part in text.split(",")]
        units = {part and part[2] for part in parts}
        if None in units or len(units) > 1:
            raise ProtocolError(
                f"tol:{text}, expected a number and d or px, or several of one unit"
            )
        values = [float(part[1]) for part in parts if part]
        return (
            {"max_dist_px": values}
            if units == {"px"}
            else {"max_dist": values, "max_dist_px": None}
        )
    if key == "nms":
        return {"nms": False} if text == "none" else {"nms": True, "nms_params": text}
    if key == "thin":
        return {"thin": text == "thin"}
    return {WORDS[key].fields[0]: text}


def parse_overrides(items: Iterable[str]) -> dict[str, object]:
    """Return the changes for `Protocol.replace` of ["max_dist=0.011", "nms_params.radius=2"].

    Values are TOML, anything else is text, or a list where it has commas; the field's converter
    says what a text means. Raises ProtocolError for an item without "=", and for a field given
    twice.
    """
    changes: dict[str, Any] = {}
    for item in items:
        key, equals, text = (part.strip() for part in item.partition("="))
        table, _, name = key.rpartition(".")
        field_name, name = (part.replace("-", "_") for part in (table, name))
        if not (equals and name and text) or key.startswith("."):
            raise ProtocolError(f"{item!r}: expected FIELD=VALUE")
        place: Any = changes
        in_field = field_name in Protocol.names()
        for part in [field_name] if in_field else ["options", table] if table else []:
            place = place.setdefault(part, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict) or name in place:
            raise ProtocolError(f"{item!r}: {key} is given more than once")
        place[name] = _override(text)
    return changes


def _override(text: str) -> object:
    """Return a value of TOML, or text. Numbers may lack the zero before the point; inf is text."""
    number = re.sub(r"^(-?)\.(?=[0-9])", r"\g<1>0.", text)
    try:
        value = parse_toml(f"value = {number}".encode("utf-8", "surrogatepass"))["value"]
    except (ValueError, RecursionError):
        parts = [] if set(text) & set("[]{}\"'") else text.split(",")
        return [_override(p.strip()) for p in parts] if len(parts) > 1 and all(parts) else text
    return text if isinstance(value, float) and not math.isfinite(value) else value

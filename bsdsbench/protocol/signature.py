"""Signatures: one line that tells how a score was made. It is printed under tables and parsed back.

    bsdsbench 0.2.0|bsds500-test:200/200|gt:fa866d15|ann:all|pred:soft8|thr:99|tol:.0075d|\\
    match:1to1|nms:none|thin|ap:bsds

words.toml defines the words. A line has only the words that its metrics use. An absent word means
the value of the preset, and `?` an unknown value. `|` and `%` in a word are written %7C and %25.
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
    format_thresholds,
    preset_names,
)
from bsdsbench.scores.curve import AP_RULES, ODS_RULES

UNKNOWN = "?"  # differs from nothing
_BASE = "bsds500"
_SET = re.compile(r"(.+):([0-9]+|\?)(?:/([0-9]+|\?))?", re.S)


class Severity(Enum):
    """The effect of a difference between two runs on a comparison of their scores."""

    IGNORED = "ignored"  # no shared score depends on it, or a reference run has its own rule
    SAID = "said"  # the scores may be compared, with a note
    FORBIDS = "forbids"  # the scores are not comparable


@frozen
class Word:
    """A word of the line, as words.toml defines it."""

    title: str
    meaning: str
    cost: str = ""
    severity: Severity = field(default=Severity.FORBIDS, converter=Severity)
    fields: tuple[str, ...] = field(default=(), converter=tuple)
    usual: str = ""
    names: Mapping[str, str] = {}


WORDS = {key: Word(**row) for key, row in shipped("words.toml").items()}
WORDED = {name for word in WORDS.values() for name in word.fields}
# Words that are not fields of a protocol
NO_FIELDS = ("set", "gt", "valid", "ann", "pred", "maps", "ms", "match")
_OPTIONAL_KEYS = ("valid", "maps", "ms")  # known to be empty if a line lacks them


def _field_name(key: str, word: Word) -> str:
    """Return the name of the protocol's field that a word stands for, or its key if none."""
    return word.fields[0] if word.fields and key not in NO_FIELDS else key


_FIELD_TITLES = {_field_name(key, word): word.title for key, word in WORDS.items()}
_FIELD_TITLES.setdefault("reading", "masks of predictions")


@frozen(repr=False, str=False)
class Signature:
    """The settings of a score. The fields named like words hold the texts of these words.

    - set: "SET:N/M" for N images of the M in a known set, or "set:N"
    - gt: first digits of the ground truth's fingerprint
    - ann: "all"; "first" or "union" if a reference program reads annotators wrongly
    - match: "1to1"; "1toN" if a reference program matches pixels several times
    - valid: "masks" if a folder of masks limits the counted pixels
    - maps: how many maps an earlier call of the detector made
    - ms: the scales at which the detector was called, "" for one call
    - unused: fields of the protocol, and metrics with options, that no score depends on
    - named: METRIC.OPTION -> text, for options that are named even if they have their defaults
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
        """Return the words of the line, in order."""
        words = [f"bsdsbench {self.version}"]
        for key, text in self.texts().items():
            bare = key == "set" or (key == "thin" and text != UNKNOWN)
            words.append(text if bare else f"{key}{':' if key in WORDS else '='}{text}")
        return words

    def texts(self) -> dict[str, str]:
        """Return the text of each word by its key. Fields without a word are listed by name."""
        p = self.protocol
        base = _base_of(self.protocol)
        all_texts = self._all_texts()
        base_texts = _protocol_texts(base, base)
        texts = {}
        for key, word in WORDS.items():
            text = all_texts.get(key)
            is_unused = word.fields and self.unused.issuperset(word.fields)
            is_default = text == word.usual == base_texts.get(key)
            if text and not is_unused and not is_default:
                texts[key] = text
        if not p.stated:
            return texts
        texts |= self.named
        without_text = self.unused | WORDED
        if p.max_dist_px is not None:
            without_text -= {"max_dist"}
        for name, (value, _) in p.changed(base).items():
            if not {name, name.rpartition(".")[0]} & without_text:
                texts[name] = _format_value(value)
        return texts

    def _all_texts(self) -> dict[str, str]:
        """Return the texts of all words, also of those that the line omits."""
        run_texts = dict(zip(NO_FIELDS, attrgetter(*NO_FIELDS)(self), strict=True))
        return run_texts | _protocol_texts(self.protocol, _base_of(self.protocol))

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Parse a line that `str` wrote. Raises ProtocolError that names the wrong word."""
        head, *words = (w.replace("%7C", "|").replace("%25", "%") for w in text.strip().split("|"))
        package, _, version = head.partition(" ")
        if package != "bsdsbench" or not version or not words or not _SET.fullmatch(words[0]):
            beginning = "|".join([head, *words[:1]])
            expected = "expected 'bsdsbench VERSION|SET:N/M|...'"
            raise ProtocolError(f"signature {beginning!r}: {expected}")
        texts = {"set": words[0]}
        settings = []
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
            changes = _parse_changes(texts) | parse_overrides(settings)
            protocol = Protocol.preset(str(changes.pop("base", _BASE))).replace(**changes)
        except ProtocolError as error:
            raise ProtocolError(f"signature: {error}") from None
        run_texts: dict[str, Any] = {key: texts.get(key, UNKNOWN) for key in NO_FIELDS}
        run_texts |= {key: texts.get(key, "") for key in _OPTIONAL_KEYS}
        absent = (w.fields for key, w in WORDS.items() if key not in texts and not w.usual)
        unused = {name for names in absent for name in names}
        unused.difference_update(*(WORDS[key].fields for key in texts))
        return cls(protocol, version=version, unused=frozenset(unused), **run_texts)

    def differences(self, other: Signature) -> list[Difference]:
        """List the differences between two lines in the words that both know.

        A difference in a word that no score depends on has the severity IGNORED.
        """
        p, q = self.protocol, other.protocol
        unused = self.unused | other.unused
        our_texts, their_texts = self._all_texts(), other._all_texts()
        differences = []
        for key, word in WORDS.items():
            values = [texts.get(key, UNKNOWN) for texts in (our_texts, their_texts)]
            if key == "ms":
                values = [scales or "1" for scales in values]
            if values[0] == values[1] or key == "maps" or UNKNOWN in values:
                continue
            is_unused = word.fields and unused.issuperset(word.fields)
            severity = Severity.IGNORED if is_unused else word.severity
            if key == "tol" and len({text.partition(",")[0] for text in values}) == 1:
                # Only further tolerances differ
                severity = min(severity, Severity.SAID, key=[*Severity].index)
            name = _field_name(key, word)
            differences.append(Difference(name, values[0], values[1], severity, word.cost))
        for name, pair in p.changed(q).items() if p.stated and q.stated else ():
            spellings = {name, name.rpartition(".")[0]}
            if not spellings & WORDED:
                values = list(map(_format_value, pair))
                severity = Severity.IGNORED if spellings & unused else Severity.FORBIDS
                differences.append(Difference(name, values[0], values[1], severity))
        return differences

    def decode(self) -> list[tuple[str, str]]:
        """Return each word of the line, in order, with a sentence that explains the word.

        Examples
        --------
        >>> line = "bsdsbench 0.2.0|bsds500-test:200/200|gt:fa86|ann:all|pred:soft8|thr:99"
        >>> for word, meaning in Signature.parse(line).decode()[1:4]:
        ...     print(word, "-", meaning)
        bsds500-test:200/200 - All 200 images of bsds500-test.
        gt:fa86 - The fingerprint of the ground truth begins with fa86.
        ann:all - All annotators count.
        """
        caption_of = captions(self.protocol)
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
                phrase = names.get(text) or caption_of.get("".join(word.fields[:1]), text)
                meaning = word.meaning.format(value=text, words=phrase)
                meanings.append(meaning[0].upper() + meaning[1:])
        return list(zip(self.words(), meanings, strict=True))

    def _images(self) -> str:
        """Describe the images in words: "all 200 images of bsds500-test"."""
        match = _SET.fullmatch(self.set)
        name, n, n_in_set = match.groups() if match else ("", UNKNOWN, None)
        if n == UNKNOWN:
            return f"images of {name if n_in_set else 'a set that is not named'}"
        if not n_in_set:
            return f"{n} images of a set without a name"
        return f"{f'all {n}' if n == n_in_set else f'{n} of the {n_in_set}'} images of {name}"

    def sentence(self) -> str:
        """Return the line as a sentence for a paper."""
        caption_of = captions(self.protocol)
        phrases = []
        for key, text in self.texts().items():
            if key == "tol":
                matching = WORDS["match"].names.get(self.match, self.match)
                phrases.append(f"matching {matching} with {caption_of['max_dist']}")
            elif key not in WORDS:
                phrases.append(f"{key}={text}")
            elif key != "match" and WORDS[key].fields:
                phrases.append(caption_of.get(WORDS[key].fields[0], text))
        annotators = " against all annotators" if self.ann == "all" else ""
        settings = f" ({'; '.join(phrases)})" if phrases else ""
        return (
            f"Scores were computed with bsdsbench {self.version} on {self._images()}"
            f"{annotators}, by the protocol {self.protocol.name}{settings}."
        )


@frozen
class Difference:
    """A difference between two runs.

    Parameters
    ----------
    field : str
        A field of the protocol, METRIC.OPTION, or "set", "gt", "pred" ... as in signatures;
        "images", "truth", "reading", "metrics" and "source of metric NAME" of whole runs.
    ours, theirs : str
        The values of both runs, as signatures write them.
    severity : Severity
        The effect on a comparison.
    cost : str
        The usual effect on a score, or "".
    image : str
        The first image with the difference, or "" if it concerns the whole runs.
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
        """Return the difference in words, e.g. "tolerance: .0075d / .011d; usually ..."."""
        tail = f"; {self.cost}" if self.cost else ""
        if self.image:
            return f"ground truth of image {self.image!r} differs{tail}"
        title = _FIELD_TITLES.get(self.field, self.field)
        return f"{title}: {self.ours or 'as the preset'} / {self.theirs or 'as the preset'}{tail}"

    def fault(self) -> str:
        """Return the line, with the name of the field if the protocols differ."""
        if not self.of_protocol:
            return self.line()
        line = self.line()
        has_name = line.startswith(f"{self.field}:")
        return f"protocols differ in {line if has_name else f'{self.field} ({line})'}"


def _base_of(protocol: Protocol) -> Protocol:
    """Return the preset that a protocol is named after, or bsds500."""
    name = protocol.name.rstrip("*")
    return Protocol.preset(name if name in preset_names() else _BASE)


def _format_value(value: object) -> str:
    """Return a value as JSON, with whole floats as integers."""
    if value in (None, DEFAULT):
        return str(value or "none")
    return json.dumps(tidy(value), ensure_ascii=False)


def _protocol_texts(p: Protocol, base: Protocol) -> dict[str, str]:
    """Return the texts of a protocol's words. `base` is the preset that the protocol changes."""
    preset = f"{base.name}.{base.version}"
    unit = "d" if p.max_dist_px is None else "px"
    texts = {
        "proto": preset if preset != f"{_BASE}.1" else "",
        "thr": format_thresholds(p.thresholds),
        "tol": ",".join(f"{number_text(value)}{unit}" for value in p.tolerances),
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


def _parse_changes(texts: Mapping[str, str]) -> dict[str, object]:
    """Return the fields of a protocol that the words of a line set. `base` names the preset."""
    changes: dict[str, Any] = {}
    for key, text in texts.items():
        if key in NO_FIELDS:
            continue
        if text != UNKNOWN:
            changes |= _parse_text(key, text)
        elif key == "thr":
            changes["name"] = UNSTATED_GRID
        else:
            changes.setdefault("name", UNSTATED)
    return changes


def _parse_text(key: str, text: str) -> dict[str, object]:
    """Return the fields of a protocol that a word's text sets. Raises ProtocolError."""
    if key == "proto":
        name, _, version = text.rpartition(".")
        current = Protocol.preset(name).version
        if version != str(current):
            raise ProtocolError(
                f"proto:{text}: made with version {version} of {name}, expected {current}, as this "
                "package has"
            )
        return {"base": name}
    if key == "tol":
        matches = [re.fullmatch(rf"({NUMBER})(px|d)", item) for item in text.split(",")]
        units = {match and match[2] for match in matches}
        if None in units or len(units) > 1:
            raise ProtocolError(
                f"tol:{text}, expected a number and d or px, or several of one unit"
            )
        values = [float(match[1]) for match in matches if match]
        if units == {"px"}:
            return {"max_dist_px": values}
        return {"max_dist": values, "max_dist_px": None}
    if key == "nms":
        return {"nms": False} if text == "none" else {"nms": True, "nms_params": text}
    if key == "thin":
        return {"thin": text == "thin"}
    return {WORDS[key].fields[0]: text}


def parse_overrides(items: Iterable[str]) -> dict[str, object]:
    """Convert texts such as "max_dist=0.011" to changes for `Protocol.replace`.

    The name may have a table, as in "nms_params.radius=2". A value is TOML, or else a text, or a
    list if the text has commas. Raises ProtocolError for an item without "=", and for a field given
    twice.
    """
    changes: dict[str, Any] = {}
    for item in items:
        key, equals, text = (piece.strip() for piece in item.partition("="))
        table_name, _, name = key.rpartition(".")
        field_name, name = (piece.replace("-", "_") for piece in (table_name, name))
        if not (equals and name and text) or key.startswith("."):
            raise ProtocolError(f"{item!r}: expected FIELD=VALUE")
        path: list[str] = []
        if field_name in Protocol.names():
            path = [field_name]
        elif table_name:
            path = ["options", table_name]
        table: Any = changes
        for step in path:
            table = table.setdefault(step, {}) if isinstance(table, dict) else None
        if not isinstance(table, dict) or name in table:
            raise ProtocolError(f"{item!r}: {key} is given more than once")
        table[name] = _parse_value(text)
    return changes


def _parse_value(text: str) -> object:
    """Convert a value of TOML, or return the text. A comma makes a list. The zero before a decimal
    point may be missing. Infinite and NaN values stay texts.
    """
    number = re.sub(r"^(-?)\.(?=[0-9])", r"\g<1>0.", text)
    try:
        value = parse_toml(f"value = {number}".encode("utf-8", "surrogatepass"))["value"]
    except (ValueError, RecursionError):
        items = [] if set(text) & set("[]{}\"'") else text.split(",")
        return [_parse_value(i.strip()) for i in items] if len(items) > 1 and all(items) else text
    return text if isinstance(value, float) and not math.isfinite(value) else value

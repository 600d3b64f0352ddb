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
from bsdsbench.protocol.fields import (
    DEFAULT,
    NUMBER,
    captions,
    format_thresholds,
    number_text,
    read_packaged_toml,
    tidy,
)
from bsdsbench.protocol.protocol import UNSTATED, UNSTATED_GRID, Protocol, preset_names
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
    """The definition of a word of signatures, from words.toml."""

    title: str  # names the word where two signatures differ
    meaning: str  # a sentence with {value}, the word's text, and {words}, a phrase for the text
    cost: str = ""  # the usual effect of a difference on a score
    severity: Severity = field(default=Severity.FORBIDS, converter=Severity)  # of a difference
    # The fields of the protocol that the word stands for; that with the caption is the first
    fields: tuple[str, ...] = field(default=(), converter=tuple)
    usual: str = ""  # a text that the line omits if the preset has the same
    names: Mapping[str, str] = {}  # text -> phrase


WORDS = {key: Word(**row) for key, row in read_packaged_toml("words.toml").items()}
WORDED = {name for word in WORDS.values() for name in word.fields}
# Words that are not fields of a protocol
NO_FIELDS = ("set", "gt", "valid", "ann", "pred", "maps", "ms", "match")
_OPTIONAL_KEYS = ("valid", "maps", "ms")  # known to be empty if a line lacks them


def _field_name(key: str, word: Word) -> str:
    """Return the first field of the protocol that a word stands for, or else the word's key."""
    return word.fields[0] if word.fields and key not in NO_FIELDS else key


_FIELD_TITLES = {_field_name(key, word): word.title for key, word in WORDS.items()}
_FIELD_TITLES.setdefault("reading", "masks of predictions")


@frozen(repr=False, str=False)
class Signature:
    """The settings that a score depends on, as one line. `str` writes the line, `parse` reads it.

    Beside the protocol and the version of the package, the fields hold the texts of words:

    - set: "SET:N/M" for N images of the M in a known set, or "set:N"
    - gt: first digits of the fingerprint of the ground truth
    - ann: "all"; "first" or "union" if a reference program reads annotators wrongly
    - pred: form of the predictions, such as "soft8"
    - match: "1to1"; "1toN" if a reference program matches pixels several times
    - valid: "masks" if a folder of masks limits the pixels that count, else ""
    - maps: how many maps an earlier call of the detector made
    - ms: the scales at which the detector was called, "" for one call
    - unused: fields of the protocol, and metrics with options, on which no score depends
    - named: METRIC.OPTION -> JSON of its value, for options that the line names even if they have
      their defaults
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
        """Return the words of the line: the version, then KEY:TEXT, a text alone or FIELD=VALUE."""
        words = [f"bsdsbench {self.version}"]
        for key, text in self.texts().items():
            bare = key == "set" or (key == "thin" and text != UNKNOWN)
            words.append(text if bare else f"{key}{':' if key in WORDS else '='}{text}")
        return words

    def texts(self) -> dict[str, str]:
        """Return the texts of the line's words by key, and of settings without a word by name.

        Left out are words that no score depends on, words without a text, and words whose text is
        both `Word.usual` and that of the preset. Settings without a word are listed only if they
        differ from the preset, or are in `named`.
        """
        preset = _base_of(self.protocol)
        all_texts = self._all_texts()
        preset_texts = _protocol_texts(preset)
        texts = {}
        for key, word in WORDS.items():
            text = all_texts.get(key)
            is_unused = word.fields and self.unused.issuperset(word.fields)
            is_default = text == word.usual == preset_texts.get(key)
            if text and not is_unused and not is_default:
                texts[key] = text
        if not self.protocol.stated:
            return texts
        texts |= self.named
        skipped = self.unused | WORDED
        if (
            self.protocol.max_dist_px is not None
        ):  # the word "tol" tells the pixels, not the fraction
            skipped -= {"max_dist"}
        for name, (value, _) in self.protocol.changed(preset).items():
            table = name.rpartition(".")[0]  # METRIC, or ""
            if not {name, table} & skipped:
                texts[name] = _format_value(value)
        return texts

    def _all_texts(self) -> dict[str, str]:
        """Return the texts of all words by key, also of the words that the line omits."""
        run_texts = dict(zip(NO_FIELDS, attrgetter(*NO_FIELDS)(self), strict=True))
        return run_texts | _protocol_texts(self.protocol)

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Parse a line that `str` wrote. Words that the line lacks get their defaults.

        Raises ProtocolError, which names the word, for a line of another form, an unknown or
        repeated word, or a preset of another version.
        """
        head, *words = (w.replace("%7C", "|").replace("%25", "%") for w in text.strip().split("|"))
        package, _, version = head.partition(" ")
        if package != "bsdsbench" or not version or not words or not _SET.fullmatch(words[0]):
            beginning = "|".join([head, *words[:1]])
            expected = "expected 'bsdsbench VERSION|SET:N/M|...'"
            raise ProtocolError(f"signature {beginning!r}: {expected}")
        texts = {"set": words[0]}  # of words, by key
        settings = []  # FIELD=VALUE
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
            changes: dict[str, Any] = {}
            for key, text in texts.items():
                if key not in NO_FIELDS:
                    changes |= _parse_text(key, text)
            if texts.get("thr") == UNKNOWN:
                changes["name"] = UNSTATED_GRID
            changes |= parse_overrides(settings)
            protocol = Protocol.preset(str(changes.pop("base", _BASE))).replace(**changes)
        except ProtocolError as error:
            raise ProtocolError(f"signature: {error}") from None
        run_texts: dict[str, Any] = {key: texts.get(key, UNKNOWN) for key in NO_FIELDS}
        run_texts |= {key: texts.get(key, "") for key in _OPTIONAL_KEYS}
        # The line lacks a word that has no usual text only if no score depends on its fields
        unused = set[str]()
        for key, entry in WORDS.items():
            if key not in texts and not entry.usual:
                unused.update(entry.fields)
        for key in texts:
            unused.difference_update(WORDS[key].fields)
        return cls(protocol, version=version, unused=frozenset(unused), **run_texts)

    def differences(self, other: Signature) -> list[Difference]:
        """List the differences: words first, then settings without a word.

        Skipped are words that one side does not know, "maps", and settings of protocols that are
        not fully known. The severity is IGNORED if no score of either side depends on the setting,
        at most SAID if only tolerances after the first differ, and otherwise that of the word, or
        FORBIDS.
        """
        unused = self.unused | other.unused
        our_texts, their_texts = self._all_texts(), other._all_texts()
        differences = []
        for key, word in WORDS.items():
            our_text, their_text = our_texts.get(key, UNKNOWN), their_texts.get(key, UNKNOWN)
            if key == "ms":  # a single call is scale 1
                our_text, their_text = our_text or "1", their_text or "1"
            if our_text == their_text or key == "maps" or UNKNOWN in (our_text, their_text):
                continue
            is_unused = word.fields and unused.issuperset(word.fields)
            severity = Severity.IGNORED if is_unused else word.severity
            if key == "tol" and our_text.partition(",")[0] == their_text.partition(",")[0]:
                severity = min(severity, Severity.SAID, key=[*Severity].index)
            differences.append(
                Difference(_field_name(key, word), our_text, their_text, severity, word.cost)
            )
        if not (self.protocol.stated and other.protocol.stated):
            return differences
        for name, (our_value, their_value) in self.protocol.changed(other.protocol).items():
            spellings = {name, name.rpartition(".")[0]}  # METRIC.OPTION, METRIC
            if not spellings & WORDED:
                severity = Severity.IGNORED if spellings & unused else Severity.FORBIDS
                our_text, their_text = _format_value(our_value), _format_value(their_value)
                differences.append(Difference(name, our_text, their_text, severity))
        return differences

    def decode(self) -> list[tuple[str, str]]:
        """Return each word of the line with a sentence on its meaning.

        Examples
        --------
        >>> line = "bsdsbench 0.2.0|bsds500-test:200/200|gt:fa86|ann:all|pred:soft8|thr:99"
        >>> for word, meaning in Signature.parse(line).decode()[1:4]:
        ...     print(word, "-", meaning)
        bsds500-test:200/200 - All 200 images of bsds500-test.
        gt:fa86 - The fingerprint of the ground truth begins with fa86.
        ann:all - All annotators count.
        """
        meanings = [f"Computed with version {self.version} of bsdsbench."]
        meanings += [self._meaning(key, text) for key, text in self.texts().items()]
        return list(zip(self.words(), meanings, strict=True))

    def _meaning(self, key: str, text: str) -> str:
        """Explain the text of a word, or of a setting by its name `key`, in a sentence."""
        if key in self.named:
            return f"The option {key} is {json.loads(text)}."
        if key not in WORDS:
            return f"A setting that differs from the preset: {key}={text}."
        word = WORDS[key]
        if text == UNKNOWN:
            return f"Not known: {word.title}."
        phrases = {**word.names, **AP_RULES, **ODS_RULES, self.set: self._images()}
        phrase = phrases.get(text)
        if phrase is None and word.fields:
            phrase = captions(self.protocol).get(word.fields[0])
        meaning = word.meaning.format(value=text, words=phrase or text)
        return meaning[0].upper() + meaning[1:]

    def _images(self) -> str:
        """Describe the images in words: "all 200 images of bsds500-test"."""
        match = _SET.fullmatch(self.set)
        name, n, n_in_set = match.groups() if match else ("", UNKNOWN, None)
        if n == UNKNOWN:
            return f"images of {name if n_in_set else 'a set that is not named'}"
        if not n_in_set:
            return f"{n} images of a set without a name"
        if n == n_in_set:
            return f"all {n} images of {name}"
        return f"{n} of the {n_in_set} images of {name}"

    def sentence(self) -> str:
        """Return the settings as a sentence for a paper."""
        caption_of = captions(self.protocol)
        phrases = []
        for key, text in self.texts().items():
            if key == "tol":
                matching = WORDS["match"].names.get(self.match, self.match)
                phrases.append(f"matching {matching} with {caption_of['max_dist']}")
            elif key not in WORDS:
                phrases.append(f"{key}={text}")
            elif key != "match" and WORDS[key].fields:  # "match" is in the phrase of "tol"
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
        """Describe the difference: "tolerance: .0075d / .011d; usually ..."."""
        tail = f"; {self.cost}" if self.cost else ""
        if self.image:
            return f"ground truth of image {self.image!r} differs{tail}"
        title = _FIELD_TITLES.get(self.field, self.field)
        return f"{title}: {self.ours or 'as the preset'} / {self.theirs or 'as the preset'}{tail}"

    def fault(self) -> str:
        """Describe the difference for an error message, with the name of a protocol's field."""
        line = self.line()
        if not self.of_protocol:
            return line
        has_name = line.startswith(f"{self.field}:")
        return f"protocols differ in {line if has_name else f'{self.field} ({line})'}"


def _base_of(protocol: Protocol) -> Protocol:
    """Return the preset of the protocol's name without its star, or bsds500 for any other name."""
    name = protocol.name.rstrip("*")
    return Protocol.preset(name if name in preset_names() else _BASE)


def _format_value(value: object) -> str:
    """Return a value as JSON, with whole floats as integers. None is "none", DEFAULT "default"."""
    if value in (None, DEFAULT):
        return str(value or "none")
    return json.dumps(tidy(value), ensure_ascii=False)


def _protocol_texts(protocol: Protocol) -> dict[str, str]:
    """Return the texts of the words that describe a protocol, by key.

    If the protocol is not fully known, all texts are UNKNOWN, except that of thresholds that are
    known. Words with a usual text are then left out.
    """
    base = _base_of(protocol)
    preset = f"{base.name}.{base.version}"
    unit = "d" if protocol.max_dist_px is None else "px"
    texts = {
        "proto": preset if preset != f"{_BASE}.1" else "",
        "thr": format_thresholds(protocol.thresholds),
        "tol": ",".join(f"{number_text(value)}{unit}" for value in protocol.tolerances),
        "nms": str(protocol.nms_params) if protocol.nms else "none",
        "thin": "thin" if protocol.thin else "unthinned",
        "op": protocol.operator,
        "ods": protocol.ods_rule,
        "ap": protocol.ap_rule,
    }
    if protocol.stated:
        return texts
    known = {} if protocol.name == UNSTATED_GRID else {"thr": texts["thr"]}
    unknown = {key: UNKNOWN for key, word in WORDS.items() if word.fields and not word.usual}
    return unknown | known


def _parse_text(key: str, text: str) -> dict[str, object]:
    """Return the fields of a protocol, by name, that the text of a word sets.

    An UNKNOWN text makes the protocol one that is not known. "proto" gives "base", the name of the
    preset. Raises ProtocolError for a preset of another version, and for tolerances of another form
    than ".0075d" or "2px,4px".
    """
    if text == UNKNOWN:
        return {"name": UNSTATED}
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
    """Convert texts FIELD=VALUE to changes for `Protocol.replace`.

    - "max_dist=0.011" changes a field: {"max_dist": 0.011}
    - "nms_params.radius=2" changes an entry of a field: {"nms_params": {"radius": 2}}
    - "depth.crop=1" sets an option of a metric: {"options": {"depth": {"crop": 1}}}

    A value is TOML, or else a text, or a list if the text has commas. Raises ProtocolError for any
    other text, and for a field that is set twice.
    """
    changes: dict[str, Any] = {}
    for item in items:
        key, equals, text = (piece.strip() for piece in item.partition("="))
        prefix, _, name = key.rpartition(".")
        table_name, name = prefix.replace("-", "_"), name.replace("-", "_")
        if not (equals and name and text) or key.startswith("."):
            raise ProtocolError(f"{item!r}: expected FIELD=VALUE")
        path: list[str] = []  # keys of the nested table that holds the value
        if table_name in Protocol.names():
            path = [table_name]
        elif prefix:
            path = ["options", prefix]
        table: Any = changes
        for step in path:
            table = table.setdefault(step, {}) if isinstance(table, dict) else None
        if not isinstance(table, dict) or name in table:
            raise ProtocolError(f"{item!r}: {key} is given more than once")
        table[name] = _parse_value(text)
    return changes


def _parse_value(text: str) -> object:
    """Convert TOML, in which .5 is a number; a list with commas; else return the text itself.

    Infinity and NaN stay texts. Text with brackets, braces or quotes is no list with commas.
    """
    number = re.sub(r"^(-?)\.(?=[0-9])", r"\g<1>0.", text)
    try:
        value = parse_toml(f"value = {number}".encode("utf-8", "surrogatepass"))["value"]
    except (ValueError, RecursionError):
        items = [] if set(text) & set("[]{}\"'") else text.split(",")
        if len(items) > 1 and all(items):
            return [_parse_value(item.strip()) for item in items]
        return text
    return text if isinstance(value, float) and not math.isfinite(value) else value

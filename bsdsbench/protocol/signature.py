"""Signatures: a line that identifies the settings of a run. It is printed under tables of scores.

    bsdsbench 0.2.0|bsds500-test:200/200|gt:fa866d15|ann:all|pred:soft8|thr:99|tol:.0075d|\\
    match:1to1|nms:none|thin|ap:bsds

The line consists of words, defined in words.toml: KEY:TEXT, or a text alone, such as "thin". Only
words that affect the scores are included. An absent word means the value of the preset, and the
text `?` means unknown. `|` and `%` in a word are written as %7C and %25.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from operator import attrgetter
from typing import Any

import numpy as np
from attrs import field, frozen

from bsdsbench import __version__
from bsdsbench.errors import ProtocolError
from bsdsbench.io import parse_toml
from bsdsbench.protocol.fields import DEFAULT, GRIDS, even_thresholds, read_packaged_toml, tidy
from bsdsbench.protocol.protocol import UNSTATED, UNSTATED_GRID, Protocol, captions, preset_names
from bsdsbench.scores.curve import AP_RULES, ODS_RULES
from bsdsbench.text import NUMBER, number_text

UNKNOWN = "?"  # the text of an unknown setting, which is never reported as a difference
_BASE = "bsds500"
_SET = re.compile(r"(.+):([0-9]+|\?)(?:/([0-9]+|\?))?", re.S)


class Severity(Enum):
    """How a difference between two runs affects the comparison of their scores."""

    # No score that both runs have depends on it, or the run is a reference with its own rule
    IGNORED = "ignored"
    SAID = "said"  # the scores may be compared, but a note mentions the difference
    FORBIDS = "forbids"  # the scores are not comparable


@frozen
class Word:
    """The definition of one word of a signature, from words.toml."""

    title: str  # the name of the setting when a difference is reported
    meaning: str  # a sentence with {value}, the word's text, and {words}, a phrase for the text
    cost: str = ""  # the usual effect of a difference on a score
    severity: Severity = field(default=Severity.FORBIDS, converter=Severity)  # of a difference
    # The protocol fields that the word encodes; the caption is that of the first
    fields: tuple[str, ...] = field(default=(), converter=tuple)
    omit_if: str = ""  # the word is left out if this is its text, and also that of the preset
    names: Mapping[str, str] = {}  # text of the word -> phrase for it


WORDS = {key: Word(**row) for key, row in read_packaged_toml("words.toml").items()}
FIELDS_IN_WORDS = {name for word in WORDS.values() for name in word.fields}  # of the protocol
# Words that describe the run and not its protocol; each is an attribute of Signature
_RUN_KEYS = ("set", "gt", "valid", "ann", "pred", "maps", "ms", "match")
_OPTIONAL_KEYS = ("valid", "maps", "ms")  # if a line lacks the word, its text is "", not UNKNOWN


def _field_name(key: str, word: Word) -> str:
    """Return the first protocol field that a word encodes or, if there is none, its key."""
    return word.fields[0] if word.fields and key not in _RUN_KEYS else key


_FIELD_TITLES = {_field_name(key, word): word.title for key, word in WORDS.items()}
_FIELD_TITLES.setdefault("reading", "masks of predictions")


@frozen(repr=False, str=False)
class Signature:
    """The settings on which scores depend. `str` writes them as one line, and `parse` reads it.

    `protocol` and `version` (of the package) aside, these are the fields. All but the last two are
    texts of words.

    - set: "SET:N/M" for N images of the M in a known set, or "set:N"
    - gt: first digits of the fingerprint of the ground truth
    - ann: "all"; "first" or "union" if a reference program handles annotators incorrectly
    - pred: type of the predictions, such as "soft8"
    - match: "1to1"; "1toN" if a reference program matches a pixel several times
    - valid: "masks" if a folder of masks restricts the counted pixels, else ""
    - maps: the number of maps that were kept from an earlier call of the detector
    - ms: the scales at which the detector was called, or "" for a single call
    - unused: protocol fields, and metrics with options, on which no score depends
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

    def __repr__(self) -> str:
        return f"<Signature {self}>"

    def __str__(self) -> str:
        words = []
        for word in self.words():
            words.append(word.replace("%", "%25").replace("|", "%7C"))
        return "|".join(words)

    def words(self) -> list[str]:
        """Return the words of the signature line, which `str` joins with "|".

        The first is the package and its version. The others are the entries of `texts`: KEY:TEXT if
        the key is that of a word in words.toml ("ann:all"), and SETTING=VALUE for any other setting
        ("depth.crop=1"). Two are written without a key, as their texts are plain: the image set
        ("bsds500-test:200/200"), and "thin" or "unthinned" if it is known.
        """
        words = [f"bsdsbench {self.version}"]
        for key, text in self.texts().items():
            is_bare = key == "set" or (key == "thin" and text != UNKNOWN)
            separator = ":" if key in WORDS else "="
            words.append(text if is_bare else f"{key}{separator}{text}")
        return words

    def texts(self) -> dict[str, str]:
        """Return the settings that the line includes, as {key: text}, such as {"tol": ".0075d"}.

        Words (KEY:TEXT in the line) come first. Settings without a word follow under their names,
        such as {"depth.crop": "1"}, if the protocol is known (`stated`).
        """
        preset = _base_of(self.protocol)  # the preset with the protocol's name, or bsds500
        all_texts, preset_texts = self._all_texts(), _protocol_texts(preset)
        texts = {}
        for key, word in WORDS.items():
            text = all_texts.get(key)
            is_unused = word.fields and self.unused.issuperset(word.fields)  # no score needs it
            # "op" and some others are left out if they have the usual text, as the preset has
            is_usual = text == word.omit_if == preset_texts.get(key)
            if text and not is_unused and not is_usual:
                texts[key] = text
        if not self.protocol.stated:
            return texts
        for name, (value, _) in self.protocol.changed(preset).items():
            names = {name, _owner_of(name)}  # {"depth.crop", "depth"}
            # If max_dist_px is set, the word "tol" has this in place of max_dist, which it
            # overrides. `parse` restores a changed max_dist from an entry of its own
            is_overridden = name == "max_dist" and self.protocol.max_dist_px is not None
            if is_overridden or not (names & self.unused or names & FIELDS_IN_WORDS):
                texts[name] = _format_value(value)
        return texts

    def _all_texts(self) -> dict[str, str]:
        """Return the texts of all words by key, including words that the line leaves out."""
        run_texts = dict(zip(_RUN_KEYS, attrgetter(*_RUN_KEYS)(self), strict=True))
        return run_texts | _protocol_texts(self.protocol)

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Parse a line that `str` wrote: "bsdsbench VERSION|SET:N/M|WORD|WORD...".

        A WORD is KEY:TEXT with a key of words.toml, such as "ann:all"; "thin" or "unthinned"; or
        FIELD=VALUE for a setting without a key, such as "depth.crop=1". Missing words for the run
        are UNKNOWN, or "" for valid, maps and ms, which only some runs have. Fields of the protocol
        without a word have the values of the preset.

        Raises ProtocolError if the line is malformed, if a word is unknown or repeated, or if the
        line was written for another version of the preset.
        """
        # "|" and "%" in a word are written as %7C and %25
        words = [w.replace("%7C", "|").replace("%25", "%") for w in text.strip().split("|")]
        package, _, version = words[0].partition(" ")
        if package != "bsdsbench" or not version or len(words) < 2 or not _SET.fullmatch(words[1]):
            beginning = "|".join(words[:2])
            expected = "expected 'bsdsbench VERSION|SET:N/M|...'"
            raise ProtocolError(f"signature {beginning!r}: {expected}")
        texts = {"set": words[1]}  # word key -> text
        settings = []  # FIELD=VALUE
        for word in words[2:]:
            key, colon, value = word.partition(":")
            if word in ("thin", "unthinned"):
                texts["thin"] = word
            elif not colon or "=" in key:
                settings.append(word)
            elif key in WORDS and key not in texts:
                texts[key] = value
            else:
                raise ProtocolError(f"signature {word}: expected one of {', '.join(WORDS)}, once")
        protocol = _parse_protocol(texts, settings)
        run_texts: dict[str, Any] = {key: texts.get(key, UNKNOWN) for key in _RUN_KEYS}
        run_texts |= {key: texts.get(key, "") for key in _OPTIONAL_KEYS}
        # `str` leaves out a word if no score needs its fields or, with `omit_if`, if its text is
        # the usual one. "tol" and "match" have the same fields, and either word shows their use
        used, not_shown = set[str](), set[str]()
        for key, definition in WORDS.items():
            if key in texts:
                used.update(definition.fields)
            elif not definition.omit_if:
                not_shown.update(definition.fields)
        unused = frozenset(not_shown - used)
        return cls(protocol, version=version, unused=unused, **run_texts)

    def differences(self, other: Signature) -> list[Difference]:
        """Return the differences between two signatures.

        Words (KEY:TEXT in the line) come first, followed by settings without a word, such as metric
        options. Texts that are unknown in either signature are not compared, nor is the word
        "maps", since reused maps do not affect scores.

        A difference has the severity of its word, or FORBIDS (scores are not comparable) if the
        setting has no word. It is IGNORED if no score of one of the runs depends on the setting.
        """
        unused = self.unused | other.unused  # names of protocol fields, and of metrics
        our_texts, their_texts = self._all_texts(), other._all_texts()
        differences = []
        for key, word in WORDS.items():
            our_text, their_text = our_texts.get(key, UNKNOWN), their_texts.get(key, UNKNOWN)
            if key == "ms":  # scales of the image; "" is a single call, which is at scale 1
                our_text, their_text = our_text or "1", their_text or "1"
            if our_text == their_text or key == "maps" or UNKNOWN in (our_text, their_text):
                continue
            is_unused = word.fields and unused.issuperset(word.fields)
            severity, cost = Severity.IGNORED if is_unused else word.severity, word.cost
            # Several tolerances are separated by commas. The main scores are at the first, so that
            # a difference in others is only noted, unless both runs have means over several
            our_list, their_list = our_text.split(","), their_text.split(",")
            is_one_single = len(our_list) == 1 or len(their_list) == 1
            is_noted = is_one_single and our_list[0] == their_list[0]
            if key == "tol" and is_noted and severity is Severity.FORBIDS:
                severity, cost = Severity.SAID, "the main scores are at the first of them"
            name = _field_name(key, word)  # such as "max_dist", the first field in "tol"
            differences.append(Difference(name, our_text, their_text, severity, cost))
        if not (self.protocol.stated and other.protocol.stated):
            return differences  # official result files do not state all settings
        for name, (our_value, their_value) in self.protocol.changed(other.protocol).items():
            names = {name, _owner_of(name)}
            if names & FIELDS_IN_WORDS:  # compared above, as "nms_params.radius" in the word "nms"
                continue
            severity = Severity.IGNORED if names & unused else Severity.FORBIDS
            our_text, their_text = _format_value(our_value), _format_value(their_value)
            differences.append(Difference(name, our_text, their_text, severity))
        return differences

    def decode(self) -> list[tuple[str, str]]:
        """Return pairs of a word and its meaning, such as ("ann:all", "All annotators count.").

        A word has a sentence in words.toml (`Word.meaning`), with {value} for its text and {words}
        for a phrase that explains the text.
        """
        meanings = [f"Computed with version {self.version} of bsdsbench."]
        caption_of = captions(self.protocol)  # protocol field -> its value in words
        rules = {"ap": AP_RULES[self.protocol.ap_rule], "ods": ODS_RULES[self.protocol.ods_rule]}
        phrases = {"set": self._images(), **rules}  # key -> phrase
        for key, text in self.texts().items():
            word = WORDS.get(key)
            if word is None:  # another setting without a word, such as "depth.crop"
                meaning = f"A setting that differs from the preset: {key}={text}."
            elif text == UNKNOWN:
                meaning = f"Not known: {word.title}."
            else:
                caption = caption_of.get(word.fields[0]) if word.fields else None
                phrase = phrases.get(key) or word.names.get(text) or caption or text
                meaning = word.meaning.format(value=text, words=phrase)
            meanings.append(meaning[0].upper() + meaning[1:])
        # `words` also begins with the version, followed by the entries of `texts`
        return list(zip(self.words(), meanings, strict=True))

    def _images(self) -> str:
        """Describe the attribute `set` in words, with a note if the name or a number is unknown.

        For example, "bsds500-test:200/200" becomes "all 200 images of bsds500-test".
        """
        match = _SET.fullmatch(self.set)  # "SET:N/M" with M images in the set, or "set:N"
        name, n, n_in_set = match.groups() if match else ("", UNKNOWN, None)
        if n == UNKNOWN:
            return f"images of {name if n_in_set else 'a set that is not named'}"
        if not n_in_set:
            return f"{n} images of an unknown set"
        if n == n_in_set:
            return f"all {n} images of {name}"
        return f"{n} of the {n_in_set} images of {name}"

    def sentence(self) -> str:
        """Return the settings as a sentence for a paper: "Scores were computed with ...".

        It states the version, the images, "against all annotators" if all of them count, and the
        name of the protocol. In parentheses follow its settings that the signature line includes,
        and the matching rule, in words.
        """
        caption_of = captions(self.protocol)  # protocol field -> its value in words
        phrases = []
        for key, text in self.texts().items():  # the entries of the line, such as {"tol": ".0075d"}
            word = WORDS.get(key)
            if key == "tol":
                matching = WORDS["match"].names.get(self.match, self.match)  # such as "one to one"
                phrases.append(f"matching {matching} with {caption_of['max_dist']}")
            elif word is None:  # a setting without a word, such as a metric option
                phrases.append(f"{key}={text}")
            elif word.fields and key != "match":  # the others describe the run, as "gt:fa866d15"
                phrases.append(caption_of.get(word.fields[0], text))
        annotators = " against all annotators" if self.ann == "all" else ""
        settings = f" ({'; '.join(phrases)})" if phrases else ""
        scope = f"on {self._images()}{annotators}, by the protocol {self.protocol.name}{settings}"
        return f"Scores were computed with bsdsbench {self.version} {scope}."


@frozen
class Difference:
    """A difference between two runs.

    Parameters
    ----------
    field : str
        What differs: a protocol field, METRIC.OPTION, the key of a signature word ("set", "gt",
        "pred" ...), or "images", "truth", "reading", "metrics" or "source of metric NAME".
    ours, theirs : str
        The values in the two runs, as signatures write them.
    severity : Severity
        How it affects a comparison.
    cost : str
        The usual effect on a score, or "" if unknown.
    image : str
        The first image with the difference, or "" if it concerns the whole run.
    """

    field: str
    ours: str
    theirs: str
    severity: Severity
    cost: str = ""
    image: str = ""

    @property
    def of_protocol(self) -> bool:
        """True if the difference is in a protocol field or a metric option."""
        return self.field in Protocol.names() or "." in self.field

    def line(self) -> str:
        """Describe the difference: "TITLE: OURS / THEIRS; COST", or the image if it is in one.

        For example: "tolerance: .0075d / .011d; usually ...". The cost is left out if it is
        unknown. An empty value, which a signature leaves out, is described as that of the preset.
        """
        tail = f"; {self.cost}" if self.cost else ""
        if self.image:
            return f"ground truth of image {self.image!r} differs{tail}"
        title = _FIELD_TITLES.get(self.field, self.field)
        return f"{title}: {self.ours or 'as the preset'} / {self.theirs or 'as the preset'}{tail}"

    def fault(self) -> str:
        """Describe the difference for an error message: "protocols differ in max_dist (...)".

        The parentheses have the text of `line`, "TITLE: OURS / THEIRS"; without them if TITLE is
        the name of the setting already. A difference that is not in a protocol field or a metric
        option, such as other images, is described by `line` alone.
        """
        line = self.line()
        if not self.of_protocol:
            return line
        if not line.startswith(f"{self.field}:"):
            line = f"{self.field} ({line})"
        return f"protocols differ in {line}"


def _base_of(protocol: Protocol) -> Protocol:
    """Return the preset that a protocol is named after (ignoring a star), or bsds500 if none."""
    name = protocol.name.rstrip("*")
    return Protocol.preset(name if name in preset_names() else _BASE)


def _owner_of(name: str) -> str:
    """Return what a setting is part of: "depth" for the metric option "depth.crop", else `name`."""
    return name.rpartition(".")[0] or name


def _format_value(value: object) -> str:
    """Write the value of a setting as JSON, except that None is none and DEFAULT is default.

    Floats without a fraction are written as integers.
    """
    if value is None:
        return "none"
    if value == DEFAULT:
        return DEFAULT
    return json.dumps(tidy(value), ensure_ascii=False)


def _protocol_texts(protocol: Protocol) -> dict[str, str]:
    """Return the signature words of a protocol's fields, as {key: text}: {"tol": ".0075d", ...}.

    The text of "proto" is "" for version 1 of bsds500, which lines mean if they name no preset. If
    the settings are unknown (`stated` is False), as for results of other programs, the texts are
    UNKNOWN. "thr" is not, if the thresholds are known, and words like "op", which are often left
    out (`Word.omit_if`), are absent.
    """
    base = _base_of(protocol)  # the preset of the protocol's name, or bsds500
    preset = f"{base.name}.{base.version}"  # such as "bsds500.1"
    unit = "d" if protocol.max_dist_px is None else "px"
    tolerances = list(map(number_text, protocol.tolerances))
    texts = {
        "proto": preset if preset != f"{_BASE}.1" else "",
        "thr": _format_thresholds(protocol.thresholds),
        "tol": f"{unit},".join(tolerances) + unit,  # such as ".0075d,.01d"
        "nms": str(protocol.nms_params) if protocol.nms else "none",
        "thin": "thin" if protocol.thin else "unthinned",
        "op": protocol.operator,
        "ods": protocol.ods_rule,
        "ap": protocol.ap_rule,
    }
    if protocol.stated:
        return texts
    unknown = {key: UNKNOWN for key, word in WORDS.items() if word.fields and not word.omit_if}
    if protocol.name == UNSTATED_GRID:  # the name if not even the thresholds are known
        return unknown
    return unknown | {"thr": texts["thr"]}


def _format_thresholds(values: tuple[float, ...]) -> str:
    """Return a short text that `parse_thresholds` converts back to exactly these values."""
    count = len(values)
    if values == even_thresholds(count):
        return str(count)
    for name, grid in GRIDS.items():
        if values == grid:
            return name
    if values[0] == 0 and count > 1:
        return f"0+{_format_thresholds(values[1:])}"
    # Up to four thresholds are easier to read as a list
    if count > 4 and values == tuple(np.linspace(values[0], values[-1], count).tolist()):
        return f"{values[0]}..{values[-1]}/{count}"
    return "at " + ",".join(map(number_text, values))


def _parse_protocol(texts: Mapping[str, str], settings: Iterable[str]) -> Protocol:
    """Return the protocol that a signature line describes by its words and its other settings.

    `texts` are the words as {key: text}, such as {"tol": ".0075d"}, and `settings` have the form
    FIELD=VALUE. Both change the preset that the word "proto" names, or else bsds500.
    """
    changes: dict[str, Any] = {}  # field -> value
    try:
        for key, text in texts.items():
            if key not in _RUN_KEYS:  # these describe the run, such as "gt"
                changes |= _parse_text(key, text)
        # Any unknown text names the protocol "unstated", of which only the thresholds are known
        if texts.get("thr") == UNKNOWN:
            changes["name"] = UNSTATED_GRID  # not even the thresholds
        changes |= parse_overrides(settings)
        preset = str(changes.pop("base", _BASE))  # the word "proto" gives the "base"
        return Protocol.preset(preset).replace(**changes)
    except ProtocolError as error:
        raise ProtocolError(f"signature: {error}") from None


def _parse_text(key: str, text: str) -> dict[str, object]:
    """Return the protocol fields that the signature word KEY:TEXT sets, as {field: value}.

    For example, ap:bsds gives {"ap_rule": "bsds"}. There are two special cases: proto:bsds500.1
    gives {"base": "bsds500"}, the preset to start from, and the text "?" (UNKNOWN) gives only the
    name of a protocol that is not fully known. Raises ProtocolError if "proto" names another
    version of the preset, or if tolerances are not written like ".0075d" or "2px,4px".
    """
    if text == UNKNOWN:
        return {"name": UNSTATED}  # the word's field keeps the value of the preset
    if key == "proto":
        name, _, version = text.rpartition(".")
        current = Protocol.preset(name).version
        if version != str(current):
            fault = f"made with version {version} of {name}"
            raise ProtocolError(f"proto:{text}: {fault}, expected {current}, as this package has")
        return {"base": name}
    if key == "tol":
        # Numbers with a unit: "px", or "d" for a share of the image diagonal
        matches = [re.fullmatch(rf"({NUMBER})(px|d)", item) for item in text.split(",")]
        units = {match and match[2] for match in matches}  # None: does not match
        if None in units or len(units) > 1:
            expected = "expected a number and d or px, or several of one unit"
            raise ProtocolError(f"tol:{text}, {expected}")
        values = [float(match[1]) for match in matches if match]
        if units == {"px"}:
            return {"max_dist_px": values}  # overrides a `max_dist` of the preset
        return {"max_dist": values, "max_dist_px": None}  # a preset's value would override it
    if key == "nms":  # the text is "none", or the parameters of non-maximum suppression
        return {"nms": False} if text == "none" else {"nms": True, "nms_params": text}
    if key == "thin":  # the text is "thin" or "unthinned"
        return {"thin": text == "thin"}
    # Any other word stands for one field of the protocol, whose converter parses the text: "thr"
    # for thresholds, "op" for operator, "ods" for ods_rule, and "ap" for ap_rule
    (field_name,) = WORDS[key].fields
    return {field_name: text}


def parse_overrides(items: Iterable[str]) -> dict[str, object]:
    """Convert FIELD=VALUE strings to keyword arguments of `Protocol.replace`.

    - "max_dist=0.011" changes a field: {"max_dist": 0.011}
    - "nms_params.radius=2" changes an entry of a field: {"nms_params": {"radius": 2}}
    - "depth.crop=1" sets an option of a metric: {"options": {"depth": {"crop": 1}}}

    Any other prefix before the dot is taken as a metric name. `_parse_value` converts VALUE. Raises
    ProtocolError if the field or the value is missing, or if a field is set twice.
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
        for table_key in path:  # a table is no dict if the whole field was given before
            table = table.setdefault(table_key, {}) if isinstance(table, dict) else None
        if not isinstance(table, dict) or name in table:
            raise ProtocolError(f"{item!r}: {key} is given more than once")
        table[name] = _parse_value(text)
    return changes


def _parse_value(text: str) -> object:
    """Convert the VALUE of FIELD=VALUE from text to a number, bool, list or other value.

    - A TOML value, such as 2, true or [1, 2], is parsed. Numbers such as .5 are also allowed.
    - Other text with commas, such as .1,.2, is a list, whose items are converted in the same way.
    - Anything else is a string. Text that is not valid TOML is also a string if it has brackets,
      braces, quotes or an empty item between commas. So are infinity and NaN.
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

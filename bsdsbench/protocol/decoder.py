"""A signature in words: what each of its words means, and a sentence for a paper."""

from __future__ import annotations

from bsdsbench.protocol.difference_costs import COSTS
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.signature import UNKNOWN, Signature
from bsdsbench.scores.curve import AP_RULES, ODS_RULES

_FORMS = {
    "soft8": "8-bit soft maps",
    "soft16": "16-bit soft maps",
    "float": "floating-point soft maps",
    "binary": "binary maps",
    "ucm2": "ultrametric contour maps (`ucm2`)",
    "segs": "stacks of label maps (`segs`)",
    "labels": "label maps",
    "classes": "class maps",
}
_MATCHINGS = {"1to1": "one to one", "1toN": "many to one, which is not the benchmark's rule"}
_ANNOTATORS = {"all": "All annotators count.", "first": "Only the first annotator counts."}
_SENTENCES = {
    "gt": "The fingerprint of the ground truth begins with {}.",
    "maps": "Maps of an earlier call of the detector were used again: {}.",
    "proto": "Whatever is not named is as in the preset {} (name and version).",
}
# Word of the line -> field of the protocol whose `Protocol.words` say it.
_FIELDS = {
    "thr": "thresholds",
    "tol": "max_dist",
    "nms": "nms",
    "thin": "thin",
    "unthinned": "thin",
    "op": "operator",
    "ods": "ods_rule",
    "ap": "ap_rule",
}


def decode(signature: Signature) -> list[tuple[str, str]]:
    """Each word of the line, in its order, with a sentence that says what it means.

    Examples
    --------
    >>> line = "bsdsbench 0.2.0|bsds500-test:200/200|gt:fa86|ann:all|pred:soft8|thr:99|tol:.0075d"
    >>> for word, meaning in decode(Signature.parse(line))[1:4]:
    ...     print(word, "-", meaning)
    bsds500-test:200/200 - All 200 images of bsds500-test.
    gt:fa86 - The fingerprint of the ground truth begins with fa86.
    ann:all - All annotators count.
    """
    first, images, *others = signature.words()
    which = _images(signature)
    found = [(first, f"Computed with version {signature.version} of bsdsbench.")]
    found.append((images, which[0].upper() + which[1:] + "."))
    return [*found, *((word, _meaning(word, signature.protocol)) for word in others)]


def _meaning(word: str, protocol: Protocol) -> str:
    key, colon, value = word.partition(":")
    said = protocol.words().get(_FIELDS.get(key, ""), value)
    if not colon and "=" in word:
        return f"A setting that differs from the preset: {word}."
    if value == UNKNOWN:
        return f"Not known: {COSTS.get(key, (key, ''))[0]}."
    meanings = {
        "ann": _ANNOTATORS.get(value, f"Annotators that count: {value}."),
        "pred": f"The predictions are {_FORMS.get(value, value)}.",
        "thr": f"Soft maps are cut at {said}.",
        "tol": f"Two matched pixels are at most this far apart: {said}.",
        "match": f"Predicted and annotated pixels are matched {_MATCHINGS.get(value, value)}.",
        "nms": f"Edge non-maximum suppression before the cut: {said}.",
        "thin": "Each cut map is thinned to lines of one pixel.",
        "unthinned": "The cut maps are not thinned.",
        "op": f"A pixel is on where {said}.",
        "ods": f"ODS is {ODS_RULES.get(value, value)}.",
        "ap": f"AP follows the rule {value}: {AP_RULES.get(value, 'not known here')}.",
    }
    return meanings.get(key) or _SENTENCES.get(key, "{}.").format(value)


def _images(signature: Signature) -> str:
    n, size, name = signature.n_images, signature.set_size, signature.set_name
    if n is None:
        return f"images of {name}" if name else "images of a set that is not named"
    if name and n == size:
        return f"all {n} images of {name}"
    return f"{n} of the {size} images of {name}" if name else f"{n} images of a set without a name"


def sentence(signature: Signature) -> str:
    """How the scores were made, for the text of a paper; it says what the line says.

    Examples
    --------
    >>> line = "bsdsbench 0.2.0|bsds500-test:200/200|gt:fa86|ann:all|pred:soft8|thr:99"
    >>> sentence(Signature.parse(line)).partition(", ")[0]
    'Scores were computed with bsdsbench 0.2.0 on all 200 images of bsds500-test against all annotators'
    >>> sentence(Signature.parse(line)).partition(", ")[2]
    'by the protocol bsds500 (99 thresholds 0.01..0.99).'
    """  # noqa: E501
    words = signature.words()
    keys = {word.partition(":")[0] for word in words}
    said = signature.protocol.words()
    parts = [said[_FIELDS[key]] for key in ("thr",) if key in keys]
    if "tol" in keys:
        matching = _MATCHINGS.get(signature.match, signature.match)
        parts.append(f"matching {matching} with {said['max_dist']}")
    parts += [
        said[_FIELDS[k]] for k in ("nms", "thin", "unthinned", "op", "ods", "ap") if k in keys
    ]
    parts += [word for word in words if "=" in word]
    annotators = " against all annotators" if signature.annotators == "all" else ""
    settings = f" ({'; '.join(parts)})" if parts else ""
    return (
        f"Scores were computed with bsdsbench {signature.version} on {_images(signature)}"
        f"{annotators}, by the protocol {signature.protocol.name}{settings}."
    )

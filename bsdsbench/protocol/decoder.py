"""A signature in words: what each of its words means, and a sentence for a paper."""

from __future__ import annotations

from bsdsbench.protocol.fields import captions
from bsdsbench.protocol.signature import TABLE, UNKNOWN, Signature


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
    which, known = _images(signature), captions(signature.protocol)
    meanings = [f"Computed with version {signature.version} of bsdsbench."]
    for key, text in signature.texts().items():
        if key == "set":
            meanings.append(which[0].upper() + which[1:] + ".")
        elif key not in TABLE:
            meanings.append(f"A setting that differs from the preset: {key}={text}.")
        elif text == UNKNOWN:
            meanings.append(f"Not known: {TABLE[key].title}.")
        else:
            caption = known.get("".join(TABLE[key].fields[:1]), text)
            said = TABLE[key].names.get(text, caption)
            meanings.append(TABLE[key].meaning.format(value=text, said=said))
    return list(zip(signature.words(), meanings, strict=True))


def _images(signature: Signature) -> str:
    n, size, name = signature.n_images, signature.set_size, signature.set_name
    if n is None:
        return f"images of {name}" if name else "images of a set that is not named"
    if name and n == size:
        return f"all {n} images of {name}"
    return f"{n} of the {size} images of {name}" if name else f"{n} images of a set without a name"


def sentence(signature: Signature) -> str:
    """How the scores were made, for the text of a paper; it says what the line says."""
    texts, known = signature.texts(), captions(signature.protocol)
    parts = []
    for key, text in texts.items():
        if key == "tol":
            matching = TABLE["match"].names.get(signature.match, signature.match)
            parts.append(f"matching {matching} with {known['max_dist']}")
        elif key not in TABLE:
            parts.append(f"{key}={text}")
        elif key != "match" and TABLE[key].fields:
            parts.append(known.get(TABLE[key].fields[0], text))
    annotators = " against all annotators" if signature.annotators == "all" else ""
    settings = f" ({'; '.join(parts)})" if parts else ""
    return (
        f"Scores were computed with bsdsbench {signature.version} on {_images(signature)}"
        f"{annotators}, by the protocol {signature.protocol.name}{settings}."
    )

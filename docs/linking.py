"""A Sphinx extension: code in prose links to its page, and every page has a description.

`bb.evaluate`, `bsdsbench compare`, the names of protocols and tasks become links wherever a page
mentions them in code style, so that links need no markup and cannot go stale.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import attrs
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

import bsdsbench as bb
from bsdsbench import curves
from bsdsbench.cli import COMMANDS
from bsdsbench.protocol.protocol import preset_names
from bsdsbench.protocol.tasks import tasks
from bsdsbench.runs import keywords

WORDS = json.loads(Path(__file__).with_name("search_words.json").read_text("utf-8"))
LONGEST = 155  # characters of a description that search engines show


def target_of(text: str) -> tuple[str, str] | None:
    """("py" or "doc", target) of a piece of code, None if it has no page."""
    words = text.split()
    if words[:1] == ["bsdsbench"] and len(words) > 1 and words[1] in COMMANDS:
        return "doc", f"generated/verbs/{words[1]}"
    name = text.partition("(")[0]
    parts = name.split(".")
    if parts[:2] == ["bb", "curves"] and parts[-1] in curves.__all__:
        return "py", f"bsdsbench.curves.{parts[-1]}"
    if parts[0] == "bb" and len(parts) > 1 and parts[1] in bb.__all__:
        return "py", f"bsdsbench.{'.'.join(parts[1:])}"
    if name in bb.__all__ and name != "curves":
        return "py", f"bsdsbench.{name}"
    if name in curves.__all__ and name not in ("pr", "roc", "det"):
        return "py", f"bsdsbench.curves.{name}"
    if text in COMMANDS and text not in ("run", "data"):
        return "doc", f"generated/verbs/{text}"
    if text in preset_names():
        return "doc", f"reference/protocols#{text}"
    if text in tasks():
        return "doc", "reference/protocols#tasks"
    return None


# Links to files of the repository, which work in a clone -> the pages that are made from them.
PAGES = {
    r"(?:\.\./)*datasets/README\.md": "/generated/data/index.md",
    r"(?:\.\./)*datasets/([\w-]+\.md)": r"/generated/data/\1",
    r"(?:\.\./)*examples/GALLERY_HEADER\.rst": "/auto_examples/index.rst",
    r"(?:\.\./)*examples/(plot_\w+)\.py": r"/auto_examples/\1.rst",
    r"(?:\.\./tutorials/)?results\.ipynb": "/generated/notebook.md",
    r"(?:\.\./tutorials/)?curves\.ipynb": "/generated/notebook_curves.md",
}


def point_at_pages(app: Sphinx, page: str, source: list[str]) -> None:
    for file, made in PAGES.items():
        source[0] = re.sub(rf"\]\({file}", f"]({made}", source[0])
    if page in WORDS:
        entries = ", ".join(f"! {word}" for word in WORDS[page])
        title = re.compile(r"^# .*\n", re.M)
        source[0] = title.sub(rf"\g<0>\n```{{index}} {entries}\n```\n", source[0], count=1)


class LinkCode(SphinxPostTransform):
    """Wrap code that has a page of its own into a link to it."""

    default_priority = 5  # before references are resolved

    def run(self, **kwargs: Any) -> None:
        here = self.env.docname
        for literal in list(self.document.findall(nodes.literal)):
            if _within(literal, (nodes.title, nodes.reference, pending_xref)):
                continue
            found = target_of(literal.astext())
            if found is None or found == ("doc", here):
                continue
            kind, target = found
            if kind == "doc":
                page, at, anchor = target.partition("#")
                uri = self.app.builder.get_relative_uri(here, page) + at + anchor
                link: nodes.Element = nodes.reference("", "", internal=True, refuri=uri)
            else:
                link = pending_xref(
                    "", refdomain="py", reftype="obj", reftarget=target, refdoc=here, refwarn=False
                )
            literal.replace_self(link)
            link += literal


class Captions(SphinxPostTransform):
    """A picture with a title, alone in its paragraph, becomes a figure with that caption."""

    default_priority = 6

    def run(self, **kwargs: Any) -> None:
        for image in list(self.document.findall(nodes.image)):
            around = image.parent
            if image.get("title") and isinstance(around, nodes.paragraph) and len(around) == 1:
                caption = nodes.caption("", image["title"])
                name = f"figure-{Path(image['uri']).stem}"
                around.replace_self(nodes.figure("", image, caption, ids=[name]))


class ByNumber:
    """The order of the examples in the gallery: plot_2 before plot_10."""

    def __init__(self, folder: str) -> None:
        pass

    def __call__(self, name: str) -> tuple[int, str]:
        return int(name.split("_")[1]), name


def _within(node: nodes.Node, kinds: tuple[type, ...]) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, kinds):
            return True
    return False


def describe(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give the page a description: the start of its first paragraph."""
    if doctree is None:
        return
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split()).replace('"', "'")
        if len(text) > 30 and not _within(paragraph, (nodes.table, nodes.footnote)):
            short = text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] + " ..."
            tag = f'<meta name="description" content="{_escaped(short)}">'
            context["metatags"] = context.get("metatags", "") + tag
            return


def shorten(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, sig: Any, returns: Any
) -> Any:
    """Leave out most of a long list of numbers in a signature: 99 thresholds."""
    many = r"\((\d[\d.]*), (?:\d[\d.]*, ){8,}(\d[\d.]*)\)"
    return (re.sub(many, r"(\1, ..., \2)", sig), returns) if sig else None


def list_keywords(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Put the keywords that `**options` stands for into a docstring, before numpydoc reads it."""
    for number, line in enumerate(lines):
        if match := re.fullmatch(r"\*\*options : (\w+)", line):
            fields = attrs.fields_dict(keywords.RunKeywords)
            entries = []
            for keyword in getattr(keywords, match[1]).__annotations__:
                field = fields[keyword]
                kind = re.sub(r"\b(StrPath|Missing|OnError)\b", _plain_kind, str(field.type))
                kind = kind.replace(" | ", " or ")
                entries += [f"{keyword} : {kind}", f"    {field.metadata['help']}"]
            lines[number : number + 2] = entries
            return


def _plain_kind(match: re.Match[str]) -> str:
    return "path" if match[0] == "StrPath" else "str"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def formula(self: Any, node: nodes.Element) -> None:
    """A formula as MathML, which browsers draw without a script; a block of several wraps."""
    if isinstance(node, nodes.math):
        self.body.append(tex2mathml(node.astext()))
    else:
        parts = (tex2mathml(part, as_block=True) for part in node.astext().split(r"\qquad"))
        self.body.append(f'<div class="formula">{"".join(parts)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.add_post_transform(Captions)
    app.add_post_transform(LinkCode)
    app.connect("source-read", point_at_pages)
    app.connect("html-page-context", describe)
    app.connect("autodoc-process-signature", shorten)
    app.connect("autodoc-process-docstring", list_keywords, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

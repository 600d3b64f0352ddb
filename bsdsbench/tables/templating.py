"""The templates of Markdown, LaTeX and HTML tables, which escape all text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from html import escape
from importlib import resources
from typing import TYPE_CHECKING

from bsdsbench.text import escape_unprintable

if TYPE_CHECKING:
    import jinja2

_MARKDOWN = str.maketrans(
    {c: "\\" + c for c in "\\`*_[]|#~$"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
)
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar\allowbreak{}",  # a signature is one long word
        '"': "''",
        "±": r"$\pm$",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        **{c: "\\" + c for c in "&%$#_{}"},
        # A bare bracket or star after the end of a row would be taken as an argument of "\\"
        **{c: "{" + c + "}" for c in "[]*`'"},
    }
)


def _latex_text(text: str) -> str:
    """Escape text for LaTeX. Signed numbers such as -0.5 are put in math mode, to print a minus."""
    text = text.translate(_LATEX)
    text = re.sub("-(?=-)", "-{}", text)  # two hyphens would become a dash
    return re.sub(r"(?<![\w.-])[+-][0-9.]+", r"$\g<0>$", text)


_ESCAPES: dict[str, Callable[[str], str]] = {
    "html": escape,
    "markdown": lambda text: text.translate(_MARKDOWN),
    "latex": _latex_text,
}


@cache
def load_template(text_format: str) -> jinja2.Template:
    """Load the jinja2 template of a format: "html", "markdown" or "latex".

    Every value that it prints is escaped for the format, unless it is already a `Markup`.
    """
    import jinja2
    from markupsafe import Markup

    def escape_value(value: object) -> object:
        if isinstance(value, Markup):
            return value
        return _ESCAPES[text_format](escape_unprintable(str(value)))

    file = resources.files("bsdsbench.tables").joinpath(f"templates/{text_format}")
    environment = jinja2.Environment(
        # Not jinja2's defaults, because braces and percent signs are LaTeX syntax
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        finalize=escape_value,
        keep_trailing_newline=True,
    )
    return environment.from_string(file.read_text("utf-8"))

"""Tables of the presets, the tasks, a signature's words; the pages of the data sets."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from attrs import fields

import bsdsbench as bb
from bsdsbench.protocol.protocol import preset_names
from bsdsbench.protocol.signature import Signature
from bsdsbench.protocol.tasks import Task, tasks

ROOT = Path(__file__).resolve().parents[2]
# What every page of a data set leads to.
DATA_LINKS = (
    "\nOther [data sets](index.md); all [protocols](../../reference/protocols.md); how to "
    "[prepare maps](../../howto/maps.md) and to "
    "[match a published number](../../howto/match.md).\n"
)


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def protocols() -> str:
    """A table of the presets; below it each with its whole line and where it comes from."""
    rows, sections = [], []
    for name in sorted(preset_names()):
        proto = bb.Protocol.preset(name)
        said, *others = proto.describe().partition(": ")[2].split("; ")
        rows.append(f"| [{name}](#{name}) | {said} | {others[0]} | {cell('; '.join(others[1:]))} |")
        text = resources.files("bsdsbench.protocol.presets").joinpath(f"{name}.toml").read_text()
        source = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")]
        source = [re.sub(r"([<*_])", r"\\\1", line) for line in source]
        sections.append(f"## {name}\n\n{proto.describe()}.\n\n" + "\n".join(source) + "\n")
    head = "| name | thresholds | matching | the rest |\n|---|---|---|---|\n"
    meanings = [f"| `{f.name}` | {cell(f.metadata['help'])} |" for f in fields(bb.Protocol)]
    meant = "\n| field | what it means |\n|---|---|\n" + "\n".join(meanings)
    return head + "\n".join(rows) + "\n" + meant + "\n\n" + "\n".join(sections)


def task_table() -> str:
    """Every task that ships, with what it needs and the page that says where that comes from."""
    head = (
        "| task | protocol, metric | check of the set | ground truth, source |\n|---|---|---|---|\n"
    )
    return head + "\n".join(_task_row(task) for task in tasks().values()) + "\n"


def _task_row(task: Task) -> str:
    by = "fingerprint" if task.fingerprint else "ids" if task.ids else "number"
    checked = f"{by} of {task.images} images" if task.images else "not checked"
    cells = (
        f"`{task.name}`",
        f"[{task.protocol}](protocols.md#{task.protocol}), "
        f"[{task.metric}](../metrics/{task.metric}.md)",
        checked,
        f"{task.needs.replace('/', '/<wbr>')}; [{task.page}](../generated/data/{task.page}.md)",
    )
    return f"| {' | '.join(map(cell, cells))} |"


def signature_tables() -> str:
    """The example line of the decoder's page, and every word of it with its meaning."""
    protocol = bb.Protocol.preset("bsds500")
    line = Signature(protocol, "bsds500-test:200/200", "fa866d15", pred="soft8")
    rows = "\n".join(f"| `{word}` | {cell(meaning)} |" for word, meaning in line.decode())
    return (
        f"```text\n{line}\n```\n\n| word | meaning |\n|---|---|\n{rows}\n\n"
        f"The sentence for a paper:\n\n> {line.sentence()}\n"
    )


def data_pages() -> dict[str, str]:
    """The pages of datasets/, their links among each other as they are."""
    pages = {}
    for path in sorted((ROOT / "datasets").glob("*.md")):
        name = "index" if path.stem == "README" else path.stem
        text = path.read_text("utf-8").replace("README.md", "index.md")
        text = text.replace("](../docs/", "](../../")
        # Other links out of the folder have no page here.
        text = re.sub(r"\[([^\]]*)\]\((?!https?:|\.\./\.\./|[\w-]+\.md)[^)]*\)", r"\1", text)
        pages[name] = text
        if name != "index":
            own = ", ".join(f"`{t.name}`" for t in tasks().values() if t.page == name)
            if own:
                link = "[Tasks](../../reference/protocols.md#tasks)"
                pages[name] += f"\n{link} of this set: {own}.\n"
            pages[name] += DATA_LINKS
    pages["index"] += "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"
    return pages

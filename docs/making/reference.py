"""The API pages, the protocols, the tasks, the words of a signature, the data sets."""

from __future__ import annotations

import re
from importlib import import_module, resources
from pathlib import Path
from typing import Any

from attrs import fields

import bsdsbench as bb
from bsdsbench.protocol.decoder import decode, sentence
from bsdsbench.protocol.signature import Signature
from bsdsbench.protocol.tasks import Task, tasks

ROOT = Path(__file__).resolve().parents[2]
GROUPS = {
    "Evaluate": (
        *("evaluate", "evaluate_items", "evaluate_humans", "run", "merge", "Evaluation"),
        *("DetectorRun", "StreamingEvaluator", "Protocol", "NMSParams", "Task"),
    ),
    "One image": (
        *(
            "boundary_counts",
            "pixel_counts",
            "region_counts",
            "match_boundaries",
            "Match",
            "assign",
        ),
        *("thin", "nms", "seg2bdry", "BoundaryCounts", "PixelCounts", "RegionCounts"),
    ),
    "Read files": ("load_ground_truth", "load_prediction", "GroundTruth", "Prediction"),
    "Scores": (
        *("boundary_score", "pixel_score", "region_score", "BoundaryScore", "PixelScore"),
        *("RegionScore", "OperatingPoint", "PRCurve", "f_measure", "ratio"),
    ),
    "Compare and check": ("compare", "Comparison", "doctor", "Finding"),
    "Plots": ("PRCurveDisplay", "ROCCurveDisplay", "DETCurveDisplay"),
    "Errors": ("DataError", "ShapeError"),
}


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# What every page of a data set leads to.
DATA_LINKS = (
    "\nOther [data sets](index.md); all [protocols](../protocols/index.md); how to "
    "[prepare maps](../../howto/maps.md) and to "
    "[match a published number](../../howto/match.md).\n"
)


def api_page() -> str:
    """Every public name in a group, each with a page of its own."""
    grouped = {name for names in GROUPS.values() for name in names}
    rest = sorted(set(bb.__all__) - grouped - {"__version__", "curves"})
    groups = {**GROUPS, **({"More": tuple(rest)} if rest else {})}
    lines = ["API reference", "=============", "", ".. currentmodule:: bsdsbench", ""]
    lines += [
        "``import bsdsbench as bb``; names are loaded when first used. Start with",
        ":func:`evaluate`, :func:`compare` and :class:`Protocol`, or with the",
        ":doc:`tutorials </tutorials/index>`. The :doc:`command line <verbs/index>` does the same.",
        "",
    ]
    for title, names in groups.items():
        known = [n for n in names if n in bb.__all__]
        lines += _summary(title, known)
    lines += [".. currentmodule:: bsdsbench.curves", ""]
    curves: Any = import_module("bsdsbench.curves")
    public = sorted(n for n in curves.__all__ if callable(getattr(curves, n)))
    lines += _summary("Curves of labels and scores (bb.curves)", public)
    return "\n".join(lines) + "\n"


def _summary(title: str, names: list[str]) -> list[str]:
    head = [
        title,
        "-" * len(title),
        "",
        ".. autosummary::",
        "   :toctree: api",
        "   :nosignatures:",
    ]
    return [*head, "", *(f"   {n}" for n in names), ""]


def protocol_pages() -> dict[str, str]:
    """One page per preset: the line that describes it, where it comes from, every field."""
    folder = resources.files("bsdsbench.protocol.presets")
    names = sorted(f.name[:-5] for f in folder.iterdir() if f.name.endswith(".toml"))
    pages = {}
    for name in names:
        text = folder.joinpath(f"{name}.toml").read_text("utf-8")
        proto = bb.Protocol.preset(name)
        source = "\n".join(_comments(text))
        rows = "\n".join(f"| `{k}` | {_value(v)} |" for k, v in proto.leaves().items())
        pages[name] = (
            f"# {name}\n\n{proto.describe()}\n\n{source}\n\n"
            f'Use it with `--protocol {name}` or `bb.Protocol.preset("{name}")`. In a paper:\n\n'
            f"> {sentence(Signature(proto))}\n\n"
            "The [signature](../../reference/signature.md) of a run says the same in one line. "
            "Data sets with their protocols: [data sets](../data/index.md).\n\n"
            f"| field | value |\n|---|---|\n{rows}\n"
        )
    listed = "\n".join(names)
    table = "\n".join(
        f"| [{n}]({n}.md) | {cell(bb.Protocol.preset(n).describe().partition(': ')[2])} |"
        for n in names
    )
    meanings = "\n".join(
        f"| `{f.name}` | {cell(f.metadata['help'])} |" for f in fields(bb.Protocol)
    )
    pages["index"] = (
        "# Protocols\n\nA protocol holds every constant that affects a score. Two scores are "
        "comparable only if their protocols are equal.\n\n| name | what it says |\n|---|---|\n"
        f"{table}\n\n| field | what it means |\n|---|---|\n{meanings}\n\n"
        f"```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    )
    return pages


def task_page() -> str:
    """Every task that ships, with what it needs and the page that says where that comes from."""
    rows = "\n".join(_task_row(task) for task in tasks().values())
    return (
        "# Tasks\n\nA task is a set, a [protocol](protocols/index.md) and a "
        "[metric](metrics/index.md) under one name, SET/METRIC. With a task, nothing else has to "
        "be chosen, and results of one task are comparable.\n\n"
        "```sh\nbsdsbench evaluate maps --gt BSDS500/data/groundTruth/test --task "
        "bsds500-test/boundary -o out/mine\n```\n\n"
        "`evaluate --task` refuses ground truth that is not the set. It compares the fingerprint; "
        "where none is known, the ids or the number of images. `bsdsbench protocols` "
        "prints this list in a terminal.\n\n"
        "| task | protocol, metric | check of the set | ground truth, source |\n"
        f"|---|---|---|---|\n{rows}\n"
    )


def _task_row(task: Task) -> str:
    by = "fingerprint" if task.fingerprint else "ids" if task.ids else "number"
    checked = f"{by} of {task.images} images" if task.images else "not checked"
    cells = (
        f"`{task.name}`",
        f"[{task.protocol}](protocols/{task.protocol}.md), "
        f"[{task.metric}](../metrics/{task.metric}.md)",
        checked,
        f"{task.needs.replace('/', '/<wbr>')}; [{task.page}](data/{task.page}.md)",
    )
    return f"| {' | '.join(map(cell, cells))} |"


def _comments(text: str) -> list[str]:
    """The comment lines of a TOML file, as prose that cannot be mistaken for markup."""
    found = [line.lstrip("# ").rstrip() for line in text.splitlines() if line.startswith("#")]
    return [line.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_") for line in found]


def _value(value: Any) -> str:
    if isinstance(value, list) and len(value) > 12:
        return f"{value[0]}, {value[1]} .. {value[-1]} ({len(value)} values)"
    return cell(f"`{value}`")


def signature_tables() -> str:
    """The example line of the decoder's page, and every word of it with its meaning."""
    line = Signature(
        bb.Protocol.preset("bsds500"), "bsds500-test", 200, 200, "fa866d15", pred="soft8"
    )
    rows = "\n".join(f"| `{word}` | {cell(meaning)} |" for word, meaning in decode(line))
    return (
        f"```text\n{line}\n```\n\n| word | meaning |\n|---|---|\n{rows}\n\n"
        f"The sentence for a paper:\n\n> {sentence(line)}\n"
    )


def data_pages() -> dict[str, str]:
    """The pages of datasets/, their links among each other as they are."""
    pages = {}
    for path in sorted((ROOT / "datasets").glob("*.md")):
        name = "index" if path.stem == "README" else path.stem
        text = path.read_text("utf-8").replace("README.md", "index.md")
        # Links out of the folder have no page here.
        text = re.sub(r"\[([^\]]*)\]\((?!https?:|[\w-]+\.md)[^)]*\)", r"\1", text)
        pages[name] = text
        if name != "index":
            own = ", ".join(f"`{t.name}`" for t in tasks().values() if t.page == name)
            pages[name] += f"\n[Tasks](../tasks.md) of this set: {own}.\n" if own else ""
            pages[name] += DATA_LINKS
    others = "\n".join(name for name in pages if name != "index")
    pages["index"] += f"\n```{{toctree}}\n:hidden:\n\n{others}\n```\n"
    return pages

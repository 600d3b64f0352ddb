"""Pages made from the package itself: protocols, command line, API, data sets."""

from __future__ import annotations

import inspect
import re
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import click

import bsdsbench as bb
from bsdsbench.cli import VERBS, cli
from bsdsbench.integrations import compat

ROOT = Path(__file__).resolve().parent.parent
GROUPS = {
    "Evaluate": (
        *("evaluate", "evaluate_items", "evaluate_humans", "run", "merge", "Evaluation"),
        *("DetectorRun", "StreamingEvaluator", "Protocol", "NMSParams", "Task"),
    ),
    "One image": (
        *("boundary_counts", "pixel_counts", "region_counts", "match_boundaries", "Match"),
        *("thin", "nms", "seg2bdry", "BoundaryCounts", "PixelCounts", "RegionCounts"),
    ),
    "Assignment and training": ("assign", "assign_points", "Assignment", "one_to_one_labels"),
    "Read files": ("load_ground_truth", "load_prediction", "GroundTruth", "Prediction"),
    "Scores": (
        *("boundary_score", "pixel_score", "region_score", "BoundaryScore", "PixelScore"),
        *("RegionScore", "OperatingPoint", "PRCurve", "f_measure", "ratio"),
    ),
    "Compare and check": ("compare", "Comparison", "doctor", "Finding"),
    "Plots": ("PRCurveDisplay", "ROCCurveDisplay", "DETCurveDisplay"),
    "Faults": ("DataError", "ShapeError"),
}


def write_all(out: Path) -> None:
    """Every generated page, below `out`; files that stay the same are not touched."""
    pages = {
        "cli.md": cli_page(),
        "api.rst": api_page(),
        **{f"protocols/{name}.md": text for name, text in protocol_pages().items()},
        **{f"data/{name}.md": text for name, text in data_pages().items()},
    }
    for name, text in pages.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def cli_page() -> str:
    """The help of every verb, with its options as a table."""
    parts = ["# Command line\n", "Results go to standard output, progress to standard error.\n"]
    parts.append(
        "Exit status: 0 done; 1 the answer is no (a regression, a set that is not known, tables "
        "that differ, a target that is not reached); 2 wrong input; 130 interrupted.\n"
    )
    for verb in VERBS:
        command = cli.get_command(click.Context(cli), verb)
        assert command is not None, verb
        parts.append(_command(command, f"bsdsbench {verb}", 2))
    return "\n".join(parts)


def _command(command: click.Command, name: str, level: int) -> str:
    ctx = click.Context(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(ctx)])
    text = inspect.cleandoc(command.help or "").replace("\b\n", "")
    lines = [
        f"{'#' * level} {name}\n",
        text.replace("<", "&lt;") + "\n",
        f"```text\n{usage}\n```\n",
    ]
    records = (p.get_help_record(ctx) for p in command.get_params(ctx))
    rows = [record for record in records if record and record[1]]
    if rows:
        lines += ["| option | what it does |", "|---|---|"]
        lines += [f"| `{_cell(a)}` | {_cell(b).replace('<', '&lt;')} |" for a, b in rows]
        lines.append("")
    if isinstance(command, click.Group):
        for sub in command.list_commands(ctx):
            found = command.get_command(ctx, sub)
            if found:
                lines.append(_command(found, f"{name} {sub}", level + 1))
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def api_page() -> str:
    """Every public name in a group, each with a page of its own."""
    grouped = {name for names in GROUPS.values() for name in names}
    rest = sorted(set(bb.__all__) - grouped - {"__version__", "curves"})
    groups = {**GROUPS, **({"More": tuple(rest)} if rest else {})}
    lines = ["API reference", "=============", "", ".. currentmodule:: bsdsbench", ""]
    lines += ["``import bsdsbench as bb``; names are loaded when first used.", ""]
    for title, names in groups.items():
        known = [n for n in names if n in bb.__all__]
        lines += _summary(title, known)
    lines += [".. currentmodule:: bsdsbench.curves", ""]
    curves: Any = import_module("bsdsbench.curves")
    public = sorted(n for n in curves.__all__ if callable(getattr(curves, n)))
    lines += _summary("Curves of labels and scores (bb.curves)", public)
    lines += [".. currentmodule:: bsdsbench.integrations.compat", ""]
    lines += _summary("Doors (bsdsbench.integrations.compat)", list(compat.__all__))
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
            f'Use it with `--protocol {name}` or `bb.Protocol.preset("{name}")`.\n\n'
            f"| field | value |\n|---|---|\n{rows}\n"
        )
    listed = "\n".join(names)
    table = "\n".join(
        f"| [{n}]({n}.md) | {_cell(bb.Protocol.preset(n).describe().partition(': ')[2])} |"
        for n in names
    )
    pages["index"] = (
        "# Protocols\n\nA protocol holds every constant that moves a score. Two scores are "
        "comparable where their protocols are equal.\n\n| name | what it says |\n|---|---|\n"
        f"{table}\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    )
    return pages


def _comments(text: str) -> list[str]:
    """The comment lines of a TOML file, as prose that cannot be mistaken for markup."""
    found = [line.lstrip("# ").rstrip() for line in text.splitlines() if line.startswith("#")]
    return [line.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_") for line in found]


def _value(value: Any) -> str:
    if isinstance(value, list) and len(value) > 12:
        return f"{value[0]}, {value[1]} .. {value[-1]} ({len(value)} values)"
    return _cell(f"`{value}`")


def data_pages() -> dict[str, str]:
    """The pages of datasets/, their links among each other as they are."""
    pages = {}
    for path in sorted((ROOT / "datasets").glob("*.md")):
        name = "index" if path.stem == "README" else path.stem
        text = path.read_text("utf-8").replace("README.md", "index.md")
        # Links out of the folder have no page here.
        text = re.sub(r"\[([^\]]*)\]\((?!https?:|[\w-]+\.md)[^)]*\)", r"\1", text)
        pages[name] = text
    others = "\n".join(name for name in pages if name != "index")
    pages["index"] += f"\n```{{toctree}}\n:hidden:\n\n{others}\n```\n"
    return pages

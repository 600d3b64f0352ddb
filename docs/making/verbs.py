"""A page for each verb: its help, its options, and what a call on the sample prints."""

from __future__ import annotations

import inspect
import io
import os
import shlex
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

import click

from bsdsbench.cli import GROUPS, cli
from bsdsbench.loaders.sample import sample_root
from making.reference import cell

# Run in this order in one folder, which has `gt` and `images` of the sample. Lines before the last
# one prepare it; the last one's output is shown.
CALLS = {
    "demo": ["bsdsbench demo -o demo"],
    "evaluate": ["bsdsbench evaluate demo/canny/maps --gt gt -o out/canny"],
    "run": ["bsdsbench run sobel images --gt gt -o out/sobel"],
    "merge": [
        "bsdsbench evaluate demo/canny/maps --gt gt -o out/part1 --shard 1/2",
        "bsdsbench evaluate demo/canny/maps --gt gt -o out/part2 --shard 2/2",
        "bsdsbench merge out/part1 out/part2 -o out/whole",
    ],
    "nms": [
        "bsdsbench run structure-tensor-raw images -o raw",
        "bsdsbench nms raw/maps thin",
    ],
    "doctor": ["bsdsbench doctor raw/maps --gt gt"],
    "compare": ["bsdsbench compare out/canny out/sobel"],
    "errors": ["bsdsbench errors out/canny"],
    "worst": ["bsdsbench worst out/canny"],
    "explain": [
        "bsdsbench evaluate raw/maps --gt gt -o out/raw",
        "bsdsbench explain out/raw --target ods=0.756",
    ],
    "plot": ["bsdsbench plot out/canny out/sobel -o pr.pdf"],
    "curves": ["bsdsbench curves scores.csv --kind roc"],
    "report": ["bsdsbench report out/canny out/sobel --format markdown"],
    "view": ["bsdsbench view --help"],  # a call would serve until Ctrl-C
    "share": ["bsdsbench share out/canny -o canny.bsds.npz --licence CC0-1.0"],
    "check": [
        "bsdsbench check out/canny --baseline baseline.json --update",
        "bsdsbench check out/canny --baseline baseline.json",
    ],
    "data": ["bsdsbench data check gt"],
    "protocols": ["bsdsbench protocols nyudv2"],
}
# What the folder has besides; a page shows those that its call names.
FILES = {
    "scores.csv": "label,score\n1,0.9\n1,0.6\n1,0.4\n-1,0.7\n-1,0.3\n-1,0.2\n",
}
# The sample is no known set, which `data check` says by its exit status.
STATUS = {"data": 1}


def outputs() -> dict[str, str]:
    """Verb -> what its call prints. Raises RuntimeError if a call fails."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "gt").symlink_to(sample_root() / "groundTruth" / "test")
        (folder / "images").symlink_to(sample_root() / "images" / "test")
        for file, text in FILES.items():
            (folder / file).write_text(text)
        for verb, lines in CALLS.items():
            for line in lines:
                status, found[verb] = _called(shlex.split(line)[1:], folder)
                if status not in (0, STATUS.get(verb, 0)):
                    raise RuntimeError(f"{line}: exit status {status}")
    return found


def _called(words: list[str], folder: Path) -> tuple[int, str]:
    """Exit status and output of a call made in `folder`, in this process and without others."""
    options = {option.name for option in _command(words[0]).params}
    if "workers" in options:
        words = [*words, "--workers", "1"]
    if "seconds" in options:  # also on a machine with other work
        words = [*words, "--seconds", "3600"]
    env = {"COLUMNS": "100", "NO_COLOR": "1", "PATH": _bin_first()}
    out, back = io.StringIO(), Path.cwd()
    os.chdir(folder)
    try:
        with patch.dict(os.environ, env), redirect_stdout(out):
            status = cli.main(words, standalone_mode=False)
    except click.exceptions.Exit as end:
        status = end.exit_code
    finally:
        os.chdir(back)
    return status or 0, out.getvalue().replace(str(sample_root()), "SAMPLE")


def _bin_first() -> str:
    """The path as in an active environment: `demo` then names our command without its folder."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def table() -> str:
    """Every verb with what it does, by groups."""
    lines = []
    for group, names in GROUPS.items():
        lines += [f"## {group}\n", "| verb | what it does |", "|---|---|"]
        for verb in names:
            said = cell(_command(verb).get_short_help_str(200))
            lines.append(f"| [{verb}](../generated/verbs/{verb}.md) | {said} |")
        lines.append("")
    return "\n".join(lines)


def pages(printed: dict[str, str]) -> dict[str, str]:
    """A page for each verb."""
    return {
        verb: _page(verb, _command(verb), group, printed.get(verb, ""))
        for group, names in GROUPS.items()
        for verb in names
    }


def _command(verb: str) -> click.Command:
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None, verb
    return command


def _page(verb: str, command: click.Command, group: str, printed: str) -> str:
    others = ", ".join(f"[{name}]({name}.md)" for name in GROUPS[group] if name != verb)
    also = f"Verbs for a similar purpose: {others}. " if others else ""
    calls, shown = "\n".join(CALLS[verb]), printed.rstrip() or "(nothing on standard output)"
    used = "".join(
        f"`{file}`:\n\n```text\n{text}```\n\n" for file, text in FILES.items() if file in calls
    )
    example = (
        f"## A call and its output\n\n{used}```sh\n{calls}\n```\n\n```text\n{shown}\n```\n\n"
        "The sample has 16 synthetic images; this ran when the site was built.\n\n"
    )
    return (
        f"# bsdsbench {verb}\n\n{_help(command)}\n{example}"
        f"{_options(command, f'bsdsbench {verb}', 2)}\n"
        f"{also}All verbs: [command line](../../reference/verbs.md). Settings of a run: "
        "[protocols](../../reference/protocols.md). Words: "
        "[glossary](../../reference/glossary.md).\n"
    )


def _help(command: click.Command) -> str:
    text = inspect.cleandoc(command.help or "").replace("\b\n", "")
    return text.replace("<", "&lt;") + "\n"


def _options(command: click.Command, name: str, level: int) -> str:
    ctx = click.Context(command, info_name=name, show_default=True)
    usage = " ".join([name, *command.collect_usage_pieces(ctx)])
    title = "Options" if level == 2 else name
    lines = [f"{'#' * level} {title}\n"]
    if level > 2:
        lines.append(_help(command))
    lines.append(f"```text\n{usage}\n```\n")
    command.get_help(ctx)  # some help texts, as that of --metrics, are made when they are asked for
    records = (p.get_help_record(ctx) for p in command.get_params(ctx))
    rows = [record for record in records if record and record[1]]
    if rows:
        lines += ["| option | what it does |", "|---|---|"]
        lines += [f"| `{cell(a)}` | {cell(b).replace('<', '&lt;')} |" for a, b in rows]
        lines.append("")
    if isinstance(command, click.Group):
        for sub in command.list_commands(ctx):
            found = command.get_command(ctx, sub)
            if found:
                lines.append(_options(found, f"{name} {sub}", level + 1))
    return "\n".join(lines)

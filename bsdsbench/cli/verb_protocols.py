"""bsdsbench protocols: the presets and their constants, and the tasks."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from bsdsbench.cli.options import format_option, verb

if TYPE_CHECKING:
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.protocol.signature import Signature
    from bsdsbench.protocol.tasks import Task

NAME_WIDTH = 26
NAMED = ("name", "version", "nms_params", "options")


@verb("protocols", short_help="List the presets with their constants, and the tasks.")
@click.argument("name", required=False)
@format_option("table", "toml", "json")
def command(name: str | None, form: str) -> int:
    """List protocols and tasks, or show the one called NAME (or a .toml file of a protocol).

    A task (SET/METRIC) is a set, a protocol and a metric under one name, for `evaluate --task`. It
    is listed with its set's fingerprint, the ground truth that it needs, and the page of datasets/
    that says where that comes from.

    NAME may also be a signature, the line under a table: each of its words is explained, and
    the last line is a sentence for a paper.
    """
    from bsdsbench.cli.evaluating import print_json
    from bsdsbench.protocol.protocol import Protocol, preset_names, preset_text, toml_text
    from bsdsbench.protocol.signature import Signature
    from bsdsbench.protocol.tasks import Task, tasks

    signature = Signature.parse(name) if name and "|" in name else None
    of_task = not signature and name is not None and "/" in name and not name.endswith(".toml")
    shown = [Task.load(str(name))] if of_task else [] if name else list(tasks().values())
    if signature:
        chosen = [signature.protocol]
    else:
        chosen = [] if of_task else [Protocol.load(n) for n in ([name] if name else preset_names())]
    if form == "json":
        told = {"protocols": [p.to_mapping() for p in chosen]}
        print_json(told | {"tasks": [task.to_mapping() for task in shown]})
    elif form == "toml":
        print("\n".join(p.to_toml() for p in chosen), end="")
        for task in shown if of_task else ():
            print(toml_text(task.to_mapping()), end="")
    elif signature:
        _explain(signature)
    elif name in preset_names():
        print(preset_text(str(name)), end="")
    elif name:
        for protocol in chosen:
            print(f"{protocol.describe()}; --nms means {protocol.nms_params.describe()}")
        for task in shown:
            print(f"{task.describe()}; needs {task.needs} (datasets/{task.page}.md)")
    else:
        _list(chosen, shown)
    return 0


def _list(protocols: Sequence[Protocol], of: Sequence[Task]) -> None:
    """A line or two for each: what it is for, and the shared fields in which it is not bsds500."""
    from attrs import fields

    from bsdsbench.protocol.protocol import Protocol, preset_text, short

    print(
        "Protocols, with what they change in bsds500; `bsdsbench protocols NAME` shows all fields"
    )
    usual = Protocol.preset("bsds500").leaves()
    for one in protocols:
        what = re.split(r"[:,(.]", preset_text(one.name)[1:])[0].strip()
        pairs = [(k, v) for k, v in one.leaves().items() if k in Protocol.names()]
        other = [f"{k} {short(v)}" for k, v in pairs if k not in NAMED and v != usual[k]]
        _print_item(f"{one.name} v{one.version}", "; ".join([what.replace("\n# ", " "), *other]))
    print("\nFields, for `evaluate --set FIELD=VALUE`, with their values in bsds500")
    for f in fields(Protocol):
        value = usual.get(f.name)
        told = "" if value is None else f" ({short(value).lower()})"
        _print_item(f.name + told, f.metadata["help"])
    print("\nTasks, for `evaluate --task`; needs and source of one: `bsdsbench protocols NAME`")
    for task in of:
        count = f"{task.images} images" if task.images else "images not counted"
        known = "" if task.fingerprint else ", no fingerprint known"
        _print_item(f"{task.name} v{task.version}", f"protocol {task.protocol}, {count}{known}")


def _print_item(name: str, text: str) -> None:
    width = shutil.get_terminal_size().columns
    start = f"  {name:{NAME_WIDTH}}  "
    print(textwrap.fill(start + text, width, subsequent_indent=" " * (NAME_WIDTH + 4)))


def _explain(signature: Signature) -> None:
    for word, meaning in signature.decode():
        print(f"{word:20}  {meaning}")
    print(f"\n{signature.sentence()}")

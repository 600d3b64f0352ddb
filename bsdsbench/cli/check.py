"""Verbs that check: check, data, protocols."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from click import argument, option

from bsdsbench.cli.shared import (
    Verb,
    _quiet,
    bootstrap,
    path,
    print_json,
    printed,
    progress,
    quiet,
    refuse,
    say,
    verb,
    words,
)

NAME_WIDTH = 26
NAMED = ("name", "version", "nms_params", "options")


@verb(short_help="Fail if a run is worse than a baseline.")
@argument("run", type=click.Path(), metavar="OUT")
@path("--baseline", help="Baseline file (JSON).  [required]")
@words(
    "--scores",
    metavar="SCORE,...",
    help="The scores to check, such as contour.dice,ods; default: all. --update keeps the choice "
    "in the baseline.",
)
@option(
    "--tolerance",
    multiple=True,
    metavar="X|SCORE=X",
    help="How much worse a score may be: 0.01, or 5% of the baseline's value; default 0.002. May "
    "be repeated for single scores. --update keeps it in the baseline.",
)
@option("--statistical", is_flag=True, help="Fail only if the drop is also significant.")
@option("--level", type=float, default=0.95, help="Significance level is 1 - LEVEL.")
@bootstrap
@printed("table", "json")
@option("--quiet", is_flag=True, callback=_quiet, help="Show only scores that failed.")
@path("--junit", help="Also write JUnit XML to this file.")
@path("--summary", help="Also write Markdown to this file.")
@option(
    "--update",
    is_flag=True,
    help="Write the baseline from OUT instead of checking it; stored tolerances stay.",
)
def check(
    run: str,
    baseline: str | None,
    scores: list[str] | None,
    tolerance: tuple[str, ...],
    form: str,
    quiet: bool,
    junit: str | None,
    summary: str | None,
    update: bool,
    **options: Any,
) -> int:
    """Compare the run in OUT with a baseline: exit status 1 if a score is worse."""
    import bsdsbench as bb
    from bsdsbench.comparison import gate
    from bsdsbench.files.bounded import write_atomic
    from bsdsbench.runs.score_tables import flat_scores

    if baseline is None:
        makes = f"`bsdsbench check {run} --baseline FILE --update` makes one"
        raise click.UsageError(f"Missing option '--baseline'; {makes}.")
    if update:
        refuse((*options, "form", "junit", "summary"), "--update, which checks nothing")
    loaded, chosen = bb.Evaluation.load(run), scores or []
    if update:
        known = _tolerances(tolerance, flat_scores(loaded.scores()))
        gate.Baseline.of(loaded, known, earlier=baseline, gated=chosen).save(baseline)
        if not quiet:
            print(baseline)
        return 0
    stored = gate.Baseline.load(baseline)
    known = _tolerances(tolerance, stored.scores)
    with progress("check", "samples") as report:
        found = gate.check(
            loaded, stored, tolerance=known, scores=chosen, progress=report, **options
        )
    if junit:
        write_atomic(Path(junit), found.to_junit())
    if summary:
        write_atomic(Path(summary), found.to_markdown())
    if form == "json":
        print_json(found.to_mapping())
    else:
        for line in found.lines(failed_only=quiet):
            print(line)
        for note in found.notes:
            say(note)
    return 0 if found.passed else 1


def _tolerances(items: tuple[str, ...], scores: Iterable[str]) -> dict[str, float | str]:
    """`0.002` or `ods=5%` -> the tolerances by score; one without a score is of all others."""
    from bsdsbench.files.errors import DataError
    from bsdsbench.runs.score_tables import full_name

    known, found = list(scores), dict[str, float | str]()
    for item in items:
        score, _, text = item.rpartition("=")
        try:
            value = float(text.removesuffix("%"))
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise DataError(
                f"--tolerance {item!r}: expected a number from 0, a share such as 5%, or "
                "SCORE=NUMBER"
            )
        found[full_name(score, known)] = text if text.endswith("%") else value
    return {**dict.fromkeys(known, found.pop("")), **found} if "" in found else found


@click.group(short_help="Get a public data set, or identify one.")
def data() -> None:
    """Get public data sets by name, and identify ground truth."""


data.command_class = Verb


@data.command("get", short_help="Download a public set into the cache.")
@argument("name")
@path("--to", help="Download into this new folder; default: the user's cache.")
@option("--url", help="A mirror's .zip or .tar.gz, or the path of an archive.")
@quiet
def get(name: str, to: str | None, url: str | None) -> int:
    """Download a public data set, keep what is needed, and check that it is the right one.

    From the cache `evaluate`, `run` and `doctor --task`, `demo --set` take it by its name. The same
    command resumes a download that broke off. Of a set that cannot be downloaded by name this says
    where it is, with status 2.
    """
    from bsdsbench.loaders import public_sets

    one = public_sets.public_set(name)
    if not (url or one.url):
        print(one.title, f"licence: {one.licence}", f"{one.how} {one.home}", sep="\n")
        return 2
    say(one.title)
    say(f"licence: {one.licence} ({one.home})")
    with progress("data get", "MB") as report:

        def loaded(done: int, total: int, what: str) -> None:
            """Bytes of the address; then images, by their id."""
            if what == (url or one.url):
                report(done >> 20, total >> 20, what)

        print(public_sets.get(name, to, url, loaded))
    return 0


@data.command("check", short_help="Name the set; list missing, altered and extra images.")
@argument("folder", metavar="[PATH]", required=False, type=click.Path())
@option(
    "--protocol",
    default="bsds500",
    metavar="NAME|FILE",
    help="How ground-truth pictures are read (polarity, gray, labels).",
)
@path("--split-file", help="Ids to check, one per line.")
@printed("text", "json")
@quiet
def check_set(
    folder: str | None,
    protocol: str,
    split_file: str | None,
    form: str,
) -> int:
    """Name the ground-truth set and split in PATH; list missing, altered and extra images.

    A set is recognised by its content, in any format or folder. Exit status 0 for a complete known
    set; 1 for anything else. Without PATH, say which public
    sets are in the cache.
    """
    from bsdsbench.files.bounded import listed, show
    from bsdsbench.loaders import public_sets
    from bsdsbench.loaders.identity import folder_fingerprints, identify
    from bsdsbench.protocol.protocol import Protocol

    if folder is None:
        refuse(("protocol", "split_file"), "no PATH")
        here = {}
        for one in public_sets.public_sets().values():
            place = public_sets.cache_folder() / one.name
            if place.is_dir():
                splits = [split for split in one.splits if (place / one.splits[split]).is_dir()]
                here[one.name] = {"folder": str(place), "splits": splits}
        if form == "json":
            print_json(here)
        for name, about in here.items() if form == "text" else ():
            print(f"{name:10} {about['folder']}  {', '.join(about['splits'])}")
        if not here:
            say("no public set is in the cache; `bsdsbench data get bsds500` brings one")
        return 0 if here else 1
    with progress("data check") as report:
        images = folder_fingerprints(folder, Protocol.load(protocol), split_file, report)
    found = identify(images)
    lists = {name: getattr(found, name) for name in ("missing", "altered", "extra")}
    if form == "json":
        print_json(
            {**found.to_mapping(), "like": found.like or None, "whole": found.whole, **lists}
        )
    else:
        print(f"{show(folder)}: {found.describe()}\nfingerprint {found.fingerprint}")
        for name, ids in lists.items():
            if ids:
                print(f"{name} {listed(list(ids))} ({len(ids)} in all)")
    return 0 if found.whole else 1


@verb(short_help="List the presets with their constants, and the tasks.")
@argument("name", required=False)
@printed("table", "toml", "json")
def protocols(name: str | None, form: str) -> None:
    """List protocols and tasks, or show the one called NAME (or a .toml file of a protocol).

    A task (SET/METRIC) is a set, a protocol and a metric under one name, for `evaluate --task`. It
    is listed with its set's fingerprint, the ground truth that it needs, and the page of datasets/
    that says where that comes from.

    NAME may also be a signature, the line under a table: each of its words is explained, and
    the last line is a sentence for a paper.
    """
    from attrs import fields

    from bsdsbench.protocol.protocol import Protocol, preset_names, preset_text, short, toml_text
    from bsdsbench.protocol.signature import Signature
    from bsdsbench.protocol.tasks import Task, tasks

    chosen: list[Protocol] = []
    shown: list[Task] = []
    signature = Signature.parse(name) if name and "|" in name else None
    if signature:
        chosen = [signature.protocol]
    elif name is None:
        chosen, shown = [Protocol.load(each) for each in preset_names()], list(tasks().values())
    elif "/" in name and not name.endswith(".toml"):
        shown = [Task.load(name)]
    else:
        chosen = [Protocol.load(name)]
    if form == "json":
        print_json(
            {
                "protocols": [each.to_mapping() for each in chosen],
                "tasks": [task.to_mapping() for task in shown],
            }
        )
    elif form == "toml":
        print("\n".join(each.to_toml() for each in chosen), end="")
        for task in shown if name else ():
            print(toml_text(task.to_mapping()), end="")
    elif signature:
        for word, meaning in signature.decode():
            print(f"{word:20}  {meaning}")
        print(f"\n{signature.sentence()}")
    elif name in preset_names():
        print(preset_text(str(name)), end="")
    elif name:
        for each in chosen:
            print(f"{each.describe()}; --nms means {each.nms_params.describe()}")
        for task in shown:
            print(f"{task.describe()}; needs {task.needs} (datasets/{task.page}.md)")
    else:
        print("Protocols, and what each changes in bsds500; `bsdsbench protocols NAME` shows all")
        usual = Protocol.preset("bsds500").leaves()
        for each in chosen:
            what = re.split(r"[:,(.]", preset_text(each.name)[1:])[0].strip().replace("\n# ", " ")
            pairs = [(key, v) for key, v in each.leaves().items() if key in Protocol.names()]
            other = [f"{k} {short(v)}" for k, v in pairs if k not in NAMED and v != usual[k]]
            _print_item(f"{each.name} v{each.version}", "; ".join([what, *other]))
        print("\nFields, for `evaluate --set FIELD=VALUE`, with their values in bsds500")
        for field in fields(Protocol):
            value = usual.get(field.name)
            told = "" if value is None else f" ({short(value).lower()})"
            _print_item(field.name + told, field.metadata["help"])
        print("\nTasks, for `evaluate --task`; needs and source of one: `bsdsbench protocols NAME`")
        for task in shown:
            count = f"{task.images} images" if task.images else "images not counted"
            known = "" if task.fingerprint else ", no fingerprint known"
            _print_item(f"{task.name} v{task.version}", f"protocol {task.protocol}, {count}{known}")


def _print_item(name: str, text: str) -> None:
    """A name and what it is, wrapped to the terminal."""
    width = shutil.get_terminal_size().columns
    start = f"  {name:{NAME_WIDTH}}  "
    print(textwrap.fill(start + text, width, subsequent_indent=" " * (NAME_WIDTH + 4)))

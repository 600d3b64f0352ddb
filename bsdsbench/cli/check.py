"""Verbs that check: check, data, protocols."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import argument

from bsdsbench.cli.shared import (
    Verb,
    add_option,
    bootstrap,
    by_column,
    flag,
    grouping,
    path,
    print_json,
    printed,
    progress,
    refuse,
    run_option,
    say,
    verb,
    words,
)

if TYPE_CHECKING:
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.protocol.tasks import Task

NAMED = ("name", "version", "nms_params", "options")


@verb
@argument("run", type=click.Path(), metavar="OUT")
@path("--baseline", "Baseline file (JSON), which --update makes.", required=True)
@words(
    "--scores",
    "The scores to check, such as contour.dice,ods; default: all. --update keeps the choice in the "
    "baseline.",
    metavar="SCORE,...",
)
@add_option(
    "--tolerance",
    "How much worse a score may be: 0.01, or 5% of the baseline's value; default 0.002. May be "
    "repeated for single scores. --update keeps it in the baseline.",
    multiple=True,
    metavar="X|SCORE=X",
)
@flag("--statistical", "Fail only if the drop is also significant.")
@flag("--common", "Check on the images that the run and the baseline both have.")
@grouping
@by_column
@add_option("--level", "Significance level is 1 - LEVEL.", type=float, default=0.95)
@bootstrap
@printed("table", "json")
@path("--junit", "Also write JUnit XML to this file.")
@path("--summary", "Also add Markdown to the end of this file.")
@flag("--update", "Write the baseline from OUT instead of checking it; stored tolerances stay.")
def check_verb(
    run: str,
    baseline: str,
    scores: list[str] | None,
    tolerance: tuple[str, ...],
    form: str,
    junit: str | None,
    summary: str | None,
    update: bool,
    groups: str | None,
    group_by: str | None,
    **options: Any,
) -> int:
    """Fail if a run is worse than a baseline.

    Exit status 1 if a score of the run in OUT is worse. With --quiet only scores that failed are
    shown.
    """
    import bsdsbench as bb
    from bsdsbench.comparison import gate
    from bsdsbench.io import write_atomic
    from bsdsbench.results.score_names import flat_scores
    from bsdsbench.results.score_tables import left_out_notes

    loaded = bb.Evaluation.load(run).with_groups(groups, group_by)
    chosen = scores or []
    quiet = click.get_current_context().meta["quiet"]
    if update:
        refuse((*options, "form", "junit", "summary"), "--update, which checks nothing")
        known = _tolerances(tolerance, flat_scores(loaded))
        gate.Baseline.of(loaded, known, earlier=baseline, gated=chosen).save(baseline)
        for left_out in left_out_notes([loaded]):
            say(left_out.text)
        if not quiet:
            print(baseline)
        return 0
    stored = gate.Baseline.load(baseline)
    options |= {"tolerance": _tolerances(tolerance, stored.scores), "scores": chosen}
    with progress("check", "samples") as report:
        verdict = gate.check(loaded, stored, progress=report, **options)
    if junit:
        write_atomic(Path(junit), verdict.to_junit())
    if summary:
        Path(summary).parent.mkdir(parents=True, exist_ok=True)
        with open(summary, "a", encoding="utf-8") as page:  # which other steps of a job write too
            page.write(f"{verdict.to_markdown().rstrip()}\n\n")
    if form == "json":
        print_json(verdict.to_mapping())
    else:
        for line in verdict.lines(failed_only=quiet):
            print(line)
        if verdict.reading and not quiet:
            print(verdict.reading)
        for note in verdict.notes:
            say(note)
    return 0 if verdict.passed else 1


def _tolerances(items: tuple[str, ...], known: Collection[str]) -> dict[str, float | str]:
    """Return the tolerances by score of texts such as 0.002 or ods=5%.

    One without a score is of all others.
    """
    from bsdsbench.results.score_names import full_name

    usual, given = {}, {}
    for item in items:
        score, _, text = item.rpartition("=")
        value: float | str = text  # a share in %, or what is refused where it is used
        with suppress(ValueError):
            value = float(text)
        if score:
            given[full_name(score, known)] = value
        else:
            usual = dict.fromkeys(known, value)
    return usual | given


@click.group("data", no_args_is_help=False)
def data_verb() -> None:
    """Get a public data set, or identify one."""


data_verb.command_class = Verb


@data_verb.command("get")
@argument("name")
@path("--to", "Download into this new folder; default: the user's cache.")
@add_option("--url", "A mirror's .zip or .tar.gz, or the path of an archive.")
def get_set(name: str, to: str | None, url: str | None) -> int:
    """Download a public set into the cache.

    What is needed is kept, and checked to be the right set. From the cache `evaluate`, `run` and
    `doctor --task` take it by its name. The same command resumes a download that
    broke off. For other sets it prints where to get them and exits with 2.
    """
    from bsdsbench.loaders.sets import public_sets

    one = public_sets.public_set(name)
    if not (url or one.url):
        print(one.title, f"licence: {one.licence}", f"{one.how} {one.home}", sep="\n")
        return 2
    say(one.title)
    say(f"licence: {one.licence} ({one.home})")
    with progress("data get", "MB") as report:

        def loaded(done: int, total: int, what: str) -> None:
            """Bytes of the address; then images, by their id."""
            if report and what == (url or one.url):
                report(done >> 20, total >> 20, what)

        print(public_sets.download(name, to, url, loaded))
    return 0


@data_verb.command("check")
@argument("folder", metavar="[PATH]", required=False, type=click.Path())
@add_option(
    "--protocol",
    "How ground-truth pictures are read (polarity, gray, labels).",
    default="bsds500",
    metavar="NAME|FILE",
)
@run_option("split_file")
@printed("text", "json")
def check_set(
    folder: str | None,
    protocol: str,
    split_file: str | None,
    form: str,
) -> int:
    """Name the set; list missing, altered and extra images.

    A ground-truth set and split is recognised by its content, in any format or folder. Exit status
    0 for a complete known set; 1 for anything else. Without PATH, say which public sets are in the
    cache.
    """
    from bsdsbench.loaders.sets import public_sets
    from bsdsbench.loaders.sets.identity import folder_fingerprints, identify
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.text import listed, show

    if folder is None:
        refuse(("protocol", "split_file", "form"), "no PATH")
        names = public_sets.public_sets()
        folders = map(public_sets.cache_folder().joinpath, names)
        here = [folder for folder in folders if folder.is_dir()]
        for place in here:
            print(f"{place.name:10} {place}")
        if not here:
            say("no public set is in the cache; `bsdsbench data get bsds500` downloads one")
        return 0 if here else 1
    with progress("data check") as report:
        images = folder_fingerprints(folder, Protocol.load(protocol), split_file, report)
    identity = identify(images)
    lists = {name: list(getattr(identity, name)) for name in ("missing", "altered", "extra")}
    if form == "json":
        print_json({**identity.to_mapping(), "whole": identity.whole, **lists})
    else:
        print(f"{show(folder)}: {identity.describe()}\nfingerprint {identity.fingerprint}")
        for name, ids in lists.items():
            if ids:
                print(f"{name} {listed(ids)} ({len(ids)} in all)")
    return 0 if identity.whole else 1


@verb
@argument("name", required=False)
@printed("table", "json")
def protocols_verb(name: str | None, form: str) -> None:
    """List the presets with their constants, and the tasks.

    NAME shows one of them, or a .toml file of a protocol. A task (SET/METRIC) is a set, a protocol
    and a metric under one name, for `evaluate --task`. It is listed with its set's fingerprint, the
    ground truth that it needs, and the page of datasets/ that says where that comes from.

    NAME may also be a signature, the line under a table: each of its words is explained, and
    the last line is a sentence for a paper.
    """
    from bsdsbench.protocol.protocol import Protocol, preset_names, preset_text
    from bsdsbench.protocol.signature import Signature
    from bsdsbench.protocol.tasks import Task, tasks

    chosen = []
    shown = []
    signature = Signature.parse(name) if name and "|" in name else None
    if signature:
        chosen = [signature.protocol]
    elif name is None:
        chosen, shown = [Protocol.load(preset) for preset in preset_names()], list(tasks().values())
    elif "/" in name and not name.endswith(".toml"):
        shown = [Task.load(name)]
    else:
        chosen = [Protocol.load(name)]
    if form == "json":
        print_json(
            {
                "protocols": [preset.to_mapping() for preset in chosen],
                "tasks": [task.to_mapping() for task in shown],
            }
        )
    elif signature:
        for word, meaning in signature.decode():
            print(f"{word:20}  {meaning}")
        print(f"\n{signature.sentence()}")
    elif name in preset_names():
        print(preset_text(str(name)), end="")
    elif name:
        for preset in chosen:
            print(f"{preset.describe()}; --nms means {preset.nms_params.describe()}")
        for task in shown:
            print(f"{task.describe()}; needs {task.needs} (datasets/{task.page}.md)")
    else:
        _print_all(chosen, shown)


def _print_all(chosen: Sequence[Protocol], shown: Sequence[Task]) -> None:
    """Print the protocols, their fields and the tasks."""
    from attrs import fields

    from bsdsbench.protocol.fields import abbreviated
    from bsdsbench.protocol.protocol import Protocol, preset_text

    usual, listed = Protocol.preset("bsds500").leaves(), click.HelpFormatter(max_width=120)
    presets, known, named = [], [], []
    for preset in chosen:
        what = re.split(r"[:,(.]", preset_text(preset.name)[1:])[0].strip().replace("\n# ", " ")
        for key, value in preset.leaves().items():
            if key in Protocol.names() and key not in NAMED and value != usual[key]:
                what += f"; {key} {abbreviated(value)}"
        presets.append((f"{preset.name} v{preset.version}", what))
    for field in fields(Protocol):
        value = usual.get(field.name)
        default_text = "" if value is None else f" ({abbreviated(value).lower()})"
        known.append((field.name + default_text, field.metadata["help"]))
    for task in shown:
        count = f"{task.images} images" if task.images else "images not counted"
        mark = "" if task.fingerprint else ", no fingerprint known"
        what = f"protocol {task.protocol}, {count}{mark}"
        named.append((f"{task.name} v{task.version}", what))
    for heading, lines in (
        ("Protocols, and what each changes in bsds500 (`bsdsbench protocols NAME`)", presets),
        ("Fields, for `evaluate --set FIELD=VALUE`, with their values in bsds500", known),
        ("Tasks, for `evaluate --task` (`bsdsbench protocols NAME` says what it needs)", named),
    ):
        with listed.section(heading):
            listed.write_dl(lines)
    print(listed.getvalue(), end="")

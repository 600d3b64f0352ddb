"""The commands that check: check, data, protocols."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import argument

from bsdsbench.cli.output import print_json, progress, say
from bsdsbench.cli.shared import (
    Given,
    Verb,
    add_option,
    bootstrap_options,
    by_option,
    flag,
    format_option,
    grouping_options,
    path,
    refuse,
    run_option,
    verb,
    word_list,
)

if TYPE_CHECKING:
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.protocol.tasks import Task

# Fields that the summary of a preset leaves out
_NOT_SUMMARISED = ("name", "version", "nms_params", "options")


@verb
@argument("run", type=click.Path(), metavar="OUT")
@path("--baseline", "Baseline file (JSON), which --update makes.", required=True)
@word_list(
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
@grouping_options
@by_option
@add_option("--level", "Significance level is 1 - LEVEL.", type=float, default=0.95)
@bootstrap_options
@format_option("table", "json")
@path("--junit", "Also write JUnit XML to this file.")
@path("--summary", "Also add Markdown to the end of this file.")
@flag("--update", "Write the baseline from OUT instead of checking it; stored tolerances stay.")
def check_verb(given: Given) -> int:
    """Fail if a run is worse than a baseline.

    Exit status 1 if a score of the run in OUT is worse. With --quiet only scores that failed are
    shown.
    """
    import bsdsbench as bb
    from bsdsbench.comparison import gate
    from bsdsbench.io import write_atomic
    from bsdsbench.results.footers import left_out_notes
    from bsdsbench.results.score_names import flat_scores

    evaluation = bb.Evaluation.load(given.run).with_groups(given.groups, given.group_by)
    baseline, checked_scores = given.baseline, given.scores or []
    quiet = click.get_current_context().meta["quiet"]
    options = given.only("statistical", "common", "by", "level", "n_boot", "seed")
    if given.update:
        refuse((*options, "form", "junit", "summary"), "--update, which checks nothing")
        tolerances = _parse_tolerances(given.tolerance, flat_scores(evaluation))
        updated = gate.Baseline.of(evaluation, tolerances, earlier=baseline, gated=checked_scores)
        updated.save(baseline)
        for note in left_out_notes([evaluation]):
            say(note.text)
        if not quiet:
            print(baseline)
        return 0
    stored = gate.Baseline.load(baseline)
    options["tolerance"] = _parse_tolerances(given.tolerance, stored.scores)
    options["scores"] = checked_scores
    with progress("check", "samples") as report:
        verdict = gate.check(evaluation, stored, progress=report, **options)
    if given.junit:
        write_atomic(Path(given.junit), verdict.to_junit())
    if given.summary:
        summary = Path(given.summary)
        summary.parent.mkdir(parents=True, exist_ok=True)
        # Append: other steps of a CI job write to the same file
        with summary.open("a", encoding="utf-8") as page:
            page.write(f"{verdict.to_markdown().rstrip()}\n\n")
    if given.form == "json":
        print_json(verdict.to_mapping())
    else:
        for line in verdict.lines(failed_only=quiet):
            print(line)
        if verdict.reading and not quiet:
            print(verdict.reading)
        for line in verdict.notes:
            say(line)
    return 0 if verdict.passed else 1


def _parse_tolerances(texts: tuple[str, ...], scores: Collection[str]) -> dict[str, float | str]:
    """Parse texts such as "0.002" or "ods=5%" to a tolerance per score.

    A text without a score is the default of all `scores`. Without such a text, scores that no text
    names are missing in the result.
    """
    from bsdsbench.results.score_names import full_name

    defaults = {}
    tolerances = {}
    for text in texts:
        score, _, limit = text.rpartition("=")
        value: float | str = limit  # a percentage stays text; the gate refuses any other text
        with suppress(ValueError):
            value = float(limit)
        if score:
            tolerances[full_name(score, scores)] = value
        else:
            defaults = dict.fromkeys(scores, value)
    return defaults | tolerances


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

    The files that are needed are kept, and checked to be the right set. `evaluate`, `run` and
    `doctor --task` then find the set in the cache by its name. The same command resumes a download
    that broke off. If a set cannot be downloaded, the command prints where to get it and exits
    with status 2.
    """
    from bsdsbench.loaders.sets import public_sets

    public_set = public_sets.public_set(name)
    if not (url or public_set.url):
        print(public_set.title, f"licence: {public_set.licence}", sep="\n")
        print(public_set.how, public_set.home)
        return 2
    say(public_set.title)
    say(f"licence: {public_set.licence} ({public_set.home})")
    with progress("data get", "MB") as report:

        def report_megabytes(done: int, total: int, item: str) -> None:
            """Report the bytes of the archive. Images, which follow by their ids, are skipped."""
            if report and item == (url or public_set.url):
                report(done >> 20, total >> 20, item)

        print(public_sets.download(name, to, url, report_megabytes))
    return 0


@data_verb.command("check")
@argument("folder", metavar="[PATH]", required=False, type=click.Path())
@add_option(
    "--protocol",
    "How ground-truth images are read (polarity, gray, labels).",
    default="bsds500",
    metavar="NAME|FILE",
)
@run_option("split_file")
@format_option("text", "json")
def check_set(
    folder: str | None,
    protocol: str,
    split_file: str | None,
    form: str,
) -> int:
    """Name the set; list missing, altered and extra images.

    A ground-truth set and split is recognised by its content, in any format or folder. The exit
    status is 0 for a complete known set and 1 for anything else. Without PATH, the public sets in
    the cache are listed; the exit status is 1 if the cache has none.
    """
    from bsdsbench.loaders.sets import public_sets
    from bsdsbench.loaders.sets.identity import folder_fingerprints, identify
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.text import listed, show

    if folder is None:
        refuse(("protocol", "split_file", "form"), "no PATH")
        names = public_sets.public_sets()
        set_folders = map(public_sets.cache_folder().joinpath, names)
        in_cache = [set_folder for set_folder in set_folders if set_folder.is_dir()]
        for set_folder in in_cache:
            print(f"{set_folder.name:10} {set_folder}")
        if not in_cache:
            say("no public set is in the cache; `bsdsbench data get bsds500` downloads one")
        return 0 if in_cache else 1
    with progress("data check") as report:
        fingerprints = folder_fingerprints(folder, Protocol.load(protocol), split_file, report)
    identity = identify(fingerprints)
    differences = {kind: list(getattr(identity, kind)) for kind in ("missing", "altered", "extra")}
    if form == "json":
        print_json({**identity.to_mapping(), "whole": identity.whole, **differences})
    else:
        print(f"{show(folder)}: {identity.describe()}\nfingerprint {identity.fingerprint}")
        for kind, ids in differences.items():
            if ids:
                print(f"{kind} {listed(ids)} ({len(ids)} in all)")
    return 0 if identity.whole else 1


@verb
@argument("name", required=False)
@format_option("table", "json")
def protocols_verb(given: Given) -> None:
    """List the presets with their constants, and the tasks.

    NAME shows one preset or task, or a .toml file of a protocol. A task (SET/METRIC) is a set, a
    protocol and a metric under one name, for `evaluate --task`. It is listed with its set's
    fingerprint, the ground truth that it needs, and the page of datasets/ that tells where to get
    the ground truth.

    NAME may also be a signature, the line under a table: each of its words is explained, and
    the last line is a sentence for a paper.
    """
    from bsdsbench.protocol.protocol import Protocol, preset_names, preset_text
    from bsdsbench.protocol.signature import Signature
    from bsdsbench.protocol.tasks import Task, tasks

    name, form = given.name, given.form
    protocols: list[Protocol] = []
    listed_tasks: list[Task] = []
    signature = Signature.parse(name) if name and "|" in name else None
    if signature:
        protocols = [signature.protocol]
    elif name is None:
        protocols = [Protocol.load(preset) for preset in preset_names()]
        listed_tasks = list(tasks().values())
    elif "/" in name and not name.endswith(".toml"):
        listed_tasks = [Task.load(name)]
    else:
        protocols = [Protocol.load(name)]
    if form == "json":
        print_json(
            {
                "protocols": [protocol.to_mapping() for protocol in protocols],
                "tasks": [task.to_mapping() for task in listed_tasks],
            }
        )
    elif signature:
        for word, meaning in signature.decode():
            print(f"{word:20}  {meaning}")
        print(f"\n{signature.sentence()}")
    elif name in preset_names():
        print(preset_text(str(name)), end="")
    elif name:
        for protocol in protocols:
            print(f"{protocol.describe()}; --nms means {protocol.nms_params.describe()}")
        for task in listed_tasks:
            print(f"{task.describe()}; needs {task.needs} (datasets/{task.page}.md)")
    else:
        _print_presets_and_tasks(protocols, listed_tasks)


def _print_presets_and_tasks(presets: Sequence[Protocol], tasks: Sequence[Task]) -> None:
    """Print a list of the presets, of the fields of a protocol, and of the tasks."""
    from attrs import fields

    from bsdsbench.protocol.fields import abbreviated
    from bsdsbench.protocol.protocol import Protocol

    defaults = Protocol.preset("bsds500").leaves()
    preset_lines = [
        (f"{preset.name} v{preset.version}", _summary_of_preset(preset, defaults))
        for preset in presets
    ]
    field_lines = []
    for field in fields(Protocol):
        value = defaults.get(field.name)
        default_text = "" if value is None else f" ({abbreviated(value).lower()})"
        field_lines.append((field.name + default_text, field.metadata["help"]))
    task_list = []
    for task in tasks:
        count = f"{task.images} images" if task.images else "images not counted"
        mark = "" if task.fingerprint else ", no fingerprint known"
        summary = f"protocol {task.protocol}, {count}{mark}"
        task_list.append((f"{task.name} v{task.version}", summary))
    formatter = click.HelpFormatter(max_width=120)
    for heading, lines in (
        ("Protocols, and what each changes in bsds500 (`bsdsbench protocols NAME`)", preset_lines),
        ("Fields, for `evaluate --set FIELD=VALUE`, with their values in bsds500", field_lines),
        (
            "Tasks, for `evaluate --task` (`bsdsbench protocols NAME` says what it needs)",
            task_list,
        ),
    ):
        with formatter.section(heading):
            formatter.write_dl(lines)
    print(formatter.getvalue(), end="")


def _summary_of_preset(preset: Protocol, defaults: Mapping[str, Any]) -> str:
    """Summarise a preset by the start of its first comment and the fields it changes."""
    from bsdsbench.protocol.fields import abbreviated
    from bsdsbench.protocol.protocol import preset_text

    comment = preset_text(preset.name).removeprefix("#")
    summary = re.split(r"[:,(.]", comment)[0].strip().replace("\n# ", " ")
    for key, value in preset.leaves().items():
        if key in preset.names() and key not in _NOT_SUMMARISED and value != defaults[key]:
            summary += f"; {key} {abbreviated(value)}"
    return summary

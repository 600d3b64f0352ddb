"""The commands that check: check, data, protocols."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from bsdsbench.cli import options as opt
from bsdsbench.cli.shared import command, log, option_values, print_json, progress, refuse_given
from bsdsbench.io import write_atomic

if TYPE_CHECKING:
    from bsdsbench.comparison.gate import GateResult
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.protocol.tasks import Task

# Fields of a preset that its summary leaves out
_NOT_SUMMARISED = ("name", "version", "nms_params", "options")


class _CheckArguments(opt.Options):
    run: str = opt.add_argument("OUT", type=click.Path())
    baseline: str = opt.path("Baseline file (JSON), as written by --update.", required=True)
    scores: list[str] | None = opt.word_list(
        "Scores to check, such as contour.dice,ods; default: all. --update stores the choice in "
        "the baseline.",
        metavar="SCORE,...",
    )
    tolerance: tuple[str, ...] = opt.repeatable(
        "By how much a score may be worse: 0.01, or 5% of its value in the baseline; default: "
        "0.002. May be repeated for single scores. --update stores it in the baseline.",
        metavar="X|SCORE=X",
    )
    statistical: bool = opt.flag("Fail only if the drop is also significant.")
    common: bool = opt.flag("Compare only the images that the run and the baseline share.")
    grouping: opt.GroupingOptions = opt.add_options(opt.GroupingOptions)
    by: str | None = opt.by_option
    level: float = opt.add_option(
        "Confidence level; a drop is significant at 1 - LEVEL.", type=float, default=0.95
    )
    bootstrap: opt.BootstrapOptions = opt.add_options(opt.BootstrapOptions)
    output_format: str = opt.format_option("table", "json")
    junit: str | None = opt.path("Also write JUnit XML to this file.")
    summary: str | None = opt.path("Also append a summary in Markdown to this file.")
    update: bool = opt.flag(
        "Write the baseline from OUT, without a check. Stored tolerances are kept."
    )


@command  # its arguments and options are those that _CheckArguments declares
def check_command(args: _CheckArguments) -> int:
    """Compare a run with a baseline, and fail if any score got worse.

    The exit status is 1 if a score of the run in OUT is worse than in the baseline by more than its
    tolerance. With --quiet, only the scores that failed are shown.
    """
    import bsdsbench as bb
    from bsdsbench.comparison import gate
    from bsdsbench.results.score_names import flat_scores
    from bsdsbench.results.score_tables import left_out_notes

    evaluation = bb.Evaluation.load(args.run).with_groups(**option_values(args.grouping))
    # "statistical": fail only for a significant drop. "common": compare the images that both have
    options = option_values(args, ("statistical", "common", "by", "level", "n_boot", "seed"))
    is_quiet = click.get_current_context().params["quiet"]  # every command has --quiet
    scores = args.scores or []  # [] means all
    if args.update:
        unused = (*options, "output_format", "junit", "summary")  # names of options
        refuse_given(unused, "--update, which checks nothing")
        tolerances = _parse_tolerances(args.tolerance, known=flat_scores(evaluation))
        # Tolerances and a choice of scores that are not given are taken from the earlier file
        new_baseline = gate.Baseline.of(evaluation, tolerances, args.baseline, scores)
        new_baseline.save(args.baseline)
        # Name of the run -> its number of images, and those left out
        left_out = {evaluation.name: (len(evaluation.records), evaluation.left_out)}
        for note in left_out_notes(left_out):
            log(note.text)
        if not is_quiet:
            print(args.baseline)
        return 0
    baseline = gate.Baseline.load(args.baseline)
    options["tolerance"] = _parse_tolerances(args.tolerance, known=baseline.scores)
    with progress("check", "samples") as report:
        checked = gate.check(evaluation, baseline, scores=scores, progress=report, **options)
    _write_check(checked, args)
    return 0 if checked.passed else 1


def _write_check(checked: GateResult, args: _CheckArguments) -> None:
    """Write a check to the files of --junit and --summary, then print it as text or JSON.

    With --quiet, the text has only the scores that failed. Notes go to standard error.
    """
    quiet = click.get_current_context().params["quiet"]
    if args.junit:
        write_atomic(Path(args.junit), checked.to_junit())
    if args.summary:
        summary = Path(args.summary)
        summary.parent.mkdir(parents=True, exist_ok=True)
        # Append: other steps of a CI job write to the same file
        with summary.open("a", encoding="utf-8") as page:
            page.write(f"{checked.to_markdown().rstrip()}\n\n")
    if args.output_format == "json":
        print_json(checked.to_mapping())
        return
    for line in checked.lines(failed_only=quiet):
        print(line)
    if checked.reading and not quiet:
        print(checked.reading)  # how the values in the files of the run were interpreted
    for line in checked.notes:
        log(line)


def _parse_tolerances(texts: tuple[str, ...], known: Collection[str]) -> dict[str, float | str]:
    """Parse the values of --tolerance into {full name of a score: tolerance}.

    "0.002" or "5%" applies to all `known` scores; "ods=0.002" or "ods=5%" overrides it for one.
    Numbers become floats. Any other text, such as "5%", is kept, and validated when it is used.
    """
    from bsdsbench.results.score_names import full_name

    tolerances: dict[str, float | str] = {}
    for text in sorted(texts, key=lambda text: "=" in text):  # first those for all scores
        score, _, limit = text.rpartition("=")  # the score is "" if there is no "="
        tolerance: float | str = limit
        with suppress(ValueError):
            tolerance = float(limit)
        names = [full_name(score, known)] if score else known  # "ods" is "boundary.ods"
        tolerances |= dict.fromkeys(names, tolerance)
    return tolerances


@click.group("data", no_args_is_help=False)
def data_command() -> None:
    """Get a public data set, or identify one."""


class _GetArguments(opt.Options):
    name: str = opt.add_argument()
    to: str | None = opt.path("Download into this new folder; default: the cache of the user.")
    url: str | None = opt.add_option(
        "URL of a mirror's .zip or .tar.gz file, or path of an archive."
    )


def _get_set(args: _GetArguments) -> int:
    """Download a public data set into the cache.

    Only the files that are needed are kept, and they are checked to be the right set. `evaluate`,
    `run` and `doctor --task` then find the set by its name. Repeat the command to resume a download
    that broke off. If a set cannot be downloaded, the command prints where to get it, and its exit
    status is 2.
    """
    from bsdsbench.loaders.sets import public_sets

    public_set = public_sets.public_set(args.name)
    source = args.url or public_set.url
    if not source:
        print(public_set.title, f"licence: {public_set.licence}", sep="\n")
        print(public_set.how, public_set.home)
        return 2
    log(public_set.title)
    log(f"licence: {public_set.licence} ({public_set.home})")
    with progress("data get", "MB") as report:

        def report_megabytes(done: int, total: int, item: str) -> None:
            """Report the progress of the download, but not of the unpacking that follows."""
            if report and item == source:  # otherwise `item` is an image id
                report(done >> 20, total >> 20, item)  # bytes to megabytes

        print(public_sets.download(args.name, args.to, args.url, report_megabytes))
    return 0


class _CheckSetArguments(opt.Options):
    folder: str | None = opt.add_argument("[PATH]", required=False, type=click.Path())
    protocol: str = opt.add_option(
        "The protocol says how to read ground-truth images (polarity, gray values, labels).",
        default="bsds500",
        metavar="NAME|FILE",
    )
    split_file: str | None = opt.run_option("split_file")
    output_format: str = opt.format_option("text", "json")


def _check_set(args: _CheckSetArguments) -> int:
    """Identify a data set; list missing, altered and extra images.

    A ground-truth set and its split are recognised by their content, in any format or folder. The
    exit status is 0 for a complete known set, and 1 otherwise. Without PATH, the public sets in the
    cache are listed, and the exit status is 1 if there is none.
    """
    from bsdsbench.loaders.sets import public_sets
    from bsdsbench.loaders.sets.identity import folder_fingerprints, identify
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.text import join_names, show

    if args.folder is None:
        refuse_given(("protocol", "split_file", "output_format"), "no PATH")
        cache = public_sets.cache_folder()
        cached = [cache / name for name in public_sets.public_sets() if (cache / name).is_dir()]
        for set_folder in cached:
            print(f"{set_folder.name:10} {set_folder}")
        if not cached:
            log("no public set is in the cache; `bsdsbench data get bsds500` downloads one")
        return 0 if cached else 1
    with progress("data check") as report:  # image id -> hash of its annotations
        fingerprints = folder_fingerprints(
            args.folder, Protocol.load(args.protocol), args.split_file, report
        )
    identity = identify(fingerprints)  # the known set with the most images in common
    differences = {kind: list(getattr(identity, kind)) for kind in ("missing", "altered", "extra")}
    if args.output_format == "json":
        print_json({**identity.to_mapping(), "whole": identity.whole, **differences})
    else:
        print(f"{show(args.folder)}: {identity.describe()}\nfingerprint {identity.fingerprint}")
        for kind, ids in differences.items():
            if ids:
                print(f"{kind} {join_names(ids)} ({len(ids)} in all)")
    return 0 if identity.whole else 1


data_command.add_command(command(_get_set, "get"))
data_command.add_command(command(_check_set, "check"))


class _ProtocolsArguments(opt.Options):
    name: str | None = opt.add_argument(required=False)
    output_format: str = opt.format_option("table", "json")


@command  # its arguments and options are those that _ProtocolsArguments declares
def protocols_command(args: _ProtocolsArguments) -> None:
    """List the presets with their constants, and the tasks.

    NAME shows one preset or task, or a .toml file of a protocol. A task (SET/METRIC) is a data set,
    a protocol and a metric under one name, for `evaluate --task`. It is listed with the fingerprint
    of its set, the ground truth that it needs, and the page of datasets/ that tells where to get
    the ground truth.

    NAME may also be a signature, the line under a table. Each word of the signature is explained,
    and the last line is a sentence for a paper.
    """
    from bsdsbench.protocol.protocol import Protocol, preset_names, preset_text
    from bsdsbench.protocol.signature import Signature
    from bsdsbench.protocol.tasks import Task, tasks

    protocols, listed_tasks = list[Protocol](), list[Task]()
    # A signature is words between bars, such as "bsdsbench 0.1.0|set:16|thr:99|..."
    signature = Signature.parse(args.name) if args.name and "|" in args.name else None
    if signature:
        protocols = [signature.protocol]
    elif args.name is None:
        protocols = list(map(Protocol.load, preset_names()))
        listed_tasks = list(tasks().values())
    elif "/" in args.name and not args.name.endswith(".toml"):
        listed_tasks = [Task.load(args.name)]
    else:
        protocols = [Protocol.load(args.name)]
    if args.output_format == "json":
        plain_tasks = [task.to_mapping() for task in listed_tasks]
        print_json({"protocols": [p.to_mapping() for p in protocols], "tasks": plain_tasks})
    elif signature:
        for word, meaning in signature.decode():
            print(f"{word:20}  {meaning}")
        print(f"\n{signature.sentence()}")
    elif args.name is None:
        _print_presets_and_tasks(protocols, listed_tasks)
    elif args.name in preset_names():
        print(preset_text(args.name), end="")
    else:
        for protocol in protocols:
            print(f"{protocol.describe()}; --nms means {protocol.nms_params.describe()}")
        for task in listed_tasks:
            print(f"{task.describe()}; needs {task.needs} (datasets/{task.page}.md)")


def _print_presets_and_tasks(protocols: Sequence[Protocol], listed_tasks: Sequence[Task]) -> None:
    """Print three lists: the presets (`protocols`), the fields of a protocol, and the tasks.

    A preset is described by the first phrase of its file's comment, and by the fields whose values
    differ from those of the preset bsds500.
    """
    from bsdsbench.protocol.fields import abbreviate
    from bsdsbench.protocol.protocol import Protocol, preset_text

    # A field that is a table has one item per entry, such as "nms_params.radius": 1
    defaults = Protocol.preset("bsds500").leaves()
    presets = []
    for preset in protocols:
        comment = preset_text(preset.name).removeprefix("#")  # a file begins with its comment
        first_phrase = re.split(r"[:,(.]", comment)[0]  # up to punctuation
        summary = first_phrase.strip().replace("\n# ", " ")
        for key, value in preset.leaves().items():
            is_field = key in preset.names()  # not an entry, such as "nms_params.radius"
            # The name and the version are shown before the summary
            if is_field and key not in _NOT_SUMMARISED and value != defaults[key]:
                summary += f"; {key} {abbreviate(value)}"
        presets.append((f"{preset.name} v{preset.version}", summary))
    fields = []
    for field in attrs.fields(Protocol):
        value = defaults.get(field.name)
        default_text = "" if value is None else f" ({abbreviate(value).lower()})"
        fields.append((field.name + default_text, field.metadata["help"]))
    task_rows = []
    for task in listed_tasks:
        count = f"{task.images} images" if task.images else "images not counted"
        fingerprint = "" if task.fingerprint else ", no fingerprint known"
        summary = f"protocol {task.protocol}, {count}{fingerprint}"
        task_rows.append((f"{task.name} v{task.version}", summary))
    formatter = click.HelpFormatter(max_width=120)
    for heading, rows in (
        ("Protocols, and what each changes in bsds500 (`bsdsbench protocols NAME`)", presets),
        ("Fields, for `evaluate --set FIELD=VALUE`, with their values in bsds500", fields),
        ("Tasks, for `evaluate --task` (`bsdsbench protocols NAME` says what it needs)", task_rows),
    ):
        with formatter.section(heading):
            formatter.write_dl(rows)
    print(formatter.getvalue(), end="")

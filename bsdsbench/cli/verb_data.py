"""bsdsbench data: identify a ground-truth set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bsdsbench.cli.options import Verb, format_option, quiet_option

if TYPE_CHECKING:
    from bsdsbench.loaders.identity import Identity


@click.group("data", short_help="Identify a data set.")
def command() -> None:
    """Identify ground-truth sets."""


command.command_class = Verb


@command.command("check", short_help="Name the set; list missing, altered and extra images.")
@click.argument("path", type=click.Path())
@click.option(
    "--protocol",
    default="bsds500",
    show_default=True,
    metavar="NAME|FILE",
    help="How ground-truth pictures are read (polarity, gray, labels).",
)
@click.option("--split-file", type=click.Path(), help="Ids to check, one per line.")
@click.option(
    "--sets",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="Your own sets, registered with --register.",
)
@click.option("--register", metavar="NAME", help="Register the set under NAME, in the file -o.")
@click.option("-o", "--out", type=click.Path(), help="The JSON file that registers the set.")
@format_option("text", "json")
@quiet_option
def check(
    path: str,
    protocol: str,
    split_file: str | None,
    sets: tuple[str, ...],
    register: str | None,
    out: str | None,
    form: str,
    quiet: bool,
) -> int:
    """Name the ground-truth set and split in PATH; list missing, altered and extra images.

    A set is recognised by its content, in any format or folder. Exit status 0 for a complete known
    set or a set that was registered just now; 1 for anything else.
    """
    from bsdsbench.cli.evaluating import print_json, progress
    from bsdsbench.loaders.identity import folder_fingerprints, identify, load_sets, write_set
    from bsdsbench.protocol.protocol import Protocol

    if bool(register) != bool(out):
        raise click.UsageError("--register NAME and -o FILE go together")
    known = [one for file in sets for one in load_sets(file)]
    with progress("data check", quiet) as report:
        images = folder_fingerprints(path, Protocol.load(protocol), split_file, report)
    if register and out:
        registered = write_set(out, register, images)
        print(f"{register}, {len(images)} images, {registered.fingerprint}, registered in {out}")
        return 0
    found = identify(images, known)
    if form == "json":
        print_json(_mapping(found))
    else:
        for line in _lines(path, found):
            print(line)
    return 0 if found.whole else 1


def _mapping(found: Identity) -> dict[str, Any]:
    lists = {name: list(getattr(found, name)) for name in ("missing", "altered", "extra")}
    like = found.known.name if found.known else None
    return {**found.to_mapping(), "like": like, "whole": found.whole, **lists}


def _lines(path: str, found: Identity) -> list[str]:
    from bsdsbench.files.bounded import listed, show

    lines = [f"{show(path)}: {found.describe()}", f"fingerprint {found.fingerprint}"]
    for word in ("missing", "altered", "extra"):
        if ids := getattr(found, word):
            lines.append(f"{word} {listed(list(ids))} ({len(ids)} in all)")
    return lines

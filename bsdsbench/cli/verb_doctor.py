"""bsdsbench doctor: find errors in the inputs in seconds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from bsdsbench.cli.options import (
    format_option,
    protocol_from,
    protocol_options,
    quiet_option,
    run_option,
    verb,
)


@verb("doctor", short_help="Find errors in the inputs before a run.")
@click.argument("pred_dir", type=click.Path())
@click.option("--gt", "gt_dir", required=True, type=click.Path(), help="Ground-truth folder.")
@click.option("--split-file", type=click.Path(), help="Ids to check, one per line.")
@run_option("pred_kind")
@click.option("--metric", help="What the inputs are for; default: boundary.")
@protocol_options()
@format_option("text", "json")
@quiet_option
def command(
    pred_dir: str,
    gt_dir: str,
    split_file: str | None,
    pred_kind: str | None,
    metric: str | None,
    form: str,
    quiet: bool,
    **options: Any,
) -> int:
    """Find errors in PRED_DIR before a run: names, sizes, values, polarity, NMS.

    Give --split-file, --pred-kind and the options of the protocol as for `evaluate`.
    Exit status 2 if there are errors, 0 if there are only warnings.
    """
    import bsdsbench as bb
    from bsdsbench.cli.evaluating import print_json, progress

    protocol = protocol_from(metrics=(metric,) if metric else (), **options)
    given = {"metric": metric} if metric else {}
    with progress("doctor", quiet, "steps") as report:
        findings = bb.doctor(
            pred_dir,
            gt_dir,
            protocol,
            split_file=split_file,
            pred_kind=pred_kind,
            progress=report,
            **given,
        )
    errors = sum(f.level == "error" for f in findings)
    if form == "json":
        print_json([asdict(f) for f in findings])
    else:
        for finding in findings:
            print(finding.line())
        print(findings.summary())
        print(f"protocol {protocol.describe()}")
    return 2 if errors else 0

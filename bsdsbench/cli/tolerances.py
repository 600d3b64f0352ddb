"""evaluate --max-dist FIRST:LAST:COUNT: scores as a function of the match tolerance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.runs.evaluation import Evaluation
    from bsdsbench.tables.table import Table


def sweep(
    pred_dir: str,
    protocol: Protocol,
    tolerances: str,
    form: str,
    report: Callable[[int, int, str], None],
    options: dict[str, Any],
) -> int:
    """Evaluate at each tolerance, print a line for each, and keep the curve in OUT."""
    from bsdsbench.cli.evaluating import print_json, print_tables
    from bsdsbench.files.errors import DataError
    from bsdsbench.metrics import registry
    from bsdsbench.runs.sweep import parse_range, tolerance_sweep

    out = options.pop("out")
    (metric,) = usual = registry.DEFAULT
    if options["metrics"] != usual:
        raise DataError(f"--max-dist A:B:N: only the {metric} metric has a tolerance")
    runs = tolerance_sweep(
        pred_dir,
        options.pop("gt_dir"),
        protocol,
        parse_range(tolerances),
        progress=report,
        **options,
    )
    if form == "json":
        print_json([{"max_dist": d, metric: r.score(metric).to_mapping()} for d, r in runs])
    else:
        print_tables([_table(runs, f"protocol, but for max_dist: {protocol.describe()}")])
    if out:
        _keep(runs, Path(out))
        if form != "json":
            print(f"results  {out}")
    return 2 if any(run.failed for _, run in runs) else 0


def _table(runs: list[tuple[float, Evaluation]], caption: str) -> Table:
    from bsdsbench.tables.table import Column, Table

    columns = [Column("max_dist", "max_dist", "", ".4g")]
    columns += [Column(key, key.upper(), "", ".4f") for key in ("ods", "ois", "ap")]
    scores = [(d, run.boundary_score()) for d, run in runs]
    rows = [[d, s.ods.f, s.ois.f, s.ap] for d, s in scores]
    return Table("tolerance", "Scores over the tolerance", columns, rows, caption=caption)


def _keep(runs: list[tuple[float, Evaluation]], out: Path) -> None:
    """tolerance.csv, .png and .svg, and each run in a folder of its own."""
    from bsdsbench.plotting.style import for_file, save, sign
    from bsdsbench.plotting.tolerance import ToleranceDisplay
    from bsdsbench.tables.output import write_tables

    for max_dist, run in runs:
        run.save(out / f"max_dist_{max_dist:.6g}")
    write_tables([_table(runs, "")], out / "tolerance.csv", "csv")
    with for_file():
        figure = ToleranceDisplay.from_sweep(runs).plot().figure_
    sign(figure, [run for _, run in runs], [f"max_dist {d:.6g}" for d, _ in runs])
    for suffix in ("png", "svg"):
        save(figure, out / f"tolerance.{suffix}")

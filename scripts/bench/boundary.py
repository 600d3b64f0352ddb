"""Measure speed and memory on a folder of predictions, all comparisons in one run.

    python scripts/bench boundary PRED_DIR GT_DIR [--images 10] [--json FILE]
    python scripts/bench boundary PRED_DIR GT_DIR --peer package.module:function

Sections: stages (milliseconds per image, one core), scratch (the same kernel, each threshold on
its own), scipy (min_weight_full_bipartite_matching per threshold), peer (any callable, see
`measures.against_peer`), pixel (the one-pass kernel), scaling (thresholds, annotators), maps
(sizes, dense maps, other metrics, what data sets take), command (whole processes).
Results go to standard output; run from the root of the project.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the project's own bsdsbench, and tests.reference
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])

import click  # noqa: E402
import maps  # noqa: E402
import measures as measure  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import bsdsbench as bb  # noqa: E402
from bsdsbench.metrics.boundary import boundary_counts  # noqa: E402

SECTIONS = ("stages", "scratch", "scipy", "peer", "pixel", "scaling", "maps", "command")


def show(title: str, rows: dict[str, dict[str, Any]], caption: str = "") -> None:
    """One table: a row per entry, a column per value."""
    columns = list(dict.fromkeys(key for row in rows.values() for key in row))
    table = Table(title=title, caption=caption or None, title_justify="left")
    table.add_column("")
    for column in columns:
        table.add_column(column.replace("_", " "), justify="right")
    for name, row in rows.items():
        table.add_row(name, *(cell(row[c]) if c in row else "" for c in columns))
    Console(width=max(100, Console().width)).print(table)


def cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
    return str(value)


@click.command()
@click.argument("pred_dir", type=click.Path(exists=True, path_type=Path))
@click.argument("gt_dir", type=click.Path(exists=True, path_type=Path))
@click.option("--images", default=10, show_default=True, help="Images for stages; 0: all.")
@click.option("--few", default=10, show_default=True, help="Images for the slow comparisons.")
@click.option("--repeat", default=3, show_default=True, help="Runs of which the least counts.")
@click.option("--sections", default=",".join(SECTIONS), show_default=True)
@click.option("--protocol", default="bsds500", show_default=True)
@click.option("--peer", "peers", multiple=True, metavar="MODULE:FUNCTION")
@click.option("--scipy-thresholds", default=5, show_default=True, help="Run; time is scaled up.")
@click.option("--workers", default="1,2", show_default=True)
@click.option("--largest", default=2_500_000, show_default=True, help="Pixels in scaling by size.")
@click.option("--cold/--no-cold", default=True, show_default=True, help="Also compile anew.")
@click.option(
    "--clock",
    type=click.Choice(list(measure.CLOCKS)),
    default="wall",
    show_default=True,
    help="cpu: processor time, for a busy machine; commands show both.",
)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="All figures as JSON.")
def main(
    pred_dir: Path,
    gt_dir: Path,
    images: int,
    few: int,
    repeat: int,
    sections: str,
    protocol: str,
    peers: tuple[str, ...],
    scipy_thresholds: int,
    workers: str,
    largest: int,
    cold: bool,
    clock: str,
    json_path: Path | None,
) -> None:
    """Benchmark bsdsbench on the images of PRED_DIR (soft maps) and GT_DIR."""
    wanted = sections.split(",")
    if unknown := set(wanted) - set(SECTIONS):
        raise click.UsageError(f"--sections {unknown.pop()!r}: expected some of {SECTIONS}")
    measure.clock = measure.CLOCKS[clock]
    proto = bb.Protocol.preset(protocol)
    pairs = measure.chosen(pred_dir, gt_dir, images)
    cases = [measure.case(one) for one in measure.chosen(pred_dir, gt_dir, few)]
    boundary_counts(cases[0].soft, cases[0].gts, proto)  # compiled before anything is timed
    found: dict[str, Any] = {"machine": measure.machine(), "clock": clock}
    print(*(f"{k} {v}" for k, v in found["machine"].items()), f"{clock} time", sep=", ")

    if "stages" in wanted:
        part = found["stages"] = measure.stages(pairs, proto, repeat)
        rate = f"{part['images']} images, {part['images_per_second']:.1f} images/s on one core"
        show("Milliseconds per image", part["rows"], rate)
    if "scratch" in wanted:
        part = found["scratch"] = measure.against_scratch(cases, proto, repeat)
        ratio = f"median ratio {part['median_ratio']:.1f}, of the sums {part['sum_ratio']:.1f}"
        show("Each threshold from scratch, same kernel (ms)", part["rows"], ratio)
    if "scipy" in wanted:
        part = found["scipy"] = measure.against_scipy(cases, proto, scipy_thresholds)
        note = f"median ratio {part['median_ratio']:.0f}; {part['thresholds_run']} thresholds run"
        show("scipy's min_weight_full_bipartite_matching (ms)", part["rows"], note)
    if "peer" in wanted:
        for name in peers:
            part = found.setdefault("peers", {})[name] = measure.against_peer(name, cases, proto)
            show(f"{name} (ms)", part["rows"], f"median ratio {part['median_ratio']:.1f}")
    if "pixel" in wanted:
        part = found["pixel"] = measure.pixel_kernel(cases, repeat)
        show("All 99 thresholds from one read of the pixels (ms, ratios)", part["rows"])
    if "scaling" in wanted:
        part = found["scaling"] = measure.scaling(cases, proto, repeat)
        show("By thresholds", part["thresholds"])
        show("By annotators", part["annotators"])
    if "maps" in wanted:
        others = maps.other_metrics(cases[0], repeat)
        part = found["maps"] = {
            "size": maps.sizes(cases, proto, repeat, largest),
            "density": maps.densities(cases[0], proto, repeat),
            "others": others,
            "waits": maps.waits(cases, proto, repeat, others[maps.SEMANTIC]["ms"]),
        }
        show("By image size (ms)", part["size"], "fixed radius: as of the first image")
        show("Dense maps (ms)", part["density"])
        show("Other metrics, edge NMS (ms)", part["others"])
        show("What data sets take (maps upsampled to their size)", part["waits"])
    if "command" in wanted:
        counts = [int(n) for n in workers.split(",")]
        part = found["command"] = measure.command(pred_dir, gt_dir, counts, cold)
        show("python -m bsdsbench evaluate, process start to files written", part["rows"])
    if json_path:
        json_path.write_text(json.dumps(found, indent=1, default=float) + "\n")

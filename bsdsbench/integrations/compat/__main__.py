"""python -m bsdsbench.integrations.compat: the command line of the edge_eval_python scripts."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bsdsbench.files.errors import DataError
from bsdsbench.integrations.compat.shared import evaluate_ids, protocol_of, write_official


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--alg", default="HED", show_default=True, help="Name printed before the scores.")
@click.option("--model_name_list", multiple=True, default=("hed",), help="Folders of RESULT_DIR.")
@click.option("--result_dir", required=True, type=click.Path(), help="Raw results, .mat or .npy.")
@click.option("--save_dir", required=True, type=click.Path(), help="Folder for the tables.")
@click.option("--gt_dir", required=True, type=click.Path(), help="Ground-truth folder.")
@click.option("--key", default="result", help="Accepted: a file's only 2-D array is found alone.")
@click.option("--file_format", default=".mat", help="Accepted: the files' suffixes are read.")
@click.option("--workers", default=-1, help="Images at a time; -1: all cores.")
def main(
    alg: str,
    model_name_list: tuple[str, ...],
    result_dir: str,
    save_dir: str,
    gt_dir: str,
    key: str,
    file_format: str,
    workers: int,
) -> None:
    """Apply edge NMS to raw results and evaluate them, one folder per model.

    A model's results are in RESULT_DIR/MODEL, or in RESULT_DIR itself.
    """
    for model in model_name_list:
        folder = Path(result_dir) / model
        source = folder if folder.is_dir() else Path(result_dir)
        protocol = protocol_of(99, 0.0075, True, nms=True)
        count = workers if workers > 0 else None
        run = evaluate_ids(source, gt_dir, None, protocol, workers=count)
        write_official(run, Path(save_dir) / model)
        score = run.boundary_score()
        print(f"{alg} {model}: ODS {score.ods.f:.4f} OIS {score.ois.f:.4f} AP {score.ap:.4f}")


if __name__ == "__main__":
    try:
        main()
    except DataError as error:
        print("\n".join(f"bsdsbench: {line}" for line in error.problems), file=sys.stderr)
        sys.exit(2)

"""bsdsbench saliency: measures of salient object maps."""

from __future__ import annotations

import click

from bsdsbench.cli.options import format_option, one_worker_option, quiet_option


@click.command("saliency", short_help="MAE, F, S, E and weighted F of saliency maps.")
@click.argument("pred_dir", type=click.Path())
@click.option("--gt", "gt_dir", required=True, type=click.Path(), help="Folder of masks.")
@click.option("--beta2", type=float, default=0.3, show_default=True, help="beta^2 of F.")
@click.option("--normalise", is_flag=True, help="Stretch each map to 0 .. 1 first.")
@one_worker_option
@quiet_option
@format_option("table", "json")
def command(
    pred_dir: str, gt_dir: str, beta2: float, normalise: bool, workers: int, quiet: bool, form: str
) -> int:
    """MAE, F, E-measure, S-measure, weighted F, IoU and Dice of PRED_DIR against masks.

    "mean" is the mean of the images' values, "sum" one ratio of the counts added over images.
    """
    from bsdsbench.cli.progress import progress
    from bsdsbench.cli.show import print_json
    from bsdsbench.metrics.saliency import evaluate_saliency, saliency_score

    with progress("saliency", quiet) as report:
        records = evaluate_saliency(
            pred_dir, gt_dir, normalise=normalise, workers=workers, progress=report
        )
    score = saliency_score(records, beta2)
    if form == "json":
        print_json(score.to_mapping())
        return 0
    for name, value in score.to_mapping().items():
        print(f"{name:18} {value:.4f}" if isinstance(value, float) else f"{name:18} {value}")
    stretched = ", maps stretched to 0 .. 1" if normalise else ""
    print(
        f"protocol saliency v1: levels 0 .. 255, >=; beta^2 {beta2:g}; adaptive "
        f"min(2 mean, max); IoU and Dice at 0.5{stretched}"
    )
    return 0

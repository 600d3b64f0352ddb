"""The worst images of a run, and those on which two differ most."""

import json
from dataclasses import replace

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.plotting.grid import draw_grid
from bsdsbench.report.worst import worst_figure, worst_table
from tests.helpers.making import make_set
from tests.helpers.runs import call, counted, refused, write_maps
from tests.helpers.simulated import simulated_run

FIVE = bb.Protocol.preset("bsds500").replace(thresholds=5)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_set(tmp_path_factory.mktemp("tiny") / "set")


@pytest.fixture(scope="module")
def outs(tiny, tmp_path_factory):
    root = tmp_path_factory.mktemp("outs")
    for name, far in (("a", 0.0075), ("b", 0.02)):
        run = counted(*tiny, FIVE.replace(max_dist=far), out=root / name)
        replace(run, name=name).save(root / name)
    return root / "a", root / "b"


def rows(*words):
    (table,) = json.loads(call("worst", *words, "--format", "json"))["tables"]
    return table["rows"]


def test_the_worst_come_first(outs):
    found = rows(outs[0], "-n", 3)
    f = {k: v["ods"] for k, v in bb.Evaluation.load(outs[0]).image_scores("boundary").items()}
    assert [row["image"] for row in found] == sorted(f, key=lambda k: (f[k], k))[:3]
    assert [row["ods_1"] for row in found] == [f[row["image"]] for row in found]


def test_overlays_of_the_listed_images_are_drawn_and_named(outs):
    found = rows(outs[0], "-n", 2, "--overlays", "--quiet")
    drawn = sorted((outs[0] / "overlays").glob("*_best.png"))
    assert sorted(row["overlay_1"] for row in found) == [str(path) for path in drawn]
    assert len(drawn) == 2
    assert "draw them with --overlays" in call("worst", outs[1])


def test_overlays_are_explained_only_if_those_of_every_run_are_drawn(outs, tmp_path):
    run = bb.Evaluation.load(outs[0])
    pair, folders = [run, replace(run, name="copy")], [tmp_path / "a", tmp_path / "b"]
    drawn, missing = "Overlays: green is matched", "No overlays yet"
    worst_table(pair[1:], folders[1:], draw=True)
    assert any(missing in line for line in worst_table(pair, folders).note_lines)
    worst_table(pair[:1], folders[:1], draw=True)
    assert any(drawn in line for line in worst_table(pair, folders).note_lines)
    assert not any("verlays" in line for line in worst_table(pair, []).note_lines)


@pytest.mark.filterwarnings("ignore::bsdsbench.errors.InputWarning")
def test_two_runs_by_the_size_of_their_difference(outs, tiny, tmp_path):
    refused("not comparable", call, "worst", *outs)
    half = tmp_path / "half"
    empty = write_maps(
        tmp_path / "empty", {path.stem: np.zeros((40, 52)) for path in tiny[0].iterdir()}
    )
    counted(empty, tiny[1], FIVE, out=half)
    found = rows(outs[0], half)
    gaps = [abs(row["difference"]) for row in found]
    assert len(found) == 6
    assert gaps == sorted(gaps, reverse=True)
    assert all(row["ods_1"] - row["ods_2"] == row["difference"] for row in found)


def test_what_there_is_not_is_said(outs):
    refused("3 runs, expected one, or two", call, "worst", *outs, outs[0])
    refused(
        "expected one that all runs have: boundary", call, "worst", outs[0], "--metric", "region"
    )


def test_the_columns_asked_for_are_shown_and_the_first_sorts(tmp_path):
    masks = [np.eye(9, dtype=bool), np.ones((9, 9), bool)]
    items = [(f"case{k}", masks[0] ^ (k == 1), masks[k]) for k in range(2)]
    run = bb.evaluate_items(items, "medical", metrics="contour", workers=1)
    run.save(tmp_path / "out")
    found = rows(tmp_path / "out", "--columns", "hd95 directed,dice")
    far = bb.contour.measure("hd%-directed", *items[1][1:])
    assert [[*row.values()] for row in found] == [["case1", far, 16 / 17], ["case0", 0.0, 1.0]]
    assert list(found[0]) == ["image", "hd95-directed_1", "dice_1"]
    assert len(rows(tmp_path / "out", "--columns", "all")[0]) > 20
    refused("score 'nix'", call, "worst", tmp_path / "out", "--columns", "dice,nix")


@pytest.mark.filterwarnings("ignore::bsdsbench.errors.InputWarning")
@pytest.mark.parametrize(("look", "width"), [("page", 6.9), ("column", 3.3)])
def test_a_figure_of_pictures_fits_and_its_text_overlaps_nothing(outs, tmp_path, look, width):
    runs = [
        bb.Evaluation.load(outs[0]),
        replace(bb.Evaluation.load(outs[0]), name="a long name " * 3),
    ]
    ids = list(runs[0].image_ids)[:4]
    grids = []

    def keep(*call):
        grids.append(draw_grid(*call))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bsdsbench.plotting.grid.draw_grid", keep)
        worst_figure(runs, ids, tmp_path / "sup.pdf", look)
    (figure,) = grids
    size = figure.get_size_inches()
    assert size[0] == width
    assert size[1] <= 9.0
    assert len(figure.axes) == 4 * 3  # no pictures, so no empty column of them
    figure.draw_without_rendering()
    texts = [text for ax in figure.axes for text in (ax.title, ax.yaxis.label, ax.xaxis.label)]
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    shown = [text.get_text() for text in texts]
    assert [text for text in shown if text in ids] == ids
    f = runs[0].image_scores("boundary")
    assert shown.count(f"F {f[ids[0]]['ods']:.3f}") >= 2
    for k, box in enumerate(boxes):
        assert box.x0 >= -1
        assert box.x1 <= figure.bbox.width + 1
        assert not any(box.overlaps(other) for other in boxes[k + 1 :])
        assert not any(box.overlaps(ax.bbox.shrunk(0.99, 0.99)) for ax in figure.axes)
    data = (tmp_path / "sup.pdf").read_bytes()
    assert b"/Type /Font" in data


def test_the_verb_draws_the_images_it_lists_first(outs, tmp_path):
    path = tmp_path / "sup.svg"
    call("worst", outs[0], "-n", 1, "--figure", path, "--rows", 2, "--label", "a=Ours", "--quiet")
    words = path.read_text()
    names = [row["image"] for row in rows(outs[0], "-n", 3)]
    assert [f"<!-- {name} -->" in words for name in names] == [True, True, False]
    assert "<!-- Ours -->" in words


def test_images_of_a_method_have_the_mean_over_its_runs(tmp_path):
    runs = [simulated_run(f"s{k}", 9, quality=0.2 * k, seed=k) for k in range(3)]
    other = simulated_run("other", 9, quality=-0.5, seed=7)
    for run in (*runs, other):
        run.save(tmp_path / run.name)
    best = [
        {image_id: row["ods"] for image_id, row in run.image_scores("boundary").items()}
        for run in runs
    ]
    means = {image_id: np.mean([of_run[image_id] for of_run in best]) for image_id in best[0]}
    method = bb.Method("ours", runs)
    table = worst_table([method], [], 4)
    order = sorted(means, key=means.get)[:4]
    assert [row[0] for row in table.rows] == order
    cell = table.rows[0][1]
    assert (cell.value, cell.n) == (pytest.approx(means[order[0]]), 3)
    assert cell.spread == pytest.approx(np.std([of_run[order[0]] for of_run in best], ddof=1))
    assert any("mean ± standard deviation over runs" in note for note in table.notes)
    two = worst_table([method, other], [], 1).plain()
    gaps = {i: means[i] - row["ods"] for i, row in other.image_scores("boundary").items()}
    assert two["image"] == [max(gaps, key=lambda i: abs(gaps[i]))]
    assert two["difference"] == [pytest.approx(max(gaps.values(), key=abs))]
    words = ["--method", f"ours={tmp_path}/s*", "--method", f"base={tmp_path}/other", "-n", 2]
    shown = call("worst", *words, "--spread", "range", "--quiet")
    assert "Where ours and base differ most" in shown
    assert "[smallest, largest]" in shown


def test_scores_that_any_run_of_a_method_lacks_are_left_out(tiny):
    plain, detailed = (counted(*tiny, FIVE, errors=errors) for errors in (False, True))
    runs = [replace(detailed, name="a"), replace(plain, name="b"), replace(detailed, name="c")]
    keys = [
        {column.key for column in worst_table([bb.Method("m", some)], [], columns=["all"]).columns}
        for some in (runs[::2], runs)
    ]
    assert any("absent" in key for key in keys[0])
    assert keys[1] < keys[0]
    assert not any("absent" in key for key in keys[1])


def test_runs_of_a_method_on_other_images_are_refused():
    runs = [simulated_run("a", 9), simulated_run("b", 8)]
    refused("m/a, m/b: 1 images are not in every run", worst_table, [bb.Method("m", runs)], [])

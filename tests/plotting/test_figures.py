"""Whole figures: what may stand together, how they look, and files that do not change."""

import threading
from xml.etree import ElementTree

import click
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image
from skimage import color as color_science

import bsdsbench as bb
from bsdsbench.cli import cli
from bsdsbench.comparison.published import HUMAN_POINT, published_curves
from bsdsbench.plotting import PRCurveDisplay, ROCCurveDisplay, plot_curves, plot_runs
from bsdsbench.plotting.style import PALETTE, curve_lines, save, style
from tests.helpers.simulated import simulated_run


@pytest.fixture(scope="module")
def runs():
    return [
        simulated_run("better", 8, quality=0.4, seed=1),
        simulated_run("worse", 8, quality=0.0, seed=2),
    ]


@pytest.fixture(scope="module")
def nyu():
    return simulated_run("nyu", 8, protocol=bb.Protocol.preset("nyudv2"))


def legend_texts(figure):
    found = figure.axes[0].get_legend() or figure.legends[0]
    return [t.get_text() for t in found.get_texts()]


def colours(figure):
    """Name of each run -> its colour."""
    lines = figure.axes[0].lines
    named = [line for line in lines if str(line.get_label()).startswith("[F=")]
    return {line.get_label().split()[-1]: to_hex(line.get_color()).upper() for line in named}


def test_runs_with_human_and_published_best_first(runs):
    figure = plot_runs(runs, published=("hed", "se"), human=True, force=True, ap=True)
    texts = legend_texts(figure)
    scores = [float(t[3:].partition("]")[0]) for t in texts]
    assert scores == sorted(scores, reverse=True)
    assert "[F=0.788] HED (2015, published), AP 0.840" in texts
    assert "[F=0.803] Human (BSDS500 test)" in texts
    assert len(texts) == 5
    lines = figure.axes[0].lines
    points = [tuple(line.get_xydata()[0]) for line in lines if len(line.get_xdata()) == 1]
    assert HUMAN_POINT in points
    hed = next(line for line in lines if "HED" in str(line.get_label()))
    stored = published_curves()["hed"]
    assert hed.get_xydata().tolist() == np.c_[stored.recall, stored.precision].tolist()


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda a, b, o: plot_runs([a, o]), "better, nyu: protocols differ in max_dist"),
        (lambda a, b, o: plot_runs([o], published=["hed"]), "nyu: protocol nyudv2, but published"),
        (
            lambda a, b, o: plot_runs([], published=["hed", "oef-nyudv2-rgb"]),
            "curves of bsds500-test/boundary and of nyudv2-test/boundary",
        ),
        (lambda a, b, o: plot_runs([], published=["edter"]), "'edter': no curve is stored"),
        (lambda a, b, o: plot_runs([a], human=True), "better: 8 images, but published results"),
        (lambda a, b, o: plot_runs([]), "no runs given"),
        (lambda a, b, o: plot_runs([a], metric="region"), "'region' has no curve"),
    ],
)
def test_refusals(runs, nyu, draw, words):
    with pytest.raises(bb.DataError, match=words):
        draw(*runs, nyu)


@pytest.mark.parametrize("options", [["--published", "nope", "--ap"], ["--no-human"]])
def test_options_of_pr_curves_are_refused_for_other_kinds(options):
    with pytest.raises(click.UsageError, match="cannot be combined with --kind f"):
        cli.main(["plot", "a", "b", "--kind", "f", "-o", "x.png", *options], standalone_mode=False)


def test_human_agreement_stands_beside_runs_of_its_images_alone(runs, nyu):
    for some in ([nyu], [runs[0], nyu]):
        assert len(legend_texts(plot_runs(some, force=True))) == len(some)
    whole = simulated_run("whole", 200)
    assert legend_texts(plot_runs([whole]))[0] == "[F=0.803] Human (BSDS500 test)"


def drawn_legend(figure):
    figure.draw_without_rendering()
    (legend,) = figure.legends or [figure.axes[0].get_legend()]
    return legend


def hidden(figure, box):
    """Labels of the curves, points, and lines of equal F that the legend's box hides, by pixels."""
    ax, found = figure.axes[0], []
    for line in ax.lines:
        path = line.get_transform().transform_path(line.get_path()).interpolated(50)
        inside = (path.vertices > box.min) & (path.vertices < box.max)
        if inside.all(axis=1).any():
            found.append(line.get_label())
    found += [t.get_text() for t in ax.texts if t.get_window_extent().overlaps(box)]
    return found


SIX = ("one", "two with a longer name", "three", "four", "five", "a sixth of a network, fine-tuned")


@pytest.mark.parametrize("look", ["screen", "column", "page", "slide"])
@pytest.mark.parametrize("published", [(), ("hed", "rcf", "se", "mcg", "cob")])
@pytest.mark.parametrize("n", [1, 2, 6])
@pytest.mark.parametrize("kind", ["pr", "f"])
def test_a_legend_hides_no_curve_and_no_label(look, published, n, kind):
    if kind == "f" and published:
        pytest.skip("published results have no curve of F")
    some = [simulated_run(name, 8, quality=0.1 * k, seed=k) for k, name in enumerate(SIX[:n])]
    more = {"published": published, "human": True, "force": True} if published else {}
    figure = plot_runs(some, look=look, kind=kind, **more)
    box, whole = drawn_legend(figure).get_window_extent(), figure.bbox
    assert hidden(figure, box) == []
    assert -1 <= box.x0 < box.x1 <= whole.width + 1
    assert -1 <= box.y0 < box.y1 <= whole.height + 1
    ax = figure.axes[0]
    assert ax.bbox.width > 0.38 * whole.width
    outside = figure.legends and figure.legends[0].get_window_extent()
    assert not outside or not outside.overlaps(ax.get_tightbbox())
    assert ax.yaxis.get_tightbbox().x0 > 0


@pytest.mark.slow
def test_many_curves_leave_the_axes_their_size():
    names = [f"a method of {k}" for k in range(14)]
    figure = plot_runs([simulated_run("x", 8)] * 14, names)
    shown = drawn_legend(figure).get_window_extent()
    assert shown.x0 >= figure.axes[0].bbox.x1
    assert figure.axes[0].bbox.width > 0.8 * figure.bbox.height


@pytest.mark.parametrize(
    ("look", "width"), [("column", 3.3), ("page", 6.9), ("screen", None), ("slide", 10)]
)
def test_long_names_stay_inside_the_figure_whole(runs, look, width):
    names = [letter + "$x" * 100 + letter for letter in "ab"]
    figure = plot_runs(runs, names, look=look)
    assert width in (None, figure.get_size_inches()[0])
    shown = drawn_legend(figure).get_window_extent()
    assert -1 <= shown.x0 < shown.x1 <= figure.bbox.width + 1
    assert figure.axes[0].bbox.width > 0.3 * figure.bbox.width
    assert {"".join(text.split())[9:] for text in legend_texts(figure)} == {*names}
    assert hidden(figure, shown) == []


def test_colours_follow_the_order_of_the_call(runs):
    assert list(colours(plot_runs(runs)).values()) == list(PALETTE[:2])
    assert colours(plot_runs(runs[::-1])) == {"worse": PALETTE[0], "better": PALETTE[1]}
    assert [line.color for line in curve_lines(9)] == [*PALETTE, *PALETTE[:2]]


def test_any_two_colours_are_far_apart():
    """CIEDE2000 as scikit-image computes it, and contrast with white as WCAG defines it."""
    rgb = np.array([list(bytes.fromhex(color[1:])) for color in PALETTE]) / 255
    lab = color_science.rgb2lab(rgb[None])[0]
    for k, first in enumerate(lab):
        for second in lab[k + 1 :]:
            assert color_science.deltaE_ciede2000(first, second) >= 40
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    assert (1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05) > 2).all()


@pytest.mark.slow
@pytest.mark.parametrize(("look", "n_colors"), [("screen", 7), ("slide", 4)])
def test_no_two_methods_are_drawn_alike(runs, look, n_colors):
    names = [f"m{i}" for i in range(27)]
    (ax,) = plot_runs([runs[0]] * len(names), names, look=look).axes
    lines = [line for line in ax.lines if str(line.get_label()).startswith("[F=")]
    looks = {(to_hex(line.get_color()), str(line._dash_pattern)) for line in lines}
    assert len(looks) == len(lines) == len(names)
    assert len({color for color, _ in looks}) == n_colors


def test_runs_and_published_rows_are_renamed_alike(runs, tmp_path):
    labels = {"worse": "Ours, base", "hed": "HED", str(tmp_path / "b"): "Ours"}
    runs[0].save(tmp_path / "b")
    figure = plot_runs(
        [tmp_path / "b", runs[1]], published=["hed", "se"], force=True, labels=labels
    )
    names = [text.split("] ")[1] for text in legend_texts(figure)]
    assert sorted(names) == ["HED", "Ours", "Ours, base", "SE (2015, published)"]
    with pytest.raises(bb.DataError, match="label 'nope': expected keys among better, hed"):
        plot_runs([runs[0]], published=["hed"], force=True, labels={"nope": "x"})
    call = ["plot", str(tmp_path / "b"), "--label", "b=Ours = best", "--no-human", "-o"]
    cli.main([*call, str(tmp_path / "a.svg")], standalone_mode=False)
    # text is drawn as paths, each behind a comment with its words
    assert "] Ours = best -->" in (tmp_path / "a.svg").read_text()
    with pytest.raises(click.BadParameter, match="'b': expected KEY=TEXT"):
        cli.main(["plot", "x", "--label", "b", "-o", "y.png"], standalone_mode=False)


@pytest.mark.slow
def test_boxes_are_the_quartiles_of_the_images(runs, tmp_path):
    figure = plot_runs(runs, kind="box", metric="boundary.f_at_ods", path=tmp_path / "b.pdf")
    (ax,) = figure.axes
    assert [t.get_text() for t in ax.get_xticklabels()] == ["better", "worse"]
    assert ax.get_ylabel() == "Boundaries: F at the ODS threshold of an image"
    for k, run in enumerate(runs, 1):
        scores = [row["f_at_ods"] for row in run.image_scores("boundary").values()]
        quartiles = np.percentile(scores, [25, 75])
        boxes = [line.get_ydata() for line in ax.lines if len(line.get_ydata()) == 5]
        assert (boxes[k - 1].min(), boxes[k - 1].max()) == pytest.approx(tuple(quartiles))
    (ax,) = plot_runs(runs, kind="box").axes
    assert ax.get_ylabel() == "Boundaries: best F of an image"
    with pytest.raises(bb.DataError, match=r"score 'boundary\.x': expected some of boundary\.ods"):
        plot_runs(runs, kind="box", metric="boundary.x")
    with pytest.raises(bb.DataError, match="'region': expected one that all runs have: boundary"):
        plot_runs(runs, kind="box", metric="region")


def test_saliency_has_the_mean_curve_of_its_papers(tmp_path):
    """Mean precision and recall of two maps at 256 levels, here counted at three of them."""
    rng = np.random.default_rng(0)
    items = []
    for name in "ab":
        mask = rng.random((9, 12)) < 0.4
        soft = np.clip(0.5 * mask + 0.7 * rng.random((9, 12)), 0, 1)
        soft.flat[:2] = 0, 1  # the whole range, which maps are stretched to
        items.append((name, np.rint(255 * soft).astype(np.uint8), mask))
    run = bb.evaluate_items(items, "saliency", metrics="saliency", workers=1)
    figure = plot_runs([run], path=tmp_path / "s.svg")
    line = figure.axes[0].lines[0]
    for level in (40, 128, 200):
        found = [(soft >= level, mask) for _, soft, mask in items]
        recall = np.mean([(on & mask).sum() / mask.sum() for on, mask in found])
        precision = np.mean([(on & mask).sum() / on.sum() for on, mask in found])
        gaps = np.abs(line.get_xydata() - [recall, precision]).max(axis=1)
        assert gaps.min() < 1e-12
    assert f"[F={run.score('saliency').max_f_pr:.3f}]" in line.get_label()
    (iso,) = figure.axes[0].collections
    for k, path in enumerate(iso.get_paths(), 1):
        recall, precision = path.vertices.T
        f = 1.3 * recall * precision / (0.3 * precision + recall)
        np.testing.assert_allclose(f, k / 10)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
def test_files_are_the_same_bytes_each_time_and_signed(runs, suffix, tmp_path):
    """As PIL reads a PNG's text, an XML parser an SVG's metadata, and the bytes of a PDF's info."""
    path = tmp_path / f"a.{suffix}"
    save(plot_runs(runs), path)
    first = path.read_bytes()
    plot_runs(runs, path=path)
    assert path.read_bytes() == first
    expected = "\n".join(f"{run.name}: {run.signature}" for run in runs)
    if suffix == "png":
        with Image.open(path) as picture:
            assert picture.text["Description"] == expected
    elif suffix == "svg":
        (told,) = ElementTree.parse(path).iter("{http://purl.org/dc/elements/1.1/}description")
        assert told.text == expected
    else:
        escaped = expected.replace("(", r"\(").replace(")", r"\)").replace("\n", r"\n")
        assert b"/Subject (" in first
        assert escaped.encode() in first or expected.encode() in first


@pytest.mark.slow
def test_pyplot_shows_what_is_drawn_and_not_what_is_written(runs, tmp_path):
    shown = PRCurveDisplay.from_evaluation(runs[0]).plot()
    before = plt.get_fignums()
    assert shown.figure_.number in before
    with style(file=True):
        PRCurveDisplay.from_evaluation(runs[0]).plot()
    plot_runs(runs, path=tmp_path / "a.png")
    plot_curves([ROCCurveDisplay([0, 1], [1, 1])], tmp_path / "b.png")
    PRCurveDisplay.from_evaluation(runs[0]).plot(Figure().add_subplot())
    beside = threading.Thread(target=lambda: PRCurveDisplay([0, 1], [1, 1]).plot())
    beside.start()
    beside.join()
    assert plt.get_fignums() == before


def test_a_users_settings_survive(runs):
    with plt.rc_context({"lines.linewidth": 7.5}):
        with style():
            PRCurveDisplay.from_evaluation(runs[0]).plot()
        assert plt.rcParams["lines.linewidth"] == 7.5

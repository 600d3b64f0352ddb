"""Where the data are that may not be in the project, and a small made set."""

import gc
import os
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import none

from bsdsbench import kernels

# pytest parses what is imported, as the package is a plugin of it. In two threads at once, which
# import kernels for their images, Python's parser fails now and then (SystemError).
for _module in walk_packages(kernels.__path__, "bsdsbench.kernels."):
    import_module(_module.name)

# No deadline: the tests are to pass on a busy machine, too. The same examples each time, so that no
# change is blamed for what another would show; `--hypothesis-profile=random` draws new ones.
_slow = [HealthCheck.too_slow]
settings.register_profile("random", deadline=None, max_examples=80, suppress_health_check=_slow)
settings.register_profile("same", settings.get_profile("random"), derandomize=True)
settings.load_profile("same")

# Hypothesis draws constants of the modules that are imported by then too: other examples wherever
# another test has run before, or a line of the package has changed.
with suppress(ImportError):  # versions before do not
    from hypothesis.internal.conjecture import providers

    providers._get_local_constants = lambda: providers._local_constants

# Files are written thousands of times. That the disk has them shows in no test, that a fault of it
# is one line does (tests/runs/test_folder.py).
os.fsync = lambda fd: None


# Their folders are in memory where there is room for all, which Docker gives only if asked.
if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")


# What is collected stays: to look through it for garbage would take a tenth of the time.
gc.disable()


def pytest_collection_finish():
    given(none())(lambda nothing: None)()  # hypothesis looks for who holds its generator once
    gc.freeze()
    gc.enable()


# Files that share what takes seconds to make.
TOGETHER = {
    "Chromium": [
        f"tests/browser/test_{name}.py" for name in ("report", "site", "soft_maps", "viewer")
    ],
    "detectors": [
        f"tests/test_{name}.py" for name in ("readme", "docstrings", "site_pages", "notebooks")
    ],
    "sample": [
        f"tests/{name}.py"
        for name in ("test_troubleshooting", "test_page_tables", "diagnosis/test_doctor")
    ],
}

# Two halves of what compiling takes.
KERNELS_OF = ("contour,crispness,region,segmentation,pixel", "boundary,depth,wireframe")


def pytest_configure(config):
    """Before several processes test, two compile what all of them need: else each would compile
    it all, and under coverage."""
    from bsdsbench.kernels import never_compiled

    config.option.loadscopereorder = False  # xdist's order is that of the number of tests
    if not getattr(config.option, "numprocesses", None):
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads wait busily
    if never_compiled():
        call = "import sys; from tests.helpers.metric_cases import case_of; "
        command = [sys.executable, "-c", call + "[case_of(m).run for m in sys.argv[1].split(',')]"]
        for process in [subprocess.Popen([*command, names]) for names in KERNELS_OF]:
            process.wait()


def pytest_collection(session):
    """Each of several processes begins to import the tests at another file. What Python and pytest
    make of a file is kept beside it: so each makes a part of it, where all would make all."""
    worker = getattr(session.config, "workerinput", None)
    if worker and session.config.args_source == pytest.Config.ArgsSource.TESTPATHS:
        root = Path(__file__).parent
        files = sorted(root.rglob("test_*.py"))
        first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        for path in files[first:] + files[:first]:
            with suppress(Exception, pytest.skip.Exception):  # they are collected again
                import_module(".".join(path.relative_to(root.parent).with_suffix("").parts))


def pytest_collection_modifyitems(config, items):
    """Files with the most slow tests come first, so that none of them is left to one process;
    those of the browser stay together, and a process has one browser for them."""
    long = Counter(item.path for item in items for _ in item.iter_markers("slow"))
    long |= {item.path: 99 for item in items if item.get_closest_marker("browser")}
    items.sort(key=lambda item: -long[item.path])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """As `--dist loadfile`, but files that share what takes seconds go to one process: Chromium,
    and the maps of the shipped detectors."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return next((name for name, files in TOGETHER.items() if file in files), file)

    if config.getvalue("dist") == "loadfile":
        return Scheduling(config, log)


def _folder(variable, what):
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"{variable} is not set: {what} not available")
    path = Path(value)
    if not path.is_dir():
        pytest.fail(f"{variable}={value}: no such folder")
    return path


@pytest.fixture(scope="session")
def bsds500():
    """The BSDS500 data: images/, groundTruth/, ucm2/ with a val folder in each."""
    return _folder("BSDSBENCH_BSDS500", "BSDS500 val images")


@pytest.fixture(scope="session")
def bsds500_bench():
    """The official five-image self-test with its result tables test_1 .. test_5."""
    return _folder("BSDSBENCH_BSDS500_BENCH", "the official self-test")


@pytest.fixture
def tiny(tmp_path):
    """Six made images of 40 x 52 pixels with two annotators: (predictions, ground truth)."""
    from tests.helpers.making import make_set

    return make_set(tmp_path / "tiny")


@pytest.fixture(scope="session")
def made_maps():
    """Of every shipped detector and image what it made, and of every call the run."""
    return {}, {}


@pytest.fixture(scope="module")
def detectors_once(made_maps):
    """`bb.run` and `bb.evaluate` in this process, no detector called with the same image again:
    for examples, many of which begin with the maps of one detector."""
    import bsdsbench as bb
    from bsdsbench.detectors.baselines import BASELINES

    (maps, made), run = made_maps, bb.run

    def once(name, detect):
        def detected(image):
            key = name, image.shape, image.tobytes()
            if key not in maps:
                maps[key] = detect(image)
            return maps[key]

        return detected

    def kept(function, images, *, out, workers=None, **options):
        call = function, images, *sorted(options.items())
        if call not in made or not made[call].maps.is_dir():
            made[call] = run(function, images, out=out, workers=1, **options)
        return made[call]

    with pytest.MonkeyPatch.context() as patch:
        for name, detect in BASELINES.items():
            patch.setitem(BASELINES, name, once(name, detect))
        patch.setattr(bb, "run", kept)
        patch.setattr("bsdsbench.runs.engine.available_cores", lambda: 1)
        yield


@pytest.fixture(scope="session")
def counts_made():
    """Of every map, image and protocol the counts of boundaries."""
    return {}


@pytest.fixture(scope="module")
def counted_once(counts_made):
    """Boundaries of one map by one protocol are not counted again: for pages, on which several
    functions are given the shipped maps."""
    from bsdsbench.metrics.boundary import BoundaryMetric

    count = BoundaryMetric.count

    def kept(self, pred, gt, protocol, opt, counter=None):
        if counter or "soft" not in pred.parts or "valid" in gt.parts:
            return count(self, pred, gt, protocol, opt, counter)
        drawn = tuple(boundaries.tobytes() for boundaries in gt.boundaries)
        rules = repr((attrs.astuple(protocol), opt))
        key = pred.kind, gt.shape, pred.soft.dtype, pred.soft.tobytes(), drawn, rules
        if key not in counts_made:
            counts_made[key] = count(self, pred, gt, protocol, opt)
        return counts_made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BoundaryMetric, "count", kept)
        yield


@pytest.fixture(scope="module")
def small_pictures():
    """Plots of few pixels, where none looks at them."""
    from bsdsbench.plotting import style

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(style._RC, "savefig.dpi", 40.0)
        yield


@pytest.fixture
def brief_search(monkeypatch):
    """A search for settings ends after a fifth of its seconds, of which the command takes no
    fewer than one."""
    from bsdsbench.diagnosis.explain import Search

    class Brief(Search):
        def __init__(self, run, name, values, sources, seconds, *more):
            super().__init__(run, name, values, sources, seconds / 5, *more)

    monkeypatch.setattr("bsdsbench.diagnosis.explain.Search", Brief)


@pytest.fixture(autouse=True)
def _close_figures():
    """Displays register with pyplot, which warns of twenty open figures."""
    yield
    if plt := sys.modules.get("matplotlib.pyplot"):
        plt.close("all")

"""Mutation testing: one small change of the code at a time; tests that all pass let it live.

    python scripts/mutate.py named [--only WORDS]  the changes of scripts/mutants.toml
    python scripts/mutate.py modules [FILE ...]    every change of these files (default: scores)
        --sample N   of each file, drawn by --seed
        --jobs N     at a time
    python scripts/mutate.py record [FILE]         again, which tests run which lines

A change is tested by the tests that run its line, which coverage.py records once (in .mutants;
again after tests or lines have moved): first those of one test file, then all others. Each runs in
a fork of a process that has the libraries already and reads one file's changed text in place of
it: nothing is written into the tree. Kernels run without the compiler, whose kept functions would
not be the changed ones.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.machinery
import importlib.util
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from changes import ROOT, Mutant, mutants_of

LISTED = ROOT / "scripts" / "mutants.toml"
SCORES = ["bsdsbench/scores", "bsdsbench/metrics", "bsdsbench/comparison", "bsdsbench/curves"]
PLAIN = ("kernels", "metrics", "scores", "curves", "conformance")  # whose tests run kernels
LONGEST = 5  # seconds of processor time of a test, and ...
ENOUGH = 8.0  # ... of tests of other modules for one change
LIBRARIES = "pytest hypothesis numpy numba scipy.io scipy.ndimage scipy.sparse imageio.v3 PIL.Image"
LIBRARIES += " click.testing sklearn.metrics skimage.segmentation h5py filelock rich jinja2 pandas"
PROFILE = "mutants"
STARTS, PATIENCE = 15.0, 4.0  # seconds to import, times what the unchanged code takes


# --- which tests


def record(folder: Path, jobs: int, compiled: bool) -> dict[str, Any]:
    """Which tests run which lines, as coverage.py sees it: {"seconds": {test: seconds},
    "lines": {file: {line: [test, ...]}}}. One fork for each test file."""
    tests = sorted(ROOT.glob("tests/*/**/test_*.py"), key=lambda p: -p.stat().st_size)
    if not compiled:
        tests = [p for p in tests if p.parts[len(ROOT.parts) + 1] in PLAIN]
    tests = [p for p in tests if not {"browser", "scripts", "outside"} & {*p.parts}]
    waiting, running = [str(p.relative_to(ROOT)) for p in reversed(tests)], []
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(start(None, [waiting.pop()], folder, 3600, Watch(folder)))
        time.sleep(0.1)
        codes = {id(each): ended(each) for each in running}
        for each in running:
            if codes[id(each)] not in (None, 0, 1, 5):
                raise SystemExit(each.log.read_text("utf-8", "replace"))
        running = [each for each in running if codes[id(each)] is None]
    found: dict[str, Any] = {"seconds": {}, "lines": {}}
    for part in sorted(folder.glob("*.reached")):
        read = json.loads(part.read_text("utf-8"))
        found["seconds"].update(read["seconds"])
        for file, lines in read["lines"].items():
            into = found["lines"].setdefault(file, {})
            for line, names in lines.items():
                into.setdefault(line, []).extend(names)
    return found


class Watch:
    """A plugin of pytest that writes which test ran which lines, and how long each took."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.seconds, self.failed = folder, Counter[str](), set[str]()

    def pytest_sessionstart(self) -> None:
        import coverage

        self.coverage = coverage.Coverage(None, source=["bsdsbench"], config_file=False)
        self.coverage.set_option("run:disable_warnings", ["no-data-collected"])
        self.coverage.start()
        signal.signal(signal.SIGVTALRM, _too_long)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage.switch_context(nodeid)
        signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration
        if not report.passed:
            self.failed.add(report.nodeid)

    def pytest_runtest_logfinish(self) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        self.coverage.switch_context("")

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        lines = {}
        for file in data.measured_files():
            by_line = data.contexts_by_lineno(file)
            kept = {n: sorted({*names} - {"", *self.failed}) for n, names in by_line.items()}
            lines[str(Path(file).relative_to(ROOT))] = {n: k for n, k in kept.items() if k}
        text = json.dumps({"seconds": self.seconds, "lines": lines})
        (self.folder / f"{os.getpid()}.reached").write_text(text, "utf-8")


def _too_long(*_: object) -> None:
    raise TimeoutError


def tests_of(mutant: Mutant, reached: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The tests that run a mutant's lines, quick ones first: those of the file with the module's
    name or else of the file that has most of them, and all others for as long as ENOUGH."""
    lines, seconds = reached["lines"].get(mutant.file, {}), reached["seconds"]
    if mutant.inside:
        numbers = range(mutant.line, mutant.last + 1)
        names = {name for n in numbers for name in lines.get(str(n), [])}
    else:  # runs while the module is imported
        names = {name for several in lines.values() for name in several}
    files = Counter(name.partition("::")[0] for name in names)
    own = f"test_{Path(mutant.file).stem}"
    first = sorted(files, key=lambda f: (not Path(f).stem.startswith(own), -files[f], f))
    rank = {name: (first.index(name.partition("::")[0]), seconds[name], name) for name in names}
    near = sorted((name for name in names if not rank[name][0]), key=rank.get)
    spent, wide = 0.0, []
    for name in sorted(names - {*near}, key=lambda name: (seconds[name], name)):
        if (spent := spent + seconds[name]) > ENOUGH:
            break
        wide.append(name)
    return near, sorted(wide, key=rank.get)


# --- running them


class _Changed(importlib.machinery.SourceFileLoader):
    """Imports one file's changed text."""

    text = ""

    def get_code(self, fullname: str) -> Any:
        return compile(self.text, self.path, "exec")


class _Finder:
    """Puts the changed file in place of the one on the disk."""

    def __init__(self, mutant: Mutant) -> None:
        parts = Path(mutant.file).with_suffix("").parts
        self.name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        self.mutant = mutant

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.name:
            return None
        where = str(ROOT / self.mutant.file)
        loader = _Changed(name, where)
        loader.text = self.mutant.text
        return importlib.util.spec_from_file_location(name, where, loader=loader)


@dataclass
class Running:
    """A fork that tests one mutant."""

    mutant: Mutant | None
    pid: int
    log: Path
    ends: float


def start(
    mutant: Mutant | None, tests: Sequence[str], folder: Path, seconds: float, *plugins: object
) -> Running:
    """Fork; the child runs the tests with the changed file (None: nothing is changed)."""
    log = folder / f"{time.monotonic_ns()}.txt"
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        code = 99
        try:
            os.setpgid(0, 0)
            out = os.open(log, os.O_WRONLY | os.O_CREAT)
            os.dup2(out, 1), os.dup2(out, 2)
            if mutant:
                sys.meta_path.insert(0, _Finder(mutant))  # type: ignore[arg-type]
            import pytest

            first = [] if plugins else ["-x"]
            code = int(pytest.main([*_options(folder), *first, *tests], plugins))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    return Running(mutant, pid, log, time.monotonic() + seconds)


def _options(folder: Path) -> list[str]:
    words = f"-q --assert=plain --no-header --tb=no -p no:cacheprovider --basetemp={folder}/"
    quick = ["-m", "not (heavy or browser or process)"]
    # Without the compiler, sums that wrap around as they are to do are warned of.
    more = ["-Wignore::RuntimeWarning"] if "NUMBA_DISABLE_JIT" in os.environ else []
    return [*f"{words}{os.getpid()}".split(), f"--hypothesis-profile={PROFILE}", *quick, *more]


def ended(running: Running) -> int | None:
    """pytest's exit status; 98 for one that took too long, None while it runs."""
    pid, status = os.waitpid(running.pid, os.WNOHANG)
    if pid:
        return os.waitstatus_to_exitcode(status)
    if time.monotonic() < running.ends:
        return None
    os.killpg(running.pid, signal.SIGKILL)
    os.waitpid(running.pid, 0)
    return 98


def survivors(
    mutants: Sequence[Mutant], reached: dict[str, Any], jobs: int, folder: Path
) -> list[Mutant]:
    """The mutants with which the tests pass."""
    waiting = [(m, tests) for m in reversed(mutants) if (tests := tests_of(m, reached))[0]]
    alive = [m for m in mutants if not any(m is each for each, _ in waiting)]
    running: list[tuple[Running, list[str]]] = []
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant, (tests, more) = waiting.pop()
            limit = PATIENCE * (STARTS + sum(reached["seconds"][name] for name in tests))
            running.append((start(mutant, tests, folder, limit), more))
        time.sleep(0.02)
        for each, more in [*running]:
            if (code := ended(each)) is not None:
                running.remove((each, more))
                if code == 0 and each.mutant:
                    if more:
                        waiting.append((each.mutant, (more, [])))
                    else:
                        alive.append(each.mutant)
    return sorted(alive, key=lambda m: m.line)


def _finish(running: Running) -> int:
    while (code := ended(running)) is None:
        time.sleep(0.02)
    return code


def prepare(kernels: bool) -> None:
    """What every fork has before it starts: the libraries, none of our modules."""
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    os.environ["PYTHONPATH"] = str(ROOT)
    if kernels:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
    for name in LIBRARIES.split():
        importlib.import_module(name)
    from hypothesis import HealthCheck, Phase, settings

    settings.register_profile(
        PROFILE,
        max_examples=25,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def named(folder: Path, only: str) -> int:
    """Each change of the list: the test that fails. The number that live."""
    alive = 0
    for each in (m for m in listed()["mutant"] if only in m["name"]):
        text = (ROOT / each["file"]).read_text("utf-8")
        changed = Mutant(
            each["file"], "named", each["name"], text.replace(each["old"], each["new"])
        )
        if text == changed.text:
            raise SystemExit(f"{each['name']}: {each['old']!r} is not in {each['file']}")
        run = start(changed, each["tests"], folder, 600)
        code = _finish(run)
        if code not in (0, 1, 2):
            raise SystemExit(run.log.read_text("utf-8", "replace"))
        told = run.log.read_text("utf-8", "replace")
        failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", told, re.M)
        alive += code == 0
        state = "killed" if code else "ALIVE "
        print(f"{state} {each['name']}: {', '.join(failed) or code}", flush=True)
    return alive


def listed() -> dict[str, Any]:
    """The named mutants, and those known to be equivalent."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(LISTED.read_text("utf-8"))


def modules(
    files: Sequence[str], sample: int, seed: int, jobs: int, folder: Path, reached: dict[str, Any]
) -> int:
    """Mutate files; prints those that live by kind. The number that no reason excuses."""
    excuses = listed().get("equivalent", {})
    kinds, dead, tried, unexcused = Counter(), Counter(), 0, 0
    for file in files:
        every = [*mutants_of(file)]
        some = random.Random(f"{seed}{file}").sample(every, min(sample or len(every), len(every)))
        if not some:
            continue
        left = survivors(some, reached, jobs, folder)
        excused = [m for m in left if m.words in excuses.get(m.file, {})]
        left = [m for m in left if m not in excused]
        tried, unexcused = tried + len(some), unexcused + len(left)
        kinds.update(m.kind for m in left)
        dead.update(m.kind for m in some)
        print(f"{file}: {len(some)} of {len(every)}, {len(left)} live", end="", flush=True)
        print(f", {len(excused)} equivalent" if excused else "", flush=True)
        for m in left:
            print(f"    line {m.line}, {m.kind}: {m.words}", flush=True)
    share = 100 * unexcused / max(tried, 1)
    by_kind = ", ".join(f"{k} {kinds[k]} of {n}" for k, n in sorted(dead.items()))
    print(f"{unexcused} of {tried} live, {share:.1f} %: {by_kind}")
    return unexcused


def files_of(paths: Sequence[str]) -> list[str]:
    """Python files below paths, without packages' own."""
    given = [ROOT / p for p in paths]
    found = [q for p in given for q in ([p] if p.is_file() else p.rglob("*.py"))]
    return sorted(str(p.relative_to(ROOT)) for p in found if p.name != "__init__.py")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["named", "modules", "record"])
    parser.add_argument("paths", nargs="*", default=SCORES)
    parser.add_argument("--only", default="")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--reached", type=Path, default=ROOT / ".mutants")
    given = parser.parse_args()
    files = files_of(given.paths)
    kernels = [f for f in files if "/kernels/" in f]
    if given.what != "named" and kernels and len(kernels) < len(files):
        parser.error("kernels are mutated without the compiler: give them alone")
    prepare(bool(kernels) and given.what != "named")
    reached = given.reached / ("kernels.json" if kernels else "others.json")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.what == "named":
            return bool(named(folder, given.only))
        if given.what == "record" or not reached.is_file():
            given.reached.mkdir(exist_ok=True)
            found = record(folder, given.jobs, not kernels)
            reached.write_text(json.dumps(found), "utf-8")
        found = json.loads(reached.read_text("utf-8"))
        if given.what == "record":
            return 0
        return bool(modules(files, given.sample, given.seed, given.jobs, folder, found))


if __name__ == "__main__":
    sys.exit(main())

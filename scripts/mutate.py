"""Mutation testing: one small change of the code at a time; tests that all pass let it live.

    python scripts/mutate.py named [--only WORDS]  the changes of scripts/mutants.toml
    python scripts/mutate.py modules [FILE ...]    every change of these files (default: scores)
        --sample N   of each file, drawn by --seed
        --jobs N     at a time

A file is tested by the test files that have its name or say it; what they let live, by more of
those, the contract of the metrics and the tables of the made set. Each change runs in a fork of a
process that has the libraries already and reads one file's changed text in place of it: nothing is
written into the tree. Kernels run without the compiler, whose kept functions would not be the
changed ones.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import importlib.machinery
import importlib.util
import os
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LISTED = ROOT / "scripts" / "mutants.toml"
SCORES = ["bsdsbench/scores", "bsdsbench/metrics", "bsdsbench/comparison", "bsdsbench/curves"]
CONTRACT = "tests/metrics/test_contract.py"
TABLES = "tests/conformance/test_made_tables.py"
MOST = 4  # test files that name a module, where none has its name
# Of kernels that only metrics' tests run.
NEAR = {
    "outlines": [CONTRACT, "-k", "contour"],
    "distances": [CONTRACT, "-k", "contour"],
    "tallies": ["tests/metrics/test_segmentation.py", CONTRACT, "-k", "segmentation"],
    "ucm": ["tests/metrics/region/test_counting.py"],
}
LIBRARIES = "pytest hypothesis numpy numba scipy.io scipy.ndimage scipy.sparse imageio.v3 PIL.Image"
LIBRARIES += " click.testing sklearn.metrics skimage.segmentation h5py filelock rich jinja2 pandas"
PROFILE = "mutants"
PATIENCE = 4.0  # times what the unchanged code takes, and as many seconds
OPPOSITE = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult},
    **{ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr},
    **{ast.LShift: ast.RShift, ast.RShift: ast.LShift},
}
OTHER_CALL = {"min": "max", "any": "all", "argmin": "argmax", "floor": "ceil", "cumsum": "asarray"}
OTHER_CALL |= {"minimum": "maximum", "less": "less_equal", "zeros": "ones"}
OTHER_CALL |= {new: old for old, new in OTHER_CALL.items() if new != "asarray"}


@dataclass(frozen=True)
class Mutant:
    """A changed file: kind, place and words for people; the text that is imported."""

    file: str
    kind: str
    words: str
    text: str
    line: int = 0


# --- making them


def mutants_of(file: str) -> Iterator[Mutant]:
    """Every change of a file, in the order of its lines."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    for owner, field, index, new, kind in _changes(tree):
        held = getattr(owner, field)
        old = held if index is None else held[index]
        before = ast.unparse(owner)
        _put(owner, field, index, new)
        words = _differing(before, ast.unparse(owner))
        yield Mutant(file, kind, words, ast.unparse(tree), getattr(owner, "lineno", 0))
        _put(owner, field, index, old)


def _put(owner: Any, field: str, index: int | None, value: Any) -> None:
    if index is None:
        setattr(owner, field, value)
    else:
        getattr(owner, field)[index] = value


def _differing(before: str, after: str) -> str:
    return f"{' '.join(before.split())[:100]}  ->  {' '.join(after.split())[:100]}"


def _changes(node: ast.AST) -> Iterator[tuple[Any, str, int | None, Any, str]]:
    """(node, field, index, new value, kind) of each change below a node."""
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)):
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    yield from _own_changes(node)
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params", "type_comment"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changes(child)


def _own_changes(node: ast.AST) -> Iterator[tuple[Any, str, int | None, Any, str]]:
    match node:
        case ast.Compare():
            for k, op in enumerate(node.ops):
                yield node, "ops", k, OPPOSITE[type(op)](), "comparison"
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in OPPOSITE:
            if not (isinstance(op, ast.BitOr) and "None" in ast.unparse(node)):
                yield node, "op", None, OPPOSITE[type(op)](), "arithmetic"
        case ast.BoolOp():
            yield node, "op", None, OPPOSITE[type(node.op)](), "condition"
        case ast.UnaryOp(op=ast.Not()):
            yield node, "op", None, ast.UAdd(), "condition"
        case ast.UnaryOp(op=ast.Invert()):
            yield node, "op", None, ast.UAdd(), "condition"
        case ast.If(test=test) | ast.IfExp(test=test) if isinstance(
            test, (ast.Name, ast.Attribute, ast.Call)
        ):
            yield node, "test", None, ast.UnaryOp(ast.Not(), test), "condition"
        case ast.Constant(value=bool()):
            yield node, "value", None, not node.value, "constant"
        case ast.Constant(value=int() | float()):
            yield node, "value", None, node.value + 1, "constant"
        case ast.Call():
            yield from _call_changes(node)


def _call_changes(node: ast.Call) -> Iterator[tuple[Any, str, int | None, Any, str]]:
    name = node.func
    word = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
    if word in OTHER_CALL:
        other = copy.deepcopy(name)
        setattr(other, "attr" if isinstance(name, ast.Attribute) else "id", OTHER_CALL[word])
        yield node, "func", None, other, "call"
    plain = (ast.Name, ast.Attribute, ast.Subscript)
    for k, (a, b) in enumerate(zip(node.args, node.args[1:], strict=False)):
        if isinstance(a, plain) and isinstance(b, plain) and ast.dump(a) != ast.dump(b):
            swapped = [*node.args[:k], b, a, *node.args[k + 2 :]]
            yield node, "args", None, swapped, "arguments"


# --- which tests


def tests_of(file: str) -> tuple[list[str], list[str]]:
    """The test files with a module's name, or else the smallest of those that name it; and more:
    others that name it, the contract of metrics, and the tables of the made set."""
    module, stem = file[:-3].replace("/", "."), Path(file).stem
    package, _, name = module.rpartition(".")
    if "/kernels/" in file and stem in NEAR:
        return NEAR[stem], []
    named = re.compile(
        rf"{re.escape(module)}\b|from {re.escape(package)} import [^\n]*\b{name}\b"
        rf"|from {re.escape(package)} import \([^)]*\b{name}\b"
    )
    tests = sorted(ROOT.glob("tests/**/test_*.py"), key=lambda p: p.stat().st_size)
    tests = [p for p in tests if not {"browser", "scripts", "outside"} & {*p.parts}]
    same = [p for p in tests if re.match(rf"test_{stem}\.|test_{stem}_(?!.*peer)", p.name)]
    found = [p for p in tests if named.search(p.read_text("utf-8"))]
    near, more = ([str(p.relative_to(ROOT)) for p in some] for some in (same or found, found))
    if "/kernels/" in file:
        return near[:MOST], []
    wide = [t for t in [CONTRACT, TABLES, *more[: 2 * MOST]] if t not in near[:MOST]]
    return (near[:MOST], wide) if near else (wide, [])


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


def start(mutant: Mutant | None, tests: Sequence[str], folder: Path, seconds: float) -> Running:
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

            code = int(pytest.main([*_options(folder), *tests]))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    return Running(mutant, pid, log, time.monotonic() + seconds)


def _options(folder: Path) -> list[str]:
    words = f"-x -q --assert=plain --no-header --tb=no -p no:cacheprovider --basetemp={folder}/"
    quick = ["-m", "not (heavy or browser or process or slow)"]
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
    mutants: Sequence[Mutant], tests: Sequence[str], jobs: int, folder: Path
) -> list[Mutant]:
    """The mutants with which the tests pass."""
    begin = time.monotonic()
    base = _finish(start(None, tests, folder, 900))
    if base:
        raise SystemExit(f"{' '.join(tests)}: exit status {base} without any change")
    limit = PATIENCE * (time.monotonic() - begin + 1)
    waiting, running, alive = list(reversed(mutants)), [], []
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(start(waiting.pop(), tests, folder, limit))
        time.sleep(0.02)
        for each in [*running]:
            if (code := ended(each)) is not None:
                running.remove(each)
                if code == 0 and each.mutant:
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


def modules(files: Sequence[str], sample: int, seed: int, jobs: int, folder: Path) -> int:
    """Mutate files; prints those that live by kind. The number that no reason excuses."""
    same = {(e["file"], e["change"]) for e in listed().get("equivalent", [])}
    kinds, dead, tried, unexcused = Counter(), Counter(), 0, 0
    for file in files:
        every = [m for m in mutants_of(file) if (m.file, m.words) not in same]
        some = random.Random(f"{seed}{file}").sample(every, min(sample or len(every), len(every)))
        if not some:
            continue
        near, wide = tests_of(file)
        left = survivors(some, near, jobs, folder)
        first = len(left)
        if left and wide:
            left = survivors(left, wide, jobs, folder)
        tried, unexcused = tried + len(some), unexcused + len(left)
        kinds.update(m.kind for m in left)
        dead.update(m.kind for m in some)
        outlived = f"{first} outlive {len(near)} files, {len(left)} all"
        print(f"{file}: {len(some)} of {len(every)}, {outlived}", flush=True)
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
    parser.add_argument("what", choices=["named", "modules"])
    parser.add_argument("paths", nargs="*", default=SCORES)
    parser.add_argument("--only", default="")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    files = files_of(given.paths)
    kernels = [f for f in files if "/kernels/" in f]
    if given.what == "modules" and kernels and len(kernels) < len(files):
        parser.error("kernels are mutated without the compiler: give them alone")
    prepare(bool(kernels) and given.what == "modules")
    with tempfile.TemporaryDirectory() as folder:
        if given.what == "named":
            return bool(named(Path(folder), given.only))
        return bool(modules(files, given.sample, given.seed, given.jobs, Path(folder)))


if __name__ == "__main__":
    sys.exit(main())

"""Mutation testing: one small change of the code at a time; tests that all pass let it live.

    python scripts/mutate.py named [WORDS]          the changes of mutants.toml
    python scripts/mutate.py sample PATH ... [--count N --seed S]     N changes drawn of these files

A change is tested by the tests of the file's name and by those that run its line, which
`pytest --cov --cov-context=test` has left in .coverage; all of them must pass without it. Two are
tried at a time, each in a fork of a process that has the libraries and reads the changed text in
place of the file: the tree stays as it is. A change that takes over --seconds of processor time is
noticed. Those that live are printed, and how many were drawn, noticed, lived, and are excused: no
test can notice what mutants.toml lists as `equivalent`. Draws from kernels need them run without
the compiler (NUMBA_DISABLE_JIT=1, also for .coverage).
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import random
import resource
import signal
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MOST = 200  # tests for one change, beside its own file's and the last
LAST = ["tests/metrics/test_contract.py", "tests/test_stored_numbers.py"]
JOBS = 2
LIBRARIES = "pytest hypothesis numpy numba scipy.io scipy.ndimage scipy.sparse scipy.stats"
LIBRARIES += " imageio.v3 PIL.Image click.testing sklearn.metrics h5py filelock rich attrs"
# What is no score: functions of words, words shown, how an array is made
NO_SCORE = ("describe", "symptoms", "__repr__")
NO_VALUE = ("caption", "others", "digits", "ensure_ascii", "stacklevel", "strict", "copy")
NO_ORDER = ("min", "max", "minimum", "maximum", "fmin", "fmax", "f_measure", "Field")
PAIRS: Any = (  # of operators
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)),
    *((ast.In, ast.NotIn), (ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div)),
    *((ast.FloorDiv, ast.Mult), (ast.Mod, ast.Mult), (ast.Pow, ast.Mult)),
    *((ast.BitAnd, ast.BitOr), (ast.BitXor, ast.BitOr), (ast.LShift, ast.RShift)),
)
OPPOSITE = {b: a for a, b in PAIRS} | {a: b for a, b in PAIRS}
CALLS = {"min": "max", "any": "all", "argmin": "argmax", "floor": "ceil", "minimum": "maximum"}
CALLS |= {b: a for a, b in CALLS.items()}


def changes(node: ast.AST) -> Iterator[tuple[Any, str, Any]]:
    """(node, field, new value) of each change below a node."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.FunctionDef) and node.name in NO_SCORE:
        return
    if isinstance(node, ast.keyword) and node.arg in NO_VALUE:
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    match node:
        case ast.Compare(ops=[op, *more]):
            yield node, "ops", [OPPOSITE[type(op)](), *more]
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) if type(op) in OPPOSITE:
            yield node, "op", OPPOSITE[type(op)]()
        case ast.UnaryOp(op=ast.Not() | ast.Invert()):
            yield node, "op", ast.UAdd()
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Compare):
            yield node, "test", ast.UnaryOp(ast.Not(), test)
        case ast.Constant(value=bool(value)):
            yield node, "value", not value
        case ast.Constant(value=int(value) | float(value)):
            yield node, "value", value + 1
        case ast.Attribute(attr=name) if name in CALLS:
            yield node, "attr", CALLS[name]
        case ast.Name(id=name) if name in CALLS:
            yield node, "id", CALLS[name]
        case ast.Call(func, [a, b, *more]) if (
            ast.dump(a) != ast.dump(b) and ast.unparse(func).rpartition(".")[2] not in NO_ORDER
        ):
            yield node, "args", [b, a, *more]
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from changes(child)


def mutants(file: str) -> Iterator[tuple[str, str, int, str]]:
    """(file, what is changed, its line, the changed text)."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    for node, field, new in changes(tree):
        old, before = getattr(node, field), ast.unparse(node)
        setattr(node, field, new)
        yield file, f"{before}  ->  {ast.unparse(node)}", node.lineno, ast.unparse(tree)
        setattr(node, field, old)


def start(file: str, text: str, tests: list[str], seconds: int) -> int:
    """The id of a fork that runs the tests with the changed text; its status is pytest's."""
    import pytest

    pid = os.fork()
    if not pid:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        signal.alarm(10 * seconds)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1), os.dup2(nowhere, 2)
        real, path = SourceFileLoader.get_code, str(ROOT / file)
        SourceFileLoader.get_code = lambda self, name: (  # type: ignore[method-assign]
            compile(text, path, "exec") if self.path == path else real(self, name)
        )
        with tempfile.TemporaryDirectory() as folder:
            words = ["-xq", "--assert=plain", "-pno:cacheprovider", f"--basetemp={folder}/t"]
            words += ["-m", "not (heavy or browser or process)"]
            status = pytest.main([*words, *tests])
        os._exit(int(status))
    return pid


def tests_of(data: Any, file: str, line: int) -> list[str]:
    """The tests that run a line, or the file where the line runs when it is imported."""
    by_line = data.contexts_by_lineno(str(ROOT / file))
    found = {c.rpartition("|")[0] for c in by_line.get(line, ())} - {""}
    found = found or {c.rpartition("|")[0] for several in by_line.values() for c in several} - {""}
    own = sorted(map(str, Path("tests").rglob(f"test_{Path(file).stem}*.py")))
    places, order = Counter[str](), dict[str, tuple[Any, ...]]()
    for name in sorted(found):  # of each other file the first, then of each the second ...
        test_file = name.partition("::")[0]
        places[test_file] += 1
        if test_file not in own:
            order[name] = f"/{Path(file).parts[1]}/" not in name, places[test_file], name
    return [*own, *sorted(order, key=order.__getitem__)[:MOST], *LAST]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["named", "sample"])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=120)
    given = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    for name in LIBRARIES.split():
        importlib.import_module(name)
    told = tomllib.loads((ROOT / "scripts/mutants.toml").read_text("utf-8"))
    cases = []
    if given.what == "named":
        for each in told["mutant"]:
            text = (ROOT / each["file"]).read_text("utf-8")
            if text.count(each["old"]) != 1:
                raise SystemExit(f"{each['name']}: {each['old']!r} is not once in {each['file']}")
            if all(word in each["name"] for word in given.words):
                changed = text.replace(each["old"], each["new"])
                cases.append((each["file"], each["name"], changed, each["tests"]))
    else:
        import coverage

        data = coverage.CoverageData()
        data.read()
        paths = [Path(word) for word in given.words]
        files = [
            f for path in paths for f in (sorted(path.rglob("*.py")) if path.is_dir() else [path])
        ]
        every = [m for file in files for m in mutants(str(file))]
        for file, name, line, text in random.Random(given.seed).sample(every, given.count):
            cases.append((file, f"{file}:{line}: {name}", text, tests_of(data, file, line)))
    excused = {(e["file"], e["line"], e["change"]): e["why"] for e in told["equivalent"]}
    tests = sorted({test for case in cases for test in case[3]})
    file = cases[0][0]
    if os.waitpid(start(file, (ROOT / file).read_text("utf-8"), tests, 3600), 0)[1]:
        raise SystemExit(f"of {len(tests)} tests some fail without a change")
    running: dict[int, tuple[str, str]] = {}
    count = Counter[str]()
    for case in [*cases, None]:
        while running and (case is None or len(running) == JOBS):
            pid, status = os.wait()
            file, name = running.pop(pid)
            place, _, change = name.partition(": ")
            number = int(place.rpartition(":")[2] or 0) if given.what == "sample" else 0
            line = (ROOT / file).read_text("utf-8").splitlines()[number - 1].strip()
            why = excused.get((file, line, change))
            verdict = "noticed" if status else "excused" if why else "live"
            count[verdict] += 1
            if not status:
                print(f"{verdict}: {name}", *([f"({why})"] if why else []), flush=True)
        if case and case[3]:
            running[start(*case[:1], *case[2:], given.seconds)] = case[:2]
        elif case:
            count["live"] += 1
            print("live, run by no test:", case[1], flush=True)
    print(f"{len(cases)} drawn:", ", ".join(f"{n} {verdict}" for verdict, n in count.items()))
    return bool(count["live"])


if __name__ == "__main__":
    sys.exit(main())

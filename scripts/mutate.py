"""Mutation testing: one small change of the code at a time; tests that all pass let it live.

    python scripts/mutate.py named [WORDS]          the changes of mutants.toml
    python scripts/mutate.py sample FILE ... [--count N --seed S]     N changes drawn of these files

A change is tested by the tests that run its line, those of the file's own name first, which
`pytest --cov --cov-context=test` has left in .coverage. Each change runs in a fork of a process
that has the libraries and reads the changed text in place of the file: the tree stays as it is.
Kernels run without the compiler (NUMBA_DISABLE_JIT=1, also for .coverage).
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import random
import resource
import sys
import tempfile
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MOST = 60  # tests for one change
SECONDS = 120  # of processor time for one change
LIBRARIES = "pytest hypothesis numpy numba scipy.io scipy.ndimage scipy.sparse scipy.stats"
LIBRARIES += " imageio.v3 PIL.Image click.testing sklearn.metrics h5py filelock rich attrs"
NO_SCORE = ("describe", "symptoms", "__repr__")  # functions whose words are no score
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
        case ast.Call(args=[a, b, *more]) if ast.dump(a) != ast.dump(b):
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


def lives(file: str, text: str, tests: list[str]) -> bool:
    """Whether the tests pass with the changed text."""
    import pytest

    pid = os.fork()
    if not pid:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1), os.dup2(nowhere, 2)
        real, path = SourceFileLoader.get_code, str(ROOT / file)
        SourceFileLoader.get_code = lambda self, name: (  # type: ignore[method-assign]
            compile(text, path, "exec") if self.path == path else real(self, name)
        )
        with tempfile.TemporaryDirectory() as folder:
            words = [
                "-xq",
                "--assert=plain",
                "-pno:cacheprovider",
                f"--basetemp={folder}/t",
                "--no-header",
            ]
            words += ["-m", "not (heavy or browser or process)"]
            status = pytest.main([*words, *tests])
        os._exit(int(status))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def tests_of(data: Any, file: str, line: int) -> list[str]:
    """The tests that run a line, or the file where the line runs when it is imported."""
    by_line = data.contexts_by_lineno(str(ROOT / file))
    found = {c.rpartition("|")[0] for c in by_line.get(line, ())} - {""}
    found = found or {c.rpartition("|")[0] for several in by_line.values() for c in several} - {""}
    return sorted(found, key=lambda name: (Path(file).stem not in name, name))[:MOST]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["named", "sample"])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    for name in LIBRARIES.split():
        importlib.import_module(name)
    cases = []
    if given.what == "named":
        toml: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
        for each in toml.loads((ROOT / "scripts/mutants.toml").read_text("utf-8"))["mutant"]:
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
        every = [m for file in given.words for m in mutants(file)]
        for file, name, line, text in random.Random(given.seed).sample(every, given.count):
            cases.append((file, f"{file}:{line}: {name}", text, tests_of(data, file, line)))
    alive, sound = 0, set[str]()
    for file, name, text, tests in cases:
        if not sound.issuperset(tests):
            if not lives(file, (ROOT / file).read_text("utf-8"), tests):
                raise SystemExit(f"{name}: these fail without it: {' '.join(tests)}")
            sound |= {*tests}
        state = not tests or lives(file, text, tests)
        alive += state
        print("ALIVE " if state else "killed", name, flush=True)
    print(f"{alive} of {len(cases)} live")
    return bool(alive)


if __name__ == "__main__":
    sys.exit(main())

"""The small changes of a file that `mutate.py` makes: other operators, numbers, arguments."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# What warms workers up, words, and what doctor and explain try; lists that are of one length.
WORDS_ONLY = ("example", "describe", "__repr__", "symptoms", "depth_symptoms")
NO_SCORE = ("strict", "describe", "others", "digits")
TURNED = ("max", "min", "maximum", "minimum", "hypot", "array_equal")  # the same the other way
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
    """A changed file: kind, words for people, the text that is imported, and its lines; inside: of
    a function."""

    file: str
    kind: str
    words: str
    text: str
    line: int = 0
    last: int = 0
    inside: bool = True


def mutants_of(file: str) -> Iterator[Mutant]:
    """Every change of a file, in the order of its lines."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    place, bodies = _places(tree)
    for owner, field, index, new, kind in _changes(tree):
        held = getattr(owner, field)
        old = held if index is None else held[index]
        before = ast.unparse(_head(place[owner]))
        _put(owner, field, index, new)
        words, text = _differing(before, ast.unparse(_head(place[owner]))), ast.unparse(tree)
        _put(owner, field, index, old)
        first, last = place[owner].lineno, _head(place[owner]).end_lineno or 0
        inside = any(a <= first and last <= b for a, b in bodies)
        yield Mutant(file, kind, words, text, first, last, inside)


def _places(tree: ast.AST) -> tuple[dict[ast.AST, Any], list[tuple[int, int]]]:
    """The statement that each node is in, or what heads one with a body; lines of functions."""
    place, bodies = dict[ast.AST, Any](), list[tuple[int, int]]()
    for node in ast.walk(tree):
        holds = isinstance(node, ast.stmt) and hasattr(node, "body")
        for child in ast.iter_child_nodes(node):
            own = isinstance(child, ast.stmt) or (holds and isinstance(child, ast.expr))
            place[child] = child if own else place.get(node)
        if isinstance(node, ast.FunctionDef):
            bodies.append((node.body[0].lineno, node.end_lineno or 0))
    return place, bodies


def _head(node: Any) -> Any:
    return node.test if isinstance(node, (ast.If, ast.While)) else node


def _put(owner: Any, field: str, index: int | None, value: Any) -> None:
    if index is None:
        setattr(owner, field, value)
    else:
        getattr(owner, field)[index] = value


def _differing(before: str, after: str) -> str:
    """Both in one line, without most of what is the same."""
    old, new = (" ".join(text.split()) for text in (before, after))
    same = next(k for k in range(len(old)) if old[k] != new[k : k + 1])
    cut = max(same - 60, 0)
    return f"{old[cut : same + 40]}  ->  {new[cut : same + 40]}"


def _changes(node: ast.AST) -> Iterator[tuple[Any, str, int | None, Any, str]]:
    """(node, field, index, new value, kind) of each change below a node."""
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)):
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.FunctionDef) and node.name in WORDS_ONLY:
        return
    if isinstance(node, ast.keyword) and node.arg in NO_SCORE:
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "setting":
        node = ast.Tuple(node.args[:1])  # its default; the rest checks what is given
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
    if word in TURNED:
        return
    plain = (ast.Name, ast.Attribute, ast.Subscript)
    for k, (a, b) in enumerate(zip(node.args, node.args[1:], strict=False)):
        if isinstance(a, plain) and isinstance(b, plain) and ast.dump(a) != ast.dump(b):
            swapped = [*node.args[:k], b, a, *node.args[k + 2 :]]
            yield node, "args", None, swapped, "arguments"

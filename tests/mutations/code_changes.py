"""The source of a module -> its mutants: one operator, number, condition or statement of a function is another.

What says something to people is left alone (messages, reasons, estimates), and so is what is outside of functions.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
}
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}
_SAID = re.compile(r"_?(reason|benefit|estimate|why|changelog_bytes)")
"""Functions and arguments that only tell."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """The `number`-th change of a file. `function` is the one at module level, or the method, that has it."""

    file: Path
    number: int
    function: str
    line: int
    lines: range
    """Those of the statement; of one with a body, those before it."""
    was: str
    now: str

    def __str__(self) -> str:
        line = self.file.read_text(encoding="utf-8").splitlines()[self.line - 1].strip()
        return f"{self.file}:{self.line}: {self.was}  ->  {self.now}    in: {line}"


def mutants(file: Path) -> Iterator[Mutant]:
    source = ast.parse(file.read_text(encoding="utf-8"))
    count = _Changing(None)
    count.visit(source)
    for number in range(count.seen):
        changing = _Changing(number)
        changing.visit(copy.deepcopy(source))
        yield Mutant(file, number, changing.function, changing.line, changing.lines, changing.was, changing.now)


def mutated(mutant: Mutant) -> ast.Module:
    """The module with the change."""
    changing = _Changing(mutant.number)
    tree: ast.Module = changing.visit(ast.parse(mutant.file.read_text(encoding="utf-8")))
    return ast.fix_missing_locations(tree)


class _Changing(ast.NodeTransformer):
    """Makes the change of this number; with None, only counts them."""

    def __init__(self, number: int | None) -> None:
        self._number = number
        self._path: list[str] = []
        self._depth = 0
        self.seen = 0
        self._statement = range(0)
        self.function, self.line, self.lines, self.was, self.now = "", 0, range(0), "", ""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._path.append(node.name)
        node.body = [self.visit(each) for each in node.body]
        self._path.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if _SAID.fullmatch(node.name):
            return node
        if self._depth:
            node.body = self._bodies(node.body)
            return node
        self._depth, before = 1, self.was
        self._path.append(node.name)
        node.body = self._bodies(node.body)
        if self.was != before:
            self.function = ".".join(self._path)
        self._path.pop()
        self._depth = 0
        return node

    def _bodies(self, body: list[ast.stmt]) -> list[ast.stmt]:
        text = ast.get_docstring(ast.Module(body, []))
        return [*(body[:1] if text else []), *(self.visit(each) for each in (body[1:] if text else body))]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.arguments) or (
            not self._depth and isinstance(node, ast.expr | ast.Assign | ast.AnnAssign | ast.Expr)
        ):
            return node
        if isinstance(node, ast.keyword) and _SAID.fullmatch(node.arg or ""):
            return node
        if isinstance(node, ast.stmt):
            self._statement = _lines(node)
        if isinstance(node, ast.AnnAssign):
            node.value = None if node.value is None else self.visit(node.value)
            return node
        if self._depth:
            for other in _others(node):
                if self.seen == self._number:
                    self.line = next(each.lineno for each in ast.walk(node) if isinstance(each, ast.expr | ast.stmt))
                    self.lines = self._statement
                    self.was, self.now = (ast.unparse(each).partition("\n")[0].strip() for each in (node, other))
                    self.seen += 1
                    return ast.copy_location(other, node) if hasattr(node, "lineno") else other
                self.seen += 1
        return super().generic_visit(node)


def _lines(node: ast.stmt) -> range:
    """Those of the statement; of one with a body, those before it."""
    body = getattr(node, "body", None)
    return range(node.lineno, body[0].lineno if body else (node.end_lineno or node.lineno) + 1)


def _others(node: ast.AST) -> Iterator[ast.AST]:
    """What may be in the place of the node."""
    changes = _CHANGES.get(type(node))
    return changes(node) if changes else iter(())


def _compared(node: ast.Compare) -> Iterator[ast.AST]:
    if len(node.ops) == 1:
        yield ast.Compare(node.left, [_COMPARED[type(node.ops[0])]()], node.comparators)


def _joined(node: ast.BoolOp) -> Iterator[ast.AST]:
    # What is said in the place of nothing.
    if not any(isinstance(each, ast.Constant) and " " in str(each.value) for each in node.values):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def _affirmed(node: ast.UnaryOp) -> Iterator[ast.AST]:
    if isinstance(node.op, ast.Not | ast.Invert):
        yield node.operand


def _computed(node: ast.BinOp) -> Iterator[ast.AST]:
    if isinstance(node.op, ast.BitOr | ast.BitAnd):
        yield from (node.left, node.right)
    if type(node.op) in _COMPUTED:
        yield ast.BinOp(node.left, _COMPUTED[type(node.op)](), node.right)


def _counted(node: ast.Constant) -> Iterator[ast.AST]:
    if isinstance(node.value, int):
        yield ast.Constant(not node.value if isinstance(node.value, bool) else node.value + 1)


def _unfiltered(node: ast.comprehension) -> Iterator[ast.AST]:
    if node.ifs:
        yield ast.comprehension(node.target, node.iter, node.ifs[1:], node.is_async)


def _negated(node: ast.If | ast.IfExp) -> Iterator[ast.AST]:
    if not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp):
        other = copy.deepcopy(node)
        other.test = ast.UnaryOp(ast.Not(), other.test)
        yield other


def _undone(node: ast.AugAssign | ast.Expr) -> Iterator[ast.AST]:
    if isinstance(node, ast.AugAssign) or isinstance(node.value, ast.Call):
        yield ast.Pass()


def _forgotten(node: ast.Dict) -> Iterator[ast.AST]:
    """A field that a record is without."""
    for place, key in enumerate(node.keys):
        if isinstance(key, ast.Constant):
            keys, values = ([each for n, each in enumerate(some) if n != place] for some in (node.keys, node.values))
            yield ast.Dict(keys, values)


def _kept(node: ast.Call) -> Iterator[ast.AST]:
    """A field that `replace` leaves as it was; the other one of two functions."""
    if isinstance(node.func, ast.Name) and node.func.id in _CALLED:
        yield ast.Call(ast.Name(_CALLED[node.func.id], ast.Load()), node.args, node.keywords)
    if isinstance(node.func, ast.Name) and node.func.id == "replace":
        for place in range(len(node.keywords)):
            yield ast.Call(node.func, node.args, [word for n, word in enumerate(node.keywords) if n != place])


_CHANGES: dict[type[ast.AST], Callable[[Any], Iterator[ast.AST]]] = {
    ast.Compare: _compared,
    ast.BoolOp: _joined,
    ast.UnaryOp: _affirmed,
    ast.BinOp: _computed,
    ast.Constant: _counted,
    ast.comprehension: _unfiltered,
    ast.If: _negated,
    ast.IfExp: _negated,
    ast.AugAssign: _undone,
    ast.Expr: _undone,
    ast.Call: _kept,
    ast.Dict: _forgotten,
}

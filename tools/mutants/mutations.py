"""Small faults in functions: another constant, another comparison, a statement less, arguments swapped."""

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDERS = ("state_model", "sharelens", "jobs")
HIT = '__import__("mutant_recorder").passed({})'
"""The statement that notes which test runs a mutated one."""
COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
REMOVED = (ast.AugAssign, ast.Raise)
"""Statements that a mutation removes, beside calls whose result is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A function's text before and after one mutation."""

    path: str
    function: str
    kind: str
    before: str
    after: str
    recorded: str
    """`before` with HIT ahead of the mutated statement."""

    def stands_in(self, tree: Path) -> bool:
        """Whether a tree has the function, word for word, once."""
        file = tree / self.path
        return file.is_file() and file.read_text(encoding="utf-8").count(self.before) == 1


@dataclass(frozen=True, slots=True)
class Edit:
    """Text to put between two places of a source, in bytes, inside a statement."""

    kind: str
    begin: int
    end: int
    text: str
    statement: ast.stmt


class Source:
    """A module's text, and its places as bytes."""

    def __init__(self, text: str) -> None:
        self.data = text.encode()
        self._starts = [0]
        for line in self.data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        """Where a node begins and ends."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.stmt | ast.expr) -> str:
        """A node's text."""
        begin, end = self.span(node)
        return self.data[begin:end].decode()


def draw(before: Path, after: Path, count: int, seed: int, folders: Sequence[str] = FOLDERS) -> list[Mutant]:
    """At most `count` mutants in functions that both trees have, one a function; kinds are as frequent as can be."""
    dice = random.Random(seed)
    paths = [path.relative_to(before) for folder in folders for path in sorted((before / folder).rglob("*.py"))]
    functions = [(str(path), *function) for path in paths for function in functions_of((before / path).read_text())]
    dice.shuffle(functions)
    drawn: list[Mutant] = []
    for path, source, function in functions:
        edits = list(edits_of(source, function))
        if len(drawn) == count or not edits:
            continue
        kind = dice.choice(sorted({edit.kind for edit in edits}))
        edit = dice.choice([edit for edit in edits if edit.kind == kind])
        mutant = _mutant(path, source, function, edit, len(drawn))
        if mutant.stands_in(before) and mutant.stands_in(after):
            drawn.append(mutant)
    return drawn


def functions_of(text: str) -> Iterator[tuple[Source, ast.FunctionDef]]:
    """Functions and methods of a module; none where it has kernels, whose machine code no recorder enters."""
    if "state_model.columnar.kernels" in text:
        return
    source, tree = Source(text), ast.parse(text)
    for node in tree.body:
        for inner in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(inner, ast.FunctionDef):
                yield source, inner


def edits_of(source: Source, function: ast.FunctionDef) -> Iterator[Edit]:
    """Every mutation of a function's body."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    for statement in body:
        yield from _edits_of_statement(source, statement, statement)


def _edits_of_statement(source: Source, node: ast.AST, statement: ast.stmt) -> Iterator[Edit]:
    """Mutations of a node and below it; a line can be put ahead of `statement`, but not ahead of an `elif`."""
    if isinstance(node, ast.stmt) and not (isinstance(node, ast.If) and source.text(node).startswith("elif")):
        statement = node
    for kind, replaced, text in _replacements(source, node):
        begin, end = source.span(replaced)
        yield Edit(kind, begin, end, text, statement)
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in ("annotation", "returns", "type_params"):
                yield from _edits_of_statement(source, child, statement)


def _replacements(source: Source, node: ast.AST) -> Iterator[tuple[str, ast.stmt | ast.expr, str]]:
    match node:
        case ast.Constant(value=bool() as value):
            yield "constant", node, str(not value)
        case ast.Constant(value=int() as value):
            yield "constant", node, str(value + 1)
        case ast.Constant(value=str() as value) if value.isidentifier() and source.text(node).startswith('"'):
            yield "constant", node, f'"{value}_"'
        case ast.Compare(left=operand, ops=[operator], comparators=[other]) if type(operator) in COMPARISONS:
            old, new = COMPARISONS[type(operator)]
            begin, end = source.span(operand)[1], source.span(other)[0]
            between = source.data[begin:end].decode().replace(old, new, 1)
            yield "comparison", node, source.text(operand) + between + source.text(other)
        case ast.Call(args=[first, second, *_]) if not any(isinstance(each, ast.Starred) for each in (first, second)):
            between = source.data[source.span(first)[1] : source.span(second)[0]].decode()
            swapped = source.text(second) + between + source.text(first)
            if source.text(first) != source.text(second):
                begin, end = source.span(first)[0] - source.span(node)[0], source.span(second)[1] - source.span(node)[0]
                data = source.text(node).encode()
                yield "swapped arguments", node, (data[:begin] + swapped.encode() + data[end:]).decode()
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
            yield "removed statement", node, "pass"


def _mutant(path: str, source: Source, function: ast.FunctionDef, edit: Edit, number: int) -> Mutant:
    begin, end = source.span(function)
    at = source.span(edit.statement)[0]
    hit = f"{HIT.format(number)}\n{' ' * edit.statement.col_offset}".encode()
    return Mutant(
        path=path,
        function=function.name,
        kind=edit.kind,
        before=source.data[begin:end].decode(),
        after=(source.data[begin : edit.begin] + edit.text.encode() + source.data[edit.end : end]).decode(),
        recorded=(source.data[begin:at] + hit + source.data[at:end]).decode(),
    )

"""Removes tuples that a generated loop creates only to read their fields.

In ``v1 = (x, y)``, followed by ``k = v1[0]`` and an inlined function of ``v1[1]``, nobody needs the tuple: the fields
become variables ``v1_0`` and ``v1_1``. Where the tuple itself is needed, in a branch that not every record takes, it is
created there. A tuple cannot be changed, so it does not matter which of two equal ones a function gets.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from firesteel.runtime.codegen.inlining import parse

__all__ = ["element_in", "without_tuples"]

_CREATES_TUPLE = re.compile(r"^ +v\d+ = \(\(.*,", re.MULTILINE)


def without_tuples(source: str) -> str | ast.Module:
    """Returns the text of a loop, or its tree without the tuples; the numbers of its lines stay."""
    if _CREATES_TUPLE.search(source) is None:
        return source
    tree: ast.Module = parse(source, "exec")
    names = Counter((node.id, type(node.ctx)) for node in ast.walk(tree) if isinstance(node, ast.Name))
    removed = {}
    for block in _blocks(tree):
        for position, statement in enumerate(block):
            created = _created(statement)
            if created is None or names[created[0], ast.Store] != 1:
                continue
            uses = _Uses(*created)
            for later in block[position + 1 :]:
                uses.look_at(later)
            if uses.can_be_removed and uses.count == names[created[0], ast.Load]:
                removed[created[0]] = created[1]
    return ast.fix_missing_locations(_Remover(removed).visit(tree)) if removed else source


def element_in(variables: Mapping[str, Any], name: str, absent: Any) -> Any:
    """Returns the record in a variable of a loop, also if it is a tuple that was not created."""
    if name in variables:
        return variables[name]
    fields: list[Any] = []
    while (field_name := _field_name(name, len(fields))) in variables:
        fields.append(variables[field_name])
    return tuple(fields) if fields else absent


def _field_name(name: str, position: int) -> str:
    return f"{name}_{position}"


def _created(statement: ast.stmt) -> tuple[str, int] | None:
    """The variable and the width of a tuple that a statement creates."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Tuple):
        return None
    fields, (target, *others) = statement.value.elts, statement.targets
    if others or not isinstance(target, ast.Name) or any(isinstance(each, ast.Starred) for each in fields):
        return None
    return (target.id, len(fields)) if fields else None


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


@dataclass
class _Uses:
    """How the statements behind the creation of a tuple use it."""

    name: str
    width: int
    count: int = 0
    _whole: list[bool] = field(default_factory=list)
    """For each use of the tuple itself, but in handlers of errors: whether not every record gets there."""

    @property
    def can_be_removed(self) -> bool:
        return len(self._whole) <= 1 and all(self._whole)

    def look_at(self, node: ast.AST, *, in_branch: bool = False, in_handler: bool = False) -> None:
        if self._is_field(node):
            self.count += 1
        elif isinstance(node, ast.Name) and node.id == self.name:
            self.count += 1
            if not in_handler:
                self._whole.append(in_branch)
        elif isinstance(node, ast.If):
            self.look_at(node.test, in_branch=in_branch, in_handler=in_handler)
            self._look_at_all([*node.body, *node.orelse], in_branch=True, in_handler=in_handler)
        elif isinstance(node, ast.Try):
            self._look_at_all([*node.body, *node.orelse, *node.finalbody], in_branch=in_branch, in_handler=in_handler)
            self._look_at_all(node.handlers, in_branch=True, in_handler=True)
        else:
            # what is in a loop of its own would be created more than once
            in_branch = in_branch and not isinstance(node, (ast.For, ast.While))
            self._look_at_all(ast.iter_child_nodes(node), in_branch=in_branch, in_handler=in_handler)

    def _look_at_all(self, nodes: Iterable[ast.AST], *, in_branch: bool, in_handler: bool) -> None:
        for node in nodes:
            self.look_at(node, in_branch=in_branch, in_handler=in_handler)

    def _is_field(self, node: ast.AST) -> bool:
        if not (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)):
            return False
        if not (isinstance(node.value, ast.Name) and node.value.id == self.name):
            return False
        return _index_of(node, self.width) is not None


def _index_of(node: ast.Subscript, width: int) -> int | None:
    index = node.slice.value if isinstance(node.slice, ast.Constant) else None
    return index if type(index) is int and 0 <= index < width else None


class _Remover(ast.NodeTransformer):
    def __init__(self, widths: Mapping[str, int]):
        self._widths = widths

    def visit_Assign(self, node: ast.Assign) -> Any:
        created = _created(node)
        if created is None or created[0] not in self._widths:
            return self.generic_visit(node)
        assert isinstance(node.value, ast.Tuple)
        self.generic_visit(node.value)
        return [
            ast.copy_location(ast.Assign([ast.Name(_field_name(created[0], position), ast.Store())], value), node)
            for position, value in enumerate(node.value.elts)
        ]

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id in self._widths:
            index = _index_of(node, self._widths[node.value.id])
            if index is not None:
                return ast.copy_location(ast.Name(_field_name(node.value.id, index), ast.Load()), node)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id not in self._widths:
            return node
        fields: list[ast.expr] = [
            ast.Name(_field_name(node.id, position), ast.Load()) for position in range(self._widths[node.id])
        ]
        return ast.copy_location(ast.Tuple(fields, ast.Load()), node)

"""Sources that can do it read fields of rows as columns, instead of the whole rows.

>>> from firesteel.connectors.generators.nexmark import NexmarkConfig
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.connectors.nexmark.columns import ROW_TYPE
>>> from firesteel.table.connectors.nexmark.source import NexmarkTableSource
>>> from firesteel.table.plan.nodes import TableScan
>>> from firesteel.table.rules.references import references
>>> source = NexmarkTableSource(NexmarkConfig(), tuple((name,) for name in ROW_TYPE.field_names), ROW_TYPE)
>>> scan = TableScan(ObjectIdentifier("c", "d", "nexmark"), ROW_TYPE, source=source)
>>> bid = references(scan)[3]
>>> price = FieldAccess(bid.type.children()[2], bid, 2)
>>> print(read_nested_fields(Calc(scan, (price,), ("price",))).explain())
Calc(select=[bid_price AS price])
  TableScan(table=[c.d.nexmark])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from firesteel.table.bound.nodes import Expression, FieldAccess, InputRef
from firesteel.table.connector.push_downs import PushedNestedProjection
from firesteel.table.plan.nodes import LogicalNode, TableScan, unique_names
from firesteel.table.plan.rewriting import transform
from firesteel.table.plan.streaming import Calc, WatermarkAssigner
from firesteel.types.logical import FieldsType, LogicalType, RowField, RowType

__all__ = ["read_nested_fields"]

Path = tuple[int, ...]
"""A column, and fields within it."""


@dataclass(frozen=True)
class _Flattened:
    """A node whose columns are those at paths of the columns that it had."""

    node: LogicalNode
    paths: tuple[Path, ...]

    def rewritten(self, expression: Expression) -> Expression:
        """An expression over the columns as they were."""

        def change(part: Expression) -> Expression:
            path = _path(part)
            if path not in self.paths:
                return part
            index = self.paths.index(path)
            return _Column(part.type, index, self.node.row_type.fields[index].name)

        return transform(transform(expression, change), _final)


class _Column(InputRef):
    """A reference that is not rewritten again."""


def _final(part: Expression) -> Expression:
    return InputRef(part.type, part.index, part.name) if isinstance(part, _Column) else part


def read_nested_fields(node: LogicalNode) -> LogicalNode:
    """A Calc over a source that then reads less."""
    if not isinstance(node, Calc):
        return node
    condition = [] if node.condition is None else [node.condition]
    below = _flatten(node.input, set(_paths([*node.expressions, *condition])))
    if below is None:
        return node
    return Calc(
        below.node,
        tuple(below.rewritten(expression) for expression in node.expressions),
        node.names,
        None if node.condition is None else below.rewritten(node.condition),
    )


def _flatten(node: LogicalNode, used: set[Path]) -> _Flattened | None:
    match node:
        case TableScan():
            return _flatten_scan(node, _shortest(used))
        case WatermarkAssigner():
            return _flatten_watermarks(node, used)
        case Calc():
            return _flatten_calc(node, used)
    return None


def _flatten_scan(node: TableScan, paths: Sequence[Path]) -> _Flattened | None:
    if node.source is None or all(len(path) == 1 for path in paths):
        return None
    names, types = zip(*(_described(node.row_type, path) for path in paths), strict=True)
    row_type = RowType.of(unique_names(names), types, nullable=False)
    source = node.source.with_nested_projection(paths, row_type)
    if source is None:
        return None
    key = [(column,) for column in node.primary_key]
    places = tuple(paths.index(path) for path in key) if all(path in paths for path in key) else ()
    pushed = (*node.pushed, PushedNestedProjection(tuple(paths), row_type))
    scan = replace(node, type=source.produced_type, source=source, primary_key=places, pushed=pushed)
    return _Flattened(scan, tuple(paths))


def _described(row_type: RowType, path: Path) -> tuple[str, LogicalType]:
    field = row_type.fields[path[0]]
    name, type_ = field.name, field.type
    for index in path[1:]:
        assert isinstance(type_, FieldsType)
        part = type_.children()[index]
        name, type_ = f"{name}_{type_.field_names[index]}", part.copy(part.nullable or type_.nullable)
    return name, type_


def _flatten_watermarks(node: WatermarkAssigner, used: set[Path]) -> _Flattened | None:
    below = _flatten(node.input, {*used, (node.rowtime,), *_paths([node.watermark])})
    if below is None:
        return None
    rowtime = below.paths.index((node.rowtime,))
    fields = list(below.node.row_type.fields)
    fields[rowtime] = RowField(fields[rowtime].name, node.type.fields[node.rowtime].type)
    assigner = WatermarkAssigner(below.node, RowType(fields, nullable=False), rowtime, below.rewritten(node.watermark))
    return _Flattened(assigner, below.paths)


def _flatten_calc(node: Calc, used: set[Path]) -> _Flattened | None:
    # columns that are computed are computed as a whole
    kept = _shortest({path if _path(node.expressions[path[0]]) is not None else path[:1] for path in used})
    columns = [_accessed(node.expressions[path[0]], path[1:]) for path in kept]
    condition = [] if node.condition is None else [node.condition]
    below = _flatten(node.input, set(_paths([*columns, *condition])))
    if below is None:
        return None
    names = unique_names(_described(node.row_type, path)[0] for path in kept)
    calc = Calc(
        below.node,
        tuple(below.rewritten(column) for column in columns),
        tuple(names),
        None if node.condition is None else below.rewritten(node.condition),
    )
    return _Flattened(calc, tuple(kept))


def _accessed(expression: Expression, fields: Path) -> Expression:
    for field in fields:
        part = expression.type.children()[field]
        expression = FieldAccess(part.copy(part.nullable or expression.type.nullable), expression, field)
    return expression


def _path(expression: Expression) -> Path | None:
    if type(expression) is InputRef:
        return (expression.index,)
    if isinstance(expression, FieldAccess):
        above = _path(expression.operand)
        return None if above is None else (*above, expression.index)
    return None


def _paths(expressions: Iterable[Expression]) -> Iterator[Path]:
    for expression in expressions:
        path = _path(expression)
        if path is not None:
            yield path
        else:
            yield from _paths(expression.children())


def _shortest(paths: set[Path]) -> list[Path]:
    """The paths without those that lie within another, in the order of columns."""
    return sorted(path for path in paths if not any(path[:length] in paths for length in range(1, len(path))))

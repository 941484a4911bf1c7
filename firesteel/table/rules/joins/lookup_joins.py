"""A join FOR SYSTEM_TIME AS OF processing time looks rows up in the table.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.binder.calls import call
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.bound.nodes import InputRef
>>> from firesteel.table.plan.nodes import JoinKind
>>> from firesteel.types.logical import RowType
>>> class Rows(LookupTableSource):
...     def create_lookup(self, key_columns): ...
...     def as_summary_string(self): return "rows"
>>> row_type = RowType.of(["a", "b"], [DataTypes.INT(), DataTypes.INT()])
>>> orders = TableScan(ObjectIdentifier("c", "d", "orders"), row_type)
>>> rows = TableScan(ObjectIdentifier("c", "d", "rows"), row_type, source=Rows())
>>> equal = call("EQUALS", [InputRef(DataTypes.INT(), 0, "a"), InputRef(DataTypes.INT(), 2, "a")])
>>> print(lookup_join(TemporalTableJoin(orders, rows, JoinKind.LEFT, equal, 1)).explain())
LookupJoin(table=[c.d.rows], joinType=[LEFT], lookup=[a=a])
  TableScan(table=[c.d.orders])
"""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Call, Expression, InputRef, Literal
from firesteel.table.connector.source import LookupTableSource
from firesteel.table.plan.lookup_joins import LookupJoin
from firesteel.table.plan.nodes import Filter, LogicalNode, Project, TableScan
from firesteel.table.plan.rewriting import inlined
from firesteel.table.plan.streaming import Calc, WatermarkAssigner
from firesteel.table.plan.time_joins import TemporalTableJoin
from firesteel.table.rules.conjunctions import conjunction, conjuncts
from firesteel.table.rules.references import references

__all__ = ["lookup_join"]


def lookup_join(node: TemporalTableJoin) -> LogicalNode:
    """The lookup join of a join in processing time."""
    scan, projection, conditions = _scan(node.right)
    source: object = scan.source
    if not isinstance(source, LookupTableSource):
        raise ValidationError(
            "Processing-time temporal join is not supported yet.",
            hint=f"Join a table whose connector has lookups, which '{scan.identifier.object_name}' has not, or use the "
            "event time of a versioned table.",
        )
    width = len(node.left.row_type.fields)
    keys: dict[int, Expression] = {}
    rest: list[Expression] = []
    for part in conjuncts(node.condition):
        key = _key(part, width, projection)
        if key is None or key[0] in keys:
            rest.append(part)
        else:
            keys[key[0]] = key[1]
    for part in conditions:
        # looked up by it, and filtered nevertheless
        if isinstance(part, Call) and part.function == "EQUALS":
            column, value = part.arguments
            if isinstance(column, InputRef) and isinstance(value, Literal) and column.type.copy() == value.type.copy():
                keys.setdefault(column.index, value)
    if not keys:
        raise ValidationError(
            "Temporal table join requires an equality condition on fields of table "
            f"[{scan.identifier.as_summary_string()}]."
        )
    return LookupJoin(
        node.left,
        scan,
        node.kind,
        tuple(keys.items()),
        tuple(projection),
        node.right.row_type.field_names,
        conjunction(conditions),
        conjunction(rest),
        node.options,
    )


def _scan(node: LogicalNode) -> tuple[TableScan, Sequence[Expression], list[Expression]]:
    """The table of a relation, the columns of the relation over those of the table, and its conditions."""
    match node:
        case TableScan():
            return node, references(node), []
        case WatermarkAssigner():
            return _scan(node.input)
        case Filter():
            scan, columns, conditions = _scan(node.input)
            return scan, columns, [*conditions, *(inlined(part, columns) for part in conjuncts(node.condition))]
        case Project() | Calc():
            scan, columns, conditions = _scan(node.input)
            if isinstance(node, Calc):
                conditions = [*conditions, *(inlined(part, columns) for part in conjuncts(node.condition))]
            return scan, [inlined(part, columns) for part in node.expressions], conditions
    raise ValidationError(
        "Processing-time temporal join is not supported yet.",
        hint="The right side has to be a table of a connector with lookups, or a projection and filter of it.",
    )


def _key(part: Expression, width: int, projection: Sequence[Expression]) -> tuple[int, Expression] | None:
    """The column of the table that a condition makes equal to a column of the left side, or to a constant."""
    if not isinstance(part, Call) or part.function != "EQUALS":
        return None
    for one, other in (part.arguments, part.arguments[::-1]):
        if not isinstance(one, InputRef) or one.index < width:
            continue
        column = projection[one.index - width]
        if not isinstance(column, InputRef):
            continue
        is_own = isinstance(other, InputRef) and other.index < width
        if (is_own or isinstance(other, Literal)) and column.type.copy() == other.type.copy():
            return column.index, other
    return None

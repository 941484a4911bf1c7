"""A condition on ROW_NUMBER makes a Rank of OVER: the first rows of each partition.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.binder.calls import call
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.bound.nodes import InputRef, Literal
>>> from firesteel.table.plan.nodes import SortKey, TableScan
>>> from firesteel.table.plan.over import Bound, BoundKind, Frame, Over, OverCall, OverGroup
>>> from firesteel.types.logical import RowType
>>> bigint = DataTypes.BIGINT(nullable=False)
>>> scan = TableScan(ObjectIdentifier("c", "d", "t"), RowType.of(["a", "b"], [bigint, bigint]))
>>> frame = Frame(True, Bound(BoundKind.UNBOUNDED_PRECEDING), Bound(BoundKind.CURRENT_ROW))
>>> over = Over(scan, (OverGroup((0,), (SortKey(1),), frame, (OverCall("ROW_NUMBER", (), bigint, "rn"),)),))
>>> few = call("LESS_THAN", [InputRef(bigint, 2, "rn"), Literal(bigint, 4)])
>>> print(rank(Calc(over, (InputRef(bigint, 0, "a"),), ("a",), few)).explain())
Calc(select=[a])
  Rank(rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=3], partitionBy=[a], orderBy=[b ASC], select=[a, b])
    TableScan(table=[c.d.t])
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Call, Cast, Expression, InputRef, Literal, walk
from firesteel.table.bound.session import Session
from firesteel.table.evaluation.row_codegen import evaluate_constant
from firesteel.table.inference.families import is_integer
from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.plan.over import Over
from firesteel.table.plan.ranks import Rank
from firesteel.table.plan.rewriting import transform
from firesteel.table.plan.streaming import Calc
from firesteel.table.rules.conjunctions import columns_of, conjunction, conjuncts

__all__ = ["rank"]

_RANKS = ("ROW_NUMBER", "RANK", "DENSE_RANK")
_MIRRORED = {
    "LESS_THAN": "GREATER_THAN",
    "LESS_THAN_OR_EQUAL": "GREATER_THAN_OR_EQUAL",
    "GREATER_THAN": "LESS_THAN",
    "GREATER_THAN_OR_EQUAL": "LESS_THAN_OR_EQUAL",
    "EQUALS": "EQUALS",
}


def rank(node: LogicalNode, *, is_bounded: bool = False) -> LogicalNode:
    """A Calc with a condition on the number of a row. A bounded query numbers all rows where a stream cannot."""
    if not isinstance(node, Calc) or node.condition is None or not isinstance(node.input, Over):
        return node
    over = node.input
    calls = [call for group in over.groups for call in group.calls]
    if len(calls) != 1 or calls[0].function not in _RANKS:
        return node
    number = len(over.input.row_type.fields)
    start = 1
    ends: list[int | InputRef] = []
    rest: list[Expression] = []
    for condition in conjuncts(node.condition):
        found = _limit(condition, number)
        if found is None:
            rest.append(condition)
            continue
        function, limit = found
        if isinstance(limit, InputRef):
            ends.append(limit)
        else:
            first, last = _range(function, limit)
            start = max(start, first)
            ends += [] if last is None else [last]
    if not ends and start == 1:
        return node
    constant = min((end for end in ends if isinstance(end, int)), default=None)
    variable = [end for end in ends if isinstance(end, InputRef)]
    if is_bounded and (not ends or calls[0].function != "ROW_NUMBER"):
        return node
    if not ends:
        raise ValidationError(
            "Rank end is not specified. Currently rank only support TopN, which means the rank end must be specified."
        )
    if variable and (len(ends) > 1 or start > 1):
        return node
    if calls[0].function != "ROW_NUMBER":
        raise ValidationError(f"{calls[0].function}() on streaming table is not supported currently")
    if any(number in columns_of(part) for part in rest):
        return node
    (group,) = over.groups
    column = variable[0].index if variable else None
    ranked = Rank(over.input, group.partition, group.order, start, constant, column, calls[0].name)
    return _without_number(replace(node, input=ranked, condition=conjunction(rest)), ranked, number)


def _without_number(calc: Calc, ranked: Rank, number: int) -> LogicalNode:
    """The number as a constant if it is always the same, and no column if it is not read."""
    if ranked.start == ranked.end:
        constant = Literal(ranked.row_type.fields[number].type, ranked.end)

        def replaced(part: Expression) -> Expression:
            return constant if isinstance(part, InputRef) and part.index == number else part

        condition = None if calc.condition is None else transform(calc.condition, replaced)
        expressions = tuple(transform(expression, replaced) for expression in calc.expressions)
        calc = replace(calc, expressions=expressions, condition=condition)
    read = [*calc.expressions, *([] if calc.condition is None else [calc.condition])]
    if not any(number in columns_of(expression) for expression in read):
        calc = replace(calc, input=replace(ranked, number=None))
    return calc


def _limit(condition: Expression, number: int) -> tuple[str, Any] | None:
    """The comparison of the number with a constant, or of less or equal with a column; None if it is another one."""
    if not isinstance(condition, Call) or condition.function not in _MIRRORED:
        return None
    left, right = condition.arguments
    function = condition.function
    if _is_number(right, number):
        left, right, function = right, left, _MIRRORED[function]
    if not _is_number(left, number):
        return None
    inner = right.operand if isinstance(right, Cast) else right
    if isinstance(inner, InputRef):
        usable = function == "LESS_THAN_OR_EQUAL" and is_integer(inner.type) and inner.index != number
        return (function, inner) if usable else None
    if any(isinstance(part, InputRef) for part in walk(right)):
        return None
    value = evaluate_constant(right, Session())
    return None if value is None else (function, value)


def _is_number(expression: Expression, number: int) -> bool:
    inner = expression.operand if isinstance(expression, Cast) else expression
    return isinstance(inner, InputRef) and inner.index == number


def _range(function: str, value: Any) -> tuple[int, int | None]:
    """The first and the last number that fulfil a comparison."""
    floor = int(value // 1)
    whole = floor == value
    match function:
        case "LESS_THAN":
            return 1, floor - 1 if whole else floor
        case "LESS_THAN_OR_EQUAL":
            return 1, floor
        case "GREATER_THAN":
            return floor + 1, None
        case "GREATER_THAN_OR_EQUAL":
            return floor if whole else floor + 1, None
    return (floor, floor) if whole else (1, 0)

"""Operators, comparisons, conditions, casts, names and order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from firesteel.table.dsl.base import ExpressionBase, cast_node, node_of, ordered_node
from firesteel.table.parser import nodes

if TYPE_CHECKING:
    from firesteel.table.dsl.expression import Expression
    from firesteel.types.logical import LogicalType

__all__ = ["OperatorExpressions"]


class OperatorExpressions(ExpressionBase[Any]):
    """Python's operators, and what compares and names values."""

    __hash__ = object.__hash__

    def _binary(self, kind: type[exp.Expression], other: Any, reverse: bool = False) -> Expression[Any]:
        left, right = self._copy(), node_of(other)
        return self._of(kind(this=right, expression=left) if reverse else kind(this=left, expression=right))

    def _is(self, test: exp.Expression, negated: bool = False) -> Expression[Any]:
        found = exp.Is(this=self._copy(), expression=test)
        return self._of(exp.Not(this=found) if negated else found)

    # -- operators ---------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> Expression[Any]:  # type: ignore[override]
        return self._binary(exp.EQ, other)

    def __ne__(self, other: object) -> Expression[Any]:  # type: ignore[override]
        return self._binary(exp.NEQ, other)

    def __lt__(self, other: Any) -> Expression[Any]:
        return self._binary(exp.LT, other)

    def __gt__(self, other: Any) -> Expression[Any]:
        return self._binary(exp.GT, other)

    def __le__(self, other: Any) -> Expression[Any]:
        return self._binary(exp.LTE, other)

    def __ge__(self, other: Any) -> Expression[Any]:
        return self._binary(exp.GTE, other)

    def __and__(self, other: Any) -> Expression[Any]:
        return self._binary(exp.And, other)

    def __or__(self, other: Any) -> Expression[Any]:
        return self._binary(exp.Or, other)

    __rand__ = __and__
    __ror__ = __or__

    def __invert__(self) -> Expression[Any]:
        return self.is_not_true

    def __add__(self, other: Any) -> Expression[Any]:
        return self._binary(nodes.Plus, other)

    def __radd__(self, other: Any) -> Expression[Any]:
        return self._binary(nodes.Plus, other, reverse=True)

    def __sub__(self, other: Any) -> Expression[Any]:
        return self._binary(exp.Sub, other)

    def __rsub__(self, other: Any) -> Expression[Any]:
        return self._binary(exp.Sub, other, reverse=True)

    def __mul__(self, other: Any) -> Expression[Any]:
        return self._binary(exp.Mul, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Expression[Any]:
        return self._binary(exp.Div, other)

    def __rtruediv__(self, other: Any) -> Expression[Any]:
        return self._binary(exp.Div, other, reverse=True)

    def __mod__(self, other: Any) -> Expression[Any]:
        return self._binary(exp.Mod, other)

    def __rmod__(self, other: Any) -> Expression[Any]:
        return self._binary(exp.Mod, other, reverse=True)

    def __pow__(self, other: Any) -> Expression[Any]:
        return self._call("POWER", other)

    def __rpow__(self, other: Any) -> Expression[Any]:
        return self._of(nodes.Call(this="POWER", expressions=[node_of(other), self._copy()]))

    def __neg__(self) -> Expression[Any]:
        return self._of(exp.Neg(this=self._copy()))

    def __abs__(self) -> Expression[Any]:
        return self._call("ABS")

    def __getitem__(self, index: Any) -> Expression[Any]:
        return self._of(exp.Bracket(this=self._copy(), expressions=[node_of(index)]))

    # -- conditions --------------------------------------------------------------------------------------------

    def between(self, lower_bound: Any, upper_bound: Any) -> Expression[Any]:
        """Whether the value is between two others or is one of them."""
        return self._of(exp.Between(this=self._copy(), low=node_of(lower_bound), high=node_of(upper_bound)))

    def not_between(self, lower_bound: Any, upper_bound: Any) -> Expression[Any]:
        """Whether the value is less than one or greater than another."""
        return self._of(exp.Not(this=self.between(lower_bound, upper_bound)._copy()))

    def then(self, if_true: Any, if_false: Any) -> Expression[Any]:
        """One of two values, depending on this condition."""
        branch = exp.If(this=self._copy(), true=node_of(if_true))
        return self._of(exp.Case(ifs=[branch], default=node_of(if_false)))

    def if_null(self, null_replacement: Any) -> Expression[Any]:
        """The value, or another one if it is null."""
        return self._call("IFNULL", null_replacement)

    @property
    def is_null(self) -> Expression[Any]:
        """Whether the value is null."""
        return self._is(exp.Null())

    @property
    def is_not_null(self) -> Expression[Any]:
        """Whether the value is not null."""
        return self._is(exp.Null(), negated=True)

    @property
    def is_true(self) -> Expression[Any]:
        """Whether the condition is true: neither false nor null."""
        return self._is(exp.Boolean(this=True))

    @property
    def is_false(self) -> Expression[Any]:
        """Whether the condition is false: neither true nor null."""
        return self._is(exp.Boolean(this=False))

    @property
    def is_not_true(self) -> Expression[Any]:
        """Whether the condition is false or null."""
        return self._is(exp.Boolean(this=True), negated=True)

    @property
    def is_not_false(self) -> Expression[Any]:
        """Whether the condition is true or null."""
        return self._is(exp.Boolean(this=False), negated=True)

    def in_(self, first_element_or_table: Any, *remaining_elements: Any) -> Expression[Any]:
        """Whether the value is one of several, or in the only column of a table."""
        plan = getattr(first_element_or_table, "_plan", None)
        if plan is not None:
            if remaining_elements:
                raise TypeError("in_ takes one table, or values.")
            return self._of(exp.In(this=self._copy(), query=nodes.BoundRelation(this=plan)))
        elements = [node_of(element) for element in (first_element_or_table, *remaining_elements)]
        return self._of(exp.In(this=self._copy(), expressions=elements))

    # -- types, names and order --------------------------------------------------------------------------------

    def cast(self, data_type: LogicalType) -> Expression[Any]:
        """The value as another type; a value that cannot be converted is an error."""
        return self._of(cast_node(self._copy(), data_type))

    def try_cast(self, data_type: LogicalType) -> Expression[Any]:
        """The value as another type, or null if it cannot be converted."""
        return self._of(cast_node(self._copy(), data_type, safe=True))

    def alias(self, name: str, *extra_names: str) -> Expression[Any]:
        """The expression with a name; a table function may have several."""
        if not extra_names:
            return self._of(exp.Alias(this=self._copy(), alias=exp.to_identifier(name, quoted=True)))
        names = [exp.to_identifier(each, quoted=True) for each in (name, *extra_names)]
        return self._of(exp.Aliases(this=self._copy(), expressions=names))

    def as_argument(self, name: str) -> Expression[Any]:
        """The expression as the argument of a name in a call."""
        return self._of(exp.Kwarg(this=exp.to_identifier(name, quoted=True), expression=self._copy()))

    @property
    def asc(self) -> Expression[Any]:
        """In ``order_by``: from the smallest to the largest value, nulls last."""
        return self._of(ordered_node(self._copy(), descending=False))

    @property
    def desc(self) -> Expression[Any]:
        """In ``order_by``: from the largest to the smallest value, nulls first."""
        return self._of(ordered_node(self._copy(), descending=True))

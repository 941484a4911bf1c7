"""Expressions of DEFINE and MEASURES: columns are those of rows that a pattern variable has matched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlglot import exp

from firesteel.table.binder.calls import call, cast_to
from firesteel.table.binder.expressions import ExpressionBinder
from firesteel.table.binder.grouping import NEVER_NULL, aggregate_call
from firesteel.table.binder.scope import Scope
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression, InputRef, Literal
from firesteel.table.bound.session import Session
from firesteel.table.functions.registry import find_function, unknown_function
from firesteel.table.inference.families import is_approximate, is_boolean, is_null
from firesteel.table.parser import nodes
from firesteel.table.plan.match.node import MatchTime, RowAggregate, RowNavigation
from firesteel.table.plan.rewriting import transform
from firesteel.table.plan.time_attributes import is_rowtime
from firesteel.types.logical import TimestampKind, TimestampType

__all__ = ["MatchExpressionBinder", "MatchScope"]

_NAVIGATIONS = ("FIRST", "LAST")
_PHYSICAL = ("PREV", "NEXT")
_NO_PHYSICAL = "Flink does not support physical offsets within partition."


@dataclass(frozen=True)
class _Navigation:
    """FIRST or LAST around a column, or none of them."""

    from_first: bool = False
    offset: int = 0


class MatchScope(Scope):
    """The columns of the input by variable; in the definition of a variable, its last row is the current one."""

    def __init__(self, rows: Scope, variables: Sequence[str], current: str | None = None) -> None:
        super().__init__(rows.columns)
        self._rows = rows
        self._variables = frozenset(variables)
        self._current = current
        self._navigation: _Navigation | None = _Navigation()
        self._used: set[str | None] = set()
        """Variables since ``collecting`` began."""

    def resolve(self, path: Sequence[str]) -> Expression:
        """The column of ``variable.column`` or ``column``, in the row that is asked for."""
        variable = None
        if len(path) > 1 and path[0] in self._variables:
            variable, path = path[0], path[1:]
            if path[0] == "*":
                raise ValidationError("Unknown field '*'")
            if all(column.name != path[0] for column in self.columns):
                raise ValidationError(f"Column '{path[0]}' not found in table '{variable}'.")
        self._used.add(variable)
        found = self._rows.resolve(path)
        return transform(found, lambda part: self._reference(variable, part) if isinstance(part, InputRef) else part)

    def _reference(self, variable: str | None, column: InputRef) -> Expression:
        navigation = self._navigation
        is_of_current = self._current is not None and variable in (None, self._current)
        if navigation is None or (is_of_current and navigation == _Navigation()):
            return column
        return RowNavigation(column.type, variable, column.index, column.name, navigation.from_first, navigation.offset)

    @contextmanager
    def collecting(self, navigation: _Navigation | None) -> Iterator[set[str | None]]:
        """Binds columns of other rows, or of each row of an aggregate; gives the variables that were named."""
        before, self._navigation = self._navigation, navigation
        around, self._used = self._used, set()
        try:
            yield self._used
        finally:
            self._navigation = before
            self._used = around | self._used

    @property
    def navigates(self) -> bool:
        """Whether FIRST, LAST or an aggregate is around what is bound."""
        return self._navigation != _Navigation()


class MatchExpressionBinder(ExpressionBinder):
    """Binds expressions of DEFINE, or of MEASURES if ``is_measure``."""

    def __init__(self, scope: MatchScope, sql: str, session: Session, *, is_measure: bool) -> None:
        super().__init__(scope, sql, session)
        self._rows = scope
        self._is_measure = is_measure
        self._in_aggregate = False
        self._binders[exp.Filter] = self._filter
        self._binders[exp.Window] = self._window
        self._binders[exp.Subquery] = self._query
        self._binders[exp.Exists] = self._query

    def _call(self, node: nodes.Call) -> Expression:
        name = node.function_name
        if name in ("FINAL", "RUNNING"):
            return self._semantics(name, node)
        if name in _NAVIGATIONS:
            return self._navigation(name, node)
        if name in _PHYSICAL:
            return self._physical(name, node)
        if name == "CLASSIFIER":
            raise ValidationError("CLASSIFIER() is not supported.", hint="Flink does not support it either.")
        if name == "MATCH_NUMBER":
            raise unknown_function(name)
        if name == "MATCH_ROWTIME":
            return self._match_rowtime(node)
        if name == "MATCH_PROCTIME":
            return self._match_proctime(node)
        if aggregate_call(node) is not None:
            return self._aggregate(node)
        return super()._call(node)

    def _filter(self, _: exp.Filter) -> Expression:
        raise ValidationError("FILTER is not supported in MATCH_RECOGNIZE.", hint="Write SUM(CASE WHEN … END).")

    def _window(self, _: exp.Window) -> Expression:
        raise ValidationError("OVER is not supported in MATCH_RECOGNIZE.")

    def _query(self, _: exp.Expression) -> Expression:
        raise ValidationError("A query is not supported in MATCH_RECOGNIZE.", hint="Join the table before.")

    def _semantics(self, name: str, node: nodes.Call) -> Expression:
        if not self._is_measure:
            raise ValidationError(f"Cannot use RUNNING/FINAL in DEFINE: {name}.")
        if name == "RUNNING":
            raise ValidationError(
                "RUNNING is not supported in MEASURES.", hint="With ONE ROW PER MATCH it is the same as FINAL."
            )
        return self.bind(node.expressions[0])

    # -- navigation --------------------------------------------------------------------------------------------

    def _navigation(self, name: str, node: nodes.Call) -> Expression:
        if self._in_aggregate:
            raise ValidationError(f"{name} in an aggregate function is not supported.")
        if self._rows.navigates:
            raise ValidationError(f"Cannot nest {name} under LAST/FIRST.")
        argument = node.expressions[0]
        if any(isinstance(part, nodes.Call) and aggregate_call(part) is not None for part in argument.walk()):
            raise ValidationError(f"Cannot use aggregation in navigation {name}.")
        with self._rows.collecting(_Navigation(name == "FIRST", self._offset(name, node))) as variables:
            bound = self.bind(argument)
        _check_single(variables, name)
        return bound

    def _offset(self, name: str, node: nodes.Call) -> int:
        if len(node.expressions) == 1:
            return 0
        offset = self.bind(node.expressions[1])
        if not isinstance(offset, Literal) or not isinstance(offset.value, int) or offset.value < 0:
            raise ValidationError(f"The offset of {name} is a constant that is not negative.")
        return offset.value

    def _physical(self, name: str, node: nodes.Call) -> Expression:
        if self._is_measure:
            raise ValidationError(f"Cannot use PREV/NEXT in MEASURE: {name}.", hint="LAST(x, 1) is the row before.")
        offset = self._offset(name, node) if len(node.expressions) > 1 else 1
        if offset or any(
            isinstance(part, nodes.Call) and part.function_name in _NAVIGATIONS for part in node.expressions[0].walk()
        ):
            raise ValidationError(_NO_PHYSICAL, hint="Write LAST(x, 1) for the row of the match before this one.")
        return self.bind(node.expressions[0])

    # -- aggregates --------------------------------------------------------------------------------------------

    def _aggregate(self, node: nodes.Call) -> Expression:
        definition = find_function(node.function_name)
        assert definition is not None
        if self._in_aggregate:
            raise ValidationError("Aggregate expressions cannot be nested.")
        if node.args.get("quantifier"):
            raise ValidationError(f"DISTINCT/ALL not allowed with {definition.name} function in MATCH_RECOGNIZE.")
        is_star = len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Star)
        parts = [] if is_star else node.expressions
        if any(isinstance(part, exp.JSONKeyValue) for part in parts) or definition.name.startswith("JSON"):
            raise ValidationError(f"{definition.name} is not supported in MATCH_RECOGNIZE.")
        if not parts and not is_star:
            raise ValidationError(
                f"Invalid number of arguments to function '{definition.name}'. Was expecting 1 arguments"
            )
        self._in_aggregate = True
        try:
            with self._rows.collecting(None) as variables:
                arguments = [self.bind(part) for part in parts]
        finally:
            self._in_aggregate = False
        if not variables and not is_star:
            raise ValidationError(
                f"No pattern variable specified in aggregate {definition.name}.", hint="Write a column, or COUNT(*)."
            )
        _check_single(variables, definition.name)
        variable = next(iter(variables), None)
        inferred = definition.signature(arguments, ())
        cast = tuple(cast_to(argument, type_) for argument, type_ in zip(arguments, inferred.arguments, strict=True))
        _check_variance(definition.name, arguments)
        nullable = definition.name not in NEVER_NULL
        return RowAggregate(inferred.result.copy(nullable), variable, definition.name, cast)

    # -- times -------------------------------------------------------------------------------------------------

    def _match_rowtime(self, node: nodes.Call) -> Expression:
        arguments = self._all(node.expressions)
        if len(arguments) > 1:
            raise ValidationError("MATCH_ROWTIME takes no argument, or a row time.")
        if arguments and not is_rowtime(arguments[0].type):
            raise ValidationError(
                "The function MATCH_ROWTIME requires argument to be a row time attribute type, but is "
                f"'{arguments[0].type.as_summary_string()}'."
            )
        if arguments:
            return MatchTime(arguments[0].type)
        return MatchTime(TimestampType(3, TimestampKind.ROWTIME, nullable=False))

    def _match_proctime(self, node: nodes.Call) -> Expression:
        if node.expressions:
            raise ValidationError("MATCH_PROCTIME takes no arguments.")
        return call("PROCTIME", [])

    def bind_definition(self, node: exp.Expression) -> Expression:
        """The condition of a variable."""
        bound = self.bind(node)
        if is_null(bound.type):
            raise ValidationError("Illegal use of 'NULL'", position=self._position(node))
        if not is_boolean(bound.type):
            raise ValidationError("DEFINE clause must be a condition", position=self._position(node))
        return bound


def _check_variance(function: str, arguments: Sequence[Expression]) -> None:
    """Refuses what Flink computes here with other rounding than in groups."""
    if function.startswith(("VAR", "STDDEV")) and not is_approximate(arguments[0].type):
        raise ValidationError(
            f"{function} of {arguments[0].type.as_summary_string()} is not supported in MATCH_RECOGNIZE.",
            hint="Cast the argument to DOUBLE.",
        )


def _check_single(variables: set[str | None], function: str) -> None:
    if len(variables) > 1:
        names = ", ".join(sorted("*" if name is None else name for name in variables))
        raise ValidationError(f"Multiple pattern variables in {function}: {names}.")

"""Which calls of the user's functions Spark can make with the results, and the calls, of Firesteel's operators."""

from __future__ import annotations

from firesteel.table.bound.nodes import Call, Case, Expression, walk
from firesteel.table.evaluation.vector_codegen import may_fail
from firesteel.table.functions.registry import definition_of
from firesteel.table.plan.subqueries import OuterRef, Subquery
from firesteel.table.user_functions.wrappers import UserDefinedAsyncScalarFunctionWrapper

__all__ = ["is_user_function", "reason_against"]


def is_user_function(expression: Expression) -> bool:
    """Whether it is a call of a function of the user."""
    return isinstance(expression, Call) and expression.definition is not None


def reason_against(expression: Expression, *, is_filter: bool = False) -> str | None:
    """Why an expression of SELECT, or the condition of WHERE, has functions that Spark cannot call alike.

    Spark calls a function of Python for all rows, before it evaluates the expression around the call, and the text of
    an argument may occur in Spark SQL several times.
    """
    functions = [part for part in walk(expression) if isinstance(part, Call) and is_user_function(part)]
    if not functions:
        return None
    for call in functions:
        if isinstance(call.definition.wrapper, UserDefinedAsyncScalarFunctionWrapper):
            return f"the function {call.function} is asynchronous"
    if any(isinstance(part, (Subquery, OuterRef)) for part in walk(expression)):
        return f"the function {functions[0].function} is called beside a subquery"
    if is_filter:
        return _reason_against_filter(_conjuncts(expression))
    return _reason_of_rows(expression) or _reason_of_repetition(expression)


def _reason_against_filter(conditions: list[Expression]) -> str | None:
    """Spark evaluates conditions without functions of Python first, and calls all functions of the others."""
    calling = [part for part in conditions if any(map(is_user_function, walk(part)))]
    others = [part for part in conditions if part not in calling]
    found = _reason_of_rows(calling[0]) or _reason_of_repetition(calling[0])
    if found is not None:
        return found
    if len(calling) > 1 or any(may_fail(part) or not _is_deterministic(part) for part in others):
        return f"the function {_name(calling[-1])} is called only for rows that meet other conditions"
    return None


def _reason_of_rows(expression: Expression) -> str | None:
    """The reason if a function is called for some rows only."""
    lazy: tuple[Expression, ...] = ()
    if isinstance(expression, Case):
        lazy = (*expression.conditions[1:], *expression.results, expression.default)
    elif isinstance(expression, Call) and expression.function in ("AND", "OR") and expression.definition is None:
        lazy = expression.arguments[1:]
    for part in lazy:
        if any(map(is_user_function, walk(part))):
            return f"the function {_name(part)} is called for some rows only"
    return next(filter(None, map(_reason_of_rows, expression.children())), None)


def _reason_of_repetition(expression: Expression) -> str | None:
    """The reason if a call with other results each time may be made several times for a row."""
    if is_user_function(expression):
        return next(filter(None, map(_reason_of_repetition, expression.children())), None)
    for part in walk(expression):
        if is_user_function(part) and not _is_deterministic(part):
            return f"the result of {_name(part)} is not deterministic, and part of another expression"
    return None


def _is_deterministic(expression: Expression) -> bool:
    return all(definition_of(part).is_deterministic for part in walk(expression) if isinstance(part, Call))


def _name(expression: Expression) -> str:
    return next(part.function for part in walk(expression) if isinstance(part, Call) and is_user_function(part))


def _conjuncts(condition: Expression) -> list[Expression]:
    if isinstance(condition, Call) and condition.function == "AND" and condition.definition is None:
        return [found for part in condition.arguments for found in _conjuncts(part)]
    return [condition]

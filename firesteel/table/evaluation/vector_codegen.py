"""Generates a Python function that evaluates expressions on the columns of a batch.

Each operation is one call of a kernel on Arrow arrays; an expression that occurs several times is evaluated once. A
function without a kernel for its types runs its row body in a loop. Operands of AND, OR and CASE that may fail are
evaluated on the rows that need them only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.bound.errors import EvaluationError
from firesteel.table.bound.nodes import Call, Case, Cast, Expression, FieldAccess, InputRef, Literal, walk
from firesteel.table.bound.session import Session
from firesteel.table.casts.row import can_fail as cast_can_fail
from firesteel.table.casts.row import cast_row
from firesteel.table.casts.vector import cast_vector
from firesteel.table.casts.vector_text import partial_cast_vector
from firesteel.table.evaluation.folding import fold
from firesteel.table.evaluation.row_codegen import can_be_null, compile_row
from firesteel.table.functions.registry import definition_of, function
from firesteel.types.internal import arrow_type, from_column, to_column
from firesteel.types.logical import LogicalType

__all__ = ["compile_vector", "may_fail"]

VectorFunction = Callable[[Sequence[Any], int], list[Any]]
"""From columns and their length to the columns of results."""


def compile_vector(expressions: Sequence[Expression], session: Session | None = None) -> VectorFunction:
    """A function from the columns of a batch, and their length, to the columns of the expressions.

    Its errors have the expression and the row.
    """
    session = session or Session()
    try:
        kernels = _compile(expressions, session)
    except EvaluationError:  # a constant that Arrow cannot hold
        return lambda columns, length: _row_by_row(expressions, columns, length, session)

    def evaluate(columns: Sequence[Any], length: int) -> list[Any]:
        try:
            return kernels(columns, length)
        except EvaluationError:
            return _row_by_row(expressions, columns, length, session)

    return evaluate


def _row_by_row(expressions: Sequence[Expression], columns: Sequence[Any], length: int, session: Session) -> list[Any]:
    """What kernels could not compute: raises the error of the first row that fails.

    If none does, there was a value between two kernels that a column of Arrow cannot hold: a map with a key that is
    NULL, a TIMESTAMP(9) before 1677.
    """
    used = {part.index: part for one in expressions for part in walk(one) if isinstance(part, InputRef)}
    values: list[Any] = [repeat(None)] * (max(used, default=-1) + 1)
    for index, column in used.items():
        values[index] = from_column(columns[index], column.type)
    evaluate = compile_row(expressions, session)
    rows = [evaluate(row[1:]) for row in zip(range(length), *values, strict=False)]
    results = zip(*rows, strict=True) if rows else repeat((), len(expressions))
    return [_to_column(found, one.type) for found, one in zip(results, expressions, strict=True)]


def _compile(expressions: Sequence[Expression], session: Session) -> VectorFunction:
    writer = _VectorWriter(session)
    results = [writer.array(fold(expression, session)) for expression in expressions]
    text = "\n".join(
        [
            "def evaluate(columns, length):",
            *(f"    {name} = columns[{index}]" for index, name in sorted(writer.columns.items())),
            *writer.lines,
            f"    return [{', '.join(results)}]",
        ]
    )
    code = compile(text, __file__, "exec")
    exec(code, writer.names)  # noqa: S102 - our own text
    evaluate: VectorFunction = writer.names["evaluate"]
    return evaluate


def may_fail(expression: Expression) -> bool:
    """Whether the evaluation may raise an error."""
    for part in walk(expression):
        if isinstance(part, Call) and definition_of(part).can_fail:
            return True
        if isinstance(part, Cast) and not part.safe and cast_can_fail(part.operand.type, part.type):
            return True
    return False


def _scalar(literal: Literal) -> Any:
    return _to_column([literal.value], literal.type)[0]


def _to_column(values: Sequence[Any], type_: LogicalType) -> Any:
    try:
        return to_column(values, type_)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise EvaluationError.of_column(type_, error) from error


def _constant_array(value: Any, type_: Any, length: int) -> Any:
    return pa.nulls(length, type_) if value is None or not length else pa.repeat(value, length)


class _VectorWriter:
    """Writes the statements of a function."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.names: dict[str, Any] = {"constant_array": _constant_array}
        self.lines: list[str] = []
        self.columns: dict[int, str] = {}
        self._known: dict[Expression, str] = {}

    def array(self, expression: Expression) -> str:
        """The name of the array of an expression, also of a constant."""
        if isinstance(expression, Literal):
            type_ = arrow_type(expression.type)
            scalar = None if expression.value is None else _scalar(expression)
            return self._assign(f"constant_array({self._bind('k', scalar)}, {self._bind('k', type_)}, length)")
        return self.value(expression)

    def value(self, expression: Expression) -> str:
        """The name of an array, or of a scalar for a constant."""
        if isinstance(expression, InputRef):
            return self.columns.setdefault(expression.index, f"c{expression.index}")
        if expression not in self._known:
            self._known[expression] = self._write(expression)
        return self._known[expression]

    def _write(self, expression: Expression) -> str:
        match expression:
            case Literal():
                return self._bind("k", _scalar(expression))
            case Call() if expression.function in ("AND", "OR"):
                return self._write_logic(expression)
            case Call():
                return self._write_call(expression)
            case Cast():
                return self._write_cast(expression)
            case Case():
                return self._write_case(expression)
            case FieldAccess():
                kernel = self._bind("f", lambda array, index=expression.index: pc.struct_field(array, [index]))
                return self._assign(f"{kernel}({self.array(expression.operand)})")
        raise AssertionError(expression)

    def _bind(self, prefix: str, value: Any) -> str:
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def _assign(self, text: str) -> str:
        name = f"t{len(self.lines)}"
        self.lines.append(f"    {name} = {text}")
        return name

    def _write_call(self, call: Call) -> str:
        definition = definition_of(call)
        if definition.batch is not None:
            names = [self.value(argument) for argument in call.arguments]
            run = self._bind("f", definition.batch.make(call, self._session))
            return self._assign(f"{run}(length{''.join(f', {name}' for name in names)})")
        if not call.arguments or all(isinstance(argument, Literal) for argument in call.arguments):
            return self._write_loop(call)
        kernel = definition.vector_body(call, self._session)
        if kernel is None:
            return self._write_loop(call)
        arguments = ", ".join(self.value(argument) for argument in call.arguments)
        return self._assign(f"{self._bind('f', kernel)}({arguments})")

    def _write_loop(self, call: Call) -> str:
        definition = definition_of(call)
        body = definition.row_body(call, self._session)
        assert body is not None, f"{call.function} has no body"
        loop = _loop(body, call.arguments, call.type, definition.strict)
        arrays = [self.value(argument) for argument in call.arguments if not isinstance(argument, Literal)]
        return self._assign(f"{self._bind('f', loop)}(length{''.join(f', {name}' for name in arrays)})")

    def _write_cast(self, cast: Cast) -> str:
        source, target = cast.operand.type, cast.type
        kernel = cast_vector(source, target)
        if kernel is None:
            convert = cast_row(source, target, cast.safe, self._session)
            if convert is None and arrow_type(source) == arrow_type(target):
                return self.array(cast.operand)
            convert = convert or _same
            loop = _loop(convert, (cast.operand,), target, strict=True)
            arrays = "" if isinstance(cast.operand, Literal) else f", {self.value(cast.operand)}"
            partial = partial_cast_vector(source, target) if arrays else None
            if partial is not None:
                loop = _try_first(partial, loop)
            return self._assign(f"{self._bind('f', loop)}(length{arrays})")
        return self._assign(f"{self._bind('f', kernel)}({self.array(cast.operand)})")

    def _write_logic(self, call: Call) -> str:
        left, right = call.arguments
        kernel = self._bind("f", function(call.function).vector)
        if not may_fail(right):
            return self._assign(f"{kernel}({self.array(left)}, {self.array(right)})")
        decides = call.function == "OR"
        lazily = self._partial(right)
        first = self.array(left)

        def evaluate(columns: Sequence[Any], value: Any, length: int) -> Any:
            needed = pc.fill_null(pc.not_equal(value, decides), True)
            second = lazily(columns, needed, pa.array([decides] * length, pa.bool_()))
            return function(call.function).vector(value, second)  # type: ignore[operator,misc]

        return self._assign(f"{self._bind('f', evaluate)}(columns, {first}, length)")

    def _write_case(self, case: Case) -> str:
        if not any(map(may_fail, (*case.conditions, *case.results, case.default))):
            return self._write_eager_case(case)
        target = arrow_type(case.type)
        conditions = [self._partial(condition) for condition in case.conditions]
        results = [self._partial(result) for result in (*case.results, case.default)]

        def evaluate(columns: Sequence[Any], length: int) -> Any:
            open_rows = pa.repeat(pa.scalar(True), length)
            found = pa.nulls(length, target)
            for condition, result in zip(conditions, results, strict=False):
                test = condition(columns, open_rows, pa.repeat(pa.scalar(False), length))
                chosen = pc.and_(open_rows, pc.fill_null(test, False))
                found = result(columns, chosen, found)
                open_rows = pc.and_not(open_rows, chosen)
            return results[-1](columns, open_rows, found)

        return self._assign(f"{self._bind('f', evaluate)}(columns, length)")

    def _write_eager_case(self, case: Case) -> str:
        choose = self._bind("f", _choose)
        conditions = ", ".join(self.array(condition) for condition in case.conditions)
        results = ", ".join(self.value(result) for result in (*case.results, case.default))
        return self._assign(f"{choose}([{conditions}], [{results}])")

    def _partial(self, expression: Expression) -> Callable[[Sequence[Any], Any, Any], Any]:
        """Evaluates an expression on the rows of a mask, and puts the results into an array."""
        evaluate = _compile([expression], self._session)
        used = sorted({part.index for part in walk(expression) if isinstance(part, InputRef)})

        def run(columns: Sequence[Any], mask: Any, into: Any) -> Any:
            rows = mask.true_count
            if not rows:
                return into
            if rows == len(mask):
                return evaluate(columns, rows)[0]
            parts: list[Any] = [None] * (used[-1] + 1 if used else 0)
            for index in used:
                parts[index] = columns[index].filter(mask)
            return _scatter(into, mask, evaluate(parts, rows)[0])

        return run


def _same(value: Any) -> Any:
    """A value that rows hold alike in two types, but columns do not."""
    return value


def _try_first(kernel: Callable[[Any], Any | None], loop: Callable[..., Any]) -> Callable[..., Any]:
    def evaluate(length: int, array: Any) -> Any:
        found = kernel(array)
        return loop(length, array) if found is None else found

    return evaluate


def _scatter(into: Any, mask: Any, values: Any) -> Any:
    try:
        return pc.replace_with_mask(into, mask, values)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        positions = iter(range(len(values)))
        taken = pa.array([next(positions) if chosen else None for chosen in mask.to_pylist()], pa.int64())
        return pc.if_else(mask, values.take(taken), into)


def _choose(conditions: list[Any], results: list[Any]) -> Any:
    if len(conditions) == 1:
        return pc.if_else(pc.fill_null(conditions[0], False), results[0], results[1])
    struct = pa.StructArray.from_arrays(
        [pc.fill_null(condition, False) for condition in conditions], [str(i) for i in range(len(conditions))]
    )
    return pc.case_when(struct, *results)


def _loop(
    body: Callable[..., Any] | str, arguments: Sequence[Expression], type_: LogicalType, strict: bool
) -> Callable[..., Any]:
    """A kernel that calls a row body for each row."""
    names: dict[str, Any] = {"body": body}
    variables = [f"a{index}" for index in range(len(arguments))]
    nulls = [
        f"{name} is None"
        for name, argument in zip(variables, arguments, strict=True)
        if strict and not (isinstance(argument, Literal) and argument.value is not None) and can_be_null(argument)
    ]
    text = body.format(*variables, v="v") if isinstance(body, str) else f"body({', '.join(variables)})"
    if nulls:
        text = f"None if {' or '.join(nulls)} else {text}"
    loop = f"lambda rows: [{text} for {''.join(f'{name}, ' for name in variables) or '_'} in rows]"
    if isinstance(body, str) and "{v}" in body:  # no walrus in a comprehension of a lambda's argument
        loop = f"lambda rows: [{text} for {''.join(f'{name}, ' for name in variables)} in rows]"
    run = eval(compile(loop, __file__, "eval"), names)  # noqa: S307 - our own text
    constants = [argument.value if isinstance(argument, Literal) else None for argument in arguments]

    def evaluate(length: int, *arrays: Any) -> Any:
        given = iter(arrays)
        columns = [
            repeat(constant, length) if isinstance(argument, Literal) else from_column(next(given), argument.type)
            for argument, constant in zip(arguments, constants, strict=True)
        ]
        rows = zip(*columns, strict=True) if columns else range(length)
        return _to_column(run(rows), type_)

    return evaluate

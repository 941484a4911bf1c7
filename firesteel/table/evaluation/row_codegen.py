"""Generates a Python function that evaluates expressions on a row.

Each operation is a statement; an expression that occurs several times is evaluated once. Operands of AND, OR and CASE
are evaluated only when they are needed, as they may fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.table.bound.errors import EvaluationError
from firesteel.table.bound.nodes import Call, Case, Cast, Expression, FieldAccess, InputRef, Literal
from firesteel.table.bound.session import Session
from firesteel.table.casts.row import cast_row
from firesteel.table.evaluation.failures import located
from firesteel.table.functions.registry import definition_of
from firesteel.types.logical import DecimalType

__all__ = ["can_be_null", "compile_row", "evaluate_constant"]

RowFunction = Callable[[Sequence[Any]], tuple[Any, ...]]
_PLAIN = (int, bool, str, bytes, type(None))


def compile_row(expressions: Sequence[Expression], session: Session | None = None) -> RowFunction:
    """A function from a row to the values of the expressions. Its errors have the expression and the row."""
    session = session or Session()

    def locate(error: EvaluationError, row: Sequence[Any]) -> EvaluationError:
        return located(error, expressions, row, session, lambda one: _compile([one], session)(row)[0])

    return _compile(expressions, session, locate)


def _compile(expressions: Sequence[Expression], session: Session, locate: Any = None) -> RowFunction:
    writer = _RowWriter(session)
    results = [writer.value(expression) for expression in expressions]
    text = "\n".join(
        [
            "def evaluate(row):",
            "  try:",
            *(f"    {name} = row[{index}]" for index, name in sorted(writer.columns.items())),
            *writer.lines,
            f"    return ({', '.join(results)}{',' if len(results) == 1 else ''})",
            "  except EvaluationError as error:",
            "    raise (locate(error, row) if locate else error)",
        ]
    )
    writer.names |= {"EvaluationError": EvaluationError, "locate": locate}
    code = compile(text, __file__, "exec")
    exec(code, writer.names)  # noqa: S102 - our own text
    evaluate: RowFunction = writer.names["evaluate"]
    return evaluate


def evaluate_constant(expression: Expression, session: Session | None = None) -> Any:
    """The value of an expression without columns."""
    return compile_row([expression], session)(())[0]


def can_be_null(expression: Expression) -> bool:
    """Whether the value may be None; with regard to NULLs that functions return although their type is NOT NULL."""
    match expression:
        case Literal():
            return expression.value is None
        case Call() if expression.function in ("AND", "OR"):
            return any(map(can_be_null, expression.arguments))
        case Call():
            definition = definition_of(expression)
            if definition.returns_null:
                return True
            return definition.strict and any(map(can_be_null, expression.arguments))
        case Case():
            return any(map(can_be_null, (*expression.results, expression.default)))
        case InputRef():
            return expression.type.nullable
        case Cast():  # a decimal may be too large
            return expression.safe or can_be_null(expression.operand) or isinstance(expression.type, DecimalType)
    return True


class _RowWriter:
    """Writes the statements of a function."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.names: dict[str, Any] = {}
        self.lines: list[str] = []
        self.columns: dict[int, str] = {}
        self._indent = 1
        self._known: list[dict[Expression, str]] = [{}]
        self._variables = 0

    def value(self, expression: Expression) -> str:
        """Writes what is needed for an expression, and returns the name or the constant that stands for its value."""
        match expression:
            case Literal():
                return self._literal(expression.value)
            case InputRef():
                return self.columns.setdefault(expression.index, f"c{expression.index}")
        for scope in self._known:
            if expression in scope:
                return scope[expression]
        name = self._write(expression)
        self._known[-1][expression] = name
        return name

    def _write(self, expression: Expression) -> str:
        match expression:
            case Call() if expression.function in ("AND", "OR"):
                return self._write_logic(expression)
            case Call():
                return self._write_call(expression)
            case Cast():
                return self._write_cast(expression)
            case Case():
                return self._write_case(expression)
            case FieldAccess():
                operand = self.value(expression.operand)
                return self._assign(f"None if {operand} is None else {operand}[{expression.index}]")
        raise AssertionError(expression)

    def _literal(self, value: Any) -> str:
        if type(value) in _PLAIN or (type(value) is float and math.isfinite(value)):
            return f"({value!r})" if type(value) in (int, float) else repr(value)
        return self._bind("k", value)

    def _named(self, expression: Expression) -> str:
        if isinstance(expression, Literal):
            return self._bind("k", expression.value)
        return self.value(expression)

    def _bind(self, prefix: str, value: Any) -> str:
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def _variable(self) -> str:
        self._variables += 1
        return f"t{self._variables}"

    def _line(self, text: str) -> None:
        self.lines.append("    " * self._indent + text)

    def _assign(self, text: str) -> str:
        name = self._variable()
        self._line(f"{name} = {text}")
        return name

    def _block(self, head: str, write: Callable[[], None]) -> None:
        self._line(head)
        self._indent += 1
        self._known.append({})
        write()
        self._known.pop()
        self._indent -= 1

    def _write_call(self, call: Call) -> str:
        definition = definition_of(call)
        body = definition.row_body(call, self._session)
        assert body is not None, f"{call.function} has no row body"
        arguments = [self.value(argument) for argument in call.arguments]
        if isinstance(body, str) and " is " in body:  # a comparison by identity with a constant
            arguments = [self._named(argument) for argument in call.arguments]
        if isinstance(body, str):
            text = body.format(*arguments, v=self._variable() if "{v}" in body else "")
        else:
            text = f"{self._bind('f', body)}({', '.join(arguments)})"
        nulls = [
            f"{name} is None"
            for name, argument in zip(arguments, call.arguments, strict=True)
            if definition.strict and can_be_null(argument)
        ]
        return self._assign(f"None if {' or '.join(nulls)} else {text}" if nulls else text)

    def _write_cast(self, cast: Cast) -> str:
        operand = self.value(cast.operand)
        convert = cast_row(cast.operand.type, cast.type, cast.safe, self._session)
        if convert is None:
            return operand
        text = f"{self._bind('f', convert)}({operand})"
        return self._assign(f"None if {operand} is None else {text}" if can_be_null(cast.operand) else text)

    def _write_logic(self, call: Call) -> str:
        """``decides`` is the value of an operand that decides the result alone."""
        left, right = call.arguments
        decides = call.function == "OR"
        result = self._assign(self.value(left))

        def write_right() -> None:
            value = self.value(right)
            self._line(f"if {result} is None: {result} = {decides} if {value} is {decides} else None")
            self._line(f"else: {result} = {value}")

        self._block(f"if {result} is not {decides}:", write_right)
        return result

    def _write_case(self, case: Case) -> str:
        result = self._variable()
        branches = list(zip(case.conditions, case.results, strict=True))

        def assign(expression: Expression) -> None:
            self._line(f"{result} = {self.value(expression)}")

        def write(index: int) -> None:
            if index == len(branches):
                assign(case.default)
                return
            condition, value = branches[index]
            self._block(f"if {self.value(condition)}:", lambda: assign(value))
            self._block("else:", lambda: write(index + 1))

        write(0)
        return result

"""Inlines the body of a simple user function into the generated loop, which saves the call.

``lambda x: x % 3 != 0`` becomes ``v1 % 3 != 0``: in CPython the call costs more than the work. It is done only where
it cannot change the meaning:

1. The client reads the function's source (``find_inline_expressions``), where the file is at hand. Candidates are
   lambdas and one-line ``def`` functions of one argument, or of two for a reduce, whose body is an expression of the
   arguments, constants, builtins, and names of the function's module or closure, which are looked up each time as the
   function would.
2. Nothing in it looks at the frame it is called from, as ``eval`` and ``locals`` do: that is the loop's.
3. The candidate is compiled and must have exactly the bytecode of the function itself, so that a stale file or a
   second lambda on the same line cannot be mistaken for it.
4. The table travels with the job, by code object; a slot looks up the code of the function it was given. A function
   that is not in the table is called.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from types import CodeType, FunctionType
from typing import Any

from firesteel.runtime.codegen.bytecode import shape_of

__all__ = [
    "InlineExpression",
    "InlineTable",
    "code_location",
    "find_inline_expressions",
    "inline_expression",
    "inline_expression_of_two",
    "parse",
    "register_inline_expressions",
    "tuple_fields",
]

InlineTable = dict[CodeType, "InlineExpression"]

_registered: InlineTable = {}
_NO_NAMES: Mapping[str, str] = {}
_MAX_ATTEMPTS = 10

_FRAME_NAMES = frozenset(
    {
        *("breakpoint", "dir", "eval", "exec", "globals", "locals", "super", "vars", "__import__"),
        *("currentframe", "_getframe", "_getframemodulename", "stack", "trace"),  # of inspect and sys
        # of pandas, numexpr, polars and DuckDB, whose expressions and queries may name variables
        *("evaluate", "execute", "query", "sql"),
    }
)
"""Functions that inspect the frame of their caller, as names and as attributes of anything."""
_FRAME_FUNCTIONS = frozenset(
    id(found)
    for module in (builtins, sys, inspect)
    for name in _FRAME_NAMES
    if (found := getattr(module, name, None)) is not None
)
"""The same under other names."""

_ALLOWED = (
    ast.Expression,
    ast.Constant,
    ast.Name,
    ast.Load,
    ast.Attribute,
    ast.Subscript,
    ast.Slice,
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Call,
    ast.keyword,
    ast.JoinedStr,
    ast.FormattedValue,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
)


@dataclass(frozen=True)
class InlineExpression:
    """A function's body as source text, and where the user wrote it."""

    text: str
    argument: str
    file: str
    line: int
    free_names: tuple[str, ...] = ()
    """Names other than the arguments': of builtins, of the function's module, or of its closure."""
    second_argument: str | None = None

    def applied_to(
        self, variable: str, names: Mapping[str, str] = _NO_NAMES, second_variable: str | None = None
    ) -> str:
        """The text with variables in the place of the arguments, and what stands for the free names in theirs."""
        replaced = {**names, self.argument: variable}
        if self.second_argument is not None and second_variable is not None:
            replaced[self.second_argument] = second_variable
        tree = _Renamer(replaced).visit(parse(self.text, "eval"))
        return f"({ast.unparse(tree)})"


def tuple_fields(
    expression: InlineExpression, variable: str, names: Mapping[str, str], second_variable: str
) -> list[str | None] | None:
    """The texts of the fields of the tuple that a function of two arguments makes; None if it does something else.

    The function must read its first argument by constant indexes of that tuple only, so that a list of the fields can
    stand for it. None stands for a field that is the one of the first argument at the same place.
    """
    body = parse(expression.text, "eval").body
    if not isinstance(body, ast.Tuple):
        return None
    indexes = {
        id(node.value): node.slice.value
        for node in ast.walk(body)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
    }
    for node in ast.walk(body):
        if isinstance(node, ast.Name) and node.id == expression.argument:
            index = indexes.get(id(node))
            if type(index) is not int or not 0 <= index < len(body.elts):
                return None
    replaced = {**names, expression.argument: variable}
    if expression.second_argument is not None:
        replaced[expression.second_argument] = second_variable
    unchanged = [f"{expression.argument}[{position}]" for position in range(len(body.elts))]
    return [
        None if ast.unparse(field) == same else f"({ast.unparse(_Renamer(replaced).visit(field))})"
        for field, same in zip(body.elts, unchanged, strict=True)
    ]


def register_inline_expressions(table: InlineTable) -> None:
    """Registers a job's table in this process."""
    _registered.update(table)


def inline_expression(function: Callable[[Any], Any]) -> InlineExpression | None:
    """What to write instead of a call of the function, None where only a call will do."""
    found = _lookup(function)
    return None if found is None or found.second_argument is not None else found


def inline_expression_of_two(function: Callable[[Any, Any], Any]) -> InlineExpression | None:
    """The same for a function of two arguments."""
    found = _lookup(function)
    return None if found is None or found.second_argument is None else found


def _lookup(function: Any) -> InlineExpression | None:
    code = getattr(function, "__code__", None)
    return None if code is None or not isinstance(function, FunctionType) else _registered.get(code)


def code_location(function: Any) -> tuple[str, int] | None:
    """File and line at which a function, method or callable object is defined; None for one not written in Python."""
    while isinstance(function, partial):
        function = function.func
    for candidate in (function, type(function).__call__):
        code = getattr(candidate, "__code__", None)
        if isinstance(code, CodeType):
            return code.co_filename, code.co_firstlineno
    return None


def find_inline_expressions(functions: Iterable[Any]) -> InlineTable:
    """The table of those functions that can be inlined; called where the program's source is."""
    table: InlineTable = {}
    for function in functions:
        found = _find(function)
        if found is not None:
            table[function.__code__] = found
    return table


def _find(function: Any) -> InlineExpression | None:
    """Reads a function's source and checks that it can be inlined; see the module's description."""
    if not isinstance(function, FunctionType) or function.__defaults__:
        return None
    code = function.__code__
    count = code.co_argcount
    if count not in (1, 2) or code.co_kwonlyargcount or code.co_flags & 0x2AC:  # *args, **kwargs, generators
        return None
    for arguments, body in _candidates(code.co_filename, code.co_firstlineno):
        if arguments == code.co_varnames[:count] and _is_simple(body) and _same(body, arguments, code):
            names = sorted({node.id for node in ast.walk(body) if isinstance(node, ast.Name)} - {*arguments})
            if not all(_is_known(name, function) for name in names):
                return None  # a global that open() will define: only the function itself finds it then
            if any(_looks_at_frames(name, function) for name in names):
                return None
            text, second = ast.unparse(body), arguments[1] if count == 2 else None
            return InlineExpression(text, arguments[0], code.co_filename, body.lineno, tuple(names), second)
    return None


def _candidates(file: str, line: int) -> Iterator[tuple[tuple[str, ...], ast.expr]]:
    for node in _functions(file, len(linecache.getlines(file))):
        arguments = tuple(argument.arg for argument in node.args.args)
        if isinstance(node, ast.Lambda):
            if node.lineno == line:
                yield arguments, node.body
        elif node.lineno == line and len(node.body) == 1:
            statement = node.body[0]
            if isinstance(statement, ast.Return) and statement.value is not None:
                yield arguments, statement.value


def parse(text: str, mode: str) -> Any:
    """As ``ast.parse``, which in Python 3.11 fails now and then while another thread does the same."""
    for _ in range(_MAX_ATTEMPTS):
        with suppress(SystemError):  # "AST constructor recursion depth mismatch": the threads have shared a counter
            return ast.parse(text, mode=mode)
    return ast.parse(text, mode=mode)


@lru_cache(maxsize=64)
def _functions(file: str, _length: int) -> list[ast.Lambda | ast.FunctionDef]:
    try:
        tree = parse("".join(linecache.getlines(file)), "exec")
    except SyntaxError:
        return []
    return [node for node in ast.walk(tree) if isinstance(node, (ast.Lambda, ast.FunctionDef))]


def _is_known(name: str, function: FunctionType) -> bool:
    return name in function.__code__.co_freevars or name in function.__globals__ or hasattr(builtins, name)


def _looks_at_frames(name: str, function: FunctionType) -> bool:
    if name in _FRAME_NAMES:
        return True
    code = function.__code__
    if name not in code.co_freevars:
        return id(function.__globals__.get(name)) in _FRAME_FUNCTIONS
    cell = (function.__closure__ or ())[code.co_freevars.index(name)]
    try:
        return id(cell.cell_contents) in _FRAME_FUNCTIONS
    except ValueError:
        return False  # not bound yet


def _is_simple(body: ast.expr) -> bool:
    return all(
        isinstance(node, _ALLOWED) and not (isinstance(node, ast.Attribute) and node.attr in _FRAME_NAMES)
        for node in ast.walk(body)
    )


def _same(body: ast.expr, arguments: Iterable[str], code: CodeType) -> bool:
    """Whether the expression compiles to the very bytecode of the function."""
    text = f"lambda {', '.join(arguments)}: ({ast.unparse(body)})"
    if code.co_freevars:
        text = f"lambda {', '.join(code.co_freevars)}: {text}"
    try:
        compiled: Any = compile(text, code.co_filename, "eval")
    except (SyntaxError, ValueError):
        return False
    for _ in range(2 if code.co_freevars else 1):
        compiled = next(constant for constant in compiled.co_consts if isinstance(constant, CodeType))
    shape = shape_of(code)
    return shape is not None and shape_of(compiled) == shape


class _Renamer(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]):
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        replacement = self._names.get(node.id)
        return node if replacement is None else parse(replacement, "eval").body

"""Ownership analysis of records in a chain: decides where the chain copies them (object reuse).

With ``pipeline.object-reuse: false`` a function may keep and change what it was given and what it has emitted. So a
record is copied before it reaches what keeps it (another function, a sink, an output buffer) if other code may hold
it. Nothing is copied where that cannot be: a record that was just deserialized belongs to the chain alone, a function
like ``lambda x: x[1]`` keeps nothing, and what is of an immutable type cannot be changed.
"""

from __future__ import annotations

import ast
import builtins
import json
from collections.abc import Callable, Sequence
from enum import Enum
from operator import itemgetter
from types import BuiltinFunctionType
from typing import Any

from firesteel.runtime.codegen.inlining import InlineExpression, inline_expression
from firesteel.types.copying import IMMUTABLE, copy_all
from firesteel.types.logical import StructuredType
from firesteel.types.python import IMMUTABLE_ROOTS, python_class
from firesteel.types.type_information import TypeInformation

__all__ = ["Ownership", "Shape", "copy_batch", "keeps_nothing", "ownership_of_type", "python_type", "shape_of"]


Shape = tuple[type, ...]
_MAX_SHAPE = 5


class Ownership(Enum):
    """Who may change a record."""

    FIXED = "fixed"
    """No owner: it is immutable. Also used for all records where objects are reused."""
    EXCLUSIVE = "exclusive"
    """Only what the chain gives it to."""
    TUPLE = "tuple"
    """It is declared as a tuple of immutable values: no owner if it is a tuple, and else as SHARED."""
    SHARED = "shared"
    """A function that may have kept it."""

    @property
    def may_be_changed(self) -> bool:
        """Whether code other than the next consumer may change the record."""
        return self is Ownership.SHARED or self is Ownership.TUPLE


def ownership_of_type(type_info: Any) -> Ownership:
    """The ownership of a function's results by their declared type."""
    if not isinstance(type_info, TypeInformation):
        return Ownership.SHARED
    type_ = type_info.to_logical()
    if type_.root in IMMUTABLE_ROOTS:
        return Ownership.FIXED
    if isinstance(type_, StructuredType) and all(part.root in IMMUTABLE_ROOTS for part in type_.children()):
        return Ownership.TUPLE
    return Ownership.SHARED


def shape_of(value: Any) -> Shape:
    """The classes of a small tuple's members if all are immutable, else nothing."""
    if value.__class__ is not tuple or len(value) > _MAX_SHAPE:
        return ()
    shape = tuple(map(type, value))
    return shape if IMMUTABLE.issuperset(shape) else ()


def python_type(type_info: Any) -> type:
    """The class that values of an immutable type mostly have."""
    return python_class(type_info.to_logical()) or str if isinstance(type_info, TypeInformation) else str


def copy_batch(values: Sequence[Any], ownership: Ownership) -> Sequence[Any]:
    """The records of a batch, copied where other code may change them."""
    if not ownership.may_be_changed or (ownership is Ownership.TUPLE and set(map(type, values)) == {tuple}):
        return values
    return copy_all(values)


# -- functions that keep nothing --------------------------------------------------------------------

_BUILTINS = frozenset(
    {
        *(abs, bool, bytes, chr, complex, dict, divmod, float, format, frozenset, hash, int, isinstance, len, list),
        *(max, min, ord, pow, range, repr, reversed, round, set, sorted, str, sum, tuple),
    }
)
_METHODS = frozenset(
    {
        *("capitalize", "casefold", "count", "decode", "encode", "endswith", "find", "format", "get", "index"),
        *("isalnum", "isalpha", "isdigit", "isnumeric", "isspace", "items", "join", "keys", "lower", "lstrip"),
        *("partition", "removeprefix", "removesuffix", "replace", "rpartition", "rsplit", "rstrip", "split"),
        *("splitlines", "startswith", "strip", "title", "total_seconds", "upper", "values", "zfill"),
    }
)
"""Methods of strings, dicts and lists: they neither change nor keep anything."""

_CONSTANTS = (type(None), bool, int, float, complex, str, bytes)


def keeps_nothing(function: Callable[..., Any], *, is_predicate: bool = False) -> bool:
    """Whether no reference to a function's argument, or to its result, is left once it has returned.

    This holds for some builtin functions, and for functions whose inlined body only reads its argument and constants.
    The attribute of an object may be one of its class, which others have too; of a predicate that does not matter.
    """
    if type(function) is itemgetter or function is json.loads:
        return True
    if type(function) in (type, BuiltinFunctionType):
        return function in _BUILTINS
    inlined = inline_expression(function)
    return inlined is not None and _only_reads(inlined, function, is_predicate)


def _only_reads(inlined: InlineExpression, function: Any, is_predicate: bool) -> bool:
    methods: set[ast.expr] = set()
    for node in ast.walk(ast.parse(inlined.text, mode="eval")):
        if isinstance(node, ast.Name):
            if node.id != inlined.argument and not _is_constant(node.id, function):
                return False
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute) and called.attr in _METHODS:
                methods.add(called)
            elif not isinstance(called, ast.Name) or called.id == inlined.argument:
                return False
        # a call is visited before what it calls
        elif isinstance(node, ast.Attribute) and node not in methods and not is_predicate:
            return False
    return True


def _is_constant(name: str, function: Any) -> bool:
    """Whether a name other than the argument's refers to an immutable object."""
    if name in function.__code__.co_freevars:
        cell = function.__closure__[function.__code__.co_freevars.index(name)]
        try:
            return isinstance(cell.cell_contents, _CONSTANTS)
        except ValueError:  # not assigned yet
            return False
    if name in function.__globals__:
        return isinstance(function.__globals__[name], _CONSTANTS)
    return getattr(builtins, name, None) in _BUILTINS

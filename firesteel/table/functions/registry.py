"""All built-in functions by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module

from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Call
from firesteel.table.functions.definition import FunctionDefinition

__all__ = ["FAMILIES", "OPERATORS", "definition_of", "find_function", "function", "functions", "unknown_function"]

FAMILIES: dict[str, tuple[str, ...]] = {
    "comparison": ("comparison", "strings.patterns"),
    "logical": ("logic",),
    "arithmetic": ("arithmetic", "math", "random"),
    "string": ("strings.basic", "strings.regexes", "strings.structured", "strings.concatenation"),
    "temporal": ("temporal", "temporal_conversion"),
    "conditional": ("conditional",),
    "collection": ("collections",),
    "value construction": ("objects",),
    "variant": ("variant",),
    "bitmap": ("bitmap",),
    "json": ("json_functions",),
    "hash": ("hashes",),
    "aggregate": ("aggregates",),
}
"""The families of Flink's documentation, each with the modules that define its functions."""

OPERATORS = frozenset(
    {
        *("AND", "OR", "IN", "LIKE", "SIMILAR", "AT", "VARIANT_AT", "||"),
        *("PLUS", "MINUS", "TIMES", "DIVIDE", "NEGATE", "EQUALS", "NOT_EQUALS"),
        *("GREATER_THAN", "GREATER_THAN_OR_EQUAL", "LESS_THAN", "LESS_THAN_OR_EQUAL"),
        *("IS_NULL", "IS_NOT_NULL", "IS_TRUE", "IS_NOT_TRUE", "IS_FALSE", "IS_NOT_FALSE"),
        *("IS_DISTINCT_FROM", "IS_NOT_DISTINCT_FROM", "IS_JSON"),
    }
)
"""Functions that SQL has an operator for, and no name."""

SPARK_MODULES = ("numbers", "strings", "regexes", "temporal", "collections")
"""The modules with the Spark SQL of functions that is longer than a word."""


@lru_cache(maxsize=1)
def functions() -> dict[str, FunctionDefinition]:
    """The definitions by upper-case name."""
    found: dict[str, FunctionDefinition] = {}
    for modules in FAMILIES.values():
        for module in modules:
            for definition in import_module(f"firesteel.table.functions.{module}").FUNCTIONS:
                assert definition.name not in found, definition.name
                found[definition.name] = definition
    for module in SPARK_MODULES:
        for name, text in import_module(f"firesteel.table.functions.spark.{module}").TEXTS.items():
            found[name] = replace(found[name], spark=text)
    return found


def find_function(name: str) -> FunctionDefinition | None:
    """The function of a name in any case; None if there is none."""
    return functions().get(name.upper())


@lru_cache(maxsize=1)
def _internal_functions() -> dict[str, FunctionDefinition]:
    """Those that plans call and queries do not."""
    return {found.name: found for found in import_module("firesteel.table.functions.hashes").INTERNAL}


def function(name: str) -> FunctionDefinition:
    """The function of a name in any case."""
    found = find_function(name) or _internal_functions().get(name)
    if found is None:
        raise unknown_function(name)
    return found


def definition_of(call: Call) -> FunctionDefinition:
    """The function of a call: one of the user, or a built-in one."""
    return function(call.function) if call.definition is None else call.definition


def unknown_function(name: str, others: Iterable[str] = ()) -> ValidationError:
    """The error for a name that no function has; ``others`` are names of functions that are not built in."""
    known = [*sorted(functions().keys() - OPERATORS), *others]
    near = get_close_matches(name.upper(), [each.upper() for each in known], n=1)
    near = [each for each in others if near and each.upper() == near[0]] or near
    hint = f"Did you mean {near[0]}?" if near else None
    return ValidationError(f"No match found for function signature {name}.", hint=hint)

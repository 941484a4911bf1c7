"""Functions of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from firesteel.table.dsl.base import ExpressionBase, node_of
from firesteel.table.dsl.units import JsonQueryOnEmptyOrError, JsonQueryWrapper, JsonValueOnEmptyOrError
from firesteel.table.parser import nodes
from firesteel.types.logical import VarCharType

if TYPE_CHECKING:
    from firesteel.table.dsl.expression import Expression
    from firesteel.table.dsl.units import JsonExistsOnError, JsonType
    from firesteel.types.logical import LogicalType

__all__ = ["JsonExpressions"]


class JsonExpressions(ExpressionBase[Any]):
    """What is in JSON text."""

    def _json(self, name: str, path: Any, **clauses: Any) -> Expression[Any]:
        given = {clause: value for clause, value in clauses.items() if value is not None}
        return self._of(nodes.Call(this=name, expressions=[self._copy(), node_of(path)], **given))

    def is_json(self, json_type: JsonType | None = None) -> Expression[Any]:
        """Whether a string is JSON, of a kind if one is given."""
        kind = "JSON" if json_type is None else f"JSON {json_type.value}"
        return self._of(exp.Is(this=self._copy(), expression=exp.Var(this=kind)))

    def json_exists(self, path: str, on_error: JsonExistsOnError | None = None) -> Expression[Any]:
        """Whether there is something at a path."""
        behavior = None if on_error is None else nodes.JsonBehavior(this=on_error.value)
        return self._json("JSON_EXISTS", path, on_error=behavior)

    def json_value(
        self,
        path: str,
        returning_type: LogicalType | None = None,
        on_empty: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_empty: Any = None,
        on_error: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_error: Any = None,
    ) -> Expression[Any]:
        """The scalar at a path."""
        return self._json(
            "JSON_VALUE",
            path,
            returning=nodes.TypeName(this=returning_type or VarCharType()),
            on_empty=_behavior(on_empty, default_on_empty),
            on_error=_behavior(on_error, default_on_error),
        )

    def json_query(
        self,
        path: str,
        wrapping_behavior: JsonQueryWrapper = JsonQueryWrapper.WITHOUT_ARRAY,
        on_empty: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
        on_error: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
    ) -> Expression[Any]:
        """The object or array at a path, as text."""
        return self._json(
            "JSON_QUERY",
            path,
            wrapper=wrapping_behavior.value,
            on_empty=nodes.JsonBehavior(this=on_empty.value),
            on_error=nodes.JsonBehavior(this=on_error.value),
        )

    def json_quote(self) -> Expression[Any]:
        """A string as JSON text."""
        return self._call("JSON_QUOTE")

    def json_unquote(self) -> Expression[Any]:
        """The string of a JSON text."""
        return self._call("JSON_UNQUOTE")


def _behavior(choice: JsonValueOnEmptyOrError, default: Any) -> nodes.JsonBehavior:
    if choice is JsonValueOnEmptyOrError.DEFAULT:
        return nodes.JsonBehavior(this=choice.value, value=node_of(default))
    return nodes.JsonBehavior(this=choice.value)

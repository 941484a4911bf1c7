"""ModelDescriptor: a model as a program declares it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firesteel.config.option import ConfigOption
from firesteel.table.schema import Schema

__all__ = ["ModelDescriptor"]


@dataclass(frozen=True)
class ModelDescriptor:
    """The columns and the options of a model, as CREATE MODEL declares them.

    >>> descriptor = ModelDescriptor.for_provider("openai").option("model", "small").build()
    >>> descriptor.get_options()
    {'provider': 'openai', 'model': 'small'}
    """

    input_schema: Schema | None
    output_schema: Schema | None
    options: Mapping[str, str]
    comment: str | None = None

    @staticmethod
    def for_provider(provider: str) -> ModelDescriptor.Builder:
        """A builder of a model of a provider."""
        return ModelDescriptor.Builder(provider)

    def get_options(self) -> dict[str, str]:
        """The options of WITH."""
        return dict(self.options)

    def get_input_schema(self) -> Schema | None:
        """The columns that the model takes, if they were declared."""
        return self.input_schema

    def get_output_schema(self) -> Schema | None:
        """The columns that the model returns, if they were declared."""
        return self.output_schema

    def get_comment(self) -> str | None:
        """The comment, if there is one."""
        return self.comment

    def __hash__(self) -> int:
        return hash((self.input_schema, self.output_schema, frozenset(self.options.items()), self.comment))

    def __str__(self) -> str:
        return f"{self.input_schema}\n{self.output_schema}\n{self.get_options()}"

    class Builder:
        """Builds a model's descriptor."""

        def __init__(self, provider: str) -> None:
            self._options = {"provider": provider}
            self._input: Schema | None = None
            self._output: Schema | None = None
            self._comment: str | None = None

        def input_schema(self, input_schema: Schema) -> ModelDescriptor.Builder:
            """Sets the columns that the model takes."""
            self._input = input_schema
            return self

        def output_schema(self, output_schema: Schema) -> ModelDescriptor.Builder:
            """Sets the columns that the model returns."""
            self._output = output_schema
            return self

        def option(self, key: str | ConfigOption[Any], value: Any) -> ModelDescriptor.Builder:
            """Sets an option."""
            name = key if isinstance(key, str) else key.key
            self._options[name] = str(value).lower() if isinstance(value, bool) else str(value)
            return self

        def comment(self, comment: str) -> ModelDescriptor.Builder:
            """Sets the comment."""
            self._comment = comment
            return self

        def build(self) -> ModelDescriptor:
            """The descriptor."""
            return ModelDescriptor(self._input, self._output, dict(self._options), self._comment)

"""TableDescriptor: a table as a program declares it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from firesteel.config.option import ConfigOption
from firesteel.table.schema import Schema

__all__ = ["FormatDescriptor", "TableDescriptor"]


@dataclass(frozen=True)
class FormatDescriptor:
    """A format and its options.

    >>> FormatDescriptor.for_format("json").option("ignore-parse-errors", "true").build().get_options()
    {'ignore-parse-errors': 'true'}
    """

    format: str
    options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def for_format(format: str) -> FormatBuilder:
        """A builder of a format's options."""
        return FormatBuilder(format)

    def get_format(self) -> str:
        """The name of the format."""
        return self.format

    def get_options(self) -> dict[str, str]:
        """The options, without the name of the format before them."""
        return dict(self.options)

    def __hash__(self) -> int:
        return hash((self.format, frozenset(self.options.items())))

    def __str__(self) -> str:
        return f"{self.format}[{self.get_options()}]"


class FormatBuilder:
    """Builds a format's options."""

    def __init__(self, format: str) -> None:
        self._format = format
        self._options: dict[str, str] = {}

    def option(self, key: str | ConfigOption[Any], value: Any) -> FormatBuilder:
        """Sets an option."""
        self._options[_key(key)] = _text(value)
        return self

    def build(self) -> FormatDescriptor:
        """The descriptor."""
        return FormatDescriptor(self._format, dict(self._options))


@dataclass(frozen=True)
class TableDescriptor:
    """The schema and the options of a table, as CREATE TABLE declares them.

    >>> descriptor = TableDescriptor.for_connector("kafka").option("topic", "orders").build()
    >>> descriptor.get_options()
    {'connector': 'kafka', 'topic': 'orders'}
    """

    schema: Schema | None
    options: Mapping[str, str]
    partition_keys: tuple[str, ...] = ()
    comment: str | None = None

    @staticmethod
    def for_connector(connector: str) -> TableBuilder:
        """A builder of a table of a connector."""
        return TableBuilder(connector)

    def get_schema(self) -> Schema | None:
        """The schema, if it was declared."""
        return self.schema

    def get_options(self) -> dict[str, str]:
        """The options of WITH."""
        return dict(self.options)

    def get_partition_keys(self) -> list[str]:
        """The columns of PARTITIONED BY."""
        return list(self.partition_keys)

    def get_comment(self) -> str | None:
        """The comment, if there is one."""
        return self.comment

    def __hash__(self) -> int:
        return hash((self.schema, frozenset(self.options.items()), self.partition_keys, self.comment))

    def __str__(self) -> str:
        return f"{self.schema}\n{self.get_options()}"


class TableBuilder:
    """Builds a table's descriptor."""

    def __init__(self, connector: str) -> None:
        self._options = {"connector": connector}
        self._schema: Schema | None = None
        self._partition_keys: tuple[str, ...] = ()
        self._comment: str | None = None

    def schema(self, schema: Schema) -> TableBuilder:
        """Sets the schema."""
        self._schema = schema
        return self

    def option(self, key: str | ConfigOption[Any], value: Any) -> TableBuilder:
        """Sets an option."""
        self._options[_key(key)] = _text(value)
        return self

    def format(self, format: str | FormatDescriptor, format_option: ConfigOption[str] | None = None) -> TableBuilder:
        """Sets the format and its options."""
        key = "format" if format_option is None else format_option.key
        descriptor = FormatDescriptor(format) if isinstance(format, str) else format
        self._options[key] = descriptor.format
        # the options of key.format begin with key.<format>, those of format with <format>
        prefix = key.removesuffix("format") + descriptor.format
        self._options.update({f"{prefix}.{name}": value for name, value in descriptor.options.items()})
        return self

    def partitioned_by(self, *partition_keys: str) -> TableBuilder:
        """Sets the columns of PARTITIONED BY."""
        self._partition_keys = partition_keys
        return self

    def comment(self, comment: str) -> TableBuilder:
        """Sets the comment."""
        self._comment = comment
        return self

    def build(self) -> TableDescriptor:
        """The descriptor."""
        return TableDescriptor(self._schema, dict(self._options), self._partition_keys, self._comment)


def _key(key: str | ConfigOption[Any]) -> str:
    return key.key if isinstance(key, ConfigOption) else key


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


TableDescriptor.Builder = TableBuilder  # type: ignore[attr-defined]
FormatDescriptor.Builder = FormatBuilder  # type: ignore[attr-defined]

"""The connector ``print``: writes rows to the standard output or error of the program."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from firesteel.config.option import ConfigOptions
from firesteel.connectors.client.print_sink import PrintSink
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.factory import DynamicTableFactory, FactoryContext
from firesteel.table.connector.options import option_of
from firesteel.table.connector.sink import DynamicTableSink, SinkContext
from firesteel.table.connectors.row_text import row_texts
from firesteel.table.connectors.sinks import PARALLELISM, add_sink
from firesteel.table.runtime.operators.to_records import RecordConverter
from firesteel.types.logical import RowType

__all__ = ["FACTORY", "PrintTableSink"]

IDENTIFIER = ConfigOptions.key("print-identifier").string_type().no_default_value()
STANDARD_ERROR = ConfigOptions.key("standard-error").boolean_type().default_value(False)


@dataclass(frozen=True)
class RowTexts(RecordConverter):
    """Rows as Flink prints them: ``+I[1, null, 2020-01-01T00:00]``."""

    row_type: RowType

    def open(self) -> Any:
        return partial(row_texts, row_type=self.row_type)


@dataclass(frozen=True)
class PrintTableSink(DynamicTableSink):
    """Prints rows of all kinds."""

    identifier: str | None = None
    to_stderr: bool = False
    parallelism: int | None = None

    def get_changelog_mode(self, requested: ChangelogMode) -> ChangelogMode:
        return requested

    def consume(self, stream: Any, context: SinkContext) -> Any:
        sink = PrintSink(self.identifier, self.to_stderr)
        return add_sink(stream, RowTexts(context.row_type), sink, context, self.parallelism)

    def as_summary_string(self) -> str:
        return "Print to stderr" if self.to_stderr else "Print to stdout"


class _Factory(DynamicTableFactory):
    identifier = "print"
    optional_options = (IDENTIFIER.key, STANDARD_ERROR.key, PARALLELISM.key)

    def create_sink(self, context: FactoryContext) -> PrintTableSink:
        options = context.options
        return PrintTableSink(
            option_of(options, IDENTIFIER), option_of(options, STANDARD_ERROR), option_of(options, PARALLELISM)
        )


FACTORY = _Factory()

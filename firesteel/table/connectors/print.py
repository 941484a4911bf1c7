"""The connector ``print``: writes rows to the standard output or error of the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.connectors.client.print_sink import PrintSink
from firesteel.runtime.operators.columns.borders import ColumnsToRowsSpec
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.factory import DynamicTableFactory, FactoryContext
from firesteel.table.connector.sink import DynamicTableSink, SinkContext

__all__ = ["FACTORY", "PrintTableSink"]


@dataclass(frozen=True)
class PrintTableSink(DynamicTableSink):
    """Prints rows of all kinds."""

    identifier: str | None = None
    to_stderr: bool = False

    def get_changelog_mode(self, requested: ChangelogMode) -> ChangelogMode:
        return requested

    def consume(self, stream: Any, context: SinkContext) -> Any:
        rows = stream._transform("ColumnsToRows", ColumnsToRowsSpec(), None)
        return rows.sink_to(PrintSink(self.identifier, self.to_stderr)).name(context.name)

    def as_summary_string(self) -> str:
        return "Print to stderr" if self.to_stderr else "Print to stdout"


class _Factory(DynamicTableFactory):
    identifier = "print"
    optional_options = ("print-identifier", "standard-error", "sink.parallelism")

    def create_sink(self, context: FactoryContext) -> PrintTableSink:
        options = context.options
        return PrintTableSink(options.get("print-identifier"), options.get("standard-error", "false") == "true")


FACTORY = _Factory()

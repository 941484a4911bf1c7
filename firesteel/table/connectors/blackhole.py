"""The connector ``blackhole``: drops all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.common.types import RowKind
from firesteel.connectors.client.discarding_sink import DiscardingSink
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.factory import DynamicTableFactory, FactoryContext
from firesteel.table.connector.options import option_of
from firesteel.table.connector.sink import DynamicTableSink, SinkContext
from firesteel.table.connectors.sinks import PARALLELISM

__all__ = ["FACTORY", "BlackHoleSink"]


@dataclass(frozen=True)
class BlackHoleSink(DynamicTableSink):
    """Drops all rows, of any kind."""

    parallelism: int | None = None

    def get_changelog_mode(self, requested: ChangelogMode) -> ChangelogMode:
        # as in Flink: rows before updates are asked for only by sinks that use them
        return ChangelogMode.of(requested.kinds - {RowKind.UPDATE_BEFORE})

    def consume(self, stream: Any, context: SinkContext) -> Any:
        sink = stream.sink_to(DiscardingSink()).name(context.name)
        return sink if self.parallelism is None else sink.set_parallelism(self.parallelism)

    def as_summary_string(self) -> str:
        return "BlackHole"


class _Factory(DynamicTableFactory):
    identifier = "blackhole"
    optional_options = (PARALLELISM.key,)

    def create_sink(self, context: FactoryContext) -> BlackHoleSink:
        return BlackHoleSink(option_of(context.options, PARALLELISM))


FACTORY = _Factory()

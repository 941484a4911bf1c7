"""Where the rows of queries go that are not written to a table: to the client, or to a stream of the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.datastream.data_stream import DataStream, parallelism_of
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.sink import DynamicTableSink, SinkContext

__all__ = ["ProgramSink", "beside"]


def beside(stream: DataStream[Any], before: DataStream[Any]) -> DataStream[Any]:
    """A stream with the parallelism of the one before: rows stay where they are, so changes do not overtake others."""
    parallelism = parallelism_of(before._transformation)
    return stream if parallelism is None else stream.set_parallelism(parallelism)


@dataclass(frozen=True)
class ProgramSink(DynamicTableSink):
    """Makes records of columns; what it adds to a stream is a stream again."""

    name: str
    spec: OperatorSpec
    accepts: ChangelogMode = ChangelogMode.all()  # noqa: RUF009 - immutable

    def get_changelog_mode(self, requested: ChangelogMode) -> ChangelogMode:
        return self.accepts

    def consume(self, stream: Any, context: SinkContext) -> Any:
        return beside(stream._transform(self.name, self.spec, None), stream)

    def as_summary_string(self) -> str:
        return self.name

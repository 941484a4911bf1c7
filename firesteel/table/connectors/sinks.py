"""What sinks of tables share: records of columns, and their parallelism."""

from __future__ import annotations

from typing import Any

from firesteel.config.option import ConfigOptions
from firesteel.datastream.data_stream import parallelism_of
from firesteel.runtime.columns.keys import ColumnKeySelector
from firesteel.runtime.model.partitioner import KeyGroupPartitioner
from firesteel.table.connector.sink import SinkContext
from firesteel.table.runtime.operators.to_records import RecordConverter, ToRecordsSpec

__all__ = ["PARALLELISM", "add_sink"]

PARALLELISM = ConfigOptions.key("sink.parallelism").int_type().no_default_value()


def add_sink(
    stream: Any, converter: RecordConverter | ToRecordsSpec, sink: Any, context: SinkContext, parallelism: int | None
) -> Any:
    """Adds a sink of records to a stream of columns.

    Without a parallelism the sink has that of its input. With another one, rows are distributed by the primary key if
    there is one, so that changes of a row keep their order.
    """
    wanted = parallelism
    own = parallelism_of(stream._transformation)
    if wanted is not None and wanted != own and context.primary_key:
        partition = stream._partition(KeyGroupPartitioner(ColumnKeySelector(context.primary_key)))
        stream = type(stream)(stream._environment, partition)
    elif wanted is None:
        wanted = own
    spec = converter if isinstance(converter, ToRecordsSpec) else ToRecordsSpec(converter)
    records = stream._transform("ToRecords", spec, None)
    if wanted is not None:
        records = records.set_parallelism(wanted)
    added = records.sink_to(sink).name(context.name)
    return added if wanted is None else added.set_parallelism(wanted)

"""Result tasks of a DataFrame: they return Arrow batches instead of writing to a sink."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from firesteel.common.errors import FiresteelError
from firesteel.common.typeinfo import TypeInformation
from firesteel.config.configuration import Configuration
from firesteel.execution.batch.task import BatchTask
from firesteel.execution.stages.errors import StageTaskError, failure_of
from firesteel.execution.stages.exchange_rows import BATCH, pack_number, pack_row
from firesteel.execution.stages.task_commands import BatchCommand
from firesteel.runtime.operators.sink import SinkOperator
from firesteel.spark.dataframes.encoding import ArrowEncoder
from firesteel.spark.dataframes.schemas import schema_of, to_struct
from firesteel.spark.session.session import get_spark_context
from firesteel.spi.sink import Sink, SinkWriter, WriterContext
from firesteel.types.arrow import require_pyarrow

__all__ = ["DataFrameSink", "DataFrameTaskError", "run_dataframe_task"]

_BATCH_ROWS = 10_000


class DataFrameTaskError(FiresteelError):
    """A task of the program behind a DataFrame has failed; Spark shows the text of this."""


class DataFrameSink(Sink):
    """The end of the program behind a DataFrame."""

    name: ClassVar[str] = "DataFrame"

    def __init__(self, struct: StructType) -> None:
        require_pyarrow("to_dataframe")
        self.json = struct.json()
        self.arrow_schema = to_arrow_schema(struct, timezone="UTC")
        self._columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in struct.fields)

    @classmethod
    def of(cls, schema: Any, type_info: TypeInformation | None, configuration: Configuration) -> DataFrameSink:
        """With the columns of a schema or, if that is None, of the stream's type."""
        if schema is None:
            return cls(schema_of(type_info))
        if isinstance(schema, str):
            get_spark_context(configuration, 1, in_use=lambda: True)
        return cls(to_struct(schema))

    def create_writer(self, context: WriterContext) -> DataFrameWriter:
        """A writer whose batches the task takes."""
        return DataFrameWriter(ArrowEncoder(self.arrow_schema, self._columns))


class DataFrameWriter(SinkWriter[Any]):
    """Makes Arrow batches, and keeps them until they are taken."""

    def __init__(self, encoder: ArrowEncoder) -> None:
        self._encoder = encoder
        self._records: list[Any] = []
        self._batches: list[bytes] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Encodes records once there are enough of them."""
        self._records += values
        while len(self._records) >= _BATCH_ROWS:
            self._encode(_BATCH_ROWS)

    def flush(self, end_of_input: bool) -> None:
        """Encodes the rest."""
        if self._records:
            self._encode(len(self._records))

    def take(self) -> list[bytes]:
        """The batches since the last time."""
        batches, self._batches = self._batches, []
        return batches

    def _encode(self, count: int) -> None:
        records, self._records = self._records[:count], self._records[count:]
        self._batches.append(self._encoder.encode(records))


class _DataFrameTask(BatchTask):
    """A task whose writer's batches are among its rows, as those of kind BATCH."""

    _writer: DataFrameWriter | None = None

    def open(self, *arguments: Any) -> None:
        super().open(*arguments)
        for chained in self.task.chain:
            writer = chained.operator._writer if isinstance(chained.operator, SinkOperator) else None
            if isinstance(writer, DataFrameWriter):
                self._writer = writer

    def drain(self, *, flush: bool = False) -> Iterator[bytes]:
        yield from super().drain(flush=flush)
        for batch in () if self._writer is None else self._writer.take():
            yield pack_number(0)
            yield pack_row(BATCH, 0, self.descriptor.task.subtask, 0, batch)


def run_dataframe_task(command: BatchCommand, rows: Iterator[bytes]) -> Iterator[bytes]:
    """As run_batch_task, for any task behind a DataFrame."""
    try:
        task = _DataFrameTask(command)
        try:
            task.open()
            yield from task.run_batch(command, rows)
            task.end()
            yield from task.drain(flush=True)
        finally:
            task.close()
    except StageTaskError as error:
        # no JobMaster listens: what the user sees is Spark's exception, which ends with this text
        failure = failure_of(error.messages)
        raise DataFrameTaskError(error.message if failure is None else failure.describe()) from None

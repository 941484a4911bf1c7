"""CachedDataStream: a stream whose records are kept in files, for later jobs of the same environment."""

from __future__ import annotations

import base64
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from firesteel.common.completable_future import CompletableFuture
from firesteel.common.errors import InvalidProgramError
from firesteel.common.serialization import Encoder
from firesteel.common.typeinfo import Types
from firesteel.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from firesteel.connectors.files.result_files import ResultFiles
from firesteel.connectors.files.sink import FileSink
from firesteel.connectors.files.source import FileSource
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.functions import ProcessFunction
from firesteel.formats.stream_format import StreamFormat
from firesteel.graph.transformation import CacheTransformation, Transformation
from firesteel.runtime.model.elements import Batch
from firesteel.runtime.model.serialization import deserialize_batch, serialize_records

if TYPE_CHECKING:
    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["CachedDataStream", "CachedResult"]


class CachedResult:
    """The records of one stream in files: written by the first batch job that computes them, read by later ones."""

    def __init__(self, transformation: CacheTransformation):
        self.transformation = transformation
        self._writing: list[tuple[CompletableFuture, ResultFiles]] = []
        self._remove: weakref.finalize[Any, CachedResult] | None = None

    def add_writer(self, environment: StreamExecutionEnvironment) -> ResultFiles:
        """Adds operators to an environment that write the records to new files, which are returned."""
        files = ResultFiles(environment.get_configuration())
        stream: DataStream[Any] = DataStream(environment, self.transformation.input)
        lines = stream.process(_ToLine(), Types.STRING()).name("CacheWrite")
        lines.sink_to(FileSink.for_row_format(files.directory, Encoder.simple_string_encoder()).build())
        return files

    def written_by(self, job: CompletableFuture, files: ResultFiles) -> None:
        """A job has been started that writes the records."""
        self._writing.append((job, files))

    def update(self, environment: StreamExecutionEnvironment) -> None:
        """Takes over the result of a job that has ended meanwhile."""
        for job, files in [each for each in self._writing if each[0].done()]:
            self._writing.remove((job, files))
            if self.transformation.reading is None and not job.cancelled() and job.exception() is None:
                self._remove = weakref.finalize(self, files.remove)
                self.transformation.reading = self._reader(environment, files)
            else:
                files.remove()

    def invalidate(self) -> None:
        """Removes the files; the next job computes the records again."""
        for job, files in self._writing:
            job.add_done_callback(lambda _, files=files: files.remove())  # type: ignore[misc]
        self._writing.clear()
        self.transformation.reading = None
        if self._remove is not None:
            self._remove()

    def _reader(self, environment: StreamExecutionEnvironment, files: ResultFiles) -> Transformation:
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), files.directory).build()
        line = files.first_line()
        strategy = WatermarkStrategy.no_watermarks()
        if line is None or _batch_of_line(line).timestamps is not None:
            strategy = strategy.with_timestamp_assigner(_TimestampOfLine())
        lines = environment.from_source(source, strategy, "CacheRead", Types.STRING())
        return lines.map(_record_of_line, self.transformation.output_type)._transformation


class CachedDataStream(DataStream[Any]):
    """A stream whose records are kept after the first batch job that computes them, for later jobs.

    In streaming mode nothing is kept, as in Flink.
    """

    def __init__(self, stream: DataStream[Any]):
        transformation = CacheTransformation(stream._transformation, output_type=stream._transformation.output_type)
        super().__init__(stream._environment, transformation)
        self._result = CachedResult(transformation)
        self._environment._add_cache(self._result)

    def invalidate(self) -> None:
        """Removes the kept records; the next job that needs them computes and keeps them again."""
        self._result.update(self._environment._create_scratch())
        self._result.invalidate()

    def set_parallelism(self, parallelism: int) -> NoReturn:
        """Not supported, as in Flink."""
        _refuse("Set parallelism for")

    def name(self, name: str) -> NoReturn:
        """Not supported, as in Flink."""
        _refuse("Set name for")

    def get_name(self) -> NoReturn:
        """Not supported, as in Flink."""
        _refuse("Get name of")

    def uid(self, uid: str) -> NoReturn:
        """Not supported, as in Flink."""
        _refuse("Set uid for")

    def set_uid_hash(self, uid_hash: str) -> NoReturn:
        """Not supported, as in Flink."""
        _refuse("Set uid hash for")

    def set_max_parallelism(self, max_parallelism: int) -> NoReturn:
        """Not supported, as in Flink."""
        _refuse("Set max parallelism for")

    def force_non_parallel(self) -> NoReturn:
        """Not supported, as in Flink."""
        _refuse("Set force non-parallel for")

    def set_buffer_timeout(self, timeout_millis: int) -> NoReturn:
        """Not supported, as in Flink."""
        _refuse("Set buffer timeout for")

    def start_new_chain(self) -> NoReturn:
        """Not supported, as in Flink."""
        _refuse("Start new chain for")

    def disable_chaining(self) -> NoReturn:
        """Not supported, as in Flink."""
        _refuse("Disable chaining for")

    def slot_sharing_group(self, slot_sharing_group: Any) -> NoReturn:
        """Not supported, as in Flink."""
        _refuse("Setting slot sharing group for")


def _refuse(what: str) -> NoReturn:
    raise InvalidProgramError(f"{what} CachedDataStream is not supported.", hint="Call it before cache().")


class _ToLine(ProcessFunction[Any, str]):
    """Each record with its timestamp, as a line of text."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[str]:
        timestamp = ctx.timestamp()
        content = serialize_records([value], None if timestamp is None else [timestamp])
        yield base64.b64encode(content).decode("ascii")


def _batch_of_line(line: str) -> Batch:
    return deserialize_batch(base64.b64decode(line))


def _record_of_line(line: str) -> Any:
    return _batch_of_line(line).values[0]


class _TimestampOfLine(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        timestamps = _batch_of_line(value).timestamps
        return record_timestamp if timestamps is None else timestamps[0]

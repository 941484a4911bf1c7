"""StreamExecutionEnvironment: where programs begin and are executed."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final, overload
from weakref import WeakSet

from firesteel.api.generics import S
from firesteel.common.errors import FiresteelError, FiresteelWarning, InvalidProgramError
from firesteel.common.execution_config import ExecutionConfig
from firesteel.common.job_client import JobClient
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.time import Duration
from firesteel.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from firesteel.common.types import Row
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.config import checkpointing_options, network_options, pipeline_options, python_options
from firesteel.config.configuration import Configuration
from firesteel.config.option import ConfigOption, ConfigOptions
from firesteel.config.unknown_keys import check_keys
from firesteel.connectors.files.parquet_source import ParquetSource
from firesteel.connectors.files.source import FileEnumeratorProvider, FileSource
from firesteel.connectors.generators.collection import CollectionSource
from firesteel.connectors.generators.number_sequence import NumberSequenceSource
from firesteel.datastream.checkpoint_config import CheckpointConfig
from firesteel.datastream.checkpointing_mode import CheckpointingMode
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.dataframes import dataframe_source, spark_reader_source
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.executor import PipelineExecutor, context_executor, default_configuration, resolve_executor
from firesteel.datastream.slot_sharing_group import SlotSharingGroup, apply_slot_sharing_groups
from firesteel.datastream.streams.call_site import user_call_site
from firesteel.datastream.streams.coroutine_check import refuse_coroutines_of
from firesteel.datastream.streams.operator_settings import check_max_parallelism
from firesteel.datastream.streams.output_types import conform, to_type_info
from firesteel.formats.avro.file import AvroInputFormat
from firesteel.formats.stream_format import StreamFormat
from firesteel.graph.execution import JobExecution
from firesteel.graph.explain import explain
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.job_graph_generator import create_job_graph
from firesteel.graph.plan import execution_plan
from firesteel.graph.stream_graph import StreamGraph
from firesteel.graph.stream_graph_generator import generate
from firesteel.graph.transformation import (
    SinkTransformation,
    SourceTransformation,
    Transformation,
)
from firesteel.process.program_logging import add_program_levels
from firesteel.process.pyflink_names import is_pyflink_program
from firesteel.runtime.dependencies.collection import FILE_DELIMITER, PARAM_DELIMITER
from firesteel.runtime.operators.source import SourceSpec
from firesteel.spi.source import Source

if TYPE_CHECKING:
    from firesteel.connectors.files.result_files import ResultFiles
    from firesteel.datastream.streams.cached_data_stream import CachedResult

__all__ = ["DEFAULT_JOB_NAME", "StreamExecutionEnvironment"]

DEFAULT_JOB_NAME: Final = "Flink Streaming Job"
"""The default job name, as in Flink."""

_CHAINING_OF_DIFFERENT_MAX_PARALLELISM: Final = (
    ConfigOptions.key("pipeline.operator-chaining.chain-operators-with-different-max-parallelism")
    .boolean_type()
    .default_value(True)
)


class StreamExecutionEnvironment:
    """Creates streams, holds the program built from them, and executes it.

    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> _ = env.from_collection([1, 2, 3]).map(lambda x: x * 2).print()
    """

    _local_parallelism: ClassVar[int | None] = None

    def __init__(self, configuration: Configuration | None = None):
        self._configuration = default_configuration()
        if self._local_parallelism is not None and context_executor() is None:
            self._configuration.set(pipeline_options.DEFAULT_PARALLELISM, self._local_parallelism)
        if configuration is not None:
            self._configuration.add_all(configuration)
        if is_pyflink_program():
            self._configuration.set(pipeline_options.CONVERT_TYPED_RECORDS, True)
        self._changelog_enabled: bool | None = None
        self._caches: WeakSet[CachedResult] = WeakSet()
        self._transformations: list[Transformation] = []
        self._query_operators: Counter[str] = Counter()
        """How many operators of queries have the same uid but for its number."""
        self._slot_sharing_groups: dict[str, SlotSharingGroup] = {}
        self._executor: PipelineExecutor | None = None
        self._executed_jobs = 0

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """A new environment; the configuration is copied."""
        return StreamExecutionEnvironment(configuration)

    def __repr__(self) -> str:
        operators = len(self._transformations)
        return f"<StreamExecutionEnvironment, parallelism {self.get_parallelism()}, {operators} operators>"

    # ---- settings -----------------------------------------------------------------------------------

    def get_config(self) -> ExecutionConfig:
        """Typed access to the execution settings."""
        return ExecutionConfig(self._configuration)

    def get_configuration(self) -> Configuration:
        """A copy of all settings."""
        return Configuration(self._configuration)

    def configure(self, configuration: Configuration) -> None:
        """Takes over all settings of a configuration."""
        self._configuration.add_all(configuration)

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """Sets the parallelism of operators that do not set their own."""
        if isinstance(parallelism, bool) or not isinstance(parallelism, int) or parallelism < 1:
            raise InvalidProgramError(
                f"The environment's parallelism must be an integer of at least 1, got {parallelism!r}."
            )
        self._check_parallelism(parallelism, self._configured_max_parallelism())
        self._configuration.set(pipeline_options.DEFAULT_PARALLELISM, parallelism)
        return self

    def get_parallelism(self) -> int:
        """The parallelism of operators that do not set their own."""
        return self._configuration.get(pipeline_options.DEFAULT_PARALLELISM)

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """Sets the number of key groups, which is the most subtasks an operator can ever have."""
        check_max_parallelism(max_parallelism, "the environment")
        self._check_parallelism(self._configuration.get_optional(pipeline_options.DEFAULT_PARALLELISM), max_parallelism)
        self._configuration.set(pipeline_options.MAX_PARALLELISM, max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups; -1 if it is derived from the parallelism."""
        return self._configuration.get(pipeline_options.MAX_PARALLELISM)

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> StreamExecutionEnvironment:
        """Registers the resources of a group, so that operators can refer to it by name."""
        self._slot_sharing_groups[slot_sharing_group.get_name()] = slot_sharing_group
        return self

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        """Sets whether the program runs as a stream, as a batch, or as its sources allow."""
        self._configuration.set(pipeline_options.RUNTIME_MODE, execution_mode.name)
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        """Sets the buffer timeout in milliseconds; -1 sends only full buffers, 0 sends each record at once."""
        if timeout_millis < -1:
            raise InvalidProgramError(f"The buffer timeout must be -1, 0 or more milliseconds, got {timeout_millis}.")
        self._configuration.set(network_options.BUFFER_TIMEOUT_ENABLED, timeout_millis >= 0)
        if timeout_millis >= 0:
            self._configuration.set(network_options.BUFFER_TIMEOUT, Duration.of_millis(timeout_millis))
        return self

    def get_buffer_timeout(self) -> int:
        """The buffer timeout in milliseconds; -1 if only full buffers are sent."""
        if not self._configuration.get(network_options.BUFFER_TIMEOUT_ENABLED):
            return -1
        return self._configuration.get(network_options.BUFFER_TIMEOUT).to_millis()

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Runs every operator as a separate task."""
        self._configuration.set(pipeline_options.OPERATOR_CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Whether operators share tasks."""
        return self._configuration.get(pipeline_options.OPERATOR_CHAINING)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Whether operators share tasks although their max parallelism differs."""
        return self._configuration.get(_CHAINING_OF_DIFFERENT_MAX_PARALLELISM)

    def get_checkpoint_config(self) -> CheckpointConfig:
        """Typed access to the checkpointing settings."""
        return CheckpointConfig(self._configuration)

    def enable_checkpointing(self, interval: int, mode: CheckpointingMode | None = None) -> StreamExecutionEnvironment:
        """Enables checkpointing with the given interval in milliseconds."""
        config = self.get_checkpoint_config().set_checkpoint_interval(interval)
        if mode is not None:
            config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_interval(self) -> int:
        """The checkpoint interval in milliseconds; -1 if checkpointing is disabled."""
        return self.get_checkpoint_config().get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Exactly once or at least once."""
        return self.get_checkpoint_config().get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """Exactly once or at least once."""
        return self.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether barriers may overtake records."""
        return self.get_checkpoint_config().is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether unaligned checkpoints are forced."""
        return self.get_checkpoint_config().is_force_unaligned_checkpoints()

    def set_default_savepoint_directory(self, directory: str) -> StreamExecutionEnvironment:
        """The default directory of savepoints."""
        self._configuration.set(checkpointing_options.SAVEPOINTS_DIRECTORY, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """The default directory of savepoints."""
        return self._configuration.get_optional(checkpointing_options.SAVEPOINTS_DIRECTORY)

    # ---- Python dependencies ------------------------------------------------------------------------

    def add_python_file(self, file_path: str) -> None:
        """Adds a Python file, package (.zip, .whl, .egg) or directory that the job's functions can import.

        What is added last is searched first.
        """
        self._set_python(python_options.FILES, file_path, self._configuration.get_optional(python_options.FILES))

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Has the packages of a requirements file installed for the job before it starts.

        With a directory of wheels they are installed from there, without a package index.
        """
        value = requirements_file_path
        if requirements_cache_dir is not None:
            value = PARAM_DELIMITER.join([value, requirements_cache_dir])
        self._configuration.set(python_options.REQUIREMENTS, value)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Adds an archive that is extracted to the working directory of the job's functions.

        It is extracted to the directory ``target_dir``, else to one with the name of the archive. Zip and tar files
        are supported.
        """
        value = archive_path if target_dir is None else PARAM_DELIMITER.join([archive_path, target_dir])
        self._set_python(python_options.ARCHIVES, self._configuration.get_optional(python_options.ARCHIVES), value)

    def set_python_executable(self, python_exec: str) -> None:
        """Sets the Python interpreter that runs the job's functions; it may be in an archive."""
        self._configuration.set(python_options.EXECUTABLE, python_exec)

    # ---- calls for Flink's JVM ----------------------------------------------------------------------

    def add_jars(self, *jars_path: str) -> None:
        """Accepted without effect, with a warning: no Java code of a program is run."""
        self._warn(
            f"add_jars({', '.join(map(repr, jars_path))}) has no effect. Connectors and formats are part of Firesteel; "
            "jars for Spark, such as JDBC drivers for from_spark, are set with spark.jars."
        )

    def add_classpaths(self, *classpaths: str) -> None:
        """Accepted without effect, with a warning: no Java code of a program is run."""
        self._warn(
            f"add_classpaths({', '.join(map(repr, classpaths))}) has no effect. Jars for Spark are set with spark.jars."
        )

    def enable_changelog_state_backend(self, enabled: bool) -> StreamExecutionEnvironment:
        """Accepted without effect, with a warning: checkpoints of both backends are incremental without a changelog."""
        if enabled:
            self._warn(
                "enable_changelog_state_backend has no effect: there is no changelog. Checkpoints of both state "
                "backends write what has changed."
            )
        self._changelog_enabled = bool(enabled)
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """What was set; None if nothing was."""
        return self._changelog_enabled

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Not supported: only functions in Java can read the distributed cache."""
        raise InvalidProgramError(
            f"The file {file_path} cannot be registered as '{name}': there is no distributed cache.",
            hint="Put the file into an archive and use add_python_archive: functions open it with a relative path.",
        )

    def get_default_local_parallelism(self) -> int:
        """The parallelism of local environments that set none: of this machine's cores, unless it was set."""
        return StreamExecutionEnvironment._local_parallelism or os.cpu_count() or 1

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Sets the parallelism of environments that are created from now on, run embedded, and set none."""
        if isinstance(parallelism, bool) or not isinstance(parallelism, int) or parallelism < 1:
            raise InvalidProgramError(f"The parallelism must be an integer of at least 1, got {parallelism!r}.")
        StreamExecutionEnvironment._local_parallelism = parallelism

    @staticmethod
    def _warn(text: str) -> None:
        warnings.warn(text, FiresteelWarning, stacklevel=3)

    # ---- sources ------------------------------------------------------------------------------------

    @overload
    def from_collection(
        self, collection: Iterable[Any], type_info: RowTypeInfo | list[TypeInformation]
    ) -> DataStream[Row]: ...
    @overload
    def from_collection(self, collection: Iterable[S], type_info: Any = None) -> DataStream[S]: ...
    def from_collection(self, collection: Iterable[Any], type_info: Any = None) -> DataStream:
        """A stream of the elements of a list, in order; they are shipped with the program."""
        elements = list(collection)
        type_info = to_type_info(type_info)
        if type_info is not None:
            elements = conform(elements, type_info)
        stream = self._add_source(
            CollectionSource(elements), WatermarkStrategy.no_watermarks(), "Collection Source", type_info
        )
        return stream.force_non_parallel()

    def from_source(
        self,
        source: Source[Any],
        watermark_strategy: WatermarkStrategy,
        source_name: str,
        type_info: Any = None,
    ) -> DataStream:
        """A stream of what a source reads, with watermarks per split."""
        if not isinstance(source, Source):
            raise TypeError(f"from_source needs a Source, got {source!r}.")
        if not isinstance(watermark_strategy, WatermarkStrategy):
            raise TypeError(f"from_source needs a WatermarkStrategy, got {watermark_strategy!r}.")
        return self._add_source(source, watermark_strategy, source_name, to_type_info(type_info))

    def from_sequence(self, start: int, end: int) -> DataStream[int]:
        """A stream of the whole numbers from start to end, both included."""
        return self.from_source(
            NumberSequenceSource(start, end),
            WatermarkStrategy.no_watermarks(),
            "Sequence Source",
            Types.LONG(),
        )

    def create_input(self, input_format: Any, type_info: Any = None) -> DataStream:
        """A stream of what an input format reads: an ``AvroInputFormat``.

        As in Flink, files in directories of the path's directory are not read; a FileSource reads them.
        """
        if not isinstance(input_format, AvroInputFormat):
            raise InvalidProgramError(
                f"create_input requires a format with a path, got {type(input_format).__name__}.",
                hint="An AvroInputFormat does; for other formats use FileSource and from_source.",
            )
        known = to_type_info(type_info) or input_format.get_produced_type()
        builder = FileSource.for_bulk_file_format(input_format, input_format.path)
        source = builder.set_file_enumerator(FileEnumeratorProvider.top_level_file_enumerator()).build()
        return self._add_source(source, WatermarkStrategy.no_watermarks(), "Custom File source", known)

    def read_text_file(self, path: str, charset: str = "utf-8") -> DataStream[str]:
        """A stream of the lines of a text file, or of all files in a directory."""
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(charset), path).build()
        return self.from_source(source, WatermarkStrategy.no_watermarks(), "File Source", Types.STRING())

    def read_parquet(
        self,
        path: str,
        columns: Sequence[str] | None = None,
        *,
        watermark_strategy: WatermarkStrategy | None = None,
        as_tuples: bool = False,
    ) -> DataStream:
        """A stream of the rows of a Parquet file, or of all files in a directory; needs PyArrow.

        Each is a Row with the columns' names or, which is faster, a tuple.
        """
        source = ParquetSource(path, columns=columns, as_tuples=as_tuples)
        return self._add_source(
            source,
            watermark_strategy or WatermarkStrategy.no_watermarks(),
            source.name,
            source.get_type(self._configuration),
        )

    def from_dataframe(
        self,
        dataframe: Any,
        watermark_strategy: WatermarkStrategy | None = None,
        type_info: Any = None,
        *,
        as_tuples: bool = False,
    ) -> DataStream:
        """A bounded stream of the rows of a Spark DataFrame, in no order; needs PyArrow.

        Each is a Row with the columns' names or, with ``as_tuples``, which is faster, a tuple. Spark runs the
        DataFrame's plan when the job runs. The equivalent in Flink is ``StreamTableEnvironment.to_data_stream``.
        """
        known = to_type_info(type_info)
        source = dataframe_source(dataframe, as_tuples or isinstance(known, TupleTypeInfo))
        return self._add_spark_source(source, watermark_strategy, known)

    def from_spark(
        self,
        format: str,
        path: str | list[str] | None = None,
        schema: Any = None,
        *,
        watermark_strategy: WatermarkStrategy | None = None,
        type_info: Any = None,
        as_tuples: bool = False,
        **options: Any,
    ) -> DataStream:
        """A bounded stream of the rows of a Spark reader: ``parquet``, ``csv``, ``json``, ``orc``, ``jdbc``, …

        Format, path, schema (a StructType or a DDL string) and options are those of ``spark.read``, which is called
        when the job runs. Rows become records as in ``from_dataframe``.
        """
        known = to_type_info(type_info)
        source = spark_reader_source(format, path, schema, options, as_tuples or isinstance(known, TupleTypeInfo))
        return self._add_spark_source(source, watermark_strategy, known)

    def add_source(
        self,
        source_func: Any,
        source_name: str = "Custom Source",
        type_info: Any = None,
    ) -> DataStream:
        """A stream of the records of a Source, without watermarks; source functions are not supported."""
        if not isinstance(source_func, Source):
            raise InvalidProgramError(
                f"add_source cannot run {type(source_func).__name__}: source functions block their thread.",
                hint="Implement Source and use from_source.",
            )
        return self.from_source(source_func, WatermarkStrategy.no_watermarks(), source_name, type_info)

    # ---- execution ----------------------------------------------------------------------------------

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Runs the program and waits until it ends; Ctrl-C cancels it."""
        client = self.execute_async(self._job_name(job_name))
        future = client.get_job_execution_result()
        try:
            result: JobExecutionResult = future.result()
        except KeyboardInterrupt:
            client.cancel().result()
            # nothing may be left running when the user gets the prompt back; the cancellation is no news
            with suppress(Exception):
                future.result()
            raise
        except FiresteelError as error:
            # the frames of futures and threads tell a user nothing; the message has the place in the program
            raise error.with_traceback(None) from error.__cause__
        return result

    def execute_async(self, job_name: str = DEFAULT_JOB_NAME) -> JobClient:
        """Starts the program and returns at once."""
        check_keys(self._configuration)
        writing: list[tuple[CachedResult, ResultFiles]] = []
        job_graph = create_job_graph(self._generate_stream_graph(self._job_name(job_name), clear=True, writing=writing))
        executor = self._executor or resolve_executor(self._configuration)
        self._executed_jobs += 1
        client = executor.execute(job_graph, job_graph.configuration)
        for cache, files in writing:
            cache.written_by(client.get_job_execution_result(), files)
        return client

    def get_execution_plan(self) -> str:
        """The program's operators as JSON, as in Flink; the program is not changed."""
        return execution_plan(self._generate_stream_graph(self._job_name(None), clear=False))

    def explain(self, format: str = "text") -> str:
        """The execution plan of the program, without running it; the program is not changed.

        Shows the vertices, the exchange of each edge with its reason, slots, state and checkpoints, as ``text``,
        ``json`` or a ``mermaid`` flowchart. In Flink only available for tables.
        """
        return explain(create_job_graph(self._generate_stream_graph(self._job_name(None), clear=False)), format)

    def close(self) -> None:
        """Discards the program and cached streams."""
        self._transformations.clear()
        for cache in self._caches:
            cache.update(self._create_scratch())
            cache.invalidate()

    # ---- for the other classes of this package ------------------------------------------------------

    def _set_python(self, option: ConfigOption[str | None], *values: str | None) -> None:
        self._configuration.set(option, FILE_DELIMITER.join(value for value in values if value))

    def _add_operator(self, transformation: Transformation) -> None:
        refuse_coroutines_of(transformation)
        self._transformations.append(transformation)

    def _configured_max_parallelism(self) -> int | None:
        maximum = self._configuration.get(pipeline_options.MAX_PARALLELISM)
        return maximum if maximum > 0 else None

    def _add_source(
        self, source: Source[Any], watermark_strategy: WatermarkStrategy, name: str, type_info: Any
    ) -> DataStream:
        transformation = SourceTransformation(
            SourceSpec(source, watermark_strategy),
            name=name,
            output_type=type_info,
            defined_at=user_call_site(),
        )
        return DataStream(self, transformation)

    def _create_batch_graph(self, transformation: Transformation) -> JobGraph:
        """What leads to a transformation, as a job of its own that runs as a batch; the program stays as it is."""
        apply_slot_sharing_groups(self._slot_sharing_groups, [transformation])
        configuration = Configuration(self._configuration).set(pipeline_options.RUNTIME_MODE, "BATCH")
        return create_job_graph(generate([transformation], configuration, self._job_name(None)))

    def _add_spark_source(
        self, source: Any, watermark_strategy: WatermarkStrategy | None, type_info: TypeInformation | None
    ) -> DataStream:
        return self._add_source(
            source,
            watermark_strategy or WatermarkStrategy.no_watermarks(),
            source.name,
            source.get_type() if type_info is None else type_info,
        )

    def _job_name(self, job_name: str | None) -> str:
        if job_name is not None and job_name != DEFAULT_JOB_NAME:
            return job_name
        return self._configuration.get_optional(pipeline_options.PIPELINE_NAME) or DEFAULT_JOB_NAME

    def _add_cache(self, cache: CachedResult) -> None:
        self._caches.add(cache)

    def _create_scratch(self) -> StreamExecutionEnvironment:
        """An environment with the same settings, whose operators do not become part of this program."""
        return StreamExecutionEnvironment(self._configuration)

    def _cache_writers(
        self, transformations: Sequence[Transformation], writing: list[tuple[CachedResult, ResultFiles]]
    ) -> list[Transformation]:
        """The operators that write the cached streams of a program which are not there yet."""
        used = {each.id for start in transformations for each in start.transitive_predecessors()}
        scratch = self._create_scratch()
        writing += [
            (cache, cache.add_writer(scratch))
            for cache in self._caches
            if cache.transformation.id in used and cache.transformation.reading is None
        ]
        return scratch._transformations

    def _generate_stream_graph(
        self, job_name: str, clear: bool, writing: list[tuple[CachedResult, ResultFiles]] | None = None
    ) -> StreamGraph:
        transformations = list(self._transformations)
        if not transformations:
            raise InvalidProgramError(
                "No operators defined in streaming topology. Cannot execute.",
                hint="The program was executed already; define its operators again."
                if self._executed_jobs
                else "Define at least one operator and a sink, for example stream.print(), before execute().",
            )
        if not any(isinstance(transformation, SinkTransformation) for transformation in transformations):
            raise InvalidProgramError(
                "The program has no sink, so nothing would come of it.",
                hint="End at least one stream with print(), sink_to(...) or execute_and_collect().",
            )
        apply_slot_sharing_groups(self._slot_sharing_groups, transformations)
        for cache in self._caches:
            cache.update(self._create_scratch())
        configuration = add_program_levels(Configuration(self._configuration))
        stream_graph = generate(transformations, configuration, job_name)
        if self._caches and writing is not None and stream_graph.execution.kind is JobExecution.BATCH:
            transformations += self._cache_writers(transformations, writing)
            stream_graph = generate(transformations, configuration, job_name)
        if clear:
            self._transformations.clear()
        return stream_graph

    def _check_parallelism(self, parallelism: int | None, max_parallelism: int | None) -> None:
        if parallelism is not None and max_parallelism is not None and parallelism > max_parallelism:
            raise InvalidProgramError(
                f"The parallelism {parallelism} of the environment is higher than its max parallelism "
                f"{max_parallelism}.",
                hint="Lower the parallelism or raise the max parallelism.",
            )

"""DataFrame sources: an existing DataFrame, or one that Spark's readers create when the job runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from firesteel.common.errors import InvalidProgramError
from firesteel.common.typeinfo import TypeInformation
from firesteel.spark.dataframes.errors import DataFrameError, passing_on_complaints
from firesteel.spark.dataframes.row_files import RowFileReader, RowFiles, RowFilesEnumerator, RowFileSplit
from firesteel.spi.source import Boundedness, ReaderContext, Source, SplitEnumerator, SplitEnumeratorContext
from firesteel.types.arrow import require_pyarrow
from firesteel.types.arrow_decoding import ArrowRecords, record_type

__all__ = ["DataFrameSource", "SparkReaderSource", "arrow_schema_of"]

_LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"
_ADAPTIVE = "spark.sql.adaptive.enabled"
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_TASKS_PER_SLOT = 3


class DataFrameSource(Source[RowFileSplit]):
    """Reads a DataFrame, each row a Row with the columns' names or, with ``as_tuples``, a tuple.

    In a batch its rows come straight from Spark's plan (``reads_rows``): a partition of the DataFrame becomes part of
    the stage that reads it, and Python sees each row once. In a streaming job they are first written to files, which
    the readers share like the splits of any source (see ``RowFiles``).
    """

    name: ClassVar[str] = "DataFrame Source"
    emits_own_records = True
    reads_rows: ClassVar[bool] = True
    _is_lazy = False

    def __init__(self, dataframe: Any, as_tuples: bool = False) -> None:
        _check(dataframe)
        self.as_tuples = as_tuples
        self._dataframe: DataFrame | None = dataframe
        self._files: RowFiles | None = None
        with passing_on_complaints("The DataFrame cannot be read"):
            self._type = record_type(arrow_schema_of(dataframe), as_tuples)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._type})"

    def __getstate__(self) -> dict[str, Any]:
        # a DataFrame is a handle of the driver's
        return {**self.__dict__, "_dataframe": None, "_files": None}

    def get_boundedness(self) -> Boundedness:
        """Always bounded."""
        return Boundedness.BOUNDED

    def get_type(self) -> TypeInformation | None:
        """The type of the records."""
        return self._type

    # -- rows from Spark, in a batch ----------------------------------------------------------------

    def dataframe(self, session: SparkSession) -> DataFrame:
        """The DataFrame, on the driver."""
        if self._dataframe is None:
            raise DataFrameError("A DataFrame can only be used in the process that created it.")
        if self._dataframe.sparkSession.sparkContext is not session.sparkContext:
            raise DataFrameError(
                "The DataFrame belongs to a SparkContext that was stopped.",
                hint="Make the DataFrame with the SparkSession that is active when the job runs.",
            )
        return self._dataframe

    def lazily(self) -> DataFrameSource:
        """The same source, but when it is asked for its RDD Spark runs as little of the plan as can be.

        By itself Spark runs every shuffle of a plan to find out how to run what comes after it. What remains is the
        small side of a broadcast join and, for a global order, a sample.
        """
        lazy = object.__new__(type(self))
        lazy.__dict__.update(self.__dict__, _is_lazy=True)
        return lazy

    def row_rdd(self, session: SparkSession) -> Any:
        """A JavaRDD of the DataFrame's partitions, each element a pair: the Arrow schema and one batch, as bytes.

        What Python reads of it are schemas and batches, alternately; see ``read_rows``.
        """
        dataframe = self.dataframe(session)
        with passing_on_complaints("The DataFrame cannot be read"):
            schema = arrow_schema_of(dataframe).serialize().to_pybytes()
            batches = _without_adaptive_execution(dataframe) if self._is_lazy else dataframe._jdf
            context = session.sparkContext
            schemas = context._jvm.java.util.ArrayList()
            schemas.add(bytearray(schema))
            rows = batches.toArrowBatchRdd().toJavaRDD()
            if not rows.getNumPartitions():
                # a stage without tasks would never be done
                return context._jsc.parallelize(context._jvm.java.util.ArrayList(), 1)
            pairs = context._jsc.parallelize(schemas, 1).cartesian(rows)
            return context._jvm.org.apache.spark.api.java.JavaRDD.fromRDD(pairs.rdd(), pairs.classTag())

    def read_rows(self, rows: Iterable[bytes]) -> Iterator[tuple[Sequence[Any], None]]:
        """The records of schemas and batches that come alternately, one list per batch; without timestamps."""
        pa = require_pyarrow("A DataFrame as source")
        known: bytes | None = None
        schema: Any = None
        records: ArrowRecords | None = None
        remaining = iter(rows)
        for header in remaining:
            if records is None or header != known:
                known = bytes(header)
                schema = pa.ipc.read_schema(pa.py_buffer(known))
                records = ArrowRecords(schema, self.as_tuples)
            yield records.decode(pa.ipc.read_record_batch(pa.py_buffer(next(remaining)), schema)), None

    # -- files, in a streaming job ------------------------------------------------------------------

    def write_files(self, session: SparkSession) -> RowFiles:
        """Has Spark write the rows to files, before the slots are taken; to be removed when the job is over."""
        with passing_on_complaints("The DataFrame cannot be read"):
            self._files = RowFiles.write(session.sparkContext, self.row_rdd(session))
        return self._files

    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator[RowFileSplit]:
        """Assigns the files; in a batch there are none, and no reader requests them."""
        return RowFilesEnumerator(context, None if self._files is None else self._files.splits())

    def restore_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator[RowFileSplit]:
        """Continues with the files that no reader had."""
        return RowFilesEnumerator(context, state)

    def create_reader(self, context: ReaderContext) -> RowFileReader:
        """A reader of one file after another."""
        return RowFileReader(context, self.read_rows)


class SparkReaderSource(DataFrameSource):
    """What one of Spark's readers reads: a format, a path, a schema and options, as ``spark.read`` takes them."""

    name: ClassVar[str] = "Spark Source"

    def __init__(
        self,
        format: str,
        path: str | list[str] | None = None,
        schema: Any = None,
        options: dict[str, Any] | None = None,
        as_tuples: bool = False,
    ) -> None:
        require_pyarrow("from_spark")
        if not isinstance(format, str) or not format:
            raise InvalidProgramError(f"from_spark needs the name of a format, such as 'parquet', got {format!r}.")
        if not isinstance(schema, (str, StructType, type(None))):
            raise InvalidProgramError(f"from_spark: the schema must be a StructType or a DDL string, got {schema!r}.")
        self.as_tuples = as_tuples
        self._format = format
        self._path = path
        # a StructType is kept as JSON: it pickles, but not from one version of Spark to another
        self._schema = schema if isinstance(schema, (str, type(None))) else schema.json()
        self._options = dict(options or {})
        self._dataframe = None
        self._files = None
        self._type = record_type(to_arrow_schema(schema), as_tuples) if isinstance(schema, StructType) else None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SparkReaderSource({self._format!r}, {self._path!r})"

    def dataframe(self, session: SparkSession) -> DataFrame:
        """Made with the session of the job's SparkContext, once."""
        if self._dataframe is None or self._dataframe.sparkSession.sparkContext is not session.sparkContext:
            with passing_on_complaints(f"Spark's reader for '{self._format}' cannot read {self._path!r}"):
                reader = session.read.format(self._format).options(**self._options)
                if self._schema is not None:
                    is_json = self._schema.startswith("{")
                    reader = reader.schema(_from_json(self._schema) if is_json else self._schema)
                self._dataframe = reader.load() if self._path is None else reader.load(self._path)
        return self._dataframe


def arrow_schema_of(dataframe: DataFrame) -> Any:
    """The Arrow schema in which Spark hands out the DataFrame's rows."""
    require_pyarrow("A DataFrame as source")
    large = dataframe.sparkSession.conf.get(_LARGE_TYPES, "false") == "true"
    return to_arrow_schema(dataframe.schema, timezone="UTC", prefers_large_types=large)


def _without_adaptive_execution(dataframe: DataFrame) -> Any:
    """The same plan for Spark, which would else run its shuffles when it is asked for the RDD."""
    session = dataframe.sparkSession._jsparkSession.cloneSession()
    session.conf().set(_ADAPTIVE, "false")
    if dataframe.sparkSession.conf.get(_ADAPTIVE) == "true":
        # Spark would have put together what is too little for a task of its own
        wanted = int(dataframe.sparkSession.conf.get(_SHUFFLE_PARTITIONS) or 1)
        most = _TASKS_PER_SLOT * dataframe.sparkSession.sparkContext.defaultParallelism
        session.conf().set(_SHUFFLE_PARTITIONS, str(min(wanted, most)))
    jvm = dataframe.sparkSession.sparkContext._jvm
    assert jvm is not None
    return jvm.org.apache.spark.sql.classic.Dataset.ofRows(session, dataframe._jdf.queryExecution().analyzed())


def _from_json(schema: str) -> StructType:
    import json

    return StructType.fromJson(json.loads(schema))


def _check(dataframe: Any) -> None:
    kind = type(dataframe)
    if kind.__module__.startswith("pyspark.sql.connect."):
        raise InvalidProgramError(
            "from_dataframe cannot read a DataFrame of Spark Connect: its rows are not within this process's reach.",
            hint="Use a SparkSession in this process, made without remote(), or write the DataFrame to Parquet files "
            "and read them with env.read_parquet(path).",
        )
    if kind.__module__.startswith("pandas."):
        raise TypeError("from_dataframe needs a Spark DataFrame, got one of pandas: use spark.createDataFrame(df).")
    if not isinstance(dataframe, DataFrame):
        raise TypeError(f"from_dataframe needs a Spark DataFrame, got {kind.__module__}.{kind.__qualname__}.")
    if dataframe.isStreaming:
        raise InvalidProgramError(
            "from_dataframe reads bounded DataFrames; this one is a streaming query.",
            hint="Make it with spark.read, or use a Source for the stream.",
        )
    if not hasattr(dataframe._jdf, "toArrowBatchRdd"):
        raise InvalidProgramError(f"Spark {pyspark.__version__} cannot hand out a DataFrame's rows as Arrow batches.")

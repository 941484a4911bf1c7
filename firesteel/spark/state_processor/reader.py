"""Savepoint reader: reads a savepoint as DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from firesteel.common.errors import StateIncompatibleError
from firesteel.config.configuration import Configuration
from firesteel.filesystem.stores import configure_filesystems
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata, OperatorState
from firesteel.runtime.checkpoint.storage import load
from firesteel.runtime.model.state_handles import BROADCAST, SPLIT, UNION, OperatorStateHandle, StateMeta
from firesteel.savepoint.keyed_state import TIMERS, KeyedSlice, slices, table_of
from firesteel.savepoint.metadata_contents import find_operator, keyed_states, operator_handles, operator_lists
from firesteel.spark.state_processor import reader_tasks as tasks
from firesteel.spark.state_processor.columns import KeyedColumns, Sample, declared_columns, field_of
from firesteel.spark.state_processor.reader_function import KeyedStateReaderFunction
from firesteel.spark.state_processor.shapes import PLAIN, Column, fit
from firesteel.spark.state_processor.spark_types import to_spark_type

__all__ = ["SavepointReader"]

_OPERATORS = (
    "name string, uid string, id string, parallelism int, max_parallelism int, "
    "state string, kind string, type string, ttl boolean, entries bigint"
)
_NULL = Column(t.NullType(), PLAIN)
_NOTHING = Sample(_NULL, _NULL, _NULL, "none", _NULL)


class SavepointReader:
    """The state of a savepoint or checkpoint as DataFrames; ``SavepointReader.read(spark, path)`` makes one.

    An operator is named by its uid, or by its id (32 hex digits), or by its name if no other has it. The DataFrames are
    lazy: state is read on the executors when Spark needs it, one partition per range of key groups of each file. The
    classes of keys and values must be importable there, unless the job's own script defined them.
    """

    def __init__(self, spark: SparkSession, path: str, metadata: CheckpointMetadata, configuration: Configuration):
        self._spark = spark
        self.path = path
        self.metadata = metadata
        self._configuration = configuration

    @classmethod
    def read(cls, spark: SparkSession, path: str, configuration: Configuration | None = None) -> SavepointReader:
        """Opens a savepoint or checkpoint: its directory, its ``_metadata``, or a job's directory for the newest one.

        The configuration says how object stores are reached.
        """
        configuration = configuration or Configuration()
        configure_filesystems(configuration)
        return cls(spark, path, load(path), configuration)

    @property
    def spark(self) -> SparkSession:
        """The SparkSession of the DataFrames."""
        return self._spark

    @property
    def configuration(self) -> Configuration:
        """The configuration of object stores."""
        return self._configuration

    def operators(self) -> DataFrame:
        """Returns one row per state. An operator without state has one row with nulls."""
        rows: list[tuple[Any, ...]] = []
        for operator in self.metadata.operators:
            states: list[tuple[Any, ...]] = [
                (state.name, state.kind, state.type, state.ttl, state.entries) for state in keyed_states(operator)
            ]
            states += [(found.name, found.mode, None, False, found.items) for found in operator_lists(operator)]
            for state in states or [(None, None, None, None, None)]:
                about = operator.name, operator.uid, operator.operator_id, operator.parallelism
                rows.append((*about, operator.max_parallelism, *state))
        return self._spark.createDataFrame(rows, t._parse_datatype_string(_OPERATORS))

    # ---- keyed state --------------------------------------------------------------------------------

    def read_keyed_state(
        self,
        uid: str,
        state: str | KeyedStateReaderFunction,
        *,
        key_type: Any = None,
        value_type: Any = None,
        map_key_type: Any = None,
        schema: Any = None,
    ) -> DataFrame:
        """Returns a keyed state, or the rows that a function returns for the states of each key.

        Columns: ``key``; ``window_start`` and ``window_end`` in milliseconds, or ``namespace``, where the state has
        windows or other namespaces; ``value`` (an array for list state), or ``map_key`` and ``map_value``, one row per
        entry of the map; ``last_access`` in milliseconds where the state has a time-to-live. Expired values that were
        not cleaned up are among them.

        Types are those of the schema, or given one by one (Spark types, their names in SQL, or ``Types.…``), or else
        those the state was declared with, or else found from a sample; ``binary`` holds pickled bytes of what Spark has
        no like of. A schema also chooses columns. For a function it says what columns its rows have.

        The metadata of a column says what its values were made from, so that a ``SavepointWriter`` makes the same of
        them again. A value that would not come back as it was fails the query, unless already the sample has such
        values: these are converted to the given or declared type, and the column cannot be written back.
        """
        operator = find_operator(self.metadata.operators, uid)
        if isinstance(state, KeyedStateReaderFunction):
            return self._read_with_function(operator, state, schema)
        meta = _find_state(operator, state)
        pieces = self._slices(operator)
        read = partial(tasks.entries, self._settings(), table_of(meta))
        value, map_key = declared_columns(meta.kind, meta.type)
        sample = self._sample(pieces, read, meta.kind, meta.ttl)
        columns = KeyedColumns.of(
            meta.kind,
            meta.ttl,
            sample,
            key=to_spark_type(key_type),
            value=to_spark_type(value_type) or value,
            map_key=to_spark_type(map_key_type) or map_key,
        )
        return self._frame(pieces, partial(tasks.rows, read, columns), columns, schema)

    def read_timers(self, uid: str, *, key_type: Any = None, schema: Any = None) -> DataFrame:
        """Returns an operator's timers: ``key``, window or namespace, ``queue``, ``time_domain``, ``timestamp``."""
        operator = find_operator(self.metadata.operators, uid)
        tables = frozenset(table_of(state) for state in keyed_states(operator) if state.kind == TIMERS)
        pieces = self._slices(operator)
        read = partial(tasks.timer_entries, self._settings(), tables)
        sample = self._sample(pieces, read, TIMERS, False)
        columns = KeyedColumns.of(TIMERS, False, sample, key=to_spark_type(key_type))
        return self._frame(pieces, partial(tasks.rows, read, columns), columns, schema)

    def _read_with_function(
        self, operator: OperatorState, function: KeyedStateReaderFunction, schema: Any
    ) -> DataFrame:
        struct = _struct(schema)
        if struct is None:
            raise ValueError("A KeyedStateReaderFunction needs a schema: schema='key string, total bigint'.")
        rows = self._slices(operator).mapPartitions(partial(tasks.function_rows, self._settings(), function, struct))
        return self._spark.createDataFrame(rows, struct, verifySchema=False)

    def _slices(self, operator: OperatorState) -> RDD[KeyedSlice]:
        return self._parallelize(slices(operator))

    def _sample(self, pieces: RDD[KeyedSlice], read: Callable[..., Any], kind: str, ttl: bool) -> Sample:
        found = pieces.mapPartitions(partial(tasks.sample_partition, read, kind, ttl)).take(1)
        return found[0] if found else _NOTHING

    def _frame(
        self, pieces: RDD[KeyedSlice], rows: Callable[..., Any], columns: KeyedColumns, schema: Any
    ) -> DataFrame:
        struct = _struct(schema)
        if struct is not None:
            columns = columns.with_schema(struct)
            rows = partial(rows.func, rows.args[0], columns)  # type: ignore[attr-defined]
        return self._spark.createDataFrame(pieces.mapPartitions(rows), columns.schema, verifySchema=False)

    # ---- operator state -----------------------------------------------------------------------------

    def read_list_state(self, uid: str, name: str, *, value_type: Any = None) -> DataFrame:
        """Returns an even-split list of operator state: ``subtask`` and ``value``."""
        return self._read_list(uid, name, SPLIT, value_type)

    def read_union_state(self, uid: str, name: str, *, value_type: Any = None) -> DataFrame:
        """Returns a union list of operator state: the ``subtask`` that wrote it, and ``value``."""
        return self._read_list(uid, name, UNION, value_type)

    def read_broadcast_state(self, uid: str, name: str, *, key_type: Any = None, value_type: Any = None) -> DataFrame:
        """Returns a broadcast state: ``key`` and ``value``."""
        operator = find_operator(self.metadata.operators, uid)
        handles = _find_list(operator, name, BROADCAST)[:1]
        items = self._parallelize([(0, handle) for handle in handles]).mapPartitions(
            partial(tasks.items, self._settings(), name)
        )
        keys, values = (items.mapPartitions(tasks.pair_columns).take(1) or [(_NULL, _NULL)])[0]
        key, value = fit(to_spark_type(key_type), keys), fit(to_spark_type(value_type), values)
        rows = items.mapPartitions(partial(tasks.pairs, key, value))
        schema = t.StructType([field_of("key", key), field_of("value", value)])
        return self._spark.createDataFrame(rows, schema, verifySchema=False)

    def _read_list(self, uid: str, name: str, mode: str, value_type: Any) -> DataFrame:
        operator = find_operator(self.metadata.operators, uid)
        handles = _find_list(operator, name, mode)
        items = self._parallelize(list(enumerate(handles))).mapPartitions(partial(tasks.items, self._settings(), name))
        sample = (items.mapPartitions(tasks.item_column).take(1) or [_NULL])[0]
        value = fit(to_spark_type(value_type), sample)
        schema = t.StructType([t.StructField("subtask", t.IntegerType()), field_of("value", value)])
        return self._spark.createDataFrame(
            items.mapPartitions(partial(tasks.list_rows, value)), schema, verifySchema=False
        )

    def _settings(self) -> dict[str, str]:
        return self._configuration.to_dict()

    def _parallelize(self, work: Sequence[Any]) -> RDD[Any]:
        return self._spark.sparkContext.parallelize(work, max(len(work), 1))


def _struct(schema: Any) -> t.StructType | None:
    type_ = to_spark_type(schema)
    if type_ is not None and not isinstance(type_, t.StructType):
        raise TypeError(f"A schema has columns with names, got {type_.simpleString()}.")
    return type_


def _find_state(operator: OperatorState, name: str) -> StateMeta:
    states = keyed_states(operator)
    for state in states:
        if state.name == name:
            return state
    known = ", ".join(f"'{state.name}'" for state in states) or "none"
    raise StateIncompatibleError(
        f"Operator '{operator.name}' has no keyed state '{name}'.",
        operator=operator.name,
        state=name,
        hint=f"Its keyed states: {known}.",
    )


def _find_list(operator: OperatorState, name: str, mode: str) -> list[OperatorStateHandle]:
    handles = operator_handles(operator, name)
    known = ", ".join(f"'{found.name}' ({found.mode})" for found in operator_lists(operator)) or "none"
    if not handles or handles[0].mode != mode:
        raise StateIncompatibleError(
            f"Operator '{operator.name}' has no {mode} state '{name}'.",
            operator=operator.name,
            state=name,
            hint=f"Its operator state: {known}.",
        )
    return handles

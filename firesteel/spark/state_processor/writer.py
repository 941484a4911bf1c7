"""Savepoint writer: writes new savepoints from DataFrames, or changes existing ones."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from firesteel.api.state import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from firesteel.common.errors import CheckpointStorageError, FiresteelError, StateIncompatibleError
from firesteel.config.configuration import Configuration
from firesteel.filesystem.filesystem import normalize
from firesteel.filesystem.stores import configure_filesystems, get_filesystem
from firesteel.graph.operator_id import operator_id_from_uid
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata, OperatorState
from firesteel.runtime.checkpoint.storage import CheckpointStorage
from firesteel.runtime.model.checkpoint_options import CheckpointLocation, SnapshotKind
from firesteel.runtime.model.state_handles import (
    BROADCAST,
    SPLIT,
    UNION,
    StateMeta,
)
from firesteel.runtime.state.api.compatibility import meta_of
from firesteel.savepoint.keyed_state import TIMERS, table_of
from firesteel.savepoint.metadata_contents import find_operator, keyed_states, operator_lists
from firesteel.spark.state_processor.bootstrap import (
    Accessor,
    BootstrapError,
    EntryMaker,
)
from firesteel.spark.state_processor.columns import shape_of
from firesteel.spark.state_processor.operator_writer import OperatorChanges, OperatorWriter, tables_of
from firesteel.spark.state_processor.reader import SavepointReader
from firesteel.spark.state_processor.shapes import LOSSY
from firesteel.spark.state_processor.value_conversion import from_shape, from_spark
from firesteel.types.type_information import TypeInformation

__all__ = ["SavepointWriter"]

_DEFAULT_MAX_PARALLELISM = 128
_TASK_ERROR = re.compile(r"^firesteel[\w.]*Error: (?P<message>.*?)(?=\n\s*\n|\n\tat |\Z)", re.MULTILINE | re.DOTALL)


class SavepointWriter:
    """Collects changes and writes them as a savepoint.

    Nothing happens before :meth:`write`. The savepoint is in the canonical format and self-contained: what is not
    changed is copied, never shared with the savepoint it comes from. An operator is named by its uid.
    """

    def __init__(self, spark: SparkSession, metadata: CheckpointMetadata, configuration: Configuration):
        self._spark = spark
        self._metadata = metadata
        self._configuration = configuration
        self._max_parallelism = _DEFAULT_MAX_PARALLELISM
        self._operators = [
            OperatorChanges(operator, saved_max_parallelism=operator.max_parallelism) for operator in metadata.operators
        ]

    @classmethod
    def from_existing(cls, source: SavepointReader | str, spark: SparkSession | None = None) -> SavepointWriter:
        """Starts from a savepoint: from a reader, or from a path and a session."""
        if isinstance(source, str):
            session = spark or SparkSession.getActiveSession()
            if session is None:
                raise ValueError("There is no active SparkSession: give one, or a SavepointReader.")
            source = SavepointReader.read(session, source)
        if source.metadata.channels:
            raise StateIncompatibleError(
                f"{source.path} is an unaligned checkpoint with records in flight, which would be lost.",
                hint="Take a savepoint of the job: savepoints have no records in flight.",
            )
        return cls(source.spark, source.metadata, source.configuration)

    @classmethod
    def new_savepoint(
        cls,
        spark: SparkSession,
        max_parallelism: int = _DEFAULT_MAX_PARALLELISM,
        *,
        job_name: str = "bootstrapped",
        configuration: Configuration | None = None,
    ) -> SavepointWriter:
        """Starts with no operators. The max parallelism must be that of the job that is started from the savepoint."""
        metadata = CheckpointMetadata(
            checkpoint_id=1,
            job_id=uuid.uuid4().hex,
            job_name=job_name,
            timestamp=_now(),
            kind=SnapshotKind.SAVEPOINT,
        )
        writer = cls(spark, metadata, configuration or Configuration())
        writer._max_parallelism = max_parallelism
        return writer

    # ---- operators ----------------------------------------------------------------------------------

    def with_operator(
        self,
        uid: str,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
    ) -> SavepointWriter:
        """Adds an operator, or changes one. Keyed state is written by ``parallelism`` tasks, as many may read it."""
        operator = self._find(uid) or self._add(uid)
        state = operator.state
        if max_parallelism is not None and max_parallelism != state.max_parallelism:
            # every key moves to another key group: all keyed state is rewritten
            operator.rewrite = True
            state = replace(state, max_parallelism=max_parallelism)
        if parallelism is not None and parallelism != state.parallelism:
            if state.subtasks:
                raise ValueError(
                    f"The parallelism of '{uid}' in the savepoint cannot be changed. A job can start from it with any."
                )
            state = replace(state, parallelism=parallelism)
        operator.state = replace(state, name=name or state.name)
        if operator.state.parallelism > operator.state.max_parallelism:
            raise ValueError(
                f"Operator '{uid}' has parallelism {operator.state.parallelism}, more than its max parallelism "
                f"{operator.state.max_parallelism}."
            )
        return self

    def remove_operator(self, uid: str) -> SavepointWriter:
        """Removes an operator with all its state."""
        self._operators.remove(self._required(uid))
        return self

    def remove_state(self, uid: str, name: str) -> SavepointWriter:
        """Removes a keyed state, a timer queue or a list."""
        operator = self._required(uid)
        known = {table_of(state): state.name for state in keyed_states(operator.state)}
        known.update({found.name: found.name for found in operator_lists(operator.state)})
        tables = [table for table, state in known.items() if name in (table, state)]
        if not tables:
            raise StateIncompatibleError(
                f"Operator '{operator.state.name}' has no state '{name}'.", operator=operator.state.name, state=name
            )
        operator.removed.update(tables)
        return self

    def change_uid(self, old: str, new: str) -> SavepointWriter:
        """Changes the uid of an operator's state. ``old`` may also be an id or a name."""
        operator = self._required(old)
        if self._find(new) is not None:
            raise StateIncompatibleError(f"There is an operator with the uid '{new}' already.", operator=new)
        operator.state = replace(operator.state, uid=new, operator_id=operator_id_from_uid(new))
        return self

    # ---- state --------------------------------------------------------------------------------------

    def with_keyed_state(
        self,
        uid: str,
        descriptor: StateDescriptor,
        df: DataFrame,
        *,
        key: Accessor = "key",
        value: Accessor = "value",
        map_key: Accessor = "map_key",
        map_value: Accessor = "map_value",
        last_access: Accessor | None = None,
        namespace: Accessor | None = None,
        key_type: TypeInformation | None = None,
    ) -> SavepointWriter:
        """Replaces a keyed state by the rows of a DataFrame.

        The columns are those that :meth:`SavepointReader.read_keyed_state` gives: its frame, changed, fits as it is.
        Each may be named, or be a function of the row, which runs on the executors. A column that was read becomes what
        it was made from. In one that was computed, a struct with fields ``_1, _2, …`` becomes a tuple, another one a
        Row, unless the descriptor's type says otherwise; keys, and values of no declared type, must be of a class that
        the savepoint has. With a time-to-live, values without ``last_access`` count as accessed now.
        """
        operator = self._find(uid) or self._add(uid)
        meta = meta_of(descriptor)
        columns = set(df.columns)
        is_map = isinstance(descriptor, MapStateDescriptor)
        if last_access is None and "last_access" in columns:
            last_access = "last_access"
        windows = ("window_start", "window_end") if {"window_start", "window_end"} <= columns else None
        if namespace is None and "namespace" in columns:
            namespace = "namespace"
        value_type, map_key_type = _declared_parts(descriptor)
        maker = EntryMaker(
            meta,
            meta.name,
            operator.state.max_parallelism,
            key,
            map_value if is_map else value,
            map_key,
            last_access,
            namespace,
            windows if namespace is None else None,
            key_type=key_type,
            value_type=value_type,
            map_key_type=map_key_type,
            shapes=shapes_of(df),
        )
        used = (maker.key, maker.value, *((map_key,) if is_map else ()))
        _check_columns(df, meta.name, used)
        _check_shapes(df, meta.name, (*used, namespace))
        self._set_keyed(operator, maker, df)
        return self

    def with_timers(
        self,
        uid: str,
        df: DataFrame,
        *,
        key: Accessor = "key",
        timestamp: Accessor = "timestamp",
        time_domain: Accessor = "time_domain",
        queue: str = "user-timers",
        namespace: Accessor | None = None,
        key_type: TypeInformation | None = None,
    ) -> SavepointWriter:
        """Replaces the timers of a queue, by default that of process functions."""
        operator = self._find(uid) or self._add(uid)
        columns = set(df.columns)
        windows = ("window_start", "window_end") if {"window_start", "window_end"} <= columns else None
        maker = EntryMaker(
            StateMeta(queue, TIMERS),
            queue,
            operator.state.max_parallelism,
            key,
            timestamp,
            namespace=namespace,
            windows=windows if namespace is None else None,
            domain=time_domain,
            key_type=key_type,
            shapes=shapes_of(df),
        )
        _check_columns(df, f"timers {queue}", (key, timestamp, time_domain))
        _check_shapes(df, f"timers {queue}", (key, namespace))
        self._set_keyed(operator, maker, df)
        return self

    def with_list_state(
        self, uid: str, state: str | ListStateDescriptor, df: DataFrame, *, value: Accessor = "value"
    ) -> SavepointWriter:
        """Replaces an even-split list of operator state, one row per element."""
        return self._with_list(uid, state, SPLIT, df, value)

    def with_union_state(
        self, uid: str, state: str | ListStateDescriptor, df: DataFrame, *, value: Accessor = "value"
    ) -> SavepointWriter:
        """Replaces a union list of operator state, one row per element."""
        return self._with_list(uid, state, UNION, df, value)

    def with_broadcast_state(
        self,
        uid: str,
        state: str | MapStateDescriptor,
        df: DataFrame,
        *,
        key: Accessor = "key",
        value: Accessor = "value",
    ) -> SavepointWriter:
        """Replaces a broadcast state, one row per entry. One task writes it."""
        name = state if isinstance(state, str) else state.get_name()
        _check_columns(df, name, (key, value))
        operator = self._find(uid) or self._add(uid)
        _check_shapes(df, name, (key, value))
        shapes = shapes_of(df)
        self._set_list(operator, name, BROADCAST, partial(_pair, key, value, shapes), df)
        return self

    def _with_list(
        self, uid: str, state: str | ListStateDescriptor, mode: str, df: DataFrame, value: Accessor
    ) -> SavepointWriter:
        name = state if isinstance(state, str) else state.get_name()
        _check_columns(df, name, (value,))
        operator = self._find(uid) or self._add(uid)
        _check_shapes(df, name, (value,))
        self._set_list(operator, name, mode, partial(_item, value, shapes_of(df)), df)
        return self

    def _set_keyed(self, operator: OperatorChanges, maker: EntryMaker, df: DataFrame) -> None:
        operator.keyed = [(other, frame) for other, frame in operator.keyed if tables_of(other) != tables_of(maker)]
        operator.keyed.append((maker, df))
        operator.removed.update(tables_of(maker))

    def _set_list(
        self, operator: OperatorChanges, name: str, mode: str, item: Callable[[Any], Any], df: DataFrame
    ) -> None:
        operator.lists = [entry for entry in operator.lists if entry[0] != name]
        operator.lists.append((name, mode, item, df))
        operator.removed.add(name)

    def _find(self, identifier: str) -> OperatorChanges | None:
        try:
            return self._required(identifier)
        except StateIncompatibleError:
            return None

    def _required(self, identifier: str) -> OperatorChanges:
        found = find_operator([operator.state for operator in self._operators], identifier)
        return next(operator for operator in self._operators if operator.state is found)

    def _add(self, uid: str) -> OperatorChanges:
        parallelism = min(self._spark.sparkContext.defaultParallelism, self._max_parallelism)
        state = OperatorState(operator_id_from_uid(uid), uid, uid, parallelism, self._max_parallelism)
        operator = OperatorChanges(state)
        self._operators.append(operator)
        return operator

    # ---- writing ------------------------------------------------------------------------------------

    def write(self, path: str) -> str:
        """Writes the savepoint into a directory, which must be empty or missing; returns its path."""
        configure_filesystems(self._configuration)
        directory = normalize(path)
        filesystem = get_filesystem(directory)
        if filesystem.list(directory):
            raise CheckpointStorageError(f"{path} is not empty: a savepoint requires an empty directory.", path=path)
        try:
            tasks = OperatorWriter(self._spark.sparkContext, self._configuration.to_dict(), directory)
            operators = tasks.copy([tasks.write(operator) for operator in self._operators])
            metadata = replace(
                self._metadata, timestamp=_now(), kind=SnapshotKind.SAVEPOINT, operators=tuple(operators), channels=()
            )
            tasks.remove_leftovers(metadata)
            location = CheckpointLocation(directory, directory)
            return CheckpointStorage(directory, metadata.job_id).store(location, metadata)
        except BaseException as error:
            filesystem.delete_tree(directory)
            said = _said_by_a_task(error)
            if said is None:
                raise
            raise BootstrapError(said) from None


def _said_by_a_task(error: BaseException) -> str | None:
    """The message of an error of ours that a task of Spark ended with, without Java's stack around it."""
    if isinstance(error, FiresteelError):
        return None
    match = _TASK_ERROR.search(str(error))
    return None if match is None else match["message"].strip()


def _now() -> int:
    return time.time_ns() // 1_000_000


def _item(value: Accessor, shapes: Mapping[str, Any], row: Any) -> Any:
    if not isinstance(value, str):
        return value(row)
    return from_shape(shapes[value])(row[value]) if value in shapes else from_spark(row[value])


def _pair(key: Accessor, value: Accessor, shapes: Mapping[str, Any], row: Any) -> tuple[Any, Any]:
    return _item(key, shapes, row), _item(value, shapes, row)


def shapes_of(df: DataFrame) -> dict[str, Any]:
    """The shapes of the columns that were read from a state."""
    found = {field.name: shape_of(field) for field in df.schema.fields}
    return {name: shape for name, shape in found.items() if shape is not None}


def _check_shapes(df: DataFrame, state: str, accessors: Sequence[Accessor | None]) -> None:
    shapes = shapes_of(df)
    for name in accessors:
        if isinstance(name, str) and LOSSY in str(shapes.get(name)):
            raise BootstrapError(
                f"State '{state}': column '{name}' was converted when it was read, as its values do not fit the "
                f"type {df.schema[name].dataType.simpleString()}: the original values are lost.",
                hint="Read it as 'binary' (value_type, key_type or map_key_type), or give a function of the row that "
                "makes the value.",
            )


def _declared_parts(descriptor: StateDescriptor) -> tuple[TypeInformation | None, TypeInformation | None]:
    type_info: Any = descriptor.type_info
    if isinstance(descriptor, MapStateDescriptor) and type_info is not None:
        return type_info._value_type_info, type_info._key_type_info
    return type_info, None


def _check_columns(df: DataFrame, state: str, accessors: Sequence[Accessor]) -> None:
    missing = [name for name in accessors if isinstance(name, str) and name not in df.columns]
    if missing:
        raise ValueError(
            f"State '{state}' needs the column {', '.join(missing)}; the DataFrame has {', '.join(df.columns)}."
        )

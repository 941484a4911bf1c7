"""Writes the operators of a savepoint with tasks on Spark's executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pyspark import RDD, SparkContext
from pyspark.sql import DataFrame

from firesteel.filesystem.filesystem import join
from firesteel.filesystem.stores import get_filesystem
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata, OperatorState
from firesteel.runtime.checkpoint.storage import delete_files
from firesteel.runtime.model.key_groups import subtask_of
from firesteel.runtime.model.state_handles import (
    BROADCAST,
    CANONICAL,
    FileSegment,
    KeyedStateHandle,
    OperatorStateHandle,
    OperatorSubtaskState,
    StateBytes,
)
from firesteel.runtime.state.api.chunks import timer_table
from firesteel.savepoint.keyed_state import slices, table_of
from firesteel.savepoint.metadata_contents import keyed_handles, keyed_states
from firesteel.spark.state_processor.bootstrap import (
    EntryMaker,
    Keyed,
    copy_segments,
    existing_entries,
    write_items,
    write_keyed,
)
from firesteel.spark.state_processor.reader_tasks import classes as sample_classes
from firesteel.types.type_information import PickledBytesTypeInfo, TypeInformation

__all__ = ["OperatorChanges", "OperatorWriter", "tables_of"]


@dataclass
class OperatorChanges:
    """An operator of the savepoint to be written: what there is of it, and what changes."""

    state: OperatorState
    keyed: list[tuple[EntryMaker, DataFrame]] = field(default_factory=list)
    lists: list[tuple[str, str, Callable[[Any], Any], DataFrame]] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)
    """Tables and lists that are not taken over."""
    saved_max_parallelism: int = 0
    """With which the existing state was written."""
    rewrite: bool = False
    """Whether all keyed state is rewritten although none of it changes."""


class OperatorWriter:
    """Writes state files into the directory of one savepoint."""

    def __init__(self, context: SparkContext, settings: dict[str, str], directory: str):
        self._context = context
        self._settings = settings
        self._directory = directory

    def write(self, operator: OperatorChanges) -> OperatorState:
        """Writes what changes of an operator; what stays is still where it was."""
        state = operator.state
        subtasks = dict(state.subtasks)
        rewritten = self._write_keyed(operator)
        if rewritten is not None:
            subtasks = {index: replace(subtask, keyed=None) for index, subtask in subtasks.items()}
            for index, handle in rewritten.items():
                subtasks[index] = replace(subtasks.get(index, OperatorSubtaskState()), keyed=handle)
        for index, subtask in subtasks.items():
            kept = tuple(handle for handle in subtask.operator if handle.name not in operator.removed)
            subtasks[index] = replace(subtask, operator=kept)
        for name, mode, item, df in operator.lists:
            for index, written in self._write_list(state, name, mode, item, df).items():
                known = subtasks.get(index, OperatorSubtaskState())
                subtasks[index] = replace(known, operator=(*known.operator, written))
        for index in set(range(state.parallelism)) - set(subtasks) - state.finished:
            subtasks[index] = OperatorSubtaskState()
        return replace(state, subtasks=dict(sorted(subtasks.items())))

    def _write_keyed(self, operator: OperatorChanges) -> dict[int, KeyedStateHandle] | None:
        """The new keyed state of an operator by subtask; None if it can be copied as it is."""
        state = operator.state
        kept = {table_of(meta): meta for meta in keyed_states(state) if table_of(meta) not in operator.removed}
        canonical = all(handle.format == CANONICAL for _, handle in keyed_handles(state))
        changed = bool(operator.keyed) or len(kept) < len(keyed_states(state)) or operator.rewrite
        if not changed and canonical:
            return None
        states = dict(kept)
        parts: list[RDD[Keyed]] = []
        old = slices(replace(state, max_parallelism=operator.saved_max_parallelism))
        if old and kept:
            without = frozenset(operator.removed)
            pieces: RDD[Any] = self._context.parallelize(old, len(old))
            parts.append(
                pieces.mapPartitions(partial(existing_entries, self._settings, without, state.max_parallelism))
            )
        for maker, df in operator.keyed:
            for table in tables_of(maker):
                states[table] = replace(maker.meta, name=_state_name(maker, table))
            classes = self._classes(maker, old)
            parts.append(df.rdd.mapPartitions(replace(maker, max_parallelism=state.max_parallelism, classes=classes)))
        if not parts:
            return {}
        parallelism = state.parallelism
        most = state.max_parallelism
        entries: RDD[Keyed] = parts[0] if len(parts) == 1 else self._context.union(parts)
        sorted_entries = entries.repartitionAndSortWithinPartitions(
            parallelism, partial(_subtask_of_place, most, parallelism)
        )
        written = sorted_entries.mapPartitionsWithIndex(
            partial(write_keyed, self._settings, self._directory, states, most, parallelism)
        )
        return dict(written.collect())

    def _classes(self, maker: EntryMaker, old: Sequence[Any]) -> dict[str, frozenset[str]]:
        """The classes in the savepoint that computed columns must have too."""
        unchecked = {"key": maker.key, "value": maker.value, "map key": maker.map_key}
        if maker.domain is not None:
            del unchecked["value"], unchecked["map key"]
        elif maker.meta.kind != "map":
            del unchecked["map key"]
        declared = {"value": maker.value_type, "map key": maker.map_key_type, "key": maker.key_type}
        wanted = [
            what
            for what, accessor in unchecked.items()
            if isinstance(accessor, str) and accessor not in maker.shapes and not says_something(declared[what])
        ]
        if not wanted or not old:
            return {}
        pieces: RDD[Any] = self._context.parallelize(old, len(old))
        found: dict[str, set[str]] = {}
        sample = partial(sample_classes, self._settings, maker.table, maker.meta.kind, maker.meta.ttl)
        for what, name in pieces.mapPartitions(sample).collect():
            found.setdefault(what, set()).add(name)
        return {what: frozenset(found[what]) for what in wanted if what in found}

    def _write_list(
        self, state: OperatorState, name: str, mode: str, item: Callable[[Any], Any], df: DataFrame
    ) -> dict[int, OperatorStateHandle]:
        partitions = 1 if mode == BROADCAST else state.parallelism
        rows = df.rdd.coalesce(partitions) if mode == BROADCAST else df.rdd.repartition(partitions)
        written = dict(
            rows.mapPartitionsWithIndex(
                partial(write_items, self._settings, self._directory, name, mode, item)
            ).collect()
        )
        if mode == BROADCAST:
            # every subtask has the same: they may all point to the one file
            return {index: written[0] for index in range(state.parallelism)}  # noqa: C420 - typed
        return written

    def copy(self, operators: Sequence[OperatorState]) -> list[OperatorState]:
        """Copies all segments that are not in the directory yet."""
        foreign = list(
            dict.fromkeys(
                segment
                for operator in operators
                for segment in operator.segments()
                if not segment.path.startswith(self._directory + "/")
            )
        )
        if not foreign:
            return list(operators)
        groups = min(len(foreign), self._context.defaultParallelism * 2)
        copied = dict(
            self._context.parallelize(foreign, groups)
            .mapPartitions(partial(copy_segments, self._settings, self._directory))
            .collect()
        )
        return [_relocated(operator, copied) for operator in operators]

    def remove_leftovers(self, metadata: CheckpointMetadata) -> None:
        """Deletes files of tasks that Spark ran twice."""
        needed = metadata.files()
        found = (join(self._directory, name) for name in get_filesystem(self._directory).list(self._directory))
        delete_files([path for path in found if path not in needed])


def says_something(type_info: TypeInformation | None) -> bool:
    """Whether a declared type determines the class of values."""
    return type_info is not None and not isinstance(type_info, PickledBytesTypeInfo)


def tables_of(maker: EntryMaker) -> tuple[str, ...]:
    """The tables an entry maker fills."""
    if maker.domain is None:
        return (maker.table,)
    return tuple(timer_table(f"{maker.table}/{domain}") for domain in ("event", "processing"))


def _state_name(maker: EntryMaker, table: str) -> str:
    return maker.meta.name if maker.domain is None else table


def _subtask_of_place(max_parallelism: int, parallelism: int, place: tuple[int, str, bytes, bytes]) -> int:
    return subtask_of(place[0], max_parallelism, parallelism)


def _relocated(operator: OperatorState, copied: dict[FileSegment, StateBytes]) -> OperatorState:
    def moved(data: StateBytes) -> StateBytes:
        return copied.get(data, data) if isinstance(data, FileSegment) else data

    subtasks = {}
    for index, subtask in operator.subtasks.items():
        keyed = subtask.keyed
        if keyed is not None:
            keyed = replace(keyed, parts=tuple(replace(part, data=moved(part.data)) for part in keyed.parts))
        lists = tuple(replace(handle, data=moved(handle.data)) for handle in subtask.operator)
        subtasks[index] = replace(subtask, keyed=keyed, operator=lists)
    coordinator = None if operator.coordinator is None else moved(operator.coordinator)
    return replace(operator, subtasks=subtasks, coordinator=coordinator)

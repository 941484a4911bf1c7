"""What the executors do to read state: each function works on one partition."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from pyspark.sql import types as t

from firesteel.common.configuration import Configuration
from firesteel.common.errors import StateIncompatibleError
from firesteel.filesystem.stores import configure_filesystems
from firesteel.runtime.checkpoint.files import StateFileReader
from firesteel.runtime.checkpoint.handles import OperatorStateHandle
from firesteel.savepoint.keyed_state import Entry, KeyedSlice, read_entries
from firesteel.spark.state_processor.columns import KeyedColumns, Sample, sample_of
from firesteel.spark.state_processor.reader_function import KeyedStateReaderFunction, read_with_function
from firesteel.spark.state_processor.spark_types import infer_type, merge_types, without_nulls
from firesteel.spark.state_processor.values import to_spark

__all__ = [
    "entries",
    "function_rows",
    "item_types",
    "items",
    "list_rows",
    "open_files",
    "pair_types",
    "pairs",
    "rows",
    "sample_partition",
    "timer_entries",
]

_SAMPLE = 100
"""Entries whose types are looked at where none are declared or given."""


def open_files(settings: dict[str, str]) -> StateFileReader:
    """A reader of state files in this process, which may be one of an executor."""
    configure_filesystems(Configuration.from_dict(settings))
    return StateFileReader()


def entries(settings: dict[str, str], table: str, pieces: Iterable[KeyedSlice]) -> Iterator[Entry]:
    """What slices hold of a table."""
    with open_files(settings) as files:
        for piece in pieces:
            yield from read_entries(piece, files, table)


def timer_entries(settings: dict[str, str], tables: frozenset[str], pieces: Iterable[KeyedSlice]) -> Iterator[Entry]:
    """The timers of slices."""
    with open_files(settings) as files:
        for piece in pieces:
            for table in sorted(tables):
                yield from read_entries(piece, files, table)


def sample_partition(
    read: Callable[[Iterable[KeyedSlice]], Iterator[Entry]], kind: str, ttl: bool, pieces: Iterable[KeyedSlice]
) -> Iterator[Sample]:
    """What the first entries look like; nothing if there are none."""
    sample = sample_of(kind, ttl, islice(read(pieces), _SAMPLE))
    if sample is not None:
        yield sample


def rows(
    read: Callable[[Iterable[KeyedSlice]], Iterator[Entry]], columns: KeyedColumns, pieces: Iterable[KeyedSlice]
) -> Iterator[tuple[Any, ...]]:
    """The rows of a DataFrame of keyed state or timers."""
    return columns.rows(read(pieces))


def function_rows(
    settings: dict[str, str], function: KeyedStateReaderFunction, schema: t.StructType, pieces: Iterable[KeyedSlice]
) -> Iterator[Any]:
    """The rows that a reader function gives."""
    convert = to_spark(schema)
    with open_files(settings) as files:
        for piece in pieces:
            yield from map(convert, read_with_function(piece, files, function))


def items(
    settings: dict[str, str], name: str, handles: Iterable[tuple[int, OperatorStateHandle]]
) -> Iterator[tuple[int, Any]]:
    """The items of lists of operator state, with the subtask that wrote them."""
    with open_files(settings) as files:
        for subtask, handle in handles:
            if handle.items:
                for item in pickle.loads(files.read(handle.data)):
                    yield subtask, _load(name, item)


def _load(name: str, item: bytes) -> Any:
    try:
        return pickle.loads(item)
    except Exception as error:
        raise StateIncompatibleError(
            f"An item of the operator state '{name}' cannot be read: {type(error).__name__}: {error}",
            state=name,
            hint="Its class must be importable on the executors.",
        ) from error


def item_types(items: Iterable[tuple[int, Any]]) -> Iterator[t.DataType]:
    """The type of the first items; nothing if there are none."""
    types = [infer_type(item) for _, item in islice(items, _SAMPLE)]
    if types:
        yield without_nulls(merge_types(types))


def pair_types(items: Iterable[tuple[int, Any]]) -> Iterator[tuple[t.DataType, t.DataType]]:
    """The types of the first keys and values; nothing if there are none."""
    pairs = [item for _, item in islice(items, _SAMPLE)]
    if pairs:
        keys = merge_types(infer_type(key) for key, _ in pairs)
        yield without_nulls(keys), without_nulls(merge_types(infer_type(value) for _, value in pairs))


def list_rows(type_: t.DataType, items: Iterable[tuple[int, Any]]) -> Iterator[tuple[Any, ...]]:
    """The rows of a DataFrame of list state."""
    convert = to_spark(type_)
    return ((subtask, convert(item)) for subtask, item in items)


def pairs(key: t.DataType, value: t.DataType, items: Iterable[tuple[int, Any]]) -> Iterator[tuple[Any, Any]]:
    """The rows of a DataFrame of broadcast state."""
    to_key, to_value = to_spark(key), to_spark(value)
    return ((to_key(item[0]), to_value(item[1])) for _, item in items)

"""Reader tasks on the executors: each function reads one partition of state."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from pyspark.sql import types as t

from firesteel.common.errors import StateIncompatibleError
from firesteel.config.configuration import Configuration
from firesteel.filesystem.stores import configure_filesystems
from firesteel.runtime.checkpoint.files import StateFileReader
from firesteel.runtime.model.state_handles import OperatorStateHandle
from firesteel.runtime.state.api.chunks import is_timer_table
from firesteel.savepoint.keyed_state import Entry, KeyedSlice, read_entries
from firesteel.spark.state_processor.columns import KeyedColumns, Sample, sample_of
from firesteel.spark.state_processor.reader_function import KeyedStateReaderFunction, read_with_function
from firesteel.spark.state_processor.shapes import Column, infer, merge
from firesteel.spark.state_processor.value_conversion import to_column, to_spark

__all__ = [
    "class_name",
    "classes",
    "entries",
    "function_rows",
    "item_column",
    "items",
    "list_rows",
    "open_files",
    "pair_columns",
    "pairs",
    "rows",
    "sample_partition",
    "timer_entries",
]

_SAMPLE_ENTRIES = 100
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
    with open_files(settings) as files:
        for piece in pieces:
            for table in sorted(tables):
                yield from read_entries(piece, files, table)


def sample_partition(
    read: Callable[[Iterable[KeyedSlice]], Iterator[Entry]], kind: str, ttl: bool, pieces: Iterable[KeyedSlice]
) -> Iterator[Sample]:
    """What the first entries look like; nothing if there are none."""
    sample = sample_of(kind, ttl, islice(read(pieces), _SAMPLE_ENTRIES))
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


def item_column(items: Iterable[tuple[int, Any]]) -> Iterator[Column]:
    """The column that holds the first items; nothing if there are none."""
    columns = [infer(item) for _, item in islice(items, _SAMPLE_ENTRIES)]
    if columns:
        yield merge(columns)


def pair_columns(items: Iterable[tuple[int, Any]]) -> Iterator[tuple[Column, Column]]:
    """The columns that hold the first keys and values; nothing if there are none."""
    pairs = [item for _, item in islice(items, _SAMPLE_ENTRIES)]
    if pairs:
        yield merge(infer(key) for key, _ in pairs), merge(infer(value) for _, value in pairs)


def list_rows(column: Column, items: Iterable[tuple[int, Any]]) -> Iterator[tuple[Any, ...]]:
    """The rows of a DataFrame of list state."""
    convert = to_column(column)
    return ((subtask, convert(item)) for subtask, item in items)


def pairs(key: Column, value: Column, items: Iterable[tuple[int, Any]]) -> Iterator[tuple[Any, Any]]:
    """The rows of a DataFrame of broadcast state."""
    to_key, to_value = to_column(key), to_column(value)
    return ((to_key(item[0]), to_value(item[1])) for _, item in items)


def classes(
    settings: dict[str, str], table: str, kind: str, ttl: bool, pieces: Iterable[KeyedSlice]
) -> Iterator[tuple[str, str]]:
    """Which classes the keys of slices, and the values (elements, map keys) of one table have, as far as a sample goes.

    Pairs of what it is (``key``, ``value`` or ``map key``) and the name of the class.
    """
    found: set[tuple[str, str]] = set()
    with open_files(settings) as files:
        for piece in pieces:
            for entry in islice(read_entries(piece, files), _SAMPLE_ENTRIES):
                found.add(("key", class_name(entry.key[1] if is_timer_table(entry.table) else entry.key)))
            for entry in islice(read_entries(piece, files, table), _SAMPLE_ENTRIES):
                if kind == "map":
                    found |= {("map key", class_name(key)) for key in entry.value}
                stored = entry.value.values() if kind == "map" else entry.value if kind == "list" else [entry.value]
                found |= {("value", class_name(value[0] if ttl else value)) for value in stored}
    yield from found


def class_name(value: Any) -> str:
    """The name of a value's class."""
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")

"""The columns of a DataFrame of keyed state or timers, and the rows that entries become; runs on the executors.

| kind | columns besides ``key`` and those of the namespace | rows |
|---|---|---|
| value, reducing, aggregating | ``value`` | one per key |
| list | ``value``, an array | one per key |
| map | ``map_key``, ``map_value`` | one per entry of the map |
| timers | ``queue``, ``time_domain``, ``timestamp`` | one per timer |

State with time-to-live also has ``last_access``, in milliseconds since 1970: of the value, of each element (an array),
or of the map's entry. State of windows also has ``window_start`` and ``window_end``, any other namespace ``namespace``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import types as t

from firesteel.common.windows import TimeWindow
from firesteel.runtime.state.api.chunks import timer_table
from firesteel.savepoint.keyed_state import TIMERS, Entry
from firesteel.spark.state_processor.shapes import PLAIN, Column, fit, infer, merge
from firesteel.spark.state_processor.spark_types import ConversionError, parse_declared_type
from firesteel.spark.state_processor.value_conversion import to_column

__all__ = ["KeyedColumns", "Sample", "declared_columns", "field_of", "sample_of", "shape_of"]

NO_NAMESPACE, TIME_WINDOWS, OTHER_NAMESPACE = "none", "windows", "other"
_TIME_DOMAINS = ("event", "processing")
_LONG, _TEXT = Column(t.LongType(), PLAIN), Column(t.StringType(), PLAIN)
SHAPE = "firesteel"
"""The key of the shape in the metadata of a column."""


def field_of(name: str, column: Column) -> t.StructField:
    """The field of a schema for a column."""
    return t.StructField(name, column.type, metadata={SHAPE: json.dumps(column.shape)})


def shape_of(field: t.StructField) -> Any:
    """The shape of a column that was read from a state; None if it was computed."""
    text = field.metadata.get(SHAPE)
    return None if text is None else json.loads(text)


@dataclass(frozen=True)
class Sample:
    """What some entries of a state look like."""

    key: Column
    value: Column
    map_key: Column
    namespaces: str
    namespace: Column


def sample_of(kind: str, ttl: bool, entries: Iterable[Entry]) -> Sample | None:
    """The types found in entries; None if there are none."""
    keys, values, map_keys, namespaces = [], [], [], []
    for entry in entries:
        if kind == TIMERS:
            _, key, namespace = entry.key
        else:
            key, namespace = entry.key, entry.namespace
        keys.append(infer(key))
        namespaces.append(namespace)
        if kind == "map":
            map_keys += [infer(map_key) for map_key in entry.value]
            values += [infer(stored[0] if ttl else stored) for stored in entry.value.values()]
        elif kind == "list":
            values.append(infer([stored[0] for stored in entry.value] if ttl else list(entry.value)))
        elif kind != TIMERS:
            values.append(infer(entry.value[0] if ttl else entry.value))
    if not keys:
        return None
    if all(namespace is None for namespace in namespaces):
        form = NO_NAMESPACE
    elif all(namespace is None or isinstance(namespace, TimeWindow) for namespace in namespaces):
        form = TIME_WINDOWS
    else:
        form = OTHER_NAMESPACE
    return Sample(
        key=merge(keys),
        value=merge(values),
        map_key=merge(map_keys),
        namespaces=form,
        namespace=merge(map(infer, namespaces)),
    )


def declared_columns(kind: str, declared: str | None) -> tuple[t.DataType | None, t.DataType | None]:
    """The types of ``value`` (or ``map_value``) and ``map_key`` by a state's declared type."""
    type_ = parse_declared_type(declared)
    if kind == "map":
        return (type_.valueType, type_.keyType) if isinstance(type_, t.MapType) else (None, None)
    return type_, None


@dataclass(frozen=True)
class KeyedColumns:
    """The columns of one state; all of them, or those of a schema that was given."""

    kind: str
    ttl: bool
    namespaces: str
    columns: tuple[tuple[str, Column], ...]

    @staticmethod
    def of(
        kind: str,
        ttl: bool,
        sample: Sample,
        *,
        key: t.DataType | None = None,
        value: t.DataType | None = None,
        map_key: t.DataType | None = None,
    ) -> KeyedColumns:
        """All columns of a state; types that are not given are those of the sample."""
        columns: list[tuple[str, Column]] = [("key", fit(key, sample.key))]
        if sample.namespaces == TIME_WINDOWS:
            columns += [("window_start", _LONG), ("window_end", _LONG)]
        elif sample.namespaces == OTHER_NAMESPACE:
            columns.append(("namespace", fit(None, sample.namespace)))
        if kind == TIMERS:
            columns += [("queue", _TEXT), ("time_domain", _TEXT), ("timestamp", _LONG)]
        elif kind == "map":
            columns += [("map_key", fit(map_key, sample.map_key)), ("map_value", fit(value, sample.value))]
        else:
            columns.append(("value", fit(value, sample.value)))
        if ttl:
            times = Column(t.ArrayType(t.LongType()), ["list", PLAIN]) if kind == "list" else _LONG
            columns.append(("last_access", times))
        return KeyedColumns(kind, ttl, sample.namespaces, tuple(columns))

    def with_schema(self, schema: t.StructType) -> KeyedColumns:
        """Only the columns of a schema, with its types."""
        known = dict(self.columns)
        unknown = [name for name in schema.names if name not in known]
        if unknown:
            raise ValueError(f"The state has no column {', '.join(unknown)}; it has {', '.join(known)}.")
        return replace(
            self, columns=tuple((field.name, fit(field.dataType, known[field.name])) for field in schema.fields)
        )

    @property
    def schema(self) -> t.StructType:
        """The schema of the DataFrame, with the shapes of its columns."""
        return t.StructType([field_of(name, column) for name, column in self.columns])

    def rows(self, entries: Iterable[Entry]) -> Iterator[tuple[Any, ...]]:
        """The rows of entries."""
        columns = [(name, to_column(column)) for name, column in self.columns]
        for entry in entries:
            for values in self._values(entry):
                try:
                    yield tuple(convert(values[name]) for name, convert in columns)
                except ConversionError as error:
                    raise ConversionError(
                        f"State '{entry.table}', key {values['key']!r:.100}: {error.message}", hint=error.hint
                    ) from error

    def _values(self, entry: Entry) -> Iterator[dict[str, Any]]:
        if self.kind == TIMERS:
            yield self._timer(entry)
            return
        row = {"key": entry.key, **self._namespace(entry.namespace)}
        stored = entry.value
        if self.kind == "map":
            for map_key, value in stored.items():
                row["map_key"] = map_key
                row["map_value"], row["last_access"] = value if self.ttl else (value, None)
                yield row
        elif self.kind == "list":
            row["value"] = [element[0] for element in stored] if self.ttl else list(stored)
            row["last_access"] = [element[1] for element in stored] if self.ttl else None
            yield row
        else:
            row["value"], row["last_access"] = stored if self.ttl else (stored, None)
            yield row

    def _timer(self, entry: Entry) -> dict[str, Any]:
        timestamp, key, namespace = entry.key
        domain: str | None
        queue, _, domain = entry.table.removeprefix(timer_table("")).rpartition("/")
        if domain not in _TIME_DOMAINS:
            queue, domain = f"{queue}/{domain}", None
        row = {"key": key, "queue": queue, "time_domain": domain, "timestamp": timestamp}
        return {**row, **self._namespace(namespace)}

    def _namespace(self, namespace: Any) -> dict[str, Any]:
        if self.namespaces == TIME_WINDOWS:
            if namespace is None:
                return {"window_start": None, "window_end": None}
            if isinstance(namespace, TimeWindow):
                return {"window_start": namespace.start, "window_end": namespace.end}
        elif self.namespaces == OTHER_NAMESPACE or namespace is None:
            return {"namespace": namespace}
        raise ConversionError(
            f"An entry belongs to {namespace!r}, unlike those the columns were made for.",
            hint="The state mixes namespaces: read it with a KeyedStateReaderFunction.",
        )

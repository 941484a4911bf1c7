"""Partitions of a table in directories: ``dt=2020-01-01/hour=7``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np

from firesteel.common.errors import FiresteelError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.formats.csv.values import reader_of
from firesteel.table.formats.written_texts import date_text, time_text, timestamp_text
from firesteel.types import logical as t
from firesteel.types.internal import from_column

__all__ = ["Partitioning", "values_of_path"]

_UNSAFE = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^]")


@dataclass(frozen=True)
class Partitioning:
    """The columns by which rows are distributed to directories."""

    keys: tuple[str, ...]
    types: tuple[t.LogicalType, ...]
    default_name: str = "__DEFAULT_PARTITION__"

    def data_type(self, row_type: t.RowType) -> t.RowType:
        """The columns that are in the files."""
        return t.RowType([part for part in row_type.fields if part.name not in self.keys], nullable=False)

    def split(self, batch: ColumnBatch, places: Sequence[int]) -> list[tuple[str, ColumnBatch]]:
        """The rows of each partition, in order."""
        if not self.keys:
            return [("", batch)]
        columns = [batch.data.column(place) for place in places]
        codes = np.zeros(len(batch), np.int64)
        for column in columns:
            encoded = column.dictionary_encode(null_encoding="encode")
            codes = codes * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy(zero_copy_only=False)
        _, first, groups = np.unique(codes, return_index=True, return_inverse=True)
        if len(first) == 1:
            return [(self._path(columns, 0), batch)]
        order = np.argsort(groups, kind="stable")
        bounds = np.searchsorted(groups[order], np.arange(len(first) + 1))
        return [
            (self._path(columns, int(first[group])), batch.take(order[bounds[group] : bounds[group + 1]]))
            for group in np.argsort(first, kind="stable")
        ]

    def _path(self, columns: Sequence[Any], row: int) -> str:
        parts = []
        for key, type_, column in zip(self.keys, self.types, columns, strict=True):
            value = from_column(column.slice(row, 1), type_)[0]
            text = "" if value is None else _text(value, type_)
            parts.append(f"{_escaped(key)}={_escaped(text) or self.default_name}")
        return "/".join(parts)

    def value(self, texts: dict[str, str], key: str) -> Any:
        """What a row holds for a key of the partition of a file; None for the default."""
        if key not in texts:
            raise FiresteelError(f"The path of a file has no partition '{key}'; it has {', '.join(texts) or 'none'}.")
        text = texts[key]
        type_ = self.types[self.keys.index(key)]
        return None if text == self.default_name else reader_of(type_, ";")(text)


def values_of_path(path: str) -> dict[str, str]:
    """The keys and values of the directories of a path.

    >>> values_of_path("/data/dt=2020-01-01/h=a%2Fb/part-0")
    {'dt': '2020-01-01', 'h': 'a/b'}
    """
    pairs = (part.partition("=") for part in path.split("/")[:-1] if "=" in part)
    return {unquote(key): unquote(value) for key, _, value in pairs}


def _text(value: Any, type_: t.LogicalType) -> str:
    match type_:
        case t.BooleanType():
            return "true" if value else "false"
        case t.DateType():
            return date_text(value)
        case t.TimeType():
            return time_text(value)
        case t.TimestampType() | t.LocalZonedTimestampType():
            return timestamp_text(value)
    return str(value)


def _escaped(text: str) -> str:
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", text)

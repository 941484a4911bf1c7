"""Delta's data files: partition directories, and the statistics of files for the log."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

__all__ = ["partition_path", "partition_value", "split_by_partition", "statistics"]

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_MAX_TEXT = 32
_UNSAFE = re.compile("[^A-Za-z0-9_.-]")
"""Characters that paths and URIs may write in several ways."""


def split_by_partition(data: Any, columns: Sequence[str]) -> Iterable[tuple[Any, Any]]:
    """Rows by the values of columns: a tuple of values, as the log has them, and the rows of each."""
    if not columns:
        return [((), data)]
    import pyarrow as pa

    numbered = data.select(list(columns)).append_column("_row", pa.array(range(data.num_rows), pa.int64()))
    groups = numbered.group_by(list(columns), use_threads=False).aggregate([("_row", "list")])
    values = [groups.column(name).to_pylist() for name in columns]
    lists = groups.column("_row_list").combine_chunks()
    found = []
    for index, key in enumerate(zip(*values, strict=True)):
        texts = tuple(partition_value(value) for value in key)
        found.append((texts, data.take(lists[index].values)))
    return found


def partition_value(value: Any) -> str | None:
    """The text of a value in the log.

    >>> partition_value(dt.datetime(2024, 1, 2, 3, 4, 5, 600)), partition_value(True), partition_value("")
    ('2024-01-02 03:04:05.000600', 'true', None)
    """
    match value:
        case None | "":
            return None
        case bool():
            return str(value).lower()
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        case dt.datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S.%f")
        case dt.date():
            return value.isoformat()
        case bytes():
            return value.decode("latin-1")
    return str(value)


def partition_path(columns: Sequence[str], values: Sequence[str | None]) -> str:
    """The directory of a partition, with a slash at its end. The log has the values: names here are for people.

    >>> partition_path(["d", "h"], ["a/b c", None])
    'd=a_b_c/h=__HIVE_DEFAULT_PARTITION__/'
    """
    texts = [_NO_VALUE if value is None else _UNSAFE.sub("_", value) for value in values]
    return "".join(f"{_UNSAFE.sub('_', name)}={text}/" for name, text in zip(columns, texts, strict=True))


def statistics(metadata: Any) -> str:
    """The number of rows, and for each simple column the least and the greatest value and how many nulls it has."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    unknown: set[str] = set()
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            name = column.path_in_schema
            found = column.statistics
            if "." in name:
                continue
            if found is None or not found.has_null_count:
                unknown.add(name)
                continue
            nulls[name] = nulls.get(name, 0) + found.null_count
            if found.null_count == group.num_rows:
                continue
            if not found.has_min_max or not _is_ordered(found.min):
                unknown.add(name)
                continue
            least[name] = min(least[name], found.min) if name in least else found.min
            greatest[name] = max(greatest[name], found.max) if name in greatest else found.max
    bounds = [
        {name: _plain(value, is_upper) for name, value in values.items() if name not in unknown}
        for is_upper, values in ((False, least), (True, greatest))
    ]
    bounds = [{name: value for name, value in each.items() if value is not None} for each in bounds]
    return json.dumps(
        {"numRecords": metadata.num_rows, "minValues": bounds[0], "maxValues": bounds[1], "nullCount": nulls}
    )


def _is_ordered(value: Any) -> bool:
    return isinstance(value, (int, str, dt.date, Decimal)) or (isinstance(value, float) and value == value)


def _plain(value: Any, is_upper: bool) -> Any:
    match value:
        case str() if len(value) > _MAX_TEXT:
            # a longer text is greater than what it begins with, so that is no upper bound
            return None if is_upper else value[:_MAX_TEXT]
        case dt.datetime():
            # milliseconds, as Delta has them: the upper bound is rounded up
            millis = value + dt.timedelta(microseconds=999) if is_upper else value
            text = millis.strftime("%Y-%m-%dT%H:%M:%S.") + f"{millis.microsecond // 1000:03d}"
            return text + ("Z" if value.tzinfo is not None else "")
        case dt.date():
            return value.isoformat()
        case Decimal():
            return float(value) if float(value) == value else None
    return value

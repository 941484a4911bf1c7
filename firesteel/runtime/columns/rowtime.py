"""The rowtime column of a batch in milliseconds."""

from __future__ import annotations

from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.types.arrow import require_pyarrow

__all__ = ["latest_rowtime", "rowtime_millis", "to_millis"]

_PER_MILLISECOND = {"us": 1_000, "ns": 1_000_000}


def rowtime_millis(batch: ColumnBatch) -> Any:
    """The event times of the rows since 1970, as a numpy array of int64."""
    assert batch.rowtime is not None
    column = batch.data.column(batch.rowtime)
    if column.null_count:
        raise InvalidProgramError(
            f"The rowtime column '{batch.data.schema.field(batch.rowtime).name}' is null in {column.null_count} rows.",
            hint="Filter rows without an event time before watermarks are assigned.",
        )
    return to_millis(column.cast("int64").to_numpy(zero_copy_only=False), column.type)


def latest_rowtime(batch: ColumnBatch, column_index: int) -> int | None:
    """The latest of the event times in a column; None if there is none."""
    import pyarrow.compute as pc

    column = batch.data.column(column_index)
    latest = pc.max(column.cast("int64")).as_py()
    return None if latest is None else int(to_millis(latest, column.type))


def to_millis(numbers: Any, type_: Any) -> Any:
    """Whole milliseconds, rounded down."""
    types = require_pyarrow("Columns").types
    if not types.is_timestamp(type_) or type_.unit == "ms":
        return numbers
    if type_.unit == "s":
        return numbers * 1000
    return numbers // _PER_MILLISECOND[type_.unit]

"""Changes of rows by their key: how they are gathered in files, and what is left of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.types.arrow import require_pyarrow

__all__ = ["KIND", "change_schema", "last_changes", "rows_without"]

KIND = "_row_kind"
"""The column of a file of changes with Flink's number of the row kind."""
_ORDER = "_row_number"
_DELETIONS = (1, 3)


def change_schema(schema: Any) -> Any:
    """The columns of a file of changes of rows of a schema."""
    pa = require_pyarrow("Lakes")
    return pa.schema([*schema, pa.field(KIND, pa.int8(), nullable=False)])


def last_changes(changes: Any, key: Sequence[str]) -> tuple[Any, Any]:
    """The last change of each key of a pyarrow Table: rows to be there, and keys of rows to be gone.

    >>> import pyarrow as pa
    >>> changes = pa.table({"k": [1, 2, 1], "v": ["a", "b", None], KIND: pa.array([0, 0, 3], pa.int8())})
    >>> [part.to_pylist() for part in last_changes(changes, ["k"])]
    [[{'k': 2, 'v': 'b'}], [{'k': 1}]]
    """
    pa = require_pyarrow("Lakes")
    import pyarrow.compute as pc

    numbered = changes.select(list(key)).append_column(_ORDER, pa.array(range(changes.num_rows), pa.int64()))
    last = numbered.group_by(list(key), use_threads=False).aggregate([(_ORDER, "max")])
    places = pc.take(last[f"{_ORDER}_max"], pc.sort_indices(last[f"{_ORDER}_max"]))
    rows = changes.take(places)
    is_deletion = pc.is_in(rows[KIND], pa.array(_DELETIONS, pa.int8()))
    upserts = rows.filter(pc.invert(is_deletion)).drop_columns([KIND])
    return upserts, rows.filter(is_deletion).select(list(key))


def rows_without(data: Any, keys: Any) -> Any | None:
    """The rows of a Table whose keys are not among those of another; None if these are all."""
    pa = require_pyarrow("Lakes")
    import numpy as np

    numbered = data.select(keys.column_names).append_column(_ORDER, pa.array(np.arange(data.num_rows)))
    found = numbered.join(keys, keys.column_names, join_type="left semi", use_threads=False)
    if not found.num_rows:
        return None
    mask = np.ones(data.num_rows, dtype=bool)
    mask[found[_ORDER].to_numpy()] = False
    return data.filter(pa.array(mask))

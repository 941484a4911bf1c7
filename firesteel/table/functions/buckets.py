"""The function that spreads values over buckets, which plans call and queries do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import KeyGroups
from firesteel.table.expressions.nodes import Call, Expression
from firesteel.table.expressions.session import Session
from firesteel.table.functions.definition import FunctionDefinition, Inferred, PerCall
from firesteel.types import logical as t
from firesteel.types.internal import to_column

__all__ = ["BUCKET", "FUNCTIONS"]

BUCKET = "$BUCKET"


def _infer(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
    value, count = (argument.type for argument in arguments)
    return Inferred((value, count), t.IntType(nullable=value.nullable))


def _vector(call: Call, session: Session) -> Callable[..., Any]:
    """Equal values have the same bucket, in any process."""
    groups: dict[int, KeyGroups] = {}

    def bucket(array: Any, count: Any) -> Any:
        if isinstance(array, pa.Scalar):
            return bucket(pa.array([array.as_py()], array.type), count)[0]
        buckets = count.as_py()
        if buckets not in groups:
            groups[buckets] = KeyGroups((0,), buckets)
        found = groups[buckets].of(ColumnBatch(pa.record_batch([array], ["value"])))
        mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        return pa.array(found.astype("int32"), mask=mask)

    return bucket


def _row(call: Call, session: Session) -> Callable[..., Any]:
    of_column = _vector(call, session)
    type_ = call.arguments[0].type
    return lambda value, count: of_column(to_column([value], type_), pa.scalar(count))[0].as_py()


FUNCTIONS = (
    FunctionDefinition(
        BUCKET, _infer, row=PerCall(_row), vector=PerCall(_vector), returns_null=False, family="internal"
    ),
)

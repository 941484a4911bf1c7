"""Hash functions, and the function that spreads values over buckets, which plans call and queries do not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import KeyGroups
from firesteel.table.bound.errors import EvaluationError
from firesteel.table.bound.nodes import Call, Expression
from firesteel.table.bound.session import Session
from firesteel.table.functions.definition import FunctionDefinition, Inferred, PerCall
from firesteel.table.functions.signatures import CHARACTER, INTEGER, signature
from firesteel.types import logical as t
from firesteel.types.internal import to_column

__all__ = ["BUCKET", "FUNCTIONS", "INTERNAL"]

BUCKET = "$BUCKET"

_LENGTHS = {"md5": 32, "sha1": 40, "sha224": 56, "sha256": 64, "sha384": 96, "sha512": 128}


def _hash(algorithm: str) -> Callable[[str], str]:
    return lambda text: hashlib.new(algorithm, text.encode(), usedforsecurity=False).hexdigest()


def _sha2(text: str, bits: int) -> str:
    if bits not in (224, 256, 384, 512):
        raise EvaluationError(f"SHA-{bits} MessageDigest not available", hint="Use 224, 256, 384 or 512.")
    return _hash(f"sha{bits}")(text)


_SPARK = {"md5": "md5({0})", "sha1": "sha1({0})"}

FUNCTIONS = (
    *(
        FunctionDefinition(
            algorithm.upper(),
            signature(algorithm.upper(), CHARACTER, returns=t.CharType(length)),
            row=_hash(algorithm),
            spark=_SPARK.get(algorithm, f"sha2({{0}}, {algorithm[3:]})"),
            returns_null=False,
            family="hash",
        )
        for algorithm, length in _LENGTHS.items()
    ),
    FunctionDefinition(
        "SHA2",
        signature("SHA2", CHARACTER, INTEGER, returns=t.VarCharType(128)),
        row=_sha2,
        can_fail=True,
        returns_null=False,
        family="hash",
    ),
)


def _infer_bucket(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
    value, count = (argument.type for argument in arguments)
    return Inferred((value, count), t.IntType(nullable=value.nullable))


def _bucket_of_columns(call: Call, session: Session) -> Callable[..., Any]:
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


def _bucket_of_rows(call: Call, session: Session) -> Callable[..., Any]:
    of_column = _bucket_of_columns(call, session)
    type_ = call.arguments[0].type
    return lambda value, count: of_column(to_column([value], type_), pa.scalar(count))[0].as_py()


INTERNAL = (
    FunctionDefinition(
        BUCKET,
        _infer_bucket,
        row=PerCall(_bucket_of_rows),
        vector=PerCall(_bucket_of_columns),
        returns_null=False,
        family="hash",
    ),
)

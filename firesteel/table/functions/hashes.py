"""Hash functions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from firesteel.table.expressions.errors import EvaluationError
from firesteel.table.functions.definition import FunctionDefinition
from firesteel.table.functions.signatures import CHARACTER, INTEGER, signature
from firesteel.types import logical as t

__all__ = ["FUNCTIONS"]

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

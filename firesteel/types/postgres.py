"""The logical types of PostgreSQL's columns, as its driver gives their values.

Types that are not here (``timestamp with time zone``, ``uuid``, ``jsonb``, …) are RAW: the driver gives a class of its
own choice.
"""

from __future__ import annotations

from firesteel.types import logical as t
from firesteel.types.logical import LogicalType

__all__ = ["from_postgres"]

# oid of the type, oid of arrays of it: those of built-in types never change
_SCALARS: dict[tuple[int, int], LogicalType] = {
    (16, 1000): t.BooleanType(),
    (21, 1005): t.SmallIntType(),
    (23, 1007): t.IntType(),
    (20, 1016): t.BigIntType(),
    (700, 1021): t.FloatType(),
    (701, 1022): t.DoubleType(),
    (25, 1009): t.VarCharType(),  # text
    (1042, 1014): t.VarCharType(),  # character
    (1043, 1015): t.VarCharType(),  # character varying
    (19, 1003): t.VarCharType(),  # name
    (1700, 1231): t.DecimalType(None, None),
    (1082, 1182): t.DateType(),
    (1083, 1183): t.TimeType(6),
    (1114, 1115): t.TimestampType(6),
}
_BY_OID: dict[int, LogicalType] = {
    17: t.VarBinaryType(),  # bytea
    **{oid: type_ for (oid, _), type_ in _SCALARS.items()},
    **{oid: t.ArrayType(type_) for (_, oid), type_ in _SCALARS.items()},
}


def from_postgres(oid: int) -> LogicalType:
    """The type of the values of a column, by the oid of its type."""
    return _BY_OID.get(oid, t.RawType())

"""The type information of a result's columns."""

from __future__ import annotations

from firesteel.common.typeinfo import TypeInformation, Types

__all__ = ["type_of"]

# the oids of built-in types, and of arrays of them, never change
_BASIC = {
    16: (1000, Types.BOOLEAN),
    21: (1005, Types.SHORT),
    23: (1007, Types.INT),
    20: (1016, Types.LONG),
    700: (1021, Types.FLOAT),
    701: (1022, Types.DOUBLE),
    25: (1009, Types.STRING),
    1042: (1014, Types.STRING),
    1043: (1015, Types.STRING),
    19: (1003, Types.STRING),
}
_OTHER = {
    1700: (1231, Types.BIG_DEC),
    1082: (1182, Types.SQL_DATE),
    1083: (1183, Types.SQL_TIME),
    1114: (1115, Types.SQL_TIMESTAMP),
}
_BYTEA = 17


def type_of(oid: int) -> TypeInformation:
    """The type of the values of a column; anything else than the usual types can be pickled at least."""
    if oid == _BYTEA:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())
    for known, to_array in ((_BASIC, Types.BASIC_ARRAY), (_OTHER, Types.OBJECT_ARRAY)):
        for element, (array, make) in known.items():
            if oid == element:
                return make()
            if oid == array:
                return to_array(make())
    return Types.PICKLED_BYTE_ARRAY()

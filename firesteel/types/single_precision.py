"""Numbers of 32 bits: those of Flink's FLOAT, of PostgreSQL's real, of Arrow's and Avro's float."""

from __future__ import annotations

import math
import struct
from typing import Any

__all__ = ["MAX_SINGLE", "MIN_SINGLE", "to_single"]

MAX_SINGLE = (2.0 - 2.0**-23) * 2.0**127
MIN_SINGLE = 2.0**-126
"""Between these two a number is only rounded."""

_SINGLE = struct.Struct("f")


def to_single(value: Any) -> float:
    """The number of 32 bits next to a number; OverflowError if that is infinite or 0 where the number is not.

    >>> to_single(0.5), to_single(0.1)
    (0.5, 0.10000000149011612)
    """
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError("a number is needed")
    number = float(value)
    try:
        (single,) = _SINGLE.unpack(_SINGLE.pack(number))
    except OverflowError:
        single = math.inf
    if (math.isinf(single) and not _is_infinite(value)) or (not single and value):
        raise OverflowError(f"{value!r} does not fit into 32 bits")
    return float(single)


def _is_infinite(value: Any) -> bool:
    # the float of a decimal may be infinite where the decimal is not
    return bool(value.is_infinite()) if hasattr(value, "is_infinite") else math.isinf(value)

"""Type variables of streams and functions, for type checkers.

At run time a class with ``Generic`` here accepts any subscript and is the same class as without one: its bases are
those of PyFlink's class. For a type checker the variables have ``Any`` as their default, so that programs without type
parameters need none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Generic

    from typing_extensions import TypeVar
else:
    from types import GenericAlias
    from typing import TypeVar as _TypeVar

    class Generic:
        """Accepts subscripts."""

        __slots__ = ()
        __class_getitem__ = classmethod(GenericAlias)

    def TypeVar(name, *, covariant=False, contravariant=False, **_):  # noqa: N802
        """A type variable; Python has defaults since 3.13 only."""
        return _TypeVar(name, covariant=covariant, contravariant=contravariant)


__all__ = [
    "ACC",
    "Generic",
    "IN1_contra",
    "IN2_contra",
    "IN_contra",
    "KEY_contra",
    "K_co",
    "OUT_co",
    "R",
    "S",
    "T",
    "T1_co",
    "T2_co",
    "T_co",
    "W_co",
    "W_contra",
]

# Streams: what reads a DataStream[Event] may be given a DataStream[Click].
T_co = TypeVar("T_co", default=Any, covariant=True)
T1_co = TypeVar("T1_co", default=Any, covariant=True)
T2_co = TypeVar("T2_co", default=Any, covariant=True)
K_co = TypeVar("K_co", default=Any, covariant=True)
W_co = TypeVar("W_co", default=Any, covariant=True)

# Functions: a MapFunction[Event, str] can be applied to a stream of clicks.
IN_contra = TypeVar("IN_contra", default=Any, contravariant=True)
IN1_contra = TypeVar("IN1_contra", default=Any, contravariant=True)
IN2_contra = TypeVar("IN2_contra", default=Any, contravariant=True)
KEY_contra = TypeVar("KEY_contra", default=Any, contravariant=True)
W_contra = TypeVar("W_contra", default=Any, contravariant=True)
OUT_co = TypeVar("OUT_co", default=Any, covariant=True)
T = TypeVar("T", default=Any)
ACC = TypeVar("ACC", default=Any)

# Of single methods.
R = TypeVar("R", default=Any)
S = TypeVar("S", default=Any)

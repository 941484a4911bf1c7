"""Arithmetic and functions of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.table.dsl.base import ExpressionBase, node_of
from firesteel.table.parser import nodes

if TYPE_CHECKING:
    from firesteel.table.dsl.expression import Expression

__all__ = ["NumberExpressions"]


class NumberExpressions(ExpressionBase[Any]):
    """Functions of numbers."""

    @property
    def exp(self) -> Expression[Any]:
        """e to the power of the value."""
        return self._call("EXP")

    @property
    def log10(self) -> Expression[Any]:
        """The logarithm to base 10."""
        return self._call("LOG10")

    @property
    def log2(self) -> Expression[Any]:
        """The logarithm to base 2."""
        return self._call("LOG2")

    @property
    def ln(self) -> Expression[Any]:
        """The natural logarithm."""
        return self._call("LN")

    def log(self, base: Any = None) -> Expression[Any]:
        """The natural logarithm, or that to a base."""
        return (
            self._call("LOG")
            if base is None
            else self._of(nodes.Call(this="LOG", expressions=[node_of(base), self._copy()]))
        )

    @property
    def cosh(self) -> Expression[Any]:
        """The hyperbolic cosine."""
        return self._call("COSH")

    @property
    def sinh(self) -> Expression[Any]:
        """The hyperbolic sine."""
        return self._call("SINH")

    @property
    def sin(self) -> Expression[Any]:
        """The sine."""
        return self._call("SIN")

    @property
    def cos(self) -> Expression[Any]:
        """The cosine."""
        return self._call("COS")

    @property
    def tan(self) -> Expression[Any]:
        """The tangent."""
        return self._call("TAN")

    @property
    def cot(self) -> Expression[Any]:
        """The cotangent."""
        return self._call("COT")

    @property
    def asin(self) -> Expression[Any]:
        """The arc sine."""
        return self._call("ASIN")

    @property
    def acos(self) -> Expression[Any]:
        """The arc cosine."""
        return self._call("ACOS")

    @property
    def atan(self) -> Expression[Any]:
        """The arc tangent."""
        return self._call("ATAN")

    @property
    def tanh(self) -> Expression[Any]:
        """The hyperbolic tangent."""
        return self._call("TANH")

    @property
    def degrees(self) -> Expression[Any]:
        """Radians as degrees."""
        return self._call("DEGREES")

    @property
    def radians(self) -> Expression[Any]:
        """Degrees as radians."""
        return self._call("RADIANS")

    @property
    def sqrt(self) -> Expression[Any]:
        """The square root."""
        return self._call("SQRT")

    @property
    def abs(self) -> Expression[Any]:
        """The absolute value."""
        return self._call("ABS")

    @property
    def sign(self) -> Expression[Any]:
        """The sign: -1, 0 or 1."""
        return self._call("SIGN")

    def round(self, places: Any) -> Expression[Any]:
        """The value with so many digits after the point."""
        return self._call("ROUND", places)

    def truncate(self, n: Any = 0) -> Expression[Any]:
        """The value without the digits after the first n behind the point."""
        return self._call("TRUNCATE", n)

    @property
    def bin(self) -> Expression[Any]:
        """The text of the value in base 2."""
        return self._call("BIN")

    @property
    def hex(self) -> Expression[Any]:
        """The text of the value in base 16."""
        return self._call("HEX")

    @property
    def unhex(self) -> Expression[Any]:
        """The bytes of a text in base 16."""
        return self._call("UNHEX")

"""Aggregate functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from firesteel.table.bound.errors import ValidationError
from firesteel.table.dsl.base import ExpressionBase
from firesteel.table.parser import nodes

if TYPE_CHECKING:
    from firesteel.table.dsl.expression import Expression

__all__ = ["AggregateExpressions"]


class AggregateExpressions(ExpressionBase[Any]):
    """Functions of the values of a group."""

    @property
    def sum(self) -> Expression[Any]:
        """The sum; null if there is no value."""
        return self._call("SUM")

    @property
    def sum0(self) -> Expression[Any]:
        """The sum; 0 if there is no value."""
        return self.sum._call("IFNULL", 0)

    @property
    def min(self) -> Expression[Any]:
        """The smallest value."""
        return self._call("MIN")

    @property
    def max(self) -> Expression[Any]:
        """The largest value."""
        return self._call("MAX")

    @property
    def count(self) -> Expression[Any]:
        """The number of values that are not null."""
        return self._call("COUNT")

    @property
    def avg(self) -> Expression[Any]:
        """The average."""
        return self._call("AVG")

    @property
    def first_value(self) -> Expression[Any]:
        """The first value."""
        return self._call("FIRST_VALUE")

    @property
    def last_value(self) -> Expression[Any]:
        """The last value."""
        return self._call("LAST_VALUE")

    def list_agg(self, separator: Any = None) -> Expression[Any]:
        """The values as one text."""
        return self._call("LISTAGG", separator)

    @property
    def stddev_pop(self) -> Expression[Any]:
        """The standard deviation of a population."""
        return self._call("STDDEV_POP")

    @property
    def stddev_samp(self) -> Expression[Any]:
        """The standard deviation of a sample."""
        return self._call("STDDEV_SAMP")

    @property
    def var_pop(self) -> Expression[Any]:
        """The variance of a population."""
        return self._call("VAR_POP")

    @property
    def var_samp(self) -> Expression[Any]:
        """The variance of a sample."""
        return self._call("VAR_SAMP")

    @property
    def collect(self) -> Expression[Any]:
        """The values as a multiset."""
        return self._call("COLLECT")

    @property
    def array_agg(self) -> Expression[Any]:
        """The values as an array."""
        return self._call("ARRAY_AGG")

    def percentile(self, percentage: Any, frequency: Any = None) -> Expression[Any]:
        """A percentile, or an array of them."""
        return self._call("PERCENTILE", percentage, frequency)

    def bitmap_and_agg(self) -> Expression[Any]:
        """The values that are in all bitmaps."""
        return self._call("BITMAP_AND_AGG")

    def bitmap_and_cardinality_agg(self) -> Expression[Any]:
        """How many values are in all bitmaps."""
        return self._call("BITMAP_AND_CARDINALITY_AGG")

    def bitmap_build_agg(self) -> Expression[Any]:
        """The bitmap of all values."""
        return self._call("BITMAP_BUILD_AGG")

    def bitmap_build_cardinality_agg(self) -> Expression[Any]:
        """How many different values there are."""
        return self._call("BITMAP_BUILD_CARDINALITY_AGG")

    def bitmap_or_agg(self) -> Expression[Any]:
        """The values that are in one of the bitmaps."""
        return self._call("BITMAP_OR_AGG")

    def bitmap_or_cardinality_agg(self) -> Expression[Any]:
        """How many values are in one of the bitmaps."""
        return self._call("BITMAP_OR_CARDINALITY_AGG")

    def bitmap_xor_agg(self) -> Expression[Any]:
        """The values that are in an odd number of bitmaps."""
        return self._call("BITMAP_XOR_AGG")

    def bitmap_xor_cardinality_agg(self) -> Expression[Any]:
        """How many values are in an odd number of bitmaps."""
        return self._call("BITMAP_XOR_CARDINALITY_AGG")

    @property
    def distinct(self) -> Expression[Any]:
        """The aggregate function over different values."""
        call = self._copy()
        if not isinstance(call, nodes.Call):
            raise ValidationError(f"DISTINCT modifier cannot be applied to '{self}': it needs an aggregate function.")
        call.set("quantifier", "DISTINCT")
        return self._of(call)

    def over(self, alias: Any) -> Expression[Any]:
        """The function over a window of rows, which ``over_window`` defines."""
        name = alias if isinstance(alias, str) else str(alias)
        return self._of(exp.Window(this=self._copy(), alias=exp.to_identifier(name, quoted=True)))

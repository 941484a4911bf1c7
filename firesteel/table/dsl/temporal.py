"""Functions of dates and times, intervals, and the properties of windows."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from firesteel.table.bound.errors import ValidationError
from firesteel.table.dsl.base import ExpressionBase, cast_node
from firesteel.table.parser import nodes
from firesteel.types.logical import DateType, TimestampType, TimeType

if TYPE_CHECKING:
    from firesteel.table.dsl.expression import Expression
    from firesteel.table.dsl.units import TimeIntervalUnit

__all__ = ["TemporalExpressions"]


class TemporalExpressions(ExpressionBase[Any]):
    """Dates, times and intervals."""

    def _interval(self, unit: str, factor: Decimal = Decimal(1)) -> Expression[Any]:
        sign, literal = (-1, self._node.this) if isinstance(self._node, exp.Neg) else (1, self._node)
        if not isinstance(literal, exp.Literal) or literal.is_string:
            kind = "year-month" if unit in ("YEAR", "QUARTER", "MONTH") else "day-time"
            raise ValidationError(f"Invalid constant for {kind} interval: {self}", hint="Write lit(5).minutes.")
        text = exp.Literal.string(f"{Decimal(literal.this) * factor * sign:f}")
        return self._of(exp.Interval(this=text, unit=nodes.IntervalQualifier(start=unit)))

    @property
    def to_date(self) -> Expression[Any]:
        """A string as a DATE."""
        return self._of(cast_node(self._copy(), DateType()))

    @property
    def to_time(self) -> Expression[Any]:
        """A string as a TIME."""
        return self._of(cast_node(self._copy(), TimeType(0)))

    @property
    def to_timestamp(self) -> Expression[Any]:
        """A string as a TIMESTAMP."""
        return self._of(cast_node(self._copy(), TimestampType(3)))

    def extract(self, time_interval_unit: TimeIntervalUnit) -> Expression[Any]:
        """A field of a date or time."""
        unit = exp.Var(this=time_interval_unit.value)
        return self._of(nodes.Call(this="EXTRACT", expressions=[unit, self._copy()]))

    def floor(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression[Any]:
        """The largest integer that is not greater, or the beginning of the unit of time."""
        return self._rounded("FLOOR", time_interval_unit)

    def ceil(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression[Any]:
        """The smallest integer that is not less, or the end of the unit of time."""
        return self._rounded("CEIL", time_interval_unit)

    def _rounded(self, name: str, unit: TimeIntervalUnit | None) -> Expression[Any]:
        units = [] if unit is None else [exp.Var(this=unit.value)]
        return self._of(nodes.Call(this=name, expressions=[self._copy(), *units]))

    # -- windows -----------------------------------------------------------------------------------------------

    def _property(self, name: str) -> Expression[Any]:
        return self._of(nodes.WindowProperty(this=self._copy(), name=name))

    @property
    def start(self) -> Expression[Any]:
        """The beginning of a window, by its alias."""
        return self._property("START")

    @property
    def end(self) -> Expression[Any]:
        """The end of a window, by its alias; it does not belong to the window."""
        return self._property("END")

    @property
    def rowtime(self) -> Expression[Any]:
        """The event time of a window, by its alias; in the fields of a stream, a new time attribute."""
        return self._property("ROWTIME")

    @property
    def proctime(self) -> Expression[Any]:
        """The processing time of a window, by its alias; in the fields of a stream, a new time attribute."""
        return self._property("PROCTIME")

    # -- intervals ---------------------------------------------------------------------------------------------

    @property
    def year(self) -> Expression[Any]:
        """An interval of so many years."""
        return self._interval("YEAR")

    @property
    def years(self) -> Expression[Any]:
        """An interval of so many years."""
        return self._interval("YEAR")

    @property
    def quarter(self) -> Expression[Any]:
        """An interval of so many quarters."""
        return self._interval("QUARTER")

    @property
    def quarters(self) -> Expression[Any]:
        """An interval of so many quarters."""
        return self._interval("QUARTER")

    @property
    def month(self) -> Expression[Any]:
        """An interval of so many months."""
        return self._interval("MONTH")

    @property
    def months(self) -> Expression[Any]:
        """An interval of so many months."""
        return self._interval("MONTH")

    @property
    def week(self) -> Expression[Any]:
        """An interval of so many weeks."""
        return self._interval("WEEK")

    @property
    def weeks(self) -> Expression[Any]:
        """An interval of so many weeks."""
        return self._interval("WEEK")

    @property
    def day(self) -> Expression[Any]:
        """An interval of so many days."""
        return self._interval("DAY")

    @property
    def days(self) -> Expression[Any]:
        """An interval of so many days."""
        return self._interval("DAY")

    @property
    def hour(self) -> Expression[Any]:
        """An interval of so many hours."""
        return self._interval("HOUR")

    @property
    def hours(self) -> Expression[Any]:
        """An interval of so many hours."""
        return self._interval("HOUR")

    @property
    def minute(self) -> Expression[Any]:
        """An interval of so many minutes."""
        return self._interval("MINUTE")

    @property
    def minutes(self) -> Expression[Any]:
        """An interval of so many minutes."""
        return self._interval("MINUTE")

    @property
    def second(self) -> Expression[Any]:
        """An interval of so many seconds."""
        return self._interval("SECOND")

    @property
    def seconds(self) -> Expression[Any]:
        """An interval of so many seconds."""
        return self._interval("SECOND")

    @property
    def milli(self) -> Expression[Any]:
        """An interval of so many milliseconds."""
        return self._interval("SECOND", Decimal("0.001"))

    @property
    def millis(self) -> Expression[Any]:
        """An interval of so many milliseconds."""
        return self._interval("SECOND", Decimal("0.001"))

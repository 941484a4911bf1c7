"""Conditions on columns that a scan may use to leave out files and rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Condition", "arrow_filter"]


@dataclass(frozen=True)
class Condition:
    """A comparison of a column with values; one of several operators, as in SQL.

    Rows for which it is not true may be left out, and need not be.
    """

    column: str
    operator: str
    """One of ``=  <>  <  <=  >  >=  in  is null  is not null``."""
    values: tuple[Any, ...] = ()


def arrow_filter(conditions: Sequence[Condition]) -> Any:
    """The expression of pyarrow for all conditions; None if there are none."""
    import pyarrow.compute as pc

    found: Any = None
    for condition in conditions:
        field = pc.field(condition.column)
        value = condition.values[0] if condition.values else None
        match condition.operator:
            case "=":
                one = field == value
            case "<>":
                one = field != value
            case "<":
                one = field < value
            case "<=":
                one = field <= value
            case ">":
                one = field > value
            case ">=":
                one = field >= value
            case "in":
                one = field.isin(list(condition.values))
            case "is null":
                one = field.is_null()
            case _:
                one = field.is_valid()
        found = one if found is None else found & one
    return found

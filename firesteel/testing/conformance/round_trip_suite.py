"""Round-trip suite: checks of values for every format, and every connector that reads what it has written."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from firesteel.common.typeinfo import RowTypeInfo, TypeInformation, Types
from firesteel.common.types import Row
from firesteel.testing.conformance.errors import ConformanceError
from firesteel.testing.conformance.sample_values import SCALAR_TYPES, draw_value, extremes, out_of_range, same
from firesteel.testing.conformance.suite import ConformanceSuite

__all__ = ["RoundTripConformance"]

_DRAWN = 40


class RoundTripConformance(ConformanceSuite):
    """Writes values of every type and reads them again: each comes back as it was, or is refused with an error.

    A subclass defines how, for rows with a number ``nr`` and a field ``value``::

        class TestMyFormat(RoundTripConformance):
            def round_trip(self, row_type: RowTypeInfo, rows: Sequence[Row]) -> Sequence[Row]: ...

    Rows may come back in any order. An error that ``round_trip`` raises means that a value was refused; only those for
    which ``may_refuse`` is true may be. A value that comes back as another one, without an error, is what is looked
    for: alone, and beside others, since many writers choose a form by what is in a batch.
    """

    types: Sequence[TypeInformation] = SCALAR_TYPES
    """The types of single values; fewer if not all can be held."""

    nested: bool = True
    """Whether rows, lists and maps of these types are tried."""

    holds_none: bool = True
    """Whether None is a value of its own."""

    seeds: Sequence[int] = range(5)
    """Each draws other values."""

    # -- defined by the author -------------------------------------------------------------------------

    @abstractmethod
    def round_trip(self, row_type: RowTypeInfo, rows: Sequence[Row]) -> Sequence[Row]:
        """Writes rows, all at once, and reads them again."""
        raise NotImplementedError

    def may_refuse(self, type_info: TypeInformation, value: Any) -> bool:
        """Whether there is no place for a value of the type; not asked for those that do not fit the type itself."""
        return False

    def nested_types(self) -> Sequence[TypeInformation]:
        """Types that are made of others."""
        parts = list(self.types)
        names = [f"f{index}" for index in range(len(parts))]
        return [
            Types.ROW_NAMED(names, parts),
            *map(Types.LIST, parts),
            *map(Types.OBJECT_ARRAY, parts),
            Types.LIST(Types.LIST(Types.INT())),
            *(Types.MAP(Types.STRING(), part) for part in parts),
            Types.MAP(Types.STRING(), Types.LIST(Types.ROW_NAMED(names, parts))),
        ]

    # -- checks ---------------------------------------------------------------------------------------

    def test_extremes_come_back(self) -> None:
        """The edges of each type, alone and all together."""
        for type_info in self.types:
            accepted = [value for value in extremes(type_info) if self._comes_back(type_info, value)]
            self._check_together(type_info, accepted)

    def test_values_that_do_not_fit_are_never_changed(self) -> None:
        """A number that is too large, a moment that is too exact: as it was, or an error."""
        for type_info in self.types:
            accepted = [value for value in out_of_range(type_info) if self._comes_back(type_info, value, fits=False)]
            self._check_together(type_info, accepted)

    def test_drawn_values_come_back(self) -> None:
        """Any value of each type, many at once."""
        for seed in self.seeds:
            chance = random.Random(seed)
            for type_info in self.types:
                values = [draw_value(type_info, chance) for _ in range(_DRAWN)]
                self._check_together(type_info, [v for v in values if not self.may_refuse(type_info, v)])

    def test_none_comes_back(self) -> None:
        """Alone, and beside values."""
        if not self.holds_none:
            self._skip("holds_none is False")
        for type_info in self.types:
            values = [value for value in extremes(type_info) if not self.may_refuse(type_info, value)]
            self._check_together(type_info, [None])
            self._check_together(type_info, [None, *values, None])

    def test_nested_values_come_back(self) -> None:
        """Rows, lists and maps, with None in them, empty ones too."""
        if not self.nested:
            self._skip("nested is False")
        for seed in self.seeds:
            chance = random.Random(seed)
            for type_info in self.nested_types():
                values = [draw_value(type_info, chance) for _ in range(_DRAWN // 4)]
                self._check_together(type_info, [v for v in values if not self.may_refuse(type_info, v)])

    # -- how ------------------------------------------------------------------------------------------

    def _comes_back(self, type_info: TypeInformation, value: Any, *, fits: bool = True) -> bool:
        """Writes a value alone; False if it is refused."""
        try:
            found = self._values_of(type_info, [value])
        except ConformanceError:
            raise
        except Exception as error:
            if fits and not self.may_refuse(type_info, value):
                raise ConformanceError(f"{_shown(value)} of type {type_info} was refused: {error}") from error
            return False
        self._compare(type_info, [value], found, "written alone")
        return True

    def _check_together(self, type_info: TypeInformation, values: Sequence[Any]) -> None:
        if values:
            found = self._values_of(type_info, values)
            self._compare(type_info, values, found, f"written together with {len(values) - 1} others")

    def _values_of(self, type_info: TypeInformation, values: Sequence[Any]) -> list[Any]:
        row_type = Types.ROW_NAMED(["nr", "value"], [Types.INT(), type_info])
        rows = self.round_trip(row_type, [Row(nr=number, value=value) for number, value in enumerate(values)])
        found = {row["nr"]: row["value"] for row in rows}
        if len(rows) != len(values) or found.keys() != set(range(len(values))):
            raise ConformanceError(
                f"{len(values)} values of type {type_info} were written, the rows {sorted(found)} came back."
            )
        return [found[number] for number in range(len(values))]

    def _compare(self, type_info: TypeInformation, values: Sequence[Any], found: Sequence[Any], where: str) -> None:
        for value, came in zip(values, found, strict=True):
            if not same(value, came):
                raise ConformanceError(
                    f"{_shown(value)} of type {type_info} came back as {_shown(came)}, {where}. Keep it as it is, or "
                    "refuse it with an error."
                )


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 120 else text[:120] + '…'}"

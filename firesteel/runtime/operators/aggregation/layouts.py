"""How a bundle holds its partial results: whole, or as lists of fields that are changed in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from firesteel.runtime.codegen.inlining import inline_expression_of_two, tuple_fields

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import LoopWriter
    from firesteel.runtime.operators.aggregation.function import Aggregation

__all__ = ["FieldsLayout", "PartialLayout", "WholeLayout", "layout_of"]

Pair = tuple[Any, Any]


class PartialLayout(Protocol):
    """Writes the lines that hold partial results, and reads what they hold."""

    def held(self, writer: LoopWriter, first: str) -> str:
        """Returns the expression that holds the partial result in a variable, with the timestamp of the record."""
        ...

    def write_add(self, writer: LoopWriter, partials: str, key: str, known: str, value: str) -> None:
        """Writes the addition of a record to what is held in a variable."""
        ...

    def partials(self, entries: list[Pair], *, with_timestamps: bool) -> tuple[list[Pair], list[int] | None]:
        """Returns pairs of key and partial result, and their timestamps, for pairs of key and what is held."""
        ...


class WholeLayout:
    """Holds the partial result, or a list of it and its timestamp if records have timestamps."""

    def __init__(self, aggregation: Aggregation):
        self._aggregation = aggregation

    def held(self, writer: LoopWriter, first: str) -> str:
        """Returns the partial result itself where there are no timestamps."""
        return f"[{first}, {writer.timestamp}]" if writer.with_timestamps else first

    def write_add(self, writer: LoopWriter, partials: str, key: str, known: str, value: str) -> None:
        """Writes the addition, and stores its result."""
        if not writer.with_timestamps:
            self._aggregation.write_add(writer, known, value)
            writer.line(f"{partials}[{key}] = {known}")
            return
        partial = writer.new_variable("a")
        writer.line(f"{partial} = {known}[0]")
        self._aggregation.write_add(writer, partial, value)
        writer.line(f"{known}[0] = {partial}")
        _write_timestamp(writer, known, 1)

    def partials(self, entries: list[Pair], *, with_timestamps: bool) -> tuple[list[Pair], list[int] | None]:
        """Separates partial results and timestamps."""
        if not with_timestamps:
            return entries, None
        return [(key, partial) for key, (partial, _) in entries], [timestamp for _, (_, timestamp) in entries]


class FieldsLayout:
    """Holds the fields of tuples in lists, behind them the timestamp if records have timestamps.

    For a reduce function such as ``lambda a, b: (a[0], a[1] + b[1])``: one field is computed and stored per record,
    instead of a tuple that is created and put into the bundle. A first record that is not such a tuple is held by an
    object that behaves like the list.
    """

    def __init__(self, aggregation: Aggregation, fields: Sequence[str | None]):
        self._aggregation = aggregation
        self.width = len(fields)
        self.unchanged = [position for position, field in enumerate(fields) if field is None]
        """The fields that the function takes from the partial result as they are."""

    def held(self, writer: LoopWriter, first: str) -> str:
        """Returns a list for a tuple."""
        other, layout = writer.bind("other", _Other), writer.bind("layout", self)
        timestamp = writer.timestamp if writer.with_timestamps else "None"
        items = f"*{first}, {timestamp}" if writer.with_timestamps else f"*{first}"
        is_tuple = f"{first}.__class__ is tuple and len({first}) == {self.width}"
        return f"[{items}] if {is_tuple} else {other}({first}, {layout}, {timestamp})"

    def write_add(self, writer: LoopWriter, partials: str, key: str, known: str, value: str) -> None:
        """Writes the computation of the fields that change, then their assignment."""
        fields = writer.fields_of_two(self._aggregation.add, known, value)
        assert fields is not None
        changed = [position for position, field in enumerate(fields) if field is not None]
        if len(changed) == 1:
            writer.line(f"{known}[{changed[0]}] = {fields[changed[0]]}", element=value)
        else:
            names = [writer.new_variable("x") for _ in changed]
            texts = ", ".join(str(fields[position]) for position in changed)
            writer.line(f"{', '.join(names)} = {texts}", element=value)
            for position, name in zip(changed, names, strict=True):
                writer.line(f"{known}[{position}] = {name}", element=value)
        if writer.with_timestamps:
            _write_timestamp(writer, known, self.width)

    def partials(self, entries: list[Pair], *, with_timestamps: bool) -> tuple[list[Pair], list[int] | None]:
        """Makes tuples of the lists."""
        timestamps = [held.pop() for _, held in entries] if with_timestamps else None
        return [(key, tuple(held) if held.__class__ is list else held.partial) for key, held in entries], timestamps


class _Other:
    """Stands for the list of a first record that is not a tuple of the width: a Row, a list, a longer tuple."""

    __slots__ = ("_fields", "_first", "_layout", "_timestamp")

    def __init__(self, first: Any, layout: FieldsLayout, timestamp: int | None):
        self._first = first
        self._layout = layout
        self._timestamp = timestamp
        self._fields: list[Any] | None = None
        """Of the tuple that the function has created."""

    def __getitem__(self, position: int) -> Any:
        if position == self._layout.width:
            return self._timestamp
        return self._first[position] if self._fields is None else self._fields[position]

    def __setitem__(self, position: int, value: Any) -> None:
        if position == self._layout.width:
            self._timestamp = value
            return
        if self._fields is None:
            fields: list[Any] = [None] * self._layout.width
            for each in self._layout.unchanged:
                fields[each] = self._first[each]
            self._fields = fields
        self._fields[position] = value

    def pop(self) -> int | None:
        """Returns the timestamp."""
        return self._timestamp

    @property
    def partial(self) -> Any:
        """The partial result."""
        return self._first if self._fields is None else tuple(self._fields)


def layout_of(aggregation: Aggregation) -> PartialLayout:
    """Returns the layout that costs least per record."""
    inlined = inline_expression_of_two(aggregation.add) if aggregation.is_reduce else None
    fields = None if inlined is None else tuple_fields(inlined, "a", {}, "b")
    if fields is None or not any(fields):
        return WholeLayout(aggregation)
    return FieldsLayout(aggregation, fields)


def _write_timestamp(writer: LoopWriter, known: str, position: int) -> None:
    with writer.block(f"if {writer.timestamp} > {known}[{position}]:"):
        writer.line(f"{known}[{position}] = {writer.timestamp}")

"""The node of MATCH_RECOGNIZE, and the expressions that name rows of a match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from firesteel.table.bound.errors import Position, ValidationError
from firesteel.table.bound.nodes import Expression
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.plan.nodes import SingleInput, SortKey
from firesteel.table.plan.time_attributes import is_rowtime
from firesteel.types.logical import RowField, RowType

__all__ = [
    "AfterMatch",
    "AfterMatchKind",
    "Match",
    "MatchTime",
    "Measure",
    "PatternTerm",
    "RowAggregate",
    "RowNavigation",
]


@dataclass(frozen=True)
class RowNavigation(Expression):
    """A column of a row of the match, counted from the first or the last one; NULL if there are fewer rows."""

    variable: str | None
    """Only rows of a variable count; None for all rows."""
    column: int
    name: str
    from_first: bool = False
    offset: int = 0

    def __str__(self) -> str:
        column = self.name if self.variable is None else f"{self.variable}.{self.name}"
        return f"{'FIRST' if self.from_first else 'LAST'}({column}, {self.offset})"


@dataclass(frozen=True)
class RowAggregate(Expression):
    """An aggregate function over the rows of a variable, or over all rows; the arguments are those of one row."""

    variable: str | None
    function: str
    arguments: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    def __str__(self) -> str:
        arguments = ", ".join(map(str, self.arguments)) or "*"
        return f"{self.function}({arguments}){'' if self.variable is None else f' OF {self.variable}'}"


@dataclass(frozen=True)
class MatchTime(Expression):
    """The row time of a match, which is that of its last row."""

    def __str__(self) -> str:
        return "MATCH_ROWTIME()"


@dataclass(frozen=True)
class PatternTerm:
    """A variable of a pattern and how often it occurs; ``most`` is None for any number."""

    variable: str
    least: int = 1
    most: int | None = 1
    reluctant: bool = False

    def __str__(self) -> str:
        words = {(1, 1): "", (0, 1): "?", (0, None): "*", (1, None): "+"}
        most = "" if self.most is None else self.most
        quantifier = words.get((self.least, self.most), f"{{{self.least},{most}}}")
        return f"{self.variable}{quantifier}{'?' if self.reluctant else ''}"


class AfterMatchKind(Enum):
    """Where the search for the next match goes on."""

    NEXT_ROW = "SKIP TO NEXT ROW"
    PAST_LAST_ROW = "SKIP PAST LAST ROW"
    FIRST = "SKIP TO FIRST"
    LAST = "SKIP TO LAST"


@dataclass(frozen=True)
class AfterMatch:
    """Where the search for the next match goes on, perhaps at a row of a variable."""

    kind: AfterMatchKind
    variable: str | None = None

    def __str__(self) -> str:
        return self.kind.value if self.variable is None else f"{self.kind.value} {self.variable}"


@dataclass(frozen=True)
class Measure:
    """A column of the result."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Match(SingleInput):
    """One row for each match: the columns of the partition, then the measures.

    In definitions a column of the input is one of the current row; in measures there are none.
    """

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    pattern: tuple[PatternTerm, ...]
    definitions: tuple[tuple[str, Expression], ...]
    measures: tuple[Measure, ...]
    after: AfterMatch
    within_ms: int | None = None
    is_bounded: bool = False
    """Whether the input ends: no row of it is late."""
    position: Position | None = field(default=None, compare=False)

    @cached_property
    def _type(self) -> RowType:
        fields = self.input.row_type.fields
        measures = [RowField(measure.name, measure.expression.type) for measure in self.measures]
        return RowType([*(fields[index] for index in self.partition), *measures], nullable=False)

    @property
    def row_type(self) -> RowType:
        return self._type

    @property
    def is_by_rowtime(self) -> bool:
        """Whether rows wait for the watermark; else they are matched as they come."""
        return self.is_bounded or is_rowtime(self.input.row_type.fields[self.order[0].index].type)

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        if not inputs[0].is_insert_only:
            raise ValidationError(
                "Match Recognize doesn't support consuming update and delete changes which is produced by node "
                f"{self.input.describe()}",
                position=self.position,
            )
        return inputs[0]

    def describe(self) -> str:
        names = self.input.row_type.field_names
        parts = [f"partitionBy=[{', '.join(names[index] for index in self.partition)}]"] if self.partition else []
        parts += [
            f"orderBy=[{', '.join(key.describe(names) for key in self.order)}]",
            f"measures=[{', '.join(f'{part.expression} AS {part.name}' for part in self.measures)}]",
            "rowsPerMatch=[ONE ROW PER MATCH]",
            f"after=[{self.after}]",
            f"pattern=[{' '.join(map(str, self.pattern))}]",
        ]
        parts += [f"within=[{self.within_ms} ms]"] if self.within_ms is not None else []
        parts.append(f"define=[{', '.join(f'{name} AS {condition}' for name, condition in self.definitions)}]")
        return f"Match({', '.join(parts)})"

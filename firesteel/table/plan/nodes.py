"""The nodes of logical plans. They are immutable, hashable and picklable; SQL and the Table API build the same ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import cached_property
from typing import Any, TypeVar

from typing_extensions import Self

from firesteel.common.types import RowKind
from firesteel.table.bound.errors import Position, ValidationError
from firesteel.table.bound.nodes import Expression, InputRef
from firesteel.table.catalog.identifiers import ObjectIdentifier
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.push_downs import PushDown
from firesteel.table.connector.source import ScanTableSource
from firesteel.types.logical import BigIntType, LogicalType, RowField, RowType

__all__ = [
    "NO_KEYS",
    "Aggregate",
    "AggregateCall",
    "ChangeKeeping",
    "Filter",
    "Join",
    "JoinKind",
    "Keys",
    "LogicalNode",
    "Project",
    "Projection",
    "SetKind",
    "SetOperation",
    "SingleInput",
    "Sort",
    "SortKey",
    "TableScan",
    "TwoInputs",
    "Values",
    "keys_of_projection",
    "unique_names",
    "walk",
]

Node = TypeVar("Node", bound="LogicalNode")

Keys = frozenset[frozenset[int]]
"""Sets of columns, each of which identifies a row in a changelog."""
NO_KEYS: Keys = frozenset()


@dataclass(frozen=True)
class LogicalNode:
    """A relation."""

    def __init_subclass__(cls) -> None:
        # in place of the one of dataclasses, which would go through the whole plan below each time
        cls.__hash__ = LogicalNode._remembered_hash  # type: ignore[assignment, method-assign]

    def _remembered_hash(self) -> int:
        known: int | None = self.__dict__.get("_hash")
        if known is None:
            known = hash((type(self), *(getattr(self, part.name) for part in fields(self) if part.compare)))
            self.__dict__["_hash"] = known
        return known

    def __getstate__(self) -> dict[str, Any]:
        # another process has other hashes of strings
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}

    @property
    def row_type(self) -> RowType:
        """The columns of its rows."""
        raise NotImplementedError

    def inputs(self) -> tuple[LogicalNode, ...]:
        """The relations of which it is made."""
        return ()

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> Self:
        """The same node over other relations."""
        assert not inputs
        return self

    def describe(self) -> str:
        """The node without its inputs, in one line of EXPLAIN."""
        raise NotImplementedError

    # -- changelogs: what streaming queries are checked and planned by -------------------------------------------

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        """The kinds of rows that it produces of such inputs. Raises ValidationError if it cannot consume them."""
        for mode, node in zip(inputs, self.inputs(), strict=True):
            if not mode.is_insert_only:
                raise ValidationError(
                    f"{type(self).__name__} doesn't support consuming update and delete changes which is produced by "
                    f"node {node.describe()}"
                )
        return ChangelogMode.insert_only()

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        """Whether UPDATE_BEFORE rows are emitted, and whether each input has to emit them.

        ``before_wanted`` is whether a consumer needs them. Consumers get along with more than they need.
        """
        return before_wanted, [True] * len(self.inputs())

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        """The sets of columns which identify a row, for such keys of the inputs."""
        return NO_KEYS

    def explain(self, indent: str = "") -> str:
        """The plan as a tree, one node a line."""
        lines = [indent + self.describe()]
        lines += (node.explain(f"{indent}  ") for node in self.inputs())
        return "\n".join(lines)


@dataclass(frozen=True)
class SingleInput(LogicalNode):
    """A relation made of one other."""

    input: LogicalNode

    @property
    def row_type(self) -> RowType:
        return self.input.row_type

    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> Self:
        (only,) = inputs
        return replace(self, input=only)


@dataclass(frozen=True)
class TwoInputs(LogicalNode):
    """A relation made of two others."""

    left: LogicalNode
    right: LogicalNode

    @cached_property
    def _type(self) -> RowType:
        raise NotImplementedError

    @property
    def row_type(self) -> RowType:
        return self._type

    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> Self:
        left, right = inputs
        return replace(self, left=left, right=right)


@dataclass(frozen=True)
class ChangeKeeping(SingleInput):
    """A relation made of single rows of another: changes keep their kinds, and keys stay keys."""

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        return inputs[0]

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return before_wanted, (before_wanted,)

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        return inputs[0]


def keys_of_projection(expressions: Sequence[Expression], keys: Keys) -> Keys:
    """The keys whose columns are all projected, by their new places."""
    places: dict[int, int] = {}
    for index, expression in enumerate(expressions):
        if isinstance(expression, InputRef):
            places.setdefault(expression.index, index)
    return frozenset(frozenset(places[column] for column in key) for key in keys if key <= places.keys())


@dataclass(frozen=True)
class TableScan(LogicalNode):
    """The rows of a table of a catalog."""

    identifier: ObjectIdentifier
    type: RowType
    options: tuple[tuple[str, str], ...] = ()
    """Options of an OPTIONS hint, which override those of the table."""
    source: ScanTableSource | None = None
    """What reads the rows; its produced type is that of the scan."""
    primary_key: tuple[int, ...] = ()
    pushed: tuple[PushDown, ...] = field(default=(), compare=False)
    """How the source came from that of the table."""

    @property
    def row_type(self) -> RowType:
        return self.type

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        return ChangelogMode.insert_only() if self.source is None else self.source.changelog_mode

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return True, ()

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        return frozenset({frozenset(self.primary_key)}) if self.primary_key else NO_KEYS

    def describe(self) -> str:
        hints = ", ".join(f"{key}={value}" for key, value in self.options)
        return f"TableScan(table=[{self.identifier.as_summary_string()}]{f', options=[{hints}]' if hints else ''})"


@dataclass(frozen=True)
class Values(LogicalNode):
    """Rows of literals and expressions over no input."""

    type: RowType
    rows: tuple[tuple[Expression, ...], ...]

    @property
    def row_type(self) -> RowType:
        return self.type

    def describe(self) -> str:
        rows = ", ".join("(" + ", ".join(map(str, row)) + ")" for row in self.rows)
        return f"Values(rows=[{rows}])"


@dataclass(frozen=True)
class Projection(ChangeKeeping):
    """Named expressions over each row."""

    expressions: tuple[Expression, ...]
    names: tuple[str, ...]

    @cached_property
    def _type(self) -> RowType:
        return RowType.of(self.names, [expression.type for expression in self.expressions], nullable=False)

    @property
    def row_type(self) -> RowType:
        return self._type

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        return keys_of_projection(self.expressions, inputs[0])


@dataclass(frozen=True)
class Project(Projection):
    """The projection of a query."""

    def describe(self) -> str:
        named = zip(self.expressions, self.names, strict=True)
        return f"Project({', '.join(f'{name}=[{expression}]' for expression, name in named)})"


@dataclass(frozen=True)
class Filter(ChangeKeeping):
    """The rows for which a condition is true."""

    condition: Expression

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        # a row that fulfils the condition no longer is taken back by its UPDATE_BEFORE alone
        return before_wanted, (True,)

    def describe(self) -> str:
        return f"Filter(condition=[{self.condition}])"


@dataclass(frozen=True)
class AggregateCall:
    """A call of an aggregate function; arguments are columns of the input."""

    function: str
    arguments: tuple[int, ...]
    type: LogicalType
    name: str
    distinct: bool = False
    filter: int | None = None
    """The BOOLEAN column of a FILTER clause."""
    symbols: tuple[str, ...] = ()
    definition: Any = field(default=None, repr=False)
    """The definition of a function of the user."""
    place: Position | None = field(default=None, compare=False, repr=False)
    """Where the call is in its statement, for errors."""

    def describe(self, names: Sequence[str]) -> str:
        """The call with the names of the input's columns."""
        arguments = ", ".join([*self.symbols, *(names[index] for index in self.arguments)]) or "*"
        text = f"{self.function}({'DISTINCT ' if self.distinct else ''}{arguments})"
        return text if self.filter is None else f"{text} FILTER {names[self.filter]}"


@dataclass(frozen=True)
class DistinctSplit:
    """A part of an aggregate whose distinct values are split into buckets."""

    phase: str
    """PARTIAL for that of the buckets, FINAL for that of the groups."""
    buckets: int
    """State of values in so many buckets is of no use to another number of them."""


@dataclass(frozen=True)
class Aggregate(SingleInput):
    """Groups of rows: the columns by which they are grouped, then the results of aggregate functions.

    With several grouping sets, the columns that are not in the set of a row are null, and ``$grouping_id`` comes last.
    """

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...] = ()
    grouping_sets: tuple[tuple[int, ...], ...] | None = None
    state_ttl_ms: int | None = None
    """How long groups are kept after their last change, if a STATE_TTL hint says so."""
    split: DistinctSplit | None = None
    """Which part of an aggregate it is, if distinct values are split into buckets."""
    has_row_for_none: bool = False
    """Whether there is a row when the input has ended without rows, as in batch mode without GROUP BY."""

    @cached_property
    def _type(self) -> RowType:
        fields = []
        for index in self.grouping:
            field = self.input.row_type.fields[index]
            absent = self.grouping_sets is not None and any(index not in group for group in self.grouping_sets)
            fields.append(RowField(field.name, field.type.copy(field.type.nullable or absent)))
        fields += [RowField(call.name, call.type) for call in self.calls]
        if self.grouping_sets is not None:
            fields.append(RowField("$grouping_id", BigIntType(nullable=False)))
        return RowType(fields, nullable=False)

    @property
    def row_type(self) -> RowType:
        return self._type

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        if not inputs[0].is_insert_only:
            return ChangelogMode.all()
        # a group without results never changes
        return ChangelogMode.of(ChangelogMode.all().kinds - {RowKind.DELETE}) if self.calls else inputs[0]

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return before_wanted, (True,)

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        key = set(range(len(self.grouping)))
        if self.grouping_sets is not None:
            key.add(len(self.row_type.fields) - 1)
        return frozenset({frozenset(key)})

    def describe(self) -> str:
        names = self.input.row_type.field_names
        parts = []
        if self.grouping:
            parts.append(f"groupBy=[{', '.join(names[index] for index in self.grouping)}]")
        if self.grouping_sets is not None:
            groups = ", ".join("(" + ", ".join(names[index] for index in group) + ")" for group in self.grouping_sets)
            parts.append(f"groupingSets=[{groups}]")
        if self.split is not None:
            parts.append(f"partialFinalType=[{self.split.phase}]")
        parts += (f"{call.name}=[{call.describe(names)}]" for call in self.calls)
        if self.state_ttl_ms is not None:
            parts.append(f"stateTtlHints=[{self.state_ttl_ms} ms]")
        return f"Aggregate({', '.join(parts)})"


class JoinKind(Enum):
    """Which rows a join has."""

    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"
    SEMI = "SEMI"
    ANTI = "ANTI"

    @property
    def keeps_left(self) -> bool:
        """Whether rows of the left side without a match are kept, with nulls."""
        return self in (JoinKind.LEFT, JoinKind.FULL)

    @property
    def keeps_right(self) -> bool:
        """Whether rows of the right side without a match are kept, with nulls."""
        return self in (JoinKind.RIGHT, JoinKind.FULL)


@dataclass(frozen=True)
class Join(TwoInputs):
    """Pairs of rows for which a condition over the columns of both is true."""

    kind: JoinKind
    condition: Expression

    @cached_property
    def _type(self) -> RowType:
        left = _fields(self.left, nullable=self.kind.keeps_right)
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return RowType(left, nullable=False)
        fields = [*left, *_fields(self.right, nullable=self.kind.keeps_left)]
        names = unique_names(field.name for field in fields)
        return RowType.of(names, [field.type for field in fields], nullable=False)

    def describe(self) -> str:
        return f"Join(joinType=[{self.kind.value}], condition=[{self.condition}])"


def _fields(node: LogicalNode, nullable: bool) -> list[RowField]:
    return [RowField(field.name, field.type.copy(field.type.nullable or nullable)) for field in node.row_type.fields]


class SetKind(Enum):
    """What is done with the rows of several relations."""

    UNION = "Union"
    INTERSECT = "Intersect"
    EXCEPT = "Minus"


@dataclass(frozen=True)
class SetOperation(LogicalNode):
    """UNION, INTERSECT or EXCEPT of relations with the same types; names are those of the first."""

    kind: SetKind
    relations: tuple[LogicalNode, ...]
    all: bool

    @cached_property
    def _type(self) -> RowType:
        columns = zip(*(node.row_type.fields for node in self.relations), strict=True)
        return RowType(
            [
                RowField(fields[0].name, fields[0].type.copy(any(field.type.nullable for field in fields)))
                for fields in columns
            ],
            nullable=False,
        )

    @property
    def row_type(self) -> RowType:
        return self._type

    def inputs(self) -> tuple[LogicalNode, ...]:
        return self.relations

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> Self:
        return replace(self, relations=tuple(inputs))

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        if self.kind is SetKind.UNION and self.all:
            return inputs[0].union(*inputs[1:])
        return super().changelog(inputs)

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return before_wanted, [before_wanted] * len(self.relations)

    def describe(self) -> str:
        return f"{self.kind.value}(all=[{str(self.all).lower()}])"


@dataclass(frozen=True)
class SortKey:
    """A column by which rows are sorted."""

    index: int
    descending: bool = False
    nulls_last: bool = False

    def describe(self, names: Sequence[str]) -> str:
        """The key as EXPLAIN shows it."""
        order = "DESC" if self.descending else "ASC"
        # nulls are less than all other values
        usual = self.nulls_last == self.descending
        return f"{names[self.index]} {order}" + ("" if usual else f" NULLS {'LAST' if self.nulls_last else 'FIRST'}")


@dataclass(frozen=True)
class Sort(SingleInput):
    """Rows in an order, and of these a part; without keys, any part."""

    keys: tuple[SortKey, ...] = ()
    offset: int = 0
    fetch: int | None = None
    place: Position | None = field(default=None, compare=False, repr=False, kw_only=True)
    """Where the text has ORDER BY."""

    def describe(self) -> str:
        names = self.row_type.field_names
        parts = [f"orderBy=[{', '.join(key.describe(names) for key in self.keys)}]"] if self.keys else []
        parts += [f"offset=[{self.offset}]"] if self.offset else []
        parts += [f"fetch=[{self.fetch}]"] if self.fetch is not None else []
        return f"{'Sort' if self.keys else 'Limit'}({', '.join(parts)})"


def unique_names(names: Iterable[str]) -> list[str]:
    """The names, with a number where one has occurred before.

    >>> unique_names(["a", "b", "a", "a"])
    ['a', 'b', 'a0', 'a1']
    """
    used: set[str] = set()
    found = []
    for name in names:
        unique = next(unique for unique in itertools.chain([name], _numbered(name)) if unique not in used)
        used.add(unique)
        found.append(unique)
    return found


def _numbered(name: str) -> Iterator[str]:
    return (f"{name}{number}" for number in itertools.count())


def walk(node: LogicalNode) -> Iterator[LogicalNode]:
    """The node and all nodes below it."""
    yield node
    for below in node.inputs():
        yield from walk(below)

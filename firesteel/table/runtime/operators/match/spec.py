"""What the operator of MATCH_RECOGNIZE is made with, and the pattern of its automaton."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firesteel.cep.pattern.after_match import AfterMatchSkipStrategy
from firesteel.cep.pattern.conditions import Condition
from firesteel.cep.pattern.pattern import Pattern
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.table.bound.nodes import Expression
from firesteel.table.bound.session import Session
from firesteel.table.plan.match.node import AfterMatch, AfterMatchKind, PatternTerm
from firesteel.table.plan.nodes import SortKey
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime
    from firesteel.table.runtime.operators.match.operator import MatchOperator

__all__ = ["MatchSpec", "cep_pattern"]


@dataclass(frozen=True)
class MatchSpec(OperatorSpec):
    """Finds a pattern in the rows of each key."""

    row_type: RowType
    output_type: RowType
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    pattern: tuple[PatternTerm, ...]
    definitions: tuple[tuple[str, Expression], ...]
    measures: tuple[Expression, ...]
    after: AfterMatch
    within_ms: int | None
    by_rowtime: bool
    output_rowtime: int | None = None
    session: Session = field(default_factory=Session)
    is_bounded: bool = False
    """Whether the input ends: no row of it is late."""

    def create(self, runtime: OperatorRuntime) -> MatchOperator:
        """Returns a new operator for one subtask."""
        from firesteel.table.runtime.operators.match.operator import MatchOperator, ProctimeMatchOperator

        return MatchOperator(self) if self.by_rowtime else ProctimeMatchOperator(self)


def cep_pattern(spec: MatchSpec, conditions: Mapping[str, Condition]) -> Pattern:
    """The pattern of the automaton: its rows are neighbours, and variables without a condition take every row.

    >>> from firesteel.types.logical import RowType
    >>> terms = (PatternTerm("A", 1, None), PatternTerm("B"))
    >>> after = AfterMatch(AfterMatchKind.NEXT_ROW)
    >>> empty = RowType([])
    >>> cep_pattern(MatchSpec(empty, empty, (), (), terms, (), (), after, None, True), {})
    A (greedy looping, strict) -> B (single, strict)
    """
    strategy = _strategy(spec.after)
    pattern: Pattern | None = None
    for term in spec.pattern:
        pattern = Pattern.begin(term.variable, strategy) if pattern is None else pattern.next(term.variable)
        if term.variable in conditions:
            pattern.where(conditions[term.variable])
        _quantify(pattern, term)
    assert pattern is not None
    return pattern if spec.within_ms is None else pattern.within(spec.within_ms)


def _strategy(after: AfterMatch) -> AfterMatchSkipStrategy:
    if after.kind is AfterMatchKind.NEXT_ROW:
        return AfterMatchSkipStrategy.skip_to_next()
    if after.kind is AfterMatchKind.PAST_LAST_ROW:
        return AfterMatchSkipStrategy.skip_past_last_event()
    assert after.variable is not None
    is_first = after.kind is AfterMatchKind.FIRST
    skip = AfterMatchSkipStrategy.skip_to_first if is_first else AfterMatchSkipStrategy.skip_to_last
    return skip(after.variable).throw_exception_on_miss()


def _quantify(pattern: Pattern, term: PatternTerm) -> None:
    match (term.least, term.most):
        case (1, 1):
            return
        case (0, 1):
            pattern.optional()
            return
        case (0, None):
            pattern.one_or_more().optional().consecutive()
        case (least, None):
            pattern.times_or_more(least).consecutive()
        case (least, most):
            pattern.times(least, most).consecutive()
    if not term.reluctant and term.least != term.most:
        pattern.greedy()

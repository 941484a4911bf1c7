"""The pattern API: a pattern is a chain of stages, each of which knows the stage before it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from firesteel.cep.pattern.after_match import AfterMatchSkipStrategy
from firesteel.cep.pattern.conditions import (
    AndCondition,
    Condition,
    IterativeCondition,
    OrCondition,
    SimpleCondition,
    SubtypeCondition,
    TrueCondition,
    to_condition,
    user_conditions,
)
from firesteel.cep.pattern.quantifier import (
    ConsumingStrategy,
    MalformedPatternException,
    Quantifier,
    QuantifierProperty,
    Times,
    WithinType,
)
from firesteel.common.time import Duration, Time, to_millis

__all__ = ["GroupPattern", "Pattern", "conditions_of"]

Amount = Duration | Time | timedelta | int
"""A duration; an int is in milliseconds."""


class Pattern:
    """One stage of a pattern, and with it all stages before it.

    ``where``, ``times`` and the like change the stage and return it. ``next``, ``followed_by`` and the like return a
    new stage.
    """

    def __init__(
        self,
        name: str,
        previous: Pattern | None,
        consuming_strategy: ConsumingStrategy,
        after_match_skip_strategy: AfterMatchSkipStrategy,
    ):
        if not isinstance(name, str):
            raise TypeError(f"A stage needs a name or a pattern, got {name!r}.")
        self._name = name
        self._previous = previous
        self._quantifier = Quantifier(consuming_strategy, QuantifierProperty.SINGLE)
        self._after_match_skip_strategy = after_match_skip_strategy
        self._condition: Condition | None = None
        self._until_condition: Condition | None = None
        self._times: Times | None = None
        self._window_times: dict[WithinType, int] = {}

    @staticmethod
    def begin(name: str | Pattern, after_match_skip_strategy: AfterMatchSkipStrategy | None = None) -> Pattern:
        """Returns the first stage of a new pattern; with a pattern instead of a name, a group."""
        strategy = AfterMatchSkipStrategy.no_skip() if after_match_skip_strategy is None else after_match_skip_strategy
        if not isinstance(strategy, AfterMatchSkipStrategy):
            raise TypeError(f"An AfterMatchSkipStrategy is needed, got {strategy!r}.")
        return _stage(name, None, ConsumingStrategy.STRICT, strategy)

    def next(self, name: str | Pattern) -> Pattern:
        """Adds a stage whose event is the very next one: strict contiguity."""
        return self._followed(name, ConsumingStrategy.STRICT)

    def followed_by(self, name: str | Pattern) -> Pattern:
        """Adds a stage whose event is the next one that matches: relaxed contiguity."""
        return self._followed(name, ConsumingStrategy.SKIP_TILL_NEXT)

    def followed_by_any(self, name: str | Pattern) -> Pattern:
        """Adds a stage whose event is any later one that matches: non-deterministic relaxed contiguity."""
        return self._followed(name, ConsumingStrategy.SKIP_TILL_ANY)

    def not_next(self, name: str) -> Pattern:
        """Adds a stage that the very next event must not match."""
        return self._not_followed(name, ConsumingStrategy.NOT_NEXT)

    def not_followed_by(self, name: str) -> Pattern:
        """Adds a stage that no event before the next stage, or before the end of ``within``, must match."""
        return self._not_followed(name, ConsumingStrategy.NOT_FOLLOW)

    def where(self, condition: Any) -> Pattern:
        """Adds a condition that an event must fulfil, besides those there are.

        A condition is a function of the event, a function of the event and a ConditionContext, or a condition object.
        """
        added = to_condition(condition)
        self._condition = added if self._condition is None else AndCondition(self._condition, added)
        return self

    def or_(self, condition: Any) -> Pattern:
        """Adds a condition that an event may fulfil instead of those there are."""
        added = to_condition(condition)
        self._condition = added if self._condition is None else OrCondition(self._condition, added)
        return self

    def subtype(self, subtype_class: type[Any]) -> Pattern:
        """Adds the condition that an event is an instance of a class."""
        if not isinstance(subtype_class, type):
            raise TypeError(f"subtype needs a class, got {subtype_class!r}.")
        return self.where(SubtypeCondition(subtype_class))

    def until(self, condition: Any) -> Pattern:
        """Sets the condition that ends a loop: an event that fulfils it is not taken, nor is one after it."""
        if self._until_condition is not None:
            raise MalformedPatternException(f"Stage {self._name!r} has an until condition already.")
        if not self._quantifier.has(QuantifierProperty.LOOPING):
            raise MalformedPatternException(
                f"Stage {self._name!r} has an until condition but no loop.",
                hint="Call one_or_more or times_or_more before until.",
            )
        self._until_condition = to_condition(condition)
        return self

    def within(self, window_time: Amount | None, within_type: WithinType = WithinType.FIRST_AND_LAST) -> Pattern:
        """Sets the time in which the whole pattern, or this stage after the one before it, must match."""
        if window_time is not None:
            self._window_times[within_type] = to_millis(window_time)
        return self

    def optional(self) -> Pattern:
        """The stage may be absent."""
        if self._previous is not None and self._previous._quantifier.is_greedy:
            raise MalformedPatternException(
                f"Stage {self._name!r} cannot be optional: stage {self._previous._name!r} before it is greedy."
            )
        self._quantifier.optional()
        return self

    def one_or_more(self, window_time: Amount | None = None) -> Pattern:
        """The stage occurs once or more; ``window_time`` limits the time between two of its events."""
        return self.times_or_more(1, window_time)

    def times_or_more(self, times: int, window_time: Amount | None = None) -> Pattern:
        """The stage occurs at least so many times."""
        self._quantify(QuantifierProperty.LOOPING, Times(times, times, _millis(window_time)))
        return self

    def times(self, times: int, to: Amount | None = None, window_time: Amount | None = None) -> Pattern:
        """The stage occurs exactly so many times, or with an int ``to`` between so many and ``to`` times.

        ``window_time`` limits the time between two of its events; ``times(3, Time.seconds(5))`` sets it too.
        """
        if to is not None and not isinstance(to, int):
            to, window_time = None, to
        is_optional = times == 0 and to is not None
        least = 1 if is_optional else times
        self._quantify(QuantifierProperty.TIMES, Times(least, least if to is None else to, _millis(window_time)))
        if is_optional:
            self._quantifier.optional()
        return self

    def greedy(self) -> Pattern:
        """The stage takes as many events as it can."""
        self._refuse_negative("greedy")
        self._quantifier.greedy()
        return self

    def consecutive(self) -> Pattern:
        """There are no other events between those of the stage."""
        self._quantifier.consecutive()
        return self

    def allow_combinations(self) -> Pattern:
        """Events that match may be left out between those of the stage."""
        self._quantifier.combinations()
        return self

    def get_name(self) -> str:
        """Returns the name of the stage."""
        return self._name

    def get_previous(self) -> Pattern | None:
        """Returns the stage before this one."""
        return self._previous

    def get_quantifier(self) -> Quantifier:
        """Returns the quantifier of the stage."""
        return self._quantifier

    def get_times(self) -> Times | None:
        """Returns how often the stage occurs, if it may occur more than once."""
        return self._times

    def get_condition(self) -> Condition:
        """Returns the condition of the stage."""
        return TrueCondition() if self._condition is None else self._condition

    def get_until_condition(self) -> Condition | None:
        """Returns the condition that ends the loop of the stage."""
        return self._until_condition

    def get_window_size(self, within_type: WithinType = WithinType.FIRST_AND_LAST) -> int | None:
        """Returns the time that was set with ``within`` on this stage, in milliseconds."""
        return self._window_times.get(within_type)

    def get_after_match_skip_strategy(self) -> AfterMatchSkipStrategy:
        """Returns what happens to other partial matches after a match."""
        return self._after_match_skip_strategy

    def stages(self) -> Iterator[Pattern]:
        """Yields the stages from the first to this one; a group is one stage."""
        if self._previous is not None:
            yield from self._previous.stages()
        yield self

    def __repr__(self) -> str:
        return " -> ".join(f"{each._name} ({each._quantifier})" for each in self.stages())

    def _quantify(self, kind: QuantifierProperty, times: Times) -> None:
        self._refuse_negative("a quantifier")
        if not self._quantifier.has(QuantifierProperty.SINGLE):
            raise MalformedPatternException(f"Stage {self._name!r} has a quantifier already: {self._quantifier}.")
        self._quantifier = Quantifier(self._quantifier.consuming_strategy, kind)
        self._times = times

    def _refuse_negative(self, what: str) -> None:
        if self._quantifier.consuming_strategy.is_negative:
            raise MalformedPatternException(f"Stage {self._name!r} must not occur, so it cannot have {what}.")

    def _followed(self, name: str | Pattern, consuming_strategy: ConsumingStrategy) -> Pattern:
        return _stage(name, self, consuming_strategy, self._after_match_skip_strategy)

    def _not_followed(self, name: str, consuming_strategy: ConsumingStrategy) -> Pattern:
        if self._quantifier.is_optional:
            raise MalformedPatternException(
                f"Stage {name!r} must not occur, but stage {self._name!r} before it is optional.",
                hint="Use two patterns, one with the optional stage and one without it.",
            )
        return Pattern(name, self, consuming_strategy, self._after_match_skip_strategy)


class GroupPattern(Pattern):
    """A stage that is a pattern itself."""

    def __init__(
        self,
        group: Pattern,
        previous: Pattern | None,
        consuming_strategy: ConsumingStrategy,
        after_match_skip_strategy: AfterMatchSkipStrategy,
    ):
        super().__init__("GroupPattern", previous, consuming_strategy, after_match_skip_strategy)
        self._group = group

    def get_raw_pattern(self) -> Pattern:
        """Returns the pattern of the group."""
        return self._group

    def where(self, condition: Any) -> Pattern:
        """Not available: the stages of the group have conditions."""
        raise MalformedPatternException("A group has no condition of its own; its stages have.")

    def or_(self, condition: Any) -> Pattern:
        """Not available: the stages of the group have conditions."""
        return self.where(condition)

    def greedy(self) -> Pattern:
        """Not available."""
        raise MalformedPatternException("A group cannot be greedy.")


def conditions_of(pattern: Pattern) -> list[SimpleCondition | IterativeCondition]:
    """Returns the conditions of the program in a pattern, each once."""
    found: dict[int, SimpleCondition | IterativeCondition] = {}
    for stage in pattern.stages():
        if isinstance(stage, GroupPattern):
            found.update((id(each), each) for each in conditions_of(stage.get_raw_pattern()))
        for condition in (stage.get_condition(), stage.get_until_condition()):
            found.update((id(each), each) for each in user_conditions(condition))
    return list(found.values())


def _stage(
    name: str | Pattern,
    previous: Pattern | None,
    consuming_strategy: ConsumingStrategy,
    after_match_skip_strategy: AfterMatchSkipStrategy,
) -> Pattern:
    if isinstance(name, Pattern):
        return GroupPattern(name, previous, consuming_strategy, after_match_skip_strategy)
    return Pattern(name, previous, consuming_strategy, after_match_skip_strategy)


def _millis(window_time: Amount | None) -> int | None:
    return None if window_time is None else to_millis(window_time)

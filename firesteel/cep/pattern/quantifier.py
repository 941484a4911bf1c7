"""How often a stage of a pattern occurs, and which events may lie between its events."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from firesteel.common.errors import InvalidProgramError

__all__ = ["ConsumingStrategy", "MalformedPatternException", "Quantifier", "QuantifierProperty", "Times", "WithinType"]


class MalformedPatternException(InvalidProgramError):
    """A pattern that cannot be built."""


class ConsumingStrategy(Enum):
    """Which events are skipped before the next event of a pattern."""

    STRICT = "strict"
    """None: the events are neighbours."""
    SKIP_TILL_NEXT = "skip till next"
    """Those that do not match."""
    SKIP_TILL_ANY = "skip till any"
    """Any, also those that match."""
    NOT_FOLLOW = "not follow"
    NOT_NEXT = "not next"

    @property
    def is_negative(self) -> bool:
        """Whether the stage must not occur."""
        return self in (ConsumingStrategy.NOT_FOLLOW, ConsumingStrategy.NOT_NEXT)


class QuantifierProperty(Enum):
    """A property of a quantifier."""

    SINGLE = "single"
    LOOPING = "looping"
    TIMES = "times"
    OPTIONAL = "optional"
    GREEDY = "greedy"


class WithinType(Enum):
    """What the time of ``within`` lies between."""

    PREVIOUS_AND_CURRENT = "previous and current"
    """Two neighbouring events of a match."""
    FIRST_AND_LAST = "first and last"
    """The first and the last event of a match."""


@dataclass(frozen=True)
class Times:
    """The least and the greatest number of events of a stage, and the time between two of them."""

    least: int
    most: int
    window_time: int | None = None

    def __post_init__(self) -> None:
        if self.least < 1:
            raise MalformedPatternException(f"A stage must occur at least once, not {self.least} times.")
        if self.most < self.least:
            raise MalformedPatternException(
                f"A stage cannot occur at most {self.most} times and at least {self.least} times."
            )


class Quantifier:
    """The quantifier of one stage."""

    def __init__(self, consuming_strategy: ConsumingStrategy, kind: QuantifierProperty):
        self.consuming_strategy = consuming_strategy
        self.inner_consuming_strategy = ConsumingStrategy.SKIP_TILL_NEXT
        self._properties = {kind}

    def has(self, quantifier_property: QuantifierProperty) -> bool:
        """Whether the quantifier has a property."""
        return quantifier_property in self._properties

    @property
    def is_optional(self) -> bool:
        """Whether the stage may be absent."""
        return QuantifierProperty.OPTIONAL in self._properties

    @property
    def is_greedy(self) -> bool:
        """Whether the stage takes as many events as it can."""
        return QuantifierProperty.GREEDY in self._properties

    def combinations(self) -> None:
        """Events between those of a stage may match as well."""
        _check(not self.has(QuantifierProperty.SINGLE), "allow_combinations needs a stage that occurs several times.")
        _check(
            self.inner_consuming_strategy is not ConsumingStrategy.STRICT,
            "A stage is either consecutive or allows combinations.",
        )
        _check(
            self.inner_consuming_strategy is not ConsumingStrategy.SKIP_TILL_ANY,
            "The stage allows combinations already.",
        )
        self.inner_consuming_strategy = ConsumingStrategy.SKIP_TILL_ANY

    def consecutive(self) -> None:
        """There are no events between those of a stage."""
        _check(not self.has(QuantifierProperty.SINGLE), "consecutive needs a stage that occurs several times.")
        _check(
            self.inner_consuming_strategy is not ConsumingStrategy.SKIP_TILL_ANY,
            "A stage is either consecutive or allows combinations.",
        )
        _check(self.inner_consuming_strategy is not ConsumingStrategy.STRICT, "The stage is consecutive already.")
        self.inner_consuming_strategy = ConsumingStrategy.STRICT

    def optional(self) -> None:
        """The stage may be absent."""
        _check(not self.is_optional, "The stage is optional already.")
        _check(not self.consuming_strategy.is_negative, "A stage that must not occur cannot be optional.")
        self._properties.add(QuantifierProperty.OPTIONAL)

    def greedy(self) -> None:
        """The stage takes as many events as it can."""
        _check(
            self.inner_consuming_strategy is not ConsumingStrategy.SKIP_TILL_ANY,
            "A stage that allows combinations cannot be greedy.",
        )
        _check(not self.has(QuantifierProperty.SINGLE), "greedy needs a stage that occurs several times.")
        self._properties.add(QuantifierProperty.GREEDY)

    def __str__(self) -> str:
        properties = sorted(each.value for each in self._properties)
        return f"{' '.join(properties)}, {self.consuming_strategy.value}"


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise MalformedPatternException(message)

"""States and transitions of the automaton, as the compiler makes them from a pattern."""

from __future__ import annotations

from enum import Enum

from firesteel.cep.pattern.conditions import Condition

__all__ = ["Action", "State", "StateType", "Transition"]


class StateType(Enum):
    """What reaching a state means."""

    START = "start"
    FINAL = "final"
    """A match is complete."""
    NORMAL = "normal"
    PENDING = "pending"
    """A match is complete once its time has passed."""
    STOP = "stop"
    """The partial match is discarded."""


class Action(Enum):
    """What a transition does with the event."""

    TAKE = "take"
    """Adds it to the partial match."""
    IGNORE = "ignore"
    """Leaves it out."""
    PROCEED = "proceed"
    """Offers it to the target state: an epsilon transition."""


class Transition:
    """A transition to another state, on a condition."""

    __slots__ = ("action", "condition", "source", "target")

    def __init__(self, source: State, action: Action, target: State, condition: Condition):
        self.source = source
        self.action = action
        self.target = target
        self.condition = condition


class State:
    """A state; ``stage`` is the name of the stage of the pattern that its events belong to."""

    __slots__ = ("name", "stage", "state_type", "transitions")

    def __init__(self, name: str, stage: str, state_type: StateType):
        self.name = name
        self.stage = stage
        self.state_type = state_type
        self.transitions: list[Transition] = []

    @property
    def is_final(self) -> bool:
        """Whether a match is complete."""
        return self.state_type is StateType.FINAL

    @property
    def is_stop(self) -> bool:
        """Whether the partial match is discarded."""
        return self.state_type is StateType.STOP

    def add(self, action: Action, target: State, condition: Condition) -> None:
        """Adds a transition."""
        self.transitions.append(Transition(self, action, target, condition))

    def add_take(self, target: State, condition: Condition) -> None:
        self.add(Action.TAKE, target, condition)

    def add_ignore(self, target: State, condition: Condition) -> None:
        self.add(Action.IGNORE, target, condition)

    def add_proceed(self, target: State, condition: Condition) -> None:
        self.add(Action.PROCEED, target, condition)

    def __repr__(self) -> str:
        return f"{self.state_type.value} state {self.name}"

"""Compiles conditions and transitions to functions, so that an event costs one call per state and condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from firesteel.cep.nfa.states import Action, State
from firesteel.cep.pattern.conditions import (
    AndCondition,
    Condition,
    IterativeCondition,
    NotCondition,
    OrCondition,
    SimpleCondition,
    TrueCondition,
)

__all__ = ["Edge", "Edges", "Predicate", "compile_states"]

Predicate = Callable[[Any, Any], bool]


class Edge(NamedTuple):
    """A transition that was found for an event and that takes or ignores it."""

    takes: bool
    stage: str
    """The stage to which the event is added."""
    target: State
    is_end: Predicate | None
    """Whether a match is complete as well, because the stages after the target may be absent."""


Edges = Callable[[Any, Any], list[Edge]]
"""The transitions of a state for an event and a condition context, in the order in which they are followed."""


def compile_states(states: tuple[State, ...]) -> dict[str, Edges]:
    """Returns the function of each state by its name."""
    writer = _Writer()
    numbers = {state.name: number for number, state in enumerate(states)}
    for state in states:
        writer.write_end(state, numbers)
    for state in states:
        writer.write_edges(state, numbers)
    namespace = writer.run()
    return {state.name: namespace[f"edges{numbers[state.name]}"] for state in states}


class _Writer:
    """The text of the functions, and the objects that they name."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._objects: dict[str, Any] = {}
        self._functions: dict[int, str] = {}
        self._edges: list[tuple[str, bool, str, State, str | None]] = []

    def write_edges(self, state: State, numbers: dict[str, int]) -> None:
        """Writes the function of a state: its own transitions, then those of the states to proceed to.

        The state to proceed to that was found last comes first, as on a stack.
        """
        number = numbers[state.name]
        self._lines += [f"def edges{number}(e, c):", " out = []", f" collect{number}(e, c, out)", " return out"]
        self._lines += [f"def collect{number}(e, c, out):"]
        after: list[str] = []
        for position, each in enumerate(state.transitions):
            condition = self._expression(each.condition)
            if each.action is Action.PROCEED:
                self._lines.append(f" p{position} = {condition}")
                after.insert(0, f" if p{position}: collect{numbers[each.target.name]}(e, c, out)")
            elif condition != "False":
                takes = each.action is Action.TAKE
                end = f"is_end{numbers[each.target.name]}" if takes and _may_end(each.target) else None
                edge = f"edge{len(self._edges)}"
                self._edges.append((edge, takes, state.stage, each.target, end))
                self._lines.append(f" if {condition}: out.append({edge})")
        self._lines += after or [" pass"]

    def write_end(self, state: State, numbers: dict[str, int]) -> None:
        """Writes the function that finds whether an end can be reached from a state without another event."""
        if not _may_end(state):
            return
        self._lines.append(f"def is_end{numbers[state.name]}(e, c):")
        for each in state.transitions:
            if each.action is Action.PROCEED and (each.target.is_final or _may_end(each.target)):
                condition = self._expression(each.condition)
                if not each.target.is_final:
                    condition = f"({condition}) and is_end{numbers[each.target.name]}(e, c)"
                self._lines.append(f" if {condition}: return True")
        self._lines.append(" return False")

    def run(self) -> dict[str, Any]:
        """Compiles the text and returns the functions by name."""
        namespace = self._objects
        exec(compile("\n".join(self._lines), "<pattern>", "exec"), namespace)  # noqa: S102 - our own text
        for name, takes, stage, target, end in self._edges:
            namespace[name] = Edge(takes, stage, target, None if end is None else namespace[end])
        return namespace

    def _expression(self, condition: Condition) -> str:
        if isinstance(condition, TrueCondition):
            return "True"
        if isinstance(condition, NotCondition):
            negated = self._expression(condition.condition)
            return {"True": "False", "False": "True"}.get(negated, f"not ({negated})")
        if isinstance(condition, AndCondition):
            left, right = self._expression(condition.left), self._expression(condition.right)
            if left == "True":
                return right
            if "False" in (left, right):
                return "False"
            return left if right == "True" else f"({left}) and ({right})"
        if isinstance(condition, OrCondition):
            return f"({self._expression(condition.left)}) or ({self._expression(condition.right)})"
        if isinstance(condition, SimpleCondition):
            return f"{self._name(condition.filter)}(e)"
        assert isinstance(condition, IterativeCondition)
        return f"{self._name(condition.filter)}(e, c)"

    def _name(self, function: Callable[..., Any]) -> str:
        name = self._functions.get(id(function))
        if name is None:
            name = self._functions[id(function)] = f"f{len(self._functions)}"
            self._objects[name] = function
        return name


def _may_end(state: State) -> bool:
    """Whether a state has a way to an end that needs no event, on whatever conditions."""
    return any(
        each.action is Action.PROCEED and (each.target.is_final or _may_end(each.target)) for each in state.transitions
    )

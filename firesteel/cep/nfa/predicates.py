"""Compiles conditions and transitions to functions, so that an event costs one call per state and condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from firesteel.cep.nfa.states import Action, State, Transition
from firesteel.cep.pattern.conditions import (
    AndCondition,
    Condition,
    FieldCondition,
    IterativeCondition,
    NotCondition,
    OrCondition,
    SimpleCondition,
    TrueCondition,
)

__all__ = ["CompiledStates", "Edge", "Edges", "Predicate", "compile_states"]

Predicate = Callable[[Any, Any], bool]


class Edge(NamedTuple):
    """A transition that was found for an event and that takes or ignores it."""

    takes: bool
    stage: str
    """The stage to which the event is added."""
    target: State
    is_end: Predicate | None
    """Whether a match is complete as well, because the stages after the target may be absent."""
    stays_in: str | None
    """The state in which a partial match does not change if it has only this edge: the edge leads back to it."""


Edges = Callable[[Any, Any], Sequence[Edge]]
"""The transitions of a state for an event and a condition context, in the order in which they are followed."""


class CompiledStates(NamedTuple):
    """The functions of the states."""

    edges: dict[str, Edges]
    """By the name of the state."""
    starts: Predicate
    """Whether the first state takes an event."""


def compile_states(states: tuple[State, ...], start: State) -> CompiledStates:
    """Returns the functions of states, of which one is the first."""
    writer = _Writer({state.name: number for number, state in enumerate(states)})
    for state in states:
        writer.write_end(state)
        writer.write_takes(state)
        writer.write_edges(state)
    namespace = writer.run()
    edges = {state.name: namespace[writer.function("edges", state)] for state in states}
    return CompiledStates(edges, namespace[writer.function("takes", start)])


class _Writer:
    """The text of the functions, and the objects that they name."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers = numbers
        self._lines: list[str] = []
        self._objects: dict[str, Any] = {}
        self._functions: dict[int, str] = {}
        self._edges: list[tuple[str, State, bool, State]] = []

    def function(self, kind: str, state: State) -> str:
        """Returns the name of a function of a state."""
        return f"{kind}{self._numbers[state.name]}"

    def write_edges(self, state: State) -> None:
        """Writes the function of a state: its own transitions, then those of the states to proceed to.

        The state to proceed to that was found last comes first, as on a stack.
        """
        texts = [(each, self._expression(each.condition)) for each in state.transitions]
        alternatives = self._alternatives(texts)
        self._lines.append(f"def {self.function('edges', state)}(e, c):")
        if alternatives is not None:
            condition, one, other = alternatives
            self._lines.append(f" return only{one} if {condition} else only{other}")
        else:
            self._lines += [" out = []", f" {self.function('collect', state)}(e, c, out)", " return out"]
        self._lines.append(f"def {self.function('collect', state)}(e, c, out):")
        after: list[str] = []
        for position, (each, condition) in enumerate(texts):
            if each.action is Action.PROCEED:
                self._lines.append(f" p{position} = {condition}")
                after.insert(0, f" if p{position}: {self.function('collect', each.target)}(e, c, out)")
            elif condition != "False":
                self._lines.append(f" if {condition}: out.append({self._edge(each)})")
        self._lines += after or [" pass"]

    def _alternatives(self, texts: list[tuple[Transition, str]]) -> tuple[str, str, str] | None:
        """The usual state that takes an event or else ignores it: its condition is evaluated once only."""
        if any(each.action is Action.PROCEED for each, _ in texts) or not 1 <= len(texts) <= 2:
            return None
        condition = texts[0][1]
        if len(texts) == 1:
            return condition, self._edge(texts[0][0]), ""
        if texts[1][1] == f"not ({condition})":
            return condition, self._edge(texts[0][0]), self._edge(texts[1][0])
        return None

    def _edge(self, transition: Transition) -> str:
        name = f"edge{len(self._edges)}"
        self._edges.append((name, transition.source, transition.action is Action.TAKE, transition.target))
        return name

    def write_takes(self, state: State) -> None:
        """Writes the function that finds whether a state takes an event."""
        self._lines.append(f"def {self.function('takes', state)}(e, c):")
        for each in state.transitions:
            if each.action is not Action.IGNORE:
                condition = self._expression(each.condition)
                if each.action is Action.PROCEED:
                    condition = f"({condition}) and {self.function('takes', each.target)}(e, c)"
                self._lines.append(f" if {condition}: return True")
        self._lines.append(" return False")

    def write_end(self, state: State) -> None:
        """Writes the function that finds whether an end can be reached from a state without another event."""
        if not _may_end(state):
            return
        self._lines.append(f"def {self.function('is_end', state)}(e, c):")
        for each in state.transitions:
            if each.action is Action.PROCEED and (each.target.is_final or _may_end(each.target)):
                condition = self._expression(each.condition)
                if not each.target.is_final:
                    condition = f"({condition}) and {self.function('is_end', each.target)}(e, c)"
                self._lines.append(f" if {condition}: return True")
        self._lines.append(" return False")

    def run(self) -> dict[str, Any]:
        """Compiles the text and returns the functions by name."""
        namespace = self._objects
        exec(compile("\n".join(self._lines), "<pattern>", "exec"), namespace)  # noqa: S102 - our own text
        namespace["only"] = ()
        for name, source, takes, target in self._edges:
            end = namespace[self.function("is_end", target)] if takes and _may_end(target) else None
            namespace[name] = Edge(takes, source.stage, target, end, None if takes else target.name)
            namespace[f"only{name}"] = (namespace[name],)
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
        if isinstance(condition, FieldCondition):
            return f"e[{condition.position}]"
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

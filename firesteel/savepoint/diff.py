"""Savepoint diff: what happens to a savepoint's state if a program is restored from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from firesteel.common.errors import StateIncompatibleError
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.stream_graph import StreamNode
from firesteel.jobmaster.checkpoints.finished_operators import is_fully_finished, separate_finished
from firesteel.jobmaster.checkpoints.state_compatibility import adopt_max_parallelism, check_compatibility
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata, OperatorState
from firesteel.runtime.model.state_handles import StateMeta
from firesteel.runtime.state.api.compatibility import check_same
from firesteel.savepoint.declared_states import DeclaredStates
from firesteel.savepoint.keyed_state import TIMERS
from firesteel.savepoint.metadata_contents import has_state, keyed_states, operator_lists

__all__ = ["OperatorDiff", "SavepointDiff", "StateDiff", "Verdict", "compare"]


_LAZY = ("trigger/", "window/")
"""States of triggers and of single windows: asked for when a record comes, never in open()."""


class Verdict(str, Enum):
    """What becomes of an operator's state, or of one state."""

    RESTORED = "restored"
    NEW = "new"
    """Not in the savepoint: starts empty."""
    DROPPED = "dropped"
    """In the savepoint, but no operator of the program has its id."""
    INCOMPATIBLE = "incompatible"
    """In both, but they do not fit."""
    STATELESS = "stateless"
    """In both, or only in the program, without any state."""
    NOT_ASKED_FOR = "not asked for"
    """In the savepoint, but the function does not ask for it in open(): kept as it is, for when it does."""
    UNKNOWN = "unknown"
    """In the savepoint; whether the function asks for it could not be found out."""


@dataclass(frozen=True)
class StateDiff:
    """One keyed state or one list of operator state."""

    name: str
    verdict: Verdict
    saved: StateMeta | None = None
    declared: StateMeta | None = None
    problem: str | None = None


@dataclass(frozen=True)
class OperatorDiff:
    """One operator of the savepoint, of the program, or of both."""

    verdict: Verdict
    name: str
    operator_id: str
    uid: str | None = None
    states: tuple[StateDiff, ...] = ()
    problems: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    parallelism: tuple[int | None, int | None] = (None, None)
    """In the savepoint and in the program."""
    defined_at: str | None = None


@dataclass(frozen=True)
class SavepointDiff:
    """What would become of the whole savepoint."""

    operators: tuple[OperatorDiff, ...]
    allow_non_restored_state: bool = False
    problems: tuple[str, ...] = ()
    """What concerns no operator of its own."""
    counts: Mapping[Verdict, int] = field(default_factory=dict)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why the job would not start; empty if it would."""
        reasons = list(self.problems)
        for operator in self.operators:
            if operator.verdict is Verdict.INCOMPATIBLE:
                reasons += [f"operator '{operator.name}': {problem}" for problem in operator.problems]
            elif operator.verdict is Verdict.DROPPED and not self.allow_non_restored_state:
                reasons.append(f"operator '{operator.name}' has state in the savepoint but is not in the program")
        return tuple(reasons)

    @property
    def would_restore(self) -> bool:
        """Whether the job would start."""
        return not self.refusals


def compare(
    metadata: CheckpointMetadata,
    job_graph: JobGraph,
    declared: Mapping[str, DeclaredStates],
    *,
    allow_non_restored_state: bool = False,
) -> SavepointDiff:
    """Holds a savepoint against a program; ``declared`` has the states its operators ask for, by operator id."""
    job_graph = separate_finished(adopt_max_parallelism(job_graph, metadata), metadata)
    saved = {operator.operator_id: operator for operator in metadata.operators}
    operators = []
    for node in job_graph.nodes():
        state = saved.get(node.operator_id)
        problems = [] if state is None else _whole_problems(metadata, state, job_graph)
        operators.append(_compare_operator(state, node, declared.get(node.operator_id, DeclaredStates()), problems))
    in_program = {node.operator_id for node in job_graph.nodes()}
    dropped = [operator for operator in metadata.operators if operator.operator_id not in in_program]
    operators += [_dropped(operator) for operator in dropped if has_state(operator)]
    operators = _with_hints(operators, dropped, declared)
    known = {problem for operator in operators for problem in operator.problems}
    others = () if known else tuple(_refusal(metadata, job_graph))
    counts = {verdict: sum(operator.verdict is verdict for operator in operators) for verdict in Verdict}
    return SavepointDiff(tuple(operators), allow_non_restored_state, others, counts)


def _compare_operator(
    saved: OperatorState | None, node: StreamNode, declared: DeclaredStates, whole_problems: Sequence[str]
) -> OperatorDiff:
    if saved is None or not has_state(saved):
        states = (
            *(StateDiff(state.name, Verdict.NEW, declared=state) for state in declared.keyed),
            *(_new_list(name, mode) for name, mode in declared.lists),
        )
        may_have_state = states or node.is_source or not declared.is_known
        verdict = Verdict.NEW if saved is None and may_have_state else Verdict.STATELESS
        hints = ["it is not in the savepoint: it reads from its beginning"] if saved is None and node.is_source else []
        return _operator_diff(verdict, saved, node, states, hints=hints)
    states = (*_compare_states(saved, declared), *_compare_lists(saved, declared))
    problems = [*whole_problems, *(state.problem for state in states if state.problem)]
    if keyed_states(saved) and not node.key_selectors:
        problems.append("it has keyed state in the savepoint, but its stream is not keyed in the program")
    verdict = Verdict.INCOMPATIBLE if problems else Verdict.RESTORED
    hints = []
    if declared.problem:
        hints.append(f"its states could not be fully determined: {declared.problem}")
    if node.uid is None and node.uid_hash is None:
        hints.append(
            "it has no uid: its id is derived from the structure of the program and changes with it. Call "
            f"set_uid_hash('{node.operator_id}') to keep this state when the program changes."
        )
    return _operator_diff(verdict, saved, node, states, problems, hints)


def _operator_diff(
    verdict: Verdict,
    saved: OperatorState | None,
    node: StreamNode,
    states: Sequence[StateDiff],
    problems: Sequence[str] = (),
    hints: Sequence[str] = (),
) -> OperatorDiff:
    return OperatorDiff(
        verdict=verdict,
        name=node.name,
        operator_id=node.operator_id,
        uid=node.uid,
        states=tuple(states),
        problems=tuple(problems),
        hints=tuple(hints),
        parallelism=(saved.parallelism if saved else None, node.parallelism),
        defined_at=node.defined_at,
    )


def _whole_problems(metadata: CheckpointMetadata, saved: OperatorState, job_graph: JobGraph) -> list[str]:
    """Why the state of an operator as a whole cannot be shared out among the subtasks the program asks for."""
    if is_fully_finished(saved):
        return []
    alone = replace(metadata, operators=(replace(saved, finished=frozenset()),), channels=())
    return _refusal(alone, job_graph) if not saved.finished else []


def _refusal(metadata: CheckpointMetadata, job_graph: JobGraph) -> list[str]:
    try:
        check_compatibility(metadata, job_graph, True)
    except StateIncompatibleError as error:
        return [str(error)]
    return []


def _compare_states(saved: OperatorState, declared: DeclaredStates) -> list[StateDiff]:
    in_savepoint = {state.name: state for state in keyed_states(saved)}
    asked_for = {state.name: state for state in declared.keyed}
    found = []
    for name, state in in_savepoint.items():
        now = asked_for.get(name)
        if now is not None:
            problem = _state_problem(state, now)
            verdict = Verdict.INCOMPATIBLE if problem else Verdict.RESTORED
            found.append(StateDiff(name, verdict, state, now, problem))
        elif state.kind == TIMERS or name.startswith(_LAZY):
            found.append(StateDiff(name, Verdict.RESTORED, state))
        else:
            verdict = Verdict.NOT_ASKED_FOR if declared.is_known else Verdict.UNKNOWN
            found.append(StateDiff(name, verdict, state))
    found += [
        StateDiff(name, Verdict.NEW, declared=state) for name, state in asked_for.items() if name not in in_savepoint
    ]
    return found


def _compare_lists(saved: OperatorState, declared: DeclaredStates) -> list[StateDiff]:
    asked_for = dict(declared.lists)
    in_savepoint = {found.name: found for found in operator_lists(saved)}
    found = []
    for state in _lists_as_states(saved):
        mode, now = in_savepoint[state.name].mode, asked_for.get(state.name)
        if state.name.startswith("_") or now == mode:
            found.append(StateDiff(state.name, Verdict.RESTORED, state))
        elif now is not None:
            problem = f"operator state '{state.name}' is {mode} state in the savepoint, {now} state in the program"
            found.append(StateDiff(state.name, Verdict.INCOMPATIBLE, state, problem=problem))
        else:
            found.append(StateDiff(state.name, Verdict.NOT_ASKED_FOR if declared.is_known else Verdict.UNKNOWN, state))
    fresh = [(name, mode) for name, mode in declared.lists if name not in in_savepoint]
    return [*found, *(_new_list(name, mode) for name, mode in fresh)]


def _new_list(name: str, mode: str) -> StateDiff:
    return StateDiff(name, Verdict.NEW, declared=StateMeta(name, f"{mode} list"))


def _lists_as_states(saved: OperatorState) -> list[StateMeta]:
    return [StateMeta(found.name, f"{found.mode} list", entries=found.items) for found in operator_lists(saved)]


def _state_problem(saved: StateMeta, declared: StateMeta) -> str | None:
    try:
        check_same(saved, declared)
    except StateIncompatibleError as error:
        return error.message
    return None


def _dropped(operator: OperatorState) -> OperatorDiff:
    states = (*keyed_states(operator), *_lists_as_states(operator))
    return OperatorDiff(
        verdict=Verdict.DROPPED,
        name=operator.name,
        operator_id=operator.operator_id,
        uid=operator.uid,
        states=tuple(StateDiff(state.name, Verdict.DROPPED, state) for state in states),
        parallelism=(operator.parallelism, None),
    )


def _with_hints(
    operators: Sequence[OperatorDiff],
    dropped: Sequence[OperatorState],
    declared: Mapping[str, DeclaredStates],
) -> list[OperatorDiff]:
    """Adds to dropped operators which operator of the program they may have been."""
    fresh = [diff for diff in operators if diff.verdict in (Verdict.NEW, Verdict.STATELESS) and not _had_state(diff)]
    by_id = {operator.operator_id: operator for operator in dropped}
    hinted = []
    for diff in operators:
        hints = diff.hints
        if diff.verdict is Verdict.DROPPED:
            alike = [other for other in fresh if _resembles(by_id[diff.operator_id], other, declared)]
            hints = (*hints, *(_uid_hint(diff, other) for other in alike[:1]))
        hinted.append(replace(diff, hints=hints))
    return hinted


def _had_state(diff: OperatorDiff) -> bool:
    return any(state.saved is not None for state in diff.states)


def _resembles(saved: OperatorState, new: OperatorDiff, declared: Mapping[str, DeclaredStates]) -> bool:
    states = {(state.name, state.kind) for state in keyed_states(saved) if state.kind != TIMERS}
    asked_for = declared.get(new.operator_id, DeclaredStates())
    now = {(state.name, state.kind) for state in asked_for.keyed}
    if new.name == saved.name:
        return not states or states == now or not asked_for.is_known or bool(states & now)
    return bool(states) and states == now


def _uid_hint(old: OperatorDiff, new: OperatorDiff) -> str:
    was = f"uid '{old.uid}'" if old.uid else "no uid"
    now = f"uid '{new.uid}'" if new.uid else "no uid"
    cause = "the uid may have changed." if old.uid or new.uid else "the structure of the program may have changed."
    place = f" at {new.defined_at}" if new.defined_at else ""
    remedy = f"Give it uid('{old.uid}') again" if old.uid else f"Give it set_uid_hash('{old.operator_id}')"
    return f"{cause} Operator '{new.name}'{place} looks like it ({was} then, {now} now). {remedy} to restore its state."

"""Defects planted on purpose in operators, one at a time, to see whether programs drawn at random find them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from firesteel.cep.dynamic_operator import RULE_STATE, DynamicCepOperator
from firesteel.cep.nfa.nfa import NFA
from firesteel.cep.operator import CepOperator
from firesteel.cep.pattern import after_match
from firesteel.cep.waiting_events import WaitingEvents
from firesteel.runtime.operators.aggregation.bundles import BundleOperator
from firesteel.runtime.operators.aggregation.function import Aggregation

__all__ = ["PLANTED"]


def partial_matches_not_restored() -> list[Any]:
    """A pattern operator forgets partial matches when it is restored."""
    original = CepOperator.open

    def open_(operator: CepOperator, context: Any) -> None:
        original(operator, context)
        operator.drop_partial_matches()

    return [patch.object(CepOperator, "open", open_)]


def waiting_events_not_stored() -> list[Any]:
    """Events that wait for the watermark are in no checkpoint."""
    return [patch.object(CepOperator, "store_waiting", lambda _operator: None)]


def stored_events_behind() -> list[Any]:
    """Events that a snapshot has put into state come behind later ones of the same timestamp."""

    def put_behind(waiting: WaitingEvents, timestamp: int, keys: list[Any], events: list[Any]) -> None:
        for key, event in zip(keys, events, strict=True):
            waiting.put(timestamp, key, event)

    return [patch.object(WaitingEvents, "put_before", put_behind)]


def within_too_long() -> list[Any]:
    """``within`` is one millisecond longer."""
    original = NFA.advance_time
    return [patch.object(NFA, "advance_time", lambda nfa, state, timestamp: original(nfa, state, timestamp - 1))]


def nothing_skipped() -> list[Any]:
    """skip_past_last_event skips nothing."""
    return [patch.object(after_match._SkipPastLastStrategy, "first_kept", lambda _strategy, _match: None)]


def rule_not_restored() -> list[Any]:
    """The rule in force is not restored."""

    def open_(operator: DynamicCepOperator, context: Any) -> None:
        operator.context = context
        operator._rules = context.operator_state.get_broadcast_state(RULE_STATE)
        operator._matching.open(context)

    return [patch.object(DynamicCepOperator, "open", open_)]


def bundle_lost_at_a_checkpoint() -> list[Any]:
    """A bundle is emptied before a barrier instead of flushed."""

    def prepare(operator: BundleOperator, checkpoint_id: int) -> None:
        operator._partials.clear()

    return [patch.object(BundleOperator, "prepare_snapshot_pre_barrier", prepare)]


def bundle_not_flushed_before_a_barrier() -> list[Any]:
    """A bundle is not flushed before a barrier, so it is lost with a restore."""
    return [patch.object(BundleOperator, "prepare_snapshot_pre_barrier", lambda _operator, _checkpoint_id: None)]


def merged_the_wrong_way() -> list[Any]:
    """A partial result replaces the one in state if it has a larger sum, instead of being merged with it."""
    original = Aggregation.__init__

    def init(aggregation: Aggregation, function: Any) -> None:
        original(aggregation, function)
        if not aggregation.is_reduce:
            aggregation.merge = lambda one, other: other if other[1] > one[1] else one

    return [patch.object(Aggregation, "__init__", init)]


PLANTED: dict[str, Callable[[], list[Any]]] = {
    defect.__name__: defect
    for defect in (
        partial_matches_not_restored,
        waiting_events_not_stored,
        stored_events_behind,
        within_too_long,
        nothing_skipped,
        rule_not_restored,
        bundle_lost_at_a_checkpoint,
        bundle_not_flushed_before_a_barrier,
        merged_the_wrong_way,
    )
}

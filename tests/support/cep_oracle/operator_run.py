"""Runs a case with Firesteel's operator."""

from __future__ import annotations

from typing import Any

from firesteel.api.output_tag import OutputTag
from firesteel.cep.functions import Match, PatternProcessFunction, TimedOutPartialMatchHandler
from firesteel.cep.operator import CepOperator, CepSpec
from firesteel.cep.pattern.quantifier import MalformedPatternException
from firesteel.common.errors import FiresteelError
from firesteel.runtime.state.api.backend import KeyedStateBackend
from firesteel.testing.operator_context import FakeClock, FakeOperatorContext
from tests.support.cep_oracle.cases import build_pattern, number_of, value_of

__all__ = ["run_case"]

LATE = OutputTag("late")
MAX_PARTIAL_MATCHES = 2_000


class _Collect(PatternProcessFunction):
    def __init__(self) -> None:
        self.emitted: list[list[Any]] = []

    def process_match(self, match: Match, ctx: Any) -> None:
        self.add("match", match, ctx)

    def add(self, kind: str, match: Match, ctx: Any) -> None:
        events = [[stage, *map(number_of, events)] for stage, events in match.items()]
        self.emitted.append([kind, ctx.timestamp(), *events])


class _CollectWithTimeouts(_Collect, TimedOutPartialMatchHandler):
    def process_timed_out_match(self, match: Match, ctx: Any) -> None:
        self.add("timeout", match, ctx)


def run_case(case: dict[str, Any], backend: KeyedStateBackend | None = None) -> dict[str, Any]:
    """Returns what is emitted, and the error if there is one."""
    function = _CollectWithTimeouts() if case["timeouts"] else _Collect()
    try:
        operator = CepOperator(
            CepSpec(
                build_pattern(case["pattern"]),
                function,
                is_event_time=not case.get("processing_time"),
                comparator=(lambda a, b: value_of(a) - value_of(b)) if case.get("comparator") else None,
                late_tag=LATE,
                max_partial_matches=MAX_PARTIAL_MATCHES,
            )
        )
        context = FakeOperatorContext(lambda _: 0, FakeClock(0), backend)
        operator.open(context)
    except MalformedPatternException as error:
        return {"emitted": [], "error": error.message}
    try:
        for step in case["steps"]:
            _take_step(operator, context, step, function.emitted)
    except FiresteelError as error:
        return {"emitted": function.emitted, "error": error.message}
    return {"emitted": function.emitted}


def _take_step(operator: CepOperator, context: FakeOperatorContext, step: list[Any], emitted: list[list[Any]]) -> None:
    if step[0] == "w":
        operator.process_watermark(step[1])
    elif step[0] == "p":
        context.clock.advance(step[1] - context.clock.now)
    else:
        operator.process_batch([step[2]], [step[1]])
        late = context.side_output.pop(LATE, ())
        emitted += [["late", event] for event, _ in late]

"""Transcripts of pattern operators: YAML cases of events, watermarks, rules and expected matches.

A case looks like this; an event is its type, its value and its key, with a timestamp::

    - name: other events may lie between
      pattern:
        stages:
          - {kind: begin, name: x, where: [type, a]}
          - {kind: followed_by, name: y, where: [type, b]}
      transcript:
        - input: [[a 1 k, 3], [c 2 k, 4], [b 3 k, 5]]
        - watermark: 5
        - expect: [k@5 x=a1 y=b3]

``expect``, ``timed_out`` and ``late`` take what was emitted since the last such step, in any order. Nothing may be left
over. ``dropped`` is the number of late events that were dropped, ``waiting`` and ``partial`` are the keys that have
waiting events and partial matches. ``processing_time`` moves the clock. A case with ``rules`` has no pattern: the step
``rule`` sends one of them to the operator. `cep_oracle.cases` describes patterns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from firesteel.api.output_tag import OutputTag
from firesteel.cep.dynamic_operator import DynamicCepSpec
from firesteel.cep.functions import PatternProcessFunction, TimedOutPartialMatchHandler
from firesteel.cep.operator import PARTIAL_MATCHES, WAITING_EVENTS, CepSpec
from firesteel.testing import BroadcastHarness, FakeClock
from firesteel.testing.harness import OneInputHarness
from tests.support.cep_oracle.cases import build_pattern, value_of

__all__ = ["PatternTranscript", "load_pattern_transcripts"]

LATE, TIMED_OUT = OutputTag("late"), OutputTag("timed out")
OUTPUTS = ("expect", "timed_out", "late")


def _key(event: str) -> str:
    return event.split()[2]


class _Describe(PatternProcessFunction):
    def process_match(self, match: dict[str, list[str]], ctx: Any) -> Iterator[Any]:
        yield self.described(match, ctx)

    def described(self, match: dict[str, list[str]], ctx: Any) -> str:
        stages = {stage: "+".join(event[0] + event.split()[1] for event in events) for stage, events in match.items()}
        key = _key(next(iter(match.values()))[0])
        return " ".join([f"{key}@{ctx.timestamp()}", *(f"{stage}={events}" for stage, events in stages.items())])


class _DescribeTimedOut(_Describe, TimedOutPartialMatchHandler):
    def process_timed_out_match(self, match: dict[str, list[str]], ctx: Any) -> Iterator[Any]:
        yield TIMED_OUT, self.described(match, ctx)


@dataclass(frozen=True)
class PatternTranscript:
    """One case."""

    name: str
    transcript: list[dict[str, Any]]
    pattern: dict[str, Any] | None = None
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    timeouts: bool = False
    in_processing_time: bool = False
    late_output: bool = False
    comparator: bool = False
    file: str = ""

    @property
    def id(self) -> str:
        """The name for a test report."""
        return f"{Path(self.file).stem}: {self.name}"

    def run(self, backends: tuple[str, ...]) -> None:
        """Runs the case; with several backends, the operator is restored with the next one after every step."""
        _Run(self, backends).run()

    def spec(self) -> CepSpec:
        """Returns the spec of the operator."""
        settings: dict[str, Any] = {
            "function": _DescribeTimedOut() if self.timeouts else _Describe(),
            "is_event_time": not self.in_processing_time,
            "comparator": (lambda one, other: value_of(one) - value_of(other)) if self.comparator else None,
            "late_tag": LATE if self.late_output else None,
        }
        if self.pattern is not None:
            return CepSpec(build_pattern(self.pattern), **settings)
        return DynamicCepSpec(None, to_pattern=lambda name: build_pattern(self.rules[name]), **settings)


class _Run:
    def __init__(self, case: PatternTranscript, backends: tuple[str, ...]):
        self._case = case
        self._backends = backends
        self._clock = FakeClock(0)
        self._watermark: int | None = None
        self._emitted: dict[str, list[str]] = defaultdict(list)
        self._dropped = 0
        self._harness: Any = None

    def run(self) -> None:
        self._start(0)
        try:
            for number, step in enumerate(self._case.transcript, 1):
                ((kind, value),) = step.items()
                getattr(self, f"_do_{kind}", self._do_check)(value, kind=kind)
                self._take()
                if len(self._backends) > 1:
                    self._restore(number)
            left = {kind: values for kind, values in self._emitted.items() if values}
            assert not left, f"{self._case.id}: nothing more is expected, got {left}"
        finally:
            self._harness.close()

    def _start(self, number: int, snapshot: Any = None) -> None:
        dynamic = self._case.pattern is None
        create = BroadcastHarness if dynamic else OneInputHarness
        selectors = (_key, None) if dynamic else (_key,)
        backend = self._backends[number % len(self._backends)]
        self._harness = create(self._case.spec(), selectors, backend=backend, clock=self._clock)  # type: ignore[operator]
        self._harness.initialize_state(snapshot).open()

    def _restore(self, number: int) -> None:
        snapshot = self._harness.snapshot()
        self._dropped += self._harness.counter("numLateRecordsDropped")
        self._harness.close()
        self._clock = FakeClock(self._clock.now)  # the old one has timers of the closed operator
        self._start(number, snapshot)
        if self._watermark is not None:
            self._harness.process_watermark(self._watermark)

    def _take(self) -> None:
        self._emitted["expect"] += self._harness.take_output()
        for kind, tag in (("timed_out", TIMED_OUT), ("late", LATE)):
            self._emitted[kind] += self._harness.side_output(tag)
            self._harness._chained.sides.pop(tag.tag_id, None)

    def _do_input(self, events: list[list[Any]], kind: str) -> None:
        for event, timestamp in events:
            self._harness.process_element(event, timestamp)

    def _do_rule(self, name: str, kind: str) -> None:
        self._harness.process_broadcast_element(name)

    def _do_watermark(self, timestamp: int, kind: str) -> None:
        self._watermark = timestamp
        self._harness.process_watermark(timestamp)

    def _do_processing_time(self, timestamp: int, kind: str) -> None:
        self._harness.advance(timestamp - self._clock.now)

    def _do_check(self, expected: Any, kind: str) -> None:
        self._take()
        if kind in OUTPUTS:
            found: Any = sorted(self._emitted.pop(kind, []))
            expected = sorted(expected)
        elif kind == "dropped":
            found = self._dropped + self._harness.counter("numLateRecordsDropped")
        else:
            self._harness.snapshot()  # puts waiting events into state
            found = sorted(self._harness.keys({"waiting": WAITING_EVENTS, "partial": PARTIAL_MATCHES}[kind]))
        assert found == expected, f"{self._case.id}: {kind} {expected}, got {found}"


def load_pattern_transcripts(folder: Path) -> list[PatternTranscript]:
    """Reads the cases of all YAML files of a folder."""
    return [
        PatternTranscript(file=str(file), **entry)
        for file in sorted(folder.glob("*.yaml"))
        for entry in yaml.safe_load(file.read_text(encoding="utf-8"))
    ]

"""Window semantics as transcripts: YAML cases of records, watermarks and expected output of an operator.

A case looks like this; times are milliseconds, a record is ``[key, value, timestamp]``::

    - name: a window fires when the watermark reaches its last timestamp
      window: {type: TumblingEventTimeWindows, size: 10}
      aggregation: sum
      transcript:
        - input: [[a, 1, 3], [a, 2, 9]]
        - watermark: 8
        - expect: []
        - watermark: 9
        - expect: [[a, 3, [0, 10]]]

``expect`` takes everything emitted since the last ``expect``, in any order, as ``[key, result, window]``. A
time window is ``[start, end]``, a count window its id, the global one ``global``. Nothing may be left over.
The other steps: ``processing_time`` moves the clock; ``late`` takes the late side output, if the case has
``late_output: true``; ``dropped`` is the number of late records dropped; ``state`` lists the windows in
which each key still has contents. ``raises`` beside ``input`` is a part of the error message that must come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firesteel.api.output_tag import OutputTag
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.operators.base import StreamOperator
from firesteel.runtime.operators.window.spec import WindowSpec
from firesteel.runtime.operators.window.state import CONTENTS_STATE, MERGING_WINDOWS_STATE
from firesteel.testing.operator_context import FAKE_RUNTIME, FakeOperatorContext
from firesteel.testing.transcript_parts import aggregation_of, assigner_of, describe_window, evictor_of, trigger_of

__all__ = ["LATE_TAG", "TranscriptCase", "TranscriptMismatch", "load_transcripts"]

LATE_TAG = OutputTag("late")

_FIELDS = {
    "name",
    "window",
    "trigger",
    "evictor",
    "allowed_lateness",
    "late_output",
    "all_windows",
    "aggregation",
    "transcript",
}

Record = tuple[Any, Any]


class TranscriptMismatch(AssertionError):
    """The output differs from the transcript."""


@dataclass(frozen=True)
class TranscriptCase:
    """One case of a transcript file."""

    name: str
    window: dict[str, Any]
    transcript: list[dict[str, Any]]
    trigger: Any = None
    evictor: Any = None
    aggregation: str = "sum"
    allowed_lateness: int = 0
    late_output: bool = False
    all_windows: bool = False
    file: str = field(default="", compare=False)

    @property
    def id(self) -> str:
        """The case's name for a test report, like ``tumbling: a window fires``."""
        return f"{Path(self.file).stem}: {self.name}"

    def spec(self) -> WindowSpec:
        """The operator's spec. Records are ``(key, value)``, results ``(key, result, window)``."""
        assigner = assigner_of(self.window)
        trigger = assigner.get_default_trigger(None) if self.trigger is None else trigger_of(self.trigger)
        kind, function, window_function = aggregation_of(self.aggregation, self.all_windows)
        return WindowSpec(
            assigner=assigner,
            trigger=trigger,
            aggregation=kind,
            aggregate_function=function,
            window_function=window_function,
            allowed_lateness=self.allowed_lateness,
            late_tag=LATE_TAG if self.late_output else None,
            all_windows=self.all_windows,
            evictor=None if self.evictor is None else evictor_of(self.evictor),
        )

    def run(self, factory: Callable[[WindowSpec], StreamOperator] | None = None) -> None:
        """Runs the case on an operator alone and raises TranscriptMismatch at the first difference."""
        selector = (lambda _: 0) if self.all_windows else (lambda record: record[0])
        context = FakeOperatorContext(selector)
        operator = self.spec().create(FAKE_RUNTIME) if factory is None else factory(self.spec())
        run = _Run(self, operator, context)
        operator.open(context)
        try:
            for number, step in enumerate(self.transcript, start=1):
                run.step(number, step)
            run.finish()
        finally:
            operator.close()


class _Run:
    def __init__(self, case: TranscriptCase, operator: StreamOperator, context: FakeOperatorContext):
        self._case = case
        self._operator = operator
        self._context = context
        self._number = 0

    def step(self, number: int, step: dict[str, Any]) -> None:
        self._number = number
        raises = step.get("raises")
        kinds = [name for name in step if name != "raises"]
        if len(kinds) != 1 or not hasattr(self, f"_do_{kinds[0]}"):
            raise ValueError(f"{self._case.id}, step {number}: expected one known step, got {list(step)}")
        do: Callable[[Any], None] = getattr(self, f"_do_{kinds[0]}")
        if raises is None:
            do(step[kinds[0]])
            return
        try:
            do(step[kinds[0]])
        except Exception as error:  # noqa: BLE001 - the assigner may raise any error
            if raises not in str(error):
                self._differ(f"an error with '{raises}'", str(error))
        else:
            self._differ(f"an error with '{raises}'", "no error")

    def finish(self) -> None:
        self._number += 1
        self._do_expect([])
        self._compare([], [value for value, _ in self._context.take_side_output(LATE_TAG)])

    def _do_input(self, records: list[list[Any]]) -> None:
        values = [(key, value) for key, value, _ in records]
        timestamps = [timestamp for _, _, timestamp in records]
        self._operator.process_batch(values, None if None in timestamps else timestamps)

    def _do_watermark(self, timestamp: int | str) -> None:
        time = MAX_WATERMARK if timestamp == "max" else int(timestamp)
        self._operator.process_watermark(time)
        if self._context.watermarks[-1:] != [time]:
            self._differ(f"watermark {time} downstream", self._context.watermarks[-1:])

    def _do_processing_time(self, timestamp: int) -> None:
        self._context.clock.advance_to(timestamp)

    def _do_expect(self, expected: list[Any]) -> None:
        emitted = self._context.take_output()
        for (key, _, window), timestamp in emitted:
            end = window.max_timestamp()
            if timestamp != end:
                self._differ(f"timestamp {end} on the result of {key!r} in {window}", timestamp)
        self._compare(expected, [[key, result, describe_window(window)] for (key, result, window), _ in emitted])

    def _do_late(self, expected: list[Any]) -> None:
        late = self._context.take_side_output(LATE_TAG)
        self._compare(expected, [[key, value, timestamp] for (key, value), timestamp in late])

    def _do_dropped(self, expected: int) -> None:
        self._compare([expected], [self._context.counter("numLateRecordsDropped").count])

    def _do_state(self, expected: dict[Any, list[Any]]) -> None:
        windows: dict[Any, list[Any]] = {}
        for key, window in self._windows_in_state():
            windows.setdefault(key, []).append(describe_window(window))
        self._compare(
            [[key, window] for key, listed in expected.items() for window in listed],
            [[key, window] for key, listed in windows.items() for window in listed],
        )

    def _windows_in_state(self) -> Iterator[tuple[Any, Any]]:
        in_flight = self._context.stored(MERGING_WINDOWS_STATE).get(None, {})
        for namespace, panes in self._context.stored(CONTENTS_STATE).items():
            for key in panes:
                merged = {state: window for window, state in in_flight.get(key, {}).items()}
                yield key, merged.get(namespace, namespace)

    def _compare(self, expected: list[Any], got: list[Any]) -> None:
        if sorted(map(repr, expected)) != sorted(map(repr, got)):
            self._differ(expected, got)

    def _differ(self, expected: Any, got: Any) -> None:
        raise TranscriptMismatch(
            f"{self._case.id}, step {self._number}, {type(self._operator).__name__}:\n"
            f"  expected: {expected}\n  got:      {got}"
        )


def load_transcripts(path: str | Path) -> list[TranscriptCase]:
    """Reads the cases of a YAML file, or of all YAML files of a folder."""
    import yaml

    path = Path(path)
    if path.is_dir():
        return [case for file in sorted(path.glob("*.yaml")) for case in load_transcripts(file)]
    cases = []
    for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
        unknown = set(entry) - _FIELDS
        if unknown:
            raise ValueError(f"{path.name}: case '{entry.get('name')}' has unknown fields {sorted(unknown)}")
        cases.append(TranscriptCase(file=str(path), **entry))
    return cases

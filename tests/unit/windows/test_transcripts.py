"""Every semantics transcript on the general window operator and, where it applies, on the aligned one."""

from __future__ import annotations

from pathlib import Path

import pytest

from firesteel.runtime.operators.window.aligned import AlignedWindowOperator, alignment_of
from firesteel.runtime.operators.window.evicting import EvictingWindowOperator
from firesteel.runtime.operators.window.operator import WindowOperator
from firesteel.testing.operator_context import FAKE_RUNTIME
from firesteel.testing.transcript import TranscriptCase, TranscriptMismatch, load_transcripts

CASES = load_transcripts(Path(__file__).parents[2] / "semantics")
ALIGNED = [case for case in CASES if alignment_of(case.spec()) is not None]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_transcript_on_the_general_operator(case: TranscriptCase) -> None:
    case.run(_general(case))


@pytest.mark.parametrize("case", ALIGNED, ids=lambda case: case.id)
def test_transcript_on_the_aligned_operator(case: TranscriptCase) -> None:
    case.run(AlignedWindowOperator)


def test_every_file_has_cases_and_names_are_unique() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
    files = {Path(case.file).name for case in CASES}
    assert files == {path.name for path in (Path(__file__).parents[2] / "semantics").glob("*.yaml")}


def test_the_factory_takes_the_aligned_operator_only_for_default_event_time_windows() -> None:
    chosen = {case.id: type(case.spec().create(FAKE_RUNTIME)) for case in CASES}
    for case in CASES:
        aligned = (
            case.trigger is None
            and case.evictor is None
            and case.window["type"] in ("TumblingEventTimeWindows", "SlidingEventTimeWindows")
        )
        assert chosen[case.id] is (AlignedWindowOperator if aligned else _general(case)), case.id


def _general(case: TranscriptCase) -> type[WindowOperator]:
    return WindowOperator if case.evictor is None else EvictingWindowOperator


def _case(*steps: dict[str, object], **fields: object) -> TranscriptCase:
    window = {"type": "TumblingEventTimeWindows", "size": 10}
    return TranscriptCase(name="t", window=window, transcript=list(steps), **fields)  # type: ignore[arg-type]


RECORD = {"input": [["a", 1, 3]]}


@pytest.mark.parametrize(
    "case",
    [
        _case(RECORD, {"watermark": 9}, {"expect": [["a", 2, [0, 10]]]}),
        _case(RECORD, {"watermark": 9}, {"expect": []}),
        _case(RECORD, {"watermark": 9}),
        _case(RECORD, {"expect": [["a", 1, [0, 10]]]}),
        _case(RECORD, {"state": {}}),
        _case({"watermark": 9}, RECORD, {"dropped": 0}),
        _case({"watermark": 9}, RECORD, {"late": []}, late_output=True),
        _case({"watermark": 9}, RECORD, late_output=True),
        _case({"input": [["a", 1, 3]], "raises": "timestamp"}),
        _case({"input": [["a", 1, None]], "raises": "no such words"}),
    ],
)
def test_a_wrong_transcript_fails(case: TranscriptCase) -> None:
    with pytest.raises(TranscriptMismatch):
        case.run()


def test_an_unknown_step_or_field_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected one known step"):
        _case({"wartermark": 9}).run()
    (tmp_path / "typo.yaml").write_text("- {name: t, windows: {}, transcript: []}")
    with pytest.raises(ValueError, match="unknown fields"):
        load_transcripts(tmp_path)

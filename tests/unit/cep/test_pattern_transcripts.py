"""Transcripts of pattern operators, with both state backends, and restored after every step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cep_transcripts import PatternTranscript, load_pattern_transcripts

CASES = load_pattern_transcripts(Path(__file__).parents[2] / "semantics" / "patterns")


@pytest.mark.parametrize("backends", [("hashmap",), ("rocksdb",), ("hashmap", "rocksdb")], ids="-".join)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_transcript(case: PatternTranscript, backends: tuple[str, ...]) -> None:
    case.run(backends)


def test_names_are_unique() -> None:
    assert len({case.id for case in CASES}) == len(CASES) >= 20


A = {"stages": [{"kind": "begin", "name": "x", "where": ["type", "a"]}]}


@pytest.mark.parametrize(
    "steps",
    [
        [{"input": [["a 1 k", 1]]}, {"watermark": 1}],
        [{"input": [["a 1 k", 1]]}, {"watermark": 1}, {"expect": []}],
        [{"input": [["a 1 k", 1]]}, {"expect": ["k@1 x=a1"]}],
        [{"input": [["a 1 k", 1]]}, {"waiting": []}],
        [{"watermark": 1}, {"input": [["a 1 k", 1]]}, {"dropped": 0}],
    ],
)
def test_a_wrong_transcript_fails(steps: list[dict[str, object]]) -> None:
    with pytest.raises(AssertionError):
        PatternTranscript("wrong", steps, A).run(("hashmap",))

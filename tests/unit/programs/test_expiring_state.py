"""Programs whose state expires, in process."""

from __future__ import annotations

from pathlib import Path

import pytest

from firesteel.testing.programs.keys import KeyOf
from firesteel.testing.programs.nodes.processes import KeyedProcess, Steps
from firesteel.testing.programs.nodes.sinks import Sink
from firesteel.testing.programs.nodes.sources import Source
from firesteel.testing.programs.nodes.steps import Expired
from firesteel.testing.programs.program import Misfit, Program, Ref
from firesteel.testing.programs.results import check
from firesteel.testing.programs.running.running import InProcessRunner
from firesteel.testing.programs.running.split_source import Many, Split
from firesteel.testing.programs.running.ways import Phase, Way


def _program(records: int, cleanup: str = "") -> Program:
    source = Source(id=0, splits=(Split((Many(records, (0, 1), 1, 0, 4),)),), parallelism=1)
    function = Steps("numbers", "int", (Expired("write", cleanup),))
    expired = KeyedProcess(id=1, inputs=(Ref(0),), key=KeyOf("int"), function=function)
    return Program((source, expired, Sink(id=2, inputs=(Ref(1),))))


@pytest.mark.parametrize("cleanup", ["", "incremental", "snapshot"])
@pytest.mark.parametrize(
    "phase",
    [
        Phase(checkpoint_ms=10, parallelism=2),
        Phase(checkpoint_ms=10, backend="rocksdb"),
        Phase("epochs"),
        Phase("batch"),
    ],
    ids=["hashmap", "rocksdb", "epochs", "batch"],
)
def test_what_is_left_of_state_that_has_expired(phase: Phase, cleanup: str, tmp_path: Path) -> None:
    program, way = _program(20, cleanup), Way((phase,))
    program.types()
    outcome = InProcessRunner().run(program, way, tmp_path)
    assert check(program, way, outcome) == []
    assert len(outcome.results[2]) == 20


def test_state_that_does_not_expire_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, way = _program(20), Way((Phase(),))
    monkeypatch.setattr(Expired, "LIFE_MS", 60_000)
    outcome = InProcessRunner().run(program, way, tmp_path)
    monkeypatch.undo()
    assert any("missing" in problem for problem in check(program, way, outcome))


def test_it_takes_too_long_for_many_records() -> None:
    with pytest.raises(Misfit):
        _program(5000).types()
    assert any(node.takes_time for node in _program(20).nodes)

"""Programs printed as Python files."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from firesteel.config.configuration import Configuration
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.testing.programs.grammar import draw_program
from firesteel.testing.programs.printing import print_program
from firesteel.testing.programs.results import check
from firesteel.testing.programs.running.building import Site, build
from firesteel.testing.programs.running.running import InProcessRunner
from firesteel.testing.programs.running.way_drawing import draw_way
from firesteel.testing.programs.running.ways import Way


def _executed(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "printed"}
    exec(compile(text, "printed.py", "exec"), names)
    return names


def _env(way: Way) -> StreamExecutionEnvironment:
    configuration = Configuration()
    for key, value in way.phases[0].settings().items():
        configuration.set_string(key, value)
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def _numberless(plan: str) -> str:
    """Without the numbers of tables without names, which go on in a process."""
    return re.sub(r"(DataStream_Source)_\d+", r"\1", plan)


@pytest.mark.parametrize("seed", range(40))
def test_a_printed_program_is_the_same_program(seed: int, tmp_path: Path) -> None:
    program = draw_program(seed)
    way = draw_way(program, seed)
    printed = _executed(print_program(program, way, ['it gave """nothing"""']))
    assert printed["PROGRAM"] == program
    assert printed["WAY"] == way

    drawn, from_text = _env(way), _env(way)
    build(program, Site(drawn, tmp_path))
    printed["build"](from_text, str(tmp_path), dict.fromkeys(fault.place for fault in way.faults))
    assert _numberless(from_text.explain()) == _numberless(drawn.explain())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [3, 14, 17])
def test_a_printed_program_runs(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    program = draw_program(seed)
    way = draw_way(program, seed)
    printed = _executed(print_program(program, way, []))
    outcome = InProcessRunner(build=printed["build"]).run(printed["PROGRAM"], printed["WAY"], tmp_path)
    assert check(program, way, outcome) == []
    assert any(outcome.results.values())

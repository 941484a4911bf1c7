"""What is drawn."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import firesteel
from firesteel.testing.programs.coverage import EXECUTIONS, OPERATORS, Coverage, Met
from firesteel.testing.programs.grammar import GRAMMAR, draw_program
from firesteel.testing.programs.keys import KEY_KINDS, KeyOf, k_of
from firesteel.testing.programs.oracle.evaluate import evaluate
from firesteel.testing.programs.oracle.flow import Mode
from firesteel.testing.programs.program import EventTime
from firesteel.testing.programs.running.faults import BATCH_POINTS, EPOCH_POINTS, POINTS
from firesteel.testing.programs.running.in_flight import IN_FLIGHT
from firesteel.testing.programs.running.way_drawing import draw_way

ELSEWHERE = {"s3.", "kafka.", "lake.", "ha.", "cluster.", "job."}
"""Fault points of what generated programs do not have in one process."""


def test_programs_fit_and_the_oracle_knows_them() -> None:
    for seed in range(80):
        program = draw_program(f"fit-{seed}")
        program.types()
        assert set(evaluate(program, Mode.STREAM)) == {sink.id for sink in program.sinks}
        assert program.sinks


def test_every_operator_is_drawn_behind_every_kind_of_event_time() -> None:
    drawn: Counter[str] = Counter()
    times: Counter[EventTime] = Counter()
    for seed in range(300):
        program = draw_program(f"every-{seed}")
        drawn.update(node.kind.partition("[")[0] for node in program.nodes)
        times.update(kind.time for kind in program.types().values())
    assert set(drawn) == set(OPERATORS)
    assert {node.__name__ for node in GRAMMAR} <= set(OPERATORS)
    assert set(times) == set(EventTime)


def test_every_execution_and_fault_is_drawn() -> None:
    executions, faults = set(), set()
    programs = [draw_program(f"way-{seed}") for seed in range(20)]
    for seed in range(800):
        way = draw_way(programs[seed % 20], f"way-{seed}")
        executions |= {phase.label for phase in way.phases}
        faults |= {fault.place for fault in way.faults if fault.kind == "point"}
    assert executions == set(EXECUTIONS)
    assert faults == {*POINTS, *EPOCH_POINTS}


def test_programs_that_do_not_end_go_back_to_whatever_is_in_flight() -> None:
    """Behind an idle source, in some of them, are a node that needs its watermarks and a slow function of that node."""
    drawn: Counter[str] = Counter()
    held_up = 0
    for seed in range(1500):
        program = draw_program(f"flight-{seed}")
        faults = draw_way(program, f"flight-{seed}").faults
        flights = [fault for fault in faults if fault.kind == "flight"]
        drawn.update(fault.holds for fault in flights)
        assert not (flights and program.ends)
        if any(fault.holds == "idle" for fault in flights):
            slow = next(int(fault.place.partition(".")[0]) for fault in faults if fault.kind == "slow")
            node = next(node for node in program.nodes if node.id == slow)
            held_up += node.waits_for_time and program.types()[node.inputs[0]].idle
        if held_up > 10 and set(drawn) == set(IN_FLIGHT):
            break
    assert set(drawn) == set(IN_FLIGHT)
    assert held_up > 10


def test_every_fault_point_is_known() -> None:
    reached = set()
    for path in Path(firesteel.__file__).parent.rglob("*.py"):
        reached |= set(re.findall(r'fault_points\.reach\("([\w.]+)"\)', path.read_text(encoding="utf-8")))
    unknown = reached - {*POINTS, *EPOCH_POINTS, *BATCH_POINTS}
    assert {point for point in unknown if not point.startswith(tuple(ELSEWHERE))} == set()
    assert {*POINTS, *EPOCH_POINTS, *BATCH_POINTS} <= reached


def test_kills_are_drawn_only_if_asked_for() -> None:
    program = draw_program(1)
    kinds = {fault.kind for seed in range(300) for fault in draw_way(program, seed).faults}
    assert "kill" not in kinds
    kinds = {fault.kind for seed in range(300) for fault in draw_way(program, seed, kills=True).faults}
    assert "kill" in kinds


def test_equal_keys_come_from_one_number() -> None:
    for kind in KEY_KINDS:
        selector = KeyOf(kind)
        for k in range(16):
            forms = [selector.get_key((k, v, 0)) for v in range(12)]
            assert len(set(forms)) == 1, kind
            assert k_of(kind, forms[0]) == k
    numbers = [KeyOf("number").get_key((1, v, 0)) for v in range(12)]
    assert {type(number).__name__ for number in numbers} == {"int", "float", "Decimal", "Fraction", "bool"}


def test_coverage_shows_what_was_not_met() -> None:
    coverage = Coverage()
    coverage.add(Met(("Map[lambda]", "Sink[store]"), ("aligned",), ("user",)))
    coverage.add(Met(("Map[lambda]",), ("batch",), ("none",)))
    report = coverage.report()
    assert re.search(r"Map\[lambda\] +· +1 +· +· +1\n", report)
    assert "Not drawn: AssignTimestamps, AsyncWait," in report
    assert "3 of 4 combinations met; not met, for example: Sink x none x batch" in report

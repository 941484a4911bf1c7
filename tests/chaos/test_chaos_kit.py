"""The chaos tests' own judgement: it must find what is wrong, or their silence means nothing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firesteel.process.fault_points import POINTS
from firesteel.testing import eventually
from tests.support.chaos.agent import Agent, InjectedError, cut_data_connections
from tests.support.chaos.job import Directories, build, write_limit
from tests.support.chaos.plan import EPOCHS, RETRIED, SWITCH, all_kinds, make_plan
from tests.support.chaos.processes import Family
from tests.support.chaos.reader import OutputReader, Violation
from tests.support.chaos.stream import JITTER_MS, LANES, Expectations, event_at, line

EVENTS = 600


def expected_lines(events: int = EVENTS) -> list[str]:
    expected = Expectations()
    expected.advance(events)
    expected.end()
    return [
        line(kind, group, number, payload)
        for (kind, group), payloads in expected.results.items()
        for number, payload in payloads.items()
    ]


@pytest.fixture
def directories(tmp_path: Path) -> Directories:
    directories = Directories(tmp_path).create()
    write_limit(directories.limit, EVENTS, True)
    return directories


@pytest.fixture
def reader(directories: Directories) -> OutputReader:
    return OutputReader(directories.output, directories.limit)


def write(directories: Directories, name: str, lines: list[str]) -> Path:
    path = directories.output / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{text}\n" for text in lines))
    return path


def test_what_is_right_passes_in_parts_and_as_a_whole(directories: Directories, reader: OutputReader) -> None:
    lines = expected_lines()
    half = len(lines) // 2
    write(directories, "a/part-0", lines[:half])
    write(directories, "a/.inprogress/part-1", lines)
    write(directories, ".hidden", ["nonsense"])
    reader.look()
    assert reader.records == half
    write(directories, "part-2", lines[half:])
    reader.finish(EVENTS)
    assert reader.records == len(lines)
    assert reader.files == 2
    assert reader.highest_index == EVENTS - 1
    assert reader.count("sum") == EVENTS


def test_the_sums_are_those_of_the_records() -> None:
    """Against a computation of its own, as simple as can be."""
    events = [event_at(index) for index in range(EVENTS)]
    finals: dict[int, tuple[int, int, int]] = {}
    for event in events:
        count, total, _ = finals.get(event.key, (0, 0, 0))
        finals[event.key] = count + 1, total + event.value, event.position
    lines = set(expected_lines())
    assert {line("sum", key, count, f"{total}@{index}") for key, (count, total, index) in finals.items()} <= lines
    assert len({event.position % LANES for event in events if event.key == events[0].key}) == 1
    assert all(0 <= event.time - (events[0].time // 2000 * 2000 + event.position * 10) < JITTER_MS for event in events)
    windows = [text.split() for text in lines if text.startswith("window")]
    assert sum(int(payload.partition(":")[0]) for *_, payload in windows) == EVENTS
    assert sum(int(payload.partition(":")[2]) for *_, payload in windows) == sum(event.value for event in events)
    assert len([text for text in lines if text.startswith("timer")]) == len(windows)


def _missing(directories: Directories, reader: OutputReader) -> None:
    write(directories, "part-0", expected_lines()[:-1])
    reader.finish(EVENTS)


def _twice(directories: Directories, reader: OutputReader) -> None:
    write(directories, "part-0", expected_lines())
    reader.look()
    write(directories, "part-1", expected_lines()[:1])
    reader.look()


def _wrong(directories: Directories, reader: OutputReader) -> None:
    write(directories, "part-0", [expected_lines()[0] + "1"])
    reader.look()


def _unknown(directories: Directories, reader: OutputReader) -> None:
    write(directories, "part-0", [line("sum", 0, 10_000, "1@1")])
    reader.look()


def _beyond_the_input(directories: Directories, reader: OutputReader) -> None:
    write_limit(directories.limit, EVENTS // 2, False)
    write(directories, "part-0", expected_lines())
    reader.look()


def _gap(directories: Directories, reader: OutputReader) -> None:
    write(directories, "part-0", [text for text in expected_lines() if text.split()[2] != "1"])
    reader.look()


def _half_a_line(directories: Directories, reader: OutputReader) -> None:
    write(directories, "part-0", expected_lines()).write_text(expected_lines()[0])
    reader.look()


def _gone(directories: Directories, reader: OutputReader) -> None:
    path = write(directories, "part-0", expected_lines())
    reader.look()
    path.unlink()
    reader.finish(EVENTS)


def _changed(directories: Directories, reader: OutputReader) -> None:
    path = write(directories, "part-0", expected_lines())
    reader.look()
    with path.open("a") as file:
        file.write("more\n")
    reader.finish(EVENTS)


def _replaced(directories: Directories, reader: OutputReader) -> None:
    path = write(directories, "part-0", expected_lines())
    reader.look()
    write(directories, "part-1", expected_lines()).replace(path)
    reader.finish(EVENTS)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (_missing, "1 results are missing"),
        (_twice, "twice: "),
        (_wrong, "but expected"),
        (_unknown, "but expected None"),
        (_beyond_the_input, "but expected None"),
        (_gap, "visible although earlier ones are not"),
        (_half_a_line, "ends in the middle of a line"),
        (_gone, "was visible and is gone"),
        (_changed, "when it became visible and is"),
        (_replaced, "when it became visible and is"),
    ],
)
def test_the_reader_notices(
    fault: Callable[[Directories, OutputReader], None],
    message: str,
    directories: Directories,
    reader: OutputReader,
) -> None:
    with pytest.raises(Violation, match=message):
        fault(directories, reader)


def test_the_job_gives_what_is_expected_when_nothing_happens(
    directories: Directories, reader: OutputReader, in_process_env: Any
) -> None:
    env = in_process_env(2, {"execution.checkpointing.interval": "50 ms"})
    build(env, directories, 0)
    env.execute("chaos without faults")
    reader.look()
    # alarms go off in processing time: those that the job was still there for
    expected = Counter(text.split()[0] for text in expected_lines())
    for kind in expected.keys() - {"alarm"}:
        assert reader.count(kind) == expected[kind], kind
    assert reader.count("alarm") <= expected["alarm"]
    assert list((directories.control / "violations").iterdir()) == []


def test_a_plan_is_the_seeds() -> None:
    assert make_plan(7, 50) == make_plan(7, 50)
    assert make_plan(7, 50) != make_plan(8, 50)
    kinds = all_kinds(cluster=False)
    assert {fault.kind for fault in make_plan(7, len(kinds)).faults} == set(kinds), "each once before any comes again"
    assert {kind.removeprefix("crash at ") for kind in kinds if kind.startswith("crash")} == set(POINTS)
    backends_and_modes = {(plan.backend, plan.mode) for plan in (make_plan(seed, 1) for seed in range(40))}
    assert len(backends_and_modes) == 6


def test_a_plan_for_epochs_has_their_own_faults_and_none_of_connections() -> None:
    kinds = all_kinds(cluster=False, execution=EPOCHS, retries=True)
    assert {"crash at epoch.processed", "error at epoch.end", RETRIED, SWITCH} <= set(kinds)
    assert "cut a data connection" not in kinds
    plan = make_plan(7, len(kinds), execution=EPOCHS, retries=True)
    assert {fault.kind for fault in plan.faults} == set(kinds)
    plans = [make_plan(seed, 1, kinds=[RETRIED], execution=EPOCHS) for seed in range(100)]
    retried = {(plan.faults[0].detail["in"], plan.faults[0].detail["after"]) for plan in plans}
    assert "encoder" not in {place for place, _ in retried}, "of that one nobody could tell"
    assert ("snapshot", "a kill") in retried
    assert ("snapshot", "an exception") not in retried, "that declines a checkpoint, and fails no task"


def test_an_agent_fails_where_it_is_told_and_cuts_connections(directories: Directories) -> None:
    agent = Agent()
    agent.open(directories.control, attempt=0, run=0)
    try:
        orders = directories.control / "orders"
        (orders / f"{os.getpid()}.raise").write_text("map")
        eventually(lambda: agent._raise_in == "map")
        agent.at("window")
        with pytest.raises(InjectedError):
            agent.at("map")
        agent.at("map")
        assert (orders / f"{os.getpid()}.raise.done").read_text() == "map"
    finally:
        agent.close()
    assert agent._thread is not None
    agent._thread.join(120)
    assert not agent._thread.is_alive()


PEER = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); sys.exit(len(s.recv(1)))"


def test_only_connections_to_other_slots_are_cut(directories: Directories) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with subprocess.Popen([sys.executable, "-c", PEER, str(address[1])]) as slot:
            to_slot, _ = server.accept()
            with to_slot, socket.create_connection(address) as stranger, server.accept()[0] as to_stranger:
                (directories.control / "slots" / f"{slot.pid}.json").write_text("{}")
                assert cut_data_connections(directories.control / "slots") == 1
                assert slot.wait(120) == 0, "its connection has ended"
                stranger.sendall(b"x")
                assert to_stranger.recv(1) == b"x"


def test_a_family_is_known_after_its_parent_is_gone() -> None:
    script = "import subprocess, sys; p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True); p.wait()"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        family = Family()
        family.look(parent.pid)
        parent.kill()
    assert family.alive() == [child]
    family.kill()
    eventually(lambda: family.alive() == [])

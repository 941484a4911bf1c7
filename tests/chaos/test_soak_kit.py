"""What a soak decides: which measures grow, and whether the output of its jobs is right."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.soak.jobs import JOBS, KEYS, STEP_MS, WINDOW_MS, check
from tests.support.soak.measures import directory_measures, process_measures
from tests.support.soak.verdict import Sample, as_table, trends

MINUTES = 60.0
NAME = "JobManager: memory MB"
WINDOWS, COUNTS, _ = JOBS


def samples(value: Callable[[float], float], name: str = NAME) -> list[Sample]:
    return [Sample(minute, {name: value(minute)}) for minute in map(float, range(int(MINUTES) + 1))]


@pytest.mark.parametrize(
    ("value", "grows"),
    [
        (lambda minute: 100.0, False),
        (lambda minute: 100.0 + minute * 1.1, True),  # 1.1 MB a minute
        (lambda minute: 100.0 + minute * 0.1, False),
        (lambda minute: 20.0 * min(minute, 9.0), False),  # only while it warms up
        (lambda minute: 100.0 + 500.0 * (minute == 59.0), False),  # once
        (lambda minute: 200.0 - minute, False),
        (lambda minute: 100.0 if minute < 40 else 160.0, True),
    ],
)
def test_what_grows_after_the_warm_up_is_told(value: Callable[[float], float], grows: bool) -> None:
    (trend,) = trends(samples(value), MINUTES)
    assert trend.grows is grows
    assert ("**grows**" in as_table([trend])) is grows


def test_each_kind_of_measure_has_a_tolerance() -> None:
    names = [*process_measures({"this": [os.getpid()]}), *directory_measures({"here": Path(__file__).parent})]
    for name in [*names, "JVM: live heap MB"]:
        (trend,) = trends(samples(lambda _: 1.0, name), MINUTES)
        assert trend.tolerance > 0


def test_files_are_counted_but_not_logs(tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "state").write_bytes(b"0" * (1 << 20))
    (tmp_path / "spark.log").write_bytes(b"0")
    assert directory_measures({"x": tmp_path}) == {"x: files": 1, "x: MB": 1.0}


def write(directory: Path, lines: list[str]) -> Path:
    directory.mkdir()
    (directory / "part-0").write_text("".join(f"{line}\n" for line in lines))
    return directory


def counts(records: int) -> list[str]:
    return [f"{number % KEYS} {number // KEYS + 1} {number}" for number in range(records)]


def windows(records: int) -> list[str]:
    found: dict[tuple[int, int], list[int]] = {}
    for number in range(records):
        found.setdefault((number % KEYS, number * STEP_MS // WINDOW_MS * WINDOW_MS), []).append(number)
    return [f"{key} {start} {len(numbers)} {sum(numbers)}" for (key, start), numbers in found.items()]


@pytest.mark.parametrize(("job", "lines"), [(COUNTS, counts), (WINDOWS, windows)])
def test_the_output_of_a_job_is_checked(tmp_path: Path, job: object, lines: Callable[[int], list[str]]) -> None:
    right = lines(1_234)
    assert check(job, write(tmp_path / "right", right)) == (1_234, [])  # type: ignore[arg-type]
    for name, wrong in (("lost", right[:40] + right[41:]), ("twice", [*right, right[40]])):
        _, problems = check(job, write(tmp_path / name, wrong))  # type: ignore[arg-type]
        assert problems, name


def test_a_record_that_was_counted_twice_is_noticed(tmp_path: Path) -> None:
    """Its output is there once, but state has it twice: the counts of its key have a gap."""
    lines = counts(400)
    key, count, number = lines[-1].split()
    _, problems = check(COUNTS, write(tmp_path / "output", [*lines[:-1], f"{key} {int(count) + 1} {number}"]))
    assert problems == [f"counts of key {key}: 1 lost, the first is {count}"]

"""Answers that take long to compute."""

from __future__ import annotations

import threading

import pytest

from firesteel.cluster.diagnostics.last_answer import LastAnswer
from firesteel.testing import eventually


class Counted:
    """Counts its calls; they wait while ``go`` is not set."""

    def __init__(self) -> None:
        self.calls = 0
        self.go = threading.Event()
        self.go.set()

    def __call__(self) -> int:
        self.calls += 1
        number = self.calls
        assert self.go.wait(60)
        return number


def test_a_quick_answer_is_of_now() -> None:
    answer = LastAnswer(Counted(), 60, "test-answer")
    assert [answer.get() for _ in range(3)] == [1, 2, 3]


def test_a_slow_answer_is_the_one_before_and_is_computed_once() -> None:
    counted = Counted()
    answer = LastAnswer(counted, 0.001, "test-answer")
    first = answer.get()
    counted.go.clear()
    assert [answer.get() for _ in range(3)] == [first] * 3
    assert counted.calls == first + 1
    counted.go.set()
    eventually(lambda: answer.get() > first)


def test_an_error_is_raised_and_forgotten() -> None:
    results = iter([1, RuntimeError("no Spark"), 3])

    def compute() -> int:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result  # type: ignore[return-value]

    answer = LastAnswer(compute, 60, "test-answer")
    assert answer.get() == 1
    with pytest.raises(RuntimeError, match="no Spark"):
        answer.get()
    assert answer.get() == 3

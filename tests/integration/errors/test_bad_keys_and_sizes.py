"""Keys that are no keys, records and results that are very large: what a user sees, run in process."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from typing import Any

import pytest

from firesteel.common.errors import RecordSerializationError
from firesteel.runtime.codegen.loops import LOOPS
from tests.support.jobs.failing_jobs import Env, digits, fail

# -- keys ----------------------------------------------------------------------------------------------------


class Plain:
    __hash__ = object.__hash__


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize(
    ("selector", "key"),
    [
        (lambda x: None if x == 4 else x, "None"),
        (lambda x: float("nan") if x == 4 else x, "nan"),
        (lambda x: (1, float("nan")) if x == 4 else x, "(1, nan)"),
        (lambda x: [x] if x == 4 else x, None),
        (lambda x: {x: x} if x == 4 else x, None),
        (lambda x: (1, [x]) if x == 4 else x, None),
    ],
    ids=["None", "NaN", "NaN in a tuple", "list", "dict", "list in a tuple"],
)
def test_a_bad_key(in_process_env: Env, parallelism: int, selector: Any, key: str | None) -> None:
    failure = fail(in_process_env(parallelism), lambda env: digits(env).key_by(selector).map(lambda x: x).print())
    assert (failure.error_type, failure.operator, failure.during) == ("InvalidKeyError", "Map", "key_by")
    assert (failure.element, failure.key) == ("4", key)
    assert failure.user_file == __file__
    assert failure.hint is not None


def test_a_huge_key_and_one_without_a_stable_form(in_process_env: Env) -> None:
    for selector in (lambda x: "x" * 2_000_000, lambda x: Plain()):
        failure = fail(in_process_env(1), lambda env, k=selector: digits(env).key_by(k).map(lambda x: x).print())
        assert failure.error_type == "InvalidKeyError"
        assert failure.key is not None
        assert len(failure.key) <= 200
        assert failure.hint is not None


@pytest.mark.parametrize(
    ("elements", "selector", "error_type"),
    [
        ([{"id": 1}, {"name": 2}], lambda x: x["id"], "KeyError"),
        ([(1, 2), (3,)], lambda x: x[1], "IndexError"),
        ([Plain()], lambda x: x.id, "AttributeError"),
        ([5], lambda x: x[0], "TypeError"),
    ],
)
def test_a_field_that_the_key_selector_does_not_find(
    in_process_env: Env, elements: list[Any], selector: Any, error_type: str
) -> None:
    failure = fail(in_process_env(1), lambda env: env.from_collection(elements).key_by(selector).map(str).print())
    assert (failure.error_type, failure.during) == (error_type, "key_by")
    assert failure.element is not None
    assert failure.hint is not None


# -- large ---------------------------------------------------------------------------------------------------


def test_a_million_results_of_one_element_are_taken_bit_by_bit(in_process_env: Env) -> None:
    def million(_: int) -> Any:
        yield from range(1_000_000)

    stream = in_process_env(2).from_collection([1]).flat_map(million).rebalance().filter(lambda x: x % 10 == 0)
    tracemalloc.start()
    try:
        taken = sum(1 for _ in stream.execute_and_collect())
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken == 100_000
    assert peak < 30_000_000  # as a list the results would take more than 36 MB


def test_a_record_of_100_mb_goes_from_slot_to_slot(in_process_env: Env) -> None:
    stream = in_process_env(2).from_collection([1, 2]).map(lambda _: bytes(100_000_000)).rebalance().map(len)
    assert list(stream.execute_and_collect()) == [100_000_000] * 2


def explode(value: Any) -> Any:
    raise ValueError(f"cannot take {value}")


def test_a_result_that_cannot_be_read_by_the_client_ends_the_job(in_process_env: Env) -> None:
    class Unreadable:
        def __reduce__(self) -> Any:
            return explode, ("this",)

    with pytest.raises(RecordSerializationError):
        list(in_process_env(1).from_sequence(1, 10_000_000).map(lambda _: Unreadable()).execute_and_collect())
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("firesteel-")] == []


def test_nothing_is_kept_of_a_job_that_is_over(in_process_env: Env) -> None:
    env = in_process_env(1)
    before = set(LOOPS)
    digits(env).key_by(lambda x: x).reduce(max).map(lambda x: x).print()
    env.execute()
    gc.collect()
    sources = [source for name, source in LOOPS.items() if name not in before]
    operators = [line.operator for source in sources for line in source.lines.values()]
    assert [operator.descriptor.name for operator in operators if operator is not None] == []  # type: ignore[attr-defined]

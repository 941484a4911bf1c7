"""Keys that are equal but said otherwise are one key, in every execution and backend."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.common import Configuration, Row, Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction
from firesteel.datastream.state import MapStateDescriptor
from firesteel.testing import TestingSource, collect, test_environment

KEYS: dict[str, tuple[Any, Any]] = {
    "rows": (Row(name="Ada", age=36), Row(age=36, name="Ada")),
    "rows in tuples": (("x", Row(name="Ada", age=36)), ("x", Row(age=36, name="Ada"))),
    "times": (
        datetime.time(12, tzinfo=datetime.timezone.utc),
        datetime.time(13, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
    ),
}
EXECUTIONS = {
    "streaming": {},
    "epochs": {"execution.exchange": "spark"},
    "batch": {"execution.runtime-mode": "BATCH"},
}
every_key = pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
every_execution = pytest.mark.parametrize("settings", EXECUTIONS.values(), ids=EXECUTIONS)
every_backend = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])


class Counts(KeyedProcessFunction):
    """How often each map key has come."""

    def open(self, runtime_context: Any) -> None:
        descriptor = MapStateDescriptor("counts", Types.PICKLED_BYTE_ARRAY(), Types.LONG())
        self.counts = runtime_context.get_map_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Iterator[int]:
        count = (self.counts.get(value) or 0) + 1
        self.counts.put(value, count)
        yield count


def numbers(settings: dict[str, str], backend: str, parallelism: int, keys: tuple[Any, Any]) -> Any:
    """Three records of each of the two keys, which come from different subtasks."""
    configuration = Configuration().set_string("state.backend.type", backend)
    for key, value in settings.items():
        configuration.set_string(key, value)
    env = test_environment(parallelism=parallelism, configuration=configuration)
    source = TestingSource.with_splits([(keys[0], 1)] * 3, [(keys[1], 1)] * 3)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "pairs")


@every_key
@every_execution
@every_backend
@pytest.mark.parametrize("parallelism", [1, 2])
def test_as_keys_of_a_stream(settings: dict[str, str], backend: str, parallelism: int, keys: tuple[Any, Any]) -> None:
    stream = numbers(settings, backend, parallelism, keys)
    sums = stream.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).map(lambda pair: pair[1])
    assert sorted(collect(sums)) == ([6] if "execution.runtime-mode" in settings else [1, 2, 3, 4, 5, 6])


@every_key
@every_backend
def test_as_keys_of_a_map_state(backend: str, keys: tuple[Any, Any]) -> None:
    stream = numbers({}, backend, 1, keys)
    assert collect(stream.map(lambda pair: pair[0]).key_by(lambda _: "all").process(Counts())) == [1, 2, 3, 4, 5, 6]

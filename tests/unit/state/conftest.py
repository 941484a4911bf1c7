"""Every keyed state backend, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.testing import FakeClock
from tests.support.state.keyed_backends import BACKENDS, Workbench
from tests.support.state.keyed_states import MAX


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1000)


@pytest.fixture(params=BACKENDS)
def bench(request: pytest.FixtureRequest, clock: FakeClock) -> Iterator[Workbench]:
    bench = Workbench(request.param, MAX, clock)
    yield bench
    bench.close()


@pytest.fixture
def backend(bench: Workbench) -> Any:
    backend = bench.backend()
    backend.key = "a"
    return backend

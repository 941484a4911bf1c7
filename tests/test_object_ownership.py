"""Programs that change what they have emitted, stored or read: the same results in every execution and backend.

With ``pipeline.object-reuse: false``, the default, no function sees what another one, or itself later, does to an
object it was given. The results do not depend on the state backend, on chaining or on where batches of records end.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.ownership.programs import PROGRAMS

BACKENDS = ("hashmap", "rocksdb")
every_program = pytest.mark.parametrize("name", PROGRAMS)
every_backend = pytest.mark.parametrize("backend", BACKENDS)

Env = Callable[..., Any]


def _results(name: str, env: Any, chained: bool = True) -> list[str]:
    if not chained:
        env.disable_operator_chaining()
    with PROGRAMS[name].build(env).execute_and_collect() as results:
        return sorted(map(repr, results))


def _check(name: str, make_env: Env, settings: dict[str, str], *, is_batch: bool = False) -> None:
    """With chains and without, and with two subtasks, between which every record may go."""
    expected = sorted(map(repr, PROGRAMS[name].batch if is_batch else PROGRAMS[name].results))
    for parallelism, chained in ((1, True), (1, False), (2, False)):
        found = _results(name, make_env(parallelism, settings), chained)
        assert found == expected, f"parallelism {parallelism}, {'chained' if chained else 'not chained'}"


@every_backend
@every_program
def test_as_a_stream(name: str, backend: str, in_process_env: Env) -> None:
    _check(name, in_process_env, {"execution.runtime-mode": "STREAMING", "state.backend.type": backend})


@every_program
def test_with_incremental_checkpoints(name: str, in_process_env: Env, tmp_path: Path) -> None:
    settings = {
        "execution.runtime-mode": "STREAMING",
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.incremental": "true",
        "execution.checkpointing.dir": str(tmp_path),
    }
    expected = sorted(map(repr, PROGRAMS[name].results))
    assert _results(name, in_process_env(1, settings)) == expected


@every_backend
@every_program
def test_in_epochs(name: str, backend: str, in_process_env: Env, tmp_path: Path) -> None:
    settings = {
        "execution.runtime-mode": "STREAMING",
        "execution.exchange": "spark",
        "execution.epoch.max-records": "2",
        "execution.checkpointing.dir": str(tmp_path),
        "state.backend.type": backend,
    }
    expected = sorted(map(repr, PROGRAMS[name].results))
    assert _results(name, in_process_env(2, settings)) == expected
    if backend == "hashmap":
        assert _results(name, in_process_env(1, settings), chained=False) == expected


@every_program
def test_as_a_batch(name: str, in_process_env: Env) -> None:
    _check(name, in_process_env, {"execution.runtime-mode": "BATCH"}, is_batch=True)

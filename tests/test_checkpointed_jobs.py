"""Every job under tests/jobs with checkpoints, against the same golden file as without.

At parallelism 2 with checkpoints; and restored from its third checkpoint, a canonical savepoint, at parallelism 3 on
the other backend. The whole run without checkpoints is in test_jobs.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.runtime.state.registry import BACKENDS
from tests.support.jobs.checkpointed_jobs import checkpointed, run_in_two_parts, run_with_checkpoints
from tests.support.jobs.golden_jobs import JOB_NAMES, load_job, read_golden

OTHER = dict(zip(BACKENDS, [*BACKENDS][1:] + [*BACKENDS][:1], strict=True))

every_job = pytest.mark.parametrize("name", JOB_NAMES)
every_backend = pytest.mark.parametrize("backend", sorted(OTHER))


@every_backend
@every_job
def test_with_checkpoints_in_process(name: str, backend: str, in_process_env: Any, tmp_path: Path) -> None:
    env = checkpointed(in_process_env(2), tmp_path, state__backend__type=backend)
    lines, completed = run_with_checkpoints(name, env, tmp_path)
    assert lines == read_golden(name)
    assert completed >= 1


@every_job
def test_with_unaligned_checkpoints_in_process(name: str, in_process_env: Any, tmp_path: Path) -> None:
    env = checkpointed(in_process_env(2), tmp_path, execution__checkpointing__unaligned__enabled="true")
    lines, completed = run_with_checkpoints(name, env, tmp_path)
    assert lines == read_golden(name)
    assert completed >= 1


@every_backend
@every_job
def test_restored_at_another_parallelism_on_the_other_backend_in_process(
    name: str, backend: str, in_process_env: Any, tmp_path: Path
) -> None:
    def restored(path: str) -> StreamExecutionEnvironment:
        return checkpointed(
            in_process_env(3),
            tmp_path,
            state__backend__type=OTHER[backend],
            execution__state_recovery__path=path,
        )

    first = checkpointed(in_process_env(2), tmp_path, state__backend__type=backend)
    lines, _stopped = run_in_two_parts(name, first, restored, tmp_path)
    comparable = getattr(load_job(name), "after_restore", str)
    assert sorted(map(comparable, lines)) == sorted(map(comparable, read_golden(name)))
    if comparable is str:
        assert lines == read_golden(name)

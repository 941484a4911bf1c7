"""A Python worker of Spark is killed in each stage of a batch job."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.jobs.batch_faults import STAGES, build, expected, hidden_files, lines, who_waits
from tests.support.jobs.endless import ended


@pytest.mark.parametrize("stage", STAGES)
def test_the_result_is_the_same_and_every_file_there_once(stage: str, tmp_path: Path, spark_env: Any) -> None:
    env = spark_env(2)
    build(env, tmp_path, held=stage)
    client = env.execute_async("batch")
    os.kill(who_waits(tmp_path), signal.SIGKILL)
    assert ended(client, 120) is None
    assert lines(tmp_path) == expected()
    assert hidden_files(tmp_path) == []

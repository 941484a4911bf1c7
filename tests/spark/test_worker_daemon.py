"""The daemon that forks the Python workers of an embedded Spark."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


class Forked:
    """Emits what is known of the process that forked the worker."""

    def __call__(self, _record: int) -> tuple[bool, int]:
        parent = Path("/proc") / str(os.getppid())
        command = (parent / "cmdline").read_text()
        return "firesteel.spark.session.worker_daemon" in command, len(list((parent / "task").iterdir()))


def test_workers_are_forked_by_a_process_without_threads(spark_env: Any) -> None:
    """A thread of the daemon would be missing in its workers, with the locks that it held."""
    with spark_env(1).from_collection([0]).map(Forked()).execute_and_collect() as results:
        assert list(results) == [(True, 1)]

"""A writer in a process of its own, which is killed with SIGKILL right before or right after a commit.

Run as a program it is that process: it finds what to do in a file, and leaves its checkpoint in another.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cloudpickle

from firesteel.process import fault_points
from firesteel.spi.sink import Sink
from firesteel.testing.conformance.errors import ConformanceError
from firesteel.testing.conformance.sink_attempt import SinkAttempt
from firesteel.testing.snapshots import HarnessSnapshot

__all__ = ["write_and_kill"]


def write_and_kill(sink: Sink, records: Sequence[Any], job_id: str, point: str, timeout_s: float) -> HarnessSnapshot:
    """Lets another process write records, take checkpoint 1, be notified of it, and be killed at a fault point.

    Returns the checkpoint.
    """
    with tempfile.TemporaryDirectory(prefix="conformance") as directory:
        order, checkpoint = Path(directory, "order"), Path(directory, "checkpoint")
        order.write_bytes(cloudpickle.dumps((sink, list(records), job_id, point, timeout_s), 5))
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-m", __name__, str(order), str(checkpoint)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if done.returncode != -signal.SIGKILL or not checkpoint.exists():
            raise ConformanceError(f"The writer's process ended before it was killed:\n{done.stderr}")
        snapshot: HarnessSnapshot = pickle.loads(checkpoint.read_bytes())
        return snapshot


def _main(order: str, checkpoint: str) -> None:
    sink, records, job_id, point, timeout_s = pickle.loads(Path(order).read_bytes())
    attempt = SinkAttempt(sink, 1, job_id=job_id, timeout_s=timeout_s)
    attempt.write(records)
    Path(checkpoint).write_bytes(cloudpickle.dumps(attempt.snapshot(1), 5))
    fault_points.arm(f"{point}=kill")
    attempt.complete(1)
    # a sink in one phase has nothing to commit
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    _main(*sys.argv[1:])

"""Entry point of a JobManager process: ``python -m firesteel.cluster.main launch.json``."""

from __future__ import annotations

import logging
import sys

from firesteel.client.local_clusters import cluster_directory
from firesteel.cluster.diagnostics.logs import setup_logging
from firesteel.cluster.jobmanager import AGAIN, JobManager
from firesteel.cluster.launch import Launch
from firesteel.common.errors import FiresteelError
from firesteel.process.pyflink_names import resolve_pyflink_names

__all__ = ["main"]

_log = logging.getLogger(__name__)


def main(path: str, *, again: bool = False) -> int:
    """Runs the JobManager that the file describes; its exit code."""
    resolve_pyflink_names()
    try:
        launch = Launch.read(path)
        logs = setup_logging(cluster_directory(launch.configuration) / "log")
        manager = JobManager(launch, logs, again=again)
        try:
            return manager.run()
        except Exception as error:
            manager.begin_anew_after(error)
            raise
    except FiresteelError as error:
        # read by the process that started this one
        print(f"firesteel: {error}", file=sys.stderr)  # noqa: T201
        _log.error("%s", error)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], again=AGAIN in sys.argv[2:]))

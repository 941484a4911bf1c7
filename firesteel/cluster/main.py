"""Entry point of a JobManager process: ``python -m firesteel.cluster.main launch.json``."""

from __future__ import annotations

import logging
import sys

from firesteel.client.local_clusters import local_cluster
from firesteel.cluster.diagnostics.logs import LogFiles, setup_logging
from firesteel.cluster.jobmanager import AGAIN, JobManager
from firesteel.cluster.launch import Launch
from firesteel.common.errors import FiresteelError
from firesteel.config import log_options
from firesteel.config.configuration import Configuration
from firesteel.process.log_levels import LEVELS
from firesteel.process.pyflink_names import resolve_pyflink_names

__all__ = ["main"]

_log = logging.getLogger(__name__)


def main(path: str, *, again: bool = False) -> int:
    """Runs the JobManager that the file describes; its exit code."""
    resolve_pyflink_names()
    try:
        launch = Launch.read(path)
        logs = _setup_logging(launch.configuration)
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


def _setup_logging(configuration: Configuration) -> LogFiles:
    return setup_logging(
        local_cluster(configuration.to_dict()).log_directory,
        kept=max(1, configuration.get(log_options.LOG_FILES)),
        level=LEVELS[configuration.get(log_options.LOG_LEVEL)],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], again=AGAIN in sys.argv[2:]))

"""Detects that a Spark cluster has lost the application of a JobManager."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable

__all__ = ["LOST_AFTER_S", "ApplicationWatch", "can_reach_master"]

_log = logging.getLogger(__name__)
LOST_AFTER_S = 60.0
"""How long an application that had executors has none before it counts as lost."""
_CONNECT_TIMEOUT_S = 5.0


class ApplicationWatch:
    """Decides whether the application is lost, from the number of its slots.

    A Master that is started again without recovery (``spark.deploy.recoveryMode`` NONE, Spark's default) does not know
    the application. Its executors are killed, and Spark's client waits without end for a Master that knows it. As long
    as no Master can be reached, that is what there is to do. Once one can, and no executor comes, a new application
    must be registered.
    """

    def __init__(self, can_reach_master: Callable[[], bool]):
        self._can_reach_master = can_reach_master
        self._had_slots = False
        self._none_since: float | None = None
        self._has_told = False

    def is_lost(self, slots: int, now: float) -> bool:
        """Whether the application is lost, if it has so many slots now (monotonic seconds)."""
        if slots > 0:
            if self._none_since is not None:
                _log.info("Spark has executors again, with %d slots.", slots)
            self._had_slots, self._none_since, self._has_told = True, None, False
            return False
        if not self._had_slots:
            return False  # they are still to come
        if self._none_since is None:
            self._none_since = now
            _log.warning("Spark has lost all its executors: jobs wait for new ones.")
        if now - self._none_since < LOST_AFTER_S:
            return False
        if self._can_reach_master():
            return True
        if not self._has_told:
            self._has_told = True
            _log.error("Spark has had no executors for %g s, and its Master cannot be reached.", LOST_AFTER_S)
        return False


def can_reach_master(master: str) -> bool:
    """Whether any Master of a standalone cluster takes connections; ``master`` is spark://host:port,host:port."""
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT_S).close()
        except (OSError, ValueError):
            continue
        return True
    return False

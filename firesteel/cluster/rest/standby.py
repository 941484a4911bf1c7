"""REST responses of a standby JobManager."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from firesteel.cluster.rest.replies import Reply, error_reply
from firesteel.common.errors import FiresteelError

__all__ = ["LEADER_HEADER", "StandbyRoutes"]

LEADER_HEADER = b"x-firesteel-leader"


class StandbyRoutes:
    """Sends clients to the leader: reads with a redirect, everything else with a 503 that names it.

    ``leader_address`` gives the leader's ``host:port``, or None while there is none; it may block.
    """

    def __init__(self, leader_address: Callable[[], str | None]):
        self._leader_address = leader_address

    def reply(self, method: str, target: str, *, scheme: str, own_addresses: Sequence[str]) -> Reply:
        """The answer to one request; ``target`` is its path and query."""
        try:
            leader = self._leader_address()
        except FiresteelError as error:
            return error_reply(503, [str(error)])
        if leader is None or leader in own_addresses or not leader.isascii() or not leader.isprintable():
            return error_reply(
                503,
                ["This JobManager is a standby, and there is no leader at the moment: try again in a few seconds."],
                [(b"retry-after", b"1")],
            )
        headers = [(LEADER_HEADER, leader.encode())]
        messages = [f"This JobManager is a standby; the leader is at {leader}."]
        if method not in ("GET", "HEAD"):
            return error_reply(503, messages, headers)
        headers.append((b"location", f"{scheme}://{leader}{target}".encode()))
        return error_reply(307, messages, headers)

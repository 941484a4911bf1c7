"""Errors of a client before a cluster has done anything."""

from __future__ import annotations

from firesteel.common.errors import FiresteelError

__all__ = ["ClusterNotFoundError", "UsageError"]


class UsageError(FiresteelError):
    """A request that cannot be carried out: an invalid argument, or a program that cannot be loaded."""


class ClusterNotFoundError(FiresteelError):
    """There is no cluster, or it does not respond."""

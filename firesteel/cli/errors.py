"""What a command says when it cannot even begin."""

from __future__ import annotations

from firesteel.common.errors import FiresteelError

__all__ = ["ClusterNotFoundError", "CommandError"]


class CommandError(FiresteelError):
    """The command cannot do what it was asked to: a wrong argument, a program that cannot be loaded."""


class ClusterNotFoundError(FiresteelError):
    """There is no cluster, or it does not answer."""

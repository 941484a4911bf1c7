"""Connects to the cluster selected by the options of a command."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from firesteel.cli.terminal.settings import settings_of

if TYPE_CHECKING:
    from firesteel.client.connection import ClusterAddress, ClusterClient

__all__ = ["cluster_settings", "connect", "find_cluster", "on_cluster"]

Command = Callable[[argparse.Namespace], int]


def on_cluster(command: Callable[[argparse.Namespace, ClusterClient], int]) -> Command:
    """Passes a command the client of the cluster selected by its options."""

    @functools.wraps(command)
    def run(options: argparse.Namespace) -> int:
        with connect(options).client() as client:
            return command(options, client)

    return run


def connect(options: argparse.Namespace) -> ClusterAddress:
    """Connects to the cluster selected by the options; raises ClusterNotFoundError if there is none."""
    from firesteel.client import discovery

    return discovery.connect(cluster_settings(options), options.jobmanager, options.cluster_id)


def find_cluster(options: argparse.Namespace) -> ClusterAddress | None:
    """The cluster selected by the options, or None."""
    from firesteel.client import discovery

    return discovery.find_cluster(cluster_settings(options), options.jobmanager, options.cluster_id)


def cluster_settings(options: argparse.Namespace) -> dict[str, str]:
    """The cluster settings given by the options; dedicated options take precedence over ``-D``."""
    from firesteel.config import cluster_options

    settings = settings_of(options)
    if options.cluster_id is not None:
        settings[cluster_options.CLUSTER_ID.key] = options.cluster_id
    if getattr(options, "cluster_directory", None) is not None:
        settings[cluster_options.CLUSTER_DIRECTORY.key] = options.cluster_directory
    return settings

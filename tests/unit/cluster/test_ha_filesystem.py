"""High availability in a shared directory: conformance, and leaders that die or stop in the middle of any step."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ha_conformance import Cluster, HighAvailabilityConformance, Member, content
from ha_leader import LeaderProcess, job, job_id, result

from firesteel.cluster.ha.filesystem_election import FileSystemHighAvailability, FileSystemLeadership
from firesteel.cluster.ha.filesystem_store import Epochs
from firesteel.cluster.ha.services import FencedError, HighAvailabilityError, Leadership
from firesteel.common import fault_points
from firesteel.testing import eventually

LEASE_S = 0.3
NEVER_S = 600.0
"""A lease that runs out in no test: whoever takes over must have known by other means."""

TAKEOVER = ["ha.claim.prepared", "ha.claimed", "ha.sealed", "ha.copied", "ha.complete"]
WRITE = ["ha.record.written", "ha.record.stored", "ha.record.deleted"]


class DirectoryCluster(Cluster):
    def __init__(self, directory: Path):
        super().__init__()
        self.directory = directory

    def make_services(self) -> FileSystemHighAvailability:
        return FileSystemHighAvailability(str(self.directory), LEASE_S, retained_results=5)

    def silence(self, member: Member) -> None:
        leadership = member.services._leadership  # type: ignore[attr-defined]
        leadership._lease._renew = threading.Event().wait


class TestFileSystemHighAvailability(HighAvailabilityConformance):
    def make_cluster(self, request: pytest.FixtureRequest) -> DirectoryCluster:
        return DirectoryCluster(request.getfixturevalue("tmp_path"))

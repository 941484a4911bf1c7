"""The cluster of a chaos run: two JobManagers, their Spark, and what they keep their jobs in."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

from firesteel.testing.services.zookeeper_server import ZooKeeperServer
from tests.support.chaos.namespace import Clock, Mount
from tests.support.chaos.processes import ROOT, kill
from tests.support.processes import command_line, descendants, is_of_worker_daemon, listening_processes
from tests.support.services.job_managers import NO_REDIRECTS, JobManagerProcess
from tests.support.services.standalone_cluster import SHORT_LIVED, StandaloneCluster

__all__ = ["DIRECTORY", "EMBEDDED", "STANDALONE", "ZOOKEEPER", "ChaosCluster"]

EMBEDDED, STANDALONE = "embedded Spark", "standalone cluster"
DIRECTORY, ZOOKEEPER = "a shared directory", "ZooKeeper"
ASK_S = 2.0
SLOTS = 12
WORKERS = 2


class ChaosCluster:
    """Two JobManagers, of which one leads most of the time. Whoever has ended is started again by `see_to_it`."""

    def __init__(self, root: Path, spark: str, store: str, environment: Mapping[str, str], say: Callable[[str], None]):
        self.root = root
        self.spark = spark
        self.store = store
        self._say = say
        self._environment = dict(environment)
        self._clocks = [Clock(root, name) for name in ("a", "b", "spark")]
        self.managers: list[JobManagerProcess] = []
        self.checkpoints = Mount(root / "checkpoints")
        self.shared = Mount(root / "shared")
        self.zookeeper: ZooKeeperServer | None = None
        self.standalone: StandaloneCluster | None = None
        self._started = 0
        for name in ("cluster", "tmp"):
            (root / name).mkdir()

    def start(self) -> None:
        """Starts everything; returns before a JobManager leads."""
        if self.store == ZOOKEEPER:
            self.zookeeper = ZooKeeperServer().start()
        if self.spark == STANDALONE:
            (self.root / "spark").mkdir()
            self.standalone = StandaloneCluster(
                self.root / "spark", {**self._environment, **self._clocks[2].environment}
            )
            self.standalone.add_workers(WORKERS, cores=SLOTS)
        self.see_to_it()

    @property
    def clocks(self) -> list[Clock]:
        """Of the JobManagers with all that they started, and of a standalone cluster."""
        return self._clocks if self.standalone is not None else self._clocks[:2]

    def see_to_it(self) -> None:
        """Starts a JobManager, or a Spark worker, for each that has ended."""
        for manager in [manager for manager in self.managers if manager.has_ended()]:
            self.managers.remove(manager)
        while len(self.managers) < 2:
            environment = {**self._environment, **self._clocks[self._started % 2].environment}
            self.managers.append(JobManagerProcess(self.root / "cluster", self._settings(), environment))
            self._started += 1
            self._say(f"  JobManager {self.managers[-1].pid} starts")
        if self.standalone is not None:
            self.standalone.replace_workers(WORKERS, cores=SLOTS)

    def _settings(self) -> dict[str, str]:
        settings = {
            "high-availability.storageDir": str(self.shared.path / "ha"),
            "high-availability.filesystem.lease-duration": "6 s",
            "heartbeat.interval": "1 s",
            "heartbeat.timeout": "8 s",
            "taskmanager.numberOfTaskSlots": str(SLOTS),
            "state.backend.rocksdb.localdir": str(self.root / "tmp"),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": f"{SHORT_LIVED} -Djava.io.tmpdir={self.root / 'tmp'}",
        }
        if self.zookeeper is not None:
            settings |= {
                "high-availability.type": "zookeeper",
                "high-availability.zookeeper.quorum": self.zookeeper.address,
            }
        if self.standalone is not None:
            settings |= {
                "spark.master": self.standalone.url,
                # both have executors, so that a standby can take over at once
                "spark.cores.max": str(SLOTS),
                "spark.executor.cores": str(SLOTS // WORKERS),
                "spark.executor.memory": "512m",
                "spark.executor.extraJavaOptions": SHORT_LIVED,
                "spark.executorEnv.PYTHONPATH": str(ROOT),
            }
            settings |= {f"spark.executorEnv.{name}": value for name, value in self._environment.items()}
        return settings

    # ---- who is who -------------------------------------------------------------------------------

    def ask(self, manager: JobManagerProcess, path: str) -> Any:
        """What a JobManager answers; None if it does not lead, or does not answer soon."""
        with suppress(OSError, HTTPException, ValueError, KeyError):
            url = json.loads((manager.directory / "jobmanagers" / f"{manager.pid}.json").read_text())["url"]
            with NO_REDIRECTS.open(urllib.request.Request(f"{url.rstrip('/')}{path}"), timeout=ASK_S) as answer:
                return json.loads(answer.read())
        return None

    def leader(self) -> JobManagerProcess | None:
        """Who answers for the cluster."""
        return next((manager for manager in self.managers if self.ask(manager, "/overview") is not None), None)

    def standby(self) -> JobManagerProcess | None:
        """Who does not."""
        leader = self.leader()
        return next((manager for manager in self.managers if leader is not None and manager is not leader), None)

    def states(self) -> dict[str, str]:
        """The states of all jobs by id, as the leader has them; empty if nobody leads."""
        for manager in self.managers:
            answer = self.ask(manager, "/jobs/overview")
            if answer is not None:
                return {job["jid"]: job["state"] for job in answer["jobs"]}
        return {}

    def jvm_of(self, manager: JobManagerProcess) -> int | None:
        """The JVM that a JobManager has started."""
        return next((pid for pid in descendants(manager.pid) if "SparkSubmit" in command_line(pid)), None)

    def executors(self) -> list[int]:
        """The executors of a standalone cluster."""
        pids = self.standalone.pids.values() if self.standalone is not None else ()
        family = {child for pid in pids for child in descendants(pid)}
        return sorted(pid for pid in family if "CoarseGrainedExecutorBackend" in command_line(pid))

    def slots(self) -> list[int]:
        """Python workers that wait for connections of others: slots. If there are none, those of epochs."""
        roots = [manager.pid for manager in self.managers]
        if self.standalone is not None:
            roots += self.standalone.pids.values()
        family = {pid for root in roots for pid in descendants(root)}
        daemons = {pid for pid in family if is_of_worker_daemon(pid)}
        workers = {worker for daemon in daemons for worker in descendants(daemon)}
        return sorted(listening_processes(workers) or workers)

    def close(self) -> None:
        """Ends everything. The jobs have finished, or it does not matter any more."""
        for manager in self.managers:
            for pid in (*descendants(manager.pid), manager.pid):
                kill(pid)
        if self.standalone is not None:
            self.standalone.close()
        if self.zookeeper is not None:
            self.zookeeper.stop()
        for mount in (self.checkpoints, self.shared):
            mount.close()

"""A real Spark standalone cluster: a master and workers, each a process, from the pyspark package."""

from __future__ import annotations

import json
import os
import re
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark

from firesteel.testing import eventually
from firesteel.testing.services.processes import die_with_parent
from tests.support.processes import command_line, descendants, is_alive, is_of_worker_daemon

__all__ = ["Driver", "StandaloneCluster"]

TESTS = Path(__file__).parents[2]
START_S = 240.0
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that starts soon rather than runs fast."""
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)\s")


class StandaloneCluster:
    """A master on a port of its own choice, and workers. They end with the thread that starts them, however it ends."""

    def __init__(self, directory: Path, environment: Mapping[str, str] | None = None):
        self.directory = directory
        self._environment = dict(environment or {})
        self._processes: list[subprocess.Popen[bytes]] = []
        self.pids: dict[str, int] = {}
        """Of the master and the workers, by name."""
        _, log = self._start("master", "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")

        def url() -> str:
            match = _MASTER.search(log.read_text())
            assert match, log.read_text()
            return match[1]

        self.url = eventually(url, timeout=START_S, interval=0.05)

    def add_workers(self, count: int, cores: int = 1) -> list[subprocess.Popen[bytes]]:
        """More workers, of one core by default; returns once the master knows them."""
        started = [self._start_worker(cores) for _ in range(count)]

        def registered() -> None:
            for _, log in started:
                text = log.read_text()
                assert "Successfully registered with master" in text, text

        eventually(registered, timeout=START_S, interval=0.05)
        return [process for process, _ in started]

    def replace_workers(self, count: int, cores: int = 1) -> None:
        """Starts workers for those that have ended, up to so many; does not wait for them."""
        for name, pid in list(self.pids.items()):
            if name != "master" and not is_alive(pid):
                del self.pids[name]
        for _ in range(count + 1 - len(self.pids)):
            self._start_worker(cores)

    def _start_worker(self, cores: int) -> tuple[subprocess.Popen[bytes], Path]:
        name = f"worker-{len(self._processes)}"
        options = ("--host", "127.0.0.1", "--cores", str(cores), "--memory", "1g", "--webui-port", "0")
        return self._start(name, "worker.Worker", *options, "--work-dir", str(self.directory / name), self.url)

    @contextmanager
    def another_worker(self) -> Iterator[None]:
        """A worker for a while; its executor goes with it."""
        (process,) = self.add_workers(1)
        try:
            yield
        finally:
            _stop(process)

    def executor_workers(self) -> set[int]:
        """Python workers of all executors on this machine that belong to this cluster."""
        family = {pid for process in self._processes for pid in descendants(process.pid)}
        daemons = {pid for pid in family if is_of_worker_daemon(pid)}
        return {worker for daemon in daemons for worker in descendants(daemon)}

    def executor_of(self, worker: int) -> int:
        """The executor's process that a Python worker belongs to."""
        family = {pid for process in self._processes for pid in descendants(process.pid)}
        (executor,) = (
            pid for pid in family if "CoarseGrainedExecutorBackend" in command_line(pid) and worker in descendants(pid)
        )
        return executor

    def close(self) -> None:
        """Stops everything, workers first."""
        for process in reversed(self._processes):
            _stop(process)

    def _start(self, name: str, main: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Path]:
        log = self.directory / f"{name}.log"
        home = Path(pyspark.__file__).parent
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
            "SPARK_LOCAL_DIRS": str(self.directory),
            "SPARK_LOCAL_IP": "127.0.0.1",
            **self._environment,
        }
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=self.directory,
                preexec_fn=die_with_parent,
            )
        self._processes.append(process)
        self.pids[name] = process.pid
        return process, log


class Driver:
    """The driver process of tests/cluster/cluster_driver.py: attributes are its commands."""

    def __init__(self, cluster: StandaloneCluster, settings: Mapping[str, str] | None = None):
        path = str(TESTS.parent)
        configuration = {
            "spark.master": cluster.url,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": SHORT_LIVED,
            "spark.executorEnv.PYTHONPATH": path,
            **(settings or {}),
        }
        self._log = cluster.directory / "driver.log"
        with self._log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(TESTS / "cluster" / "cluster_driver.py"), json.dumps(configuration)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": path},
                cwd=cluster.directory,
            )

    def __call__(self, command: str, deadline_s: float = 300.0, **arguments: Any) -> Any:
        """What a command answers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"command": command, "arguments": arguments}).encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._read_line(deadline_s))
        assert "error" not in answer, answer["error"]
        return answer["answer"]

    def _read_line(self, deadline_s: float) -> bytes:
        assert self._process.stdout is not None
        end = time.monotonic() + deadline_s
        received = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not received.endswith(b"\n"):
                assert selector.select(max(0.0, end - time.monotonic())), f"no answer: {self._log.read_text()}"
                chunk = os.read(self._process.stdout.fileno(), 65536)
                assert chunk, f"the driver has ended: {self._log.read_text()}"
                received += chunk
        return received

    def close(self) -> None:
        """Lets the driver end by itself, which stops its SparkContext."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(120)
        finally:
            _stop(self._process)
            self._process.stdout.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that was started here and what it started, by their ids."""
    family = descendants(process.pid)
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(30)

    def gone() -> None:
        assert not [command_line(pid)[:80] for pid in family if is_alive(pid)]

    try:
        eventually(gone, timeout=60)
    except AssertionError:
        for pid in family:
            with suppress(ProcessLookupError):
                if is_alive(pid):
                    os.kill(pid, 9)

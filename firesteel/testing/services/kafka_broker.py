"""A real Kafka broker for tests: one KRaft node on loopback, from the jars that Maven fetches once.

python -m firesteel.testing.services.kafka_broker start --port 9092
python -m firesteel.testing.services.kafka_broker stop
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firesteel.testing.services.processes import (
    ServerProcess,
    ServiceUnavailable,
    cache_directory,
    free_ports,
    require_package,
)

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["KAFKA_VERSION", "KafkaBroker", "fetch_jars", "kafka_jars"]

KAFKA_VERSION = "4.1.0"
_SLF4J_VERSION = "1.7.36"
_CLUSTER_ID = "RmlyZXN0ZWVsLXRlc3RzLQ"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>firesteel</groupId><artifactId>{name}</artifactId><version>1</version><dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


def fetch_jars(name: str, dependencies: Sequence[tuple[str, str, str]], *, transitive: bool = True) -> Path:
    """A directory with these Maven artifacts (group, artifact, version) and all they need, fetched once."""
    directory = cache_directory("jars") / name
    if (directory / "complete").exists():
        return directory
    maven = shutil.which("mvn")
    if maven is None:
        raise ServiceUnavailable("Maven (mvn) is not installed.")
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".fetch-") as work:
        pom, libraries = Path(work) / "pom.xml", Path(work) / "libs"
        listed = "".join(_DEPENDENCY.format(*each, "" if transitive else _ALONE) for each in dependencies)
        pom.write_text(_POM.format(name=name, dependencies=listed), encoding="utf-8")
        done = subprocess.run(  # noqa: S603 - a command of ours
            [
                *(maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"),
                *(f"-DoutputDirectory={libraries}", "-DincludeScope=runtime"),
            ],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode != 0 or not libraries.is_dir():
            raise ServiceUnavailable(f"Maven could not fetch {name}: {(done.stdout + done.stderr)[-1000:].strip()}")
        (libraries / "complete").touch()
        try:
            libraries.rename(directory)
        except OSError:  # another process was faster
            if not (directory / "complete").exists():
                raise
    return directory


def kafka_jars() -> Path:
    """The directory with the broker's jars; fetched if they are not there yet."""
    if shutil.which("java") is None:
        raise ServiceUnavailable("Java is not installed.")
    return fetch_jars(
        f"kafka-{KAFKA_VERSION}",
        [("org.apache.kafka", "kafka_2.13", KAFKA_VERSION), ("org.slf4j", "slf4j-nop", _SLF4J_VERSION)],
    )


class KafkaBroker:
    """One broker that is its own controller; the data is deleted with it.

    ``settings`` are broker properties that go before those set here. The ports stay the same over a restart, so
    clients come back.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        port: int | None = None,
        heap: str = "384m",
        directory: str | None = None,
    ) -> None:
        require_package("confluent_kafka", "A Kafka broker")
        self._jars = kafka_jars()
        self._heap = heap
        self._keeps = directory is not None
        self._directory = Path(directory or tempfile.mkdtemp(prefix="firesteel-kafka-"))
        ports = free_ports(2)
        self.port = port or ports[0]
        self._server: ServerProcess | None = None
        self._properties = self._directory / "server.properties"
        if not self._properties.exists():
            self._format(ports[1], settings or {})

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect to."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The broker's process id."""
        assert self._server is not None, "the broker is not running"
        return self._server.pid

    def start(self, *, outlives: bool = False) -> KafkaBroker:
        """Starts the broker, which ends with this process unless it is to outlive it; returns when it answers."""
        self.launch(outlives=outlives)
        self.await_ready()
        return self

    def launch(self, *, outlives: bool = False) -> None:
        """Starts the broker's process; it ends with the thread that calls this, unless it is to outlive it."""
        command = [*self._java(f"-Xmx{self._heap}", f"-Xms{self._heap}"), "kafka.Kafka", str(self._properties)]
        self._server = ServerProcess("Kafka", command, log=self._directory / "broker.log", outlives=outlives)

    def await_ready(self) -> None:
        """Waits until the broker that was launched answers."""
        assert self._server is not None, "the broker is not running"
        self._server.await_ready(self._answers)

    def stop(self) -> None:
        """Stops the broker, in an orderly way if it was given a directory; otherwise its data goes with it."""
        if self._server is not None:
            (self._server.stop if self._keeps else self._server.kill)()
            self._server = None
        if not self._keeps:
            shutil.rmtree(self._directory, ignore_errors=True)

    def kill(self) -> None:
        """Kills the broker; its data stays, and ``start`` reuses it."""
        assert self._server is not None, "the broker is not running"
        self._server.kill()
        self._server = None

    def restart(self) -> None:
        """Kills the broker and starts it again."""
        self.kill()
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def admin(self) -> Any:
        """An AdminClient of confluent-kafka."""
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.bootstrap_servers})

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """Creates a topic, and returns its name once it can be used."""
        from confluent_kafka.admin import NewTopic

        admin = self.admin()
        created = admin.create_topics([NewTopic(name, partitions, 1, config=dict(config or {}))], operation_timeout=60)
        created[name].result(60)
        deadline = time.monotonic() + 60
        while len(admin.list_topics(name, timeout=60).topics[name].partitions) < partitions:
            if time.monotonic() > deadline:
                raise ServiceUnavailable(f"Topic '{name}' did not get its {partitions} partitions in 60 s.")
            time.sleep(0.01)
        return name

    def _java(self, *options: str) -> list[str]:
        java = shutil.which("java")
        assert java is not None
        return [java, *options, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", f"{self._jars}/*"]

    def _format(self, controller_port: int, settings: Mapping[str, str]) -> None:
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(self._directory / "data"),
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": "0",
            # one node, and quickly there again after a kill
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "2",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
            # event times of tests are often long ago, and old records would be deleted
            "log.retention.ms": "-1",
            **settings,
        }
        lines = [f"{key}={value}" for key, value in properties.items()]
        self._properties.write_text("\n".join(lines) + "\n", encoding="utf-8")
        data, kept = self._directory / "data", cache_directory("jars") / f"kafka-{KAFKA_VERSION}-bootstrap.checkpoint"
        if kept.exists():
            # the same for every node: it contains the features of the cluster. Formatting takes a JVM of its own
            data.mkdir(exist_ok=True)
            shutil.copy(kept, data / "bootstrap.checkpoint")
            meta = f"version=1\ncluster.id={_CLUSTER_ID}\nnode.id={properties['node.id']}\n"
            (data / "meta.properties").write_text(meta, encoding="utf-8")
            return
        command = [*self._java(), "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(self._properties)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603
        if done.returncode != 0:
            raise ServiceUnavailable(f"Kafka's storage could not be formatted: {(done.stdout + done.stderr)[-1000:]}")
        copied = kept.with_name(f".{self._directory.name}-{kept.name}")
        shutil.copy(data / "bootstrap.checkpoint", copied)
        copied.replace(kept)

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        client = AdminClient(
            {"bootstrap.servers": self.bootstrap_servers, "reconnect.backoff.max.ms": 100, "log_level": 0}
        )
        try:
            return bool(client.list_topics(timeout=5).brokers)
        except KafkaException:
            return False


def main(arguments: list[str] | None = None) -> None:
    """Starts a broker that outlives this command, or stops it."""
    parser = argparse.ArgumentParser(description="A Kafka broker on loopback, for trying things out.")
    parser.add_argument("action", choices=["start", "stop"])
    parser.add_argument("--port", type=int, help="9092 if a broker is started; all of them if they are stopped")
    chosen = parser.parse_args(arguments)
    brokers = cache_directory("kafka-brokers")
    if chosen.action == "stop":
        for record in brokers.glob("*/broker.json" if chosen.port is None else f"{chosen.port}/broker.json"):
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.kill(json.loads(record.read_text(encoding="utf-8"))["pid"], signal.SIGTERM)
            record.unlink()
        sys.stdout.write("Kafka is stopped.\n")
        return
    port = chosen.port or 9092
    directory = brokers / str(port)
    directory.mkdir(exist_ok=True)
    record = directory / "broker.json"
    broker = KafkaBroker(port=port, directory=str(directory)).start(outlives=True)
    record.write_text(json.dumps({"pid": broker.pid}), encoding="utf-8")
    sys.stdout.write(f"Kafka {KAFKA_VERSION} answers at {broker.bootstrap_servers}.\n")


if __name__ == "__main__":
    try:
        main()
    except ServiceUnavailable as error:
        sys.exit(str(error))

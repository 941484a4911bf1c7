"""The broker of the Kafka scenarios, a producer that feeds it and a consumer that watches, in their own process.

Run by the harness's own interpreter, so that all systems are measured by the same code: a line of JSON for every line
of stdin.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.cases import KEYS
from firesteel.testing.services.kafka_broker import KafkaBroker, fetch_jars

INPUT, OUTPUT = "input", "output"
PARTITIONS = 4
CONNECTORS = {
    "flink": [("org.apache.flink", "flink-sql-connector-kafka", "5.0.0-2.2")],
    "spark": [
        ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.0.0"),
        ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
        ("org.apache.kafka", "kafka-clients", "3.9.0"),
        ("org.apache.commons", "commons-pool2", "2.12.0"),
    ],
}
"""The jars of the peers' connectors: named one by one, as Spark's ask for repositories that need not be there."""
_BATCH = 2000


class Stage:
    """One broker with an input and an output topic."""

    def __init__(self) -> None:
        self._broker = KafkaBroker(heap="768m").start()
        for topic in (INPUT, OUTPUT):
            self._broker.create_topic(topic, PARTITIONS)
        self._watcher = self._consumer()
        self._latency: _Latency | None = None

    def servers(self) -> str:
        """Where the broker is."""
        return self._broker.bootstrap_servers

    def jars(self, connector: str) -> list[str]:
        """The jars of a peer's Kafka connector."""
        artifacts = CONNECTORS[connector]
        directory = fetch_jars(f"{connector}-kafka-{artifacts[0][2]}", artifacts, transitive=False)
        return [str(jar) for jar in sorted(directory.glob("*.jar"))]

    def fill(self, records: int) -> int:
        """Writes that many records ``key,value`` to the input."""
        settings = {"linger.ms": 50, "batch.size": 1_000_000, "queue.buffering.max.messages": 2_000_000}
        producer = Producer({"bootstrap.servers": self.servers(), **settings})
        for first in range(0, records, _BATCH):
            batch = [{"value": b"%d,%d" % (n % KEYS, n)} for n in range(first, min(first + _BATCH, records))]
            while len(producer) > 1_000_000:
                producer.poll(0.01)
            producer.produce_batch(INPUT, batch, first // _BATCH % PARTITIONS)
        producer.flush(120)
        return records

    def committed(self) -> int:
        """How many records of the output a read-committed consumer can see, control records among them."""
        offsets = (self._watcher.get_watermark_offsets(TopicPartition(OUTPUT, n), 10)[1] for n in range(PARTITIONS))
        return sum(offsets)

    def begin_latency(self, rate: int) -> bool:
        """Begins to produce records that carry the time, and to take the time when they come out."""
        self._latency = _Latency(self.servers(), self._consumer(), rate)
        return True

    def forget_latency(self) -> bool:
        """Begins to count now."""
        assert self._latency is not None
        self._latency.forget()
        return True

    def end_latency(self) -> dict[str, Any]:
        """Latencies in milliseconds."""
        assert self._latency is not None
        return self._latency.end()

    def stop(self) -> bool:
        """Ends the broker."""
        self._watcher.close()
        self._broker.stop()
        return True

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.servers(),
                "group.id": "watcher",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 5,
            }
        )


class _Latency:
    def __init__(self, servers: str, consumer: Consumer, rate: int) -> None:
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
        self._consumer = consumer
        self._consumer.assign([TopicPartition(OUTPUT, number, 0) for number in range(PARTITIONS)])
        self._rate = rate
        self._ended = threading.Event()
        self._taken: list[float] = []
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._produce, self._consume)]
        for thread in self._threads:
            thread.start()

    def _produce(self) -> None:
        began, made = time.monotonic(), 0
        while not self._ended.is_set():
            due = int((time.monotonic() - began) * self._rate)
            for number in range(made, due):
                self._producer.produce(INPUT, b"%d,%d" % (number % KEYS, time.monotonic_ns()))
            made = due
            self._producer.poll(0)
            time.sleep(0.001)

    def _consume(self) -> None:
        while not self._ended.is_set():
            # one at a time: asked for several, the client waits for all of them or its time is up
            message = self._consumer.poll(0.05)
            if message is not None and message.error() is None:
                made = int(message.value().split(b",")[1])
                self._taken.append((time.monotonic_ns() - made) / 1e6)

    def forget(self) -> None:
        """What was taken so far was of a job that is getting warm."""
        self._taken.clear()

    def end(self) -> dict[str, Any]:
        self._ended.set()
        for thread in self._threads:
            thread.join(10)
        self._consumer.close()
        taken = sorted(self._taken)
        if not taken:
            raise RuntimeError("no record has come out")
        return {
            "records": len(taken),
            "p50_ms": taken[len(taken) // 2],
            "p99_ms": taken[len(taken) * 99 // 100],
            "max_ms": taken[-1],
        }


def main() -> None:
    """Answers lines of the form {"do": name, "with": {…}}."""
    stage = Stage()
    sys.stdout.write("{}\n")
    sys.stdout.flush()
    try:
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = {"answer": getattr(stage, request["do"])(**request["with"])}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    finally:
        stage.stop()


if __name__ == "__main__":
    main()

"""A real Kafka cluster for tests: several KRaft nodes on loopback, brokers and controllers, of which one may fail."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from firesteel.testing.services.kafka_broker import KafkaBroker
from firesteel.testing.services.processes import ServiceUnavailable, free_ports

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["GROUPS_TOPIC", "TRANSACTIONS_TOPIC", "KafkaCluster"]

TRANSACTIONS_TOPIC = "__transaction_state"
"""Its one partition's leader is the coordinator of all transactions."""
GROUPS_TOPIC = "__consumer_offsets"
"""Its one partition's leader is the coordinator of all consumer groups."""
_DEADLINE_S = 60.0
_PAUSE_S = 0.05
_PLAIN = "PLAINTEXT"


class KafkaCluster:
    """Some brokers, by default three, numbered from 1; every topic has a replica on each.

    A record is written when two brokers have it, so one may be killed. ``settings`` are broker properties that go
    before those set here. Clients connect without password; ``listeners`` are protocols by which they also may, such as
    ``SASL_PLAINTEXT``: what these need is among the settings.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        brokers: int = 3,
        listeners: Collection[str] = (),
        heap: str = "256m",
    ) -> None:
        self._size = brokers
        names = (_PLAIN, *listeners)
        ports = free_ports(brokers * (len(names) + 1))
        controllers = [ports.pop() for _ in range(brokers)]
        self._ports = {name: [ports.pop() for _ in range(brokers)] for name in names}
        shared = {
            "controller.quorum.voters": ",".join(f"{n}@127.0.0.1:{port}" for n, port in enumerate(controllers, 1)),
            "listener.security.protocol.map": ",".join((f"CONTROLLER:{_PLAIN}", *(f"{each}:{each}" for each in names))),
            "offsets.topic.replication.factor": str(brokers),
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": str(brokers),
            "transaction.state.log.min.isr": str(min(brokers, 2)),
            "transaction.state.log.num.partitions": "1",
            "default.replication.factor": str(brokers),
            "min.insync.replicas": str(min(brokers, 2)),
            "broker.heartbeat.interval.ms": "500",
            # leaders change only by request of a test
            "auto.leader.rebalance.enable": "false",
            **(settings or {}),
        }
        self.brokers = [
            KafkaBroker(self._of_node(i, controllers[i], shared), port=self._ports[_PLAIN][i], heap=heap)
            for i in range(brokers)
        ]

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect to without a password."""
        return self.servers(_PLAIN)

    def servers(self, listener: str) -> str:
        """Where clients connect to by a protocol."""
        return ",".join(f"127.0.0.1:{port}" for port in self._ports[listener])

    def start(self) -> KafkaCluster:
        """Starts all brokers; returns when they know each other."""
        # none answers before a majority of them runs
        for broker in self.brokers:
            broker.launch()
        for broker in self.brokers:
            broker.await_ready()
        self._wait_for(lambda: len(self._client().list_topics(timeout=5).brokers) == self._size, "all brokers")
        return self

    def stop(self) -> None:
        """Ends all brokers and deletes their data."""
        for broker in self.brokers:
            broker.stop()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def kill(self, node: int) -> None:
        """Kills a broker; its data stays."""
        self.brokers[node - 1].kill()

    def start_again(self, node: int) -> None:
        """Starts a broker that was killed; returns when it has all that the others have."""
        self.brokers[node - 1].start()
        self.await_in_sync()

    def admin(self) -> Any:
        """An AdminClient of confluent-kafka."""
        return self._client()

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """Creates a topic, and returns its name once it can be used."""
        from confluent_kafka.admin import NewTopic

        admin = self._client()
        wanted = NewTopic(name, partitions, self._size, config=dict(config or {}))
        admin.create_topics([wanted], operation_timeout=30)[name].result(30)
        self._wait_for(lambda: len(self._partitions(name)) == partitions, f"the topic '{name}'")
        return name

    def leader(self, topic: str, partition: int = 0) -> int:
        """The broker that leads a partition."""
        return int(self._wait_for(lambda: max(self._partitions(topic)[partition].leader, 0), f"a leader of '{topic}'"))

    def move_leaders(self, topics: Iterable[str], node: int) -> None:
        """Makes a broker the leader of all partitions of topics: by reassignment and a preferred leader election."""
        from kafka import KafkaAdminClient
        from kafka import TopicPartition as Place

        from firesteel.connectors.kafka.sink.transactions import close_client

        places = [Place(topic, number) for topic in topics for number in self._partitions(topic)]
        order = [node, *(other for other in range(1, self._size + 1) if other != node)]
        client = KafkaAdminClient(bootstrap_servers=self.bootstrap_servers.split(","))
        try:
            refused = client.alter_partition_reassignments(dict.fromkeys(places, order))
            if any(refused.values()):
                raise ServiceUnavailable(f"Partitions could not be reassigned: {refused}")
            self._wait_for(lambda: not client.list_partition_reassignments(), "partitions to be reassigned")
        finally:
            close_client(client)
        self.elect_preferred(places)
        self._wait_for(
            lambda: all(self._partitions(place.topic)[place.partition].leader == node for place in places),
            f"broker {node} to lead",
        )

    def elect_preferred(self, places: Iterable[Any]) -> None:
        """Has the first replica of partitions (with ``topic`` and ``partition``) lead them."""
        from confluent_kafka import ElectionType, TopicPartition

        wanted = [TopicPartition(place.topic, place.partition) for place in places]
        admin = self._client()
        admin.elect_leaders(ElectionType.PREFERRED, wanted).result(_DEADLINE_S)

    def await_in_sync(self) -> None:
        """Waits until every partition has a leader, and all its replicas are up to date."""

        def is_in_sync() -> bool:
            topics = self._client().list_topics(timeout=5).topics.values()
            partitions = [partition for topic in topics for partition in topic.partitions.values()]
            return all(each.leader > 0 and len(each.isrs) == len(each.replicas) for each in partitions)

        self._wait_for(is_in_sync, "all replicas to be in sync")

    def _of_node(self, i: int, controller_port: int, shared: Mapping[str, str]) -> dict[str, str]:
        clients = ",".join(f"{name}://127.0.0.1:{ports[i]}" for name, ports in self._ports.items())
        return {
            "node.id": str(i + 1),
            "listeners": f"{clients},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": clients,
            **shared,
        }

    def _client(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})

    def _partitions(self, topic: str) -> dict[int, Any]:
        return dict(self._client().list_topics(topic, timeout=5).topics[topic].partitions)

    def _wait_for(self, condition: Any, what: str) -> Any:
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + _DEADLINE_S
        while True:
            with suppress(KafkaException):  # brokers are away, or do not know yet
                outcome = condition()
                if outcome:
                    return outcome
            if time.monotonic() > deadline:
                raise ServiceUnavailable(f"The Kafka cluster did not come to {what} in {_DEADLINE_S:g} s.")
            time.sleep(_PAUSE_S)

"""Three brokers: leaders and coordinators that change or die under a job, and clients that must show who they are."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from firesteel.common import Types
from firesteel.common.errors import JobExecutionError
from firesteel.datastream import KeyedProcessFunction
from firesteel.datastream.connectors.kafka import KafkaOffsetsInitializer
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.spi.sink import DeliveryGuarantee
from firesteel.testing import collect, eventually, test_environment
from firesteel.testing.services.kafka_cluster import GROUPS_TOPIC, TRANSACTIONS_TOPIC, KafkaCluster
from tests.support.jobs.running_jobs import environment, no_job_goes_on, start  # noqa: F401 - a fixture
from tests.support.services.certificates import make_certificates
from tests.support.services.kafka_sink_jobs import is_unblocked, messages, sink_builder
from tests.support.services.kafka_topics import add_partitions, builder, committed, produce, stream_of, values

DEADLINE_S = 120.0
AT_LEAST_ONCE, EXACTLY_ONCE = DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.EXACTLY_ONCE
KEYS = 10
PARTITIONS = 2
INPUT, OUTPUT, LOOSE = "input", "output", "loose"
"""``LOOSE`` is written at least once."""
PASSWORDS = {"alice": 'a "quoted" secret', "carol": "carol-secret", "nobody": "nobody-secret"}
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="{}" password="{}";'


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster() as started:
        yield started


# -- leaders ----------------------------------------------------------------------------------------


class Sum(KeyedProcessFunction):
    """Each number with the sum of its key so far: shows every record that is lost, comes twice or in another order."""

    def open(self, runtime_context):
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value, ctx):
        self.sum.update((self.sum.value() or 0) + value)
        yield f"{value},{self.sum.value()}"


def sums(count):
    """What the job gives for the first numbers."""
    total: Counter[int] = Counter()
    for number in range(count):
        total[number % KEYS] += number
        yield f"{number},{total[number % KEYS]}"


@contextmanager
def fed(cluster):
    """Numbers are written to the input all the while; gives a function that says how many were."""
    count, is_over = 0, threading.Event()
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "log_level": 0})

    def feed():
        nonlocal count
        while not is_over.wait(0.02):
            for number in range(count, count + 4):
                producer.produce(INPUT, b"%d" % number, partition=number % KEYS % PARTITIONS)
            count += 4
            producer.poll(0)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield lambda: count
    finally:
        is_over.set()
        thread.join()
        assert producer.flush(DEADLINE_S) == 0


def texts(cluster, topic):
    return [message.value().decode() for message in messages(cluster, topic)]


def test_leaders_and_coordinators_that_change_and_die(cluster, tmp_path):
    for topic in (INPUT, OUTPUT, LOOSE):
        cluster.create_topic(topic, PARTITIONS)
    settings = {"interval": "100 ms", "tolerable_failed_checkpoints": "1000", "timeout": "60 s"}
    env = environment(tmp_path, 2, **{f"execution__checkpointing__{key}": value for key, value in settings.items()})
    source = builder(cluster, INPUT).set_group_id("sums").set_property("partition.discovery.interval.ms", 200).build()
    numbers = stream_of(env, source).map(int, Types.LONG())
    results = numbers.key_by(lambda number: number % KEYS, Types.LONG()).process(Sum(), Types.STRING())
    results.sink_to(sink_builder(cluster, LOOSE, AT_LEAST_ONCE).build()).uid("loose")
    job = start(results, sink_builder(cluster, OUTPUT, EXACTLY_ONCE).set_transactional_id_prefix("sums").build())

    def goes_on():
        before = fed_so_far()
        eventually(lambda: len(texts(cluster, OUTPUT)) > before, DEADLINE_S, interval=0.2)

    with fed(cluster) as fed_so_far:
        goes_on()
        led = (INPUT, OUTPUT, LOOSE, TRANSACTIONS_TOPIC, GROUPS_TOPIC)
        for node in (2, 1):
            cluster.move_leaders(led, node)
        goes_on()
        cluster.kill(1)
        goes_on()
        assert {cluster.leader(topic) for topic in led} <= {2, 3}
        cluster.start_again(1)
        # the partition is found and read, and not by the broker that led before
        add_partitions(cluster, INPUT, PARTITIONS + 1)
        goes_on()
    count = fed_so_far()
    produce(cluster, INPUT, [str(count)], partition=PARTITIONS)
    expected = sorted(sums(count + 1))

    eventually(lambda: len(texts(cluster, OUTPUT)) >= count + 1, DEADLINE_S)
    assert job.attempt == 0
    job.stop()
    assert sorted(texts(cluster, OUTPUT)) == expected
    assert set(texts(cluster, LOOSE)) == set(expected)
    assert is_unblocked(cluster, OUTPUT)
    assert committed(cluster, "sums", INPUT, PARTITIONS) == 1


# -- who may do what --------------------------------------------------------------------------------

SECURE_INPUT, SECURE_OUTPUT, SECRET = "secure-input", "secure-output", "secret"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory) -> Path:
    place = make_certificates(tmp_path_factory.mktemp("certificates"))
    parts = ("server.key", "server.pem", "ca.pem")
    (place / "server-store.pem").write_bytes(b"".join((place / part).read_bytes() for part in parts))
    return place


@pytest.fixture(scope="module")
def guarded(certificates) -> Iterator[KafkaCluster]:
    """Where who comes without a password may do everything, and who comes with one what ACLs allow."""
    users = " ".join(f'user_{user}="{_escaped(password)}"' for user, password in PASSWORDS.items())
    module = "org.apache.kafka.common.security"
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": _in_file(
            f"{module}.plain.PlainLoginModule required {users};"
        ),
        "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": f"{module}.scram.ScramLoginModule required;",
        "listener.name.ssl.ssl.keystore.type": "PEM",
        "listener.name.ssl.ssl.keystore.location": str(certificates / "server-store.pem"),
        "listener.name.ssl.ssl.truststore.type": "PEM",
        "listener.name.ssl.ssl.truststore.location": str(certificates / "ca.pem"),
        "listener.name.ssl.ssl.client.auth": "required",
    }
    with KafkaCluster(settings, brokers=1, listeners=("SASL_PLAINTEXT", "SSL")) as started:
        yield started


def _escaped(text):
    return text.replace('"', '\\"')


def _in_file(text):
    return text.replace("\\", "\\\\")


@pytest.fixture(scope="module")
def ways_in(guarded, certificates):
    """Properties by which clients are let in, with where they connect to."""
    for topic in (SECURE_INPUT, SECURE_OUTPUT, SECRET):
        guarded.create_topic(topic)
    produce(guarded, SECURE_INPUT, values(5))
    admin = guarded.admin()
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    upserted = admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion("carol", scram, PASSWORDS["carol"].encode())]
    )
    allowed = [
        (ResourceType.TOPIC, SECURE_INPUT, AclOperation.READ),
        (ResourceType.TOPIC, SECURE_OUTPUT, AclOperation.WRITE),
        (ResourceType.GROUP, "secure", AclOperation.READ),
        (ResourceType.TRANSACTIONAL_ID, "secure", AclOperation.WRITE),
    ]
    rules = [
        AclBinding(kind, name, ResourcePatternType.PREFIXED, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
        for user in ("alice", "carol", "CN=client")
        for kind, name, operation in allowed
    ]
    for done in (*upserted.values(), *admin.create_acls(rules).values()):
        done.result(DEADLINE_S)
    sasl = {"security.protocol": "SASL_PLAINTEXT"}
    ways = {
        "plain": {
            **sasl,
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": JAAS.format("alice", _escaped(PASSWORDS["alice"])),
        },
        "scram": {
            **sasl,
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "carol",
            "sasl.password": PASSWORDS["carol"],
        },
        "ssl": {
            "security.protocol": "SSL",
            "ssl.ca.location": str(certificates / "ca.pem"),
            "ssl.certificate.location": str(certificates / "client.pem"),
            "ssl.key.location": str(certificates / "client.key"),
        },
    }

    def is_let_in():
        carol = AdminClient({**ways["scram"], "bootstrap.servers": guarded.servers("SASL_PLAINTEXT"), "log_level": 0})
        assert carol.list_topics(SECURE_OUTPUT, timeout=5).topics[SECURE_OUTPUT].error is None

    # the broker learns of users and rules a moment after they were made
    eventually(is_let_in, DEADLINE_S)
    return ways


def at(guarded, way):
    """The guarded for those who come in this way."""
    return SimpleNamespace(bootstrap_servers=guarded.servers(way["security.protocol"]))


def read(guarded, way, topic=SECURE_INPUT, **settings):
    source = builder(at(guarded, way), topic).set_properties({**way, **settings})
    source.set_bounded(KafkaOffsetsInitializer.latest())
    if "group.id" in settings:
        source.set_starting_offsets(KafkaOffsetsInitializer.committed_offsets())
    return collect(stream_of(test_environment(), source.build()))


def write(guarded, way, directory, guarantee, topic=SECURE_OUTPUT, prefix="secure"):
    """Runs a job that writes one record."""
    env = environment(directory, restart_strategy__type="none")
    sink = sink_builder(at(guarded, way), topic, guarantee).set_transactional_id_prefix(prefix)
    env.from_collection(["written"], Types.STRING()).sink_to(sink.set_properties(way).build())
    env.execute()


def refused(job, *arguments, **named):
    """What a job fails with, as text; the kind of its error is part of it."""
    with pytest.raises(JobExecutionError) as caught:
        job(*arguments, **named)
    text = str(caught.value)
    assert "KafkaAuthorizationError" in text
    return text


@pytest.mark.parametrize("name", ["plain", "scram", "ssl"])
def test_clients_that_are_let_in(guarded, ways_in, tmp_path, name):
    before = len(texts(guarded, SECURE_OUTPUT))

    assert read(guarded, ways_in[name]) == values(5)
    for guarantee in (AT_LEAST_ONCE, EXACTLY_ONCE):
        write(guarded, ways_in[name], tmp_path, guarantee)

    assert texts(guarded, SECURE_OUTPUT)[before:] == ["written"] * 2


def test_clients_that_are_not_let_in(guarded, ways_in, certificates, tmp_path):
    """They do not wait until the cluster changes its mind."""
    wrong = {**ways_in["scram"], "sasl.password": "guessed"}
    strange = {**ways_in["ssl"], "ssl.ca.location": str(certificates / "other-ca.pem")}
    for way, hint in ((wrong, "sasl.password"), (strange, "ssl.*")):
        for text in (
            refused(read, guarded, way),
            refused(write, guarded, way, tmp_path, AT_LEAST_ONCE),
            refused(write, guarded, way, tmp_path, EXACTLY_ONCE),
        ):
            assert "the cluster does not accept this client" in text
            assert hint in text


def test_permissions_that_are_missing_are_named(guarded, ways_in, tmp_path):
    way = ways_in["plain"]

    produce(guarded, SECURE_OUTPUT, values(1))
    for topic in (SECRET, SECURE_OUTPUT):
        text = refused(read, guarded, way, topic=topic)
        assert f"'{topic}'" in text
        assert "READ and DESCRIBE" in text

    assert "READ on the group" in refused(read, guarded, way, **{"group.id": "others"})

    for topic in (SECRET, SECURE_INPUT):
        for guarantee in (AT_LEAST_ONCE, EXACTLY_ONCE):
            text = refused(write, guarded, way, tmp_path, guarantee, topic=topic)
            assert f"'{topic}'" in text
            assert "WRITE and DESCRIBE" in text

    assert "WRITE on the transactional ids" in refused(write, guarded, way, tmp_path, EXACTLY_ONCE, prefix="others")

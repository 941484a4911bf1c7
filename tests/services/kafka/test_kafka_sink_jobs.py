"""Jobs with a transactional Kafka sink, in each way a job is executed, through failures."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.connectors.kafka.client_errors import KafkaAuthorizationError
from firesteel.spi.sink import DeliveryGuarantee
from firesteel.testing import ABORT, PAUSE, SinkHarness, TestingSource, eventually, test_environment
from firesteel.testing.in_process import InProcessExecutor
from firesteel.testing.stages import FaultKind, InProcessStageRunner, TaskFault
from tests.support.services.kafka_sink_jobs import fresh_prefix, is_unblocked, numbers, sink_builder
from tests.support.services.kafka_topics import fresh_topic

DEADLINE_S = 120.0
EXACTLY_ONCE = DeliveryGuarantee.EXACTLY_ONCE
EPOCHS = {
    "execution.runtime-mode": "STREAMING",
    "execution.exchange": "spark",
    "execution.epoch.max-records": "100",
}


@pytest.fixture
def topic(kafka):
    return fresh_topic(kafka, 2)


@pytest.fixture
def environment(tmp_path):
    def make(parallelism=2, **settings):
        configuration = Configuration()
        for key, value in {
            "execution.checkpointing.interval": "10 ms",
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "20",
            "restart-strategy.fixed-delay.delay": "1 ms",
            **settings,
        }.items():
            configuration.set_string(key, value)
        return test_environment(parallelism, configuration)

    return make


def exactly_once(kafka, topic):
    return sink_builder(kafka, topic, EXACTLY_ONCE).set_transactional_id_prefix(topic).build()


def stream_of(env, *splits, bounded=True):
    source = TestingSource.with_splits(*splits, bounded=bounded)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers").map(str, Types.STRING())


def check(kafka, topic, count):
    def is_seen():
        assert is_unblocked(kafka, topic)
        assert numbers(kafka, topic) == list(range(count))

    eventually(is_seen, DEADLINE_S)


def items(numbers, *specials, every=20):
    """Numbers with pauses, in which checkpoints happen, and special items in between."""
    places = {len(numbers) * (index + 1) // (len(specials) + 1): item for index, item in enumerate(specials)}
    listed = []
    for index, number in enumerate(numbers):
        if index % every == every - 1:
            listed.append(PAUSE(8))
        if index in places:
            listed.append(places[index])
        listed.append(number)
    return listed


def test_a_stream_that_fails_several_times(kafka, topic, environment):
    env = environment()
    stream_of(env, items(range(0, 400, 2), ABORT(), ABORT()), items(range(1, 400, 2))).sink_to(
        exactly_once(kafka, topic)
    )
    env.execute()
    check(kafka, topic, 400)


def test_stop_with_savepoint_and_another_parallelism(kafka, topic, environment, tmp_path):
    env = environment()
    stream_of(env, items(range(0, 100, 2)), items(range(1, 100, 2)), bounded=False).sink_to(
        exactly_once(kafka, topic)
    ).uid("sink")
    client = env.execute_async()
    eventually(lambda: len(numbers(kafka, topic)) > 10, DEADLINE_S)
    savepoint = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(DEADLINE_S)
    client.get_job_execution_result().result(DEADLINE_S)
    # a commit is visible a moment after it is known
    eventually(lambda: is_unblocked(kafka, topic), DEADLINE_S)
    seen = len(numbers(kafka, topic))

    env = environment(3, **{"execution.state-recovery.path": savepoint})
    stream_of(env, items(range(0, 100, 2)), items(range(1, 100, 2))).sink_to(exactly_once(kafka, topic)).uid("sink")
    env.execute()
    check(kafka, topic, 100)
    assert 10 < seen <= 100


class Forgetful(InProcessStageRunner):
    """After every epoch one of its workers is gone."""

    def run_epoch(self, job_graph, epoch):
        messages = super().run_epoch(job_graph, epoch)
        self.forget(epoch.epoch % 2)
        return messages


class Faulty(InProcessStageRunner):
    """In the first epochs tasks break off and are run again, some in a new worker, some after they had finished."""

    def run_epoch(self, job_graph, epoch):
        self.faults.clear()
        if epoch.epoch < 5:
            kind = (FaultKind.RETRY, FaultKind.KILL)[epoch.epoch % 2]
            self.faults.append(TaskFault(kind, None, epoch.epoch // 2 % 2, after_rows=(None, 0)[epoch.epoch // 2 % 2]))
        return super().run_epoch(job_graph, epoch)


@pytest.mark.parametrize("stages", [InProcessStageRunner, Forgetful, Faulty])
def test_epochs(kafka, topic, environment, stages):
    env = environment(**EPOCHS)
    env._executor = InProcessExecutor(create_stages=stages)
    env.from_sequence(0, 1999).map(str, Types.STRING()).sink_to(exactly_once(kafka, topic))
    env.execute()
    check(kafka, topic, 2000)


class FaultyBatch(InProcessStageRunner):
    """Tasks break off or are lost once they have written, and are run again."""

    def run_batch(self, job_graph, orders):
        if not self.executed:
            self.faults.append(TaskFault(FaultKind.RETRY, None, 0, after_rows=None))
            self.faults.append(TaskFault(FaultKind.KILL, None, 1, after_rows=None))
        return super().run_batch(job_graph, orders)


@pytest.mark.parametrize("stages", [InProcessStageRunner, FaultyBatch])
def test_a_batch(kafka, topic, environment, stages):
    env = environment(**{"execution.runtime-mode": "BATCH"})
    env._executor = InProcessExecutor(create_stages=stages)
    env.from_sequence(0, 499).map(str, Types.STRING()).sink_to(exactly_once(kafka, topic))
    env.execute()
    check(kafka, topic, 500)


def deny_to_write(kafka, kind, name):
    everybody = ("User:ANONYMOUS", "*", AclOperation.WRITE, AclPermissionType.DENY)
    admin = kafka.admin()
    for done in admin.create_acls([AclBinding(kind, name, ResourcePatternType.PREFIXED, *everybody)]).values():
        done.result(60)


def test_missing_permissions_are_named(kafka):
    topic, secret, forbidden = fresh_topic(kafka), fresh_topic(kafka), fresh_prefix()
    deny_to_write(kafka, ResourceType.TOPIC, secret)
    deny_to_write(kafka, ResourceType.TRANSACTIONAL_ID, forbidden)

    def refused(topic, guarantee, prefix):
        builder = sink_builder(kafka, topic, guarantee).set_transactional_id_prefix(prefix)
        with SinkHarness(builder.build()) as harness:
            # an ACL counts a moment after it was made
            with pytest.raises(KafkaAuthorizationError) as caught:
                eventually(lambda: bool(harness.process_element("1") or harness.snapshot()) and False)
        return str(caught.value)

    for guarantee in (DeliveryGuarantee.AT_LEAST_ONCE, EXACTLY_ONCE):
        message = refused(secret, guarantee, fresh_prefix())
        assert secret in message
        assert "WRITE and DESCRIBE" in message
    assert "WRITE on the transactional ids with this prefix" in refused(topic, EXACTLY_ONCE, forbidden)

"""More slots asked for than there are, and strangers at the control port."""

from __future__ import annotations

import errno
import socket
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Configuration, JobStatus
from firesteel.common.errors import JobExecutionError, NotEnoughSlotsError
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.runtime.network.errors import NetworkError
from firesteel.runtime.slot.control import dial_control
from firesteel.spark.session.session import SparkStartError
from tests.support.jobs.endless import collecting, ended, endless, running, status

SLOTS = 4


def test_more_slots_than_an_embedded_spark_has(spark_env: Any) -> None:
    """It will never have more, so nobody waits for them."""
    client, _ = collecting(spark_env(SLOTS + 2).from_sequence(1, 10))
    error = ended(client)
    assert isinstance(error, JobExecutionError)
    assert error.failure.error_type == "NotEnoughSlotsError"
    cause = error.__cause__
    assert isinstance(cause, NotEnoughSlotsError)
    assert (cause.needed, cause.available) == (SLOTS + 2, SLOTS)
    assert f"needs {SLOTS + 2} slots" in str(error)
    assert status(client) is JobStatus.FAILED


def test_a_rescaling_to_more_slots_than_an_embedded_spark_has(spark_env: Any, tmp_path: Path) -> None:
    """It is refused, and the job keeps running."""
    settings = {"execution.checkpointing.interval": "100 ms", "execution.checkpointing.dir": str(tmp_path)}
    client, results = collecting(endless(spark_env(2, settings)))
    running(client)
    runner: Any = client._handle
    vertices = [vertex.id for vertex in runner.job_graph.vertices]
    with pytest.raises(NotEnoughSlotsError) as refused:
        runner.rescale(dict.fromkeys(vertices, SLOTS + 1))
    assert (refused.value.needed, refused.value.available) == (SLOTS + 1, SLOTS)
    next(results)
    assert (status(client), runner.snapshot.attempt) == (JobStatus.RUNNING, 0)
    client.cancel().result(120)


def test_slots_that_another_job_holds(spark_env: Any) -> None:
    """There are enough in all, but not in time."""
    holder, _ = collecting(endless(spark_env(3)))
    running(holder)
    waiting, _ = collecting(spark_env(2, {"slot.request.timeout": "500 ms"}).from_sequence(1, 10))
    error = ended(waiting)
    assert isinstance(error, JobExecutionError)
    assert isinstance(error.__cause__, NotEnoughSlotsError)
    assert error.__cause__.needed == 2
    assert error.__cause__.available < 2
    assert status(holder) is JobStatus.RUNNING
    holder.cancel().result(120)
    # what the waiting job asked for is not started late
    assert sorted(spark_env(4).from_sequence(1, 10).execute_and_collect()) == list(range(1, 11))


def test_a_job_waits_for_the_slots_of_another(spark_env: Any) -> None:
    holder, _ = collecting(endless(spark_env(3)))
    running(holder)
    waiting, results = collecting(spark_env(2).from_sequence(1, 10))
    assert status(waiting) is not JobStatus.RUNNING
    holder.cancel().result(120)
    assert sorted(results) == list(range(1, 11))
    assert ended(waiting) is None


def test_a_job_that_runs_keeps_its_spark(spark_env: Any) -> None:
    """Without spark.master the embedded Spark grows with what a job needs, but not under another job."""
    first, results = collecting(endless(spark_env(2)))
    running(first)
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(SLOTS + 1)
    second, _ = collecting(env.from_sequence(1, 10))
    error = ended(second)
    assert error is not None
    assert isinstance(error.__cause__, NotEnoughSlotsError)
    assert (error.__cause__.needed, error.__cause__.available) == (SLOTS + 1, SLOTS)
    elsewhere = StreamExecutionEnvironment.get_execution_environment(
        Configuration().set_string("spark.master", "spark://127.0.0.1:1")
    )
    with pytest.raises(SparkStartError, match="jobs running"):
        collecting(elsewhere.from_sequence(1, 10))
    next(results)
    assert status(first) is JobStatus.RUNNING
    first.cancel().result(120)


def _control_port(client: Any) -> tuple[str, int]:
    host, port = client._handle._host._host._inner._address
    return host, port


def test_a_connection_with_the_wrong_secret_is_refused_and_the_job_goes_on(spark_env: Any) -> None:
    client, results = collecting(endless(spark_env(2)))
    running(client)
    with pytest.raises((NetworkError, ConnectionError)):
        dial_control(_control_port(client), b"not the secret", 1)
    next(results)
    assert status(client) is JobStatus.RUNNING
    client.cancel().result(120)


@pytest.mark.parametrize("noise", [b"GET / HTTP/1.1\r\n\r\n", b"\x80\x05cos\nsystem\n(S'true'\ntR.", b"\0" * 4096])
def test_noise_at_the_control_port_is_refused_and_the_job_goes_on(noise: bytes, spark_env: Any) -> None:
    client, results = collecting(endless(spark_env(1)))
    running(client)
    with socket.create_connection(_control_port(client), timeout=120) as stranger:
        # nothing is unpickled: the connection is closed, possibly after a refusal, and possibly before all is sent
        received = b""
        try:
            stranger.sendall(noise)
            stranger.shutdown(socket.SHUT_WR)
            while chunk := stranger.recv(4096):
                received += chunk
        except OSError as error:
            if error.errno not in (errno.ECONNRESET, errno.ENOTCONN, errno.EPIPE):
                raise
    assert len(received) < 1000
    next(results)
    assert status(client) is JobStatus.RUNNING
    client.cancel().result(120)

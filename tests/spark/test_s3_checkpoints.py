"""Checkpoints and savepoints on S3, of jobs on Spark."""

from __future__ import annotations

import os
import signal
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.common.errors import CheckpointStorageError, CorruptStateError
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.filesystem.stores import close_filesystems, configure_filesystems, get_filesystem
from firesteel.testing import eventually
from tests.support.jobs.running_jobs import Numbered, Slow, metadata_of, no_job_goes_on, settings, start  # noqa: F401
from tests.support.services.s3_server import S3Server, running_s3_server

DEADLINE_S = 120.0
MANY = 4000
"""So many that a job at a moderate rate does not end while a busy machine lets the test wait."""


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with running_s3_server() as running:
        yield running


@pytest.fixture
def bucket(server: S3Server) -> Iterator[str]:
    """A bucket of the test's own, which this process can look into."""
    name = server.create_bucket(f"bucket-{uuid.uuid4().hex[:8]}")
    configure_filesystems(server.configuration)
    yield name
    close_filesystems()
    configure_filesystems(Configuration())


def pair(index: int) -> tuple[str, int]:
    return f"k{index % 5}", index


def tagged(value: Any) -> Any:
    return (*value, os.getpid())


def number_pairs(env: Any, count: int, per_second: float, slow: Slow | None = None) -> Any:
    generator = DataGeneratorSource(pair, count, RateLimiterStrategy.per_second(per_second))
    numbers = env.from_source(generator, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    if slow is not None:
        numbers = numbers.map(slow)
    return numbers.key_by(lambda each: each[0]).process(Numbered()).uid("numbered")


def on_s3(server: S3Server, bucket: str, **overrides: str) -> dict[str, str]:
    places = {
        "execution__checkpointing__dir": f"{bucket}/checkpoints",
        "execution__checkpointing__savepoint_dir": f"{bucket}/savepoints",
        "execution__checkpointing__data_inline_threshold": "0 b",
    }
    return {**settings(Path("/unused"), **{**places, **overrides}), **server.settings}


def objects_in(directory: str) -> list[str]:
    """The paths of all objects beneath a directory."""
    filesystem = get_filesystem(directory)
    found = []
    for name in filesystem.list(directory):
        path = f"{directory}/{name}"
        found += objects_in(path) or [path]
    return found


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_worker_is_killed(backend: str, server: S3Server, bucket: str, spark_env: Any) -> None:
    config = on_s3(server, bucket, execution__checkpointing__interval="200 ms", state__backend__type=backend)
    # the first attempt does not end before it is killed
    job = start(number_pairs(spark_env(2, config), 1500, 1000, Slow(0.01)).map(tagged))
    eventually(lambda: len(job.results) > 100, timeout=DEADLINE_S)
    os.kill(job.results[-1][3], signal.SIGKILL)
    results = job.wait()
    assert Counter(value for _, value, _, _ in results) == Counter(range(1500))
    assert len({(key, number) for key, _, number, _ in results}) == 1500
    assert {number for _, _, number, _ in results} == set(range(300))
    assert job.statistics["counts"]["restored"] == 1
    assert objects_in(f"{bucket}/checkpoints") == [], "nothing is left"


def test_savepoints_and_retained_checkpoints(
    server: S3Server, bucket: str, spark_env: Any, in_process_env: Any
) -> None:
    """Stopped on Spark, gone on in this process; cancelled there, and gone on on Spark from the last checkpoint."""
    retained = {"execution__checkpointing__externalized_checkpoint_retention": "RETAIN_ON_CANCELLATION"}
    first = start(number_pairs(spark_env(2, on_s3(server, bucket)), MANY, 200)).runs()
    first.checkpoint()
    path = first.stop()
    assert path.startswith(f"{bucket}/savepoints/savepoint-")
    second = start(
        number_pairs(
            in_process_env(3, on_s3(server, bucket, execution__state_recovery__path=path, **retained)), MANY, 200
        )
    ).runs()
    checkpoint = second.checkpoint()
    eventually(lambda: second.checkpoint() and len(second.results) > 0, timeout=DEADLINE_S)
    checkpoint = second.checkpoint()
    second.cancel()
    metadata = metadata_of(checkpoint)
    assert set(objects_in(checkpoint.rpartition("/")[0])) == metadata.files() | {f"{checkpoint}/_metadata"}
    third = start(
        number_pairs(spark_env(1, on_s3(server, bucket, execution__state_recovery__path=checkpoint)), MANY, 100_000)
    )
    results = [*first.results, *second.results, *third.wait()]
    assert Counter(value for _, value, _ in results) == Counter(range(MANY))
    assert len({(key, number) for key, _, number in results}) == MANY


def test_what_bad_input_gets(server: S3Server, bucket: str, spark_env: Any) -> None:
    job = start(number_pairs(spark_env(2, on_s3(server, bucket)), MANY, 200)).runs()
    path = job.stop()
    (state,) = (each for each in metadata_of(path).operators if each.uid == "numbers")
    file = next(iter(state.segments())).path
    get_filesystem(file).delete(file)
    env = spark_env(2, on_s3(server, bucket, execution__state_recovery__path=path))
    with pytest.raises(CorruptStateError) as raised:
        start(number_pairs(env, 400, 400))
    assert raised.value.path == file
    env = spark_env(2, on_s3(server, bucket, execution__checkpointing__dir="s3://no-such-bucket/checkpoints"))
    with pytest.raises(CheckpointStorageError) as missing:
        start(number_pairs(env, 400, 400))
    assert "no-such-bucket" in missing.value.message

"""Compaction of a file sink's files in S3, through failures: a reader of the bucket sees every record once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.common.errors import FileWriteError
from firesteel.connectors.files import s3_part_file
from firesteel.connectors.files.compaction import FileCompactor, FileCompactStrategy
from firesteel.connectors.files.sink import BucketAssigner, FileSink, RollingPolicy
from firesteel.filesystem import s3_uploads
from firesteel.filesystem.stores import configure_filesystems
from firesteel.testing import eventually
from tests.services.s3.test_s3_file_sink import LARGE, Bucket, LineEncoder
from tests.support.jobs.sink_jobs import SinkJob
from tests.support.services.s3_server import MIN_PART_BYTES

ON_CHECKPOINT = RollingPolicy.on_checkpoint_rolling_policy()
STAY_OPEN = RollingPolicy.default_rolling_policy()
HIDDEN = "/.inprogress/"


class VisibleBucket(Bucket):
    """A bucket as one sees it who leaves out hidden objects, as sources do."""

    def objects(self) -> dict[str, int]:
        return {key: size for key, size in super().objects().items() if HIDDEN not in key}

    def hidden(self) -> list[str]:
        return [key for key in super().objects() if HIDDEN in key]

    def lines(self) -> list[str]:
        return [line for key in self.objects() for line in self.read(key).decode().splitlines()]


@pytest.fixture
def store(s3: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[VisibleBucket]:
    monkeypatch.setattr(s3_part_file, "CLEANING_TIMEOUT_S", 120.0)
    monkeypatch.setattr(s3_uploads, "MIN_PART_BYTES", MIN_PART_BYTES)
    found = VisibleBucket(s3)
    configure_filesystems(Configuration.from_dict({**s3.settings, "s3.upload.min.part.size": str(MIN_PART_BYTES)}))
    yield found
    configure_filesystems(Configuration())
    found.uploads.close()


def compacting_job(
    store: VisibleBucket,
    strategy: FileCompactStrategy | None,
    policy: RollingPolicy = ON_CHECKPOINT,
    parallelism: int = 1,
    *,
    more: int = 0,
    delimiter: bytes = b"",
    restored: Any = None,
) -> SinkJob:
    def make_sink() -> FileSink:
        builder = FileSink.for_row_format(store.path, LineEncoder(more))
        builder = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).with_rolling_policy(policy)
        if strategy is not None:
            builder = builder.enable_compact(strategy, FileCompactor.concat_file_compactor(delimiter))
        return builder.build()

    return SinkJob(make_sink, parallelism, restored=restored)


def test_files_are_compacted_at_every_so_many_checkpoints(store: VisibleBucket) -> None:
    job = compacting_job(store, FileCompactStrategy(2), delimiter=b"99\n")
    job.write(2)
    job.checkpoint()
    assert store.numbers() == []
    assert len(store.hidden()) == 1
    job.write(2)
    job.checkpoint()
    assert store.numbers() == [0, 1, 2, 3, 99]
    assert [key.rpartition("/")[2].partition("-part-")[0] for key in store.objects()] == ["compacted"]
    assert store.hidden() == []
    job.write(1)
    job.finish()
    assert store.numbers() == [0, 1, 2, 3, 4, 99]
    assert store.hidden() == store.open_uploads() == []


def test_large_files_are_compacted_in_parts(store: VisibleBucket) -> None:
    job = compacting_job(store, FileCompactStrategy(2), more=LARGE)
    for _ in range(2):
        job.write(3)
        job.checkpoint()
    assert len(store.objects()) == 1
    assert [line.split()[1] == "x" * LARGE for line in store.lines()] == [True] * 6
    job.finish()
    assert store.hidden() == store.open_uploads() == []


def test_what_waits_for_compaction_survives_failures(store: VisibleBucket) -> None:
    job = compacting_job(store, FileCompactStrategy(2))
    job.write(3)
    job.checkpoint()
    job.write(3)
    job.snapshot()  # compacts, but is never completed
    for parallelism in (2, 1):  # the same checkpoint twice
        job.restart(parallelism=parallelism)
        assert store.numbers() == []
        job.write(2)
    job.checkpoint()
    job.checkpoint()
    assert store.numbers() == list(range(5))
    job.finish()
    eventually(lambda: store.hidden() == store.open_uploads() == [])


def test_what_failed_attempts_leave_is_deleted_with_the_next_checkpoint(store: VisibleBucket) -> None:
    job = compacting_job(store, FileCompactStrategy(9))
    job.write(1)
    job.checkpoint()
    [held] = store.hidden()
    job.write(1)
    job.snapshot()
    assert len(store.hidden()) == 2
    job.restart()
    job.checkpoint()
    eventually(lambda: [key.rpartition("/")[2] for key in store.hidden()] == [held.rpartition("/")[2]])
    job.write(1)
    job.finish()
    assert store.numbers() == [0, 1]
    assert store.hidden() == []


@pytest.mark.parametrize("more", [0, LARGE], ids=["in the checkpoint", "uploaded"])
def test_a_sink_that_no_longer_compacts_commits_what_waits(store: VisibleBucket, more: int) -> None:
    job = compacting_job(store, FileCompactStrategy(9), more=more)
    job.write(3)
    job.checkpoint()
    job.kill()
    # one file is complete and waits, another one is in progress
    opened = compacting_job(store, FileCompactStrategy(9), STAY_OPEN, more=more, restored=job.completed)
    opened.write(2)
    opened.checkpoint()
    opened.kill()
    again = compacting_job(store, None, restored=opened.completed)
    again.write(1)
    again.finish()
    assert store.numbers() == list(range(6))
    assert store.hidden() == store.open_uploads() == []


def test_a_sink_that_begins_to_compact_takes_over_what_is_in_progress(store: VisibleBucket) -> None:
    job = compacting_job(store, None, STAY_OPEN, more=LARGE)
    job.write(3)
    job.checkpoint()
    job.kill()
    again = compacting_job(store, FileCompactStrategy(1), more=LARGE, restored=job.completed)
    again.write(2)
    again.finish()
    assert store.numbers() == list(range(5))
    assert store.hidden() == store.open_uploads() == []


def test_a_hidden_object_that_is_gone_is_named(store: VisibleBucket) -> None:
    job = compacting_job(store, FileCompactStrategy(2))
    job.write(1)
    job.checkpoint()
    [key] = store.hidden()
    store.client.delete_object(Bucket=store.name, Key=key)
    job.write(1)
    with pytest.raises(FileWriteError, match="cannot be compacted: it had 3 bytes") as caught:
        job.snapshot()
    assert caught.value.path.endswith(key)
    with pytest.raises(FileWriteError, match="waited for compaction"):
        job.restart()


@pytest.mark.parametrize("seed", range(4))
def test_random_failures(store: VisibleBucket, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    strategies = [FileCompactStrategy(1), FileCompactStrategy(3), FileCompactStrategy(size_threshold=30)]
    policy = chance.choice([ON_CHECKPOINT, STAY_OPEN, RollingPolicy.default_rolling_policy(part_size=12)])
    job = compacting_job(store, chance.choice(strategies), policy, chance.randint(1, 3), more=LARGE * (seed % 3 == 0))
    for _ in range(15):
        step = chance.random()
        if step < 0.5:
            job.write(chance.randint(1, 4))
        elif step < 0.8:
            snapshot = job.snapshot()
            job.write(chance.randint(0, 2))
            if chance.random() < 0.8:
                job.complete(snapshot, notify=chance.randint(0, len(job.subtasks)))
        else:
            job.restart(chance.randint(1, 3))
        seen = Counter(store.numbers())
        assert not seen or max(seen.values()) == 1
        assert set(seen) <= set(range(job.completed[0] if job.completed else 0))
    job.write(1)
    total = job.position
    job.finish()
    assert store.numbers() == list(range(total))

"""A file sink in S3, against a real service: whatever is killed when, a reader of the bucket sees every record once."""

from __future__ import annotations

import importlib
import io
import pickle
import random
import re
import signal
import socket
import urllib.request
import uuid
from types import SimpleNamespace

import pytest

from firesteel.common import Configuration, Row, Types, WatermarkStrategy
from firesteel.common.errors import FileWriteError, InvalidProgramError, JobExecutionError
from firesteel.common.serialization import Encoder
from firesteel.connectors.files import s3_part_file
from firesteel.connectors.files.sink import BucketAssigner, FileSink, RollingPolicy
from firesteel.filesystem import s3_uploads
from firesteel.filesystem.s3_uploads import S3Object, S3Uploads
from firesteel.filesystem.stores import configure_filesystems
from firesteel.formats.parquet.writer import ParquetBulkWriters
from firesteel.process import fault_points
from firesteel.testing import ABORT, TestingSource, eventually, test_environment
from tests.support.jobs.sink_jobs import SinkJob, committables_of
from tests.support.services.s3_server import MIN_PART_BYTES

ON_CHECKPOINT = RollingPolicy.on_checkpoint_rolling_policy()
STAY_OPEN = RollingPolicy.default_rolling_policy()
LARGE = MIN_PART_BYTES * 3 // 5
"""Bytes of a record of which two fill a part."""


class LineEncoder(Encoder):
    """A number and, if it is to be a large record, as much more."""

    def __init__(self, more=0):
        self.more = more

    def encode(self, element, stream):
        stream.write(f"{element} {'x' * self.more}\n".encode())


class Bucket:
    """What anyone sees of a bucket, and the uploads that nobody sees."""

    def __init__(self, server):
        self.server = server
        self.name = f"b-{uuid.uuid4().hex[:12]}"
        server.create_bucket(self.name)
        self.path = f"s3://{self.name}/data/out"
        self.uploads = S3Uploads(server.settings)
        self.client = self.uploads._connected(S3Object(self.name, ""))

    def objects(self):
        listed = self.client.list_objects_v2(Bucket=self.name).get("Contents", ())
        return {entry["Key"]: entry["Size"] for entry in listed}

    def read(self, key):
        return self.client.get_object(Bucket=self.name, Key=key)["Body"].read()

    def numbers(self):
        return sorted(int(line.split()[0]) for key in self.objects() for line in self.read(key).splitlines())

    def open_uploads(self):
        return [str(target) for target, _ in self.uploads.uploads_beneath(S3Object(self.name, ""))]


@pytest.fixture
def bucket(s3, monkeypatch):
    # what is left of earlier attempts is aborted when the writer closes, however slow the machine is
    monkeypatch.setattr(s3_part_file, "CLEANING_TIMEOUT_S", 120.0)
    monkeypatch.setattr(s3_uploads, "MIN_PART_BYTES", MIN_PART_BYTES)
    found = Bucket(s3)
    configure_filesystems(Configuration.from_dict({**s3.settings, "s3.upload.min.part.size": str(MIN_PART_BYTES)}))
    yield found
    configure_filesystems(Configuration())
    found.uploads.close()


@pytest.fixture
def armed():
    yield fault_points.arm
    fault_points.arm("")


def text_job(bucket, policy=STAY_OPEN, parallelism=1, *, more=0, job_id="feed", restored=None, run_id=""):
    def make_sink():
        builder = FileSink.for_row_format(bucket.path, LineEncoder(more))
        builder = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        return builder.with_rolling_policy(policy).build()

    return SinkJob(make_sink, parallelism, job_id, restored, run_id=run_id)


def test_nothing_is_visible_before_the_checkpoint_is_complete(bucket):
    job = text_job(bucket, ON_CHECKPOINT)
    job.write(3)
    snapshot = job.snapshot()
    job.write(2)
    assert bucket.numbers() == []
    job.complete(snapshot)
    assert bucket.numbers() == [0, 1, 2]
    job.finish()
    assert bucket.numbers() == [0, 1, 2, 3, 4]
    assert bucket.open_uploads() == []
    assert all(key.startswith("data/out/part-0-") for key in bucket.objects())


@pytest.mark.parametrize("value", ["x" * 1000, "a\ud800b", "a\x01b"], ids=["too long", "a surrogate", "a control"])
def test_a_bucket_that_can_be_no_key_fails_with_its_first_record(bucket, value):
    values = ["good", "good", value, "good", "\U0001f468\u200d\U0001f469"]

    def make_sink():
        builder = FileSink.for_row_format(bucket.path, LineEncoder())
        return builder.with_bucket_assigner(BucketAssigner.by_field(values.__getitem__)).build()

    job = SinkJob(make_sink)
    if value == "a\x01b":
        # by_field escapes it; an assigner of one's own may not
        job.write(3)
        job.finish()
        assert any("key=a%01b" in key for key in bucket.objects())
        job.kill()
        return
    job.write(2)
    job.checkpoint()
    with pytest.raises(FileWriteError, match="cannot be a path beneath") as caught:
        job.write(1)
    assert "The record 2 was to go there" in caught.value.message
    values[2] = "other"
    job.restart()
    job.write(3)
    job.finish()
    job.kill()
    assert bucket.numbers() == list(range(5))


def test_parts_are_uploaded_as_they_fill_and_the_rest_is_in_the_checkpoint(bucket):
    configure_filesystems(bucket.server.configuration)  # parts as large as they are without any setting
    job = text_job(bucket, more=3_000_000)
    job.write(1)
    job.checkpoint()
    assert bucket.open_uploads() == []  # less than a part: there is no upload yet
    job.write(4)
    job.checkpoint()
    assert len(bucket.open_uploads()) == 1
    job.write(1)
    job.restart()
    assert job.position == 5
    job.write(3)
    job.finish()
    assert bucket.numbers() == list(range(8))
    # the same upload went on
    assert len(bucket.objects()) == 1
    assert bucket.open_uploads() == []


@pytest.mark.parametrize("kind", ["roll", "tail", "parts"])
@pytest.mark.parametrize(
    "crash",
    ["before snapshot", "after snapshot", "after complete", "before commit", "during commit", "after commit"],
)
def test_a_crash_at_every_step_of_the_protocol(bucket, kind, crash, armed):
    policy = ON_CHECKPOINT if kind == "roll" else STAY_OPEN
    job = text_job(bucket, policy, more=LARGE * (kind == "parts"))
    job.write(5)
    job.checkpoint()
    before = bucket.numbers()
    job.write(3)
    if crash != "before snapshot":
        snapshot = job.snapshot()
        job.write(1)
    if crash == "after complete":
        job.complete(snapshot, notify=0)
    elif crash in ("before commit", "after commit"):
        armed(f"sink.{'commit' if crash == 'before commit' else 'committed'}=raise")
        if policy is ON_CHECKPOINT:
            with pytest.raises(OSError, match="fault injected"):
                job.complete(snapshot)
        else:
            job.complete(snapshot)
        armed("")
    elif crash == "during commit":
        job.completed = snapshot
        committer = job.make_sink().create_committer()
        committer.commit(committables_of(snapshot))
        committer.close()
    if crash in ("before snapshot", "after snapshot"):
        assert bucket.numbers() == before
    job.restart()
    if policy is ON_CHECKPOINT:
        assert bucket.numbers() == list(range(job.position))
    job.write(12 - job.position)
    job.finish()
    assert bucket.numbers() == list(range(12))
    assert bucket.open_uploads() == []


@pytest.mark.parametrize("seed", range(6))
def test_random_failures(bucket, seed):
    chance = random.Random(seed)
    policy = chance.choice([ON_CHECKPOINT, STAY_OPEN, RollingPolicy.default_rolling_policy(part_size=12)])
    job = text_job(bucket, policy, chance.randint(1, 3), more=LARGE * (seed % 3 == 0))
    job.run_at_random(chance, 15, bucket.numbers, most=4)
    assert bucket.open_uploads() == []


def test_at_another_parallelism_open_files_are_finished_first(bucket):
    job = text_job(bucket, parallelism=2, more=LARGE)
    job.write(9)
    job.checkpoint()
    job.restart(parallelism=3)
    job.checkpoint()
    assert len(bucket.objects()) == 2
    job.write(2)
    job.restart(parallelism=1)
    job.write(2)
    job.finish()
    assert bucket.numbers() == list(range(11))
    assert bucket.open_uploads() == []


def test_what_a_failed_attempt_leaves_is_aborted_with_the_next_checkpoint_and_not_before(bucket):
    job = text_job(bucket, parallelism=2, more=LARGE)
    job.write(6)
    job.checkpoint()
    [first, second] = sorted(bucket.open_uploads())  # they were begun in the background, either before the other
    job.write(6)
    job.snapshot()
    # as if a process had been killed after the first parts of another file
    left = S3Object.parse(first.replace("-0-", "-7-", 1))
    bucket.uploads.create(left)
    foreign = S3Object(left.bucket, "data/out/part-0-0123456789abcdef-0-01234567-0")
    bucket.uploads.create(foreign)
    job.restart()
    snapshot = job.snapshot()
    assert sorted(bucket.open_uploads()) == sorted([first, second, str(left), str(foreign)])
    job.complete(snapshot)
    # those that go on are left, and those of others
    eventually(lambda: sorted(bucket.open_uploads()) == sorted([first, second, str(foreign)]))
    job.restart()
    job.write(1)
    job.finish()
    assert bucket.numbers() == list(range(7))
    assert bucket.open_uploads() == [str(foreign)]


def test_what_attempts_under_another_leader_leave_is_aborted_with_the_next_checkpoint(bucket):
    """Each leader begins to count them with 0."""
    first = text_job(bucket, more=LARGE, run_id="first")
    first.write(4)
    first.checkpoint()
    [goes_on] = bucket.open_uploads()
    first.kill()
    # as if processes had been killed after the first parts of other files; one was of an earlier version
    lefts = [
        re.sub(r"-0-[0-9a-f]{16}-0$", f"-{end}-0", goes_on)
        for end in ("0-" + "a" * 16, "3-" + "b" * 16, "5-" + "c" * 8)
    ]
    for left in lefts:
        bucket.uploads.create(S3Object.parse(left))
    second = text_job(bucket, more=LARGE, restored=first.completed, run_id="second")
    snapshot = second.snapshot()
    assert sorted(bucket.open_uploads()) == sorted([goes_on, *lefts])
    second.complete(snapshot)
    eventually(lambda: bucket.open_uploads() == [goes_on])
    second.write(1)
    second.finish()
    assert bucket.numbers() == list(range(5))
    assert bucket.open_uploads() == []


def test_what_no_checkpoint_knows_of_is_aborted_when_the_writer_closes(bucket):
    job = text_job(bucket, more=LARGE)
    job.write(4)
    eventually(lambda: len(bucket.open_uploads()) == 1)
    job.kill()
    assert bucket.open_uploads() == []


def test_what_an_attempt_without_any_checkpoint_leaves_is_aborted(bucket):
    job = text_job(bucket, more=LARGE)
    job.write(2)
    job.snapshot()  # it may have been completed, for all the writer knows
    job.kill()
    assert len(bucket.open_uploads()) == 1
    job.restart()
    eventually(lambda: bucket.open_uploads() == [])
    job.write(2)
    job.finish()
    assert bucket.numbers() == [0, 1]


def test_a_process_taken_for_dead_cannot_reach_the_file_of_its_successor(bucket):
    zombie = text_job(bucket, more=LARGE)
    zombie.write(4)
    zombie.checkpoint()
    successor = text_job(bucket, more=LARGE, restored=zombie.completed)
    successor.kill()
    successor.attempt = 1
    successor.start(1)
    successor.write(4)
    zombie.write(6)
    snapshot = successor.snapshot()
    zombie.snapshot()
    successor.complete(snapshot)
    zombie.write(2)
    successor.finish()
    assert bucket.numbers() == list(range(8))
    zombie.kill()
    assert bucket.numbers() == list(range(8))


def test_a_job_started_from_anothers_snapshot_writes_a_file_of_its_own(bucket):
    first = text_job(bucket, job_id="first")
    first.write(5)
    first.checkpoint()
    second = text_job(bucket, job_id="second", restored=first.completed)
    second.write(2)
    second.finish()
    first.write(3)
    first.finish()
    # each has written what it read; the first five were in progress in both
    assert bucket.numbers() == sorted([*range(8), *range(7)])


@pytest.mark.parametrize("more", [0, LARGE])
def test_a_checkpoint_older_than_a_finished_file_is_refused(bucket, more):
    job = text_job(bucket, more=more)
    job.write(3)
    job.checkpoint()
    older = job.completed
    for harness in job.subtasks:
        harness.finish()
    job.checkpoint()
    job.completed = older
    with pytest.raises(FileWriteError, match="was finished after the checkpoint") as caught:
        job.restart()
    assert S3Object.parse(caught.value.path).key in bucket.objects()


def test_commits_can_be_repeated_but_what_is_gone_or_changed_is_named(bucket):
    job = text_job(bucket, ON_CHECKPOINT)
    job.write(3)
    [pending] = pickle.loads(pickle.dumps(committables_of(job.snapshot())))
    job.kill()
    committer = job.make_sink().create_committer()
    for _ in range(2):
        committer.commit([pending])
        assert bucket.numbers() == [0, 1, 2]
    key = S3Object.parse(pending.path).key
    bucket.client.put_object(Bucket=bucket.name, Key=key, Body=b"other")
    with pytest.raises(FileWriteError, match="has 5 bytes") as changed:
        committer.commit([pending])
    assert changed.value.path == pending.path
    bucket.client.delete_object(Bucket=bucket.name, Key=key)
    for commit in (committer.commit, committer.recommit):
        with pytest.raises(FileWriteError, match="neither its upload nor the object"):
            commit([pending])
    committer.close()


@pytest.mark.parametrize("policy", [ON_CHECKPOINT, STAY_OPEN], ids=["pending", "in progress"])
def test_a_snapshot_of_a_local_sink_is_refused_and_the_other_way_round(bucket, tmp_path, policy):
    local = text_job(SimpleNamespace(path=tmp_path / "out"), policy)
    remote = text_job(bucket, policy)
    for job, path in ((local, bucket.path), (remote, tmp_path / "out")):
        job.write(1)
        job.complete(job.snapshot(), notify=0)
        job.kill()
        with pytest.raises(FileWriteError, match="another kind of store") as caught:
            text_job(SimpleNamespace(path=path), policy, restored=job.completed)
        assert "uid" in caught.value.hint


def test_an_upload_that_was_aborted_is_named(bucket):
    job = text_job(bucket, more=LARGE)
    job.write(3)
    job.checkpoint()
    job.kill()
    for target, upload_id in list(bucket.uploads.uploads_beneath(S3Object(bucket.name, ""))):
        bucket.uploads.abort(target, upload_id)
    with pytest.raises(FileWriteError, match="in progress at the checkpoint, no longer exists"):
        job.restart()


def test_a_batch_leaves_nothing_of_tasks_that_failed(bucket):
    failed, right = text_job(bucket, ON_CHECKPOINT), text_job(bucket, ON_CHECKPOINT)
    for job in (failed, right):
        job.write(2)
    failed.snapshot()
    committer = right.make_sink().create_committer()
    committer.commit(committables_of(right.snapshot()))
    assert len(bucket.open_uploads()) == 1
    committer.finish()
    committer.close()
    assert bucket.open_uploads() == []
    assert bucket.numbers() == [0, 1]
    failed.kill()
    right.kill()


# -- whole jobs ---------------------------------------------------------------------------------------


def run_job(bucket, sink, tmp_path, items, **settings):
    restarts = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "1 ms",
        "restart-strategy.fixed-delay.attempts": "20",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
    }
    configure_filesystems(Configuration())  # what a job needs it has in its own configuration
    env = test_environment(2, Configuration.from_dict({**restarts, **bucket.server.settings, **settings}))
    stream = env.from_source(TestingSource(items), WatermarkStrategy.no_watermarks(), "numbers")
    rows = stream.map(lambda number: Row(number=number), output_type=Types.ROW_NAMED(["number"], [Types.LONG()]))
    rows.rebalance().sink_to(sink).name("files").uid("files")
    env.execute("job")


@pytest.mark.parametrize(
    "execution",
    [
        {"execution.checkpointing.interval": "20 ms"},
        {"execution.exchange": "spark", "execution.epoch.max-records": "70"},
        {"execution.runtime-mode": "BATCH"},
    ],
    ids=["streaming", "epochs", "batch"],
)
def test_a_job_that_fails_writes_every_record_once(bucket, tmp_path, execution, armed):
    parquet = pytest.importorskip("pyarrow.parquet")
    factory = ParquetBulkWriters.for_row_type(Types.ROW_NAMED(["number"], [Types.LONG()]))
    sink = FileSink.for_bulk_format(bucket.path, factory).build()
    points = []
    for point in ("sink.commit", "sink.committed"):
        (tmp_path / point).touch()
        points.append(f"{point}=raise@{tmp_path / point}")
    armed(",".join(points))
    run_job(bucket, sink, tmp_path, [*range(200), ABORT(), *range(200, 400), ABORT(), *range(400, 500)], **execution)
    assert not any((tmp_path / point).exists() for point in ("sink.commit", "sink.committed"))
    tables = [parquet.read_table(io.BytesIO(bucket.read(key))) for key in bucket.objects()]
    assert sorted(number for table in tables for number in table["number"].to_pylist()) == list(range(500))
    assert bucket.open_uploads() == []


# -- what goes wrong -----------------------------------------------------------------------------------


def number_sink(path):
    return FileSink.for_row_format(path, Encoder.simple_string_encoder()).build()


def test_a_bucket_that_does_not_exist_is_named(bucket, tmp_path):
    with pytest.raises(JobExecutionError) as caught:
        run_job(bucket, number_sink("s3://no-such-bucket/a"), tmp_path, [1], **{"restart-strategy.type": "none"})
    assert "NoSuchBucket" in caught.value.failure.message
    assert "Create the bucket" in caught.value.failure.hint


def test_a_bucket_that_does_not_exist_is_noticed_before_anything_is_uploaded(bucket):
    bucket.path = "s3://nobody-has-it/out"
    job = text_job(bucket, STAY_OPEN)

    def is_noticed():
        try:
            job.write(1)
        except FileWriteError as error:
            return error
        raise AssertionError("not noticed yet")

    try:
        error = eventually(is_noticed)
    finally:
        job.kill()
    assert "NoSuchBucket" in error.message
    assert "Create the bucket" in error.hint
    assert error.path == bucket.path


def test_credentials_that_are_not_enough_are_named(bucket):
    def ask_for_credentials(after):
        url = f"{bucket.server.endpoint}/moto-api/reset-auth"
        request = urllib.request.Request(url, after, {"Content-Type": "text/plain"}, method="POST")
        urllib.request.urlopen(request, timeout=60).close()

    configure_filesystems(Configuration.from_dict({**bucket.server.settings, "s3.access-key": "unknown"}))
    ask_for_credentials(b"0")
    try:
        job = text_job(bucket)
        try:
            with pytest.raises(FileWriteError, match="InvalidAccessKeyId") as caught:  # noqa: PT012 - any may be the one
                job.write(1)
                job.finish()
        finally:
            job.kill()
    finally:
        ask_for_credentials(b"inf")
    assert "s3.access-key" in caught.value.hint
    assert caught.value.path.startswith(bucket.path)


def test_a_store_that_is_away_for_a_while_is_asked_again(bucket, tmp_path, armed):
    job = text_job(bucket, ON_CHECKPOINT)
    job.write(3)
    times = [tmp_path / f"time-{number}" for number in range(3)]
    for time in times:
        time.touch()
    armed(",".join(f"s3.request=raise@{time}" for time in times))
    job.finish()
    assert not any(time.exists() for time in times)
    assert bucket.numbers() == [0, 1, 2]


def test_a_store_that_stays_away_is_an_error_after_the_time_set(bucket):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        settings = {**bucket.server.settings, "s3.endpoint": endpoint, "s3.upload.timeout": "300 ms"}
        configure_filesystems(Configuration.from_dict(settings))
        job = text_job(bucket)
        with pytest.raises(FileWriteError, match=r"repeated for 0\.3 s") as caught:  # noqa: PT012 - either may be the one
            job.write(1)
            job.finish()
        assert "s3.endpoint" in caught.value.hint
        job.kill()


def test_a_slow_store_holds_back_the_task_but_does_not_block_it(bucket):
    job = text_job(bucket, ON_CHECKPOINT, more=LARGE)
    operator = job.subtasks[0]._chained.operator
    bucket.server.process.send_signal(signal.SIGSTOP)
    try:
        written = 0
        while operator.has_room():
            job.write(1)
            written += 1
            assert written < 50
    finally:
        bucket.server.process.send_signal(signal.SIGCONT)
    eventually(operator.has_room)
    job.finish()
    assert bucket.numbers() == list(range(written))


def test_bad_settings_are_refused(bucket):
    with pytest.raises(InvalidProgramError):
        FileSink.for_row_format("s3://", LineEncoder()).build()
    for key, value in (("s3.upload.min.part.size", "1000"), ("s3.upload.max.concurrent.uploads", "0")):
        with pytest.raises(InvalidProgramError, match=key):
            S3Uploads({key: value})


def test_without_the_package_the_extra_is_named(bucket, monkeypatch):
    real = importlib.import_module

    def missing(name, package=None):
        if name.startswith("botocore"):
            raise ImportError("No module named 'botocore'")
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(FileWriteError) as caught:
        S3Uploads(bucket.server.settings).create(S3Object(bucket.name, "a"))
    assert "firesteel[s3]" in caught.value.hint

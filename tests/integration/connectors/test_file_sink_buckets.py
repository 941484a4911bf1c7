"""Buckets for which there is no place: found with the record, before a checkpoint has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.common.errors import FileWriteError, JobExecutionError
from firesteel.common.serialization import Encoder
from firesteel.connectors.files import bucket_directories
from firesteel.connectors.files import committer as file_committer
from firesteel.connectors.files.bucket_directories import make_directories
from firesteel.connectors.files.sink import BucketAssigner, FileSink, RollingPolicy
from firesteel.testing import TestingSource, test_environment
from tests.support.jobs.sink_jobs import SinkJob

POLICIES = {
    "at checkpoints": RollingPolicy.on_checkpoint_rolling_policy(),
    "stays open": RollingPolicy.default_rolling_policy(),
}


class FirstOf(BucketAssigner):
    """The bucket is the first of a record's two values."""

    def get_bucket_id(self, element, context):
        return element[0]


class SecondEncoder(Encoder):
    def encode(self, element, stream):
        stream.write(f"{element[1]}\n".encode())


def sink(directory, policy=POLICIES["at checkpoints"]):
    builder = FileSink.for_row_format(directory, SecondEncoder()).with_bucket_assigner(FirstOf())
    return builder.with_rolling_policy(policy).build()


def visible(directory):
    files = [path for path in directory.rglob("part-*") if ".inprogress" not in path.parts]
    return sorted(line for path in files for line in path.read_text().splitlines())


def is_writable(path, mode):
    return "locked" not in str(path)


BAD = {
    "a name of 300 characters": "x" * 300,
    "64 characters of four bytes": "\U0001f600" * 64,
    "a path of 5,000 characters": "/".join(["y" * 200] * 25),
    "a path that is too long with the file's name": "/".join(["z" * 200] * 20),
    "a zero byte": "a\0b",
    "a lone surrogate": "a\ud800b",
    "a file of that name": "taken",
    "beneath a file": "taken/beneath",
    "not writable": "locked",
    "another file system": "elsewhere",
    "the sink's own": ".inprogress",
    "beneath the sink's own": ".inprogress/0",
    "above": "../out",
    "no text": None,
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("bucket", BAD.values(), ids=BAD)
def test_a_bad_bucket_fails_before_a_checkpoint_has_it(tmp_path, monkeypatch, bucket, policy):
    out = tmp_path / "out"
    out.mkdir()
    (out / "taken").write_text("")
    (out / "locked").mkdir()
    monkeypatch.setattr(bucket_directories.os, "access", is_writable)
    if bucket == "elsewhere":
        shared = Path("/dev/shm")
        if not shared.is_dir() or shared.stat().st_dev == out.stat().st_dev:
            pytest.skip("there is no other file system")
        (out / "elsewhere").symlink_to(shared)
    records = [("good", 0), ("good", 1), (bucket, 2), ("good", 3)]
    job = SinkJob(lambda: sink(out, policy), to_record=lambda number: records[number])
    job.write(2)
    job.checkpoint()
    with pytest.raises(FileWriteError) as caught:
        job.write(1)
    assert caught.value.hint
    if bucket is not None:
        assert "The record (" in caught.value.message
    # the program leaves the record out, and goes on
    records[2] = ("good", 20)
    job.restart()
    job.write(2)
    job.checkpoint()
    job.finish()
    job.kill()
    assert visible(out) == ["0", "1", "20", "3"]
    assert not (out / ".inprogress").exists()


def test_directories_in_which_nothing_is_are_removed(tmp_path):
    out = tmp_path / "out"
    (out / "there").mkdir(parents=True)
    records = [("a/b/c", 0), ("there/below", 1), ("kept", 2)]
    job = SinkJob(lambda: sink(out), to_record=lambda number: records[number])
    job.write(3)
    assert sorted(path.name for path in out.iterdir()) == [".inprogress", "a", "kept", "there"]
    job.kill()
    # what was there before stays
    assert [path.name for path in out.iterdir() if path.name != ".inprogress"] == ["there"]
    assert list((out / "there").iterdir()) == []
    job.restart()
    job.write(3)
    job.checkpoint()
    job.finish()
    job.kill()
    assert visible(out) == ["0", "1", "2"]
    assert not (out / ".inprogress").exists()


def test_a_directory_that_goes_away_before_the_commit_is_made_again(tmp_path):
    out = tmp_path / "out"
    job = SinkJob(lambda: sink(out), to_record=lambda number: ("a/b", number))
    job.write(2)
    snapshot = job.snapshot()
    (out / "a" / "b").rmdir()
    (out / "a").rmdir()
    job.complete(snapshot)
    assert visible(out) == ["0", "1"]
    job.kill()


def test_writers_that_end_while_another_one_uses_the_same_bucket(tmp_path, monkeypatch):
    """They remove directories that are empty, again and again, right after they were made."""
    out, removed = tmp_path / "out", []

    def make(directory):
        made = make_directories(directory)
        if len(removed) % 4:
            directory.rmdir()
        removed.append(directory)
        return made

    monkeypatch.setattr(bucket_directories, "make_directories", make)
    monkeypatch.setattr(file_committer, "make_directories", make)
    job = SinkJob(lambda: sink(out), to_record=lambda number: (f"a/{number}", number))
    for _ in range(5):
        job.write(1)
        (out / "a" / str(job.position - 1)).rmdir()
        job.checkpoint()
    job.kill()
    assert len(removed) > 20
    assert visible(out) == ["0", "1", "2", "3", "4"]


def test_new_directories_are_durable_before_the_checkpoint(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(bucket_directories, "sync_directory", lambda path: synced.append(Path(path)))
    out = tmp_path / "out"
    job = SinkJob(lambda: sink(out), to_record=lambda number: ("a/b", number))
    job.write(1)
    assert synced == []
    job.snapshot()
    assert set(synced) == {out, out / "a"}
    job.kill()


def test_directories_that_are_made(tmp_path):
    made, changed = make_directories(tmp_path / "a" / "b")
    assert made == [tmp_path / "a", tmp_path / "a" / "b"]
    assert changed == [tmp_path, tmp_path / "a"]
    assert make_directories(tmp_path / "a" / "b") == ([], [])
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match="Not a directory"):
            make_directories(path)
    assert list((tmp_path / "a").iterdir()) == [tmp_path / "a" / "b"]


def test_a_job_that_meets_a_value_no_directory_can_have(tmp_path):
    configuration = Configuration.from_dict(
        {
            "execution.checkpointing.interval": "20 ms",
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "2",
            "restart-strategy.fixed-delay.delay": "0 ms",
        }
    )
    out = tmp_path / "out"

    def run(records):
        env = test_environment(configuration=configuration)
        target = (
            FileSink.for_row_format(out, Encoder.simple_string_encoder())
            .with_bucket_assigner(BucketAssigner.by_field(lambda value: value))
            .with_rolling_policy(POLICIES["at checkpoints"])
            .build()
        )
        env.from_source(TestingSource(records), WatermarkStrategy.no_watermarks(), "s").sink_to(target)
        env.execute()

    with pytest.raises(JobExecutionError) as caught:
        run([*(f"key{n % 2}" for n in range(20)), "x" * 300])
    assert "The bucket 'key=xxx" in str(caught.value)
    assert "The record 'xxx" in str(caught.value)

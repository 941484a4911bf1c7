"""A file sink through failures: whatever is killed when, a reader of the directory sees every record once."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from firesteel.common.serialization import Encoder
from firesteel.connectors.files.committer import FileCommitter
from firesteel.connectors.files.part_file import FileWriteError
from firesteel.connectors.files.sink import BucketAssigner, FileSink, RollingPolicy
from firesteel.process import fault_points
from tests.support.jobs.sink_jobs import SinkJob, committables_of

ON_CHECKPOINT = RollingPolicy.on_checkpoint_rolling_policy()
STAY_OPEN = RollingPolicy.default_rolling_policy()


class Modulo(BucketAssigner):
    def get_bucket_id(self, element, context):
        return f"bucket-{element % 2}"


class Job(SinkJob):
    def __init__(self, directory, policy=STAY_OPEN, parallelism=1, job_id="feed", restored=None, run_id="", **options):
        options = {"bucket_assigner": BucketAssigner.base_path_bucket_assigner(), **options}

        def make_sink():
            return FileSink(directory, Encoder.simple_string_encoder(), rolling_policy=policy, **options)

        super().__init__(make_sink, parallelism, job_id, restored, run_id=run_id)


def visible(directory):
    """All records anyone reading the directory sees, in no order."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    seen = [
        path for path in files if not any(part.startswith((".", "_")) for part in path.relative_to(directory).parts)
    ]
    return sorted(int(line) for path in seen for line in path.read_text().splitlines())


def hidden(directory):
    return sorted(path.name for path in directory.rglob(".*inprogress") if path.is_file())


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture
def armed():
    yield fault_points.arm
    fault_points.arm("")


def test_records_are_visible_with_the_checkpoint_after_their_file_was_rolled(out):
    job = Job(out, ON_CHECKPOINT)
    job.write(3)
    snapshot = job.snapshot()
    job.write(2)
    assert visible(out) == []
    job.complete(snapshot)
    assert visible(out) == [0, 1, 2]
    job.finish()
    assert visible(out) == [0, 1, 2, 3, 4]


def test_a_file_stays_open_over_checkpoints_and_is_cut_back_after_a_failure(out):
    job = Job(out)
    job.write(3)
    job.checkpoint()
    job.write(4)
    assert visible(out) == []
    job.restart()
    assert job.position == 3
    job.write(2)
    job.finish()
    assert visible(out) == [0, 1, 2, 3, 4]
    assert len(list(out.iterdir())) == 1
    assert hidden(out) == []


@pytest.mark.parametrize("policy", [ON_CHECKPOINT, STAY_OPEN], ids=["roll", "stay-open"])
@pytest.mark.parametrize(
    "crash",
    ["before snapshot", "after snapshot", "after complete", "before commit", "during commit", "after commit"],
)
def test_a_crash_at_every_step_of_the_protocol(out, policy, crash, armed):
    job = Job(out, policy)
    job.write(5)
    job.checkpoint()
    before = visible(out)
    job.write(5)
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
        # another job's commit of the same files, cut off in the middle, looks like this
        job.completed = snapshot
        FileCommitter().commit(committables_of(snapshot)[:1])
    if crash in ("before snapshot", "after snapshot"):
        assert visible(out) == before
    job.restart()
    assert Counter(visible(out)) <= Counter(range(job.position))
    if policy is ON_CHECKPOINT:
        # what a completed checkpoint has finished is visible as soon as the job runs again
        assert visible(out) == list(range(job.position))
    job.write(20 - job.position)
    job.finish()
    assert visible(out) == list(range(20))
    assert hidden(out) == []


@pytest.mark.parametrize("policy", [ON_CHECKPOINT, STAY_OPEN], ids=["roll", "stay-open"])
def test_parallelism_one_two_one(out, policy):
    job = Job(out, policy, bucket_assigner=Modulo())
    job.write(10)
    job.checkpoint()
    job.write(3)
    job.restart(parallelism=2)
    job.write(10)
    job.complete(job.snapshot(), notify=1)
    job.write(3)
    job.restart(parallelism=1)
    job.write(10)
    job.checkpoint()
    job.restart()
    job.write(5)
    job.finish()
    assert visible(out) == list(range(35))
    assert hidden(out) == []


def test_the_parts_of_one_bucket_that_come_together_are_not_mixed(out):
    job = Job(out, parallelism=3)
    job.write(9)
    job.checkpoint()
    job.restart(parallelism=1)
    job.write(1)
    job.checkpoint()
    # none of the three goes on: what comes now is in a fourth
    assert len([path for path in out.iterdir() if path.is_file()]) == 3
    job.finish()
    assert visible(out) == list(range(10))


@pytest.mark.parametrize(("parallelism", "files"), [(2, 0), (1, 2), (3, 2)])
def test_at_another_parallelism_open_files_are_finished_before_what_comes_after_them(out, parallelism, files):
    """The next records of a key may be written by another subtask, whose file may be complete sooner."""
    job = Job(out, parallelism=2)
    job.write(9)
    job.checkpoint()
    job.restart(parallelism=parallelism)
    job.checkpoint()
    assert len([path for path in out.iterdir() if path.is_file()]) == files
    job.finish()
    assert visible(out) == list(range(9))


def test_what_a_failed_attempt_leaves_is_deleted_with_the_next_checkpoint(out):
    job = Job(out, RollingPolicy.default_rolling_policy(part_size=4), parallelism=2)
    job.write(20)
    job.checkpoint()
    job.write(20)
    job.restart(parallelism=3)
    leftovers = list((out / ".inprogress").glob("*/0-*/.part*"))
    assert leftovers
    snapshot = job.snapshot()
    assert [path for path in leftovers if path.exists()] == leftovers
    job.complete(snapshot)
    assert not [path for path in leftovers if path.exists()]
    job.write(1)
    job.finish()
    assert visible(out) == list(range(21))
    assert [path.name for path in out.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("policy", [ON_CHECKPOINT, STAY_OPEN], ids=["at checkpoints", "stays open"])
def test_what_attempts_under_another_leader_leave_is_deleted_with_the_next_checkpoint(out, policy):
    """Each leader begins to count them with 0."""
    first = Job(out, policy, run_id="first")
    first.write(2)
    first.checkpoint()
    for _ in range(3):
        first.write(3)
        first.restart()
    first.write(3)
    first.kill()
    leftovers = hidden(out)
    assert len(leftovers) >= 4
    second = Job(out, policy, restored=first.completed, run_id="second")
    second.write(3)
    snapshot = second.snapshot()
    assert set(hidden(out)) >= set(leftovers)
    second.complete(snapshot)
    kept = [path for path in (out / ".inprogress").glob("*/*-*/.part*") if path.name in leftovers]
    assert kept == []
    second.restart()
    second.write(1)
    second.finish()
    assert visible(out) == list(range(6))
    assert hidden(out) == []


def test_what_an_attempt_without_any_checkpoint_leaves_is_deleted_at_once(out):
    job = Job(out)
    job.write(5)
    job.restart()
    assert hidden(out) == []
    job.write(5)
    job.finish()
    assert visible(out) == list(range(5))


def test_a_checkpoint_can_be_restored_again_and_again(out):
    job = Job(out)
    job.write(5)
    job.checkpoint()
    for _ in range(3):
        job.restart()
        job.write(7)
    # one more checkpoint, found to be damaged: the older one is still good, since nothing was committed meanwhile
    older = job.completed
    job.checkpoint()
    job.write(1)
    job.completed = older
    job.restart()
    assert job.position == 5
    job.write(5)
    job.finish()
    assert visible(out) == list(range(10))
    assert hidden(out) == []


def test_a_process_taken_for_dead_cannot_reach_the_files_of_its_successor(out):
    zombie = Job(out)
    zombie.write(5)
    zombie.checkpoint()
    successor = Job(out, restored=zombie.completed)
    successor.kill()
    successor.attempt = 1
    successor.start(1)
    successor.write(5)
    zombie.write(50)
    successor.checkpoint()
    zombie.write(50)
    successor.finish()
    assert visible(out) == list(range(10))
    zombie.kill()
    assert visible(out) == list(range(10))


def test_a_job_started_from_anothers_snapshot_leaves_its_files_alone(out):
    first = Job(out, job_id="first")
    first.write(5)
    first.checkpoint()
    second = Job(out, job_id="second", restored=first.completed)
    second.attempt = 1
    second.kill()
    second.start(1)
    second.write(2)
    second.checkpoint()
    second.finish()
    first.write(3)
    first.finish()
    # each has written what it read; the first five were in progress in both
    assert visible(out) == sorted([*range(8), *range(7)])


def test_two_jobs_in_one_directory(out):
    one, other = Job(out, ON_CHECKPOINT, job_id="one"), Job(out, ON_CHECKPOINT, job_id="other")
    for job in (one, other):
        job.write(3)
        job.checkpoint()
    one.restart()
    other.write(2)
    one.write(2)
    one.checkpoint()
    other.finish()
    one.finish()
    assert visible(out) == sorted([*range(5), *range(5)])
    assert hidden(out) == []


def test_a_finished_file_that_a_reader_took_away_does_not_stop_the_recovery(out, caplog):
    job = Job(out, ON_CHECKPOINT)
    job.write(3)
    job.checkpoint()
    for path in out.iterdir():
        if path.is_file():
            path.unlink()
    job.restart()
    assert "assuming that it was committed" in caplog.text
    job.write(2)
    job.finish()
    assert visible(out) == [3, 4]


def test_a_checkpoint_older_than_a_finished_file_is_refused(out):
    job = Job(out)
    job.write(3)
    job.checkpoint()
    older = job.completed
    for harness in job.subtasks:
        harness.finish()
    job.checkpoint()
    job.completed = older
    with pytest.raises(FileWriteError, match="was finished after the checkpoint") as caught:
        job.restart()
    assert Path(caught.value.path).exists()


@pytest.mark.parametrize("damage", ["gone", "short"])
def test_a_hidden_file_that_is_not_as_it_was_is_named(out, damage):
    job = Job(out)
    job.write(3)
    job.checkpoint()
    [path] = out.rglob(".part*")
    job.kill()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(b"0\n")
    with pytest.raises(FileWriteError) as caught:
        job.restart()
    assert Path(caught.value.path).name == path.name


def test_a_pending_file_that_was_changed_is_not_committed(out):
    job = Job(out, ON_CHECKPOINT)
    job.write(3)
    snapshot = job.snapshot()
    [path] = out.rglob(".part*")
    path.write_bytes(b"0\n")
    with pytest.raises(FileWriteError, match="had 6 when it was complete"):
        job.complete(snapshot)
    job.kill()
    assert visible(out) == []


@pytest.mark.parametrize("seed", range(15))
def test_random_failures(out, seed):
    chance = random.Random(seed)
    policy = chance.choice([ON_CHECKPOINT, STAY_OPEN, RollingPolicy.default_rolling_policy(part_size=12)])
    buckets = chance.choice([Modulo(), BucketAssigner.base_path_bucket_assigner()])
    job = Job(out, policy, parallelism=chance.randint(1, 3), bucket_assigner=buckets)
    job.run_at_random(chance, 30, lambda: visible(out))
    assert hidden(out) == []

"""Compaction of a file sink's files, through failures."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.common.serialization import Encoder
from firesteel.connectors.files.sink import BucketAssigner, FileSink, RollingPolicy
from firesteel.datastream.connectors.file_system import FileCompactor, FileCompactStrategy, StreamingFileSink
from tests.unit.connectors.test_file_sink_recovery import ON_CHECKPOINT, STAY_OPEN, Job, Modulo, hidden, visible

CONCATENATED = FileCompactor.concat_file_compactor()


def strategy(checkpoints: int = -1, size: int = -1) -> FileCompactStrategy:
    return FileCompactStrategy(checkpoints, size)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.is_file())


def test_files_are_compacted_at_every_so_many_checkpoints(tmp_path: Path) -> None:
    job = Job(tmp_path, ON_CHECKPOINT, compaction=(strategy(2), FileCompactor.concat_file_compactor(b"9\n")))
    job.write(2)
    job.checkpoint()
    assert visible(tmp_path) == []
    job.write(2)
    job.checkpoint()
    assert visible(tmp_path) == [0, 1, 2, 3, 9]
    assert [name.partition("-part-")[0] for name in names(tmp_path)] == ["compacted"]
    assert hidden(tmp_path) == []
    job.write(1)
    job.finish()
    assert visible(tmp_path) == [0, 1, 2, 3, 4, 9]
    assert hidden(tmp_path) == []


def test_files_are_compacted_when_they_are_large(tmp_path: Path) -> None:
    job = Job(tmp_path, ON_CHECKPOINT, compaction=(strategy(size=8), CONCATENATED))
    for _ in range(4):  # two bytes a record
        job.write(2)
        job.checkpoint()
    assert len(names(tmp_path)) == 2
    assert visible(tmp_path) == list(range(8))


def test_what_waits_for_compaction_survives_a_failure(tmp_path: Path) -> None:
    job = Job(tmp_path, ON_CHECKPOINT, compaction=(strategy(2), CONCATENATED))
    job.write(3)
    job.checkpoint()
    job.write(3)
    job.snapshot()  # compacts, but is never completed
    job.restart(parallelism=2)
    assert visible(tmp_path) == []
    job.write(3)
    job.checkpoint()
    job.checkpoint()
    assert visible(tmp_path) == list(range(6))
    job.finish()
    assert hidden(tmp_path) == []


def test_a_sink_that_no_longer_compacts_commits_what_waits(tmp_path: Path) -> None:
    job = Job(tmp_path, ON_CHECKPOINT, compaction=(strategy(9), CONCATENATED))
    job.write(3)
    job.checkpoint()
    job.kill()
    again = Job(tmp_path, ON_CHECKPOINT, restored=job.completed)
    again.write(1)
    again.finish()
    assert visible(tmp_path) == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", range(12))
def test_random_failures(tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    job = Job(
        tmp_path,
        chance.choice([ON_CHECKPOINT, STAY_OPEN, RollingPolicy.default_rolling_policy(part_size=12)]),
        parallelism=chance.randint(1, 3),
        bucket_assigner=chance.choice([Modulo(), BucketAssigner.base_path_bucket_assigner()]),
        compaction=(chance.choice([strategy(1), strategy(3), strategy(size=30), strategy(4, 10)]), CONCATENATED),
    )
    job.run_at_random(chance, 30, lambda: visible(tmp_path))
    assert hidden(tmp_path) == []


def test_the_identical_compactor_takes_one_file() -> None:
    compactor, output = FileCompactor.identical_file_compactor(), io.BytesIO()
    compactor.compact([io.BytesIO(b"ab")], output)
    assert output.getvalue() == b"ab"
    with pytest.raises(InvalidProgramError, match="takes one file at a time, got 2"):
        compactor.compact([io.BytesIO(), io.BytesIO()], output)


def test_a_strategy_needs_a_condition() -> None:
    with pytest.raises(InvalidProgramError, match="needs a condition"):
        FileCompactStrategy.builder().set_num_compact_threads(2).build()
    built = FileCompactStrategy.builder().enable_compaction_on_checkpoint(5).set_size_threshold(10).build()
    assert built == strategy(5, 10)


def test_the_former_name_of_the_sink(tmp_path: Path) -> None:
    sink = StreamingFileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build()
    assert isinstance(sink, FileSink)

"""The size of batches: it follows the time that records take, and columns have batches that are worth it."""

from __future__ import annotations

from firesteel.runtime.task.batch_size import BatchSize


def test_records_that_take_long_come_in_small_batches() -> None:
    size = BatchSize(is_source=True, has_columns=False, adapts=True)
    for _ in range(10):
        size.adapt(size.most, 0.0)
    assert size.most == 4096
    size.adapt(size.most, 100.0)
    assert size.most == 1


def test_batches_of_columns_stay_large_however_long_they_take() -> None:
    size = BatchSize(is_source=True, has_columns=True, adapts=True)
    for _ in range(10):
        size.adapt(size.most, 0.0)
    assert size.most == 16_384
    size.adapt(size.most, 100.0)
    assert size.most == 1024


def test_a_task_learns_from_its_first_batch_that_it_reads_columns() -> None:
    size = BatchSize(is_source=False, has_columns=False, adapts=True)
    assert size.most == 1
    size.expect_columns()
    size.adapt(1, 100.0)
    assert size.most == 1024


def test_stages_take_batches_as_they_come() -> None:
    size = BatchSize(is_source=False, has_columns=False, adapts=False)
    before = size.most
    size.adapt(10, 100.0)
    assert size.most == before > 1 << 40

"""ColumnBatch: slices, filters, concatenation and pickling."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.columns.batch import ColumnBatch, concat_batches
from firesteel.runtime.model.elements import Batch
from tests.support.columns import bids, rows_of, simple


def test_its_length_is_the_number_of_rows_and_a_batch_of_it_can_be_split() -> None:
    batch = Batch(simple(1, 2, 3, kinds=[0, 1, 2], rowtime=0))
    assert len(batch) == 3
    first, rest = batch.split(1)
    assert rows_of(first.values, rest.values) == rows_of(batch.values)  # type: ignore[arg-type]
    assert rest.values.kinds.tolist() == [1, 2]  # type: ignore[attr-defined]
    assert rest.values.rowtime == 0  # type: ignore[attr-defined]


def test_a_slice_shares_memory() -> None:
    batch = bids(100)
    assert batch[10:20].data.column(0).buffers()[1].address == batch.data.column(0).buffers()[1].address
    assert len(batch[50:10]) == 0
    with pytest.raises(ValueError, match="no step"):
        batch[::2]


def test_rows_are_filtered_and_taken_with_their_kinds() -> None:
    batch = simple(1, 2, 3, kinds=[0, 1, 2])
    assert rows_of(batch.filter(pa.array([True, None, True]))) == rows_of(simple(1, 3, kinds=[0, 2]))
    assert rows_of(batch.take(np.array([2, 0]))) == rows_of(simple(3, 1, kinds=[2, 0]))
    assert rows_of(simple(1, 2).filter(pa.array([False, True]))) == rows_of(simple(2))


def test_other_columns_have_as_many_rows() -> None:
    with pytest.raises(ValueError, match="3 rows cannot become 2"):
        simple(1, 2, 3).with_data(simple(1, 2).data)


def test_batches_with_and_without_kinds_are_joined() -> None:
    joined = concat_batches([simple(1), simple(2, 3, kinds=[3, 1])])
    assert joined == simple(1, 2, 3, kinds=[0, 3, 1])


def test_it_is_not_iterated_over() -> None:
    with pytest.raises(InvalidProgramError) as caught:
        list(simple(1))
    assert "ColumnsToRowsSpec" in (caught.value.hint or "")


def test_it_is_pickled_without_the_rows_around_it() -> None:
    batch = bids(10_000)[100:110]
    pickled = pickle.dumps(batch)
    assert pickle.loads(pickled) == batch
    assert len(pickled) < 4000


def test_repr_shows_the_columns_not_the_rows() -> None:
    assert repr(simple(1, 2)) == "ColumnBatch(2 rows of number int64, text string)"
    assert simple(1) != [1]
    assert isinstance(simple(1), ColumnBatch)

"""Which transactions a snapshot sees, of whose numbers the log has only the lower half."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.connectors.postgres.cdc.transaction_snapshot import TransactionSnapshot


def test_what_has_ended_is_seen():
    snapshot = TransactionSnapshot.parse("10:20:10,14", "0/AB")
    assert [xid for xid in range(5, 25) if snapshot.sees(xid)] == [5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 18, 19]
    assert TransactionSnapshot.parse("20:20:", "0/0").sees(19)
    assert not TransactionSnapshot.parse("20:20:", "0/0").sees(20)


@pytest.mark.parametrize("epoch", [0, 1, 7])
def test_numbers_near_the_end_of_the_lower_half(epoch):
    begin = (epoch << 32) - 5 if epoch else 3
    snapshot = TransactionSnapshot(begin, begin + 10, frozenset({begin, begin + 6}), 0)
    seen = [number for number in range(-3, 15) if snapshot.sees((begin + number) % 2**32)]
    assert seen == [-3, -2, -1, 1, 2, 3, 4, 5, 7, 8, 9]


@given(st.integers(2**31, 2**40), st.integers(-(2**31) + 1, 2**31 - 1))
def test_the_nearest_number_counts(xmax, distance):
    snapshot = TransactionSnapshot(xmax, xmax, frozenset(), 0)
    assert snapshot.sees((xmax + distance) % 2**32) == (distance < 0)

"""Windows as values, and how time windows merge."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.constants import MAX_LONG_VALUE
from firesteel.common.windows import CountWindow, GlobalWindow, TimeWindow, TriggerResult
from firesteel.datastream.window import CountWindowSerializer, GlobalWindowSerializer, TimeWindowSerializer

WINDOWS = st.builds(lambda start, size: TimeWindow(start, start + size), st.integers(-50, 50), st.integers(1, 10))


class Merges:
    def __init__(self):
        self.groups = []

    def merge(self, to_be_merged, merge_result):
        self.groups.append((sorted(to_be_merged), merge_result))


def merges(*windows):
    callback = Merges()
    TimeWindow.merge_windows(windows, callback)
    return callback.groups


def test_time_window_is_a_value():
    window = TimeWindow(5, 15)
    assert window.max_timestamp() == 14
    assert window == TimeWindow(5, 15)
    assert hash(window) == hash(TimeWindow(5, 15))
    assert window != TimeWindow(5, 16)
    assert window != CountWindow(5)
    assert window != (5, 15)
    assert pickle.loads(pickle.dumps(window)) == window
    assert f"{window}" == "TimeWindow(start=5, end=15)"


def test_time_windows_are_ordered_by_start_then_end():
    ordered = [TimeWindow(0, 5), TimeWindow(0, 9), TimeWindow(1, 2)]
    assert sorted([ordered[2], ordered[1], ordered[0]]) == ordered
    assert TimeWindow(0, 5) <= TimeWindow(0, 5) < TimeWindow(0, 9)
    with pytest.raises(TypeError):
        _ = TimeWindow(0, 5) < CountWindow(3)


def test_windows_that_touch_intersect():
    assert TimeWindow(0, 10).intersects(TimeWindow(10, 20))
    assert TimeWindow(10, 20).intersects(TimeWindow(0, 10))
    assert not TimeWindow(0, 10).intersects(TimeWindow(11, 20))
    assert not TimeWindow(11, 20).intersects(TimeWindow(0, 10))
    assert TimeWindow(0, 10).cover(TimeWindow(15, 20)) == TimeWindow(0, 20)


def test_merging_groups_what_overlaps_or_touches():
    #  0---------10
    #            10---15        30--40
    groups = merges(TimeWindow(10, 15), TimeWindow(30, 40), TimeWindow(0, 10))
    assert groups == [([TimeWindow(0, 10), TimeWindow(10, 15)], TimeWindow(0, 15))]


def test_merging_follows_chains_of_overlaps():
    groups = merges(TimeWindow(8, 12), TimeWindow(0, 5), TimeWindow(4, 9))
    assert groups == [([TimeWindow(0, 5), TimeWindow(4, 9), TimeWindow(8, 12)], TimeWindow(0, 12))]


@given(st.lists(WINDOWS, max_size=12))
def test_merging_leaves_only_windows_that_do_not_intersect(windows):
    groups = merges(*windows)
    merged = {window for members, _ in groups for window in members}
    left = [window for window in set(windows) if window not in merged] + [result for _, result in groups]
    assert all(not a.intersects(b) for a in left for b in left if a is not b)
    covered = {t for window in windows for t in range(window.start, window.end)}
    assert covered == {t for window in left for t in range(window.start, window.end)}


@given(st.integers(-(10**6), 10**6), st.integers(1, 1000), st.integers(-999, 999))
def test_window_start_contains_the_timestamp(timestamp, size, offset):
    start = TimeWindow.get_window_start_with_offset(timestamp, offset, size)
    assert start <= timestamp < start + size
    assert (start - offset) % size == 0


def test_count_and_global_windows():
    assert CountWindow(3) == CountWindow(3) != CountWindow(4)
    assert CountWindow(3).max_timestamp() == GlobalWindow().max_timestamp() == MAX_LONG_VALUE
    assert GlobalWindow() is GlobalWindow.get()
    assert pickle.loads(pickle.dumps(GlobalWindow.get())) is GlobalWindow.get()
    assert pickle.loads(pickle.dumps(CountWindow(3))) == CountWindow(3)


@pytest.mark.parametrize(
    ("serializer", "window"),
    [
        (TimeWindowSerializer(), TimeWindow(-(10**12), 7)),
        (CountWindowSerializer(), CountWindow(2**40)),
        (GlobalWindowSerializer(), GlobalWindow.get()),
    ],
)
def test_window_serializers_are_inverse(serializer, window):
    assert serializer.from_bytes(serializer.to_bytes(window)) == window


@pytest.mark.parametrize(
    ("result", "fires", "purges"),
    [
        (TriggerResult.CONTINUE, False, False),
        (TriggerResult.FIRE, True, False),
        (TriggerResult.PURGE, False, True),
        (TriggerResult.FIRE_AND_PURGE, True, True),
    ],
)
def test_trigger_results(result, fires, purges):
    assert (result.is_fire(), result.is_purge()) == (fires, purges)
    assert pickle.loads(pickle.dumps(result)) is result

"""Open buffers, their sizes and limits, and the ways to emit."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.errors import FiresteelError, RecordSerializationError
from firesteel.runtime.model.elements import Batch, ControlEvent, EndOfData, Watermark
from firesteel.runtime.model.serialization import preview_record
from firesteel.runtime.network.config import NetworkConfig
from firesteel.runtime.network.partition import ResultPartition, ResultSubpartition


def partition(n: int = 1, **config: Any) -> ResultPartition:
    settings = NetworkConfig(**config)
    return ResultPartition([ResultSubpartition(config=settings) for _ in range(n)], config=settings)


def sent(subpartition: ResultSubpartition) -> list[Any]:
    """All that is queued: (values, timestamps) of buffers, and events."""
    subpartition.sender.add_credit(1_000_000)
    items: list[Any] = []
    while (polled := subpartition.poll()) is not None:
        item = polled[0]
        if isinstance(item, bytes):
            items.append(pickle.loads(item))
        elif isinstance(item, Batch):
            items.append((item.values, item.timestamps))
        else:
            items.append(item)
    return items


def records(subpartition: ResultSubpartition) -> list[Any]:
    return [v for item in sent(subpartition) if not isinstance(item, ControlEvent) for v in item[0]]


class TestSubpartition:
    def test_the_open_buffer_stays_the_same_list(self) -> None:
        sub = ResultSubpartition()
        append, stamp = sub.values.append, sub.timestamps.append
        append("a")
        stamp(1)
        sub.finish_buffer()
        append("b")
        stamp(2)
        sub.finish_buffer()
        assert sent(sub) == [(["a"], [1]), (["b"], [2])]

    def test_no_timestamps_are_sent_as_none(self) -> None:
        sub = ResultSubpartition()
        sub.values.append("a")
        sub.finish_buffer()
        assert sent(sub) == [(["a"], None)]

    def test_objects_mode_hands_over_the_objects_themselves(self) -> None:
        sub = ResultSubpartition(serialized=False)
        record = threading.Lock()
        sub.values.append(record)
        sub.finish_buffer()
        ((values, _),) = sent(sub)
        assert values[0] is record
        assert values is not sub.values

    def test_an_event_closes_the_open_buffer_and_stands_behind_it(self) -> None:
        sub = ResultSubpartition()
        sub.values.append(1)
        sub.add_event(Watermark(5))
        sub.values.append(2)
        sub.add_event(EndOfData())
        assert sent(sub) == [([1], None), Watermark(5), ([2], None), EndOfData()]

    def test_finishing_an_empty_buffer_does_nothing(self) -> None:
        sub = ResultSubpartition()
        sub.on_available = lambda: pytest.fail("nothing is available")
        sub.finish_buffer()
        assert len(sub.sender) == 0

    def test_a_timestamp_for_each_record_or_for_none(self) -> None:
        sub = ResultSubpartition()
        sub.values += [1, 2]
        sub.timestamps.append(1)
        with pytest.raises(ValueError, match="2 records but 1 timestamps"):
            sub.finish_buffer()

    def test_the_target_follows_the_size_of_records(self) -> None:
        sub = ResultSubpartition()
        assert sub.target == 1024
        sub.values += [bytes([i]) * 1000 for i in range(10)]
        sub.finish_buffer()
        assert 28 <= sub.target <= 33
        sub.values += [b"x" * 100_000]
        sub.finish_buffer()
        assert sub.target == 1
        sub.values += [1] * 100
        sub.finish_buffer()
        assert sub.target == 4096

    def test_a_long_open_buffer_is_closed_as_several(self) -> None:
        sub = ResultSubpartition()
        sub.values.extend(range(1_000_000))
        sub.finish_buffer()
        buffers = sent(sub)
        assert max(len(values) for values, _ in buffers) <= 4 * 4096
        assert [v for values, _ in buffers for v in values] == list(range(1_000_000))

    def test_the_first_buffer_of_large_records_is_not_huge(self) -> None:
        sub = ResultSubpartition()
        sub.values.extend(bytes(100_000) for _ in range(200))
        sub.timestamps.extend(range(200))
        sub.finish_buffer()
        buffers = sent(sub)
        assert max(len(values) for values, _ in buffers) == 1
        assert [t for _, timestamps in buffers for t in timestamps] == list(range(200))

    def test_buffers_over_the_frame_limit_are_halved(self) -> None:
        sub = ResultSubpartition(config=NetworkConfig(max_frame_bytes=1000))
        sub.values += [bytes([i]) * 300 for i in range(10)]
        sub.finish_buffer()
        buffers = sent(sub)
        assert max(len(values) for values, _ in buffers) <= 3
        assert [v[0] for values, _ in buffers for v in values] == list(range(10))

    def test_a_single_record_over_the_frame_limit_is_an_error(self) -> None:
        sub = ResultSubpartition(config=NetworkConfig(max_frame_bytes=1000))
        sub.values += [1, "x" * 2000]
        with pytest.raises(RecordSerializationError, match="limit is 1000 bytes") as caught:
            sub.finish_buffer()
        assert len(str(caught.value)) < 1000


class Opaque:
    """Refuses to be pickled."""

    def __init__(self, name: str):
        self.name = name

    def __reduce__(self) -> Any:
        raise TypeError("holds a socket")

    def __repr__(self) -> str:
        return f"Opaque({self.name})"


class TestSerializationErrors:
    def test_the_record_that_cannot_be_pickled_is_named(self) -> None:
        sub = ResultSubpartition()
        sub.values += [1, 2, Opaque("culprit" + "!" * 1000), Opaque("other")]
        with pytest.raises(RecordSerializationError) as caught:
            sub.finish_buffer()
        assert caught.value.record is not None
        assert caught.value.record.startswith("Opaque(culprit")
        assert len(caught.value.record) <= 200
        assert "holds a socket" in caught.value.message
        assert caught.value.hint is not None
        assert len(caught.value.message) < 500

    def test_a_class_that_cannot_be_looked_up_by_name_goes_by_value(self) -> None:
        class Local:
            def __init__(self, x: int):
                self.x = x

        sub = ResultSubpartition()
        sub.values += [Local(7)]
        sub.finish_buffer()
        ((values, _),) = sent(sub)
        assert values[0].x == 7

    def test_previews_are_short_and_never_fail(self) -> None:
        class Rude:
            def __repr__(self) -> str:
                raise RuntimeError("no")

        assert preview_record((1, "a")) == "(1, 'a')"
        assert "Rude" in preview_record(Rude())
        for large in ("x" * 10**6, b"x" * 10**6, list(range(10**6)), [["y" * 1000] * 1000]):
            assert len(preview_record(large)) <= 200


class TestRoom:
    def test_a_subpartition_with_too_many_unsent_buffers_stops_the_task(self) -> None:
        part = partition(4)
        for i in range(10):
            assert part.has_room
            part.emit_to(0, [i], None)
            part.flush()
        assert not part.has_room
        part.subpartitions[0].sender.add_credit(1)
        part.subpartitions[0].poll()
        assert part.has_room

    def test_too_many_unsent_buffers_in_all_stop_the_task(self) -> None:
        part = partition(4)  # 2 * 4 + 8
        for i in range(16):
            assert part.has_room
            part.emit_to(i % 4, [i], None)
            part.flush()
        assert not part.has_room
        assert part.queued == 16

    def test_events_take_no_room(self) -> None:
        part = partition()
        for i in range(100):
            part.broadcast_event(Watermark(i))
        assert part.has_room

    @given(st.lists(st.tuples(st.sampled_from(["emit", "poll", "event"]), st.integers(0, 2))))
    def test_room_is_what_the_queues_say(self, steps: list[tuple[str, int]]) -> None:
        part = partition(3, max_buffers_per_channel=3)
        for action, index in steps:
            sub = part.subpartitions[index]
            if action == "emit":
                sub.values.append(1)
                sub.finish_buffer()
            elif action == "event":
                sub.add_event(Watermark(1))
            else:
                sub.sender.add_credit(1)
                sub.poll()
            queued = [s.queued for s in part.subpartitions]
            assert part.has_room == (sum(queued) < 2 * 3 + 8 and max(queued) < 3)


class TestBuffers:
    def test_a_buffer_holds_records_with_timestamps_or_without(self) -> None:
        part = partition()
        part.emit_to(0, [1], None)
        part.emit_to(0, [2, 3], [20, 30])
        part.emit_to(0, [4], [40])
        part.emit_to(0, [5], None)
        part.flush()
        assert sent(part.subpartitions[0]) == [([1], None), ([2, 3, 4], [20, 30, 40]), ([5], None)]

    def test_after_batch_closes_full_buffers_only(self) -> None:
        part = partition(2, initial_records_per_buffer=3)
        part.begin(False)
        part.subpartitions[0].values += [1, 2, 3]
        part.subpartitions[1].values += [4, 5]
        part.after_batch()
        assert [s.queued for s in part.subpartitions] == [1, 0]
        part.flush()
        assert [s.queued for s in part.subpartitions] == [1, 1]

    def test_counters(self) -> None:
        part = partition(2)
        part.emit_rebalance([1, 2, 3], None)
        part.flush()
        assert (part.num_buffers_out, part.num_records_out) == (2, 3)
        assert part.num_bytes_out == len(pickle.dumps(([1, 3], None), 5)) + len(pickle.dumps(([2], None), 5))


class TestEmission:
    @given(st.integers(1, 5), st.lists(st.integers(0, 20)), st.booleans())
    def test_rebalance_is_exact_round_robin(self, n: int, sizes: list[int], stamped: bool) -> None:
        part = partition(n)
        expected: list[list[int]] = [[] for _ in range(n)]
        record = 0
        for size in sizes:
            values = list(range(record, record + size))
            part.emit_rebalance(values, [v * 10 for v in values] if stamped else None)
            for value in values:
                expected[value % n].append(value)
            record += size
        part.flush()
        for sub, values in zip(part.subpartitions, expected, strict=True):
            items = sent(sub)
            assert [v for batch, _ in items for v in batch] == values
            if stamped:
                assert [t for _, stamps in items for t in stamps] == [v * 10 for v in values]

    def test_rebalance_splits_a_very_long_input(self) -> None:
        part = partition(2)
        part.emit_rebalance(range(100_000), None)
        for index, sub in enumerate(part.subpartitions):
            buffers = sent(sub)
            assert len(buffers) > 1
            assert [v for values, _ in buffers for v in values] == list(range(index, 100_000, 2))

    def test_rebalance_may_start_anywhere(self) -> None:
        part = ResultPartition([ResultSubpartition() for _ in range(3)], first_channel=4)
        part.emit_rebalance(["a", "b"], None)
        part.flush()
        assert [records(s) for s in part.subpartitions] == [[], ["a"], ["b"]]

    def test_broadcast_reaches_all_and_is_serialised_once(self) -> None:
        pickled = []

        class Counting:
            def __reduce__(self) -> Any:
                pickled.append(1)
                return str, ("x",)

        subs = [ResultSubpartition(), ResultSubpartition(), ResultSubpartition(serialized=False)]
        part = ResultPartition(subs)
        part.emit_broadcast([1, Counting()], [10, 20])
        part.broadcast_event(Watermark(9))
        assert sent(subs[0]) == [([1, "x"], [10, 20]), Watermark(9)]
        assert sent(subs[1]) == [([1, "x"], [10, 20]), Watermark(9)]
        ((values, stamps), event) = sent(subs[2])
        assert (values[0], stamps, event) == (1, [10, 20], Watermark(9))
        assert len(pickled) == 1
        assert part.num_records_out == 2

    def test_shuffle_reaches_everyone_and_loses_nothing(self) -> None:
        part = partition(3)
        part.emit_shuffle(list(range(1000)), list(range(1000)))
        part.flush()
        received = [records(s) for s in part.subpartitions]
        assert all(received)
        assert sorted(v for values in received for v in values) == list(range(1000))

    def test_custom_follows_the_indexes(self) -> None:
        part = partition(2)
        part.emit_custom(["a", "b", "c"], [1, 2, 3], [1, 0, 1])
        part.flush()
        assert [sent(s) for s in part.subpartitions] == [[(["b"], [2])], [(["a", "c"], [1, 3])]]

    @pytest.mark.parametrize("wrong", [-1, 2])
    def test_custom_refuses_an_index_that_does_not_exist(self, wrong: int) -> None:
        part = partition(2)
        with pytest.raises(FiresteelError, match=f"channel {wrong} of 2 for the record 'b'"):
            part.emit_custom(["a", "b"], None, [0, wrong])

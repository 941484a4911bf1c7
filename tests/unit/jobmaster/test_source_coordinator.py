from __future__ import annotations

import pytest

from firesteel.common.errors import UserCodeError
from firesteel.jobmaster.sources.coordinator import SourceCoordinator
from firesteel.runtime.model.messages import AddSplits, NoMoreSplits, ReaderEvent


@pytest.fixture
def make_coordinator(make_source):
    def make(enumerator_type, parallelism=2):
        source = make_source(make_enumerator=enumerator_type)
        coordinator = SourceCoordinator("op", "numbers", source, parallelism, uid="u", defined_at="job.py:1")
        return coordinator, source

    return make


@pytest.fixture
def eager_enumerator(list_enumerator):
    class Eager(list_enumerator):
        """Assigns everything round robin before any reader is there."""

        def start(self):
            for index, split in enumerate(self.left):
                self.context.assign_split(split, index % self.context.current_parallelism())
            for subtask in range(self.context.current_parallelism()):
                self.context.signal_no_more_splits(subtask)

    return Eager


def test_splits_wait_for_their_reader_and_go_out_together(make_coordinator, eager_enumerator, make_split):
    coordinator, _ = make_coordinator(eager_enumerator)
    assert coordinator.start() == []
    assert coordinator.reader_started(1) == [
        (1, AddSplits("op", 1, (make_split("split-1"),))),
        (1, NoMoreSplits("op", 1)),
    ]
    assert coordinator.registered_readers() == [1]
    assert coordinator.reader_started(0) == [
        (0, AddSplits("op", 0, (make_split("split-0"), make_split("split-2")))),
        (0, NoMoreSplits("op", 0)),
    ]


def test_splits_on_request(make_coordinator, list_enumerator, make_split):
    coordinator, _ = make_coordinator(list_enumerator)
    coordinator.start()
    assert coordinator.reader_started(0) == []
    for index in range(3):
        assert coordinator.request_split(0, "h") == [(0, AddSplits("op", 0, (make_split(f"split-{index}"),)))]
    assert coordinator.request_split(0, "h") == [(0, NoMoreSplits("op", 0))]
    assert coordinator.request_split(0, "h") == []


def test_an_enumerator_may_assign_to_any_reader_at_any_time(make_coordinator, list_enumerator, make_split):
    class WaitsForAll(list_enumerator):
        def add_reader(self, subtask):
            if len(self.context.registered_readers()) == self.context.current_parallelism():
                for reader in self.context.registered_readers():
                    self.context.assign_split(self.left.pop(0), reader)

    coordinator, _ = make_coordinator(WaitsForAll)
    coordinator.start()
    assert coordinator.reader_started(1) == []
    assert coordinator.reader_started(0) == [
        (0, AddSplits("op", 0, (make_split("split-0"),))),
        (1, AddSplits("op", 1, (make_split("split-1"),))),
    ]


@pytest.mark.parametrize(
    ("subtask", "message"),
    [(0, "after signal_no_more_splits"), (5, "no reader 5: numbers has readers 0 to 1")],
)
def test_a_wrong_assignment_names_the_source(make_coordinator, list_enumerator, subtask, message):
    class Wrong(list_enumerator):
        def handle_split_request(self, _, host):
            self.context.signal_no_more_splits(0)
            self.context.assign_split(self.left[0], subtask)

    coordinator, _ = make_coordinator(Wrong)
    coordinator.start()
    coordinator.reader_started(0)
    with pytest.raises(UserCodeError, match=message) as raised:
        coordinator.request_split(0, None)
    failure = raised.value.failure
    assert (failure.operator, failure.uid, failure.defined_at) == ("numbers", "u", "job.py:1")
    assert (failure.error_type, failure.user_file) == ("ValueError", __file__)


def test_close_happens_once_and_only_after_start(make_coordinator, list_enumerator):
    class Counting(list_enumerator):
        closed = 0

        def close(self):
            self.closed += 1

    coordinator, source = make_coordinator(Counting)
    coordinator.close()
    coordinator.start()
    coordinator.close()
    coordinator.close()
    assert [enumerator.closed for enumerator in source.enumerators] == [1]
    with pytest.raises(UserCodeError, match="not running"):
        coordinator.request_split(0, None)


def test_events_and_splits_reach_a_reader_in_order(make_coordinator, list_enumerator, make_split):
    class Talkative(list_enumerator):
        def handle_source_event(self, subtask, event):
            self.context.assign_split(self.left.pop(0), subtask)
            self.context.send_event_to_reader(subtask, f"re: {event}")
            self.context.assign_split(self.left.pop(0), subtask)
            self.context.assign_split(self.left.pop(0), subtask)

    coordinator, _ = make_coordinator(Talkative)
    coordinator.start()
    assert coordinator.source_event(1, "hello") == [], "the reader has not started"
    first, second, third = (make_split(f"split-{number}") for number in range(3))
    assert coordinator.reader_started(1) == [
        (1, AddSplits("op", 1, (first,))),
        (1, ReaderEvent("op", 1, "re: hello")),
        (1, AddSplits("op", 1, (second, third))),
    ]


@pytest.fixture
def calling_enumerator(list_enumerator):
    class Calling(list_enumerator):
        """Looks something up, and again every ten milliseconds."""

        def start(self):
            self.handled = []
            self.context.call_async(lambda: "once", self.handle)
            self.context.call_async(lambda: 1 // 0, self.handle, initial_delay_ms=5, period_ms=10)

        def handle(self, result, error):
            self.handled.append((result, type(error)))

    return Calling


def test_calls_are_made_elsewhere_and_handled_here(make_coordinator, calling_enumerator):
    coordinator, source = make_coordinator(calling_enumerator)
    coordinator.start()
    once, often = coordinator.take_calls()
    assert (once.delay_ms, often.delay_ms, coordinator.take_calls()) == (0, 5, [])
    coordinator.call_returned(once.number, *once.make())
    assert coordinator.take_calls() == [], "a call without a period is made once"
    for _ in range(2):
        coordinator.call_returned(often.number, *often.make())
        [often] = coordinator.take_calls()
        assert often.delay_ms == 10
    assert source.enumerators[0].handled == [("once", type(None)), *[(None, ZeroDivisionError)] * 2]
    coordinator.call_returned(once.number, "again", None)
    coordinator.close()
    coordinator.call_returned(often.number, "late", None)
    assert len(source.enumerators[0].handled) == 3, "nothing is handled twice, and nothing after the end"


def test_a_handler_that_raises_names_the_source(make_coordinator, list_enumerator):
    class Angry(list_enumerator):
        def start(self):
            self.context.call_async(lambda: 1, self.handle)

        def handle(self, result, error):
            raise ValueError("no such topic")

    coordinator, _ = make_coordinator(Angry)
    coordinator.start()
    [call] = coordinator.take_calls()
    with pytest.raises(UserCodeError, match="no such topic") as raised:
        coordinator.call_returned(call.number, *call.make())
    assert raised.value.failure.operator == "numbers"

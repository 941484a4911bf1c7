"""Fakes of what a task and the JobMaster give a connector."""

from __future__ import annotations

import pickle
from collections import Counter
from types import SimpleNamespace

import pytest

from firesteel.spi.execution_traits import PIPELINED
from firesteel.spi.source import InputStatus


class FakeClock:
    def __init__(self, now=1000.0):
        self.now = now

    def __call__(self):
        return self.now

    def advance(self, seconds):
        self.now += seconds


class FakeReaderContext:
    execution = PIPELINED
    reuses_objects = False

    def __init__(self, subtask_index=0, parallelism=1, request=lambda subtask: None):
        self.subtask_index = subtask_index
        self.parallelism = parallelism
        self._request = request
        self.requests = 0
        self.now = 0
        self.alarms = []

        self.counts = Counter()

    def get_metrics_group(self):
        return SimpleNamespace(
            counter=lambda name: SimpleNamespace(inc=lambda by=1: self.counts.update({name: by})),
        )

    def processing_time(self):
        return self.now

    def poll_at(self, timestamp):
        self.alarms.append(timestamp)

    def monotonic_ms(self):
        return self.now

    def poll_after(self, delay):
        self.alarms.append(self.now + delay)

    def send_split_request(self):
        self.requests += 1
        self._request(self.subtask_index)


class FakeReaderOutput:
    def __init__(self):
        self.records = []
        self.batches = []
        self.released = []
        self.sides = []

    def emit_side(self, tag, values):
        self.sides += [(tag, value) for value in values]

    def collect(self, split_id, values, timestamps=None):
        assert split_id not in self.released
        self.batches.append(values)
        self.records.extend(values)

    def release_split(self, split_id):
        self.released.append(split_id)


class FakeWriterContext:
    def __init__(
        self, subtask_index=0, parallelism=1, attempt_number=0, sink_id="abc123", attempt_id="0123456789abcdef"
    ):
        self.subtask_index = subtask_index
        self.parallelism = parallelism
        self.attempt_number = attempt_number
        self.sink_id = sink_id
        self.attempt_id = attempt_id
        self.sent = []

    def send_to_client(self, channel, payload):
        self.sent.append((channel, payload))


class SourceHarness:
    """A source with its enumerator and all its readers; a request is answered at once."""

    def __init__(self, source, parallelism=1, *, enumerator_state=None, reader_states=None):
        self.source = pickle.loads(pickle.dumps(source))
        self.parallelism = parallelism
        self.assigned = {}
        self.contexts = [FakeReaderContext(i, parallelism, self._request) for i in range(parallelism)]
        self.outputs = [FakeReaderOutput() for _ in range(parallelism)]
        self.ended = [False] * parallelism
        if enumerator_state is None:
            self.enumerator = source.create_enumerator(self)
        else:
            self.enumerator = source.restore_enumerator(self, enumerator_state)
        self.enumerator.start()
        self.readers = [self.source.create_reader(context) for context in self.contexts]
        for reader, splits in zip(self.readers, reader_states or [], strict=False):
            reader.add_splits(splits)
        for reader in self.readers:
            reader.start()

    def current_parallelism(self):
        return self.parallelism

    def registered_readers(self):
        return list(range(self.parallelism))

    def assign_split(self, split, subtask):
        self.assigned.setdefault(subtask, []).append(split)
        self.readers[subtask].add_splits([pickle.loads(pickle.dumps(split))])

    def signal_no_more_splits(self, subtask):
        self.readers[subtask].notify_no_more_splits()

    def _request(self, subtask):
        self.enumerator.handle_split_request(subtask, None)

    def poll(self, subtask=0, max_records=10):
        status = self.readers[subtask].poll_next(self.outputs[subtask], max_records)
        self.ended[subtask] = status is InputStatus.END_OF_INPUT
        return status

    def run(self, max_records=10, max_polls=100_000):
        for _ in range(max_polls):
            for subtask in range(self.parallelism):
                if not self.ended[subtask]:
                    self.poll(subtask, max_records)
            if all(self.ended):
                self.close()
                return self
        raise AssertionError(f"the source did not end within {max_polls} polls")

    def snapshot(self):
        """(enumerator state, reader states), through pickle as a checkpoint would."""
        readers = [reader.snapshot_state(1) for reader in self.readers]
        return pickle.loads(pickle.dumps((self.enumerator.snapshot_state(1), readers)))

    def restored(self, parallelism=None):
        """A new harness that goes on from here; splits are dealt out anew if the parallelism differs."""
        enumerator_state, reader_states = self.snapshot()
        if parallelism is not None and parallelism != self.parallelism:
            splits = [split for state in reader_states for split in state]
            reader_states = [splits[i::parallelism] for i in range(parallelism)]
        return SourceHarness(
            self.source,
            parallelism or self.parallelism,
            enumerator_state=enumerator_state,
            reader_states=reader_states,
        )

    def close(self):
        for reader in self.readers:
            reader.close()
        self.enumerator.close()

    @property
    def records(self):
        return [record for output in self.outputs for record in output.records]


@pytest.fixture(scope="session")
def fakes():
    return SimpleNamespace(
        Clock=FakeClock,
        ReaderContext=FakeReaderContext,
        ReaderOutput=FakeReaderOutput,
        WriterContext=FakeWriterContext,
        SourceHarness=SourceHarness,
    )

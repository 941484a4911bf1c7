"""Print, collect and discarding sinks."""

from __future__ import annotations

import pickle

import pytest

from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.connectors.client.discarding_sink import DiscardingSink
from firesteel.connectors.client.print_sink import PrintSink


@pytest.mark.parametrize(
    ("identifier", "subtask", "parallelism", "line"),
    [
        (None, 0, 1, "7"),
        ("", 0, 1, "7"),
        (None, 0, 2, "1> 7"),
        (None, 2, 4, "3> 7"),
        ("spend", 0, 1, "spend> 7"),
        ("spend", 2, 4, "spend:3> 7"),
    ],
)
def test_print_prefix(fakes, identifier, subtask, parallelism, line):
    context = fakes.WriterContext(subtask, parallelism)
    writer = pickle.loads(pickle.dumps(PrintSink(identifier))).create_writer(context)
    writer.write_batch([7], None)
    assert context.sent == [("print", ("stdout", [line]))]


def test_print_sends_one_message_per_batch(fakes):
    context = fakes.WriterContext()
    writer = PrintSink(to_stderr=True).create_writer(context)
    writer.write_batch(["a", None, (1, "b"), 1.5], [1, 2, 3, 4])
    writer.write_batch([], None)
    writer.write_batch(range(2), None)
    assert context.sent == [
        ("print", ("stderr", ["a", "None", "(1, 'b')", "1.5"])),
        ("print", ("stderr", ["0", "1"])),
    ]


def test_print_names_itself_as_flink_does():
    assert PrintSink().name == "Print to Std. Out"
    assert PrintSink(to_stderr=True).name == "Print to Std. Err"


def test_collect_sends_lists(fakes):
    context = fakes.WriterContext()
    writer = pickle.loads(pickle.dumps(CollectSink("results-1"))).create_writer(context)
    batch = [1, 2]
    writer.write_batch(batch, None)
    batch.clear()
    writer.write_batch([], None)
    writer.write_batch(range(3), None)
    assert context.sent == [("results-1", [1, 2]), ("results-1", [0, 1, 2])]


def test_discarding_sends_nothing(fakes):
    context = fakes.WriterContext()
    writer = pickle.loads(pickle.dumps(DiscardingSink())).create_writer(context)
    writer.write_batch([1, 2], None)
    writer.flush(end_of_input=True)
    writer.close()
    assert context.sent == []

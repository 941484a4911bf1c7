"""Sources that look for new files while they run."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from firesteel.common import Duration, WatermarkStrategy
from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.base.split_reader import AskAgain
from firesteel.connectors.files import discovery as file_discovery
from firesteel.connectors.files.discovery import MonitoringSplitEnumerator
from firesteel.connectors.files.parquet_source import ParquetSource
from firesteel.connectors.files.source import FileEnumeratorProvider, FileSource, StreamFormat
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.spi.source import Boundedness, InputStatus

INTERVAL_S = 10


class Monitored(FileSource):
    """A source whose enumerator has the test's clock."""

    clock = None

    def _enumerator(self, context, restored=None):
        interval = self.discovery_interval_ms
        return MonitoringSplitEnumerator(
            context, self.paths, self._split_file, interval, restored=restored, clock=self.clock
        )

    def create_enumerator(self, context):
        return self._enumerator(context)

    def restore_enumerator(self, context, state):
        return self._enumerator(context, state)


@pytest.fixture(autouse=True)
def clock(fakes, monkeypatch):
    clock = fakes.Clock()
    monkeypatch.setattr(Monitored, "clock", clock)  # not of a source, which is pickled
    return clock


@pytest.fixture
def source(tmp_path):
    return source_of(tmp_path / "in")


def source_of(*paths, split_bytes=None):
    for path in paths:
        if not path.suffix:
            path.mkdir(exist_ok=True)
    files = FileEnumeratorProvider(split_bytes)
    return Monitored(StreamFormat.text_line_format(), paths, files, INTERVAL_S * 1000)


class Run:
    """A harness whose readers and enumerator share the test's clock."""

    def __init__(self, harness, clock, cleaning):
        self.harness = harness
        self.clock = clock
        self.cleaning = cleaning
        cleaning.callback(harness.close)

    def read(self):
        """What is read until there is nothing, in order if there is one reader."""
        before = [len(output.records) for output in self.harness.outputs]
        idle = 0
        while idle < 3:
            statuses = [self.harness.poll(subtask) for subtask in range(self.harness.parallelism)]
            assert InputStatus.END_OF_INPUT not in statuses
            idle = 0 if InputStatus.MORE_AVAILABLE in statuses else idle + 1
        pairs = zip(self.harness.outputs, before, strict=True)
        return [record for output, first in pairs for record in output.records[first:]]

    def wait(self, seconds=INTERVAL_S):
        self.clock.advance(seconds)
        for context in self.harness.contexts:
            context.now += round(seconds * 1000)

    def restored(self, parallelism=None):
        return Run(self.harness.restored(parallelism), self.clock, self.cleaning)


@pytest.fixture
def start(fakes, clock):
    with ExitStack() as cleaning:
        yield lambda source, parallelism=1: Run(fakes.SourceHarness(source, parallelism), clock, cleaning)


@pytest.fixture
def write(tmp_path):
    def write(*names, text=None):
        for name in names:
            path = tmp_path / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{name}\n" if text is None else text)

    return write


class TestFinding:
    def test_new_files_are_found_once_the_interval_has_passed(self, source, start, write):
        write("b", "a", "deep/er/c")
        run = start(source)
        assert run.read() == ["a", "b", "deep/er/c"]
        write("aa", "deep/d", "new/e")
        assert run.read() == []
        run.wait(INTERVAL_S / 2)
        assert run.read() == []
        run.wait(INTERVAL_S / 2)
        assert run.read() == ["aa", "deep/d", "new/e"]
        run.wait()
        assert run.read() == []

    def test_hidden_and_temporary_names_wait_for_being_renamed(self, source, start, write, tmp_path):
        write(".a", "_b", "_temporary/c", ".git/d", "e")
        run = start(source)
        assert run.read() == ["e"]
        (tmp_path / "in" / ".a").rename(tmp_path / "in" / "a")
        run.wait()
        assert run.read() == [".a"]

    def test_a_file_is_known_by_its_path(self, source, start, write, tmp_path):
        write("a", "b")
        run = start(source)
        run.read()
        write("a", text="changed\n")
        (tmp_path / "in" / "b").unlink()
        run.wait()
        assert run.read() == []
        write("b")
        run.wait()
        assert run.read() == []

    def test_paths_that_overlap_and_links_in_a_circle_give_a_file_once(self, start, write, tmp_path):
        write("deep/a.txt", "b")
        (tmp_path / "in" / "deep" / "here").symlink_to(tmp_path / "in" / "deep")
        run = start(source_of(tmp_path / "in", tmp_path / "in" / "deep", tmp_path / "in" / "deep" / "a.txt"))
        assert sorted(run.read()) == ["b", "deep/a.txt"]

    def test_all_splits_of_a_new_file_are_read(self, start, write, tmp_path):
        run = start(source_of(tmp_path / "in", split_bytes=10), 2)
        assert run.read() == []
        lines = [f"line {number}" for number in range(20)]
        write("large", text="\n".join(lines))
        run.wait()
        assert sorted(run.read()) == sorted(lines)
        assert all(output.records for output in run.harness.outputs)

    def test_readers_that_wait_get_what_another_ones_request_found(self, source, start, write):
        run = start(source, 3)
        assert run.read() == []
        write("a", "b", "c")
        run.wait()
        run.harness.contexts[1].now = run.harness.contexts[2].now = 0  # not their turn to ask
        run.read()
        assert sorted(len(output.records) for output in run.harness.outputs) == [1, 1, 1]

    def test_the_same_order_whatever_the_order_of_the_directory(self, source, start, write, monkeypatch):
        write(*(f"{number:03}" for number in range(150)), "050x/y")
        scandir = os.scandir

        class Backwards:
            def __init__(self, path):
                with scandir(path) as entries:
                    self._entries = sorted(entries, key=lambda entry: entry.name, reverse=True)

            def __enter__(self):
                return iter(self._entries)

            def __exit__(self, *exception):
                pass

        monkeypatch.setattr(os, "scandir", Backwards)
        names = [*(f"{number:03}" for number in range(51)), "050x/y", *(f"{number:03}" for number in range(51, 150))]
        assert start(source).read() == names


class TestAsking:
    def test_a_reader_without_a_split_asks_again_after_the_interval(self, source, start):
        run = start(source)
        context = run.harness.contexts[0]
        assert (context.requests, context.alarms) == (1, [10_000])
        run.read()
        assert context.requests == 1
        run.wait()
        run.read()
        assert (context.requests, context.alarms) == (2, [10_000, 20_000])

    def test_however_many_splits_there_are_one_alarm_is_set(self, source, start, write):
        write(*"abcdefgh")
        run = start(source)
        context = run.harness.contexts[0]
        while len(run.harness.records) < 8:
            context.now += 1000
            run.harness.poll()
        run.harness.poll()
        assert context.requests > 8
        assert context.alarms == [10_000]
        context.now = 10_000
        run.harness.poll()
        assert len(context.alarms) == 2  # it goes off too early, and is set to the right time
        context.now = context.alarms[-1]
        before = context.requests
        run.harness.poll()
        assert context.requests == before + 1

    def test_readers_of_static_sources_ask_for_no_alarm(self, fakes, write, tmp_path):
        write("a")
        static = FileSource.for_record_stream_format(StreamFormat.text_line_format(), tmp_path / "in").build()
        assert fakes.SourceHarness(static).run().contexts[0].alarms == []

    def test_a_long_search_goes_on_with_the_next_request(self, source, start, write, clock, monkeypatch):
        monkeypatch.setattr(file_discovery, "_ENTRIES_PER_CLOCK_CHECK", 2)
        write(*(f"deep/{number:02}" for number in range(20)), "z")
        steps = 0

        class Slow:
            """Each look at the clock takes a step's time."""

            def __call__(self):
                nonlocal steps
                steps += 1
                clock.advance(2 * file_discovery.MAX_STEP_S)
                return clock.now

        monkeypatch.setattr(Monitored, "clock", Slow())
        run = start(source)
        (first,) = run.harness.assigned[0]
        assert isinstance(first, AskAgain)
        assert run.read() == [*(f"deep/{number:02}" for number in range(20)), "z"]
        assert steps > 40
        asked = [split for split in run.harness.assigned[0] if isinstance(split, AskAgain)]
        assert len(asked) > 10
        assert {split.split_id for split in asked} <= set(run.harness.outputs[0].released)
        # a checkpoint may find one at its reader, who then asks again
        again = start(source)
        assert again.restored().read()[0] == "deep/00"

    def test_many_files_are_not_all_taken_in_hand_at_once(self, source, start, write):
        write(*(f"{number:03}" for number in range(300)))
        run = start(source)
        assert len(run.harness.snapshot()[0].pending) < 100
        assert len(run.read()) == 300


class TestRestoring:
    def test_what_was_known_is_not_read_again_and_what_is_new_is_found_at_once(self, source, start, write):
        write("a", "b")
        run = start(source)
        assert run.read() == ["a", "b"]
        write("c")
        restored = run.restored()
        assert restored.read() == ["c"]
        assert restored.restored().read() == []

    @pytest.mark.parametrize("polls", range(8))
    def test_at_any_moment_each_file_is_read_once(self, source, start, write, polls):
        write(*"abcde", text="1\n2\n3\n")
        run = start(source, 2)
        for poll in range(polls):
            run.harness.poll(poll % 2, max_records=2)
        write("f", text="4\n")
        restored = run.restored(parallelism=3)
        assert sorted([*run.harness.records, *restored.read()]) == sorted([*"123" * 5, "4"])

    @pytest.mark.parametrize("first", ["in", "link", "in/../in"])
    @pytest.mark.parametrize("then", ["in", "link", "in/../in", "link/../link"])
    def test_another_spelling_of_a_path_is_the_same_path(self, start, write, tmp_path, caplog, first, then):
        write("a", "deep/b")
        (tmp_path / "link").symlink_to(tmp_path / "in")
        run = start(source_of(tmp_path / first))
        assert sorted(run.read()) == ["a", "deep/b"]
        write("deep/c", "d")
        run.harness.source.paths = (tmp_path / then,)
        restored = run.restored()
        assert sorted(restored.read()) == ["d", "deep/c"]
        restored.harness.source.paths = (tmp_path / first,)
        assert restored.restored().read() == []
        assert caplog.records == []

    def test_a_directory_that_was_moved_and_is_linked_to_is_known(self, source, start, write, tmp_path):
        write("a", "deep/b")
        run = start(source)
        assert len(run.read()) == 2
        (tmp_path / "in").rename(tmp_path / "elsewhere")
        (tmp_path / "in").symlink_to(tmp_path / "elsewhere")
        write("c")
        assert run.restored().read() == ["c"]

    def test_a_file_given_by_name_through_a_link(self, start, write, tmp_path):
        write("a.txt")
        (tmp_path / "link").symlink_to(tmp_path / "in")
        run = start(source_of(tmp_path / "link" / "a.txt"))
        assert run.read() == ["a.txt"]
        run.harness.source.paths = (tmp_path / "in" / "a.txt",)
        assert run.restored().read() == []

    def test_links_beneath_a_path_are_paths_of_their_own(self, source, start, write, tmp_path):
        write("deep/a")
        (tmp_path / "in" / "other").symlink_to(tmp_path / "in" / "deep")
        run = start(source)
        assert run.read() == ["deep/a", "deep/a"]
        assert run.restored().read() == []

    def test_paths_that_the_checkpoint_knows_nothing_of_are_named(self, source, start, write, tmp_path, caplog):
        write("a")
        run = start(source)
        run.read()
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "x").write_text("x\n")
        run.harness.source.paths = (tmp_path / "new",)
        with caplog.at_level(logging.WARNING):
            restored = run.restored()
        assert restored.read() == ["x"]
        assert f"at or below {tmp_path / 'new'}: all files there are read" in caplog.text

    def test_a_checkpoint_of_a_static_source_is_refused(self, fakes, source, write, tmp_path):
        write("a")
        builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), tmp_path / "in")
        static = fakes.SourceHarness(builder.build())
        with pytest.raises(InvalidProgramError, match="fixed set of files"):
            source.restore_enumerator(static, static.snapshot()[0])

    def test_a_static_source_ends_with_what_a_monitored_one_has_left_over(self, fakes, source, start, write, tmp_path):
        write("a", "b", "c")
        run = start(source)
        static = FileSource.for_record_stream_format(StreamFormat.text_line_format(), tmp_path / "in").build()
        write("d")
        state, readers = run.harness.snapshot()
        assert fakes.SourceHarness(static, enumerator_state=state, reader_states=readers).run().records == [*"abc"]


class TestDirectoriesThatAreNotThere:
    def test_the_paths_must_exist_at_the_start(self, tmp_path, fakes, write):
        builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), tmp_path / "in")
        with pytest.raises(InvalidProgramError, match="does not exist"):
            builder.monitor_continuously(1000).build()
        write("a")
        source = builder.monitor_continuously(1000).build()
        (tmp_path / "in" / "a").unlink()
        (tmp_path / "in").rmdir()
        with pytest.raises(InvalidProgramError, match="cannot be listed: No such file"):
            fakes.SourceHarness(source)

    def test_one_that_goes_away_later_is_waited_for(self, source, start, write, tmp_path, caplog):
        write("a")
        run = start(source)
        assert run.read() == ["a"]
        (tmp_path / "in").rename(tmp_path / "away")
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                run.wait()
                assert run.read() == []
        (said,) = [record.getMessage() for record in caplog.records]
        assert f"The input directory '{tmp_path / 'in'}' cannot be listed, and is tried again" in said
        (tmp_path / "away").rename(tmp_path / "in")
        write("b")
        run.wait()
        assert run.read() == ["b"]

    def test_files_deleted_while_the_search_is_on_are_left_out(self, source, start, write, monkeypatch, tmp_path):
        write("a", "b", "c")
        split_file = source._split_file

        def deleting(path):
            (tmp_path / "in" / "b").unlink(missing_ok=True)
            return split_file(path)

        monkeypatch.setattr(source, "_split_file", deleting, raising=False)
        enumerator = source.create_enumerator(context := Recording())
        for _ in range(3):
            enumerator.handle_split_request(0, None)
        assert [Path(split.path).name for split in context.assigned] == ["a", "c"]
        assert enumerator.snapshot_state(1).known == {str(tmp_path / "in"): {"a", "c"}}


class Recording:
    def __init__(self):
        self.assigned = []

    def assign_split(self, split, subtask):
        self.assigned.append(split)


class TestDescription:
    def test_it_is_unbounded_until_it_is_static_again(self, tmp_path):
        builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), tmp_path)
        source = builder.monitor_continuously(Duration.of_seconds(90)).build()
        assert source.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
        assert repr(source) == f"FileSource({tmp_path}; text lines in UTF-8; new files every 90 s)"
        assert builder.process_static_file_set().build().get_boundedness() is Boundedness.BOUNDED

    def test_a_batch_refuses_it_by_name(self, tmp_path):
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), tmp_path)
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        monitored = source.monitor_continuously(Duration.of_seconds(1)).build()
        env.from_source(monitored, WatermarkStrategy.no_watermarks(), "landing zone").print()
        with pytest.raises(InvalidProgramError, match="landing zone"):
            env.get_execution_plan()


class TestParquet:
    @pytest.fixture
    def put(self, tmp_path):
        pa = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")

        def put(name, *values):
            parquet.write_table(pa.table({"n": list(values)}), tmp_path / name, row_group_size=2)

        return put

    def test_new_files_are_found_and_known_after_a_restore(self, put, tmp_path, fakes):
        put("a.parquet", 1, 2, 3)
        source = ParquetSource(tmp_path, as_tuples=True, discovery_interval=Duration.of_millis(1))
        assert source.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
        harness = fakes.SourceHarness(source)
        while len(harness.records) < 3:
            harness.poll()
        put("b.parquet", 4)
        restored = harness.restored()
        while restored.poll() is InputStatus.MORE_AVAILABLE:
            pass
        assert [*harness.records, *restored.records] == [(1,), (2,), (3,), (4,)]
        harness.close()
        restored.close()

    def test_a_static_one_goes_on_with_what_is_left_over(self, put, tmp_path, fakes):
        put("a.parquet", 1, 2, 3)
        monitored = fakes.SourceHarness(ParquetSource(tmp_path, as_tuples=True, discovery_interval=1))
        state, readers = monitored.snapshot()
        static = ParquetSource(tmp_path, as_tuples=True)
        assert fakes.SourceHarness(static, enumerator_state=state, reader_states=readers).run().records == [
            (1,),
            (2,),
            (3,),
        ]
        monitored.close()

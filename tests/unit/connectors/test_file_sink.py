from __future__ import annotations

import pickle
import re
import uuid
from pathlib import Path

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.common.serialization import Encoder
from firesteel.connectors.files.committer import FileCommitter
from firesteel.connectors.files.part_file import FileWriteError
from firesteel.connectors.files.sink import BucketAssigner, FileSink, OutputFileConfig, RollingPolicy


class ByParity(BucketAssigner):
    def get_bucket_id(self, element, context):
        return f"{'odd' if element % 2 else 'even'}/{context.timestamp}"


class Escaping(BucketAssigner):
    def get_bucket_id(self, element, context):
        return "../elsewhere"


class Kit:
    def __init__(self, base_path, fakes):
        self.base_path = base_path
        self.fakes = fakes
        self.clock = fakes.Clock(1_700_000_000.0)

    def sink(self, **options):
        options.setdefault("bucket_assigner", BucketAssigner.base_path_bucket_assigner())
        return FileSink(self.base_path, Encoder.simple_string_encoder(), clock=self.clock, **options)

    def writer(self, subtask=0, parallelism=1, **options):
        context = self.fakes.WriterContext(subtask, parallelism, sink_id=uuid.uuid4().hex)
        return self.sink(**options).create_writer(context)

    def finished(self):
        """Relative path → content of the files that anyone reading the directory would see."""
        return {name: content for name, content in self.all_files().items() if not Path(name).name.startswith(".")}

    def hidden(self):
        return {name: content for name, content in self.all_files().items() if Path(name).name.startswith(".")}

    def all_files(self):
        files = sorted(path for path in self.base_path.rglob("*") if path.is_file())
        return {str(path.relative_to(self.base_path)): path.read_text() for path in files}


@pytest.fixture
def kit(tmp_path, fakes):
    return Kit(tmp_path / "out", fakes)


def finish(writer):
    """As at the end of a job without checkpoints."""
    writer.flush(end_of_input=True)
    FileCommitter().commit(writer.prepare_commit())
    writer.close()


def test_a_batch_leaves_nothing_of_tasks_that_failed_and_everything_of_others(kit):
    sink_id = uuid.uuid4().hex
    failed, right = (kit.sink().create_writer(kit.fakes.WriterContext(0, 1, sink_id=sink_id)) for _ in range(2))
    other = kit.writer()
    for writer in (failed, right, other):
        writer.write_batch(["a"], None)
        writer.flush(end_of_input=True)
    committer = FileCommitter()
    committer.commit(right.prepare_commit())
    assert len(kit.hidden()) == 2
    committer.finish()
    assert list(kit.finished().values()) == ["a\n"]
    assert len(kit.hidden()) == 1
    FileCommitter().commit(other.prepare_commit())
    assert len(kit.finished()) == 2
    for writer in (failed, right, other):
        writer.close()


def test_finished_files_appear_at_the_end_of_the_input(kit):
    writer = kit.writer(subtask=3, parallelism=4)
    writer.write_batch(["a", "b"], None)
    writer.write_batch(["c"], None)
    assert kit.finished() == {}
    [hidden] = kit.hidden()
    assert re.fullmatch(r"\.inprogress/\w+/0-\w{16}/\.part-3-\w{12}-0\.inprogress", hidden)
    finish(writer)
    [(name, content)] = kit.finished().items()
    assert re.fullmatch(r"part-3-\w{12}-0", name)
    assert content == "a\nb\nc\n"
    assert list(kit.base_path.iterdir()) == [kit.base_path / name]


def test_a_failed_run_leaves_only_hidden_files(kit):
    writer = kit.writer(rolling_policy=RollingPolicy.default_rolling_policy(part_size=1))
    writer.write_batch(["a", "b"], None)
    writer.close()
    assert kit.finished() == {}
    assert sorted(kit.hidden().values()) == ["a\n", "b\n"]
    again = kit.writer()
    again.write_batch(["a", "b"], None)
    finish(again)
    assert list(kit.finished().values()) == ["a\nb\n"]


def test_a_checkpoint_that_never_completed_leaves_only_hidden_files(kit):
    writer = kit.writer()
    writer.write_batch(["a"], None)
    writer.flush(end_of_input=False)
    writer.write_batch(["b"], None)
    writer.close()
    assert kit.finished() == {}


def test_runs_do_not_overwrite_each_other(kit):
    for _ in range(2):
        writer = kit.writer()
        writer.write_batch(["same"], None)
        finish(writer)
    assert list(kit.finished().values()) == ["same\n", "same\n"]


def test_no_records_no_files(kit):
    writer = kit.writer()
    writer.write_batch([], None)
    finish(writer)
    assert not kit.base_path.exists()


def test_two_phases(kit):
    sink = kit.sink()
    writer = kit.writer(rolling_policy=RollingPolicy.on_checkpoint_rolling_policy())
    writer.write_batch(["before"], None)
    writer.flush(end_of_input=False)
    committables = pickle.loads(pickle.dumps(writer.prepare_commit()))
    assert writer.prepare_commit() == []
    writer.write_batch(["after"], None)
    assert kit.finished() == {}
    for _ in range(2):  # idempotent
        sink.create_committer().commit(committables)
        assert list(kit.finished().values()) == ["before\n"]
    writer.flush(end_of_input=True)
    last = writer.prepare_commit()
    writer.close()
    assert list(kit.finished().values()) == ["before\n"]
    sink.create_committer().commit([*committables, *last])
    assert list(kit.finished().values()) == ["before\n", "after\n"]
    assert kit.hidden() == {}


def test_committing_a_file_that_is_gone_is_an_error(kit):
    writer = kit.writer(rolling_policy=RollingPolicy.on_checkpoint_rolling_policy())
    writer.write_batch(["a"], None)
    writer.flush(end_of_input=False)
    [pending] = writer.prepare_commit()
    Path(pending.in_progress_path).unlink()
    with pytest.raises(FileWriteError) as caught:
        kit.sink().create_committer().commit([pending])
    assert caught.value.path == pending.final_path
    writer.close()


def test_rolls_by_size(kit):
    writer = kit.writer(rolling_policy=RollingPolicy.default_rolling_policy(part_size=5))
    writer.write_batch(["1", "22", "3", "4", "5"], None)
    writer.write_batch(["6"], None)
    finish(writer)
    # A file takes no further record once it is larger than five bytes.
    assert list(kit.finished().values()) == ["1\n22\n3\n", "4\n5\n6\n"]


def test_rolls_by_age_and_inactivity(kit):
    policy = RollingPolicy.default_rolling_policy(rollover_interval=10_000, inactivity_interval=3_000)
    writer = kit.writer(rolling_policy=policy, bucket_check_interval=1_000)
    for value in range(6):  # one every two seconds: rolled by age after ten
        writer.write_batch([value], None)
        kit.clock.advance(2)
    kit.clock.advance(2)
    writer.write_batch(["late"], None)  # rolled by inactivity
    finish(writer)
    assert list(kit.finished().values()) == ["0\n1\n2\n3\n4\n", "5\n", "late\n"]


def test_a_clock_that_is_set_back_does_not_keep_a_file_open(kit):
    policy = RollingPolicy.default_rolling_policy(rollover_interval=10_000, inactivity_interval=3_600_000)
    writer = kit.writer(rolling_policy=policy, bucket_check_interval=1_000)
    writer.write_batch(["a"], None)
    kit.clock.advance(-3600)
    writer.write_batch(["b"], None)
    kit.clock.advance(11)
    writer.write_batch(["c"], None)
    finish(writer)
    assert sorted(kit.finished().values()) == ["a\nb\n", "c\n"]


def test_age_is_checked_only_every_check_interval(kit):
    policy = RollingPolicy.default_rolling_policy(rollover_interval=1_000)
    writer = kit.writer(rolling_policy=policy, bucket_check_interval=60_000)
    writer.write_batch(["a"], None)
    kit.clock.advance(30)
    writer.write_batch(["b"], None)
    finish(writer)
    assert list(kit.finished().values()) == ["a\nb\n"]


def test_rolls_only_at_checkpoints(kit):
    writer = kit.writer(rolling_policy=RollingPolicy.on_checkpoint_rolling_policy())
    writer.write_batch(["a"] * 1000, None)
    kit.clock.advance(10_000)
    writer.write_batch(["b"], None)
    writer.flush(end_of_input=False)
    writer.write_batch(["c"], None)
    finish(writer)
    assert list(kit.finished().values()) == ["a\n" * 1000 + "b\n", "c\n"]


def test_prefix_and_suffix(kit):
    config = OutputFileConfig.builder().with_part_prefix("spend").with_part_suffix(".txt").build()
    assert (config.get_part_prefix(), config.get_part_suffix()) == ("spend", ".txt")
    writer = kit.writer(output_file_config=config)
    writer.write_batch([1], None)
    assert [bool(re.search(r"/\.spend-0-\w{12}-0\.txt\.inprogress$", name)) for name in kit.hidden()] == [True]
    finish(writer)
    assert [bool(re.fullmatch(r"spend-0-\w{12}-0\.txt", name)) for name in kit.finished()] == [True]


def test_buckets_by_element(kit):
    writer = kit.writer(bucket_assigner=ByParity())
    writer.write_batch([1, 2, 3], [10, 10, 10])
    writer.write_batch([4, 5], [10, 20])
    finish(writer)
    contents = {str(Path(name).parent): content for name, content in kit.finished().items()}
    assert contents == {"odd/10": "1\n3\n", "even/10": "2\n4\n", "odd/20": "5\n"}


def test_a_bucket_outside_the_base_path_is_an_error(kit):
    writer = kit.writer(bucket_assigner=Escaping())
    with pytest.raises(FileWriteError, match="elsewhere"):
        writer.write_batch([1], None)
    writer.close()


@pytest.mark.parametrize(
    ("pattern", "zone", "bucket"),
    [
        ("yyyy-MM-dd--HH", "UTC", "2023-11-14--22"),
        ("yyyy-MM-dd--HH", "GMT-08:00", "2023-11-14--14"),
        ("yyyy-MM-dd--HH", "Europe/Berlin", "2023-11-14--23"),
        ("'dt='yyyyMMdd/'at'HHmmss", "+01", "dt=20231114/at231320"),
        ("yy''MM'%Y'", "UTC", "23'11%Y"),
    ],
)
def test_date_time_buckets(pattern, zone, bucket):
    assigner = pickle.loads(pickle.dumps(BucketAssigner.date_time_bucket_assigner(pattern, zone)))
    assert assigner.get_common_bucket_id(1_700_000_000_000) == bucket


def test_hourly_buckets_are_the_default(kit):
    sink = FileSink.for_row_format(str(kit.base_path), Encoder.simple_string_encoder()).build()
    writer = sink.create_writer(kit.fakes.WriterContext())
    writer.write_batch([1], None)
    finish(writer)
    [name] = kit.finished()
    assert re.match(r"\d{4}-\d\d-\d\d--\d\d/part-0-", name)


def test_records_written_in_another_hour_go_to_another_bucket(kit):
    writer = kit.writer(bucket_assigner=BucketAssigner.date_time_bucket_assigner("HH", "UTC"))
    writer.write_batch(["a"], None)
    kit.clock.advance(3600)
    writer.write_batch(["b"], None)
    finish(writer)
    assert {Path(name).parent.name: content for name, content in kit.finished().items()} == {
        "22": "a\n",
        "23": "b\n",
    }


def test_builder_carries_every_setting(kit):
    policy = RollingPolicy.on_checkpoint_rolling_policy()
    assigner = BucketAssigner.base_path_bucket_assigner()
    config = OutputFileConfig("a", "b")
    sink = (
        FileSink.for_row_format(f"file://{kit.base_path}", Encoder.simple_string_encoder())
        .with_bucket_check_interval(5)
        .with_bucket_assigner(assigner)
        .with_rolling_policy(policy)
        .with_output_file_config(config)
        .disable_compact()
        .build()
    )
    assert (sink.base_path, sink.bucket_check_interval) == (kit.base_path, 5)
    assert (sink.bucket_assigner, sink.rolling_policy, sink.output_file_config) == (assigner, policy, config)
    assert repr(sink) == f"FileSink({kit.base_path}, buckets by base path)"


def test_bad_settings_are_refused(kit, tmp_path):
    encoder = Encoder.simple_string_encoder()
    (tmp_path / "file").touch()
    for make in (
        lambda: FileSink(tmp_path / "file", encoder),
        lambda: FileSink("gopher://host/path", encoder),
        lambda: kit.sink(bucket_check_interval=0),
        lambda: RollingPolicy.default_rolling_policy(part_size=0),
        lambda: RollingPolicy.default_rolling_policy(rollover_interval=-1),
        lambda: OutputFileConfig("a/b"),
        lambda: OutputFileConfig(".hidden"),
        lambda: BucketAssigner.date_time_bucket_assigner("yyyy-QQQ"),
        lambda: BucketAssigner.date_time_bucket_assigner("yyyy-'open"),
        lambda: BucketAssigner.date_time_bucket_assigner("yyyy", "Mars/Olympus"),
    ):
        with pytest.raises(InvalidProgramError):
            make()
    with pytest.raises(TypeError, match="needs a FileCompactStrategy"):
        FileSink.for_row_format("x", encoder).enable_compact(None, None)


def test_a_directory_that_cannot_be_made_is_named(kit, tmp_path):
    writer = kit.writer()
    kit.base_path.touch()
    with pytest.raises(FileWriteError) as caught:
        writer.write_batch([1], None)
    assert caught.value.path.startswith(str(tmp_path))
    writer.close()


class WithHeader(Encoder):
    """Knows from the stream whether it is at the beginning of a file."""

    def encode(self, element, stream):
        if stream.tell() == 0:
            stream.write(b"header\n")
        stream.write(f"{element}\n".encode())


def test_an_encoder_writes_into_the_part_file_itself(kit):
    policy = RollingPolicy.default_rolling_policy(part_size=10)
    sink = FileSink(
        kit.base_path,
        WithHeader(),
        bucket_assigner=BucketAssigner.base_path_bucket_assigner(),
        rolling_policy=policy,
    )
    writer = sink.create_writer(kit.fakes.WriterContext())
    writer.write_batch([1, 2], None)
    writer.write_batch([3], None)
    finish(writer)
    assert list(kit.finished().values()) == ["header\n1\n2\n", "header\n3\n"]


def test_a_large_batch_keeps_its_order(kit):
    writer = kit.writer()
    writer.write_batch(range(5000), None)
    finish(writer)
    assert list(kit.finished().values()) == ["".join(f"{i}\n" for i in range(5000))]

"""Jobs that are to start from state that is damaged, foreign or does not fit, and storage that is no good."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firesteel.api.state_ttl import StateTtlConfig
from firesteel.common import Configuration, Encoder, JobClient, JobStatus, Types
from firesteel.common.errors import (
    CheckpointStorageError,
    CorruptStateError,
    FiresteelError,
    FiresteelWarning,
    InvalidProgramError,
    JobExecutionError,
    StateIncompatibleError,
)
from firesteel.common.time import Time
from firesteel.datastream import KeyedProcessFunction
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.shell.job_preparation import prepare_job
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.runtime.checkpoint import storage
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.runtime.model.checkpoint_options import CheckpointLocation
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.testing import ABORT, eventually
from firesteel.testing.in_process import InProcessHost
from tests.support.jobs.running_jobs import (
    HOUR,
    DiscardingSink,
    Numbered,
    Probe,
    RunningJob,
    clock_of_today,
    environment,
    files_in,
    metadata_of,
    no_job_goes_on,  # noqa: F401 - a fixture
    number_pairs,
    numbered,
    pairs,
    phases,
    source,
    start,
)

every_backend = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
IN_FILES = {"execution__checkpointing__data_inline_threshold": "0 b"}


@pytest.fixture
def savepoint(tmp_path: Path) -> str:
    """The savepoint of a job that counts per key, in files."""
    clock = clock_of_today()
    env = environment(tmp_path / "first", 2, clock, **IN_FILES)
    return start(number_pairs(env, phases(clock, pairs(0, 100), []))).runs(clock).stop()


def refused(kind: type[FiresteelError], directory: Path, path: str, parallelism: int = 2, **overrides: str) -> Any:
    """What a job that starts from the path is told before anything runs."""
    env = environment(directory, parallelism, execution__state_recovery__path=path, **overrides)
    with pytest.raises(kind) as raised:
        start(number_pairs(env, pairs(0, 100)))
    assert not (directory / "checkpoints").exists(), "nothing was begun"
    return raised.value


def files_of(path: str) -> set[Path]:
    """The files with keyed state."""
    state = metadata_of(path).operator("numbered")
    assert state is not None
    return {Path(segment.path) for segment in state.segments()}


def state_file(path: str) -> Path:
    """A file with keyed state."""
    return min(files_of(path))


# -- damaged files, at submission -----------------------------------------------------------------------


def test_a_state_file_is_missing(savepoint: str, tmp_path: Path) -> None:
    file = state_file(savepoint)
    file.unlink()
    error = refused(CorruptStateError, tmp_path, savepoint)
    assert error.path == str(file)
    assert "missing" in error.message


def test_a_state_file_is_cut_off(savepoint: str, tmp_path: Path) -> None:
    file = state_file(savepoint)
    file.write_bytes(file.read_bytes()[:-1])
    error = refused(CorruptStateError, tmp_path, savepoint)
    assert error.path == str(file)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda data: data[:-1], CorruptStateError),
        (lambda data: data[:5], CorruptStateError),
        (lambda data: b"", CorruptStateError),
        (lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:], CorruptStateError),
        (lambda data: b"something else altogether", CorruptStateError),
        (lambda data: b"\x49\x60\x67\x2d" + data, StateIncompatibleError),
        (lambda data: data[:8] + (99).to_bytes(4, "big") + data[12:], StateIncompatibleError),
    ],
    ids=["cut off", "header only", "empty", "changed", "foreign", "of Flink", "of another version"],
)
def test_bad_metadata(change: Any, kind: type[FiresteelError], savepoint: str, tmp_path: Path) -> None:
    file = Path(savepoint) / "_metadata"
    file.write_bytes(change(file.read_bytes()))
    error = refused(kind, tmp_path, savepoint)
    assert str(file) in error.message


def test_a_directory_without_metadata(savepoint: str, tmp_path: Path) -> None:
    (Path(savepoint) / "_metadata").unlink()
    error = refused(CheckpointStorageError, tmp_path, savepoint)
    assert error.path == savepoint
    assert "_metadata" in error.hint


@every_backend
def test_a_state_file_is_changed(backend: str, savepoint: str, tmp_path: Path) -> None:
    """Only reading it shows that; the job is not started again and again for it."""
    file = state_file(savepoint)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    env = environment(tmp_path, 2, execution__state_recovery__path=savepoint, state__backend__type=backend)
    job = start(number_pairs(env, pairs(0, 100)))
    failure = job.fails().failure
    assert failure.error_type == "CorruptStateError"
    assert str(file) in failure.message
    assert "no older checkpoint" in failure.hint
    assert job.attempt == 2, "it is tried three times: a storage may have a bad moment"
    assert job.results == []


# -- damaged files, on a restart --------------------------------------------------------------------------


def damaged_on_restart(directory: Path, clock: Any, damage: Any, sink: Any, retained: int = 2) -> RunningJob:
    """A job whose newest checkpoint is damaged when the job fails."""
    env = environment(
        directory,
        2,
        clock,
        execution__checkpointing__num_retained=str(retained),
        execution__checkpointing__externalized_checkpoint_retention="RETAIN_ON_CANCELLATION",
        **IN_FILES,
    )
    probe = Probe()
    items = phases(clock, pairs(0, 100), pairs(100, 200), [ABORT(), *pairs(200, 300)])
    stream = number_pairs(env, items, bounded=False).map(probe.pass_on).map(str, Types.STRING())
    job = start(stream, sink).runs(clock)
    job.probe = probe  # type: ignore[attr-defined]
    older = files_of(job.checkpoint())
    clock.advance(HOUR)
    damage(min(files_of(job.checkpoint()) - older))
    clock.advance(HOUR)
    return job


def change(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("damage", [change, Path.unlink], ids=["changed", "missing"])
def test_the_older_checkpoint_is_used_and_said(damage: Any, tmp_path: Path) -> None:
    clock = clock_of_today()
    with pytest.warns(FiresteelWarning) as warned:  # noqa: PT031 - what the job's own thread says
        job = damaged_on_restart(tmp_path, clock, damage, DiscardingSink())
        eventually(lambda: job.attempt == 4)
        job.runs(clock)
    (said,) = {str(warning.message) for warning in warned}
    assert "Checkpoint 2" in said
    assert "checkpoint 1" in said
    assert str(tmp_path) in said, "the file is named"
    assert job.statistics["latest"]["restored"]["id"] == 1
    # the state is that of the older one, and no less: what came after it is processed again
    job.checkpoint()
    assert numbered(pairs(0, 300)) <= Counter(job.probe.values)  # type: ignore[attr-defined]
    assert set(job.probe.values) == set(numbered(pairs(0, 300)))  # type: ignore[attr-defined]
    job.cancel()


def test_output_that_was_committed_is_not_written_again(tmp_path: Path) -> None:
    clock = clock_of_today()
    sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
    job = damaged_on_restart(tmp_path, clock, change, sink)
    failure = job.fails().failure
    assert failure.error_type == "CorruptStateError"
    assert "Checkpoint 2 cannot be restored" in failure.message
    assert "checkpoint 1" in failure.hint
    assert "chk-1" in failure.hint, "how to do it all the same"
    assert job.status is JobStatus.FAILED


def test_results_that_were_given_out_are_not_given_again(tmp_path: Path) -> None:
    clock = clock_of_today()
    job = damaged_on_restart(tmp_path, clock, change, None)
    assert job.fails().failure.error_type == "CorruptStateError"
    assert Counter(job.results) == Counter(str(each) for each in numbered(pairs(0, 200)))


def test_there_is_no_older_checkpoint(tmp_path: Path) -> None:
    clock = clock_of_today()
    job = damaged_on_restart(tmp_path, clock, change, DiscardingSink(), retained=1)
    failure = job.fails().failure
    assert failure.error_type == "CorruptStateError"
    assert "no older checkpoint" in failure.hint
    assert job.attempt == 3
    assert files_in(tmp_path / "checkpoints"), "it is kept, damaged as it is"


# -- state that does not fit --------------------------------------------------------------------------------


class Keeping(KeyedProcessFunction):
    """Has one state, as a descriptor says."""

    def __init__(self, descriptor: Any):
        self.descriptor = descriptor

    def open(self, runtime_context: Any) -> None:
        get = {"value": "get_state", "list": "get_list_state", "map": "get_map_state"}[self.descriptor.kind]
        self.state = getattr(runtime_context, get)(self.descriptor)

    def process_element(self, value: Any, ctx: Any) -> Any:
        if self.descriptor.kind == "value":
            self.state.update(value[1])
        yield value


def with_ttl(descriptor: Any) -> Any:
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    return descriptor


LONG = ValueStateDescriptor("kept", Types.LONG())


@every_backend
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (LONG, ListStateDescriptor("kept", Types.LONG()), ("value", "list")),
        (LONG, MapStateDescriptor("kept", Types.STRING(), Types.LONG()), ("value", "map")),
        (LONG, ValueStateDescriptor("kept", Types.STRING()), ("Long", "String")),
        (LONG, with_ttl(ValueStateDescriptor("kept", Types.LONG())), ("time-to-live",)),
        (with_ttl(ValueStateDescriptor("kept", Types.LONG())), LONG, ("time-to-live",)),
    ],
    ids=["kind list", "kind map", "type", "with ttl", "without ttl"],
)
def test_a_state_that_has_changed(before: Any, after: Any, said: Any, backend: str, tmp_path: Path) -> None:
    clock = clock_of_today()
    items = phases(clock, pairs(0, 100), [])

    def build(descriptor: Any, **overrides: str) -> RunningJob:
        env = environment(tmp_path, 2, clock, state__backend__type=backend, **overrides)
        keyed = source(env, items).key_by(lambda pair: pair[0])
        return start(keyed.process(Keeping(descriptor)).uid("keeping").name("Keeper"))

    path = build(before).runs(clock).stop()
    job = build(after, execution__state_recovery__path=path)
    error = job.fails()
    assert isinstance(error, JobExecutionError)
    assert error.failure.error_type == "StateIncompatibleError"
    assert error.failure.operator == "Keeper"
    assert error.failure.uid == "keeping"
    assert "'kept'" in error.failure.message
    assert all(word in error.failure.message for word in said)
    assert job.attempt == 0, "no attempt can do better"
    assert job.results == []


def test_an_operator_is_missing(savepoint: str, tmp_path: Path) -> None:
    env = environment(tmp_path, 2, execution__state_recovery__path=savepoint)
    with pytest.raises(StateIncompatibleError) as raised:
        start(source(env, pairs(0, 100)).map(str))
    assert raised.value.operator == "KeyedProcess"
    assert "uid 'numbered'" in raised.value.message


def test_an_operator_has_lost_its_uid(savepoint: str, tmp_path: Path) -> None:
    env = environment(tmp_path, 2, execution__state_recovery__path=savepoint)
    keyed = source(env, pairs(0, 100)).key_by(lambda pair: pair[0])
    with pytest.raises(StateIncompatibleError) as raised:
        start(keyed.process(Numbered()))
    assert "uid 'numbered'" in raised.value.message
    assert ".uid(" in (raised.value.hint or ""), "the program has one of that name"


@pytest.mark.parametrize("most", [64, 256])
def test_another_max_parallelism(most: int, savepoint: str, tmp_path: Path) -> None:
    error = refused(StateIncompatibleError, tmp_path, savepoint, pipeline__max_parallelism=str(most))
    assert error.operator == "KeyedProcess"
    assert str(most) in error.message
    assert "128" in error.message
    assert "128" in error.hint


def test_more_subtasks_than_key_groups(tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path / "first", 1, clock, pipeline__max_parallelism="2")
    path = start(number_pairs(env, phases(clock, pairs(0, 10), []))).runs(clock).stop()
    error = refused(StateIncompatibleError, tmp_path, path, parallelism=3)
    assert error.operator == "KeyedProcess"
    assert "max parallelism 2" in error.message


def test_max_parallelism_is_taken_over_if_it_is_not_set(tmp_path: Path) -> None:
    clock = clock_of_today()
    items = phases(clock, pairs(0, 100), pairs(100, 200))
    env = environment(tmp_path, 2, clock, pipeline__max_parallelism="20")
    path = start(number_pairs(env, items)).runs(clock).stop()
    clock.advance(HOUR)
    job = start(number_pairs(environment(tmp_path, 3, clock, execution__state_recovery__path=path), items))
    assert Counter(job.wait()) == numbered(pairs(0, 200)) - numbered(pairs(0, 100))


def rewritten(path: str, change: Any) -> None:
    """Changes what the metadata of a savepoint say of the keyed state."""
    metadata = metadata_of(path)

    def of_subtask(index: int, state: Any) -> Any:
        return state if state.keyed is None else replace(state, keyed=change(index, state.keyed))

    operators = tuple(
        replace(state, subtasks={index: of_subtask(index, each) for index, each in state.subtasks.items()})
        for state in metadata.operators
    )
    changed: CheckpointMetadata = replace(metadata, operators=operators)
    (Path(path) / "_metadata").unlink()
    storage.store(CheckpointLocation(path, path), changed)


@pytest.mark.parametrize(
    "groups",
    [
        {0: KeyGroupRange(0, 63), 1: KeyGroupRange(64, 126)},
        {0: KeyGroupRange(0, 63), 1: KeyGroupRange(63, 127)},
        {0: KeyGroupRange(0, 62), 1: KeyGroupRange(64, 127)},
    ],
    ids=["the last is missing", "one is there twice", "one is missing"],
)
def test_key_groups_do_not_match(groups: dict[int, KeyGroupRange], savepoint: str, tmp_path: Path) -> None:
    rewritten(savepoint, lambda index, handle: replace(handle, key_groups=groups[index]))
    error = refused(StateIncompatibleError, tmp_path, savepoint)
    assert error.operator == "KeyedProcess"
    assert "key group" in error.message


def test_a_subtask_is_missing(savepoint: str, tmp_path: Path) -> None:
    metadata = metadata_of(savepoint)
    operators = tuple(replace(state, subtasks={0: state.subtasks[0]}) for state in metadata.operators)
    (Path(savepoint) / "_metadata").unlink()
    storage.store(CheckpointLocation(savepoint, savepoint), replace(metadata, operators=operators))
    error = refused(StateIncompatibleError, tmp_path, savepoint)
    assert error.operator is not None


# -- storage that is no good ----------------------------------------------------------------------------------


def test_a_checkpoint_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("in the way")
    with pytest.raises(CheckpointStorageError) as raised:
        start(number_pairs(environment(tmp_path, 2), pairs(0, 10)))
    assert str(tmp_path / "checkpoints") in raised.value.message
    assert raised.value.path is not None


def test_a_checkpoint_directory_that_cannot_be_written(tmp_path: Path) -> None:
    env = environment(tmp_path, 2, execution__checkpointing__dir="/proc/firesteel")
    with pytest.raises(CheckpointStorageError) as raised:
        start(number_pairs(env, pairs(0, 10)))
    assert "/proc/firesteel" in raised.value.message


def test_a_checkpoint_directory_that_is_missing_is_created(tmp_path: Path) -> None:
    env = environment(tmp_path, 2, execution__checkpointing__dir=str(tmp_path / "a" / "b" / "c"))
    assert len(start(number_pairs(env, pairs(0, 10))).wait()) == 10
    assert list((tmp_path / "a" / "b" / "c").iterdir()) == []


def test_a_scheme_that_nobody_knows(tmp_path: Path) -> None:
    env = environment(tmp_path, 2, execution__checkpointing__dir="gopher://bucket/checkpoints")
    with pytest.raises(FiresteelError, match="gopher"):
        start(number_pairs(env, pairs(0, 10)))


class _Elsewhere(InProcessHost):
    """A host on which the checkpoint directory, a link, leads to another place."""

    def __init__(self, link: Path, elsewhere: Path):
        super().__init__()
        self._link, self._elsewhere = link, elsewhere

    def start(self, attempt: Any, post: Any) -> None:
        self._link.unlink()
        self._link.symlink_to(self._elsewhere)
        super().start(attempt, post)


class _ElsewhereExecutor:
    def __init__(self, link: Path, elsewhere: Path):
        self._place = link, elsewhere

    def execute(self, job_graph: JobGraph, _configuration: Configuration) -> JobClient:
        runner = JobMasterRunner(prepare_job(job_graph, single_host=True), _Elsewhere(*self._place))
        runner.start()
        return JobClient(runner)


def test_a_checkpoint_directory_that_is_not_shared(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "checkpoints").symlink_to(tmp_path / "here")
    executor = _ElsewhereExecutor(tmp_path / "checkpoints", tmp_path / "there")
    job = start(number_pairs(environment(tmp_path, 2, executor=executor), pairs(0, 10)))
    failure = job.fails().failure
    assert failure.error_type == "CheckpointDirectoryError"
    assert str(tmp_path / "checkpoints") in failure.message
    assert "share" in (failure.hint or "")
    assert job.attempt == 0, "no attempt can do better"
    assert job.results == []


def test_an_unknown_backend(tmp_path: Path) -> None:
    env = environment(tmp_path, 2, state__backend__type="memory")
    with pytest.raises(InvalidProgramError) as raised:
        start(number_pairs(env, pairs(0, 10)))
    assert "'memory'" in raised.value.message
    assert "hashmap" in (raised.value.hint or "")
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize(
    "overrides",
    [
        {"execution__checkpointing__interval": "1 ms"},
        {"execution__checkpointing__num_retained": "0"},
        {"execution__checkpointing__max_concurrent_checkpoints": "0"},
        {
            "execution__checkpointing__unaligned__enabled": "true",
            "execution__checkpointing__mode": "AT_LEAST_ONCE",
        },
    ],
)
def test_settings_that_make_no_sense(overrides: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(InvalidProgramError, match=r"execution\.checkpointing|EXACTLY_ONCE"):
        start(number_pairs(environment(tmp_path, 2, **overrides), pairs(0, 10)))

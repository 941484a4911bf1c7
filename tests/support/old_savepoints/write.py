"""Writes the fixtures and objects of `fixtures` and `objects` that are not there yet."""

from __future__ import annotations

import base64
import json
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import cloudpickle

from firesteel.common import Configuration
from firesteel.common.job_client import JobClient
from firesteel.connectors.client.collect_sink import CollectSink, CollectWriter
from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.checkpoint import storage
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.runtime.checkpoint.state_file_reader import StateFileReader
from firesteel.runtime.operators.sink import COMMITTABLES
from firesteel.runtime.operators.source import SourceSpec
from firesteel.spi.sink import WriterContext
from firesteel.spi.source import InputStatus, ReaderContext, ReaderOutput, Source
from firesteel.testing import FakeClock, eventually
from tests.support.old_savepoints.fixtures import (
    DEADLINE_S,
    FIXTURES,
    OBJECTS_FILE,
    Fixture,
    read_objects,
    start,
    working_directory,
)
from tests.support.old_savepoints.objects import OBJECTS
from tests.support.old_savepoints.programs import WITH_FILES, Lines, prepare_input

NOW = 1_790_000_000_000
"""The time when fixtures are written."""


class _FullSink(CollectSink):
    """Takes no records, so that all stay in flight."""

    def create_writer(self, context: WriterContext) -> CollectWriter:
        writer = super().create_writer(context)
        writer.has_room = lambda: False  # type: ignore[method-assign]
        return writer


_given: list[int] = []
"""The numbers of records that halted readers gave."""


class _HaltedSource(Source[Any]):
    """Another source, each of whose readers stops after some records."""

    def __init__(self, source: Source[Any], records: int) -> None:
        self.source = source
        self.records = records
        self.emits_own_records = source.emits_own_records

    def get_boundedness(self) -> Any:
        return self.source.get_boundedness()

    def create_enumerator(self, context: Any) -> Any:
        return self.source.create_enumerator(context)

    def restore_enumerator(self, context: Any, state: Any) -> Any:
        return self.source.restore_enumerator(context, state)

    def create_reader(self, context: ReaderContext) -> Any:
        reader = self.source.create_reader(context)
        poll, available_at, left = reader.poll_next, reader.available_at, [self.records]

        def poll_next(output: ReaderOutput, max_records: int) -> InputStatus:
            return poll(_Counting(output, left), 1) if left[0] else InputStatus.NOTHING_AVAILABLE  # type: ignore[arg-type]

        reader.poll_next = poll_next  # type: ignore[method-assign]
        reader.available_at = lambda: available_at() if left[0] else None  # type: ignore[method-assign]
        return reader


class _Counting:
    """Counts the records of a reader."""

    def __init__(self, output: ReaderOutput, left: list[int]) -> None:
        self._output = output
        self._left = left

    def collect(self, split_id: str, values: Any, timestamps: Any = None) -> None:
        self._left[0] -= len(values)
        _given.append(len(values))
        self._output.collect(split_id, values, timestamps)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._output, name)


class _HaltingExecutor:
    """Runs jobs on another executor, with sources that halt."""

    def __init__(self, executor: Any, records: int) -> None:
        self._executor = executor
        self._records = records

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        vertices = []
        for vertex in job_graph.vertices:
            operators = tuple(map(self._halted, vertex.operators))
            vertices.append(replace(vertex, operators=operators))
        client: JobClient = self._executor.execute(replace(job_graph, vertices=tuple(vertices)), configuration)
        return client

    def _halted(self, operator: Any) -> Any:
        spec = operator.node.spec
        if not isinstance(spec, SourceSpec):
            return operator
        halted = replace(spec, source=_HaltedSource(spec.source, self._records))
        return replace(operator, node=replace(operator.node, spec=halted))


def _write(fixture: Fixture, directory: Path) -> None:
    with working_directory(directory / "work"):
        prepare_input()
        path, before = _interrupt(fixture, directory)
        _undo_commits(storage.load(str(path)))
    target = directory / "fixture"
    if fixture.is_savepoint:
        shutil.copytree(path, target / "savepoint")
    else:
        shutil.copytree(path.parent, target / "checkpoint")
    if fixture.program in WITH_FILES:
        shutil.copytree(directory / "work", target / "work")
    (target / "before.txt").write_text("".join(f"{value!r}\n" for value in before), encoding="utf-8")
    described = {name: value for name, value in asdict(fixture).items() if name != "name"}
    (target / "fixture.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    shutil.copytree(target, fixture.directory)


def _interrupt(fixture: Fixture, directory: Path) -> tuple[Path, list[Any]]:
    """Runs the program until its sources halt, and stores its state; the path of that, and the results."""
    clock = FakeClock(NOW)
    records = sys.maxsize if fixture.is_unaligned else fixture.each_reader
    client, channel = start(
        fixture,
        directory,
        clock=clock,
        with_executor=lambda executor: _HaltingExecutor(executor, records),
        sink=_FullSink if fixture.is_unaligned else CollectSink,
    )
    handle: Any = client._handle
    eventually(lambda: handle._master.checkpoints.is_running, timeout=DEADLINE_S)
    eventually(lambda: sum(_given) >= fixture.all_readers, timeout=DEADLINE_S)
    clock.settle()
    results = handle.collect_iterator(channel)
    if fixture.is_savepoint:
        path = handle.stop_with_savepoint(False, native=fixture.kind == "native-savepoint").result(DEADLINE_S)
        before = list(results)
        client.get_job_execution_result().result(DEADLINE_S)
    else:
        path = handle.trigger_checkpoint().result(DEADLINE_S)
        clock.settle()
        handle.cancel().result(DEADLINE_S)
        before = list(_until_cancelled(results))
    return Path(path), before


def _until_cancelled(results: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from results
    except Exception:
        return


def _undo_commits(metadata: CheckpointMetadata) -> None:
    """Leaves output as if the job had failed between the checkpoint and the commits."""
    for operator in metadata.operators:
        for state in operator.subtasks.values():
            for handle in state.operator:
                if handle.name == COMMITTABLES and handle.items:
                    for item in pickle.loads(StateFileReader().read(handle.data)):
                        _undo_commit(pickle.loads(item)[1])


def _undo_commit(committable: Any) -> None:
    if hasattr(committable, "in_progress_path"):
        hidden = Path(committable.in_progress_path)
        hidden.parent.mkdir(parents=True, exist_ok=True)
        Path(committable.final_path).rename(hidden)
    else:
        Lines().undo(committable.committable)


def _write_objects() -> None:
    stored = read_objects()
    for name, make in OBJECTS.items():
        stored.setdefault(name, cloudpickle.dumps(make(), 5))
    lines = {name: base64.b64encode(data).decode("ascii") for name, data in stored.items()}
    OBJECTS_FILE.write_text(json.dumps(lines, indent=2) + "\n", encoding="utf-8")


def main(names: Sequence[str]) -> None:
    """Writes the fixtures of these names or, without any, those that are not there: each in a process of its own."""
    missing = [fixture for fixture in FIXTURES if not fixture.directory.exists()]
    if not names:
        for fixture in missing:
            subprocess.run([sys.executable, "-m", "tests.support.old_savepoints.write", fixture.name], check=True)
        _write_objects()
    for fixture in missing:
        if fixture.name in names:
            with tempfile.TemporaryDirectory() as directory:
                _write(fixture, Path(directory))
            print(fixture.name)


if __name__ == "__main__":
    # under its own name, by which the functions of jobs find it
    from tests.support.old_savepoints.write import main as write

    write(sys.argv[1:])

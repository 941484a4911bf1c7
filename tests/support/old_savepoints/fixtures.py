"""Stored savepoints and checkpoints, in tests/golden/savepoints: each must be readable by all later versions.

A fixture is written once, by the version that is then the newest, and never again: what is in it shows what users have.
``python -m tests.support.old_savepoints.write`` writes those in FIXTURES that are not there yet. A directory has

- ``fixture.json``: the program, its settings, and the version that wrote it;
- ``savepoint`` or ``checkpoint``: the stored state;
- ``work``: files of the program, as they were when the state was stored;
- ``before.txt``: the results that the program had given by then.

``objects.json`` has the pickles of single objects.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import firesteel
from firesteel.common import Configuration
from firesteel.common.job_client import JobClient
from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.testing import FakeClock, test_environment
from tests.support.old_savepoints.programs import OUTPUT, PROGRAMS, prepare_input

__all__ = [
    "DEADLINE_S",
    "FIXTURES",
    "OBJECTS_FILE",
    "Fixture",
    "read_fixtures",
    "read_objects",
    "restore",
    "run",
    "start",
    "working_directory",
]

DIRECTORY = Path(__file__).parents[2] / "golden" / "savepoints"
OBJECTS_FILE = DIRECTORY / "objects.json"
DEADLINE_S = 120.0


@dataclass(frozen=True)
class Fixture:
    """One stored savepoint or checkpoint."""

    name: str
    program: str
    backend: str = "hashmap"
    kind: str = "savepoint"
    """savepoint, native-savepoint, checkpoint or unaligned-checkpoint."""
    parallelism: int = 2
    each_reader: int = 9
    """How many records each reader gives before the state is stored."""
    all_readers: int = 9
    version: str = firesteel.__version__

    @property
    def directory(self) -> Path:
        """Where it is."""
        return DIRECTORY / self.name

    @property
    def is_unaligned(self) -> bool:
        """Whether records are in flight."""
        return self.kind == "unaligned-checkpoint"

    @property
    def is_savepoint(self) -> bool:
        """Whether it is one, of whatever format."""
        return self.kind.endswith("savepoint")


def _on_both(program: str, *kinds: str, **options: Any) -> list[Fixture]:
    return [
        Fixture(f"{program}-{backend}-{kind}", program, backend, kind, **options)
        for backend in ("hashmap", "rocksdb")
        for kind in kinds
    ]


FIXTURES = [
    *_on_both("own_classes", "savepoint", "native-savepoint", "checkpoint"),
    *_on_both("script_classes", "savepoint", "native-savepoint"),
    *_on_both("timers", "savepoint", "native-savepoint"),
    *_on_both("windows", "savepoint", "native-savepoint"),
    *_on_both("connected", "savepoint", all_readers=18),
    *_on_both("broadcast", "savepoint", each_reader=3, all_readers=6),
    Fixture("sources", "sources", each_reader=5, all_readers=40),
    Fixture("hybrid-first-source", "hybrid", parallelism=1, each_reader=7, all_readers=7),
    Fixture("hybrid-second-source", "hybrid", parallelism=1, each_reader=22, all_readers=22),
    Fixture("files", "files", parallelism=1, each_reader=7, all_readers=7),
    Fixture("transactions", "transactions", each_reader=4, all_readers=8),
    Fixture("in_flight", "in_flight", kind="unaligned-checkpoint"),
]


def read_fixtures() -> list[Fixture]:
    """All that are stored."""
    found = sorted(DIRECTORY.glob("*/fixture.json"))
    return [Fixture(path.parent.name, **json.loads(path.read_text(encoding="utf-8"))) for path in found]


def read_objects() -> dict[str, bytes]:
    """The stored pickles by name."""
    if not OBJECTS_FILE.exists():
        return {}
    stored = json.loads(OBJECTS_FILE.read_text(encoding="utf-8"))
    return {name: base64.b64decode(data) for name, data in stored.items()}


# ---- running programs -------------------------------------------------------------------------------


def run(fixture: Fixture, directory: Path) -> Counter[str]:
    """The results of an uninterrupted run of the program."""
    with working_directory(directory / "work"):
        prepare_input()
        return _finish(fixture, directory)


def restore(fixture: Fixture, directory: Path) -> Counter[str]:
    """The results before the state was stored, and those of a job that goes on from there."""
    shutil.copytree(fixture.directory, directory, dirs_exist_ok=True)
    path = "savepoint" if fixture.is_savepoint else "checkpoint/chk-1"
    before = (directory / "before.txt").read_text(encoding="utf-8").splitlines()
    with working_directory(directory / "work"):
        after = _finish(fixture, directory, **{"execution.state-recovery.path": str(directory / path)})
    return Counter(before) + after


def _finish(fixture: Fixture, directory: Path, **settings: str) -> Counter[str]:
    client, channel = start(fixture, directory, **settings)
    collected = list(client._handle.collect_iterator(channel))  # type: ignore[attr-defined]
    client.get_job_execution_result().result(DEADLINE_S)
    return Counter([*map(repr, collected), *_lines()])


def _lines() -> Iterator[str]:
    """The lines in the finished output files, with their directories."""
    for path in Path(OUTPUT).rglob("*"):
        relative = path.relative_to(OUTPUT)
        if path.is_file() and not any(part.startswith(".") for part in relative.parts):
            yield from (f"{relative.parent}: {line}" for line in path.read_text(encoding="utf-8").splitlines())


@contextmanager
def working_directory(directory: Path) -> Iterator[None]:
    directory.mkdir(exist_ok=True)
    before = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)


def start(
    fixture: Fixture,
    directory: Path,
    *,
    clock: FakeClock | None = None,
    with_executor: Callable[[Any], Any] = lambda executor: executor,
    sink: type[CollectSink] = CollectSink,
    **settings: str,
) -> tuple[JobClient, str]:
    """Starts the program in this process; also returns the channel of its results."""
    env = test_environment(fixture.parallelism, _configuration(fixture, directory, settings), clock)
    env._executor = with_executor(env._executor)
    stream = PROGRAMS[fixture.program](env)
    channel = uuid.uuid4().hex
    if stream is not None:
        stream.sink_to(sink(channel)).uid("results")
    return env.execute_async(fixture.program), channel


def _configuration(fixture: Fixture, directory: Path, settings: Mapping[str, str]) -> Configuration:
    configuration = Configuration()
    for key, value in {
        "state.backend.type": fixture.backend,
        "execution.checkpointing.interval": "1 h",
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        "execution.checkpointing.savepoint-dir": str(directory / "savepoints"),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "execution.checkpointing.unaligned.enabled": str(fixture.is_unaligned).lower(),
        "taskmanager.memory.segment-size": "2 kb",
        "pipeline.auto-watermark-interval": "1 h",
        "restart-strategy.type": "none",
        **settings,
    }.items():
        configuration.set_string(key, value)
    return configuration

"""``firesteel savepoint inspect``, ``diff`` and ``dispose``, as a user calls them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.cli.main import main
from firesteel.config.configuration import Configuration
from firesteel.filesystem.stores import close_filesystems, configure_filesystems
from firesteel.runtime.checkpoint.storage import load
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.state_handles import StateMeta
from tests.support.checkpoints.savepoints import Keyed, Operator, write_savepoint
from tests.support.services.s3_server import S3Server, running_s3_server

PROGRAM = """\
import sys
from firesteel.common import Types
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor

class Sum(KeyedProcessFunction):
    def open(self, runtime_context):
        kind = Types.STRING() if "--text" in sys.argv else Types.LONG()
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", kind))

    def process_element(self, value, ctx):
        yield value

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1]).uid("source").key_by(lambda x: x).process(Sum()).name("Sum").uid("sum").print().uid("sink")
env.execute("sums")
"""


@pytest.fixture
def operators() -> list[Operator]:
    return [Operator("Sum", "sum", [Keyed(StateMeta("sum", "value", "Long"), {f"k{i}": i for i in range(100)})])]


@pytest.fixture
def savepoint(tmp_path: Path, operators: list[Operator]) -> str:
    return write_savepoint(tmp_path / "savepoint", operators)


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


def printed_json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_inspect(savepoint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", "inspect", savepoint]) == 0
    printed = capsys.readouterr().out
    assert "job         orders (0123456789abcdef0123456789abcdef)" in printed
    assert "Sum  (uid 'sum', id 239c254b5ff89532b198266322bc819f)" in printed
    (line,) = [line for line in printed.splitlines() if line.startswith("  sum ")]
    assert line.split() == ["sum", "value", "Long", "no", "-", "~100", "-"]


def test_inspect_reads_states_keys_and_subtasks(savepoint: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--states", "--keys", "sum", "--limit", "2", "--subtasks", "--verify"]
    assert main(["savepoint", "inspect", savepoint, *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "verified    all checksums match" in lines
    (line,) = [line.split() for line in lines if line.startswith("  sum ")]
    assert line[:6] == ["sum", "value", "Long", "no", "100", "100"]
    assert [line.split()[:2] for line in lines if line.lstrip().startswith(("0 ", "1 "))] == [
        ["0", "0-63"],
        ["1", "64-127"],
    ]
    keys = [line.split() for line in lines if "'k" in line]
    assert len(keys) == 2
    assert all(key == f"'k{value}'" for _, key, _, value in keys)


def test_inspect_as_json(savepoint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", "inspect", savepoint, "--json", "--states", "--keys", "sum"]) == 0
    description = printed_json(capsys)
    assert description["operators"][0]["keyed_states"][0]["keys"] == 100
    assert len(description["keys"]["sum"]) == 20


def test_inspect_takes_any_path_that_means_the_savepoint(savepoint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", "inspect", f"{savepoint}/_metadata"]) == 0
    assert main(["savepoint", "inspect", f"file://{savepoint}/"]) == 0
    assert capsys.readouterr().out.count("job         orders") == 2


def test_inspect_finds_damage(savepoint: str, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = Path(min(load(savepoint).files()))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert main(["savepoint", "inspect", savepoint]) == 0, "the metadata alone is fine"
    assert main(["savepoint", "inspect", savepoint, "--verify"]) == 1
    assert str(damaged) in capsys.readouterr().err
    assert main(["savepoint", "inspect", savepoint, "--states"]) == 1
    metadata = Path(savepoint) / "_metadata"
    metadata.write_bytes(metadata.read_bytes()[:-1])
    assert main(["savepoint", "inspect", savepoint]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_inspect_of_an_unknown_state(savepoint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", "inspect", savepoint, "--keys", "summ"]) == 1
    assert "Keyed states: sum." in capsys.readouterr().err


def test_diff_restores(savepoint: str, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", "diff", savepoint, program]) == 0
    printed = capsys.readouterr().out
    assert "= Sum  (uid 'sum'" in printed
    assert "The job would start from this savepoint." in printed


def test_diff_refuses(savepoint: str, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", "diff", savepoint, program, "--text"]) == 1
    printed = capsys.readouterr().out
    assert "! Sum  (uid 'sum'" in printed
    assert "Long" in printed
    assert "String" in printed


def test_diff_as_json(savepoint: str, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--json", "-p", "3", "-D", "pipeline.name=x"]
    assert main(["savepoint", "diff", *arguments, savepoint, program]) == 0
    found = printed_json(capsys)
    assert found["would_restore"] is True
    (operator,) = [operator for operator in found["operators"] if operator["name"] == "Sum"]
    assert (operator["verdict"], operator["parallelism"]) == ("restored", [2, 3])
    assert operator["states"][0]["saved"]["entries"] == 100


def test_diff_without_opening_functions(savepoint: str, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", "diff", "--no-open", savepoint, program, "--text"]) == 0
    assert "unknown" in capsys.readouterr().out


def test_diff_with_dropped_state(tmp_path: Path, program: str, operators: list[Operator]) -> None:
    other = Operator("Gone", "gone", [Keyed(StateMeta("x", "value"), {1: 1})])
    path = write_savepoint(tmp_path / "more", [*operators, other])
    assert main(["savepoint", "diff", path, program]) == 1
    assert main(["savepoint", "diff", "--allow-non-restored-state", path, program]) == 0
    allowed = "execution.state-recovery.ignore-unclaimed-state=true"
    assert main(["savepoint", "diff", "-D", allowed, path, program]) == 0


def test_diff_that_cannot_be_made(savepoint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import no_such_module_anywhere\n")
    assert main(["savepoint", "diff", savepoint, str(broken)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "no_such_module_anywhere" in printed.err


def test_dispose(savepoint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", "dispose", savepoint]) == 0
    assert not Path(savepoint).exists()
    assert capsys.readouterr().out.startswith(f"Disposed of {savepoint}")
    assert main(["savepoint", "dispose", savepoint]) == 1


def test_dispose_refuses_what_is_no_savepoint(
    tmp_path: Path, operators: list[Operator], capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = write_savepoint(tmp_path / "job" / "chk-7", operators, kind=SnapshotKind.CHECKPOINT)
    assert main(["savepoint", "dispose", checkpoint]) == 2
    assert "is a checkpoint" in capsys.readouterr().err
    assert main(["savepoint", "inspect", checkpoint, "--verify"]) == 0
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "cat.jpg").write_bytes(b"meow")
    assert main(["savepoint", "dispose", str(photos)]) == 1
    assert (photos / "cat.jpg").exists()


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with running_s3_server() as server:
        yield server


def test_savepoint_in_s3(s3: S3Server, operators: list[Operator], capsys: pytest.CaptureFixture[str]) -> None:
    settings = [part for key, value in s3.settings.items() for part in ("-D", f"{key}={value}")]
    path = f"{s3.create_bucket('savepoints')}/orders/savepoint-1"
    try:
        configure_filesystems(s3.configuration)
        write_savepoint(path, operators)
        assert main(["savepoint", "inspect", path, "--states", "--verify", *settings]) == 0
        assert "all checksums match" in capsys.readouterr().out
        assert main(["savepoint", "dispose", path, *settings]) == 0
        assert main(["savepoint", "inspect", path, *settings]) == 1
    finally:
        close_filesystems()
        configure_filesystems(Configuration())

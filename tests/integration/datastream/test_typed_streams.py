"""What mypy infers of streams. The same program is checked with pyright by hand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from firesteel.testing import collect, test_environment
from tests.support.typing import typed_streams

ROOT = Path(__file__).parents[3]
PROGRAM = Path(typed_streams.__file__)
MISTAKES = """

def mistakes(env: StreamExecutionEnvironment) -> None:
    events = env.from_collection(EVENTS)
    numbers = env.from_sequence(1, 10)
    numbers.map(Name())  # error
    numbers.filter(lambda number: number.user == "Ada")  # error
    events.map(lambda event: event.usr)  # error
    events.key_by(lambda event: event.user).process(Cents())  # error
    numbers.key_by(lambda number: number).process(PerUser())  # error
    events.map(Name()).key_by(lambda name: name).reduce(lambda a, b: len(a))  # error
    narrower: DataStream[Click] = events  # error
    _ = narrower
"""


def test_streams_have_the_types_of_their_functions(tmp_path: Path) -> None:
    program = PROGRAM.read_text(encoding="utf-8") + MISTAKES
    copy = tmp_path / "typed_program.py"  # not in tests, to which lenient rules apply
    copy.write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context", "--no-pretty", str(copy)],
        cwd=ROOT,  # for the configuration, and for the cache of `make types`
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    wrong = {number for number, line in enumerate(program.splitlines(), 1) if line.endswith("# error")}
    assert len(wrong) == 7
    assert {int(line) for line in re.findall(r":(\d+): error: ", done.stdout)} == wrong, done.stdout + done.stderr


def test_the_typed_program_runs() -> None:
    env = test_environment()
    assert collect(typed_streams.build(env)) == ["Ada", "Grace"]

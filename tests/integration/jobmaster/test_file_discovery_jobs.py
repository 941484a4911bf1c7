"""Whole jobs that read files as they come: pipelined, in epochs, and in runs that go on from each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firesteel.cli.main import main
from firesteel.common import Configuration, Duration, WatermarkStrategy
from firesteel.common.errors import JobCancelledError
from firesteel.common.serialization import Encoder
from firesteel.connectors.files.sink import FileSink, OnCheckpointRollingPolicy
from firesteel.connectors.files.source import FileSource, StreamFormat
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.executor import execution_context
from firesteel.testing import eventually
from firesteel.testing.in_process import InProcessExecutor
from firesteel.testing.stages import InProcessStageRunner
from tests.support.jobs.endless import ended
from tests.support.visible_files import visible_lines

NIGHTLY = """\
import sys
from firesteel.common import Duration, WatermarkStrategy
from firesteel.common.serialization import Encoder
from firesteel.connectors.files.sink import FileSink, OnCheckpointRollingPolicy
from firesteel.connectors.files.source import FileSource, StreamFormat
from firesteel.datastream import StreamExecutionEnvironment

landing, out = sys.argv[1:3]
env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), landing)
# far longer than the runs are apart
source = files.monitor_continuously(Duration.of_hours(1)).build()
lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "landing").uid("landing")
if "fail" in sys.argv:
    lines = lines.map(lambda line: line if line != "0" else 1 // 0)
sink = FileSink.for_row_format(out, Encoder.simple_string_encoder())
sink = sink.with_rolling_policy(OnCheckpointRollingPolicy()).build()
lines.rebalance().map(lambda line: f"{line}!").sink_to(sink).uid("out")
env.execute("nightly")
"""


def lines(directory: Path) -> list[str]:
    return sorted(visible_lines(directory))


def put(directory: Path, first: int, last: int) -> None:
    """A file for each number, which holds it; renamed when it is complete."""
    for number in range(first, last):
        path = directory / f"day-{number // 10}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}")
        hidden.write_text(f"{number}\n")
        hidden.rename(path)


def expected(count: int, end: str = "!") -> list[str]:
    return sorted(f"{number}{end}" for number in range(count))


def test_each_run_with_available_now_reads_the_files_that_are_new(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, landing, out = tmp_path / "nightly.py", tmp_path / "landing", tmp_path / "out"
    program.write_text(NIGHTLY)
    landing.mkdir()

    def run(*arguments: str) -> int:
        settings = [f"execution.checkpointing.dir={tmp_path / 'checkpoints'}", "restart-strategy.type=none"]
        settings.append("execution.epoch.max-records=3")
        options = [option for setting in settings for option in ("-D", setting)]
        return main(["run", "--available-now", "-n", *options, str(program), str(landing), str(out), *arguments])

    with execution_context(executor=InProcessExecutor()):
        assert run() == 0
        assert lines(out) == []
        put(landing, 1, 25)
        assert run() == 0
        assert lines(out) == expected(25)[1:]
        assert run() == 0
        assert lines(out) == expected(25)[1:]
        put(landing, 0, 1)
        put(landing, 25, 40)
        assert run("fail") == 1
        assert "ZeroDivisionError" in capsys.readouterr().err
        assert run() == 0
        assert lines(out) == expected(40)


class LosingStageRunner(InProcessStageRunner):
    """Every third epoch begins with new workers."""

    def run_epoch(self, job_graph: Any, epoch: Any) -> Any:
        if epoch.epoch % 3 == 0:
            for worker in range(2):
                self.forget(worker)
        return super().run_epoch(job_graph, epoch)


@pytest.mark.parametrize(
    ("exchange", "create_stages"),
    [("pipelined", InProcessStageRunner), ("spark", InProcessStageRunner), ("spark", LosingStageRunner)],
)
def test_files_that_come_while_the_job_runs_are_read(
    tmp_path: Path, exchange: str, create_stages: Callable[[], InProcessStageRunner]
) -> None:
    landing, out = tmp_path / "landing", tmp_path / "out"
    put(landing, 0, 5)
    settings = {
        "execution.exchange": exchange,
        "execution.checkpointing.interval": "10 ms",
        "execution.epoch.idle-interval": "1 h",  # it is the reader that knows when to look again
    }
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env._executor = InProcessExecutor(create_stages=create_stages)
    files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), landing)
    source = files.monitor_continuously(Duration.of_millis(20)).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "landing").uid("landing")
    sink = FileSink.for_row_format(str(out), Encoder.simple_string_encoder())
    stream.sink_to(sink.with_rolling_policy(OnCheckpointRollingPolicy()).build())
    client = env.execute_async("live")
    for first, last in ((5, 5), (5, 12), (12, 40)):
        put(landing, first, last)
        eventually(lambda last=last: lines(out) == expected(last, ""))  # type: ignore[misc]
    client.cancel().result(120)
    assert isinstance(ended(client), JobCancelledError)
    assert lines(out) == expected(40, "")

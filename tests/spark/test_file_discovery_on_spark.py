"""Files that are read as they come, by one run on Spark after the other."""

from __future__ import annotations

from pathlib import Path

from firesteel.cli.main import main

NIGHTLY = """\
import sys
from firesteel.common import Duration, WatermarkStrategy
from firesteel.common.serialization import Encoder
from firesteel.connectors.files.sink import FileSink, OnCheckpointRollingPolicy
from firesteel.connectors.files.source import FileSource, StreamFormat
from firesteel.datastream import StreamExecutionEnvironment

landing, out = sys.argv[1:]
env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), landing)
source = files.monitor_continuously(Duration.of_hours(1)).build()
lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "landing").uid("landing")
sink = FileSink.for_row_format(out, Encoder.simple_string_encoder())
sink = sink.with_rolling_policy(OnCheckpointRollingPolicy()).build()
lines.rebalance().map(lambda line: f"{line}!").sink_to(sink).uid("out")
env.execute("nightly")
"""


def test_the_second_run_reads_only_what_is_new(tmp_path: Path, spark_context: object) -> None:
    program, landing, out = tmp_path / "nightly.py", tmp_path / "landing", tmp_path / "out"
    program.write_text(NIGHTLY)
    landing.mkdir()
    settings = ("spark.master=local[4]", f"execution.checkpointing.dir={tmp_path / 'checkpoints'}")
    command = ["run", "--embedded", "--available-now", *(word for setting in settings for word in ("-D", setting))]
    for first, last in ((0, 12), (12, 17)):
        for number in range(first, last):
            (landing / f"{number}.txt").write_text(f"{number}\n")
        assert main([*command, str(program), str(landing), str(out)]) == 0
        parts = [path for path in out.rglob("part-*") if ".inprogress" not in path.parts]
        read = sorted(line for path in parts for line in path.read_text().splitlines())
        assert read == sorted(f"{number}!" for number in range(last))

"""Counts the words of files, into files whose names have a prefix and a suffix, as a batch."""

import tempfile
from pathlib import Path

from pyflink.common import Encoder, Types, WatermarkStrategy
from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import (
    FileSink,
    FileSource,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)

TEXT = """the quick brown fox
jumps over the lazy dog
the dog sleeps
"""


def split(line):
    yield from line.split()


def count_words(source_path, sink_path):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.set_parallelism(1)
    source = (
        FileSource.for_record_stream_format(StreamFormat.text_line_format(), source_path)
        .process_static_file_set()
        .build()
    )
    lines = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "lines")
    counts = (
        lines.flat_map(split)
        .map(lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0])
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
    )
    config = OutputFileConfig.builder().with_part_prefix("words").with_part_suffix(".txt").build()
    sink = (
        FileSink.for_row_format(base_path=sink_path, encoder=Encoder.simple_string_encoder())
        .with_output_file_config(config)
        .with_rolling_policy(RollingPolicy.default_rolling_policy())
        .build()
    )
    counts.sink_to(sink=sink)
    env.execute("word count")


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "in.txt").write_text(TEXT, encoding="utf-8")
        count_words(str(root / "in.txt"), str(root / "out"))
        for path in (root / "out").rglob("*.txt"):
            print(path.name.split("-")[0], path.suffix)
            print(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()

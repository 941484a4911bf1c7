"""A FileSink of lines, read again with read_text_file's successor."""

import tempfile
from pathlib import Path

from pyflink.common import Encoder, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import (
    FileSink,
    FileSource,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)


def main():
    with tempfile.TemporaryDirectory() as directory:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        config = OutputFileConfig.builder().with_part_prefix("words").with_part_suffix(".txt").build()
        sink = (
            FileSink.for_row_format(directory, Encoder.simple_string_encoder("UTF-8"))
            .with_output_file_config(config)
            .with_rolling_policy(RollingPolicy.default_rolling_policy(1024, 1000, 1000))
            .build()
        )
        env.from_collection(["ä", "b", "", "c d"], Types.STRING()).sink_to(sink)
        env.execute()
        names = [path.name for path in Path(directory).rglob("words*.txt*")]
        print(len(names), all(name.startswith("words") for name in names))
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), directory)
        source = source.process_static_file_set().build()
        lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
        lines.map(lambda line: f"<{line}>", Types.STRING()).print()
        env.execute()


if __name__ == "__main__":
    main()

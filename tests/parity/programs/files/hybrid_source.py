"""HybridSource: one file after the other."""

import tempfile
from pathlib import Path

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat
from pyflink.datastream.connectors.hybrid_source import HybridSource


def main():
    with tempfile.TemporaryDirectory() as directory:
        sources = []
        for name in ("first", "second", "third"):
            path = Path(directory, f"{name}.txt")
            path.write_text(f"{name} 1\n{name} 2\n", encoding="utf-8")
            sources.append(FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path)).build())
        first, second, third = sources
        source = HybridSource.builder(first).add_source(second).add_source(third).build()
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "hybrid", Types.STRING())
        with lines.map(lambda line: line.upper(), Types.STRING()).execute_and_collect() as results:
            print(list(results))


if __name__ == "__main__":
    main()

"""A FileSink that concatenates its small files."""

import tempfile
from pathlib import Path

from pyflink.common import Encoder, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileCompactor, FileCompactStrategy, FileSink


def main():
    with tempfile.TemporaryDirectory() as directory:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        env.enable_checkpointing(1000)
        strategy = FileCompactStrategy.builder().set_size_threshold(1024).enable_compaction_on_checkpoint(1).build()
        sink = (
            FileSink.for_row_format(directory, Encoder.simple_string_encoder())
            .enable_compact(strategy, FileCompactor.concat_file_compactor(b"\n"))
            .build()
        )
        env.from_collection(list(range(20)), Types.INT()).sink_to(sink).uid("sink")
        env.execute()
        files = [path for path in Path(directory).rglob("*") if path.is_file() and not path.name.startswith(".")]
        print(sorted(line for path in files for line in path.read_text().split()))
        print({path.name.partition("-")[0] for path in files})


if __name__ == "__main__":
    main()

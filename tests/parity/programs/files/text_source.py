"""FileSource: several files, directories, empty files, line ends."""

import tempfile
from pathlib import Path

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import (
    FileEnumeratorProvider,
    FileSource,
    FileSplitAssignerProvider,
    StreamFormat,
)


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "sub").mkdir()
        (root / "a.txt").write_text("one\ntwo\n\nthree", encoding="utf-8")
        (root / "b.txt").write_text("", encoding="utf-8")
        (root / "sub" / "c.txt").write_bytes("vier\r\nfünf\r\n".encode())
        (root / "_hidden").write_text("no")
        (root / ".hidden").write_text("no")
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        source = (
            FileSource.for_record_stream_format(StreamFormat.text_line_format("UTF-8"), directory)
            .process_static_file_set()
            .set_file_enumerator(FileEnumeratorProvider.default_splittable_file_enumerator())
            .set_split_assigner(FileSplitAssignerProvider.locality_aware_split_assigner())
            .build()
        )
        lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
        lines.map(lambda line: repr(line), Types.STRING()).print("all")
        two = FileSource.for_record_stream_format(
            StreamFormat.text_line_format(), str(root / "a.txt"), str(root / "sub")
        ).build()
        env.from_source(two, WatermarkStrategy.no_watermarks(), "two").map(len, Types.INT()).print("two")
        env.execute()


if __name__ == "__main__":
    main()

"""FileSource: several paths, nested directories, hidden and compressed files, an encoding, static file sets."""

import gzip
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
        for name in ("one", "one/deep/deeper", "two", "two/.hidden", "two/_private"):
            (root / name).mkdir(parents=True, exist_ok=True)
        (root / "one/a.txt").write_text("one\ntwo\r\n\nfour", encoding="utf-8")
        (root / "one/deep/deeper/b.txt").write_text("deep\n", encoding="utf-8")
        (root / "two/.hidden/c.txt").write_text("hidden\n", encoding="utf-8")
        (root / "two/_private/d.txt").write_text("private\n", encoding="utf-8")
        (root / "two/_e.txt").write_text("underscore\n", encoding="utf-8")
        (root / "two/empty.txt").write_text("", encoding="utf-8")
        with gzip.open(root / "two/f.gz", "wt", encoding="utf-8") as file:
            file.write("compressed\nlines\n")
        (root / "latin.txt").write_bytes("grün\nété".encode("latin-1"))
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        text = StreamFormat.text_line_format()
        sources = {
            "both": FileSource.for_record_stream_format(text, str(root / "one"), str(root / "two")),
            "static": FileSource.for_record_stream_format(text, str(root / "one/a.txt")).process_static_file_set(),
            "latin": FileSource.for_record_stream_format(
                StreamFormat.text_line_format("ISO-8859-1"), str(root / "latin.txt")
            ),
            "uri": FileSource.for_record_stream_format(text, f"file://{root}/one/deep"),
            "whole": FileSource.for_record_stream_format(text, str(root / "one"))
            .set_file_enumerator(FileEnumeratorProvider.default_non_splittable_file_enumerator())
            .set_split_assigner(FileSplitAssignerProvider.locality_aware_split_assigner()),
        }
        for name, builder in sources.items():
            lines = env.from_source(builder.build(), WatermarkStrategy.no_watermarks(), name)
            with lines.map(lambda line: repr(line), Types.STRING()).execute_and_collect() as results:
                print(name, sorted(results))


if __name__ == "__main__":
    main()

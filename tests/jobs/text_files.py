"""F7: lines of text files, in a directory, to a file sink in one bucket per first letter."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from firesteel.common import Encoder, Types
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, OutputFileConfig

DATA = Path(__file__).parent / "data"


class FirstLetter(BucketAssigner):
    def get_bucket_id(self, element: Any, context: Any) -> str:
        return str(element[0])


def build(env: StreamExecutionEnvironment) -> None:
    directory = env.get_config().get_global_job_parameters()["directory"]
    config = OutputFileConfig.builder().with_part_prefix("fruit").with_part_suffix(".txt").build()
    sink = (
        FileSink.for_row_format(directory, Encoder.simple_string_encoder())
        .with_bucket_assigner(FirstLetter())
        .with_output_file_config(config)
        .build()
    )
    lines = env.read_text_file(str(DATA))
    lines.map(str.strip, Types.STRING()).filter(bool).map(lambda line: f"{line} ({len(line)})", Types.STRING()).sink_to(
        sink
    )


def results(directory: Path) -> Iterable[str]:
    """The lines of the finished files with their bucket; anything else that a reader sees there shows."""
    for path in directory.rglob("*"):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(directory).parts):
            named = path.name.startswith("fruit-") and path.name.endswith(".txt")
            for line in path.read_text().splitlines():
                yield f"{path.parent.name}: {line}" if named else f"unexpected file {path.name}: {line}"

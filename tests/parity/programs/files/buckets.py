"""Buckets of a FileSink: one directory, and one per time."""

import re
import tempfile
from pathlib import Path

from pyflink.common import Encoder, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy


def main():
    with tempfile.TemporaryDirectory() as directory:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        numbers = env.from_collection([1, 2, 3], Types.INT())
        assigners = {
            "base": BucketAssigner.base_path_bucket_assigner(),
            "time": BucketAssigner.date_time_bucket_assigner("yyyy-MM", "UTC"),
        }
        for name, assigner in assigners.items():
            sink = (
                FileSink.for_row_format(f"{directory}/{name}", Encoder.simple_string_encoder())
                .with_bucket_assigner(assigner)
                .with_bucket_check_interval(1000)
                .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
                .build()
            )
            numbers.sink_to(sink)
        env.execute()
        for name in assigners:
            for path in Path(directory, name).rglob("*part*"):
                bucket = path.relative_to(Path(directory, name)).parent.as_posix()
                bucket = "month" if re.fullmatch(r"\d{4}-\d{2}", bucket) else bucket
                print(name, bucket.replace(".inprogress", "."), path.read_text().split())


if __name__ == "__main__":
    main()

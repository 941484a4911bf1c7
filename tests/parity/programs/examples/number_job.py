"""A DataStream job from a sequence to files: typed rows, a table of squares, results that are collected."""

import tempfile
from pathlib import Path

from pyflink.common import Encoder, Row, Types, WatermarkStrategy
from pyflink.datastream import MapFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, OutputFileConfig
from pyflink.datastream.connectors.number_seq import NumberSequenceSource


class Squares(MapFunction):
    def map(self, value):
        return Row(number=value, square=value * value, third=value / 3, text=f"number {value}", even=value % 2 == 0)


def number_job(directory):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_source(
        source=NumberSequenceSource(1, 12),
        watermark_strategy=WatermarkStrategy.for_monotonous_timestamps(),
        source_name="numbers",
        type_info=Types.LONG(),
    )
    row_type = Types.ROW_NAMED(
        ["number", "square", "third", "text", "even"],
        [Types.LONG(), Types.LONG(), Types.FLOAT(), Types.STRING(), Types.BOOLEAN()],
    )
    rows = numbers.map(Squares(), output_type=row_type)
    config = OutputFileConfig.builder().with_part_prefix("squares").with_part_suffix(".txt").build()
    rows.filter(lambda row: row.even).sink_to(
        FileSink.for_row_format(directory, Encoder.simple_string_encoder()).with_output_file_config(config).build()
    )
    rows.map(lambda row: row[1] + row.number, Types.INT()).print("sum")
    env.execute("numbers")
    for file in sorted(Path(directory).rglob("squares*.txt")):
        for line in file.read_text().splitlines():
            print(file.suffix, line)
    with rows.key_by(lambda row: row["even"]).max("third").execute_and_collect() as results:
        for result in results:
            print("largest", result)
    with rows.filter(lambda row: row.number > 10).execute_and_collect() as results:
        print([row.as_dict() for row in results])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        number_job(name)

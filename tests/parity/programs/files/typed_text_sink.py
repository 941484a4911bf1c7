"""What the string encoder writes of typed records."""

import tempfile
from decimal import Decimal
from pathlib import Path

from pyflink.common import Encoder, Row, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink

CASES = [
    (Types.TUPLE([Types.INT(), Types.FLOAT(), Types.BOOLEAN()]), [(1, 0.1, True)]),
    (Types.ROW([Types.INT(), Types.STRING(), Types.DOUBLE()]), [Row(1, None, 1e20)]),
    (Types.ROW_NAMED(["a", "b"], [Types.BIG_DEC(), Types.LIST(Types.INT())]), [Row(Decimal("1.10"), [1, 2])]),
    (Types.DOUBLE(), [1.0, 1e-5]),
    (Types.LONG(), [5]),
    (Types.BOOLEAN(), [False]),
    (Types.MAP(Types.STRING(), Types.LONG()), [{"a": 1}]),
]


def main():
    with tempfile.TemporaryDirectory() as directory:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        for number, (type_info, values) in enumerate(CASES):
            sink = FileSink.for_row_format(f"{directory}/{number}", Encoder.simple_string_encoder()).build()
            env.from_collection([0], Types.INT()).flat_map(lambda _, values=values: values, type_info).sink_to(sink)
        env.execute()
        for number, (type_info, _) in enumerate(CASES):
            for path in sorted(Path(directory, str(number)).rglob("*part*")):
                for line in path.read_text().splitlines():
                    print(f"{type_info}: {line}")


if __name__ == "__main__":
    main()

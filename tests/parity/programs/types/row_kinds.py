"""Rows with kinds of change through operators and sinks."""

from pyflink.common import Row, RowKind, Types
from pyflink.datastream import StreamExecutionEnvironment

CHANGE = Types.ROW_NAMED(["id", "value"], [Types.INT(), Types.STRING()])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    def change(i):
        return Row.of_kind(RowKind(i), i, f"v{i}")

    changes = env.from_collection([0, 1, 2, 3], Types.INT()).map(change, CHANGE)
    changes.print("direct")
    changes.key_by(lambda row: row.id).map(lambda row: row, CHANGE).print("keyed")
    changes.map(lambda row: f"{row.get_row_kind()} {row}", Types.STRING()).print("text")
    env.execute()


if __name__ == "__main__":
    main()

"""NumberSequenceSource: empty, single, negative, in parallel, as a bounded source in both runtime modes."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource


def main():
    for mode in (RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH, RuntimeExecutionMode.AUTOMATIC):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_runtime_mode(mode)
        env.set_parallelism(3)
        for start, end in ((1, 1), (-3, 4), (10, 29)):
            source = NumberSequenceSource(start, end)
            numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
            with numbers.map(lambda x: x * x, Types.LONG()).execute_and_collect() as results:
                print(mode.name, start, end, sorted(results))
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.set_parallelism(2)
    numbers = env.from_source(NumberSequenceSource(1, 100), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    with (
        numbers.map(lambda x: (x % 7, x), Types.TUPLE([Types.LONG(), Types.LONG()]))
        .key_by(lambda pair: pair[0], Types.LONG())
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .execute_and_collect() as results
    ):
        print(sorted(results))


if __name__ == "__main__":
    main()

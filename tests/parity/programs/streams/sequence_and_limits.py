"""NumberSequenceSource."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    source = NumberSequenceSource(1, 4)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    numbers.map(lambda x: x * 2**40, Types.LONG()).print("source")
    env.execute()


if __name__ == "__main__":
    main()

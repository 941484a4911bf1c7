"""partition_custom with a Partitioner and with functions."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import MapFunction, Partitioner, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource


class Modulo(Partitioner):
    def partition(self, key, num_partitions):
        return key % num_partitions


class Where(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.index = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return f"{value} in {self.index}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    numbers = env.from_source(NumberSequenceSource(1, 6), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    numbers.partition_custom(Modulo(), lambda x: x + 1).map(Where(), Types.STRING()).print("modulo")
    numbers.partition_custom(lambda key, n: n - 1, lambda x: x).map(Where(), Types.STRING()).print("last")
    env.execute()


if __name__ == "__main__":
    main()

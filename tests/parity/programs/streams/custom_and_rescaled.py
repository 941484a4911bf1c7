"""partition_custom, rescale, rebalance, forward, broadcast, global: which subtask gets what."""

from pyflink.common import Types
from pyflink.datastream import MapFunction, Partitioner, RuntimeContext, StreamExecutionEnvironment


class Where(MapFunction):
    def __init__(self, name):
        self.name = name

    def open(self, runtime_context: RuntimeContext):
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.count = runtime_context.get_number_of_parallel_subtasks()

    def map(self, value):
        return f"{self.name} {value} {self.subtask} of {self.count}"


class ByLength(Partitioner):
    def partition(self, key, num_partitions):
        return len(key) % num_partitions


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(3)
    words = env.from_collection(["a", "bb", "ccc", "dddd"], Types.STRING())
    single = words.map(lambda word: word, Types.STRING()).set_parallelism(1)
    streams = [
        words.partition_custom(ByLength(), lambda word: word).map(Where("length"), Types.STRING()),
        words.partition_custom(lambda key, count: count - 1, lambda word: word[0]).map(Where("last"), Types.STRING()),
        words.broadcast().map(Where("broadcast"), Types.STRING()),
        single.forward().map(Where("forward"), Types.STRING()).set_parallelism(1),
        words.rebalance().map(lambda word: f"rebalanced {word}", Types.STRING()),
        single.rescale().map(lambda word: f"rescaled {word}", Types.STRING()),
        words.shuffle().map(lambda word: f"shuffled {word}", Types.STRING()),
    ]
    for stream in streams:
        stream.print().set_parallelism(1)
    env.execute()


if __name__ == "__main__":
    main()

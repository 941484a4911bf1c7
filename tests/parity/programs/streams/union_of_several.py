"""union of several streams, of the same one twice, of partitioned ones, and then keyed."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    streams = []
    for number, name in enumerate(["a", "b", "c", "d"]):
        source = NumberSequenceSource(number * 10, number * 10 + 3)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), name, Types.LONG())
        streams.append(numbers.map(lambda value, name=name: (name, value), PAIR))
    first, *others = streams
    united = first.union(*others)
    totals = united.union(first.rebalance(), others[0].shuffle()).key_by(lambda pair: pair[0]).sum(1)
    with totals.execute_and_collect() as results:
        best = {}
        for name, total in results:
            best[name] = max(total, best.get(name, 0))
        print(sorted(best.items()))
    united.filter(lambda pair: pair[1] % 2 == 0).map(lambda pair: str(pair), Types.STRING()).set_parallelism(
        1
    ).print().set_parallelism(1)
    env.execute("union")


if __name__ == "__main__":
    main()

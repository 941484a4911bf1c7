"""rebalance, rescale, shuffle, broadcast: every record arrives."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    numbers = env.from_source(NumberSequenceSource(1, 6), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    outputs = {
        "rebalance": numbers.rebalance(),
        "rescale": numbers.rescale(),
        "shuffle": numbers.shuffle(),
        "broadcast": numbers.broadcast(),
    }
    result = None
    for name, stream in outputs.items():
        labelled = stream.map(lambda x, name=name: f"{name} {x}", output_type=Types.STRING())
        result = labelled if result is None else result.union(labelled)
    with result.execute_and_collect() as results:
        for line in sorted(results):
            print(line)


if __name__ == "__main__":
    main()

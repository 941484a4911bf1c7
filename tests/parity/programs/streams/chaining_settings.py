"""Chaining, slot sharing groups and parallelism of single operators."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import SlotSharingGroup, StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    group = SlotSharingGroup.builder("heavy").set_cpu_cores(0.5).set_task_heap_memory_mb(16).build()
    print(group.get_name(), group.get_cpu_cores())
    stream = (
        env.from_source(NumberSequenceSource(1, 3), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
        .map(lambda x: x + 1, Types.LONG())
        .start_new_chain()
        .map(lambda x: x * 2, Types.LONG())
        .disable_chaining()
        .set_parallelism(2)
        .filter(lambda x: x > 4)
        .set_max_parallelism(8)
        .set_buffer_timeout(5)
    )
    stream.map(lambda x: f"= {x}", Types.STRING()).force_non_parallel().print().set_parallelism(1).name("printed")
    env.execute()


if __name__ == "__main__":
    main()

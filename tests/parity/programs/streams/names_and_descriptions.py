"""name, uid, set_description, slot sharing groups, resources: what they return, and that the job runs."""

import json

from pyflink.common import Types
from pyflink.datastream import SlotSharingGroup, StreamExecutionEnvironment
from pyflink.datastream.slot_sharing_group import MemorySize


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.set_max_parallelism(64)
    group = (
        SlotSharingGroup.builder("big").set_cpu_cores(1.0).set_task_heap_memory(MemorySize.of_mebi_bytes(64)).build()
    )
    print(group.get_name(), group.get_cpu_cores(), group.get_task_heap_memory().get_mebi_bytes())
    numbers = (
        env.from_collection([1, 2, 3], Types.INT()).name("numbers").uid("numbers-id").set_description("The numbers")
    )
    print(numbers.get_name())
    doubled = numbers.map(lambda x: x * 2, Types.INT()).name("doubled").uid("doubled").set_description("Twice")
    print(doubled.get_name(), doubled.get_type() == Types.INT())
    named = doubled.set_parallelism(1).set_max_parallelism(32).start_new_chain().set_buffer_timeout(10)
    print(named.get_name())
    other = named.filter(lambda x: x > 2).disable_chaining().slot_sharing_group("default")
    print(other.get_name())
    print(other.key_by(lambda x: x).reduce(lambda a, b: a + b).get_name())
    sink = other.map(lambda x: str(x), Types.STRING()).force_non_parallel().print().name("printed").uid("printed")
    sink.set_description("Prints").set_parallelism(1).disable_chaining()
    plan = json.loads(env.get_execution_plan())
    print({node["parallelism"] for node in plan["nodes"]})
    env.execute("names")


if __name__ == "__main__":
    main()

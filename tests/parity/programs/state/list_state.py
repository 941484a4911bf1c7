"""ListState: add, add_all, get, update and clear."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor


class Gather(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.values = runtime_context.get_list_state(ListStateDescriptor("values", Types.LONG()))

    def process_element(self, value, ctx):
        command, number = value[1], value[2]
        if command == "add":
            self.values.add(number)
        elif command == "all":
            self.values.add_all([number, number + 1])
        elif command == "update":
            self.values.update([number])
        else:
            self.values.clear()
        yield f"{value[0]} {command} {list(self.values)} {list(self.values.get())}"


COMMANDS = [
    ("a", "add", 1),
    ("a", "all", 5),
    ("b", "all", 7),
    ("a", "update", 9),
    ("b", "clear", 0),
    ("a", "add", 2),
    ("b", "add", 3),
]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_collection(COMMANDS).key_by(lambda c: c[0]).process(Gather(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()

"""Global windows with count and purging triggers."""

from pyflink.common import Types
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import CountTrigger, GlobalWindows, PurgingTrigger


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{key} {type(context.window()).__name__} {list(elements)}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    keyed = env.from_collection([1, 2, 3, 4, 5, 6, 7], Types.INT()).key_by(lambda x: x % 2)
    keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(2)).process(Show(), Types.STRING()).print("kept")
    keyed.window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(2))).process(
        Show(), Types.STRING()
    ).print("purged")
    env.execute()


if __name__ == "__main__":
    main()

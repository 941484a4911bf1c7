"""Count windows, tumbling and sliding, with what their window is."""

from pyflink.common import Types
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment, WindowFunction
from pyflink.datastream.window import CountWindow

PAIRS = [("a", n) for n in range(1, 8)] + [("b", n) for n in range(10, 13)]


class Show(WindowFunction):
    def apply(self, key, window: CountWindow, inputs):
        yield f"{key} {type(window).__name__} {window.id} {window.max_timestamp()} {[value[1] for value in inputs]}"


class Sum(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().id, sum(value[1] for value in elements)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    pairs = env.from_collection(PAIRS, Types.TUPLE([Types.STRING(), Types.INT()]))
    keyed = pairs.key_by(lambda pair: pair[0])
    keyed.count_window(3).apply(Show(), Types.STRING()).print("tumbling")
    keyed.count_window(3, 2).apply(Show(), Types.STRING()).print("sliding")
    keyed.count_window(2).process(Sum(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])).print("process")
    keyed.count_window(2).reduce(lambda a, b: (a[0], a[1] + b[1])).print("reduce")
    env.execute()


if __name__ == "__main__":
    main()

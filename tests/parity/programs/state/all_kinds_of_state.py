"""Every kind of state in keyed process, co-process, map and flat map functions."""

from pyflink.common import Row, Types
from pyflink.datastream import (
    AggregateFunction,
    FlatMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ReduceFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)


def visit_type():
    return Types.ROW_NAMED(["user", "page", "seconds"], [Types.STRING(), Types.STRING(), Types.INT()])


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class Longest(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2)


class States:
    def create(self, context: RuntimeContext):
        self.last = context.get_state(ValueStateDescriptor("last", visit_type()))
        self.pages = context.get_list_state(ListStateDescriptor("pages", Types.STRING()))
        self.seconds = context.get_map_state(MapStateDescriptor("seconds", Types.STRING(), Types.INT()))
        self.longest = context.get_reducing_state(ReducingStateDescriptor("longest", Longest(), Types.INT()))
        self.mean = context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), Types.TUPLE([Types.INT(), Types.INT()]))
        )

    def visit(self, value):
        before = self.last.value()
        self.last.update(value)
        self.pages.add(value.page)
        self.seconds.put(value.page, (self.seconds.get(value.page) or 0) + value.seconds)
        self.longest.add(value.seconds)
        self.mean.add(value.seconds)
        return (
            f"{value.user} after {before.page if before else None} {list(self.pages.get())} "
            f"{sorted(self.seconds.items())} {self.longest.get()} {round(self.mean.get(), 3)}"
        )

    def forget(self):
        for state in (self.last, self.pages, self.seconds, self.longest, self.mean):
            state.clear()


class Process(KeyedProcessFunction, States):
    def open(self, runtime_context: RuntimeContext):
        self.create(runtime_context)

    def process_element(self, value, ctx):
        yield self.visit(value)
        if value.page == "bye":
            self.forget()
            self.pages.update(["again"])


class Map(MapFunction, States):
    def open(self, runtime_context: RuntimeContext):
        self.create(runtime_context)

    def map(self, value):
        return self.visit(value)


class FlatMap(FlatMapFunction, States):
    def open(self, runtime_context: RuntimeContext):
        self.create(runtime_context)

    def flat_map(self, value):
        yield self.visit(value)
        yield f"{sorted(self.seconds.keys())} {sorted(self.seconds.values())} {self.seconds.contains('home')}"


class CoProcess(KeyedCoProcessFunction, States):
    def open(self, runtime_context: RuntimeContext):
        self.create(runtime_context)

    def process_element1(self, value, ctx):
        yield self.visit(value)

    def process_element2(self, value, ctx):
        self.seconds.put_all([(value, 0)])
        yield f"{ctx.get_current_key()} {value} {self.seconds.is_empty()}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    visits = env.from_collection(
        [
            Row(user="ann", page="home", seconds=3),
            Row(user="bob", page="home", seconds=5),
            Row(user="ann", page="news", seconds=7),
            Row(user="ann", page="bye", seconds=2),
            Row(user="bob", page="home", seconds=1),
            Row(user="ann", page="home", seconds=9),
        ],
        visit_type(),
    )
    keyed = visits.key_by(lambda visit: visit.user, Types.STRING())
    keyed.process(Process(), Types.STRING()).print("process")
    keyed.map(Map(), Types.STRING()).print("map")
    keyed.flat_map(FlatMap(), Types.STRING()).print("flat_map")
    others = env.from_collection(["carl", "dora"], Types.STRING()).key_by(lambda name: name, Types.STRING())
    keyed.connect(others).process(CoProcess(), Types.STRING()).print("co_process")
    env.execute()


if __name__ == "__main__":
    main()

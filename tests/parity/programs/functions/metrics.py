"""Metrics of functions: counter, gauge, meter, distribution, groups."""

from pyflink.common import Types
from pyflink.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment


class Measured(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        group = runtime_context.get_metrics_group()
        self.counter = group.counter("mapped")
        self.last = 0
        group.gauge("last", lambda: self.last)
        self.meter = group.add_group("rates").meter("rate")
        self.sizes = group.add_group("kind", "sizes").distribution("size")

    def map(self, value):
        self.counter.inc()
        self.counter.inc(2)
        self.counter.dec()
        self.last = value
        self.meter.mark_event()
        self.meter.mark_event(2)
        self.sizes.update(value)
        return value, self.counter.get_count()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_collection([5, 6, 7], Types.INT()).map(Measured(), Types.TUPLE([Types.INT(), Types.LONG()])).print()
    env.execute()


if __name__ == "__main__":
    main()

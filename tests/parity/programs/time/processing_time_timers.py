"""Timers of processing time, which fire while the input goes on; the output does not depend on when."""

import time

from pyflink.common import Configuration, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment, TimeDomain
from pyflink.datastream.state import ListStateDescriptor


class Batches(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.STRING()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        timers = ctx.timer_service()
        self.waiting.add(value)
        if value == "forget":
            timers.register_processing_time_timer(1)
            timers.delete_processing_time_timer(1)
        elif not value.startswith("tick"):
            timers.register_processing_time_timer(timers.current_processing_time() + 1)

    def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
        on_time = ctx.timer_service().current_processing_time() >= timestamp
        in_processing_time = ctx.time_domain() == TimeDomain.PROCESSING_TIME
        yield f"{ctx.get_current_key()} {sorted(self.waiting)} {on_time} {in_processing_time}"
        self.waiting.clear()


def slowly(value):
    if value.startswith("tick"):
        time.sleep(0.3)
    return value


def main():
    config = Configuration()
    config.set_integer("python.fn-execution.bundle.size", 1)
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(1)
    values = env.from_collection(["a", "forget", "b", *(f"tick {i}" for i in range(8))], Types.STRING())
    keyed = values.map(slowly, Types.STRING()).key_by(lambda value: value[0])
    keyed.process(Batches(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()

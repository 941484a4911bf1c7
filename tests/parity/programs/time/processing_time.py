"""Processing time in a function, and a timer that fires while the input goes on."""

import time

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment


class Clock(KeyedProcessFunction):
    def process_element(self, value, ctx):
        now = ctx.timer_service().current_processing_time()
        yield f"{value} {abs(now - time.time() * 1000) < 60000} {ctx.timer_service().current_watermark() < 0}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_collection([1, 2], Types.INT()).key_by(lambda x: x).process(Clock(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()

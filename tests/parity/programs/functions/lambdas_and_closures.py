"""Closures, default arguments, recursion, bound methods and module functions in operators."""

import math
import operator
from functools import partial

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

FACTOR = 3


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def scale(self, value):
        return value * self.factor


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def power(base, exponent):
    return base**exponent


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3], Types.INT())
    offset = 100
    numbers.map(lambda x: x + offset + FACTOR).print("closure")
    numbers.map(fib, Types.INT()).print("recursive")
    numbers.map(Scale(7).scale, Types.INT()).print("method")
    numbers.map(math.sqrt, Types.DOUBLE()).print("sqrt")
    numbers.map(partial(power, exponent=2), Types.INT()).print("partial")
    numbers.map(operator.neg).print("operator")
    for step in (1, 2):
        numbers.map(lambda x, step=step: x * step).print(f"step {step}")
    env.execute()


if __name__ == "__main__":
    main()

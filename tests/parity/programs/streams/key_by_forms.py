"""key_by with a lambda, a KeySelector, key types, tuples as keys, and a second key_by."""

from pyflink.common import Row, Types
from pyflink.datastream import KeySelector, StreamExecutionEnvironment

ORDERS = [("ada", "tea", 3), ("bob", "tea", 1), ("ada", "milk", 2), ("bob", "tea", 4), ("ada", "tea", 5)]


class ByPair(KeySelector):
    def get_key(self, value):
        return value[0], value[1]


def add(a, b):
    return a[0], a[1], a[2] + b[2]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    orders = env.from_collection(ORDERS, type_info=Types.TUPLE([Types.STRING(), Types.STRING(), Types.INT()]))
    orders.key_by(lambda order: order[0], key_type=Types.STRING()).reduce(add).print("name")
    orders.key_by(ByPair(), key_type=Types.TUPLE([Types.STRING(), Types.STRING()])).reduce(add).print("pair")
    orders.key_by(ByPair()).reduce(add).print("untyped pair")
    orders.key_by(lambda order: Row(order[1])).reduce(add).print("row")
    orders.key_by(lambda order: order[0]).key_by(lambda order: order[1]).reduce(add).print("again")
    env.execute()


if __name__ == "__main__":
    main()

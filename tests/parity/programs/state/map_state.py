"""MapState: put, get, contains, remove, items, keys, values, is_empty."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import MapStateDescriptor


class Stock(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.stock = runtime_context.get_map_state(MapStateDescriptor("stock", Types.STRING(), Types.INT()))

    def process_element(self, value, ctx):
        shop, item, amount = value
        if amount is None:
            self.stock.remove(item)
        elif amount == 0:
            self.stock.clear()
        else:
            self.stock.put(item, (self.stock.get(item) or 0) + amount)
        items, keys, values = sorted(self.stock.items()), sorted(self.stock.keys()), sorted(self.stock.values())
        yield f"{shop} {self.stock.contains(item)} {self.stock.is_empty()} {items} {keys} {values}"


MOVES = [
    ("x", "tea", 5),
    ("x", "milk", 2),
    ("y", "tea", 1),
    ("x", "tea", -3),
    ("x", "milk", None),
    ("y", "tea", 0),
    ("y", "salt", 4),
]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_collection(MOVES).key_by(lambda move: move[0]).process(Stock()).print()
    env.execute()


if __name__ == "__main__":
    main()

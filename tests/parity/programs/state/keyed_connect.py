"""Two keyed streams with common state: a join of one's own."""

from pyflink.common import Row, Types
from pyflink.datastream import KeyedCoProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor

USER = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
ORDER = Types.ROW_NAMED(["user", "amount"], [Types.INT(), Types.DOUBLE()])


class Join(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.user = runtime_context.get_state(ValueStateDescriptor("user", Types.STRING()))
        self.orders = runtime_context.get_list_state(ListStateDescriptor("orders", Types.DOUBLE()))

    def process_element1(self, value, ctx):
        self.user.update(value.name)
        for amount in self.orders.get():
            yield Row(value.name, amount)
        self.orders.clear()

    def process_element2(self, value, ctx):
        if self.user.value() is None:
            self.orders.add(value.amount)
        else:
            yield Row(self.user.value(), value.amount)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    users = env.from_collection([Row(1, "ada"), Row(2, "bob")], USER)
    orders = env.from_collection([Row(1, 1.5), Row(2, 2.0), Row(1, 100000000.0), Row(3, 7.0)], ORDER)
    users.connect(orders).key_by(lambda user: user.id, lambda order: order.user, Types.INT()).process(
        Join(), Types.ROW([Types.STRING(), Types.DOUBLE()])
    ).print()
    env.execute()


if __name__ == "__main__":
    main()

"""Orders joined with customers that arrive on another stream, in keyed state of both sides."""

from pyflink.common import Row, Types
from pyflink.datastream import KeyedCoProcessFunction, OutputTag, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor


def order_type():
    return Types.ROW_NAMED(["customer", "amount"], [Types.INT(), Types.DOUBLE()])


def customer_type():
    return Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])


NEW = OutputTag("new", customer_type())


class Enrich(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.customer = runtime_context.get_state(ValueStateDescriptor("customer", customer_type()))
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", order_type()))

    def process_element1(self, value, ctx):
        customer = self.customer.value()
        if customer is None:
            self.waiting.add(value)
        else:
            yield Row(customer.name, value.amount)

    def process_element2(self, value, ctx):
        if self.customer.value() is None:
            yield NEW, value
        self.customer.update(value)
        for order in self.waiting.get():
            yield Row(name=value.name, amount=order.amount)
        self.waiting.clear()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    orders = env.from_collection([Row(1, 9.5), Row(2, 3.25), Row(1, 0.1), Row(3, 7.0)], order_type())
    customers = env.from_collection([Row(1, "ann"), Row(2, "bob"), Row(4, "dan")], customer_type())
    enriched = (
        orders.connect(customers)
        .key_by(lambda order: order.customer, lambda customer: customer.id, Types.INT())
        .process(Enrich(), Types.ROW_NAMED(["name", "amount"], [Types.STRING(), Types.DOUBLE()]))
    )
    enriched.print("enriched")
    enriched.get_side_output(NEW).print("new")
    enriched.map(lambda row: (row.name, row.amount), Types.TUPLE([Types.STRING(), Types.DOUBLE()])).key_by(
        lambda pair: pair[0]
    ).count_window(2).reduce(lambda a, b: (a[0], round(a[1] + b[1], 3))).print("pairs")
    env.execute()


if __name__ == "__main__":
    main()

"""sum, min, max, min_by, max_by on tuples, rows, lists and plain numbers."""

from pyflink.common import Row, Types
from pyflink.datastream import ReduceFunction, StreamExecutionEnvironment

SALES = [("a", 3, "x"), ("a", 1, "y"), ("b", 2, "z"), ("a", 1, "w"), ("b", 5, "v"), ("a", 7, "u")]


class Longest(ReduceFunction):
    def reduce(self, value1, value2):
        return value2 if len(value2) > len(value1) else value1


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    sales = env.from_collection(SALES, Types.TUPLE([Types.STRING(), Types.INT(), Types.STRING()]))
    keyed = sales.key_by(lambda sale: sale[0])
    keyed.sum(1).print("sum")
    keyed.min(1).print("min")
    keyed.max(1).print("max")
    keyed.min_by(1).print("min_by")
    keyed.max_by(1).print("max_by")
    named = Types.ROW_NAMED(["name", "amount"], [Types.STRING(), Types.INT()])
    rows = env.from_collection([Row(name, amount) for name, amount, _ in SALES], named)
    rows.key_by(lambda row: row.name).sum("amount").print("rows")
    rows.key_by(lambda row: row[0]).max_by("amount").print("best")
    env.from_collection([4, 1, 6, 2]).key_by(lambda x: x % 2).sum().print("numbers")
    env.from_collection([4, 1, 6, 3]).key_by(lambda x: x % 2).min().print("least")
    words = env.from_collection(["x", "yyy", "zz", "wwww"], Types.STRING())
    words.key_by(lambda word: 0).reduce(Longest()).print("longest")
    env.execute()


if __name__ == "__main__":
    main()

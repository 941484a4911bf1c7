"""A source and an exactly-once sink of one's own, here for SQLite: the job fails half way, each row is written once."""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.base import IteratorSource, TwoPhaseCommitSink


def run(path: str, *statements: tuple[str, Sequence[object]]) -> list[tuple[str, ...]]:
    """Runs statements in one transaction; the rows of the last."""
    with closing(sqlite3.connect(path, timeout=30)) as database, database:
        return [database.execute(text, values).fetchall() for text, values in statements][-1]


class OrderSource(IteratorSource):
    """The rows of a table of orders; each region is a split, and an order's number the position in it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def splits(self) -> Iterable[str]:
        return [region for (region,) in run(self.path, ("SELECT DISTINCT region FROM orders", ()))]

    def read(self, split: str, position: int | None) -> Iterator[tuple[str, int]]:
        query = "SELECT number FROM orders WHERE region = ? AND number > ? ORDER BY number"
        for (number,) in run(self.path, (query, (split, position or 0))):
            yield f"{split} {number}", number


class InvoiceSink(TwoPhaseCommitSink[list[str], str]):
    """Stages rows under the transaction's id, and moves them to the table when they are committed."""

    def __init__(self, path: str) -> None:
        self.path = path

    def begin(self, transaction_id: str) -> list[str]:
        return [transaction_id]

    def write(self, transaction: list[str], values: Sequence[str]) -> None:
        transaction += values

    def prepare(self, transaction: list[str]) -> str:
        run(self.path, *(("INSERT INTO staged VALUES (?, ?)", (transaction[0], row)) for row in transaction[1:]))
        return transaction[0]

    def commit(self, committable: str) -> None:  # a second time there is nothing staged any more
        move, drop = "INSERT INTO invoices SELECT row FROM staged WHERE id = ?", "DELETE FROM staged WHERE id = ?"
        run(self.path, (move, (committable,)), (drop, (committable,)))

    def pending_transactions(self, prefix: str) -> Iterable[str]:
        return [
            found for (found,) in run(self.path, ("SELECT DISTINCT id FROM staged WHERE id GLOB ?", (f"{prefix}*",)))
        ]

    def recover_and_abort(self, transaction_id: str) -> None:
        run(self.path, ("DELETE FROM staged WHERE id = ?", (transaction_id,)))


class FailsAtFirst(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.left = 200 if runtime_context.get_attempt_number() == 0 else -1

    def map(self, value: str) -> str:
        self.left -= 1
        if self.left == 0:
            raise RuntimeError("something went wrong")
        return value


def create_tables(path: str) -> None:
    names = "orders (region, number)", "staged (id, row)", "invoices (row)"
    run(path, *((f"CREATE TABLE {name}", ()) for name in names))
    orders = [(region, number) for region in ("north", "south", "east") for number in range(1, 501)]
    run(path, *(("INSERT INTO orders VALUES (?, ?)", order) for order in orders))


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory, "shop.db"))
        create_tables(path)
        settings = Configuration().set_string("execution.checkpointing.interval", "50 ms")
        settings.set_string("execution.checkpointing.dir", f"{directory}/checkpoints")
        settings.set_string("restart-strategy.type", "fixed-delay")
        env = StreamExecutionEnvironment.get_execution_environment(settings).set_parallelism(2)
        orders = env.from_source(OrderSource(path), WatermarkStrategy.no_watermarks(), "orders")
        orders.map(FailsAtFirst()).sink_to(InvoiceSink(path))
        env.execute("custom connector")
        invoices = [row for (row,) in run(path, ("SELECT row FROM invoices", ()))]
        print(f"{len(invoices)} invoices, {len(set(invoices))} different ones, expected 1500")


if __name__ == "__main__":
    main()

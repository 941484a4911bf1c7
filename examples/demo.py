"""Spend per customer in five-minute event-time windows, over payments that come out of order and late.

Run it with ``make demo``, or with ``python -m examples.demo --help`` to see what can be changed.

The payments are made up, the same ones in every run. Their event time runs 200 times as fast as the clock on the wall,
so a five-minute window closes every second and a half. Most payments are up to five seconds out of order, which
the watermark waits for. Some come a minute or two late: their window has fired, is still kept and fires again.
A few come ten minutes late: their window is gone, and they leave through a side output.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any, NamedTuple

from firesteel.common import CompletableFuture, Duration, JobClient, Time, WatermarkStrategy
from firesteel.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from firesteel.datastream import (
    AggregateFunction,
    MapFunction,
    OutputTag,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import TimeWindow, TumblingEventTimeWindows

CUSTOMERS = ("Ada", "Barbara", "Edsger", "Grace", "Ken", "Leslie")
EVENT_TIME_SPEED = 200
START = int(datetime(2026, 1, 1, 9, tzinfo=timezone.utc).timestamp() * 1000)
FIRINGS = ValueStateDescriptor("firings")
TOO_LATE = OutputTag("too-late")


class Payment(NamedTuple):
    """One event of the stream."""

    time: int
    customer: str
    cents: int


class MakePayment:
    """The payment with a given number; the same number always makes the same payment."""

    def __init__(self, seed: int, per_second: float):
        self._seed = seed
        self._interval = EVENT_TIME_SPEED * 1000 / per_second

    def __call__(self, number: int) -> Payment:
        chance = random.Random(self._seed + number)
        behind = chance.randrange(5_000)
        if number % 10_000 == 9_999:
            behind = 10 * 60_000
        elif number % 2_000 == 1_999:
            behind = chance.randrange(60_000, 120_000)
        happened = START + int(number * self._interval) - behind
        return Payment(max(happened, START), chance.choice(CUSTOMERS), chance.randrange(100, 10_000))


class CountPayments(MapFunction):
    """Passes payments on; its counter becomes an accumulator of the job."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._payments = runtime_context.get_metrics_group().counter("payments")

    def map(self, value: Payment) -> Payment:
        self._payments.inc()
        return value


class Spend(AggregateFunction):
    """How many payments, and how much together."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Payment, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + 1, accumulator[1] + value.cents

    def get_result(self, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class DescribeWindow(ProcessWindowFunction[tuple[int, int], str, str, TimeWindow]):
    """A line for each result; remembers in the window's state whether it fired before."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._fired = runtime_context.get_metrics_group().counter("windows fired")

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple[int, int]]
    ) -> Iterable[str]:
        firings = context.window_state().get_state(FIRINGS)
        again = firings.value() is not None
        firings.update(True)
        self._fired.inc()
        ((payments, cents),) = elements
        window = f"{clock(context.window().start, 5)}-{clock(context.window().end, 5)}"
        note = "  updated by a late payment" if again else ""
        yield f"  {window}  {key:<9}{cents / 100:>11,.2f}{payments:>10,}{note}"

    def clear(self, context: ProcessWindowFunction.Context[TimeWindow]) -> None:
        context.window_state().get_state(FIRINGS).clear()


def describe_late(payment: Payment) -> str:
    spend = f"{payment.cents / 100:>11,.2f}"
    return f"  {clock(payment.time)}     {payment.customer:<9}{spend}         -  too late: side output"


def clock(timestamp: int, length: int = 8) -> str:
    return datetime.fromtimestamp(timestamp / 1000, timezone.utc).strftime("%H:%M:%S")[:length]


def build(env: StreamExecutionEnvironment, seconds: float, per_second: float, seed: int) -> None:
    """The program: nothing runs before it is executed."""
    source = DataGeneratorSource(
        MakePayment(seed, per_second),
        count=int(seconds * per_second),
        rate_limiter_strategy=RateLimiterStrategy.per_second(per_second),
    )
    watermarks = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)).with_timestamp_assigner(
        lambda payment: payment.time
    )
    results = (
        env.from_source(source, watermarks, "payments")
        .map(CountPayments())
        .key_by(lambda payment: payment.customer)
        .window(TumblingEventTimeWindows.of(Time.minutes(5)))
        .allowed_lateness(Time.minutes(2).to_milliseconds())
        .side_output_late_data(TOO_LATE)
        .aggregate(Spend(), DescribeWindow())
    )
    late = results.get_side_output(TOO_LATE).map(describe_late)
    results.union(late).print().set_parallelism(1)


class Watch:
    """Follows a running job from the client, so that something can be said of it however it ends."""

    def __init__(self, client: JobClient):
        self._client = client
        self._begin: tuple[float, int] | None = None
        self._end = 0.0
        self._watermark = MIN_LONG_VALUE

    def until_the_end(self) -> None:
        """Waits for the job and reads its metrics meanwhile; Ctrl-C cancels it."""
        result = self._client.get_job_execution_result()
        try:
            while not self._is_over(result):
                self._read(self._client.get_metrics().result())
        except KeyboardInterrupt:
            self._client.cancel().result()
            print("\n  Cancelled.")
        self._end = time.monotonic()

    def _is_over(self, result: CompletableFuture) -> bool:
        try:
            result.result(0.25)
        except TimeoutError:
            return False
        return True

    def _read(self, metrics: dict[Any, dict[str, Any]]) -> None:
        payments = sum(values.get("payments", 0) for values in metrics.values())
        if self._begin is None and payments:
            self._begin = time.monotonic(), payments
        # event time is as far as the slowest task; when the input has ended they all jump to the end of time
        tasks = (values for (_vertex, operator, _subtask), values in metrics.items() if not operator)
        watermarks = [values["currentInputWatermark"] for values in tasks if "currentInputWatermark" in values]
        if watermarks and min(watermarks) < MAX_LONG_VALUE:
            self._watermark = max(self._watermark, min(watermarks))

    def summary(self) -> str:
        counts: dict[str, Any] = self._client.get_accumulators().result()
        payments = counts.get("payments", 0)
        began, before = self._begin or (self._end, 0)
        rate = (payments - before) / (self._end - began) if self._end > began else 0.0
        watermark = clock(self._watermark) if self._watermark > MIN_LONG_VALUE else "none yet"
        return "\n".join(
            (
                f"  records        {payments:>9,}",
                f"  records/s      {rate:>9,.0f}  (the source is limited to a rate)",
                f"  windows fired  {counts.get('windows fired', 0):>9,}",
                f"  late           {counts.get('numLateRecords', 0):>9,}",
                f"  watermark      {watermark:>9}  (when last seen)",
            )
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=15, help="how long payments come in (default: 15)")
    parser.add_argument("--rate", type=float, default=5_000, help="payments per second (default: 5000)")
    parser.add_argument("--seed", type=int, default=7, help="other payments (default: 7)")
    options = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    build(env, options.seconds, options.rate, options.seed)
    print("Spend per customer in five-minute windows. Starting Spark; Ctrl-C ends it …\n", flush=True)
    print("  window       customer       spend  payments", flush=True)
    try:
        watch = Watch(env.execute_async("spend per customer"))
    except KeyboardInterrupt:
        print("\n  Cancelled before the job had started.")
        return
    watch.until_the_end()
    print(f"\n{watch.summary()}")


if __name__ == "__main__":
    main()

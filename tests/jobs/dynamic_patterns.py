"""B16: patterns that rules of a broadcast stream replace, keyed and not, with partial matches that time out.

Event time does not go on before all rules have arrived, so the last rule is the one that events are matched with. In
a checkpoint, some rules may be in state, and events wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.cep import CEP, Pattern, PatternProcessFunction, TimedOutPartialMatchHandler
from firesteel.common import WatermarkStrategy
from firesteel.datastream import DataStream, OutputTag, StreamExecutionEnvironment

TIMED_OUT = OutputTag("timed out")

PAYMENTS = [
    ("ann", 950, 1),
    ("bob", 20, 2),
    ("ann", 3, 6),
    ("cat", 990, 4),  # out of order
    ("ann", 970, 9),
    ("bob", 960, 8),
    ("cat", 930, 11),
    ("bob", 15, 12),
    ("ann", 910, 30),
    ("cat", 940, 31),
    ("bob", 980, 33),
    ("ann", 905, 34),
    ("cat", 12, 36),
    ("bob", 991, 47),
]
RULES = [("once", 0, 0), ("pair", 500, 1_000), ("once", 950, 0), ("pair", 900, 8)]
"""Kind, smallest amount and time. Only the last rule counts."""


def to_pattern(rule: tuple[str, int, int]) -> Pattern:
    kind, least, within = rule

    def is_large(payment: Any) -> bool:
        return bool(payment[1] >= least)

    first = Pattern.begin("first").where(is_large)
    return first if kind == "once" else first.followed_by("second").where(is_large).within(within)


class Alert(PatternProcessFunction, TimedOutPartialMatchHandler):
    def __init__(self, label: str):
        self.label = label

    def process_match(self, match: dict[str, list[Any]], ctx: Any) -> Iterable[Any]:
        payments = [payment for events in match.values() for payment in events]
        yield self.label, payments[0][0], [amount for _, amount, _ in payments], ctx.timestamp()

    def process_timed_out_match(self, match: dict[str, list[Any]], ctx: Any) -> Iterable[Any]:
        name, amount, _ = match["first"][0]
        yield TIMED_OUT, (f"{self.label} timed out", name, [amount], ctx.timestamp())


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda payment, _: payment[2])
    payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(strategy).set_parallelism(1)
    # one subtask, so that the rules keep their order
    rules = env.from_collection(RULES).set_parallelism(1)
    by_name = payments.key_by(lambda payment: payment[0])
    keyed = CEP.dynamic_patterns(by_name, rules, to_pattern).process(Alert("keyed"))
    every = CEP.dynamic_patterns(payments, rules, to_pattern).process(Alert("all"))
    return keyed.union(keyed.get_side_output(TIMED_OUT), every, every.get_side_output(TIMED_OUT))


def key_of(result: Any) -> Any:
    # those of the operator that is not parallel are spread over the subtasks after it
    return result[:3] if result[0].startswith("all") else result[:2]

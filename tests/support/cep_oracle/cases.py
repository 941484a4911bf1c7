"""Random patterns and streams, described in JSON, and the pattern of a description.

A case has a ``pattern``, ``steps`` and settings. A step is an event with its timestamp, ``["e", 5, "a 3 0"]``, a
watermark, ``["w", 5]``, or a processing time, ``["p", 5]``. The text of an event is its type, its value and its number.
"""

from __future__ import annotations

import random
from typing import Any

from firesteel.cep.pattern.after_match import AfterMatchSkipStrategy
from firesteel.cep.pattern.pattern import Pattern
from firesteel.cep.pattern.quantifier import WithinType

__all__ = ["build_pattern", "draw_case", "number_of", "value_of"]

KINDS = ("next", "followed_by", "followed_by_any", "not_next", "not_followed_by")
TYPES = "abcd"


def value_of(event: str) -> int:
    return int(event.split()[1])


def number_of(event: str) -> int:
    return int(event.split()[2])


# from a description to a pattern


def build_pattern(description: dict[str, Any]) -> Pattern:
    """Returns the pattern of a description."""
    pattern: Any = None
    for stage in description["stages"]:
        name = build_pattern(stage["group"]) if "group" in stage else stage["name"]
        if stage["kind"] == "begin":
            pattern = Pattern.begin(name, _strategy(description.get("skip")))
        else:
            pattern = getattr(pattern, stage["kind"])(name)
        if "where" in stage:
            pattern.where(_condition(*stage["where"]))
        if "or" in stage:
            pattern.or_(_condition(*stage["or"]))
        _quantify(pattern, stage)
    assert isinstance(pattern, Pattern)
    return pattern


def _quantify(pattern: Pattern, stage: dict[str, Any]) -> None:
    window = stage.get("times_window")
    times = stage.get("times")
    if times is not None and len(times) == 1:
        pattern.times(times[0], window_time=window)
    elif times is not None and times[1] is None:
        pattern.times_or_more(times[0], window)
    elif times is not None:
        pattern.times(times[0], times[1], window)
    if stage.get("optional"):
        pattern.optional()
    if stage.get("greedy"):
        pattern.greedy()
    if stage.get("consecutive"):
        pattern.consecutive()
    if stage.get("combinations"):
        pattern.allow_combinations()
    if "until" in stage:
        pattern.until(_condition(*stage["until"]))
    if "within" in stage:
        pattern.within(stage["within"])
    if "within_previous" in stage:
        pattern.within(stage["within_previous"], WithinType.PREVIOUS_AND_CURRENT)


def _strategy(skip: list[Any] | None) -> AfterMatchSkipStrategy:
    kind = "no" if skip is None else skip[0]
    if kind == "next":
        return AfterMatchSkipStrategy.skip_to_next()
    if kind == "past_last":
        return AfterMatchSkipStrategy.skip_past_last_event()
    if kind in ("first", "last"):
        assert skip is not None
        skip_to = AfterMatchSkipStrategy.skip_to_first if kind == "first" else AfterMatchSkipStrategy.skip_to_last
        strategy = skip_to(skip[1])
        return strategy.throw_exception_on_miss() if skip[2] else strategy
    return AfterMatchSkipStrategy.no_skip()


def _condition(kind: str, text: str, limit: int = 0) -> Any:
    if kind == "type":
        return lambda event: event[0] in text
    if kind == "value":
        return lambda event: event[0] in text and value_of(event) > limit
    if kind == "time":
        return lambda _, ctx: ctx.timestamp() % 2 == limit
    if kind == "count":
        return lambda _, ctx: len(ctx.get_events_for_pattern(text)) < limit
    if kind == "sum":
        return lambda event, ctx: sum(map(value_of, ctx.get_events_for_pattern(text))) + value_of(event) < limit
    return lambda event, ctx: value_of(event) >= max(map(value_of, ctx.get_events_for_pattern(text)[-1:]), default=-99)


# random descriptions


def draw_case(seed: int) -> dict[str, Any]:
    """Returns the random case of a seed."""
    drawn = random.Random(seed)
    pattern = _draw_pattern(drawn)
    case: dict[str, Any] = {"pattern": pattern, "timeouts": drawn.random() < 0.5}
    if drawn.random() < 0.1:
        case["processing_time"] = True
    if drawn.random() < 0.15:
        case["comparator"] = True
    case["steps"] = _draw_steps(drawn, bool(case.get("processing_time")))
    return case


def _draw_pattern(drawn: random.Random) -> dict[str, Any]:
    names: list[str] = []
    stages = _draw_stages(drawn, names, depth=0)
    if drawn.random() < 0.6:
        stages[-1 if drawn.random() < 0.8 else 0]["within"] = drawn.randint(2, 12)
    pattern: dict[str, Any] = {"stages": stages}
    kind = drawn.choice(["no", "no", "no", "next", "past_last", "first", "last"])
    if kind in ("first", "last"):
        pattern["skip"] = [kind, drawn.choice(names), drawn.random() < 0.15]
    elif kind != "no":
        pattern["skip"] = [kind]
    return pattern


def _draw_stages(drawn: random.Random, names: list[str], depth: int) -> list[dict[str, Any]]:
    stages: list[dict[str, Any]] = []
    for position in range(drawn.choice([1, 2, 2, 3, 3, 4]) if depth == 0 else drawn.choice([1, 2, 2])):
        kind = "begin" if position == 0 else drawn.choices(KINDS, (3, 4, 3, 1, 1.5))[0]
        stage: dict[str, Any] = {"kind": kind}
        is_group = depth < 2 and not kind.startswith("not") and drawn.random() < (0.15 if depth == 0 else 0.1)
        if is_group:
            stage["group"] = {"stages": _draw_stages(drawn, names, depth + 1)}
        else:
            stage["name"] = f"s{len(names)}"
            names.append(stage["name"])
            _draw_condition(drawn, stage, names)
        if not kind.startswith("not") or drawn.random() < 0.02:
            _draw_quantifier(drawn, stage, names, is_group)
        if drawn.random() < 0.12:
            stage["within_previous"] = drawn.randint(1, 6)
        stages.append(stage)
    return stages


def _draw_condition(drawn: random.Random, stage: dict[str, Any], names: list[str]) -> None:
    if drawn.random() < 0.95:
        stage["where"] = _draw_where(drawn, names)
    if drawn.random() < 0.1:
        stage["or"] = _draw_where(drawn, names)


def _draw_where(drawn: random.Random, names: list[str]) -> list[Any]:
    kind = drawn.choices(["type", "value", "time", "count", "sum", "up"], (8, 2, 0.5, 0.7, 0.7, 0.7))[0]
    if kind == "type":
        return [kind, "".join(drawn.sample(TYPES, drawn.choice([1, 1, 1, 2])))]
    if kind == "value":
        return [kind, "".join(drawn.sample(TYPES, drawn.choice([1, 2, 4]))), drawn.randint(0, 3)]
    if kind == "time":
        return [kind, "", drawn.randint(0, 1)]
    return [kind, drawn.choice(names), drawn.randint(1, 3) if kind == "count" else drawn.randint(2, 9)]


def _draw_quantifier(drawn: random.Random, stage: dict[str, Any], names: list[str], is_group: bool) -> None:
    least = drawn.randint(1, 3)
    choice = drawn.random()
    if choice < 0.1:
        stage["times"] = [least]
    elif choice < 0.22:
        stage["times"] = [drawn.randint(0, least), least]
    elif choice < 0.42:
        stage["times"] = [drawn.choice([1, 1, 2]), None]
        if drawn.random() < 0.25:
            stage["until"] = _draw_where(drawn, names)
    if "times" in stage:
        if drawn.random() < 0.12:
            stage["times_window"] = drawn.randint(1, 6)
        if drawn.random() < 0.25 and not is_group:
            stage["greedy"] = True
        contiguity = drawn.random()
        if contiguity < 0.2:
            stage["consecutive"] = True
        elif contiguity < 0.4:
            stage["combinations"] = True
    if drawn.random() < 0.2:
        stage["optional"] = True


def _draw_steps(drawn: random.Random, processing_time: bool) -> list[list[Any]]:
    steps: list[list[Any]] = []
    time, watermark, clock = 1, 0, 0
    types = TYPES[: drawn.choice([2, 3, 3, 4])]
    for number in range(drawn.randint(3, 12)):
        time += drawn.choice([0, 1, 1, 1, 2, 4])
        event = f"{drawn.choice(types)} {drawn.randint(0, 4)} {number}"
        if processing_time:
            # every millisecond: Flink's harness does not stop where a timer is due in between
            steps += [["p", each] for each in range(clock + 1, time + 1)]
            steps.append(["e", 0, event])
            clock = time
            continue
        steps.append(["e", max(1, time - drawn.choice([0, 0, 0, 1, 3])), event])
        if drawn.random() < 0.35:
            watermark = max(watermark, time - drawn.choice([0, 0, 1, 2, 3]))
            steps.append(["w", watermark])
    if processing_time:
        return [*steps, *(["p", each] for each in range(time + 1, time + 30))]
    if drawn.random() < 0.3:
        steps.append(["w", time + drawn.randint(1, 15)])
    return [*steps, ["w", (1 << 63) - 1]]

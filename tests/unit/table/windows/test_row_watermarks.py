"""Between which rows watermarks are emitted, against a row by row model of Flink's watermark assigner."""

from __future__ import annotations

import random

import numpy as np
import pytest

from firesteel.table.runtime.operators.watermarks import RowWatermarks

MIN = -(2**63)


def model(watermarks: list[int], times: list[int], interval: int) -> list[int]:
    """The last watermark before each row, if the row is late; else -1."""
    current = last = 0
    found = []
    for watermark, time in zip(watermarks, times, strict=True):
        found.append(last if time <= last else -1)
        current = max(current, watermark)
        if current - last > interval:
            last = current
    return found


@pytest.mark.parametrize("interval", [0, 1, 10, 200])
def test_late_rows_come_behind_the_watermark_that_flink_emits_before_them(interval: int) -> None:
    draw = random.Random(interval)
    for _ in range(60):
        times = [max(0, step * draw.choice([1, 5, 40]) - draw.choice([0, 0, 3, 50, 300])) for step in range(60)]
        watermarks = [MIN if draw.random() < 0.1 else time - 7 for time in times]
        sizes = [draw.randint(1, 25) for _ in range(60)]
        generator, emitted, start, found = RowWatermarks(interval), 0, 0, []
        while start < len(times):
            end = min(start + sizes.pop(), len(times))
            part = np.array(times[start:end])
            cuts, last = generator.on_rows(np.array(watermarks[start:end]), part, emitted)
            places = dict(cuts)
            for place, time in enumerate(part.tolist()):
                emitted = places.get(place, emitted)
                found.append(emitted if time <= emitted else -1)
            emitted, start = last, end
        assert found == model(watermarks, times, interval)


def test_no_rows_are_late_and_no_batch_is_cut() -> None:
    generator = RowWatermarks(0)
    times = np.arange(1000, 2000)
    assert generator.on_rows(times - 5, times, 0) == ([], 1994)
    assert generator.on_rows(times + 995, times + 1000, 1994) == ([], 2994)


def test_watermarks_before_1970_are_not_emitted() -> None:
    generator = RowWatermarks(0)
    assert generator.on_rows(np.array([-500, -1]), np.array([-499, 0]), MIN) == ([], 0)

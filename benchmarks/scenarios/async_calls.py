"""The async functions of the scenario, for any system with PyFlink's classes, and the same calls without a system."""

from __future__ import annotations

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["CAPACITY", "asyncio_rate", "create_function", "difference"]

CAPACITY = 100


def create_function(base: type[Any], latency_s: float | None) -> Any:
    """Returns an async function that takes so long; None for one that returns at once."""

    class Call(base):  # type: ignore[misc]
        async def async_invoke(self, value: int) -> list[int]:
            if latency_s is not None:
                await asyncio.sleep(latency_s)
            return [value]

    return Call()


def asyncio_rate(latency_s: float | None, calls: int) -> float:
    """Calls per second of a plain event loop with as many calls under way at a time."""

    async def call(value: int, free: asyncio.Semaphore, results: list[int]) -> None:
        try:
            if latency_s is not None:
                await asyncio.sleep(latency_s)
            results.append(value)
        finally:
            free.release()

    async def main() -> None:
        free, results = asyncio.Semaphore(CAPACITY), list[int]()
        running = set()
        for value in range(calls):
            await free.acquire()
            task = asyncio.create_task(call(value, free, results))
            running.add(task)
            task.add_done_callback(running.discard)
        await asyncio.gather(*running)
        assert len(results) == calls

    began = time.monotonic()
    asyncio.run(main())
    return calls / (time.monotonic() - began)


def difference(execute: Callable[[int], None], few: int, records: int) -> dict[str, Any]:
    """Runs a job with few records and with many: what the larger one takes longer is the cost of its records."""
    execute(few)  # the first job of a process also loads everything
    figures = []
    for count in (few, records):
        began, cpu = time.monotonic(), _cpu_s()
        execute(count)
        figures.append((time.monotonic() - began, _cpu_s() - cpu))
    more = records - few
    seconds, cpu_s = (max(long - short, 1e-6) for short, long in zip(*figures, strict=True))
    return {"records": records, "records_per_s": more / seconds, "cpu_us": cpu_s / more * 1e6}


def _cpu_s() -> float:
    """Processor time of this process and all it has started, which are still there."""
    ticks, children = {}, defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # behind the name, which may contain anything: state, parent, ..., user and system time
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        pid = int(stat.parent.name)
        ticks[pid] = int(fields[11]) + int(fields[12])
        children[int(fields[1])].append(pid)
    total, pending = 0, [os.getpid()]
    while pending:
        pid = pending.pop()
        total += ticks.get(pid, 0)
        pending += children[pid]
    return total / os.sysconf("SC_CLK_TCK")

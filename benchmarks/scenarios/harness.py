"""Runs one variant of a scenario in a process of its own, and watches its memory from outside."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from queue import Empty
from typing import Any

from benchmarks.harness import Process, RunFailed
from benchmarks.scenarios.scenario import Scenario, ScenarioVariant

__all__ = ["measure_scenario"]


def measure_scenario(
    scenario: Scenario, variant: ScenarioVariant, python: Path, params: Mapping[str, Any], logs: Path
) -> dict[str, Any]:
    """The figures of one run; nothing of it is left behind."""
    label = "-".join([scenario.name, *variant.name.split(), variant.system])
    with Process(label, python, variant.system, scenario.name, {**params, "variant": variant.name}, logs) as process:
        figures = _await_figures(process, scenario.timeout_s)
        figures["rss_mb"] = process.tree.peak_rss / 2**20
        if process.tree.peak_worker_rss:
            figures["worker_rss_mb"] = process.tree.peak_worker_rss / 2**20
        return figures


def _await_figures(process: Process, timeout_s: float) -> dict[str, Any]:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        process.tree.sample()
        try:
            line = process.lines.get(timeout=0.25)
        except Empty:
            continue
        if line is None:
            raise RunFailed(f"the process ended with {process.wait()}")
        fields = json.loads(line)
        if "error" in fields:
            raise RunFailed(fields["error"].splitlines()[0][:200])
        return dict(fields["figures"])
    raise RunFailed(f"no figures after {timeout_s:.0f} s")

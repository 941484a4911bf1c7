"""Whole jobs around a sink under test."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.generators.collection import CollectionSource
from firesteel.process import fault_points
from firesteel.spi.sink import Sink
from firesteel.spi.source import Source
from firesteel.testing.conformance.paced_source import PacedSource
from firesteel.testing.conformance.source_jobs import FailsOnce, job_environment

__all__ = ["run_sink_job"]


def run_sink_job(sink: Sink, records: Sequence[Any], execution: str, timeout_s: float) -> None:
    """Writes records with two writers; a function fails once half way, and then a commit."""
    with tempfile.TemporaryDirectory(prefix="conformance") as directory:
        env = job_environment(directory, execution)
        source: Source[Any] = CollectionSource(records, parallel=True)
        if execution == "pipelined":
            source = PacedSource(source)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "records")
        stream.map(FailsOnce(max(1, len(records) // 4))).sink_to(sink)
        once = Path(directory, "fail-once")
        if execution == "pipelined":
            once.touch()
            fault_points.arm(f"sink.committed=raise@{once}")
        try:
            client = env.execute_async("conformance")
            client.get_job_execution_result().result(timeout_s)
        finally:
            fault_points.arm("")

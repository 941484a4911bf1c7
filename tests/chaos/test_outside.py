"""Kafka to Kafka and PostgreSQL under a few faults; ``make chaos-outside FAULTS=60 RECORDS=10000000`` runs more."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from firesteel.testing.services.processes import ServiceUnavailable
from tests.support.chaos.outside_run import OutsideRun

SEED = int(os.environ.get("CHAOS_SEED", "7"))
KINDS = ["kill a worker", "crash at sink.commit", "kill the broker", "terminate the sessions of PostgreSQL"]


@pytest.mark.spark
def test_every_record_is_outside_exactly_once(tmp_path: Path) -> None:
    print(f"CHAOS_SEED={SEED}", file=sys.stderr)
    run = OutsideRun(SEED, KINDS, 100_000, tmp_path / "run", lambda text: print(text, file=sys.stderr))
    try:
        report = run.execute()
    except ServiceUnavailable as error:
        pytest.skip(f"no Kafka or no PostgreSQL: {error}")
    assert report.passed, f"{report.error}\nCHAOS_SEED={SEED}"
    assert len(report.faults) == len(KINDS)

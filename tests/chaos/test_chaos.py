"""The chaos job under ten faults, and three in epochs; ``make chaos FAULTS=200`` runs more. See docs/reliability.md."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.chaos.plan import EPOCHS, KILL_EXECUTOR, PIPELINED, RETRIED, make_plan
from tests.support.chaos.run import ChaosRun

SEED = int(os.environ.get("CHAOS_SEED", "7"))
"""The same each time, so that a test that fails has to do with what was changed; ``make chaos`` draws others."""

EMBEDDED = [
    "exception in user code",
    "kill a worker",
    "stop a worker",
    "cut a data connection",
    "storage fails",
    "storage returns a truncated file",
    "local disk is full",
    "crash at sink.commit",
]
ON_A_CLUSTER = [KILL_EXECUTOR, "crash at checkpoint.stored"]
"""The latter kills the driver between two steps of the protocol."""
IN_EPOCHS = [RETRIED, "kill a worker in an epoch", "crash at sink.commit"]
"""The last one kills the driver, which commits."""


@pytest.mark.spark
def test_nothing_is_lost_and_nothing_twice(tmp_path: Path) -> None:
    survive(tmp_path, EMBEDDED, cluster=False)


@pytest.mark.cluster
def test_neither_when_executors_and_drivers_are_killed(tmp_path: Path) -> None:
    survive(tmp_path, ON_A_CLUSTER, cluster=True)


@pytest.mark.spark
def test_neither_in_epochs(tmp_path: Path) -> None:
    survive(tmp_path, IN_EPOCHS, cluster=False, execution=EPOCHS)


def survive(directory: Path, kinds: list[str], cluster: bool, execution: str = PIPELINED) -> None:
    in_epochs = execution == EPOCHS
    plan = make_plan(SEED, len(kinds), cluster=cluster, kinds=kinds, execution=execution, retries=in_epochs)
    run = ChaosRun(plan, directory / "chaos", lambda text: print(text, file=sys.stderr))
    print(f"CHAOS_SEED={SEED}", file=sys.stderr)
    report = run.execute()
    assert report.passed, f"{report.error}\nCHAOS_SEED={SEED}\n{run.account()}"
    assert len(report.faults) == len(kinds)
    assert all(fault.recovered_after is not None for fault in report.faults)

"""Whatever happens in whatever order, a job ends exactly once and nothing is sent to a slot that is gone."""

from __future__ import annotations

import itertools

import pytest

from firesteel.common.job_status import JobStatus
from tests.support.jobs.random_events import explore, machine


@pytest.mark.parametrize("restarts", [0, 2])
def test_any_order_of_events_ends_in_one_terminal_status(make_harness, restarts):
    seen = set()
    # The runs go everywhere, not only down the short ways to a failure.
    last = JobStatus.RESTARTING if restarts else JobStatus.FAILING
    met = itertools.product((JobStatus.CREATED, JobStatus.RUNNING, last), ("lost", "ended", "register", "cancel"))
    ends = itertools.product((JobStatus.FINISHED, JobStatus.FAILED, JobStatus.CANCELED), ["end"])
    explore(machine(make_harness, restarts, seen), 250, 30, seen, {*met, *ends})

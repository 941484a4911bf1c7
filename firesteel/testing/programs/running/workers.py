"""Runs programs in several processes; one that hangs or dies is replaced."""

from __future__ import annotations

import logging
import multiprocessing
import time
import warnings
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from firesteel.testing.programs.campaign import Campaign, Verdict
from firesteel.testing.programs.coverage import met_by
from firesteel.testing.programs.results import Outcome

__all__ = ["judge_in_processes"]

_CONTEXT = multiprocessing.get_context("spawn")
_GRACE_S = 30.0


def judge_in_processes(
    campaign: Campaign, numbers: Sequence[int], processes: int, deadline_s: float
) -> Iterator[Verdict]:
    """Yields verdicts as they come."""
    pending = iter(numbers)
    workers = [_Worker(campaign) for _ in range(min(processes, len(numbers)))]
    busy = [worker for worker in workers if worker.give(next(pending, None))]
    try:
        while busy:
            wait([worker.connection for worker in busy], timeout=1.0)
            for worker in list(busy):
                verdict = worker.verdict(deadline_s + _GRACE_S)
                if verdict is None:
                    continue
                yield verdict
                if not worker.give(next(pending, None)):
                    busy.remove(worker)
    finally:
        for worker in workers:
            worker.close()


class _Worker:
    def __init__(self, campaign: Campaign):
        self._campaign = campaign
        self._number: int | None = None
        self._since = 0.0
        self._start()

    def _start(self) -> None:
        self.connection, theirs = _CONTEXT.Pipe()
        self._process: Any = _CONTEXT.Process(target=_work, args=(self._campaign, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def give(self, number: int | None) -> bool:
        """Runs the program of a number; False if there is none."""
        if number is None:
            return False
        self._number, self._since = number, time.monotonic()
        self.connection.send(number)
        return True

    def verdict(self, deadline_s: float) -> Verdict | None:
        """Returns the verdict if there is one; also if there will be none."""
        try:
            if self.connection.poll():
                verdict: Verdict = self.connection.recv()
                return verdict
            problem = "hangs: the process gave no answer" if time.monotonic() > self._since + deadline_s else ""
        except (EOFError, OSError):
            problem = "dies: the process that ran it has ended"
        if not problem:
            return None
        self.close()
        self._start()
        case = self._campaign.case(self._number or 0)
        return Verdict(case.program.seed, met_by(case.program, case.way, Outcome()), (problem,))

    def close(self) -> None:
        """Ends the process."""
        self.connection.close()
        self._process.kill()
        self._process.join()


def _work(campaign: Campaign, connection: Connection[Any, Any]) -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    if campaign.prepare is not None:
        campaign.prepare()
    while True:
        try:
            number = connection.recv()
        except EOFError:
            return
        connection.send(campaign.judge(number))

"""Chaos with generated programs on two JobManagers: many faults, in rounds with new programs each."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.chaos.cluster.cluster import DIRECTORY, EMBEDDED, STANDALONE, ZOOKEEPER
from tests.support.chaos.cluster.plan import cluster_kinds, draw_faults
from tests.support.chaos.cluster.run import ClusterRun
from tests.support.chaos.namespace import is_inside, mend_network
from tests.support.chaos.report import Report, as_text, summarize

__all__ = ["run_programs"]

FAULTS_PER_ROUND = 30
ROUNDS = ((EMBEDDED, DIRECTORY), (STANDALONE, DIRECTORY), (EMBEDDED, ZOOKEEPER))
"""Which Spark, and what JobManagers share; in turn, beginning with one of the seed."""


def run_programs(options: argparse.Namespace, seed: int, say: Callable[[str], None]) -> int:
    """Runs the rounds; 0 if all of them passed."""
    if not is_inside():
        say("This needs namespaces of its own: root, and the commands unshare and ip.")
        return 2
    mend_network()
    reports: list[Report] = []
    statuses: Counter[str] = Counter()
    base = Path(tempfile.mkdtemp(prefix="firesteel-chaos-", dir=options.directory))
    kinds = _Kinds(seed, options.kinds)
    left = options.faults
    while left > 0 and (not reports or reports[-1].passed):
        number = len(reports)
        spark, store = ROUNDS[(seed + number) % len(ROUNDS)]
        if options.cluster != "some":
            spark = STANDALONE if options.cluster == "always" else EMBEDDED
        count = min(left, options.round or FAULTS_PER_ROUND)
        faults = draw_faults(seed + number, count, kinds.take(count, cluster_kinds(spark, store)))
        say(f"round {number + 1}: seed {seed + number}, {options.programs} programs, {spark}, {store}")
        run = ClusterRun(seed + number, faults, options.programs, base / str(number), spark, store, say)
        reports.append(run.execute())
        # those that could not be brought about do not count
        left -= max(len(reports[-1].faults), 1)
        statuses += run.statuses
        if reports[-1].passed:
            shutil.rmtree(base / str(number), ignore_errors=True)
            say(f"round {number + 1} is exact: {reports[-1].results} results")
        else:
            say(f"FAILED: {reports[-1].error}\neverything is in {base / str(number)}")
        if options.report:
            _write(options.report, seed, reports, statuses)
    passed = all(report.passed for report in reports)
    if passed:
        shutil.rmtree(base, ignore_errors=True)
    sys.stdout.write(as_text(summarize(seed, reports)) + f"struck while jobs were: {dict(statuses)}\n")
    return 0 if passed else 1


def _write(path: Path, seed: int, reports: list[Report], statuses: Counter[str]) -> None:
    summary = {**summarize(seed, reports), "statuses": dict(statuses)}
    path.write_text(json.dumps({**summary, "rounds": [report.as_dict() for report in reports]}, indent=1))


class _Kinds:
    """Kinds of faults in random order; each round takes those that it can have, and leaves the others to the next."""

    def __init__(self, seed: int, only: list[str] | None):
        self._drawn = random.Random(f"kinds {seed}")
        self._only = only
        self._waiting: list[str] = []

    def take(self, count: int, possible: list[str]) -> list[str]:
        """So many kinds of the possible ones."""
        return [next(self._next(possible)) for _ in range(count)]

    def _next(self, possible: list[str]) -> Iterator[str]:
        while True:
            for kind in self._waiting:
                if kind in possible:
                    self._waiting.remove(kind)
                    yield kind
                    return
            every = self._only or sorted({kind for spark, store in ROUNDS for kind in cluster_kinds(spark, store)})
            fresh = [kind for kind in every if kind not in self._waiting] if not self._only else list(every)
            self._waiting += self._drawn.sample(fresh, len(fresh))

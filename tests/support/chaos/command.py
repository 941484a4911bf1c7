"""The command line of the chaos tests: many faults, in rounds, each with a seed, a backend and a mode of its own."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tests.support.chaos.cluster.command import run_programs
from tests.support.chaos.namespace import enter, is_inside
from tests.support.chaos.plan import EPOCHS, KILL_EXECUTOR, PIPELINED, RETRIED, all_kinds, make_plan
from tests.support.chaos.report import Report, as_text, summarize
from tests.support.chaos.run import ChaosRun
from tests.support.processes import exit_by_sigterm

__all__ = ["main"]

FAULTS_PER_ROUND = {PIPELINED: 20, EPOCHS: 13}
CLUSTER_EVERY = 4
"""Every so many rounds one runs on a standalone cluster, where executors are killed as well."""
EXECUTORS_PER_ROUND = 3
RETRIES_EVERY = 2
"""In every other round of epochs Spark runs tasks again that have failed; else what fails, fails the attempt."""
RETRIED_PER_ROUND = 2


def main(arguments: list[str] | None = None) -> int:
    """Runs the rounds; 0 if all of them passed."""
    options = _parse(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1_000_000)
    if options.programs and not is_inside():
        again = [f"--seed={seed}", *(sys.argv[1:] if arguments is None else arguments)]
        enter("tests.chaos", again)  # a seed that was given comes later, and counts
    _say(f"seed {seed}, {options.faults} faults")
    exit_by_sigterm()
    if options.programs:
        return run_programs(options, seed, _say)
    reports: list[Report] = []
    base = Path(tempfile.mkdtemp(prefix="firesteel-chaos-", dir=options.directory))
    kinds = endless_kinds(seed, options.kinds or all_kinds(cluster=False, execution=options.execution))
    left = options.faults
    while left > 0 and (not reports or reports[-1].passed):
        number = len(reports)
        count = min(left, options.round or FAULTS_PER_ROUND[options.execution])
        cluster = options.cluster == "always" or (options.cluster == "some" and number % CLUSTER_EVERY == 3)
        retries = options.execution == EPOCHS and (RETRIED in (options.kinds or ()) or number % RETRIES_EVERY == 1)
        special: list[str] = []
        if not options.kinds:
            special = [KILL_EXECUTOR] * EXECUTORS_PER_ROUND * cluster + [RETRIED] * RETRIED_PER_ROUND * retries
        wanted = [*special[:count], *islice(kinds, max(count - len(special), 0))]
        plan = make_plan(
            seed + number,
            count,
            backend=options.backend,
            mode=options.mode,
            cluster=cluster,
            kinds=wanted,
            execution=options.execution,
            retries=retries,
        )
        left -= count
        _say(
            f"round {number + 1}: seed {plan.seed}, {plan.execution}{' with retries' if plan.retries else ''}, "
            f"{plan.backend}, {plan.mode}{', cluster' if plan.cluster else ''}"
        )
        run = ChaosRun(plan, base / str(number), _say)
        reports.append(run.execute())
        if reports[-1].passed:
            shutil.rmtree(base / str(number), ignore_errors=True)
        else:
            _say(f"FAILED: {reports[-1].error}\n{run.account()}\neverything is in {base / str(number)}")
    passed = all(report.passed for report in reports)
    if passed:
        shutil.rmtree(base, ignore_errors=True)
    summary = summarize(seed, reports)
    if options.json:
        sys.stdout.write(json.dumps({**summary, "rounds": [report.as_dict() for report in reports]}, indent=1) + "\n")
    else:
        sys.stdout.write(as_text(summary))
    return 0 if passed else 1


def endless_kinds(seed: int, kinds: list[str]) -> Iterator[str]:
    """Kinds of faults in random order, none again before every other has had its turn."""
    drawn = random.Random(seed)
    while True:
        yield from drawn.sample(kinds, len(kinds))


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--faults", type=int, default=20, help="how many faults in total")
    parser.add_argument("--round", type=int, help="how many faults one job is to survive; 20, or 13 in epochs")
    parser.add_argument("--seed", type=int, help="of the first round; the next one's is one more; random by default")
    parser.add_argument("--backend", choices=("hashmap", "rocksdb"), help="the seed's choice by default")
    parser.add_argument("--mode", choices=("aligned", "unaligned", "timeout"), help="the seed's choice by default")
    parser.add_argument(
        "--execution",
        choices=(PIPELINED, EPOCHS),
        default=PIPELINED,
        help="as long-lived tasks or, with execution.exchange: spark, in epochs",
    )
    parser.add_argument(
        "--cluster",
        choices=("never", "some", "always"),
        default="some",
        help="whether rounds run on a standalone cluster instead of embedded Spark; some: every fourth",
    )
    parser.add_argument("--kinds", action="append", help="only this kind of fault; may be repeated")
    parser.add_argument(
        "--programs",
        type=int,
        default=0,
        help="so many generated programs at once, on two JobManagers, instead of the chaos job",
    )
    parser.add_argument("--report", type=Path, help="with --programs: the file for a report in JSON")
    parser.add_argument("--directory", help="where to work; a temporary one by default")
    parser.add_argument("--json", action="store_true", help="the report as JSON on standard output")
    return parser.parse_args(arguments)

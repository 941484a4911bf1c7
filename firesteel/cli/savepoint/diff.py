"""``firesteel savepoint diff``: what a program would restore from a savepoint."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.output import indented, table
from firesteel.cli.terminal.settings import add_settings_option, configure_stores, settings_of

if TYPE_CHECKING:
    from firesteel.savepoint.diff import OperatorDiff, SavepointDiff, StateDiff

__all__ = ["register", "run"]

_MARKS = {
    "restored": "=",
    "new": "+",
    "dropped": "-",
    "incompatible": "!",
    "stateless": " ",
    "not asked for": "·",
    "unknown": "?",
}
"""The mark of each verdict."""


def register(commands: Any) -> None:
    """Adds the verb to those of ``firesteel savepoint``."""
    parser = commands.add_parser(
        "diff",
        help="show what a program would restore from a savepoint",
        description="Builds the program's job without running it, opens its keyed functions to find the states they "
        "declare, and shows for every operator which state would be restored, new, dropped or incompatible. "
        "Exit codes: 0 if the job would start from the savepoint, 1 if it would be rejected, 2 if this "
        "cannot be determined.",
    )
    parser.add_argument("savepoint", metavar="SAVEPOINT", help="directory of a savepoint or checkpoint")
    parser.add_argument("program", metavar="PROGRAM.py", help="the script that defines the job")
    parser.add_argument("arguments", metavar="ARG", nargs=argparse.REMAINDER, help="arguments for the program")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("-p", "--parallelism", type=int, help="default parallelism of the program")
    add_settings_option(parser)
    parser.add_argument("--no-open", action="store_true", help="do not call open() of the program's functions")
    parser.add_argument(
        "-n",
        "--allow-non-restored-state",
        action="store_true",
        help="ignore state that belongs to no operator of the program",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the comparison; 1 if the job would be rejected."""
    from firesteel.client.program import load_program
    from firesteel.config import checkpointing_options
    from firesteel.runtime.checkpoint.storage import load
    from firesteel.savepoint.declared_states import declared_states
    from firesteel.savepoint.diff import compare

    configure_stores(options)
    metadata = load(options.savepoint)
    with load_program(options.program, options.arguments, _settings(options)) as program:
        declared = declared_states(program.job_graph, open_functions=not options.no_open)
        allowed = options.allow_non_restored_state or bool(
            program.job_graph.configuration.get(checkpointing_options.IGNORE_UNCLAIMED_STATE)
        )
        diff = compare(metadata, program.job_graph, declared, allow_non_restored_state=allowed)
    notes = []
    if program.execute_calls > 1:
        notes.append(
            f"{options.program} calls execute() {program.execute_calls} times; only the first call is considered."
        )
    if options.json:
        print(json.dumps(_as_json(diff, notes), indent=2))  # noqa: T201
    else:
        header = f"{options.savepoint} (job '{metadata.job_name}') → {options.program} ('{program.job_graph.job_name}')"
        print("\n".join([header, *notes, "", *_text(diff)]))  # noqa: T201
    return 0 if diff.would_restore else 1


def _settings(options: argparse.Namespace) -> dict[str, str]:
    from firesteel.config import pipeline_options

    settings = settings_of(options)
    if options.parallelism is not None:
        settings[pipeline_options.DEFAULT_PARALLELISM.key] = str(options.parallelism)
    return settings


def _as_json(diff: SavepointDiff, notes: list[str]) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "would_restore": diff.would_restore,
        "refusals": list(diff.refusals),
        "notes": notes,
        "counts": {verdict.value: number for verdict, number in diff.counts.items()},
        "operators": [asdict(operator) for operator in diff.operators],
    }


def _text(diff: SavepointDiff) -> list[str]:
    from firesteel.savepoint.diff import Verdict

    counted = (Verdict.RESTORED, Verdict.NEW, Verdict.DROPPED, Verdict.INCOMPATIBLE)
    lines: list[str] = []
    for operator in diff.operators:
        if operator.verdict is not Verdict.STATELESS:
            lines += [*_operator(operator), ""]
    stateless = [operator.name for operator in diff.operators if operator.verdict is Verdict.STATELESS]
    if stateless:
        lines += [f"without state: {', '.join(stateless)}", ""]
    counts = ", ".join(f"{diff.counts[verdict]} {verdict.value}" for verdict in counted if diff.counts.get(verdict))
    lines.append(f"Operators: {counts or 'none with state'}.")
    if diff.would_restore:
        lines.append("The job would start from this savepoint.")
        return lines
    lines.append("The job would be rejected:")
    lines += [f"  {reason}" for reason in diff.refusals]
    if any(operator.verdict is Verdict.DROPPED for operator in diff.operators) and not diff.allow_non_restored_state:
        lines.append("  (with --allow-non-restored-state, state without an operator is dropped)")
    return lines


def _operator(operator: OperatorDiff) -> list[str]:
    uid = f"uid '{operator.uid}'" if operator.uid else f"no uid, id {operator.operator_id}"
    place = f", {operator.defined_at}" if operator.defined_at else ""
    lines = [f"{_MARKS[operator.verdict.value]} {operator.name}  ({uid}{place}): {operator.verdict.value}"]
    saved, now = operator.parallelism
    if saved is not None and now is not None and saved != now:
        lines.append(f"    parallelism {saved} → {now}")
    states = [_state(state) for state in operator.states if not _is_empty_queue(state)]
    lines += indented(table(["", "", "", "", "", "", ""], states)[1:], 4)
    lines += [f"    ! {problem}" for problem in operator.problems]
    lines += [f"    Hint: {hint}" for hint in operator.hints]
    return lines


def _is_empty_queue(state: StateDiff) -> bool:
    return state.saved is not None and state.saved.kind == "timers" and not state.saved.entries


def _state(state: StateDiff) -> list[Any]:
    meta = state.saved or state.declared
    assert meta is not None
    return [
        _MARKS[state.verdict.value],
        state.name,
        meta.kind,
        meta.type or "any",
        "TTL" if meta.ttl else "",
        f"~{state.saved.entries:,}" if state.saved else "",
        state.verdict.value,
    ]

"""``firesteel savepoint inspect``: what is in a savepoint or checkpoint."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from firesteel.cli.terminal.output import bytes_text, count, indented, table, time_text
from firesteel.cli.terminal.settings import add_settings_option, configure_stores

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb to those of ``firesteel savepoint``."""
    parser = commands.add_parser(
        "inspect",
        help="show what is in a savepoint or checkpoint",
        description="Shows the job, the operators and their states. Without --states, --keys and --verify only the "
        "metadata is read, and nothing is unpickled. Exit codes: 0, or 1 if the savepoint cannot be read or "
        "is damaged.",
    )
    parser.add_argument("path", metavar="PATH", help="directory of a savepoint or checkpoint, or its _metadata file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--states", action="store_true", help="read all state and count keys and bytes exactly")
    parser.add_argument(
        "--keys", metavar="STATE", action="append", default=[], help="list the keys and values of a keyed state"
    )
    parser.add_argument(
        "--limit", type=int, default=20, help="maximum number of keys that --keys lists per state (default: 20)"
    )
    parser.add_argument("--subtasks", action="store_true", help="show the sizes of each subtask")
    parser.add_argument("--verify", action="store_true", help="check every state file against its checksum")
    add_settings_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the description; 1 if the state files are damaged."""
    from firesteel.runtime.checkpoint.files import StateFileReader
    from firesteel.runtime.checkpoint.storage import load
    from firesteel.savepoint.inspection import count_states, describe, list_keys, verify

    configure_stores(options)
    metadata = load(options.path)
    description = describe(metadata, options.path)
    problems: list[str] | None = None
    files = StateFileReader()
    try:
        if options.verify:
            problems = verify(metadata, files)
            description["problems"] = problems
        if options.states and not problems:
            count_states(metadata, files, description)
        description["keys"] = {name: list_keys(metadata, files, name, options.limit) for name in options.keys}
    finally:
        files.close()
    if options.json:
        print(json.dumps(description, indent=2))  # noqa: T201
    else:
        print("\n".join(_text(description, options)))  # noqa: T201
    for problem in problems or ():
        print(f"firesteel: {problem}", file=sys.stderr)  # noqa: T201
    return 1 if problems else 0


def _text(description: dict[str, Any], options: argparse.Namespace) -> list[str]:
    d = description
    in_flight = d["in_flight"]
    facts = [
        ("path", d["path"]),
        ("job", f"{d['job_name']} ({d['job_id']})"),
        ("kind", f"{d['kind']}, format version {d['format_version']}"),
        ("checkpoint", f"{d['checkpoint_id']}, {time_text(d['timestamp'])}"),
        ("state", f"{bytes_text(d['size'])} in {count(d['files'], 'file')} and the metadata"),
    ]
    if in_flight["channels"]:
        facts.append(("in flight", f"{bytes_text(in_flight['size'])} in {count(in_flight['channels'], 'channel')}"))
    if options.verify:
        damaged = len(d["problems"])
        facts.append(("verified", f"{count(damaged, 'problem')}" if damaged else "all checksums match"))
    lines = [f"{name:<11} {value}" for name, value in facts]
    with_state = [operator for operator in d["operators"] if operator["has_state"]]
    without = [operator["name"] for operator in d["operators"] if not operator["has_state"]]
    for operator in with_state:
        lines += ["", *_operator(operator, options)]
    if without:
        lines += ["", f"without state: {', '.join(without)}"]
    for name, rows in d["keys"].items():
        lines += ["", f"keys of '{name}' (at most {options.limit})", *indented(_keys(rows))]
    return lines


def _operator(operator: dict[str, Any], options: argparse.Namespace) -> list[str]:
    uid = f"uid '{operator['uid']}'" if operator["uid"] else "no uid"
    formats = f", {'/'.join(operator['formats'])}" if operator["formats"] else ""
    subtasks = f"parallelism {operator['parallelism']} of at most {operator['max_parallelism']}"
    lines = [
        f"{operator['name']}  ({uid}, id {operator['id']})",
        f"  {subtasks}, {bytes_text(operator['size'])}{formats}",
    ]
    if operator["finished_subtasks"]:
        lines.append(f"  finished subtasks: {', '.join(map(str, operator['finished_subtasks']))}")
    if operator["keyed_states"]:
        # every process function has timer queues, mostly without timers
        rows = [_state(s) for s in operator["keyed_states"] if s["kind"] != "timers" or s["entries"]]
        headers = ["keyed state", "kind", "type", "TTL", "keys", "entries", "size"]
        lines += indented(table(headers, rows, right=["keys", "entries", "size"]))
    if operator["operator_states"]:
        rows = [[s["name"], s["mode"], f"{s['items']:,}", bytes_text(s["size"])] for s in operator["operator_states"]]
        lines += indented(table(["operator state", "mode", "items", "size"], rows, right=["items", "size"]))
    if operator["coordinator_size"] is not None:
        lines.append(f"  source coordinator: {bytes_text(operator['coordinator_size'])}")
    if options.subtasks:
        rows = [_subtask(subtask) for subtask in operator["subtasks"]]
        headers = ["subtask", "key groups", "keyed", "operator", "files"]
        lines += indented(table(headers, rows, right=["subtask", "keyed", "operator", "files"]))
    return lines


def _state(state: dict[str, Any]) -> list[Any]:
    exact = state["keys"] is not None
    return [
        state["name"],
        state["kind"],
        state["type"],
        "yes" if state["ttl"] else "no",
        f"{state['keys']:,}" if exact else None,
        f"{state['entries']:,}" if exact else f"~{state['entries']:,}",
        bytes_text(state["size"]) if exact else None,
    ]


def _subtask(subtask: dict[str, Any]) -> list[Any]:
    groups = subtask["key_groups"]
    return [
        subtask["subtask"],
        f"{groups[0]}-{groups[1]}" if groups else None,
        bytes_text(subtask["keyed_size"]),
        bytes_text(subtask["operator_size"]),
        subtask["files"],
    ]


def _keys(rows: list[dict[str, Any]]) -> list[str]:
    headers = ["operator", "key", "namespace", "value"]
    return table(headers, [[row[header] for header in headers] for row in rows])

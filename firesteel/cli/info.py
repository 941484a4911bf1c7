"""``firesteel info``: shows the plan of a program without running it."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from firesteel.cli.terminal.settings import add_program_options, program_settings

__all__ = ["register", "run", "show"]


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "info",
        help="show a program's plan without running it",
        description="Runs the program up to its first execute() and shows the plan of that job: its vertices, the "
        "exchange of each edge and the reason for it, slots, state and checkpoints. No job is started. Exit "
        "codes: 0, 1 if the program is invalid, 2 if it executes no job.",
    )
    parser.add_argument("--format", choices=("text", "json", "mermaid"), default="text", help="default: text")
    add_program_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    return show(options, options.format)


def show(options: argparse.Namespace, format: str) -> int:
    """Prints the plan of a program's first job."""
    from firesteel.client.program import load_program
    from firesteel.client.program_files import program_files
    from firesteel.graph.explain import explain
    from firesteel.process.config_file import find_config_file

    if options.pyflink:
        import firesteel.pyflink  # noqa: F401
    with (
        program_files(options.python_files) as files,
        load_program(
            options.program,
            options.arguments,
            program_settings(options),
            search_path=files.search_path,
            module=options.module,
        ) as program,
    ):
        text = explain(program.job_graph, format)
    if program.execute_calls > 1:
        note = f"{options.program} calls execute() {program.execute_calls} times; only the first call is considered."
        print(f"firesteel: {note}", file=sys.stderr)  # noqa: T201
    config_file = find_config_file()
    if config_file is not None:
        print(f"firesteel: the configuration file is {config_file}", file=sys.stderr)  # noqa: T201
    print(text.rstrip())  # noqa: T201
    return 0

"""``firesteel savepoint dispose``: deletes a savepoint."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.terminal.output import bytes_text, count
from firesteel.cli.terminal.settings import add_settings_option, configure_stores
from firesteel.client.errors import UsageError

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb to those of ``firesteel savepoint``."""
    parser = commands.add_parser(
        "dispose",
        help="delete a savepoint",
        description="Deletes a savepoint with all its files. Fails for checkpoints, which belong to their job.",
    )
    parser.add_argument("path", metavar="PATH", help="directory of the savepoint")
    add_settings_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Deletes the savepoint."""
    from firesteel.runtime.checkpoint.storage import dispose, load
    from firesteel.runtime.model.checkpoint_options import SnapshotKind
    from firesteel.savepoint.inspection import describe

    configure_stores(options)
    metadata = load(options.path)
    if not SnapshotKind(metadata.kind).is_savepoint:
        raise UsageError(
            f"{options.path} is a {SnapshotKind(metadata.kind).value}, not a savepoint: it belongs to job "
            f"'{metadata.job_name}' and may share files with its other checkpoints.",
            hint="To delete the retained checkpoints of a job that will not be restored, delete the job's whole "
            "checkpoint directory.",
        )
    description = describe(metadata, options.path)
    dispose(options.path)
    size, files = bytes_text(description["size"]), count(description["files"], "file")
    print(f"Disposed of {options.path}: {size} in {files}.")  # noqa: T201
    return 0

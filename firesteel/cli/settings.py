"""Settings on the command line: ``-D key=value``, as for Flink's commands."""

from __future__ import annotations

import argparse

from firesteel.cli.errors import CommandError
from firesteel.common.configuration import Configuration
from firesteel.runtime.checkpoint.filesystem import configure_filesystems

__all__ = ["add_settings_option", "configure_stores", "settings_of"]


def add_settings_option(parser: argparse.ArgumentParser) -> None:
    """Adds ``-D`` to a verb."""
    parser.add_argument(
        "-D",
        dest="settings",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a configuration setting, such as s3.endpoint=http://localhost:9000; may be given more than once",
    )


def settings_of(options: argparse.Namespace) -> dict[str, str]:
    """What was given with ``-D``."""
    settings = {}
    for text in options.settings:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise CommandError(f"-D needs KEY=VALUE, got {text!r}.")
        settings[key] = value
    return settings


def configure_stores(options: argparse.Namespace) -> None:
    """Lets the settings say how object stores are reached."""
    configure_filesystems(Configuration.from_dict(settings_of(options)))

"""Settings on the command line: ``-D key=value`` and its short forms, as for Flink's commands."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping

from firesteel.cli.terminal.command_parser import CommandParser
from firesteel.client.errors import UsageError

__all__ = [
    "add_cluster_options",
    "add_local_cluster_options",
    "add_program_options",
    "add_settings_option",
    "check_settings",
    "configure_stores",
    "positive",
    "program_settings",
    "settings_of",
]

SETTINGS_VARIABLE = "FIRESTEEL_SETTINGS"
_MODES = ("batch", "streaming", "automatic")


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
    """What was given with ``-D``, and before it what the environment variable FIRESTEEL_SETTINGS has, as JSON."""
    settings = _environment_settings()
    for text in options.settings:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"-D needs KEY=VALUE, got {text!r}.")
        settings[key] = value
    return settings


def _environment_settings() -> dict[str, str]:
    """Settings that do not belong on a command line, which every user of the machine can read."""
    text = os.environ.get(SETTINGS_VARIABLE)
    if not text:
        return {}
    try:
        found = json.loads(text)
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            raise ValueError("not an object of texts")
    except ValueError as error:
        # without its value: that is a secret
        raise UsageError(
            f"{SETTINGS_VARIABLE} is not a JSON object with texts as values: {type(error).__name__}."
        ) from None
    return dict(found)


def configure_stores(options: argparse.Namespace) -> None:
    """Lets the settings say how object stores are reached."""
    from firesteel.config.configuration import Configuration
    from firesteel.filesystem.stores import configure_filesystems

    configure_filesystems(Configuration.from_dict(settings_of(options)))


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say which cluster is meant, and ``-D``."""
    parser.add_argument(
        "-m",
        "--jobmanager",
        metavar="HOST:PORT",
        help="the JobManager, also as https://…; else FIRESTEEL_JOBMANAGER, or rest.address and rest.port if they are "
        "set with -D, or the cluster that runs on this machine",
    )
    parser.add_argument(
        "-z",
        "--cluster-id",
        "--zookeeperNamespace",
        dest="cluster_id",
        metavar="ID",
        help="which of the clusters on this machine, if there are several",
    )
    add_settings_option(parser)


def add_local_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a verb of ``firesteel cluster`` that say which cluster is meant, ``--json`` and ``-D``."""
    parser.add_argument("--directory", dest="cluster_directory", metavar="DIR", help="the cluster's directory")
    parser.add_argument("--id", dest="cluster_id", metavar="ID", help="the same as -z")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)


def add_program_options(parser: argparse.ArgumentParser, *, settings: bool = True) -> None:
    """Adds the program, its arguments and the options that are settings for it; ``-D`` unless it is there already."""
    parser.add_argument("program", metavar="PROGRAM.py", help="the script; it runs as python PROGRAM.py would")
    parser.add_argument("arguments", metavar="ARG", nargs=argparse.REMAINDER, help="arguments of the program")
    if isinstance(parser, CommandParser):
        parser.takes_program = True
    parser.add_argument("-py", "--python", metavar="FILE", help="the script, as Flink's command wants it named")
    parser.add_argument("-pym", "--pyModule", dest="module", metavar="MODULE", help="a module instead of a script")
    parser.add_argument(
        "-pyfs",
        "--pyFiles",
        dest="python_files",
        metavar="PATHS",
        action="append",
        default=[],
        help="files, directories and zip archives, separated by commas, that the program imports from; jobs on a "
        "cluster find them in their slots",
    )
    parser.add_argument(
        "-p", "--parallelism", metavar="N", type=positive, help="how many subtasks an operator has by default"
    )
    parser.add_argument(
        "-s",
        "--fromSavepoint",
        "--from-savepoint",
        dest="savepoint",
        metavar="PATH",
        help="start from this savepoint or checkpoint, or from the newest checkpoint in this directory of a job",
    )
    parser.add_argument(
        "-n",
        "--allowNonRestoredState",
        "--allow-non-restored-state",
        dest="allow_non_restored_state",
        action="store_true",
        help="with -s: drop state that no operator of the program asks for",
    )
    parser.add_argument(
        "--mode", choices=_MODES, help="run as a batch, as a stream, or as a batch if all sources are bounded"
    )
    parser.add_argument(
        "--available-now",
        action="store_true",
        help="read all there is now in epochs, commit, stop; the next such run goes on from there, if "
        "execution.checkpointing.dir is set",
    )
    parser.add_argument(
        "--strict-config",
        action="store_true",
        help="refuse configuration keys that do not exist; without it they are warnings",
    )
    if settings:
        add_settings_option(parser)


def program_settings(options: argparse.Namespace) -> dict[str, str]:
    """What the options of :func:`add_program_options` say; those with a name of their own win over ``-D``."""
    from firesteel.config import checkpointing_options, exchange_options, pipeline_options

    settings = settings_of(options)
    if options.parallelism is not None:
        settings[pipeline_options.DEFAULT_PARALLELISM.key] = str(options.parallelism)
    if options.savepoint is not None:
        settings[checkpointing_options.SAVEPOINT_PATH.key] = options.savepoint
    if options.allow_non_restored_state:
        settings[checkpointing_options.IGNORE_UNCLAIMED_STATE.key] = "true"
    if options.mode is not None:
        settings[pipeline_options.RUNTIME_MODE.key] = options.mode.upper()
    if getattr(options, "strict_config", False):
        settings[pipeline_options.STRICT_CONFIG.key] = "true"
    if options.available_now:
        settings[exchange_options.EXCHANGE.key] = "spark"
        settings[exchange_options.EPOCH_TRIGGER.key] = "available-now"
    check_settings(settings, warn=False)  # the environment warns of them, together with those that the program sets
    return settings


def positive(text: str) -> int:
    """A whole number of at least 1, as an argument."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def check_settings(settings: Mapping[str, str], *, warn: bool = True) -> None:
    """Refuses values that their options do not accept, and unknown keys with ``pipeline.strict-config``.

    Without it, unknown keys are printed as warnings.
    """
    from firesteel.config import options as config_options
    from firesteel.config import pipeline_options
    from firesteel.config.configuration import Configuration
    from firesteel.config.option import InvalidConfigurationError
    from firesteel.config.unknown_keys import describe_unknown, unknown_keys

    configuration = Configuration.from_dict(settings)
    for option in config_options.all_options():
        try:
            configuration.get_optional(option)
        except InvalidConfigurationError as error:
            raise UsageError(str(error)) from None
    unknown = [describe_unknown(key) for key in unknown_keys(settings)]
    strict = configuration.get(pipeline_options.STRICT_CONFIG)
    if unknown and strict:
        raise UsageError(" ".join(unknown))
    for text in unknown if warn else ():
        print(f"warning: {text}", file=sys.stderr)  # noqa: T201

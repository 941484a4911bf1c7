"""Settings on the command line: ``-D key=value`` and its short forms, as for Flink's commands."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping

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
        help="set a configuration option, such as s3.endpoint=http://localhost:9000; may be repeated",
    )


def settings_of(options: argparse.Namespace) -> dict[str, str]:
    """The settings of the configuration file, overridden by FIRESTEEL_SETTINGS (JSON), and that by ``-D``."""
    from firesteel.process.config_file import file_settings

    settings = {**file_settings(), **_environment_settings()}
    for text in options.settings:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"-D requires KEY=VALUE, got {text!r}.")
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
            raise ValueError("not an object with string values")
    except ValueError as error:
        # without its value: that is a secret
        raise UsageError(
            f"{SETTINGS_VARIABLE} is not a JSON object with string values: {type(error).__name__}."
        ) from None
    return dict(found)


def configure_stores(options: argparse.Namespace) -> None:
    """Configures access to object stores from the settings."""
    from firesteel.config.configuration import Configuration
    from firesteel.filesystem.stores import configure_filesystems

    configure_filesystems(Configuration.from_dict(settings_of(options)))


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that select a cluster, and ``-D``."""
    parser.add_argument(
        "-m",
        "--jobmanager",
        metavar="HOST:PORT",
        help="address of the JobManager, as HOST:PORT or https://HOST:PORT; default: FIRESTEEL_JOBMANAGER, or "
        "rest.address and rest.port if set with -D, or the cluster on this machine",
    )
    parser.add_argument(
        "-z",
        "--cluster-id",
        "--zookeeperNamespace",
        dest="cluster_id",
        metavar="ID",
        help="cluster id, if several clusters run on this machine",
    )
    add_settings_option(parser)


def add_local_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a verb of ``firesteel cluster`` that select a cluster, ``--json`` and ``-D``."""
    parser.add_argument("--directory", dest="cluster_directory", metavar="DIR", help="directory of the cluster")
    parser.add_argument("--id", dest="cluster_id", metavar="ID", help="the same as -z")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)


def add_program_options(parser: argparse.ArgumentParser, *, settings: bool = True) -> None:
    """Adds the program, its arguments and the options that are settings for it; ``-D`` unless it is there already."""
    parser.add_argument("program", metavar="PROGRAM.py", help="Python script to run")
    parser.add_argument("arguments", metavar="ARG", nargs=argparse.REMAINDER, help="arguments for the program")
    if isinstance(parser, CommandParser):
        parser.takes_program = True
    parser.add_argument("-py", "--python", metavar="FILE", help="Python script to run (as in Flink's command line)")
    parser.add_argument(
        "-pym", "--pyModule", dest="module", metavar="MODULE", help="Python module to run instead of a script"
    )
    parser.add_argument(
        "-pyfs",
        "--pyFiles",
        dest="python_files",
        metavar="PATHS",
        action="append",
        default=[],
        help="comma-separated files, directories and zip archives that are added to the import path of the program "
        "and of its jobs",
    )
    parser.add_argument(
        "-pyarch",
        "--pyArchives",
        dest="python_archives",
        metavar="PATHS",
        action="append",
        default=[],
        help="comma-separated archives (zip, tar, tar.gz) that are extracted to the working directory of the jobs' "
        "functions; PATH#DIR extracts to the directory DIR",
    )
    parser.add_argument(
        "-pyreq",
        "--pyRequirements",
        dest="python_requirements",
        metavar="FILE",
        help="requirements file whose packages are installed for the jobs; FILE#DIR installs them from the wheels in "
        "the directory DIR, without a package index",
    )
    parser.add_argument(
        "-pyexec",
        "--pyExecutable",
        dest="python_executable",
        metavar="PATH",
        help="Python interpreter that runs the jobs' functions; may be in an archive: venv.zip/bin/python",
    )
    parser.add_argument(
        "-pyclientexec",
        "--pyClientExecutable",
        dest="python_client_executable",
        metavar="PATH",
        help="accepted for compatibility: the program runs in the interpreter of this command",
    )
    parser.add_argument(
        "--pyflink",
        action="store_true",
        help="run a PyFlink program: where it imports modules of pyflink, import those of Firesteel",
    )
    parser.add_argument("-p", "--parallelism", metavar="N", type=positive, help="default parallelism of the operators")
    parser.add_argument(
        "-s",
        "--fromSavepoint",
        "--from-savepoint",
        dest="savepoint",
        metavar="PATH",
        help="restore from this savepoint or checkpoint, or from the latest checkpoint in a job's checkpoint directory",
    )
    parser.add_argument(
        "-n",
        "--allowNonRestoredState",
        "--allow-non-restored-state",
        dest="allow_non_restored_state",
        action="store_true",
        help="with -s: drop state that belongs to no operator of the program",
    )
    parser.add_argument(
        "--mode", choices=_MODES, help="execution mode; automatic runs as a batch if all sources are bounded"
    )
    parser.add_argument(
        "--available-now",
        action="store_true",
        help="process all data that is available now in epochs, commit, and stop; if execution.checkpointing.dir is "
        "set, the next such run resumes from there",
    )
    parser.add_argument(
        "--strict-config",
        action="store_true",
        help="fail for unknown configuration keys instead of printing a warning",
    )
    if settings:
        add_settings_option(parser)


def program_settings(options: argparse.Namespace) -> dict[str, str]:
    """The settings from the options of :func:`add_program_options`; dedicated options take precedence over ``-D``."""
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
    settings |= _python_settings(options)
    if getattr(options, "strict_config", False):
        settings[pipeline_options.STRICT_CONFIG.key] = "true"
    if options.available_now:
        settings[exchange_options.EXCHANGE.key] = "spark"
        settings[exchange_options.EPOCH_TRIGGER.key] = "available-now"
    check_settings(settings, warn=False)  # the environment warns of them, together with those that the program sets
    return settings


def _python_settings(options: argparse.Namespace) -> dict[str, str]:
    """The Python dependencies. Paths become absolute: the program may be run in another directory."""
    from firesteel.config import python_options

    settings = {
        python_options.FILES.key: ",".join(absolute_paths(options.python_files)),
        python_options.ARCHIVES.key: ",".join(absolute_paths(options.python_archives)),
        python_options.REQUIREMENTS.key: "#".join(absolute_paths((options.python_requirements or "").split("#"))),
        python_options.EXECUTABLE.key: options.python_executable,
        python_options.CLIENT_EXECUTABLE.key: options.python_client_executable,
    }
    return {key: value for key, value in settings.items() if value}


def absolute_paths(given: Iterable[str]) -> list[str]:
    """The paths of options that take several, separated by commas.

    >>> absolute_paths(["/data/a.py, s3://bucket/b.zip#b"])
    ['/data/a.py', 's3://bucket/b.zip#b']
    """
    from pathlib import Path

    paths = [path.strip() for value in given for path in value.split(",") if path.strip()]
    return [path if ":" in path else str(Path.cwd() / path) for path in paths]


def positive(text: str) -> int:
    """A whole number of at least 1, as an argument."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least 1")
    return int(text)


def check_settings(settings: Mapping[str, str], *, warn: bool = True) -> None:
    """Raises an error for invalid values, and for unknown keys with ``pipeline.strict-config``.

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

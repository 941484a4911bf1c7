"""Runs a user's script: to its end, or up to its first execute(), which then hands over the job."""

from __future__ import annotations

import ast
import contextlib
import importlib.machinery
import importlib.util
import os
import sys
import traceback
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from firesteel.client.errors import UsageError
from firesteel.common.errors import FiresteelError, InvalidProgramError
from firesteel.common.job_client import JobClient
from firesteel.config.configuration import Configuration
from firesteel.datastream.executor import PipelineExecutor, execution_context
from firesteel.graph.job_graph import JobGraph

__all__ = ["Program", "ProgramError", "find_program", "load_program", "run_program"]

_EXECUTE = ("execute", "execute_async", "execute_and_collect")


@dataclass(frozen=True)
class Program:
    """What a script would run first."""

    path: str
    job_graph: JobGraph
    execute_calls: int = 1
    """How many calls of execute() the script's text has; the job is that of the first one reached."""


class ProgramError(FiresteelError):
    """A script that ended with an error of its own, which is in the message with its traceback."""


class _Built(BaseException):
    """Ends the script where it executes its job; no handler of the script may stop it."""

    def __init__(self, job_graph: JobGraph):
        super().__init__("the job is built")
        self.job_graph = job_graph


class _CapturingExecutor:
    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        raise _Built(job_graph)


@contextlib.contextmanager
def load_program(
    path: str,
    arguments: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    *,
    search_path: Sequence[str] = (),
    module: str | None = None,
) -> Iterator[Program]:
    """The job a script defines; nothing is started.

    The script runs as ``__main__``, with its arguments and the settings as the defaults of its environments, until it
    first executes a job: what comes after that does not run. While the context lasts, what the script imported and
    defined is there. What it prints goes to standard error.
    """
    configuration = Configuration.from_dict(settings or {})
    with (
        _as_script(path, arguments, search_path, module) as main_module,
        execution_context(configuration, _CapturingExecutor()),
    ):
        path = main_module.__file__ or path
        yield Program(path, _capture(path, main_module), _execute_calls(path))


def run_program(
    path: str,
    arguments: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    executor: PipelineExecutor | None = None,
    *,
    search_path: Sequence[str] = (),
    module: str | None = None,
) -> int:
    """Runs a script as ``python script.py`` would, with the settings as the defaults of its environments.

    With ``module``, that is run instead, as ``python -m module`` would; ``search_path`` is where the program imports
    from besides its own directory. Returns the exit code it asks for. Firesteel's own errors come out as they are:
    their message says it all. Others come out as a ProgramError, with the frames of the script and of what it called.
    """
    with (
        _as_script(path, arguments, search_path, module) as main_module,
        execution_context(Configuration.from_dict(settings or {}), executor),
    ):
        path = main_module.__file__ or path
        try:
            _exec(path, main_module)
        except SystemExit as exited:
            return _exit_code(exited)
        except (FiresteelError, BrokenPipeError):
            raise
        except Exception as error:  # noqa: BLE001 - a program may raise anything
            raise ProgramError(f"{path} failed:\n{_user_traceback(error)}") from None
    return 0


def find_program(path: str, module: str | None = None, search_path: Sequence[str] = ()) -> str:
    """Where a program is that is to run elsewhere; UsageError if there is none."""
    with _as_script(path, (), search_path, module) as main_module:
        return str(Path(main_module.__file__ or path).resolve())


def _exit_code(exited: SystemExit) -> int:
    """What the interpreter makes of the argument of sys.exit()."""
    if exited.code is None or isinstance(exited.code, int):
        return exited.code or 0
    print(exited.code, file=sys.stderr)  # noqa: T201
    return 1


def _exec(path: str, main_module: types.ModuleType) -> None:
    exec(compile(Path(path).read_bytes(), path, "exec"), main_module.__dict__)  # noqa: S102 - that is the point


def _capture(path: str, main_module: types.ModuleType) -> JobGraph:
    try:
        with contextlib.redirect_stdout(sys.stderr):
            _exec(path, main_module)
    except _Built as built:
        return built.job_graph
    except SystemExit as exited:
        raise UsageError(
            f"{path} ended with exit code {exited.code} before it executed a job.",
            hint="Give the program's own arguments behind its name.",
        ) from None
    except InvalidProgramError:
        raise
    except Exception as error:  # noqa: BLE001 - a program may raise anything
        raise UsageError(f"{path} failed before it executed a job:\n{_user_traceback(error)}") from None
    raise UsageError(
        f"{path} ended without executing a job.",
        hint="A program must call env.execute(); if it does so only under some condition, pass the arguments it needs.",
    )


def _execute_calls(path: str) -> int:
    calls = (node.func for node in ast.walk(ast.parse(Path(path).read_bytes())) if isinstance(node, ast.Call))
    return sum(isinstance(call, ast.Attribute) and call.attr in _EXECUTE for call in calls)


def _user_traceback(error: Exception) -> str:
    # the frames of this module and of contextlib tell a user nothing
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip()


@contextlib.contextmanager
def _as_script(
    path: str, arguments: Sequence[str], search_path: Sequence[str] = (), module: str | None = None
) -> Iterator[types.ModuleType]:
    """While it lasts, the process looks as if the script had been started; gives its module."""
    if module is None and not Path(path).is_file():
        raise UsageError(f"There is no program {path}.")
    main_module = types.ModuleType("__main__")
    saved_argv, saved_path, saved_main = sys.argv, list(sys.path), sys.modules.get("__main__")
    directory = os.getcwd()  # noqa: PTH109 - as the interpreter spells it
    sys.path[:0] = [directory if module else str(Path(path).resolve().parent), *search_path]
    if directory not in sys.path:
        sys.path.append(directory)
    try:
        if module is not None:
            path = _find_module(module, main_module, search_path)
        main_module.__file__ = path
        sys.argv = [path, *arguments]
        sys.modules["__main__"] = main_module
        yield main_module
    finally:
        sys.argv, sys.path[:] = saved_argv, saved_path
        if saved_main is not None:
            sys.modules["__main__"] = saved_main


def _find_module(name: str, main_module: types.ModuleType, search_path: Sequence[str]) -> str:
    """Where a module's source is; the module that runs is told what package it belongs to."""
    try:
        if name == "__main__":
            # the import system would find the one that runs now: that of the command itself
            spec = importlib.machinery.PathFinder.find_spec(name, list(search_path))
        else:
            spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError) as error:
        raise UsageError(f"There is no module {name}: {error}.") from None
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise UsageError(
            f"There is no module {name} that can be run.",
            hint="It must be in the current directory, in what -pyfs names, or installed; a package needs a __main__.",
        )
    main_module.__package__ = spec.parent
    return spec.origin

"""Runs a user's script to its end, or up to its first execute() to obtain the job graph."""

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
    """The first job of a script."""

    path: str
    job_graph: JobGraph
    execute_calls: int = 1
    """How many calls of execute() the script's text has; the job is that of the first one reached."""


class ProgramError(FiresteelError):
    """A script failed; the message contains its error and traceback."""


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
    """Loads the job that a script defines, without starting it.

    The script runs as ``__main__``, with its arguments and the settings as the defaults of its environments, until it
    first executes a job; later statements do not run. Within the context, the script's imports and definitions are
    available. Its output goes to standard error.
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
    from besides its own directory. Returns its exit code. Firesteel's own errors are raised unchanged. Other errors are
    raised as ProgramError, with the frames of the script and of the code it called.
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
    """The absolute path of a program; raises UsageError if it does not exist."""
    with _as_script(path, (), search_path, module) as main_module:
        return str(Path(main_module.__file__ or path).resolve())


def _exit_code(exited: SystemExit) -> int:
    """The exit code for an argument of sys.exit(), as the interpreter computes it."""
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
            f"{path} exited with code {exited.code} before it executed a job.",
            hint="Pass the program's arguments after its name.",
        ) from None
    except InvalidProgramError:
        raise
    except Exception as error:  # noqa: BLE001 - a program may raise anything
        raise UsageError(f"{path} failed before it executed a job:\n{_user_traceback(error)}") from None
    raise UsageError(
        f"{path} ended without executing a job.",
        hint="A program must call env.execute(). If the call depends on arguments, pass them after the program's name.",
    )


def _execute_calls(path: str) -> int:
    calls = (node.func for node in ast.walk(ast.parse(Path(path).read_bytes())) if isinstance(node, ast.Call))
    return sum(isinstance(call, ast.Attribute) and call.attr in _EXECUTE for call in calls)


def _user_traceback(error: Exception) -> str:
    # the frames of this module and of contextlib are not useful to a user
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip()


@contextlib.contextmanager
def _as_script(
    path: str, arguments: Sequence[str], search_path: Sequence[str] = (), module: str | None = None
) -> Iterator[types.ModuleType]:
    """Makes the process look as if the script had been started, within the context; yields its module."""
    if module is None and not Path(path).is_file():
        raise UsageError(f"The program {path} does not exist.")
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
    """The path of a module's source, and its package."""
    try:
        if name == "__main__":
            # the import system would find the one that runs now: that of the command itself
            spec = importlib.machinery.PathFinder.find_spec(name, list(search_path))
        else:
            spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError) as error:
        raise UsageError(f"Cannot import module {name}: {error}.") from None
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise UsageError(
            f"Module {name} does not exist or cannot be run.",
            hint="The module must be in the current directory, in a path given with -pyfs, or installed; a "
            "package requires a __main__ module.",
        )
    main_module.__package__ = spec.parent
    return spec.origin

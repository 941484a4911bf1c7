"""Uploaded programs of a cluster, each run in a process of its own."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from firesteel.common.errors import FiresteelError
from firesteel.config import cluster_options
from firesteel.config.configuration import Configuration
from firesteel.config.redaction import hide_passwords, is_sensitive

__all__ = ["KeptProgram", "ProgramFailedError", "ProgramRunner", "ProgramStore", "UnknownProgramError"]

SETTINGS_VARIABLE = "FIRESTEEL_SETTINGS"
TOKEN_FILE_VARIABLE = "FIRESTEEL_REST_TOKEN_FILE"  # noqa: S105 - the name of a variable
JOB_ID_KEY = "$internal.pipeline.job-id"
"""The setting with which Flink has a program's job get an id."""
MAX_PLAN_BYTES = 16 * 1024 * 1024
TAIL_BYTES = 64 * 1024
TAIL_LINES = 20
TAIL_COLUMNS = 500
MAX_RUNNING = 4
_SUFFIXES = (".py", ".zip")
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}_\w[\w.-]*")
_UNFIT = re.compile(r"[^\w.-]")
_SUBMITTED = re.compile(rb"JobID ([0-9a-f]{32})")


class UnknownProgramError(FiresteelError):
    """There is no program of that id, or what was uploaded is none."""


class ProgramFailedError(FiresteelError):
    """A program did not get as far as its job."""


# -- what is kept ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeptProgram:
    """A program that was uploaded."""

    id: str
    path: Path
    uploaded_at: int

    @property
    def name(self) -> str:
        """What it was called when it was uploaded."""
        return self.id.partition("_")[2]

    def entry(self) -> str | None:
        """The module an archive begins with, if that is known: ``__main__``, or the only one at its top."""
        if self.path.suffix == ".py":
            return self.path.stem
        names = _names_in(self.name, self.path)
        modules = [name[:-3] for name in names if name.endswith(".py") and "/" not in name]
        if "__main__" in modules:
            return "__main__"
        return modules[0] if len(modules) == 1 else None


class ProgramStore:
    """A directory of programs. Their ids are names of files in it, and nothing else can be reached by one."""

    def __init__(self, directory: str | Path):
        self.directory = Path(directory)

    def add(self, filename: str, content: bytes) -> KeptProgram:
        """Keeps a Python file or a zip archive of such."""
        name = _UNFIT.sub("_", filename.replace("\\", "/").rpartition("/")[2])[-150:].lstrip("._-")
        if not name.endswith(_SUFFIXES) or name in _SUFFIXES:
            raise UnknownProgramError(
                f"{filename[:200]!r} is neither a Python file nor a zip archive.",
                hint="Upload a .py file, or a .zip with several; Flink's jars cannot be run.",
            )
        if name.endswith(".zip"):
            _names_in(name, io.BytesIO(content))
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.directory / f"{uuid.uuid4()}_{name}"
        unfinished = path.with_name(f".{path.name}")
        try:
            unfinished.write_bytes(content)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        return self.find(path.name)

    def find(self, program_id: str) -> KeptProgram:
        """One program; UnknownProgramError if there is none."""
        path = self.directory / program_id if _ID.fullmatch(program_id) else None
        if path is None or not path.is_file():
            raise UnknownProgramError(f"There is no program {program_id[:200]!r}.", hint="GET /jars lists them.")
        return KeptProgram(program_id, path, path.stat().st_mtime_ns // 1_000_000)

    def all(self) -> list[KeptProgram]:
        """All programs, the newest first."""
        try:
            names = [path.name for path in self.directory.iterdir()]
        except FileNotFoundError:
            return []
        kept = []
        for name in names:
            try:
                kept.append(self.find(name))
            except (UnknownProgramError, OSError):
                continue  # not a program, or it has just been deleted
        return sorted(kept, key=lambda program: (-program.uploaded_at, program.id))

    def delete(self, program_id: str) -> None:
        self.find(program_id).path.unlink(missing_ok=True)


def _names_in(name: str, archive: Path | IO[bytes]) -> list[str]:
    """What is in an archive; UnknownProgramError if it is none."""
    try:
        with zipfile.ZipFile(archive) as opened:
            return opened.namelist()
    except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError) as error:
        raise UnknownProgramError(f"{name} is not a zip archive: {error}.") from None


# -- running ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProgramArguments:
    """How a program is to be run."""

    arguments: Sequence[str] = ()
    entry: str | None = None
    parallelism: int | None = None
    savepoint: str | None = None
    allow_non_restored_state: bool = False
    job_id: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Outcome:
    code: int | None
    """None if it was killed because it took too long."""
    output: bytes
    """The beginning of what it wrote to standard output."""
    tail: str
    """The last lines it wrote, to standard output and then to standard error."""


class ProgramRunner:
    """Runs programs with the ``firesteel`` command, in processes that always end with the run."""

    def __init__(
        self,
        configuration: Configuration,
        token_file: str | None = None,
        command: Sequence[str] = (sys.executable, "-m", "firesteel"),
    ):
        self._timeout_s = configuration.get(cluster_options.PROGRAM_TIMEOUT).to_millis() / 1000
        self._token_file = token_file
        self._command = tuple(command)
        # TLS settings for requests to this JobManager
        self._own_settings = {
            key: value for key, value in configuration.to_dict().items() if key.startswith("security.ssl.rest.")
        }
        self._running = threading.BoundedSemaphore(MAX_RUNNING)

    def run(self, program: KeptProgram, given: ProgramArguments, url: str) -> str:
        """Runs a program until it has submitted its jobs to the JobManager at ``url``; the id of the first one."""
        settings = {**given.settings, **self._own_settings}
        if given.job_id is not None:
            settings[JOB_ID_KEY] = given.job_id
        options = ["run", "-m", url, "-d"]
        if given.savepoint is not None:
            options += ["-s", given.savepoint]
        if given.allow_non_restored_state:
            options += ["-n"]
        outcome = self._execute(program, given, options, settings)
        submitted = _SUBMITTED.search(outcome.output)
        if submitted is not None:
            return submitted[1].decode()
        if outcome.code == 0:
            raise ProgramFailedError(
                f"{program.name} ended without executing a job.{_said(outcome)}",
                hint="A program must call env.execute(). If the call depends on arguments, pass them.",
            )
        raise self._failed(program, outcome)

    def plan(self, program: KeptProgram, given: ProgramArguments) -> dict[str, Any]:
        """Runs a program up to its first job; the plan of that."""
        outcome = self._execute(program, given, ["info", "--format", "json"], given.settings)
        if outcome.code != 0:
            raise self._failed(program, outcome)
        try:
            plan: dict[str, Any] = json.loads(outcome.output)
        except ValueError:
            raise ProgramFailedError(f"The plan of {program.name} cannot be read.{_said(outcome)}") from None
        return plan

    def _failed(self, program: KeptProgram, outcome: _Outcome) -> ProgramFailedError:
        if outcome.code is None:
            return ProgramFailedError(
                f"{program.name} did not submit a job within {self._timeout_s:g} s and was stopped.{_said(outcome)}",
                hint="The time limit is web.program.timeout.",
            )
        return ProgramFailedError(
            f"{program.name} exited with exit code {outcome.code} before it submitted a job.{_said(outcome)}"
        )

    def _execute(
        self, program: KeptProgram, given: ProgramArguments, options: Sequence[str], settings: Mapping[str, str]
    ) -> _Outcome:
        arguments = list(options)
        if given.parallelism is not None:
            arguments += ["-p", str(given.parallelism)]
        secrets = {key: value for key, value in settings.items() if is_sensitive(key) or hide_passwords(value) != value}
        for key, value in settings.items():
            if key not in secrets:
                arguments += ["-D", f"{key}={value}"]
        command = [*self._command, *arguments, *_what_to_run(program, given.entry), *given.arguments]
        if any("\0" in part for part in command):
            raise ProgramFailedError("Arguments and settings cannot have a null character.")
        if not self._running.acquire(timeout=self._timeout_s):
            raise ProgramFailedError(f"{MAX_RUNNING} other programs are being run.", hint="Try again later.")
        directory = tempfile.mkdtemp(prefix="firesteel-program-")
        try:
            environment = {**os.environ, "TMPDIR": directory}
            if secrets:
                # every user of the machine can read a command line
                environment[SETTINGS_VARIABLE] = json.dumps(secrets)
            if self._token_file is not None:
                environment[TOKEN_FILE_VARIABLE] = self._token_file
            return _run(command, directory, environment, self._timeout_s)
        except OSError as error:
            if error.errno != errno.E2BIG:
                raise
            raise ProgramFailedError(
                f"{program.name} cannot be run: its arguments are too long.", hint="Read the arguments from a file."
            ) from None
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            self._running.release()


def _what_to_run(program: KeptProgram, entry: str | None) -> list[str]:
    if program.path.suffix == ".py":
        return [str(program.path)]
    module = (entry or program.entry() or "").removesuffix(".py").replace("/", ".")
    if not module:
        raise ProgramFailedError(
            f"{program.name} has no __main__.py, and not exactly one Python file at its top level.",
            hint="Specify the module to run with entryClass, such as word_count or jobs.word_count.",
        )
    if not re.fullmatch(r"\w+(\.\w+)*", module):
        raise ProgramFailedError(f"{module[:200]!r} is not the name of a module.")
    return ["-pyfs", str(program.path), "-pym", module]


def split_arguments(text: str) -> list[str]:
    """Arguments that were given as one text, as a shell would split them.

    >>> split_arguments("--input 'my file' 3")
    ['--input', 'my file', '3']
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ProgramFailedError(f"The program's arguments cannot be split: {error}.") from None


def _said(outcome: _Outcome) -> str:
    return f"\nIts last lines:\n{outcome.tail}" if outcome.tail else ""


def _run(command: Sequence[str], directory: str, environment: Mapping[str, str], timeout_s: float) -> _Outcome:
    """Runs a command in a process group of its own, of which nothing is left afterwards."""
    process = subprocess.Popen(  # noqa: S603 - running what was uploaded is what this is for
        command,
        cwd=directory,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    streams = [_Reader(process.stdout, MAX_PLAN_BYTES), _Reader(process.stderr, 0)]
    deadline = time.monotonic() + timeout_s
    code: int | None = None
    try:
        code = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        pass
    finally:
        _kill_group(process.pid)
        process.wait(10.0)
        for stream in streams:
            # a child that has left the group may hold the other end: it is not waited for
            stream.join(max(1.0, min(deadline - time.monotonic(), 5.0)))
    last = [line for stream in streams for line in stream.last_lines()]
    return _Outcome(code, streams[0].beginning, "\n".join(last))


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass  # as it should be


class _Reader:
    """Reads a pipe to its end in a thread, so that the writer never blocks; keeps the beginning and the end."""

    def __init__(self, pipe: IO[bytes], limit: int):
        self._pipe = pipe
        self._limit = limit
        self._lock = threading.Lock()
        self._beginning = bytearray()
        self._end = bytearray()
        self._thread = threading.Thread(target=self._read, name="firesteel-program-output", daemon=True)
        self._thread.start()

    @property
    def beginning(self) -> bytes:
        """What came first, up to the limit."""
        with self._lock:
            return bytes(self._beginning)

    def last_lines(self) -> list[str]:
        """What came last, each line cut if it is very long."""
        with self._lock:
            text = bytes(self._end[-TAIL_BYTES:]).decode(errors="replace")
        lines = text.rstrip().splitlines()[-TAIL_LINES:]
        return [line if len(line) <= TAIL_COLUMNS else f"{line[:TAIL_COLUMNS]} …" for line in lines]

    def _read(self) -> None:
        with self._pipe:
            while part := os.read(self._pipe.fileno(), 64 * 1024):
                with self._lock:
                    self._beginning += part[: max(0, self._limit - len(self._beginning))]
                    self._end += part
                    if len(self._end) > 2 * TAIL_BYTES:
                        del self._end[:-TAIL_BYTES]

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

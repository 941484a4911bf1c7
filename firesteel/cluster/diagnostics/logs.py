"""Log files of a JobManager, and of the printed output and the log lines of its jobs, with bounded size."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path

from firesteel.cluster.diagnostics.job_logs import JobLogs
from firesteel.cluster.diagnostics.output_file import KEPT_FILES, MAX_FILE_BYTES, OutputFile
from firesteel.common.errors import FiresteelError
from firesteel.config.redaction import hide_passwords, printable

__all__ = ["LogFile", "LogFiles", "LogNotFoundError", "OutputFile", "setup_logging"]

MAX_READ_BYTES = 10 * 1024 * 1024
MAX_PROCESSES = 100
_FORMAT = "%(asctime)s %(levelname)-5s %(name)s [%(threadName)s] - %(message)s"


class LogNotFoundError(FiresteelError):
    """There is no log file of that name."""


@dataclass(frozen=True)
class LogFile:
    """A file of the log directory; ``modified_at`` in epoch milliseconds."""

    name: str
    size: int
    modified_at: int


class LogFiles:
    """The log directory of a cluster, and which of its files are this JobManager's.

    JobManagers of one machine may share a directory: the first has ``jobmanager.log``, the next one that runs at the
    same time ``jobmanager-1.log``.
    """

    def __init__(self, directory: Path, kept: int = KEPT_FILES):
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o750)
            self._lock_descriptor, suffix = _claim(directory)
        except OSError as error:
            raise FiresteelError(
                f"Logs cannot be written to {directory}: {error.strerror}.",
                hint="Set env.log.dir or cluster.directory.",
            ) from None
        self.directory = directory
        self.jobmanager_log = directory / f"jobmanager{suffix}.log"
        self.jobmanager_out = directory / f"jobmanager{suffix}.out"
        """What this process prints, if whoever starts it sends that here."""
        self.spark_log = directory / f"spark{suffix}.log"
        self.output = OutputFile(directory / f"taskmanager{suffix}.out", kept=kept)
        """What the functions of jobs print."""
        self.taskmanager_log = directory / f"taskmanager{suffix}.log"
        self._log = OutputFile(self.taskmanager_log, kept=kept)
        self.job_logs = JobLogs(self._log)
        """What the functions of jobs log."""

    @property
    def taskmanager_out(self) -> Path:
        """The file of ``output``."""
        return self.output._path

    def listed(self, *prefixes: str) -> list[LogFile]:
        """The files whose names begin with one of these, or all of them."""
        found = []
        try:
            paths = sorted(self.directory.iterdir())
        except FileNotFoundError:
            return []  # the files were removed
        for path in paths:
            if path.name.startswith(prefixes or "") and not path.name.startswith("."):
                try:
                    status = path.lstat()
                except FileNotFoundError:
                    continue  # rotated away meanwhile
                if stat.S_ISREG(status.st_mode):
                    found.append(LogFile(path.name, status.st_size, int(status.st_mtime * 1000)))
        return found

    def read(self, name: str, max_bytes: int = MAX_READ_BYTES) -> str:
        """The text of a file, or the end of one that is larger; LogNotFoundError if there is none.

        Names of other places are unknown here: only what `listed` names is read.
        """
        if name not in {file.name for file in self.listed()}:
            raise LogNotFoundError("This file does not exist in JobManager log dir.")
        try:
            descriptor = os.open(self.directory / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise LogNotFoundError(f"{name} cannot be read: {error.strerror}.") from None
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(descriptor).st_size
            if size <= max_bytes:
                return file.read(max_bytes).decode("utf-8", "replace")
            file.seek(size - max_bytes)
            _cut, _, rest = file.read(max_bytes).partition(b"\n")
            return rest.decode("utf-8", "replace")

    def close(self) -> None:
        self.output.close()
        self._log.close()
        os.close(self._lock_descriptor)


class LogFormatter(logging.Formatter):
    """Formats a record so that nothing in it can look like another record.

    Names of jobs and texts of exceptions are the users': control characters are escaped, further lines are indented.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as lines."""
        return hide_passwords(printable(super().format(record))).replace("\n", "\n    ")


def setup_logging(directory: Path, *, kept: int = KEPT_FILES, level: int = logging.INFO) -> LogFiles:
    """Has this process log to the directory, from now on and to nowhere else."""
    files = LogFiles(directory, kept)
    handler = RotatingFileHandler(
        files.jobmanager_log, maxBytes=MAX_FILE_BYTES, backupCount=kept - 1, encoding="utf-8", errors="replace"
    )
    handler.setFormatter(LogFormatter(_FORMAT))
    root = logging.getLogger()
    for other in list(root.handlers):
        root.removeHandler(other)
        other.close()
    root.addHandler(handler)
    root.setLevel(level)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)
    return files


def _claim(directory: Path) -> tuple[int, str]:
    """Holds a lock that marks the files of this process; the system releases it when the process dies."""
    for number in range(MAX_PROCESSES):
        suffix = f"-{number}" if number else ""
        path = directory / f".jobmanager{suffix}.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
        else:
            return descriptor, suffix
    raise FiresteelError(
        f"{MAX_PROCESSES} JobManagers write their logs to {directory}.",
        hint="Give each cluster a unique id (high-availability.cluster-id).",
    )

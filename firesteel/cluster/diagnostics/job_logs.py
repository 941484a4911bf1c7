"""Log lines of the functions of jobs: in a log file, and the last ones of each job in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence

from firesteel.cluster.diagnostics.output_file import OutputFile
from firesteel.config.redaction import hide_passwords, printable
from firesteel.jobmaster.model.log_line import LogLine

__all__ = ["JobLogs"]

MAX_JOB_CHARACTERS = 1 << 20
MAX_JOBS = 100
"""Those that have logged last."""


class _LastLines:
    def __init__(self) -> None:
        self._lines: deque[LogLine] = deque()
        self._length = 0

    def add(self, line: LogLine) -> None:
        self._lines.append(line)
        self._length += len(line.text)
        while self._length > MAX_JOB_CHARACTERS and len(self._lines) > 1:
            self._length -= len(self._lines.popleft().text)

    def all(self) -> list[LogLine]:
        return list(self._lines)


class JobLogs:
    """May be used from any thread."""

    def __init__(self, file: OutputFile):
        self._file = file
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, _LastLines] = OrderedDict()

    def write(self, job_id: str, lines: Sequence[LogLine]) -> None:
        """Writes log records of a job. Nothing in one can look like another: see ``LogFormatter``."""
        safe = [
            LogLine(line.level, hide_passwords(printable(line.text)).replace("\n", "\n    "))
            for line in map(_read, lines)
        ]
        with self._lock:
            kept = self._jobs.pop(job_id, None) or _LastLines()
            self._jobs[job_id] = kept
            while len(self._jobs) > MAX_JOBS:
                self._jobs.popitem(last=False)
            for line in safe:
                kept.add(line)
        self._file.write_output("log", [_with_job(job_id, line.text) for line in safe])

    def last(self, job_id: str, *, level: int = 0, task: str = "") -> str:
        """The last records of a job from a level on, of tasks whose name contains a text."""
        with self._lock:
            kept = self._jobs.get(job_id)
            lines = [] if kept is None else kept.all()
        shown = [
            line.text for line in lines if line.level >= level and (not task or task in line.text.partition("] - ")[0])
        ]
        return "".join(f"{text}\n" for text in shown)


def _read(line: LogLine) -> LogLine:
    return LogLine(int(line[0]), str(line[1]))


def _with_job(job_id: str, text: str) -> str:
    """Flink's place for the job id is after the time."""
    time, separator, rest = text[:24], text[23:24], text[24:]
    if separator == " " and time[:4].isdigit() and time[4:5] == "-":
        return f"{time}[{job_id}] {rest}"
    return f"[{job_id}] {text}"

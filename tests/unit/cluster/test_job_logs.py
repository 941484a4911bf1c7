"""The log lines of jobs in a JobManager."""

from __future__ import annotations

from pathlib import Path

from firesteel.cluster.diagnostics import job_logs
from firesteel.cluster.diagnostics.job_logs import JobLogs
from firesteel.cluster.diagnostics.output_file import OutputFile
from firesteel.jobmaster.model.log_line import LogLine

JOB = "0" * 31 + "1"
TIME = "2026-01-02 03:04:05,678"


def line(level: int, text: str, task: str = "Map (1/2)#0") -> LogLine:
    return LogLine(level, f"{TIME} {level} my.rules [{task}] - {text}")


def test_lines_are_in_the_file_with_the_job_and_in_memory_by_job(tmp_path: Path) -> None:
    logs = JobLogs(OutputFile(tmp_path / "taskmanager.log"))
    logs.write(JOB, [line(20, "one"), line(40, "two\nTraceback", "Map (2/2)#0")])
    logs.write("other", [LogLine(20, "own format")])
    assert (tmp_path / "taskmanager.log").read_text().splitlines() == [
        f"{TIME} [{JOB}] 20 my.rules [Map (1/2)#0] - one",
        f"{TIME} [{JOB}] 40 my.rules [Map (2/2)#0] - two",
        "    Traceback",
        "[other] own format",
    ]
    assert logs.last(JOB).splitlines()[0].endswith("- one")
    assert [text[-3:] for text in logs.last(JOB, level=30).splitlines()[:1]] == ["two"]
    assert logs.last(JOB, task="(1/2)").count("\n") == 1
    assert logs.last(JOB, task="(3/2)") == ""
    assert logs.last("unknown") == ""


def test_a_text_cannot_look_like_another_line_and_shows_no_password(tmp_path: Path) -> None:
    logs = JobLogs(OutputFile(tmp_path / "taskmanager.log"))
    logs.write(JOB, [LogLine(20, "a\n2026 forged\r\x1b[0m postgresql://me:secret@host/db")])
    written = (tmp_path / "taskmanager.log").read_text()
    assert "\n    2026 forged" in written
    assert "\x1b" not in written
    assert "\r" not in written
    assert "secret" not in written


def test_memory_is_bounded(tmp_path: Path) -> None:
    logs = JobLogs(OutputFile(tmp_path / "taskmanager.log"))
    for number in range(30):
        logs.write(JOB, [LogLine(20, f"{number} " + "x" * 50_000)])
    kept = logs.last(JOB)
    assert len(kept) <= job_logs.MAX_JOB_CHARACTERS + 100
    assert kept.splitlines()[-1].startswith("29 ")
    for number in range(job_logs.MAX_JOBS):
        logs.write(f"job {number}", [LogLine(20, "x")])
    assert logs.last(JOB) == ""

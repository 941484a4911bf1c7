"""What a soak measures: memory, descriptors and threads of processes, files and bytes of directories."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.support.processes import command_line, descendants, is_of_worker_daemon

__all__ = ["directory_measures", "live_heaps", "process_measures", "roles"]

MB = 1 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")
JCMD_S = 60.0


def roles(job_manager: int, spark: Mapping[str, int]) -> dict[str, list[int]]:
    """The processes of a cluster by what they are. Python workers come and go, all others stay."""
    found: dict[str, list[int]] = {"JobManager": [job_manager]}
    for pid in descendants(job_manager):
        found.setdefault("JVM of the JobManager" if _is_java(pid) else "others of the JobManager", []).append(pid)
    workers: list[int] = []
    for name, pid in spark.items():
        # spark-class replaces itself by the JVM
        found[f"Spark {name}"] = [pid]
        for child in sorted(descendants(pid)):
            line = command_line(child)
            if "CoarseGrainedExecutorBackend" in line:
                found.setdefault(f"executor of {name}", []).append(child)
            elif is_of_worker_daemon(child):
                daemon = _daemon(child)
                found.setdefault(f"pyspark.daemon of {name}", []).extend([child] if daemon else [])
                workers += [] if daemon else [child]
            else:
                found.setdefault("others of Spark", []).append(child)
    found["Python workers"] = sorted(workers)
    return found


def _is_java(pid: int) -> bool:
    return "java" in command_line(pid).partition(" ")[0]


def _daemon(pid: int) -> bool:
    """Whether it is the daemon itself and not a worker that it forked, which has the same command."""
    try:
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return False
    return not is_of_worker_daemon(parent)


def process_measures(by_role: Mapping[str, Iterable[int]]) -> dict[str, float]:
    """The measures of one moment by name. Of Python workers these are means: their number varies."""
    measures: dict[str, float] = {}
    for role, pids in by_role.items():
        taken = [measure for pid in pids if (measure := _measure(pid)) is not None]
        if not taken:
            continue
        measures[f"{role}: processes"] = len(taken)
        for index, what in enumerate(("memory MB", "descriptors", "threads")):
            measures[f"{role}: {what}"] = round(sum(each[index] for each in taken) / len(taken), 2)
        if len(taken) > 1:
            measures[f"{role}, the largest: memory MB"] = round(max(each[0] for each in taken), 2)
    return measures


def _measure(pid: int) -> tuple[float, int, int] | None:
    try:
        resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / MB
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
        threads = len(os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208
    except (OSError, IndexError):
        return None  # it has ended
    return resident, descriptors, threads


def live_heaps(by_role: Mapping[str, Iterable[int]]) -> dict[str, float]:
    """What is reachable in each JVM, after a full collection."""
    measures: dict[str, float] = {}
    for role, pids in by_role.items():
        for pid in pids:
            if _is_java(pid) and (heap := _live_heap(pid)) is not None:
                measures[f"{role}: live heap MB"] = heap
    return measures


def _live_heap(pid: int) -> float | None:
    command = ["jcmd", str(pid), "GC.class_histogram"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=JCMD_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    total = answer.stdout.splitlines()[-1].split()
    return round(int(total[2]) / MB, 2) if total[:1] == ["Total"] else None


def directory_measures(directories: Mapping[str, Path]) -> dict[str, float]:
    """How many files there are beneath each directory, and how large they are together; logs left out."""
    measures: dict[str, float] = {}
    for name, directory in directories.items():
        sizes = list(_sizes(directory))
        measures[f"{name}: files"] = len(sizes)
        measures[f"{name}: MB"] = round(sum(sizes) / MB, 3)
    return measures


def _sizes(directory: Path) -> Iterable[int]:
    for place, _, files in os.walk(directory):
        for name in files:
            if ".log" in name or name in ("stderr", "stdout"):
                continue
            try:
                yield Path(place, name).lstat().st_size
            except OSError:
                continue  # deleted meanwhile

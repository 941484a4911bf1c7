"""Answers of a JobManager, made up: for pages of jobs that a test cannot have for real."""

from __future__ import annotations

from typing import Any

__all__ = ["JOB", "WebAnswers", "vertex_id"]

JOB = "ab" * 16
START = 1_794_725_952_323
STATES = ("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED")
IO = {
    **{f"{way}-{what}": 1000 for way in ("read", "write") for what in ("bytes", "records")},
    **{f"{way}-{what}-complete": True for way in ("read", "write") for what in ("bytes", "records")},
    **{f"accumulated-{what}-time": 10 for what in ("busy", "idle", "backpressured")},
}


def vertex_id(number: int) -> str:
    """The id of a vertex."""
    return f"{number:032x}"


class WebAnswers:
    """A cluster with one running job: a chain of vertices, each with the same parallelism."""

    def __init__(self, vertices: int = 3, parallelism: int = 2, name: str = "a job"):
        self.vertices = vertices
        self.parallelism = parallelism
        self.name = name
        self.is_there = True
        self.state = "RUNNING"
        self.failures: list[int] = []
        """When tasks failed."""
        self.log = ""
        """What the functions of the job have logged."""
        self.asked: list[str] = []
        self.bodies: dict[str, str] = {}
        """What was sent, by path."""
        self.busy = dict.fromkeys(range(vertices), 100.0)

    def __call__(self, method: str, path: str, body: str) -> tuple[int, Any] | None:
        """What is answered, or None if nobody is there."""
        self.asked.append(f"{method} {path}")
        if not self.is_there:
            return None
        place, _, query = path.strip("/").partition("?")
        if body:
            self.bodies[place] = body
        found = self._answer(method, place.split("/"), query)
        return (404, {"errors": [f"Not found: {path}"]}) if found is None else found

    def _answer(self, method: str, parts: list[str], query: str) -> tuple[int, Any] | None:
        match parts:
            case ["config"]:
                features = {"web-submit": True, "web-cancel": True}
                return 200, {"refresh-interval": 500, "flink-revision": "firesteel-0", "features": features}
            case ["overview"]:
                counts = {f"jobs-{state}": 0 for state in ("running", "finished", "cancelled", "failed")}
                return 200, {"taskmanagers": 1, "slots-total": 4, "slots-available": 2, **counts}
            case ["jobs", "overview"]:
                job = self._job()
                tasks = {"total": 4, "running": 4}
                kept = {key: job[key] for key in ("jid", "name", "state", "start-time", "end-time", "duration")}
                return 200, {"jobs": [{**kept, "tasks": tasks}]}
            case ["jobs", _] if method == "PATCH":
                return 401, {"errors": ["This request requires a token."]}
            case ["jobs", _]:
                return 200, self._job()
            case ["jobs", _, "stop"]:
                return 202, {"request-id": "cd" * 16}
            case ["jobs", _, "savepoints", _]:
                return 200, {"status": {"id": "COMPLETED"}, "operation": {"location": "file:/savepoints/1"}}
            case ["jobs", _, "exceptions"]:
                entries = [self._failure(at) for at in reversed(self.failures)]
                return 200, {"exceptionHistory": {"entries": entries, "truncated": False}}
            case ["jobs", _, "log"]:
                return 200, self.log
            case ["jobs", _, "diagnosis"]:
                bottleneck = {"id": vertex_id(1), "name": self._name(1)}
                return 200, {"bottleneck": bottleneck, "explanation": "It is busy, and the one before it waits."}
            case ["jobs", _, "vertices", _, "subtasks", "metrics"]:
                number = int(parts[3], 16)
                names = query.removeprefix("get=").split(",")
                return 200, [self._metric(name, self.busy[number]) for name in names]
            case ["jobs", _, "vertices", vertex]:
                return 200, {"id": vertex, "name": "", "subtasks": [self._subtask(n) for n in range(self.parallelism)]}
        return None

    def _name(self, number: int) -> str:
        return f"{self.name} {number} -> <b>next</b> & {'long' * 40}"

    def _job(self) -> dict[str, Any]:
        running = {state: self.parallelism if state == "RUNNING" else 0 for state in STATES}
        times = {"start-time": START, "end-time": -1, "duration": 61_000}
        nodes = [{"id": vertex_id(n), "parallelism": 1, "description": self._name(n)} for n in range(self.vertices)]
        for number in range(1, self.vertices):
            source = max(0, number - 1 - number % 3)
            nodes[number]["inputs"] = [{"id": vertex_id(source), "num": 0, "exchange": "", "ship_strategy": "HASH"}]
        vertices = [
            {
                "id": vertex_id(n),
                "slotSharingGroupId": "0",
                "name": self._name(n),
                "maxParallelism": 128,
                "parallelism": self.parallelism,
                "status": "RUNNING",
                "tasks": running,
                "metrics": IO,
                **times,
            }
            for n in range(self.vertices)
        ]
        stamps = {"INITIALIZING": START, "CREATED": START, "RUNNING": START, "RESTARTING": 0}
        plan = {"nodes": nodes, "type": "STREAMING"}
        head = {"jid": JOB, "name": self.name, "state": self.state, "job-type": "STREAMING", "now": START + 61_000}
        return {**head, **times, "timestamps": stamps, "vertices": vertices, "plan": plan}

    @staticmethod
    def _failure(at: int) -> dict[str, Any]:
        trace = f"ValueError: at {at}"
        return {"exceptionName": "ValueError", "stacktrace": trace, "timestamp": at, "taskName": "a task (1/1)"}

    def _subtask(self, number: int) -> dict[str, Any]:
        where = {"endpoint": "localhost:1", "taskmanager-id": "localhost:1-0"}
        times = {"start-time": START, "end-time": -1, "duration": 61_000}
        return {"subtask": number, "status": "RUNNING", "attempt": 0, "metrics": IO, **where, **times}

    @staticmethod
    def _metric(name: str, busy: float) -> dict[str, Any]:
        value = {"busyTimeMsPerSecond": busy, "idleTimeMsPerSecond": 1000 - busy}.get(name, 0.0)
        return {"id": name, "min": value, "max": value, "avg": value, "sum": value, "skew": 0.0}

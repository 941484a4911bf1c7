"""Jobs as the REST API shows them: a stand-in for the Dispatcher, and what Flink's Java classes demand of an answer."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from firesteel.cluster.diagnostics.prometheus import PrometheusMetrics
from firesteel.cluster.rest.handlers import checkpoints, exceptions, jobs, metrics, vertices
from firesteel.cluster.rest.request import RestRequest, Route
from firesteel.common.errors import FiresteelError, TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.view.job import JobView
from firesteel.rest.endpoint import Text

__all__ = ["Shape", "ShownJob", "ShownJobs", "check_shape"]

Shape = Any
"""A Java type (int, long, double, boolean, string, ``string?`` where null is allowed), a list with the shape of its
elements, or a dict: of keys, those that may be missing with a ``?`` at the end; of ``*`` for a map; or of ``null`` for
what may be null."""

_LIMITS = {"int": 2**31, "long": 2**63}


class ShownJob:
    """A job with a JobMaster (or a runner, anything that has a snapshot), or without one."""

    def __init__(
        self,
        master: Any = None,
        *,
        job_id: str = "0" * 31 + "1",
        name: str = "job",
        status: JobStatus = JobStatus.INITIALIZING,
        failure: TaskFailure | None = None,
    ):
        self.master = master
        graph = None if master is None else master.snapshot.job_graph
        self.job_id = job_id if graph is None else graph.job_id
        self.name = name if graph is None else graph.job_name
        self.submitted_at = int(time.time() * 1000) - 1000
        self.failure = failure
        self._status = status

    @property
    def status(self) -> JobStatus:
        return self._status if self.master is None else self.master.snapshot.status

    @status.setter
    def status(self, status: JobStatus) -> None:
        self._status = status

    def view(self) -> JobView:
        timestamps = {JobStatus.INITIALIZING: self.submitted_at}
        if self.master is None and self._status is not JobStatus.INITIALIZING:
            timestamps[self._status] = self.submitted_at + 10
        snapshot = None if self.master is None else self.master.snapshot
        status = self._status if snapshot is None else snapshot.status
        return JobView(self.job_id, self.name, self.submitted_at, status, timestamps, snapshot, self.failure)


class ShownJobs:
    """Answers requests about some jobs, as the server would."""

    def __init__(self, *shown: ShownJob):
        self._jobs = list(shown)
        self.prometheus = PrometheusMetrics(self, lambda: {"taskSlotsTotal": 4, "taskSlotsAvailable": 1}, "here")
        self.routes: list[Route] = [
            *jobs.routes(self),
            *vertices.routes(self),
            *checkpoints.routes(self),
            *exceptions.routes(self),
            *metrics.routes(self, self.prometheus.text),
        ]
        self._by_path = {route.endpoint.path: route for route in self.routes}

    def jobs(self) -> list[ShownJob]:
        return self._jobs

    def job(self, job_id: str) -> ShownJob:
        for job in self._jobs:
            if job.job_id == job_id:
                return job
        raise FiresteelError(f"There is no job {job_id}.")

    def get(self, path: str, *, query: Mapping[str, Any] | None = None, **names: Any) -> Any:
        """The answer to a GET of a declared path, with values for its placeholders, as JSON."""
        route = self._by_path[path]
        given = {parameter.name: parameter.default for parameter in route.endpoint.query} | dict(query or {})
        if "jobid" in route.endpoint.placeholders:
            names.setdefault("jobid", self._jobs[0].job_id)
        request = RestRequest({name: str(value) for name, value in names.items()}, given, None)
        answer = route.handler(request)
        if isinstance(answer, Text):
            return str(answer)
        # an answer that is not what its endpoint declares would be wrong in the API's description
        encoded = msgspec.json.encode(answer)
        msgspec.json.decode(encoded, type=route.endpoint.response)
        return json.loads(encoded)


def check_shape(value: Any, shape: Shape, at: str = "$") -> None:
    """Fails where Flink's own client would: keys that are missing or unknown, and values that are not of their type."""
    if isinstance(shape, list):
        assert isinstance(value, list), f"{at}: {value!r}"
        for index, item in enumerate(value):
            check_shape(item, shape[0], f"{at}[{index}]")
    elif isinstance(shape, dict) and "null" in shape:
        if value is not None:
            check_shape(value, shape["null"], at)
    elif isinstance(shape, dict):
        assert isinstance(value, dict), f"{at}: {value!r}"
        if "*" in shape:
            for key, item in value.items():
                check_shape(item, shape["*"], f"{at}.{key}")
            return
        known = {key.rstrip("?"): kind for key, kind in shape.items()}
        required = {key for key in shape if not key.endswith("?")}
        assert required <= set(value) <= set(known), (
            f"{at}: missing {required - set(value)}, more {set(value) - set(known)}"
        )
        for key, item in value.items():
            check_shape(item, known[key], f"{at}.{key}")
    else:
        _check_primitive(value, shape, at)


def _check_primitive(value: Any, kind: str, at: str) -> None:
    if kind.endswith("?"):
        if value is None:
            return
        kind = kind[:-1]
    if kind in _LIMITS:
        fits = isinstance(value, int) and not isinstance(value, bool) and -_LIMITS[kind] <= value < _LIMITS[kind]
    elif kind == "double":
        fits = isinstance(value, float) or value == "NaN"
    elif kind == "boolean":
        fits = isinstance(value, bool)
    else:
        assert kind == "string", f"unknown kind {kind}"
        fits = isinstance(value, str)
    assert fits, f"{at}: {value!r} is no {kind}"

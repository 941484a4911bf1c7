"""Throws whatever the description of the REST API allows, and what it does not, at all handlers."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from firesteel.cluster.diagnostics.logs import LogFiles
from firesteel.cluster.dispatcher.dispatcher import Dispatcher
from firesteel.cluster.dispatcher.managed_job import ManagedJob
from firesteel.cluster.dispatcher.resource_manager import ResourceManager
from firesteel.cluster.rest.server import RestServer
from firesteel.cluster.routes import all_routes
from firesteel.cluster.sql_gateway import LazyGateway
from firesteel.common import Configuration, JobStatus
from firesteel.rest.endpoints import all_endpoints
from firesteel.rest.openapi import OPENAPI
from firesteel.testing import eventually
from tests.support.jobs.dispatched_jobs import MemoryStore, endless, numbers, start_in_process, submission_of
from tests.support.rest.samples import TOKEN, bearer, client_of, serving

SEED = 20_260
EXAMPLES = 5
PATHS = {"target-directory", "targetDirectory", "savepoint-path", "savepointPath"}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # where paths lead that are made up
    return tmp_path


@pytest.fixture
def dispatcher(directory: Path) -> Iterator[Dispatcher]:
    a_dispatcher = Dispatcher(
        MemoryStore(),
        Configuration.from_dict({"web.upload.dir": str(directory / "programs")}),
        start_in_process,
        on_fenced=lambda why: None,
        checkpoint_directory=str(directory / "checkpoints"),
    )
    yield a_dispatcher
    a_dispatcher.close(60.0)


@pytest.fixture
def server(dispatcher: Dispatcher, directory: Path) -> Iterator[RestServer]:
    spark = SimpleNamespace(resources=ResourceManager(lambda: 4, is_fixed=True), executors=list, java_pid=None)
    logs = LogFiles(directory / "log")
    gateway = LazyGateway(dispatcher.configuration, dispatcher=dispatcher)
    try:
        with serving(all_routes(dispatcher, spark, logs, directory, lambda: None, gateway)) as a_server:  # type: ignore[arg-type]
            yield a_server
    finally:
        gateway.close()
        logs.close()


def submit(dispatcher: Dispatcher, build: Any) -> ManagedJob:
    checkpoints = {"execution.checkpointing.interval": "1 h"}
    return dispatcher.job(dispatcher.submit(submission_of(build, checkpoints)))


def bounded(environment: Any) -> None:
    numbers(environment, [1, 2, 3], bounded=True).print()


def test_every_endpoint_has_a_route(server: RestServer) -> None:
    served = {OPENAPI, *(route.endpoint for route in server._routes)}
    assert not set(all_endpoints()) - served, "add a Route in firesteel/cluster/rest/handlers, see cluster/routes.py"


def test_nothing_that_can_be_sent_is_our_fault(server: RestServer, dispatcher: Dispatcher) -> None:
    running, victim, ended = (submit(dispatcher, build) for build in (endless, endless, bounded))
    eventually(lambda: (running.status, victim.status) == (JobStatus.RUNNING, JobStatus.RUNNING))
    eventually(lambda: ended.status is JobStatus.FINISHED)
    with client_of(server, TOKEN) as client, requests.Session() as session:
        schema = schemathesis.openapi.from_dict(client.call(OPENAPI))
        assert running.runner is not None
        known = {
            "vertexid": [next(iter(running.runner.snapshot.execution_graph.vertices))],
            "subtaskindex": ["0"],
            "attempt": ["0"],
        }
        failures: list[str] = []
        print(f"seed {SEED}")
        for result in schema.get_all_operations():
            operation = result.ok()
            # what changes something may end a job
            jobs = [victim, ended] if "security" in operation.definition.raw else [running, ended]
            choice = itertools.cycle([{**known, "jobid": [job.job_id]} for job in jobs] + [{}])
            for mode in modes_of(operation):
                failures += fuzz(server, session, operation, mode, choice)
    assert not failures, "\n".join(failures)
    assert running.status is JobStatus.RUNNING


def modes_of(operation: Any) -> list[GenerationMode]:
    """What is wrong with a path is tested with the router; making it up takes long."""
    takes_more = len(operation.query) or len(operation.body)
    return [GenerationMode.POSITIVE, GenerationMode.NEGATIVE] if takes_more else [GenerationMode.POSITIVE]  # type: ignore[list-item]


def within(path: Any) -> Any:
    """A path that was made up, but not one that leads just anywhere."""
    return "x/" + path.replace("..", "") if isinstance(path, str) else path


def fuzz(
    server: RestServer,
    session: requests.Session,
    operation: Any,
    mode: GenerationMode,
    choice: Iterator[dict[str, list[str]]],
) -> list[str]:
    """Calls an operation with what the generator makes up; ids are sometimes those of jobs that are there."""
    found: list[str] = []

    @seed(SEED)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def call(case: schemathesis.Case) -> None:
        names = next(choice)
        for name in case.path_parameters or {}:
            if name in names:
                case.path_parameters[name] = names[name][0]
        if isinstance(case.body, dict):
            case.body.update({name: within(case.body[name]) for name in PATHS & case.body.keys()})
        base_url = f"http://127.0.0.1:{server.address[1]}"
        response = case.call(base_url=base_url, headers=bearer(), session=session)
        if response.status_code >= 500:
            found.append(f"{case.as_curl_command()}\n  -> {response.status_code} {response.text[-1500:]}")
        elif response.status_code >= 400:
            assert list(response.json()) == ["errors"]

    with contextlib.suppress(Unsatisfiable):  # where nothing is taken, nothing wrong can be sent
        call()
    return found[:1]

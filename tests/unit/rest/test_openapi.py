from __future__ import annotations

import re
from importlib import import_module
from pkgutil import iter_modules

import msgspec

import firesteel.rest
from firesteel.cluster.rest.request import Route
from firesteel.cluster.rest.router import Router
from firesteel.rest.endpoint import Access, Endpoint
from firesteel.rest.endpoints import all_endpoints
from firesteel.rest.openapi import openapi_document
from tests.support.rest.samples import ENDPOINTS

DOCUMENT = openapi_document(ENDPOINTS)


def test_every_endpoint_is_described() -> None:
    for endpoint in ENDPOINTS:
        path = re.sub(r":(\w+)", r"{\1}", endpoint.path)
        assert DOCUMENT["paths"][path][endpoint.method.lower()]["summary"] == endpoint.summary


def test_parameters() -> None:
    operation = DOCUMENT["paths"]["/jobs/{jobid}/vertices/{vertexid}/subtasks/{subtaskindex}"]["get"]
    described = {parameter["name"]: parameter for parameter in operation["parameters"]}
    assert described["jobid"]["schema"]["pattern"] == "^[0-9a-f]{32}$"
    assert described["subtaskindex"]["schema"]["type"] == "integer"
    assert described["limit"]["schema"] == {"type": "integer", "default": 10}
    assert described["get"]["explode"] is False
    assert described["get"]["schema"] == {"type": "array", "items": {"type": "string"}}


def test_bodies_have_the_names_of_the_wire() -> None:
    operation = DOCUMENT["paths"]["/jobs/{jobid}/notes"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    assert schema == {"$ref": "#/components/schemas/Note"}
    assert set(DOCUMENT["components"]["schemas"]["Note"]["properties"]) == {"text", "times", "target-directory"}
    assert DOCUMENT["components"]["schemas"]["Note"]["required"] == ["text"]


def test_answers() -> None:
    responses = DOCUMENT["paths"]["/jobs/{jobid}/notes"]["post"]["responses"]
    assert set(responses) == {"202", "default"}
    assert "text/plain" in DOCUMENT["paths"]["/log"]["get"]["responses"]["200"]["content"]
    failing = DOCUMENT["paths"]["/failing/{how}"]["get"]["responses"]
    assert failing["409"]["description"] == "Sometimes."
    assert failing["409"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/ErrorResponse"}


def test_who_may() -> None:
    assert "security" not in DOCUMENT["paths"]["/log"]["get"]
    assert DOCUMENT["paths"]["/jobs/{jobid}/notes"]["post"]["security"] == [{}, {"token": []}]
    assert DOCUMENT["paths"]["/pickled"]["put"]["security"] == [{"token": []}]


def test_all_endpoints_go_together() -> None:
    endpoints = all_endpoints()
    Router(Route(endpoint, dict) for endpoint in endpoints)
    document = openapi_document(endpoints)
    names = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(names) == len(set(names)) == len(endpoints)
    assert msgspec.json.decode(msgspec.json.encode(document)) == document


def test_every_topic_is_among_all_endpoints() -> None:
    topics = [import_module(f"firesteel.rest.{module.name}") for module in iter_modules(firesteel.rest.__path__)]
    declared = {endpoint for topic in topics for endpoint in getattr(topic, "ENDPOINTS", ())}
    assert declared == set(all_endpoints()), "add the topic to _TOPICS in firesteel/rest/endpoints.py"


def test_every_endpoint_is_in_the_tuple_of_its_topic() -> None:
    topics = [import_module(f"firesteel.rest.{module.name}") for module in iter_modules(firesteel.rest.__path__)]
    declared = {value for topic in topics for value in vars(topic).values() if isinstance(value, Endpoint)}
    assert declared == set(all_endpoints()), "add the endpoint to ENDPOINTS in its module"


def test_what_takes_pickles_is_code() -> None:
    takes_code = {endpoint.path for endpoint in all_endpoints() if endpoint.required_access is Access.CODE}
    assert "/jobs" in takes_code
    for endpoint in all_endpoints():
        if bytes in (endpoint.request, endpoint.response):
            assert endpoint.required_access is Access.CODE, endpoint.path

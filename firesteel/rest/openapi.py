"""The OpenAPI description of the REST API, generated from the endpoint declarations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from firesteel import __version__
from firesteel.rest.endpoint import Access, Endpoint, Parameter, Text

__all__ = ["ENDPOINTS", "OPENAPI", "ErrorResponse", "openapi_document"]

_HEX_IDS = {"applicationid", "checkpointtriggerid", "jobid", "savepointtriggerid", "triggerid", "vertexid"}
_NUMBERS = {"attempt", "checkpointid", "subtaskindex"}


class ErrorResponse(msgspec.Struct):
    """The body of every error response."""

    errors: list[str]


OPENAPI: Endpoint[None, dict[str, Any]] = Endpoint(
    "GET",
    "/openapi.json",
    "Returns the OpenAPI 3.1 description of this API.",
    dict[str, Any],
    tag="cluster",
    is_ours=True,
)

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (OPENAPI,)


def openapi_document(endpoints: Iterable[Endpoint[Any, Any]]) -> dict[str, Any]:
    """The OpenAPI 3.1 document of endpoints."""
    endpoints = list(endpoints)
    types = [type for endpoint in endpoints for type in (endpoint.request, endpoint.response) if _has_schema(type)]
    schemas, components = msgspec.json.schema_components(
        [*types, ErrorResponse], ref_template="#/components/schemas/{name}"
    )
    found = dict(zip(map(id, types), schemas, strict=False))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        path = "/".join(f"{{{part[1:]}}}" if part.startswith(":") else part for part in endpoint.path.split("/"))
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, found, schemas[-1])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Firesteel",
            "version": __version__,
            "description": "The REST API of a JobManager. Every path is also available under /v1.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint[Any, Any], schemas: dict[int, Any], error: Any) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "parameters": [
            *(_path_parameter(name) for name in endpoint.placeholders),
            *(_query_parameter(parameter) for parameter in endpoint.query),
        ],
        "responses": _responses(endpoint, schemas, error),
    }
    if endpoint.is_upload:
        operation["requestBody"] = {"content": {"multipart/form-data": {"schema": {"type": "object"}}}}
    elif endpoint.request is bytes:
        operation["requestBody"] = {"content": {"application/octet-stream": {}}}
    elif endpoint.request is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": schemas[id(endpoint.request)]}}}
    if endpoint.required_access is not Access.READ:
        # on a port that only this machine reaches, what merely changes something needs no token
        open_too: list[dict[str, Any]] = [{}] if endpoint.required_access is Access.CHANGE else []
        operation["security"] = [*open_too, {"token": []}]
    return operation


def _responses(endpoint: Endpoint[Any, Any], schemas: dict[int, Any], error: Any) -> dict[str, Any]:
    content: dict[str, Any]
    if endpoint.response is Text:
        content = {"text/plain": {"schema": {"type": "string"}}}
    elif endpoint.response is bytes:
        content = {"application/octet-stream": {}}
    else:
        content = {"application/json": {"schema": schemas[id(endpoint.response)]}}
    responses = {str(endpoint.status): {"description": "Success.", "content": content}}
    for status, description in endpoint.errors.items():
        responses.setdefault(str(status), _error(description, error))
    responses["default"] = _error("Error messages.", error)
    return responses


def _error(description: str, schema: Any) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _path_parameter(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "minLength": 1}
    if name in _HEX_IDS:
        schema = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
    elif name in _NUMBERS:
        schema = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameter(parameter: Parameter) -> dict[str, Any]:
    schema = msgspec.json.schema(parameter.type)
    described: dict[str, Any] = {
        "name": parameter.name,
        "in": "query",
        "description": parameter.description,
        "required": parameter.is_required,
    }
    if parameter.is_list:
        return {**described, "schema": {"type": "array", "items": schema}, "style": "form", "explode": False}
    if parameter.default is not None:
        schema = {**schema, "default": msgspec.to_builtins(parameter.default)}
    return {**described, "schema": schema}


def _has_schema(type: Any) -> bool:
    return type is not None and type is not Text and type is not bytes

"""The model provider ``openai``: chat completions and embeddings of services with OpenAI's interface."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.common.errors import FiresteelError
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.columns import MetadataColumn
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.connector.model import AsyncPredictFunction, ModelContext, ModelProvider, ModelProviderFactory
from firesteel.table.connectors.models.http import HttpClient, Response
from firesteel.table.connectors.models.openai_options import (
    CHAT_OPTIONS,
    COMMON_OPTIONS,
    DEPRECATED,
    EMBEDDING_OPTIONS,
    REQUIRED_OPTIONS,
    ErrorHandling,
    error_handling,
    request_parameters,
)
from firesteel.types import logical as t

__all__ = ["FACTORY", "OpenAIFunction"]

_log = logging.getLogger(__name__)
_CHAT, _EMBEDDINGS = "chat/completions", "embeddings"
_STRING = t.VarCharType(t.MAX_LENGTH)
_METADATA: dict[str, t.LogicalType] = {
    "error-string": _STRING,
    "http-status-code": t.IntType(),
    "http-headers-map": t.MapType(_STRING, t.ArrayType(_STRING)),
}
_RETRIED_STATUSES = (408, 409, 429)
_FIRST_DELAY_S, _MAX_DELAY_S, _MAX_ASKED_DELAY_S = 0.5, 8.0, 60.0


class _RequestError(FiresteelError):
    """A request that was refused, or that got no answer."""

    def __init__(self, message: str, response: Response | None = None) -> None:
        super().__init__(message)
        self.response = response

    @property
    def may_succeed_later(self) -> bool:
        """Whether it makes sense to try again."""
        return self.response is None or self.response.status >= 500 or self.response.status in _RETRIED_STATUSES


@dataclass
class OpenAIFunction(AsyncPredictFunction):
    """Sends a request for each row. Rows that are NULL are left out, as in Flink."""

    endpoint: str
    api_key: str
    parameters: dict[str, Any]
    system_prompt: str | None
    """Of a chat; None for embeddings."""
    errors: ErrorHandling
    columns: tuple[str | None, ...]
    """For each column of the output its key of metadata; None for the column with the answer."""
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep

    def open(self) -> None:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.api_key}"}
        self._client = HttpClient(self.endpoint, headers)

    def close(self) -> Any:
        return self._client.close()

    async def async_predict(self, row: tuple[Any, ...]) -> Sequence[tuple[Any, ...]]:
        (text,) = row
        if text is None:
            _log.warning("The input of a model is NULL: the row is left out.")
            return []
        try:
            answers = await self._answers(text)
        except _RequestError as error:
            if not self.errors.is_ignored:
                raise
            _log.warning("The row is left out, as its request failed: %s", error)
            values = _error_values(error)
            has_metadata = any(key is not None for key in self.columns)
            return [tuple(None if key is None else values[key] for key in self.columns)] if has_metadata else []
        return [tuple(answer if key is None else None for key in self.columns) for answer in answers]

    async def _answers(self, text: str) -> list[Any]:
        """The contents of all choices, or the embeddings; tries again if that may help."""
        body = json.dumps({**self.parameters, **self._input(text)}).encode()
        for attempt in range(self.errors.retries + 1):
            try:
                return self._decoded(await self._post(body))
            except _RequestError as error:
                if attempt == self.errors.retries or not error.may_succeed_later:
                    raise
                _log.info("Attempt %d of a request failed: %s", attempt + 1, error)
                delay = _delay_s(attempt, error.response)
            await self.sleep(delay)
        raise AssertionError

    def _input(self, text: str) -> dict[str, Any]:
        if self.system_prompt is None:
            return {"input": text}
        system = {"role": "system", "content": self.system_prompt}
        return {"messages": [system, {"role": "user", "content": text}]}

    async def _post(self, body: bytes) -> Response:
        try:
            response = await self._client.post(body)
        except OSError as error:
            raise _RequestError(f"The model at {self.endpoint} cannot be reached: {error}") from error
        if response.status != 200:
            text = response.body.decode("utf-8", "replace")[:1000]
            raise _RequestError(f"The model at {self.endpoint} answered {response.status}: {text}", response)
        return response

    def _decoded(self, response: Response) -> list[Any]:
        try:
            found = json.loads(response.body)
            if self.system_prompt is None:
                return [[float(value) for value in each["embedding"]] for each in found["data"]]
            return [each["message"].get("content") or "" for each in found["choices"]]
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            text = response.body.decode("utf-8", "replace")[:1000]
            raise FiresteelError(f"The model at {self.endpoint} gave an unexpected answer: {text}") from error


def _delay_s(attempt: int, response: Response | None) -> float:
    """How long to wait: as long as the service asks for, else longer from attempt to attempt."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = None if response is None else response.header(name)
        try:
            asked = float(text or "") * unit
        except ValueError:
            continue
        if 0 <= asked <= _MAX_ASKED_DELAY_S:
            return asked
    delay: float = min(_FIRST_DELAY_S * 2 ** min(attempt, 10), _MAX_DELAY_S)
    return delay * (1 - 0.25 * random.random())


def _error_values(error: _RequestError) -> dict[str, Any]:
    response = error.response
    headers: dict[str, list[str]] = {}
    for name, value in [] if response is None else response.headers:
        headers.setdefault(name.lower(), []).append(value)
    return {
        "error-string": error.message,
        "http-status-code": None if response is None else response.status,
        "http-headers-map": None if response is None else headers,
    }


@dataclass(frozen=True)
class _Provider(ModelProvider):
    function: OpenAIFunction
    name = "openai"

    def create_async_predict_function(self) -> OpenAIFunction:
        return self.function


class _Factory(ModelProviderFactory):
    identifier = "openai"
    required_options = REQUIRED_OPTIONS
    optional_options = (*COMMON_OPTIONS, *CHAT_OPTIONS, *EMBEDDING_OPTIONS, *DEPRECATED, "context-overflow-action")

    def create_model_provider(self, context: ModelContext) -> _Provider:
        options = {DEPRECATED.get(key, key): value for key, value in context.options.items()}
        endpoint = options["endpoint"].rstrip("/")
        is_chat = endpoint.endswith(_CHAT)
        if not is_chat and not endpoint.endswith(_EMBEDDINGS):
            raise ValidationError(
                f"Unsupported endpoint '{options['endpoint']}'.", hint=f"It ends with {_CHAT} or {_EMBEDDINGS}."
            )
        if "max-context-size" in options:
            raise ValidationError(
                "'max-context-size' is not supported: it needs the tokenizer of the model.",
                hint="Leave it out, and shorten texts in the query: LEFT(text, 1000).",
            )
        expected: t.LogicalType = _STRING if is_chat else t.ArrayType(t.FloatType())
        _check_columns(context.input_schema, "input", _STRING)
        _check_columns(context.output_schema, "output", expected)
        HttpClient(endpoint, {})
        prompt = options.get("system-prompt", "You are a helpful assistant.") if is_chat else None
        parameters = request_parameters(options, is_chat)
        columns = tuple(None if column.is_physical() else column.name for column in context.output_schema.columns)
        return _Provider(
            OpenAIFunction(endpoint, options["api-key"], parameters, prompt, error_handling(options), columns)
        )


def _check_columns(schema: ResolvedSchema, side: str, expected: t.LogicalType) -> None:
    """Raises an error unless a model has one column of a type, and in its output metadata of errors besides."""
    physical = [column for column in schema.columns if column.is_physical()]
    if len(physical) != 1:
        raise ValidationError(
            f"Model should have exactly one {side} physical column, but actually has {len(physical)} physical columns: "
            f"[{', '.join(column.name for column in physical)}]"
        )
    found = physical[0]
    if found.data_type != expected:
        raise ValidationError(
            f"{side} column {found.name} should be {expected.as_summary_string()}, but is a "
            f"{found.data_type.as_summary_string()}."
        )
    for column in schema.columns:
        if column.is_physical():
            continue
        known = isinstance(column, MetadataColumn) and side == "output" and column.name in _METADATA
        if not known or column.data_type != _METADATA[column.name]:
            described = ", ".join(f"{key} {type_.as_summary_string()}" for key, type_ in _METADATA.items())
            raise ValidationError(
                f"Unexpected column {column.name} of the {side}.", hint=f"Metadata of the output are {described}."
            )


FACTORY = _Factory()

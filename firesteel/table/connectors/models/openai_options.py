"""The options of the model provider ``openai``, with Flink's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from firesteel.table.bound.errors import ValidationError

__all__ = ["COMMON_OPTIONS", "DEPRECATED", "REQUIRED_OPTIONS", "ErrorHandling", "error_handling", "request_parameters"]

REQUIRED_OPTIONS = ("endpoint", "api-key", "model")
COMMON_OPTIONS = ("error-handling-strategy", "retry-num", "retry-fallback-strategy", "max-context-size")
DEPRECATED = {"systemPrompt": "system-prompt", "topP": "top-p", "maxTokens": "max-tokens"}
_CHAT: dict[str, tuple[str, type]] = {
    "temperature": ("temperature", float),
    "top-p": ("top_p", float),
    "max-tokens": ("max_tokens", int),
    "presence-penalty": ("presence_penalty", float),
    "n": ("n", int),
    "seed": ("seed", int),
}
_EMBEDDINGS: dict[str, tuple[str, type]] = {"dimension": ("dimensions", int)}
CHAT_OPTIONS = (*_CHAT, "system-prompt", "stop", "response-format")
EMBEDDING_OPTIONS = tuple(_EMBEDDINGS)


class ErrorHandling(NamedTuple):
    """What happens if a request fails."""

    retries: int
    is_ignored: bool
    """Whether a row whose requests all fail is left out; else the job fails."""


def error_handling(options: Mapping[str, str]) -> ErrorHandling:
    """What the options say about requests that fail."""
    strategy = _choice(options, "error-handling-strategy", ("retry", "failover", "ignore"), "retry")
    fallback = _choice(options, "retry-fallback-strategy", ("failover", "ignore"), "failover")
    retries = _number(options, "retry-num", int) if "retry-num" in options else 100
    if strategy == "retry":
        return ErrorHandling(retries, fallback == "ignore")
    return ErrorHandling(0, strategy == "ignore")


def request_parameters(options: Mapping[str, str], is_chat: bool) -> dict[str, Any]:
    """The fields of all requests of a model, but for its input."""
    known = _CHAT if is_chat else _EMBEDDINGS
    found: dict[str, Any] = {"model": options["model"]}
    for option, (name, kind) in known.items():
        if option in options:
            found[name] = _number(options, option, kind)
    if is_chat and "stop" in options:
        found["stop"] = options["stop"].split(",")
    if is_chat and "response-format" in options:
        found["response_format"] = {"type": _choice(options, "response-format", ("text", "json_object"), "text")}
    return found


def _number(options: Mapping[str, str], key: str, kind: type) -> Any:
    try:
        return kind(options[key])
    except ValueError:
        what = "an integer" if kind is int else "a number"
        raise ValidationError(f"Invalid value for option '{key}': '{options[key]}' is not {what}.") from None


def _choice(options: Mapping[str, str], key: str, choices: tuple[str, ...], default: str) -> str:
    value = options.get(key, default).lower().replace("-", "_")
    if value not in choices:
        raise ValidationError(
            f"Invalid value for option '{key}': '{options[key]}'.", hint=f"Use one of {', '.join(choices)}."
        )
    return value

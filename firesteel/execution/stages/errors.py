"""StageError: the failure of a task of a batch or an epoch, also when parsed from another exception's text."""

from __future__ import annotations

import base64
import binascii
import pickle
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from firesteel.common.errors import FiresteelError, TaskFailure
from firesteel.runtime.model.messages import ClientPayload, TaskStateChanged

__all__ = ["StageTaskError", "TaskStateLostError", "decode_messages", "encode_messages"]

MAX_ENCODED = 256 * 1024
"""Characters the messages of a failure may take in the text of an exception."""
_BEGIN, _END = "[firesteel-messages:", "]"
_ENCODED = re.compile(re.escape(_BEGIN) + r"([A-Za-z0-9+/=\s]*)" + re.escape(_END))
_MAX_TEXT = 2000


class StageTaskError(FiresteelError):
    """A task has failed. ``messages`` have the reason, the last one being a TaskStateChanged with FAILED.

    Spark carries nothing of an exception to the driver but its text: that text contains the messages, encoded.
    """

    def __init__(self, messages: Sequence[Any]):
        self.messages = tuple(messages)
        failure = failure_of(self.messages)
        super().__init__("A task has failed." if failure is None else failure.describe())

    def __str__(self) -> str:
        return f"{super().__str__()}\n{encode_messages(self.messages)}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.messages,)


class TaskStateLostError(FiresteelError):
    """The state a task is to go on with is in no process that is left, and in no checkpoint."""


def failure_of(messages: Sequence[Any]) -> TaskFailure | None:
    """The failure that messages contain."""
    return next((m.failure for m in messages if isinstance(m, TaskStateChanged) and m.failure is not None), None)


def encode_messages(messages: Sequence[Any]) -> str:
    """Messages as text that can be found again within other text; what makes it too long is left out.

    >>> decode_messages("Traceback: ..." + encode_messages([1, "two"]) + " and so on")
    (1, 'two')
    """
    kept = list(messages)
    text = _encode(kept)
    if len(text) > MAX_ENCODED:
        # printed lines and records are worth less than why the job failed
        kept = [message for message in kept if not isinstance(message, ClientPayload)]
        text = _encode(kept)
    if len(text) > MAX_ENCODED:
        text = _encode([_shortened(message) for message in kept if isinstance(message, TaskStateChanged)])
    return text


def decode_messages(text: str) -> tuple[Any, ...] | None:
    """The messages in a text; None if there are none, or none that can be read."""
    found = _ENCODED.search(text)
    if found is None:
        return None
    try:
        return tuple(pickle.loads(base64.b64decode(found[1])))
    except (binascii.Error, pickle.UnpicklingError, EOFError, ImportError, AttributeError, TypeError, ValueError):
        return None


def _encode(messages: Sequence[Any]) -> str:
    return _BEGIN + base64.b64encode(pickle.dumps(tuple(messages), 5)).decode("ascii") + _END


def _shortened(message: TaskStateChanged) -> TaskStateChanged:
    failure = message.failure
    if failure is None:
        return message
    texts = {
        name: value[:_MAX_TEXT]
        for name, value in ((name, getattr(failure, name)) for name in failure.__dataclass_fields__)
        if isinstance(value, str) and len(value) > _MAX_TEXT
    }
    return replace(message, failure=replace(failure, **texts, cause=None))  # type: ignore[arg-type]

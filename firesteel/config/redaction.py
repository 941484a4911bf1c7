"""Text that people see: without secrets, and without characters that control a terminal or forge a line of a log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from firesteel.common.errors import TaskFailure

__all__ = ["HIDDEN", "Redactor", "hide_passwords", "is_sensitive", "printable"]

HIDDEN = "******"
"""What is shown instead of a secret."""

_SENSITIVE = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "credential",
    "private-key",
    "private_key",
    "private.key",
    "privatekey",
    "apikey",
    "api-key",
    "api_key",
    "access-key",
    "access.key",
    "access_key",
    "accesskey",
    "account.key",
    "service-key",
    "auth-params",
    "basic-auth",
    "token",
    "jaas.config",
    "http-headers",
)
"""Parts of keys whose values are not shown: Flink's, and some more."""

_MIN_SECRET_LENGTH = 4
"""Shorter values of sensitive keys are not looked for in texts: they would be found everywhere."""

# the length of the scheme has a limit: without one, a long word would be searched again from each of its letters
_URL_PASSWORD = re.compile(r"(?P<before>[A-Za-z][\w+.-]{0,40}://[^\s/:@]*:)[^\s/]+(?=@)")
_PARAMETER = re.compile(
    r"(?P<before>\b\w*(?:password|passwd|pwd|token|secret|api_?key))"
    r"(?:(?P<is> *= *)(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|=[^\s&;#'\"]+)",
    re.IGNORECASE,
)
"""Of URLs, and of texts like ``host=db password='…'`` by which PostgreSQL is connected to."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def is_sensitive(key: str) -> bool:
    """Whether the value of a key is not to be shown.

    >>> is_sensitive("s3.secret-key"), is_sensitive("parallelism.default")
    (True, False)
    """
    key = key.lower()
    return any(part in key for part in _SENSITIVE)


def hide_passwords(text: str) -> str:
    """Hides passwords that are part of URLs and of other connection strings.

    >>> hide_passwords("postgresql://me:geheim@db/shop?sslmode=require&password=geheim")
    'postgresql://me:******@db/shop?sslmode=require&password=******'
    >>> hide_passwords("host=db password='very secret' dbname=shop")
    'host=db password=****** dbname=shop'
    """
    text = _URL_PASSWORD.sub(rf"\g<before>{HIDDEN}", text)
    return _PARAMETER.sub(lambda found: f"{found['before']}{found['is'] or '='}{HIDDEN}", text)


def printable(text: str) -> str:
    r"""Replaces control characters other than newlines and tabs by their escapes.

    >>> printable("job\x1b[31m")
    'job\\x1b[31m'
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class Redactor:
    """Hides the secrets of a configuration wherever they appear in a text.

    >>> Redactor({"s3.secret-key": "tell-nobody"}).clean("refused: tell-nobody")
    'refused: ******'
    """

    def __init__(self, settings: Mapping[str, str]):
        values = _secrets(settings)
        self._pattern = re.compile("|".join(map(re.escape, values))) if values else None

    def clean(self, text: str) -> str:
        """The text without secrets."""
        text = hide_passwords(text)
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)

    def clean_failure(self, failure: TaskFailure) -> TaskFailure:
        """The failure without secrets in any of its texts."""
        changed: dict[str, Any] = {
            name: cleaned
            for name, value in vars(failure).items()
            if isinstance(value, str) and (cleaned := self.clean(value)) != value
        }
        return replace(failure, **changed) if changed else failure


def _secrets(settings: Mapping[str, str]) -> list[str]:
    """The values of sensitive keys, the longest first: one may contain another."""
    values = [value for key, value in settings.items() if is_sensitive(key) and len(value) >= _MIN_SECRET_LENGTH]
    found = {spelling for value in values for spelling in _spellings(value)}
    return sorted(found, key=lambda value: (-len(value), value))


def _spellings(value: str) -> Iterable[str]:
    """How a value may stand in a text: as it is, within Python's or JSON's quotes, in a URL."""
    quoted = repr(value)[1:-1]
    return value, quoted, quoted.replace("\\'", "'"), json.dumps(value)[1:-1], quote(value, safe="")

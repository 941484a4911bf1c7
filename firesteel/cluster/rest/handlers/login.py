"""REST handlers for browser login with one-time codes."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

from firesteel.cluster.rest.request import RestError, RestRequest, Route
from firesteel.rest.login import CREATE_LOGIN_CODE, LOGIN, LoginCode, LoginRequest, LoginToken

__all__ = ["LoginCodes", "routes"]

VALID_S = 15 * 60.0
MAX_CODES = 64
"""The maximum number of unused codes; the oldest go first."""


class LoginCodes:
    """The codes of a JobManager. They are kept in memory only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._lock = threading.Lock()
        self._codes: dict[str, float] = {}

    def create(self) -> str:
        code = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._codes) >= MAX_CODES:
                del self._codes[next(iter(self._codes))]
            self._codes[code] = self._clock() + VALID_S
        return code

    def redeem(self, code: str) -> bool:
        """Whether a code is valid; from now on it is not."""
        with self._lock:
            until = self._codes.pop(code, None)
        return until is not None and self._clock() < until


def routes(read_token: Callable[[], str]) -> list[Route]:
    codes = LoginCodes()

    def create(_request: RestRequest[Any]) -> LoginCode:
        return LoginCode(codes.create(), int(VALID_S * 1000))

    def login(request: RestRequest[LoginRequest]) -> LoginToken:
        if not codes.redeem(request.body.code):
            raise RestError(
                403,
                "This link has been used, or has expired.",
                hint="firesteel cluster link prints a new one.",
            )
        return LoginToken(read_token())

    return [Route(CREATE_LOGIN_CODE, create), Route(LOGIN, login, blocking=True)]

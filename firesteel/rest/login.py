"""The login of a browser: a code that works once, exchanged for the cluster's token."""

from __future__ import annotations

from typing import Any

import msgspec

from firesteel.rest.endpoint import Access, Endpoint

__all__ = ["CREATE_LOGIN_CODE", "ENDPOINTS", "LOGIN", "LoginCode", "LoginRequest", "LoginToken"]

_TAG = "cluster"


class LoginCode(msgspec.Struct, rename="kebab"):
    """A code, and for how many milliseconds it can be used."""

    code: str
    valid_ms: int


class LoginRequest(msgspec.Struct):
    """A code that has not been used."""

    code: str


class LoginToken(msgspec.Struct):
    """The token of the cluster."""

    token: str


CREATE_LOGIN_CODE: Endpoint[Any, LoginCode] = Endpoint(
    "POST",
    "/login/codes",
    "Makes a code with which a browser gets the token, once.",
    LoginCode,
    access=Access.CODE,
    tag=_TAG,
    is_ours=True,
)
LOGIN: Endpoint[LoginRequest, LoginToken] = Endpoint(
    "POST",
    "/login",
    "Exchanges a code for the token.",
    LoginToken,
    request=LoginRequest,
    errors={403: "The code is unknown, has been used, or is too old."},
    access=Access.LOGIN,
    tag=_TAG,
    is_ours=True,
)

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (CREATE_LOGIN_CODE, LOGIN)

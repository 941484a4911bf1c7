"""REST endpoints: browser login with a one-time code that is exchanged for the cluster's token."""

from __future__ import annotations

from typing import Any

import msgspec

from firesteel.rest.endpoint import Access, Endpoint

__all__ = ["CREATE_LOGIN_CODE", "ENDPOINTS", "LOGIN", "LoginCode", "LoginRequest", "LoginToken"]

_TAG = "cluster"


class LoginCode(msgspec.Struct, rename="kebab"):
    """A one-time code and its validity in milliseconds."""

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
    "Creates a one-time code with which a browser obtains the token.",
    LoginCode,
    access=Access.CODE,
    tag=_TAG,
    is_ours=True,
)
LOGIN: Endpoint[LoginRequest, LoginToken] = Endpoint(
    "POST",
    "/login",
    "Exchanges a one-time code for the token.",
    LoginToken,
    request=LoginRequest,
    errors={403: "The code is unknown, has been used, or has expired."},
    access=Access.LOGIN,
    tag=_TAG,
    is_ours=True,
)

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (CREATE_LOGIN_CODE, LOGIN)

"""Browsers get the token with a code that works once."""

from __future__ import annotations

import json

from firesteel.cluster.rest.handlers import login
from firesteel.cluster.rest.handlers.login import MAX_CODES, VALID_S, LoginCodes
from tests.support.rest.samples import TOKEN, ask, bearer, serving


def test_a_code_works_once() -> None:
    codes = LoginCodes()
    code = codes.create()
    assert (codes.redeem(code), codes.redeem(code), codes.redeem("guess")) == (True, False, False)


def test_a_code_expires() -> None:
    now = [0.0]
    codes = LoginCodes(lambda: now[0])
    code = codes.create()
    now[0] = VALID_S
    assert not codes.redeem(code)


def test_codes_that_nobody_uses_do_not_pile_up() -> None:
    codes = LoginCodes()
    first, *_, last = [codes.create() for _ in range(MAX_CODES + 1)]
    assert (codes.redeem(first), codes.redeem(last)) == (False, True)


def test_only_who_has_the_token_makes_codes_and_anybody_with_one_gets_the_token() -> None:
    with serving(login.routes(lambda: TOKEN), {"rest.bind-address": "0.0.0.0"}) as server:
        assert ask(server, "POST", "/login/codes").status == 401
        code = ask(server, "POST", "/login/codes", headers=bearer()).json["code"]
        body = json.dumps({"code": code}).encode()
        foreign = ask(server, "POST", "/login", body, {"Origin": "https://evil.example"})
        assert foreign.status == 403
        assert ask(server, "POST", "/login", body).json == {"token": TOKEN}
        assert ask(server, "POST", "/login", body).status == 403

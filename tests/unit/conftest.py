"""Unit tests start no process and use no network: what needs these is in tests/integration."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

_FORBIDDEN = {
    "os.fork": "forks",
    "os.posix_spawn": "starts a process",
    "subprocess.Popen": "starts a process",
    "socket.bind": "listens on a socket",
    "socket.connect": "connects to a socket",
}
_is_unit_test = False


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if _is_unit_test and event in _FORBIDDEN:
        raise RuntimeError(f"A unit test {_FORBIDDEN[event]}: {arguments[1:]}. Move it to tests/integration.")


sys.addaudithook(_refuse)


@pytest.fixture(autouse=True)
def _pure() -> Iterator[None]:
    global _is_unit_test
    _is_unit_test = True
    yield
    _is_unit_test = False

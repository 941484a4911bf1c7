"""Which process ``firesteel logs`` means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from firesteel.cli.logs import LogNotFoundError, _find


@dataclass
class _Manager:
    id: str


@dataclass
class _Managers:
    taskmanagers: list[_Manager]


class _Client:
    def __init__(self, *ids: str) -> None:
        self._ids = ids

    def call(self, _endpoint: object) -> Any:
        return _Managers([_Manager(each) for each in self._ids])


@pytest.mark.parametrize("named", ["taskmanager", "host:1", "host:1-2"])
def test_the_only_taskmanager(named: str) -> None:
    assert _find(_Client("host:1-2"), named) == "host:1-2"  # type: ignore[arg-type]


@pytest.mark.parametrize("named", ["taskmanager", "other", "host"])
def test_none_or_several(named: str) -> None:
    with pytest.raises(LogNotFoundError, match="jobmanager, host:1, host:2"):
        _find(_Client("host:1", "host:2"), named)  # type: ignore[arg-type]

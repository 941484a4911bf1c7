"""Savepoints and checkpoints of earlier versions are restored by this one, as if nothing had happened in between."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.old_savepoints.fixtures import FIXTURES, Fixture, read_fixtures, read_objects, restore, run
from tests.support.old_savepoints.objects import OBJECTS

STORED = read_fixtures()
PICKLES = read_objects()


@pytest.mark.parametrize("fixture", STORED, ids=[fixture.name for fixture in STORED])
def test_a_job_goes_on_from_stored_state(fixture: Fixture, tmp_path: Path) -> None:
    (tmp_path / "restored").mkdir()
    (tmp_path / "whole").mkdir()
    assert restore(fixture, tmp_path / "restored") == run(fixture, tmp_path / "whole")


@pytest.mark.parametrize("loads", [pickle.loads, pickle._loads], ids=["C", "Python"])  # type: ignore[attr-defined]
@pytest.mark.parametrize("name", PICKLES)
def test_a_stored_object_is_what_it_was(name: str, loads: Callable[[bytes], Any]) -> None:
    stored, made = loads(PICKLES[name]), OBJECTS[name]()
    assert type(stored) is type(made)
    assert repr(stored) == repr(made)


def test_everything_is_stored() -> None:
    """``python -m tests.support.old_savepoints.write`` adds what is new."""
    assert {fixture.name for fixture in STORED} == {fixture.name for fixture in FIXTURES}
    assert set(PICKLES) == set(OBJECTS)

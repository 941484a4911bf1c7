"""The table of state backends: what it says about each is what the backend does."""

from __future__ import annotations

from pathlib import Path

import pytest

from firesteel.config.configuration import Configuration
from firesteel.datastream import state_backend
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.state.api.backend import KeyedStateBackendParameters, ObjectStateBackend
from firesteel.runtime.state.registry import BACKENDS, StateBackendType, configured_backend

every_backend = pytest.mark.parametrize("entry", BACKENDS.values(), ids=lambda entry: entry.name)


@every_backend
def test_a_backend_is_what_its_row_says(entry: StateBackendType, tmp_path: Path) -> None:
    parameters = KeyedStateBackendParameters(KeyGroupRange(0, 7), 8, lambda: 0, working_directory=tmp_path)
    backend = entry.create(Configuration(), parameters)
    try:
        assert backend.name == entry.name
        assert isinstance(backend, ObjectStateBackend) == entry.keeps_objects
    finally:
        backend.close()


@every_backend
def test_the_class_of_the_api_selects_the_backend(entry: StateBackendType) -> None:
    selected = getattr(state_backend, entry.api_name)().to_configuration()
    assert configured_backend(selected) is entry

"""Table environments whose jobs run in process."""

from __future__ import annotations

import pytest

from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.testing.in_process import InProcessExecutor


@pytest.fixture
def table_env() -> TableEnvironment:
    """An environment in streaming mode, with parallelism 2."""
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("parallelism.default", "2")
    environment.get_config().set_local_timezone("UTC")
    environment._session.environment._executor = InProcessExecutor()
    return environment

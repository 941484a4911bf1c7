"""What tests on real embedded Spark share."""

from __future__ import annotations

import sys
from pathlib import Path

import cloudpickle
import pytest

HERE = Path(__file__).parent


@pytest.fixture(autouse=True, scope="module")
def by_value(request: pytest.FixtureRequest) -> None:
    """Functions defined in these test modules travel by value, like those of a program's main module."""
    module = sys.modules[request.module.__name__]
    if module.__name__ not in cloudpickle.list_registry_pickle_by_value():
        cloudpickle.register_pickle_by_value(module)

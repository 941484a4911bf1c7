"""What tests on real embedded Spark share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import cloudpickle
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent


@pytest.fixture(autouse=True, scope="module")
def by_value(request: pytest.FixtureRequest) -> None:
    """Functions defined in these test modules travel by value, like those of a program's main module."""
    module = sys.modules[request.module.__name__]
    if module.__name__ not in cloudpickle.list_registry_pickle_by_value():
        cloudpickle.register_pickle_by_value(module)


SQL_SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.shuffle.partitions": "1",
}


@pytest.fixture(scope="module")
def sql_session(spark_context: object) -> Iterator[SparkSession]:
    """A session with the settings that SQL needs. The last session of a thread stays active: they are taken back."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate().newSession()
    for key, value in SQL_SETTINGS.items():
        session.conf.set(key, value)
    yield session
    for key in SQL_SETTINGS:
        session.conf.unset(key)

"""Secrets of a configuration do not stand on the command line of Spark's JVM, which every user can read."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark import SparkConf, SparkContext

from firesteel.spark.session import session

SECRETS = {
    "spark.hadoop.fs.s3a.secret.key": "tell-nobody-1",
    "spark.hadoop.fs.s3a.access.key": "tell-nobody-2",
    "spark.authenticate.secret": "tell-nobody-3",
    "spark.ssl.keyStorePassword": "tell-nobody-4",
    "spark.kubernetes.authenticate.oauthToken": "tell-nobody-5",
}


class _LaunchedError(Exception):
    pass


def test_what_the_jvm_is_started_with(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[dict[str, str]] = []

    def launch(conf: Any, _meanwhile: Any) -> Any:
        launched.append(dict(conf.getAll()))
        raise _LaunchedError

    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.setattr(session, "_launch_gateway", launch)
    conf = SparkConf(loadDefaults=False)
    conf.setAll([*SECRETS.items(), ("spark.master", "local[2]"), ("spark.driver.memory", "1g")])
    with pytest.raises(_LaunchedError):
        session._start(conf, lambda: None)
    assert launched == [{"spark.master": "local[2]", "spark.driver.memory": "1g"}]
    assert dict(conf.getAll()).items() >= SECRETS.items()

"""What is done while the JVM of an embedded Spark starts."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pyspark import SparkConf, SparkContext

from firesteel.spark.session import session


class _Gateway:
    """A JVM whose process ends at once."""

    def __init__(self) -> None:
        self.proc = self
        self.stdin = self
        self.ended = False

    def close(self) -> None:
        self.ended = True

    def wait(self, timeout: float) -> None:
        assert timeout > 0


def test_the_jvm_starts_while_something_else_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    imported, gateway = threading.Event(), _Gateway()

    def launch(_conf: Any) -> Any:
        assert imported.wait(60)
        return gateway

    monkeypatch.setattr(session, "launch_gateway", launch)
    assert session._launch_gateway(SparkConf(loadDefaults=False), imported.set) is gateway
    assert not gateway.ended


@pytest.mark.parametrize("error", [ImportError, KeyboardInterrupt])
def test_the_jvm_is_ended_if_that_fails(monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    gateway = _Gateway()
    monkeypatch.setattr(session, "launch_gateway", lambda _conf: gateway)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_jvm", None)

    def fail() -> None:
        raise error

    with pytest.raises(error):
        session._launch_gateway(SparkConf(loadDefaults=False), fail)
    assert gateway.ended


def test_an_error_of_the_launch_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(_conf: Any) -> Any:
        raise RuntimeError("no Java")

    monkeypatch.setattr(session, "launch_gateway", launch)
    with pytest.raises(RuntimeError, match="no Java"):
        session._launch_gateway(SparkConf(loadDefaults=False), lambda: None)

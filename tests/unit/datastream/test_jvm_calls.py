"""Calls that concern Flink's JVM: accepted with a warning, or refused with what to use instead."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable

import pytest

from firesteel.common.errors import FiresteelWarning, InvalidProgramError
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.java_connectors import FlinkKafkaConsumer, FlinkKafkaProducer
from firesteel.datastream.functions import JavaFunctionWrapper
from firesteel.datastream.state_backend import CustomStateBackend, EmbeddedRocksDBStateBackend
from firesteel.process.pyflink_names import resolve_pyflink_names

Environment = StreamExecutionEnvironment


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda env: env.add_jars("file:///a.jar"), r"add_jars\('file:///a.jar'\) has no effect.*spark\.jars"),
        (lambda env: env.add_classpaths("file:///a"), r"add_classpaths\('file:///a'\) has no effect.*spark\.jars"),
        (lambda env: env.enable_changelog_state_backend(True), "there is no changelog"),
    ],
)
def test_a_warning_says_what_a_call_does(call: Callable[[Environment], object], text: str) -> None:
    with pytest.warns(FiresteelWarning, match=text) as warned:
        call(Environment.get_execution_environment())
    assert warned[0].filename == __file__


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: FlinkKafkaConsumer("topic", None, properties={}), r"KafkaSource\.builder"),
        (lambda: FlinkKafkaProducer("topic", None), r"KafkaSink\.builder"),
        (lambda: JavaFunctionWrapper("org.example.Map"), "in Python"),
        (lambda: CustomStateBackend("org.example.Backend"), "HashMapStateBackend"),
        (lambda: EmbeddedRocksDBStateBackend().set_options("org.example.Factory"), r"state\.backend\.rocksdb"),
        (lambda: Environment.get_execution_environment().register_cached_file("a", "b"), "add_python_archive"),
    ],
)
def test_an_error_says_what_to_use_instead(call: Callable[[], object], hint: str) -> None:
    with pytest.raises(InvalidProgramError, match=f"(?s)Hint: .*{hint}"):
        call()


def test_the_changelog_is_what_was_set() -> None:
    env = Environment.get_execution_environment()
    assert env.is_changelog_state_backend_enabled() is None
    assert env.enable_changelog_state_backend(False).is_changelog_state_backend_enabled() is False


def test_the_parallelism_of_local_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Environment, "_local_parallelism", None)
    env = Environment.get_execution_environment()
    assert env.get_default_local_parallelism() == (os.cpu_count() or 1)
    env.set_default_local_parallelism(3)
    assert env.get_parallelism() == 1
    assert Environment.get_execution_environment().get_parallelism() == 3
    with pytest.raises(InvalidProgramError):
        env.set_default_local_parallelism(0)


def test_a_connector_in_java_is_named_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyflink"]:
        monkeypatch.delitem(sys.modules, name)
    resolve_pyflink_names()
    try:
        with pytest.raises(ModuleNotFoundError, match=r"is implemented in Java\. Implement Source or Sink"):
            importlib.import_module("pyflink.datastream.connectors.pulsar")
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "pyflink"]:
            del sys.modules[name]

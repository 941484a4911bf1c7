"""firesteel.datastream.connectors has PyFlink's names, and loads what needs an extra when it is asked for."""

import subprocess
import sys

import pytest

from firesteel.datastream import connectors


def test_every_name_that_is_exported_is_there():
    assert {name: getattr(connectors, name).__name__ for name in connectors.__all__} == {
        name: name for name in connectors.__all__
    }
    assert set(connectors.__all__) <= set(dir(connectors))


def test_names_are_those_of_their_modules():
    from firesteel.datastream.connectors import JdbcSink, KafkaSource, jdbc, kafka

    assert JdbcSink is jdbc.JdbcSink
    assert KafkaSource is kafka.KafkaSource


def test_a_name_that_is_not_there():
    with pytest.raises(ImportError, match="PulsarSource"):
        from firesteel.datastream.connectors import PulsarSource  # noqa: F401


def test_nothing_is_loaded_before_it_is_asked_for():
    code = (
        "import sys, firesteel.datastream.connectors as c; assert c.FileSource; "
        "sys.exit(any('kafka' in module or 'jdbc' in module for module in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=180, check=False).returncode == 0


def test_no_extra_is_needed_to_import_the_names():
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['confluent_kafka', 'kafka', 'psycopg', 'pyarrow'])); "
        "from firesteel.datastream.connectors import *; JdbcSink.sink, KafkaSource.builder()"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=180, check=False).returncode == 0

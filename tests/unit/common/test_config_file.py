"""The configuration file."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from firesteel.cli.terminal.settings import settings_of
from firesteel.common.errors import FiresteelWarning
from firesteel.config import pipeline_options
from firesteel.config.configuration import Configuration
from firesteel.config.log_options import LOGGER_LEVELS
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.executor import execution_context
from firesteel.process.config_file import CONF_DIR_VARIABLE, ConfigFileError, find_config_file, read_config_file
from firesteel.testing import collect, test_environment


def settings(directory: Path, text: str) -> dict[str, str]:
    path = directory / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return read_config_file(path)


def test_flat_and_nested_keys_are_the_same(tmp_path: Path) -> None:
    text = """
parallelism.default: 4
execution:
  checkpointing:
    interval: 3 min
    dir: file:///tmp/ü  # a comment
  runtime-mode: STREAMING
state.backend:
  type: "rocksdb"
"""
    assert settings(tmp_path, text) == {
        "parallelism.default": "4",
        "execution.checkpointing.interval": "3 min",
        "execution.checkpointing.dir": "file:///tmp/ü",
        "execution.runtime-mode": "STREAMING",
        "state.backend.type": "rocksdb",
    }


def test_values_are_texts_and_options_convert_them(tmp_path: Path) -> None:
    text = "a: yes\nb: 1:30\nc: 0777\nd: 2026-01-01\ne: 'null'\nf: null\ng: ~\nh:\ni: ''\nj: |\n  two\n  lines\n"
    assert settings(tmp_path, text) == {
        "a": "yes",
        "b": "1:30",
        "c": "0777",
        "d": "2026-01-01",
        "e": "null",
        "i": "",
        "j": "two\nlines\n",
    }


def test_lists_and_maps(tmp_path: Path) -> None:
    text = """
list: [a, 'b;c', "d, e"]
blocks:
  - x
  - y
pipeline:
  global-job-parameters:
    limit: 5
    a.b: "x, y"
env.log.loggers: {my.rules: DEBUG}
"""
    found = Configuration.from_dict(settings(tmp_path, text))
    assert Configuration.parse_list_value(found.get_string("list", "")) == ["a", "b;c", "d, e"]
    assert Configuration.parse_list_value(found.get_string("blocks", "")) == ["x", "y"]
    assert found.get(pipeline_options.GLOBAL_JOB_PARAMETERS) == {"limit": "5", "a.b": "x, y"}
    assert found.get(LOGGER_LEVELS) == {"my.rules": "DEBUG"}


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_a_file_without_settings(tmp_path: Path, text: str) -> None:
    assert settings(tmp_path, text) == {}


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "'a' is set again; it was set in line 1"),
        ("a.b: 1\na:\n  c: 1\n  b: 2\n", 4, "'a.b' is set again; it was set in line 1"),
        ("a: 1\nb: [x, y\nc: 2\n", 3, "not valid YAML"),
        ("a: 1\n  b: 2\n", 2, "not valid YAML"),
        ("a: 1\n\tb: 2\n", 2, "not valid YAML"),
        ("- a\n- b\n", 1, "keys and values are expected"),
        ("just text\n", 1, "keys and values are expected"),
        ("[a, b]: 1\n", 1, "a key must be a text"),
        ("a: 1\n---\nb: 2\n", 2, "not valid YAML"),
        ("a: *nothing\n", 1, "not valid YAML"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    with pytest.raises(ConfigFileError) as error:
        settings(tmp_path, text)
    assert f"config.yaml, line {line}: {problem}" in str(error.value)


def test_an_alias_that_contains_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigFileError, match="contains itself"):
        settings(tmp_path, "a: &x\n  b: *x\n")


def test_where_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CONF_DIR_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert find_config_file() is None
    (tmp_path / "firesteel").mkdir()
    own = tmp_path / "firesteel" / "config.yaml"
    own.write_text("")
    assert find_config_file() == own
    monkeypatch.setenv(CONF_DIR_VARIABLE, str(tmp_path))
    with pytest.raises(ConfigFileError, match=r"config\.yaml: the file does not exist"):
        find_config_file()
    (tmp_path / "config.yaml").write_text("")
    assert find_config_file() == tmp_path / "config.yaml"


def test_the_program_overrides_the_command_line_and_that_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.yaml").write_text("parallelism.default: 2\npipeline.max-parallelism: 64\npipeline.name: file\n")
    monkeypatch.setenv(CONF_DIR_VARIABLE, str(tmp_path))
    with execution_context(Configuration.from_dict({"parallelism.default": "3", "pipeline.max-parallelism": "32"})):
        given = Configuration.from_dict({"pipeline.max-parallelism": "16"})
        env = StreamExecutionEnvironment.get_execution_environment(given)
    assert env.get_parallelism() == 3
    assert env.get_max_parallelism() == 16
    assert env.get_configuration().get(pipeline_options.PIPELINE_NAME) == "file"


def test_the_command_line_overrides_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.yaml").write_text("a: file\nb: file\nc: file\n")
    monkeypatch.setenv(CONF_DIR_VARIABLE, str(tmp_path))
    monkeypatch.setenv("FIRESTEEL_SETTINGS", '{"b": "variable", "c": "variable"}')
    assert settings_of(Namespace(settings=["c=command"])) == {"a": "file", "b": "variable", "c": "command"}


def test_unknown_keys_of_the_file_are_warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.yaml").write_text("parallelism:\n  defualt: 2\n")
    monkeypatch.setenv(CONF_DIR_VARIABLE, str(tmp_path))
    with pytest.warns(FiresteelWarning, match="Did you mean 'parallelism.default'"):
        assert collect(test_environment().from_collection([1])) == [1]

"""The configuration file, ``config.yaml``, with Flink's keys."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import FiresteelError
from firesteel.config.option_values import to_text

if TYPE_CHECKING:
    import yaml

__all__ = ["CONF_DIR_VARIABLE", "ConfigFileError", "file_settings", "find_config_file", "read_config_file"]

CONF_DIR_VARIABLE = "FIRESTEEL_CONF_DIR"
FILE_NAME = "config.yaml"
_log = logging.getLogger(__name__)


class ConfigFileError(FiresteelError):
    """A configuration file that does not exist or cannot be read."""

    def __init__(self, path: Path, line: int | None, problem: str, hint: str | None = None):
        super().__init__(f"{path}{'' if line is None else f', line {line}'}: {problem}.", hint=hint)


def find_config_file() -> Path | None:
    """The file in FIRESTEEL_CONF_DIR, which must exist, or else that of the user, if there is one."""
    directory = os.environ.get(CONF_DIR_VARIABLE)
    if directory:
        path = Path(directory).absolute() / FILE_NAME
        if not path.is_file():
            hint = f"{CONF_DIR_VARIABLE} is set to its directory."
            raise ConfigFileError(path, None, "the file does not exist", hint)
        return path
    base = os.environ.get("XDG_CONFIG_HOME")
    path = (Path(base) if base else Path.home() / ".config") / "firesteel" / FILE_NAME
    return path if path.is_file() else None


def file_settings() -> dict[str, str]:
    """The settings of the configuration file, if there is one."""
    path = find_config_file()
    if path is None:
        return {}
    _log.info("The configuration is read from %s.", path)
    return read_config_file(path)


def read_config_file(path: Path) -> dict[str, str]:
    """The settings of a file: ``a.b: v`` and nested keys are the same, a list is ``[x, y]``.

    All values are texts, which options convert: ``yes`` is not true, and ``1:30`` no number of seconds.
    """
    import yaml

    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ConfigFileError(
            path, None if mark is None else mark.line + 1, f"not valid YAML: {error.problem or error.context}"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigFileError(path, None, f"not valid YAML: {error}") from None
    except OSError as error:
        raise ConfigFileError(path, None, f"the file cannot be read: {error.strerror}") from None
    if root is None or (isinstance(root, yaml.ScalarNode) and not root.value):
        return {}
    try:
        entries = list(_entries(path, root, ""))
    except RecursionError:
        raise ConfigFileError(path, None, "an alias contains itself") from None
    settings: dict[str, str] = {}
    lines: dict[str, int] = {}
    for key, value, line in entries:
        if key in lines:
            raise ConfigFileError(path, line, f"'{key}' is set again; it was set in line {lines[key]}")
        lines[key] = line
        if value is not None:
            settings[key] = value if isinstance(value, str) else to_text(value)
    return settings


def _entries(path: Path, node: yaml.Node, prefix: str) -> Iterator[tuple[str, Any, int]]:
    """Full keys with their values and lines."""
    import yaml

    if not isinstance(node, yaml.MappingNode):
        raise ConfigFileError(path, _line(node), "keys and values are expected, such as 'parallelism.default: 4'")
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode) or not key_node.value:
            raise ConfigFileError(path, _line(key_node), "a key must be a text")
        key = f"{prefix}{key_node.value}"
        if isinstance(value_node, yaml.MappingNode) and key not in _map_keys():
            yield from _entries(path, value_node, f"{key}.")
        else:
            yield key, _value(path, value_node), _line(key_node)


def _value(path: Path, node: yaml.Node) -> Any:
    import yaml

    if isinstance(node, yaml.ScalarNode):
        # nothing, and what YAML calls null, leave the option unset
        return None if node.style is None and node.value in ("", "~", "null") else node.value
    if isinstance(node, yaml.SequenceNode):
        return [_value(path, each) or "" for each in node.value]
    return {key: value for key, value, _ in _entries(path, node, "") if value is not None}


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _map_keys() -> frozenset[str]:
    """The options whose values are maps."""
    from firesteel.config.options import all_options

    return frozenset(option.key for option in all_options() if option.type_name.startswith("map"))

"""The log of a Delta table: the actions of each version."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

__all__ = ["paths_in_log", "read_version"]

_LOG = "_delta_log"


def read_version(files: Any, version: int) -> list[dict[str, Any]] | None:
    """The actions of a version, in order; None if the log does not have it, any more or yet."""
    try:
        with files.open_input_file(f"{_LOG}/{version:020d}.json") as stream:
            text = stream.read()
    except FileNotFoundError:
        return None
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def paths_in_log(files: Any, paths: Sequence[str]) -> set[str]:
    """Those of the paths that a version has which is still in the log."""
    import pyarrow.fs as fs

    left = {path.encode() for path in paths}
    found: set[bytes] = set()
    for info in files.get_file_info(fs.FileSelector(_LOG, allow_not_found=True)):
        if not info.path.endswith(".json") or not left:
            continue
        with files.open_input_file(info.path) as stream:
            text = stream.read()
        there = {path for path in left if path in text}
        found |= there
        left -= there
    return {path.decode() for path in found}

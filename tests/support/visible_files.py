"""What a reader of a sink's directory sees while the sink writes there."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["visible_lines", "visible_parts"]


def visible_parts(directory: Path) -> list[Path]:
    """The files that are complete; hidden directories come and go meanwhile, and are not looked into."""
    found = []
    for place, directories, files in os.walk(directory):
        directories[:] = [name for name in directories if not name.startswith(".")]
        found += [Path(place, name) for name in files if name.startswith("part-")]
    return found


def visible_lines(directory: Path) -> list[str]:
    """All lines of those files."""
    return [line for path in visible_parts(directory) for line in path.read_text().splitlines()]

"""Programs of the systems that are compared, run as processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["json_lines"]


def json_lines(command: Sequence[str], path: Path | None = None) -> list[dict[str, Any]]:
    """The objects that a program prints, one a line; ``path`` comes first among the directories of commands."""
    # PyFlink starts a Python by its name
    environ = dict(os.environ) if path is None else {**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    found = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                found.append(json.loads(line))
                sys.stderr.write(line)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return found

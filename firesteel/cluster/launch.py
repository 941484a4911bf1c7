"""Launch settings of a JobManager process, read from the file that its starter has written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firesteel.common.errors import FiresteelError
from firesteel.config.configuration import Configuration

__all__ = ["APPLICATION", "SESSION", "Launch", "LaunchError"]

SESSION, APPLICATION = "session", "application"


class LaunchError(FiresteelError):
    """The launch settings are invalid."""


@dataclass(frozen=True)
class Launch:
    """A JobManager: for many jobs (session), or for those of one program that it runs itself (application)."""

    mode: str
    configuration: Configuration
    program: str | None = None
    module: str | None = None
    """The program is this module, instead of a script."""
    arguments: Sequence[str] = field(default_factory=tuple)

    @classmethod
    def read(cls, path: str) -> Launch:
        """Parses the file; LaunchError if it is invalid."""
        try:
            told: dict[str, Any] = json.loads(Path(path).read_bytes())
            mode, settings = told["mode"], told["configuration"]
            program, module = told.get("program"), told.get("module")
            arguments = tuple(told.get("arguments", ()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise LaunchError(f"{path} is not a valid launch file: {error}.") from None
        if mode not in (SESSION, APPLICATION) or (mode == APPLICATION) != (program is not None):
            raise LaunchError(f"{path}: the mode is session, or application with a program; got {mode!r}.")
        return cls(mode, Configuration.from_dict(settings), program, module, arguments)

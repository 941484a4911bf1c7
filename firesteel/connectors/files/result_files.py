"""A directory with the files of a result that later jobs read."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path

from firesteel.config import checkpointing_options
from firesteel.config.configuration import Configuration
from firesteel.filesystem.filesystem import join, scheme_of
from firesteel.filesystem.stores import Stores

__all__ = ["ResultFiles"]


class ResultFiles:
    """A new directory: beneath that of the checkpoints, which all hosts share, or a temporary one of this host."""

    def __init__(self, configuration: Configuration):
        self._stores = Stores.of(configuration)
        shared = configuration.get_optional(checkpointing_options.CHECKPOINTS_DIRECTORY)
        if shared is None:
            self.directory = tempfile.mkdtemp(prefix="firesteel-cache-")
        else:
            self.directory = join(shared, f"cache-{uuid.uuid4().hex}")
            self._stores.get(self.directory).makedirs(self.directory)

    def first_line(self) -> str | None:
        """A line of the files, if there is one and this host has the files."""
        for path in sorted(Path(self.directory).rglob("*")) if scheme_of(self.directory) == "file" else ():
            if path.is_file():
                with path.open(encoding="ascii") as lines:
                    return next(lines, None)
        return None

    def remove(self) -> None:
        """Removes the directory and all that is in it, as far as that is possible."""
        with suppress(Exception):  # a store that cannot be reached, perhaps when this process ends
            self._stores.get(self.directory).delete_tree(self.directory)
        shutil.rmtree(self.directory, ignore_errors=True)

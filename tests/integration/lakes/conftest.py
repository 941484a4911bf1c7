"""The libraries keep threads and files for as long as the process lives: they have them before the first test."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pyiceberg.utils.concurrent import ExecutorFactory

from tests.support.lakes import create_delta, delta_rows

os.environ.setdefault("PYICEBERG_MAX_WORKERS", "1")
ExecutorFactory.get_or_create().submit(int).result()
with tempfile.TemporaryDirectory() as directory:
    table = create_delta(Path(directory))
    delta_rows(table)
    table.files.get_file_info("t")

"""A real S3 service on a port of this host: moto's server in a process of its own."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from firesteel.config.configuration import Configuration
from firesteel.testing import eventually

__all__ = ["MIN_PART_BYTES", "S3Server", "running_s3_server", "skip_without_s3"]

ACCESS_KEY = "tester"
SECRET_KEY = "secret"
BUCKET = "checkpoints"
MIN_PART_BYTES = 65_536
"""Bytes of the smallest part of an upload that the service takes, but for the last one; S3 itself takes 5 MB."""
START_S = 120.0
_ADDRESS = re.compile(r"Running on (http://127\.0\.0\.1:\d+)\s")


class S3Server:
    """Knows where the service is and how to get in."""

    def __init__(self, endpoint: str, process: subprocess.Popen[bytes]):
        self.endpoint = endpoint
        self.process = process

    @property
    def settings(self) -> dict[str, str]:
        """What a job's configuration needs to use the service."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key": ACCESS_KEY,
            "s3.secret-key": SECRET_KEY,
            "s3.path.style.access": "true",
        }

    @property
    def configuration(self) -> Configuration:
        """The settings as a configuration."""
        return Configuration.from_dict(self.settings)

    def create_bucket(self, name: str = BUCKET) -> str:
        """Creates a bucket and gives its URI."""
        # moto asks for no signature to create one
        urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/{name}", method="PUT"), timeout=60).close()
        return f"s3://{name}"


def skip_without_s3() -> None:
    """Skips a test where the packages for S3 are not installed."""
    for package in ("s3fs", "moto", "flask"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs the package {package}: pip install 'firesteel[s3]' 'moto[server]'")


@contextmanager
def running_s3_server() -> Iterator[S3Server]:
    """Starts the service and ends it, by its own process."""
    skip_without_s3()
    with tempfile.TemporaryDirectory(prefix="s3-server-") as directory:
        log = Path(directory) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", "S3_UPLOAD_PART_MIN_SIZE": str(MIN_PART_BYTES)},
            )
        try:

            def endpoint() -> str:
                if process.poll() is not None:
                    raise RuntimeError(log.read_text())
                match = _ADDRESS.search(log.read_text())
                assert match is not None, log.read_text()
                return match.group(1)

            address = eventually(endpoint, timeout=START_S)
            # the loop that all stores of this process use from now on, with its descriptors
            importlib.import_module("fsspec.asyn").get_loop()
            yield S3Server(address, process)
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

"""Wheels made by hand, which need neither a build nor a network."""

from __future__ import annotations

import zipfile
from pathlib import Path

__all__ = ["write_wheel"]


def write_wheel(directory: Path, name: str, version: str, source: str) -> Path:
    """Writes a wheel with one module of that name and source."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}-{version}-py3-none-any.whl"
    information = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", source)
        wheel.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{information}/RECORD", "")
    return path

"""Java discovery for Spark, with an error that states what to install if there is none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from firesteel.common.errors import FiresteelError

__all__ = ["JavaNotFoundError", "require_java"]

MIN_VERSION = 17
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


class JavaNotFoundError(FiresteelError):
    """There is no Java, or too old a one."""


def require_java() -> int:
    """The major version of the Java that Spark will use."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not shutil.which(java):
        where = f" (JAVA_HOME is {home})" if home else ""
        raise JavaNotFoundError(
            f"Spark needs Java {MIN_VERSION} or newer and none was found{where}: install a JDK or JRE, for example "
            f"the package openjdk-{MIN_VERSION}-jre-headless, or set JAVA_HOME."
        )
    output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr  # noqa: S603
    match = _VERSION.search(output)
    major = 0
    if match is not None:
        major = int(match[1]) if match[1] != "1" else int(match[2] or 0)
    if major < MIN_VERSION:
        raise JavaNotFoundError(
            f"Spark needs Java {MIN_VERSION} or newer, but {java} is version {major}: install a newer JDK or JRE, "
            f"for example the package openjdk-{MIN_VERSION}-jre-headless, or set JAVA_HOME to one."
        )
    return major


def main() -> int:
    """Prints what is missing, for the Makefile: ``python -m firesteel.spark.session.java``."""
    try:
        require_java()
    except JavaNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

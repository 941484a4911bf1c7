"""Runs the programs with PyFlink and stores what they print: ``python tests/parity/record.py [--jars DIR] [NAME…]``.

Run it with a Python that has PyFlink 2.3 (apache-flink) and a JVM. A name is a path below ``programs`` without its
extension. The programs of ``formats`` need jars that PyFlink does not contain: flink-sql-avro, flink-sql-parquet and
flink-shaded-hadoop-2-uber, in a directory. All programs run in one process, which saves the start of a JVM for each.
Lines are stored in sorted order: streams have none.
"""

from __future__ import annotations

import argparse
import os
import re
import runpy
import subprocess
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
OUTPUTS = HERE / "outputs"
_LOGGED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (INFO|WARN) ")
"""Lines of Java's loggers."""
_BEGIN, _END, _FAILED = "<<<begin ", "<<<end ", "<<<failed "


def main(names: Sequence[str], jars: Path | None) -> int:
    """Records programs; returns 1 if one of them failed."""
    # PyFlink has no variable for other jars, but adds those of Hadoop to the class path
    settings = {} if jars is None else {"HADOOP_CLASSPATH": f"{jars.resolve()}/*"}
    names = names or sorted(path.relative_to(PROGRAMS).with_suffix("").as_posix() for path in PROGRAMS.rglob("*.py"))
    command = [sys.executable, __file__, "--run", *names]
    # the JVM runs a program called python
    environment = {**os.environ, **settings, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    recorded = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", env=environment) as process:
        assert process.stdout is not None
        for name, lines in _outputs(process.stdout):
            output = OUTPUTS / f"{name}.txt"
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")
            recorded.append(name)
    missing = [name for name in names if name not in recorded]
    print(f"{len(recorded)} recorded; failed: {', '.join(missing) or 'none'}")
    return bool(missing)


def _outputs(printed: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yields what each program that did not fail has printed, but empty lines: PyFlink's workers print some."""
    lines: list[str] = []
    for line in printed:
        line = line.removesuffix("\n")
        if line.startswith(_BEGIN):
            lines = []
        elif line.startswith(_END):
            yield line.removeprefix(_END), lines
        elif line and not _LOGGED.match(line):
            lines.append(line)


def _run(names: Sequence[str]) -> None:
    """Runs programs in this process; what they and the JVM print is between two lines of marks."""
    for name in names:
        print(f"{_BEGIN}{name}", flush=True)
        sys.argv = [f"{name}.py"]
        try:
            runpy.run_path(str(PROGRAMS / f"{name}.py"), run_name="__main__")
        except BaseException:
            traceback.print_exc()
            print(f"{_FAILED}{name}", flush=True)
        else:
            print(f"{_END}{name}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        _run(sys.argv[2:])
    else:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--jars", type=Path, help="a directory of jars")
        parser.add_argument("names", nargs="*")
        options = parser.parse_args()
        sys.exit(main(options.names, options.jars))

"""Python dependencies of jobs on a real embedded Spark: each job has its own."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import sysconfig
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firesteel.datastream import KeyedProcessFunction, RuntimeContext
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.runtime.dependencies.bundle import DependencyError
from firesteel.testing import eventually
from tests.support.jobs.endless import collecting, endless
from tests.support.wheels import write_wheel

DEADLINE_S = 240.0
BASE = Path(tempfile.gettempdir()) / f"firesteel-artifacts-{os.getuid()}"


def version(directory: Path, name: str) -> str:
    """A module ``flavour`` with that name, the same file name as of all others."""
    file = directory / name / "flavour.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"NAME = {name!r}\n")
    return str(file)


def meeting(directory: Path, own: str, other: str) -> Callable[[int], str]:
    """A function that goes on once the one of the other job runs as well."""

    def meet(_: int) -> str:
        import flavour  # type: ignore[import-not-found]

        (directory / own).touch()
        deadline = time.monotonic() + DEADLINE_S
        while not (directory / other).exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert (directory / other).exists()
        return str(flavour.NAME)

    return meet


def test_two_jobs_at_once_have_their_own_version_of_a_module(spark_env: Any, tmp_path: Path) -> None:
    results = []
    for own, other in (("one", "two"), ("two", "one")):
        env = spark_env(1)
        env.add_python_file(version(tmp_path / "modules", own))
        results.append(env.from_collection([1, 2]).map(meeting(tmp_path, own, other)).execute_and_collect(own))
    assert [list(result) for result in results] == [["one", "one"], ["two", "two"]]


@pytest.mark.parametrize("settings", [{"execution.runtime-mode": "BATCH"}, {"execution.exchange": "spark"}])
def test_batches_and_epochs_have_their_own_too(spark_env: Any, tmp_path: Path, settings: dict[str, str]) -> None:
    def name(number: int) -> tuple[int, str]:
        import flavour

        return number % 2, flavour.NAME

    for own in ("one", "two", "one"):  # workers that were used before are used again only for the same module
        env = spark_env(1, settings)
        env.add_python_file(version(tmp_path, own))
        stream = env.from_collection([1, 2]).map(name).key_by(lambda pair: pair[0])
        assert sorted(stream.reduce(lambda a, _: a).execute_and_collect(own)) == [(0, own), (1, own)]


def other_python(directory: Path) -> Path:
    """A zip archive of a virtual environment with its own prefix and the packages of this one."""
    place = directory / "made" / "env"
    venv.create(place, symlinks=True, with_pip=False)
    packages = next(place.glob("lib/python*/site-packages"))
    (packages / "shared.pth").write_text(f"{sysconfig.get_path('purelib')}\n{Path(__file__).parents[2]}\n")
    archive = directory / "python.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for path in sorted(place.rglob("*")):
            inside = path.relative_to(place.parent).as_posix()
            if path.is_symlink():
                link = zipfile.ZipInfo(inside)
                link.external_attr = 0o120777 << 16
                opened.writestr(link, str(path.readlink()))
            elif path.is_file():
                opened.write(path, inside)
    return archive


def test_archives_requirements_and_interpreter(spark_env: Any, tmp_path: Path) -> None:
    write_wheel(tmp_path / "wheels", "tiny_package", "2.5", "VERSION = '2.5'\n")
    (tmp_path / "requirements.txt").write_text("tiny_package>=2\n")
    (tmp_path / "words.txt").write_text("from an archive")
    with tarfile.open(tmp_path / "data.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "words.txt", "inner/words.txt")

    def look(_: int) -> tuple[Any, ...]:
        import tiny_package  # type: ignore[import-not-found]

        return tiny_package.VERSION, Path("words/inner/words.txt").read_text(), Path(sys.prefix).name, sys.prefix

    env = spark_env(1)
    env.set_python_requirements(str(tmp_path / "requirements.txt"), str(tmp_path / "wheels"))
    env.add_python_archive(str(tmp_path / "data.tar.gz"), "words")
    env.add_python_archive(str(other_python(tmp_path)))
    env.set_python_executable("python.zip/env/bin/python")
    ((installed, words, prefix, place),) = env.from_collection([1]).map(look).execute_and_collect()
    assert (installed, words, prefix) == ("2.5", "from an archive", "env")
    assert place.startswith(str(BASE))


class Recovering(KeyedProcessFunction):
    """Counts in state, and looks into the dependencies with each record."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))
        self.attempt = runtime_context.get_attempt_number()

    def process_element(self, value: int, ctx: Any) -> Any:
        import flavour
        import tiny_package

        count = (self.count.value() or 0) + 1
        self.count.update(count)
        found = flavour.NAME, tiny_package.VERSION, Path("words/words.txt").read_text()
        yield self.attempt, value, count, os.getpid(), found


def test_dependencies_are_there_when_a_job_is_restored_in_another_worker(spark_env: Any, tmp_path: Path) -> None:
    write_wheel(tmp_path / "wheels", "tiny_package", "3.0", "VERSION = '3.0'\n")
    (tmp_path / "requirements.txt").write_text("tiny_package\n")
    with zipfile.ZipFile(tmp_path / "words.zip", "w") as archive:
        archive.writestr("words.txt", "from an archive")
    settings = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "10 ms",
        "execution.checkpointing.interval": "50 ms",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
    }
    env = spark_env(1, settings)
    env.add_python_file(version(tmp_path / "modules", "recovered"))
    env.set_python_requirements(str(tmp_path / "requirements.txt"), str(tmp_path / "wheels"))
    env.add_python_archive(str(tmp_path / "words.zip"), "words")
    client, results = collecting(endless(env).key_by(lambda _: 0).process(Recovering()))
    found = ("recovered", "3.0", "from an archive")
    _, _, _, pid, first = next(results)
    assert first == found
    for name in ("modules", "wheels"):
        shutil.rmtree(tmp_path / name)
    (tmp_path / "words.zip").unlink()
    checkpoints = client._handle.checkpoint_statistics  # type: ignore[attr-defined]
    eventually(lambda: checkpoints()["counts"]["completed"] > 0, timeout=DEADLINE_S)
    os.kill(pid, signal.SIGKILL)
    attempt, value, count, other, second = next(result for result in results if result[0] > 0)
    assert (attempt, second) == (1, found)
    assert other != pid
    assert count == value + 1 > 1, "the state was not restored"
    client.cancel().result(DEADLINE_S)


def test_what_cannot_be_installed_is_an_error_before_the_job_starts(spark_env: Any, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("no_such_package_anywhere==1.0\n")
    (tmp_path / "wheels").mkdir()
    env = spark_env(1)
    env.set_python_requirements(str(tmp_path / "requirements.txt"), str(tmp_path / "wheels"))
    env.from_collection([1]).print()
    with pytest.raises(DependencyError, match="No matching distribution found for no_such_package_anywhere"):
        env.execute()


def test_an_interpreter_that_cannot_run_functions_is_refused(spark_env: Any, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", symlinks=True, with_pip=False)
    for executable, reason in [
        (str(tmp_path / "bare" / "bin" / "python"), "cannot import"),
        ("no-such-python", "does not exist"),
        ("/bin/false", "cannot run the job's functions"),
    ]:
        env = spark_env(1)
        env.set_python_executable(executable)
        env.from_collection([1]).print()
        with pytest.raises(DependencyError, match=reason):
            env.execute()


def test_a_cached_stream_is_computed_once(spark_env: Any, tmp_path: Path) -> None:
    calls = tmp_path / "calls"

    def counted(number: int) -> int:
        with calls.open("a") as file:
            file.write(".")
        return number * number

    env = spark_env(2, {"execution.runtime-mode": "BATCH"})
    cached = env.from_sequence(1, 3).map(counted).cache()
    assert sorted(cached.execute_and_collect()) == [1, 4, 9]
    assert sorted(cached.map(lambda square: -square).execute_and_collect()) == [-9, -4, -1]
    env.close()
    assert calls.read_text() == "..."

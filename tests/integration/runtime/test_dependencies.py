"""Python dependencies: collected from the configuration, extracted and installed on a machine, and removed again."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import tempfile
import threading
import zipfile
from pathlib import Path

import pytest

from firesteel.config.configuration import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.runtime.dependencies.bundle import Archive, DependencyBundle, DependencyError, DependencyFile
from firesteel.runtime.dependencies.collection import collect_dependencies, dependency_artifacts
from firesteel.runtime.dependencies.directories import held_directory
from firesteel.runtime.dependencies.extraction import extract
from firesteel.runtime.dependencies.prepared import prepare_dependencies
from tests.support.wheels import write_wheel


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))


def collected(**settings: str) -> DependencyBundle:
    return collect_dependencies(Configuration.from_dict({f"python.{key}": value for key, value in settings.items()}))


def test_the_keys_are_set_as_in_pyflink() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.add_python_file("a.py")
    env.add_python_file("b.zip")
    env.add_python_archive("one.zip")
    env.add_python_archive("two.zip", "second")
    env.set_python_requirements("requirements.txt")
    env.set_python_requirements("requirements.txt", "wheels")
    env.set_python_executable("one.zip/bin/python")
    settings = env.get_configuration().to_dict()
    assert {key: value for key, value in settings.items() if key.startswith("python.")} == {
        "python.files": "b.zip,a.py",
        "python.archives": "one.zip,two.zip#second",
        "python.requirements": "requirements.txt#wheels",
        "python.executable": "one.zip/bin/python",
    }


def test_files_are_searched_in_order_and_directories_are_shipped_whole(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.py").write_text(f"NAME = {name!r}")
    prepared = prepare_dependencies(
        dependency_artifacts(Configuration.from_dict({"python.files": f"one/same.py, file://{tmp_path}/two"}))
    )
    assert prepared is not None
    with prepared:
        found = [Path(entry, "same.py").read_text() for entry in prepared.search_path]
        assert found == ["NAME = 'one'", "NAME = 'two'"]
        assert (prepared.working_directory, prepared.executable) == (None, None)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_no_dependencies() -> None:
    assert dependency_artifacts(Configuration()) == {}
    assert prepare_dependencies({}) is None


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("files", "missing.py", "python.files: missing.py does not exist"),
        ("archives", "missing.zip#x", "python.archives: missing.zip does not exist"),
        ("archives", "missing.zip#../x", "not a directory below the working directory"),
        ("archives", "missing.zip#/x", "not a directory below the working directory"),
        ("requirements", "missing.txt", "python.requirements: missing.txt does not exist"),
        ("requirements", "here.txt#missing", "missing is not a local directory"),
    ],
)
def test_files_that_do_not_exist_are_an_error_of_the_program(tmp_path: Path, key: str, value: str, text: str) -> None:
    (tmp_path / "here.txt").write_text("")
    with pytest.raises(DependencyError, match=text):
        collected(**{key: value})


def zipped(members: dict[str, str], links: dict[str, str] | None = None) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in members.items():
            information = zipfile.ZipInfo(name)
            information.external_attr = (0o100755 if name.startswith("bin/") else 0o100644) << 16
            archive.writestr(information, text)
        for name, target in (links or {}).items():
            link = zipfile.ZipInfo(name)
            link.external_attr = 0o120777 << 16
            archive.writestr(link, target)
    return content.getvalue()


def test_permissions_and_links_of_archives_are_kept(tmp_path: Path) -> None:
    extract("env.zip", zipped({"bin/run": "text", "data.txt": "data"}, {"bin/python": "run"}), tmp_path / "env")
    assert os.access(tmp_path / "env/bin/python", os.X_OK)
    assert not (tmp_path / "env/data.txt").stat().st_mode & stat.S_IXUSR
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        tar.add(tmp_path / "env", "inner")
    extract("env.tgz", content.getvalue(), tmp_path / "tar")
    assert os.access(tmp_path / "tar/inner/bin/python", os.X_OK)
    assert (tmp_path / "tar/inner/bin/python").is_symlink()


def test_archives_do_not_write_elsewhere(tmp_path: Path) -> None:
    extract("a.zip", zipped({"../../escaped": "x", "/rooted": "y"}), tmp_path / "target")
    assert sorted(path.name for path in (tmp_path / "target").iterdir()) == ["escaped", "rooted"]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, str(tmp_path))
        archive.writestr("link/escaped", "x")
    with pytest.raises(DependencyError, match="outside of its directory"):
        extract("b.zip", content.getvalue(), tmp_path / "other")
    assert not (tmp_path / "escaped").exists()


@pytest.mark.parametrize("name", ["bad.zip", "bad.tar.gz"])
def test_what_is_no_archive_is_an_error(tmp_path: Path, name: str) -> None:
    bundle = DependencyBundle(archives=(Archive(name, name, b"nothing"),))
    with pytest.raises(DependencyError, match=f"{name} is not a (zip|tar) archive"):
        prepare_dependencies({"python-dependencies.bundle": bundle.pack()})
    assert list((tmp_path / "tmp").iterdir()) == []


def test_requirements_are_installed_once_for_jobs_that_differ_in_their_files(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "wheels", "tiny_package", "1.0", "VALUE = 1")
    bundle = DependencyBundle(requirements=b"tiny_package", wheels=(DependencyFile(wheel.name, wheel.read_bytes()),))
    with prepare_dependencies({"python-dependencies.bundle": bundle.pack()}) as one:  # type: ignore[union-attr]
        packages = Path(one.search_path[-1])
        assert (packages / "tiny_package.py").read_text() == "VALUE = 1"
        (packages / "mark").touch()
        with prepare_dependencies({"python-dependencies.bundle": bundle.pack(), "x.py": b""}) as two:  # type: ignore[union-attr]
            assert Path(two.search_path[-1], "mark").exists()
        assert packages.exists()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_the_output_of_pip_is_in_the_error(tmp_path: Path) -> None:
    bundle = DependencyBundle(requirements=b"no_such_package==9", wheels=())
    with pytest.raises(DependencyError, match="No matching distribution found for no_such_package==9"):
        prepare_dependencies({"python-dependencies.bundle": bundle.pack()})
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_directory_is_built_once_and_appears_complete(tmp_path: Path) -> None:
    built: list[Path] = []
    inside = threading.Barrier(4)

    def build(target: Path) -> None:
        built.append(target)
        (target / "a").touch()
        (target / "b").touch()

    def use() -> None:
        with held_directory("shared", build) as place:
            assert sorted(path.name for path in place.iterdir()) == ["a", "b"]
            inside.wait(60)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(built) == 1
    assert list((tmp_path / "tmp").iterdir()) == []

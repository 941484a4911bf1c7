"""Files that travel with a job are importable while it is loaded, and gone afterwards."""

from __future__ import annotations

import importlib
import io
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import zipfile
from pathlib import Path

import pytest

from firesteel.common.errors import FiresteelError
from firesteel.runtime.slot.artifacts import importable
from firesteel.testing import eventually


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def zipped(**files: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__in__", "/") + ".py", text)
    return content.getvalue()


def value_of(module: str) -> object:
    return importlib.import_module(module).VALUE


def test_modules_and_packages_are_found_and_forgotten(tmp_path: Path) -> None:
    artifacts = {
        "art_one.py": b"from art_two.inner import VALUE",
        "lib.zip": zipped(art_two__in____init__="", art_two__in__inner="VALUE = 2"),
    }
    before = list(sys.path)
    with importable(artifacts):
        assert value_of("art_one") == 2
        assert Path(str(sys.modules["art_one"].__file__)).is_file()
    assert sys.path == before
    assert not [name for name in sys.modules if name.startswith("art_")]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("art_one")
    assert list(tmp_path.iterdir()) == []


def test_another_job_s_module_of_the_same_name_is_another_module() -> None:
    for value in (1, 2, 3):
        with importable({"art_same.py": f"VALUE = {value}".encode()}):
            assert value_of("art_same") == value


def test_a_module_this_process_has_is_hidden_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "art_own.py").write_text("VALUE = 'ours'")
    monkeypatch.syspath_prepend(str(tmp_path / "own"))
    ours = importlib.import_module("art_own")
    with importable({"art_own.py": b"VALUE = 'theirs'"}):
        assert value_of("art_own") == "theirs"
    assert sys.modules.pop("art_own") is ours


@pytest.mark.parametrize("name", ["json.py", "firesteel.py"])
def test_what_all_need_cannot_be_replaced(name: str) -> None:
    module = name.removesuffix(".py")
    known = importlib.import_module(module)
    with importable({name: b"raise RuntimeError('never')"}):
        assert importlib.import_module(module) is known
    assert sys.modules[module] is known


def test_a_module_that_raises_leaves_nothing_behind(tmp_path: Path) -> None:
    before = list(sys.path)
    with pytest.raises(ZeroDivisionError), importable({"art_bad.py": b"1 / 0"}):
        importlib.import_module("art_bad")
    assert sys.path == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("../evil.py", b"", "not the name of a file"),
        ("..", b"", "not the name of a file"),
        ("a/b.py", b"", "not the name of a file"),
        ("bad.zip", b"no archive", "not a zip archive"),
    ],
)
def test_what_is_no_file_is_refused(tmp_path: Path, name: str, content: bytes, text: str) -> None:
    with pytest.raises(FiresteelError, match=text), importable({name: content}):
        pass
    assert not any(tmp_path.rglob("*.py"))


def test_members_of_an_archive_cannot_leave_their_directory(tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("../../art_escaped.py", "VALUE = 1")
    with importable({"lib.zip": content.getvalue()}):
        escaped = list(tmp_path.rglob("art_escaped.py"))
        assert all("lib.zip" in path.parent.name for path in escaped)
        assert escaped


def test_a_directory_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    base = tmp_path / f"firesteel-artifacts-{os.getuid()}"
    base.mkdir(mode=0o777)
    base.chmod(0o777)
    with pytest.raises(FiresteelError, match="of this user alone"), importable({"art_x.py": b""}):
        pass


def test_one_process_after_the_other_and_what_a_killed_one_has_left(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import sys, tempfile, time
        from firesteel.runtime.slot.artifacts import importable
        tempfile.tempdir = sys.argv[1]
        with importable({"art_shared.py": b"VALUE = 1"}):
            print("there", flush=True)
            time.sleep(600)
    """)
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == b"there\n"
            with importable({"art_shared.py": b"VALUE = 1"}):
                pass
            # the other one needs it still
            assert list(tmp_path.rglob("art_shared.py"))
        finally:
            other.kill()
    assert list(tmp_path.rglob("art_shared.py"))
    with importable({"art_next.py": b""}):
        eventually(lambda: not list(tmp_path.rglob("art_shared.py")))
    assert list(tmp_path.iterdir()) == []


def test_threads_take_turns() -> None:
    seen: list[object] = []

    def load(value: int) -> None:
        with importable({"art_turn.py": f"VALUE = {value}".encode()}):
            seen.append((value, value_of("art_turn")))

    threads = [threading.Thread(target=load, args=(value,)) for value in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(seen, key=str) == [(value, value) for value in range(8)]

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from firesteel.common import Configuration
from firesteel.rest.token import TokenFileError, make_token, read_or_create_token, read_token


def test_a_cluster_makes_its_own_and_keeps_it(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    token = read_or_create_token(Configuration(), directory)
    assert len(token) >= 32
    assert read_or_create_token(Configuration(), directory) == token
    assert stat.S_IMODE((directory / "token").stat().st_mode) == 0o600
    assert [path.name for path in directory.iterdir()] == ["token"]


def test_all_jobmanagers_of_a_cluster_have_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        tokens = set(pool.map(lambda _: read_or_create_token(Configuration(), tmp_path), range(8)))
    assert len(tokens) == 1


def test_two_clusters_have_two(tmp_path: Path) -> None:
    assert make_token(tmp_path / "a") != make_token(tmp_path / "b")


def test_a_configured_file_wins(tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.write_text("my-own-secret-token\n")
    file.chmod(0o400)
    configuration = Configuration.from_dict({"rest.token-file": str(file)})
    assert read_or_create_token(configuration, tmp_path / "cluster") == "my-own-secret-token"
    assert not (tmp_path / "cluster").exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o620])
def test_a_file_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "token"
    make_token(file)
    file.chmod(mode)
    with pytest.raises(TokenFileError) as caught:
        read_token(file)
    assert f"{mode:04o}" in caught.value.message
    assert f"chmod 600 {file}" in str(caught.value.hint)


@pytest.mark.parametrize("content", ["", "short", "with a space in the middle of it", "ü" * 30, "two\nlines" * 5])
def test_a_file_without_a_usable_token_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "token"
    file.touch(0o600)
    file.write_text(content)
    with pytest.raises(TokenFileError, match="no valid token"):
        read_token(file)


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "token"
    make_token(path)
    owner = path.stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    if owner == 0:
        read_token(path)  # root can read everything anyway
        os.chown(path, 12345, -1)
    with pytest.raises(TokenFileError, match="belongs to another user"):
        read_token(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(TokenFileError, match="Cannot read"):
        read_token(tmp_path / "nothing")

"""Follows the recipes of CONTRIBUTING.md in a copy of the repository: writes their files and runs their commands."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
PYTEST = "python -m pytest "
COPIED = ("firesteel", "tests", "docs", "scripts", "examples", "benchmarks")
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Recipe:
    """A section below "Recipes"."""

    title: str
    text: str

    def follow(self, directory: Path) -> list[Path]:
        """Writes the files and makes the changes; returns the files."""
        touched = []
        for match in FENCE.finditer(self.text):
            language, _, rest = match["info"].partition(" ")
            if rest.startswith("file: "):
                file = directory / rest.removeprefix("file: ")
                assert not file.exists(), f"{file} is not new"
                file.parent.mkdir(exist_ok=True)
                file.write_text(match["text"])
                touched.append(file)
            elif language == "diff":
                touched.append(apply(match["text"], directory))
        return touched

    def commands(self) -> list[str]:
        """What the recipe runs."""
        blocks = (match["text"] for match in FENCE.finditer(self.text) if match["info"] == "console")
        return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]


def apply(difference: str, directory: Path) -> Path:
    """Makes a change whose first line names the file, and returns the file. Lines of @@ separate parts of it."""
    header, _, body = difference.partition("\n")
    file = directory / header.removeprefix("--- ")
    text = file.read_text()
    for part in body.split("@@\n"):
        lines = [(line[:1] or " ", line[1:]) for line in part.splitlines()]
        old = "".join(f"{line}\n" for mark, line in lines if mark != "+")
        new = "".join(f"{line}\n" for mark, line in lines if mark != "-")
        assert text.count(old) == 1, f"{header}: this is there {text.count(old)} times:\n{old}"
        text = text.replace(old, new)
    file.write_text(text)
    return file


def recipes() -> list[Recipe]:
    _, _, text = PAGE.read_text().partition("\n## Recipes\n")
    parts = re.split(r"^### (.*)$", text, flags=re.MULTILINE)
    return [Recipe(title, section) for title, section in zip(parts[1::2], parts[2::2], strict=True)]


def run(words: Sequence[str], directory: Path) -> str:
    """Runs Python with arguments in a directory, and returns what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(directory)}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout[-8000:]}\n{done.stderr[-2000:]}"
    return done.stdout


@dataclass(frozen=True)
class TestCommand:
    """Tests that a recipe runs: ``python -m pytest PATHS -k EXPRESSION``."""

    __test__ = False

    paths: tuple[str, ...]
    expression: str

    @classmethod
    def parse(cls, command: str) -> TestCommand:
        words = shlex.split(command.removeprefix(PYTEST))
        if "-k" not in words:
            return cls(tuple(words), " or ".join(Path(path).name for path in words))
        at = words.index("-k")
        return cls((*words[:at], *words[at + 2 :]), words[at + 1])


def commands() -> list[str]:
    """Returns what the recipes run, each command once."""
    return list(dict.fromkeys(command for recipe in recipes() for command in recipe.commands()))


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a copy of the repository in which all recipes have been followed, and all pages generated."""
    directory = tmp_path_factory.mktemp("followed")
    for name in COPIED:
        shutil.copytree(ROOT / name, directory / name)
    for file in ROOT.glob("*.*"):
        if file.is_file():
            shutil.copy(file, directory)
    touched = [str(file) for recipe in recipes() for file in recipe.follow(directory) if file.suffix == ".py"]
    for arguments in (["check"], ["format", "--check"]):
        subprocess.run([sys.executable, "-m", "ruff", *arguments, *touched], cwd=directory, check=True, timeout=300)
    run(["scripts/generate_docs.py"], directory)
    return directory


def test_there_is_a_recipe_for_each_kind_of_extension() -> None:
    assert len(recipes()) == 6
    assert all(recipe.commands() for recipe in recipes())


def test_the_commands_of_the_recipes_succeed(followed: Path) -> None:
    """All of them in one process: to start one takes seconds."""
    tests = [TestCommand.parse(command) for command in commands() if command != "make docs"]
    paths = dict.fromkeys(path for command in tests for path in command.paths)
    expression = " or ".join(f"({command.expression})" for command in tests)
    printed = run(["-m", "pytest", "-rp", *paths, "-k", expression], followed)
    passed = [line for line in printed.splitlines() if line.startswith("PASSED ")]
    for command in tests:
        first = command.expression.partition(" ")[0]
        assert any(first in line for line in passed), f"{first} chooses no test"

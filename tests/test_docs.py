"""Runs the code and checks the commands and links in README.md, CONTRIBUTING.md and the pages beneath docs/.

- A ``python`` block runs; the blocks of a page run in order, in one namespace, without Spark.
- A ``text output`` block right behind one is what it prints.
- ``python no-run: <reason>`` is not run, for the reason given.
- ``python file: <path>`` is a file of a recipe, see test_contributing.py.
- Every command of a ``console`` or ``bash`` block must be one of those known here; cheap ones are run.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from firesteel.cluster.rest.request import Route
from firesteel.cluster.rest.router import Router
from firesteel.config.unknown_keys import unknown_keys
from firesteel.datastream import stream_execution_environment
from firesteel.process.config_file import read_config_file
from firesteel.rest.endpoints import all_endpoints
from firesteel.testing.in_process import InProcessExecutor

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import generate_docs  # noqa: E402

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
LANGUAGES = {"python", "text", "yaml", "console", "bash", "mermaid", "json", "diff", "sql"}

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


@dataclass(frozen=True)
class Block:
    """A fenced block: what follows the fence, what is inside, and the line it begins on."""

    info: str
    text: str
    line: int

    @property
    def language(self) -> str:
        return self.info.partition(" ")[0]

    @property
    def runs(self) -> bool:
        return self.info == "python"


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(match["info"].strip(), match["text"], text.count("\n", 0, match.start()) + 2)
        for match in FENCE.finditer(text)
    ]


def run(block: Block, page: Path, namespace: dict[str, object]) -> str:
    """Runs a block, with the page's own line numbers in errors, and returns what it prints."""
    tree = ast.parse(block.text)
    ast.increment_lineno(tree, block.line - 1)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, str(page), "exec"), namespace)
    return printed.getvalue()


@pages
def test_python_blocks_run(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(stream_execution_environment, "resolve_executor", lambda configuration: InProcessExecutor())
    monkeypatch.chdir(tmp_path)
    # what a program defines has the name of its main module, so that functions and classes travel by value
    namespace: dict[str, object] = {"__name__": "__main__"}
    blocks = blocks_of(page)
    for index, block in enumerate(blocks):
        if not block.runs:
            continue
        printed = run(block, page, namespace)
        following = blocks[index + 1] if index + 1 < len(blocks) else None
        if following is not None and following.info == "text output":
            assert printed == following.text, f"{page.name}:{block.line}"


@pages
def test_blocks_say_what_they_are(page: Path) -> None:
    for block in blocks_of(page):
        where = f"{page.name}:{block.line}"
        assert block.language in LANGUAGES, f"{where}: unknown language {block.info!r}"
        if block.language == "python" and not block.runs:
            assert re.fullmatch(r"python (no-run|file): .+", block.info), f"{where}: say why it does not run"


@pages
def test_configuration_files_have_known_keys(page: Path, tmp_path: Path) -> None:
    for block in blocks_of(page):
        if block.language == "yaml":
            (tmp_path / "config.yaml").write_text(block.text)
            assert not unknown_keys(read_config_file(tmp_path / "config.yaml")), f"{page.name}:{block.line}"


def commands_of(page: Path) -> Iterator[str]:
    for block in blocks_of(page):
        if block.language in ("console", "bash"):
            lines = block.text.replace("\\\n", " ").splitlines()
            prompt = "$ " if block.language == "console" else ""
            yield from (line[len(prompt) :] for line in lines if line.startswith(prompt) and line.strip())


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def check_command(command: str) -> None:
    """A command of the documentation must exist; if it is cheap, it must work."""
    words = [word for word in shlex.split(command, comments=True) if "=" not in word or word.startswith("-")]
    program = Path(words[0]).name
    if program == "make":
        assert set(words[1:]) <= make_targets(), command
        if words[1:] == ["help"]:
            run_command(*words)
    elif program in ("python", "python3") and words[1] == "-m":
        module = words[2]
        if module.startswith("examples."):
            assert (ROOT / f"{module.replace('.', '/')}.py").exists(), command
            if "--help" in words:
                run_command(sys.executable, *words[1:])
        else:
            known = ("benchmarks", "pytest", "firesteel.testing.programs", "firesteel.testing.simulation")
            assert module in known, f"unknown command: {command}"
    elif program in ("python", "python3"):
        assert (ROOT / words[1]).exists(), command
        run_command(sys.executable, *words[1:], "--check")
    elif program == "firesteel":
        # tests/unit/cli runs these commands; here it is enough that they exist
        verb = words[1:3] if words[1] == "savepoint" else words[1:2]
        run_command(sys.executable, "-m", "firesteel", *verb, "--help")
    elif program == "curl":
        check_endpoint(words)
    elif program == "openssl":
        assert words[1] in ("req", "x509"), f"unknown command: {command}"
    elif words[0] == ".":
        assert words[1:] == [".venv/bin/activate"], f"unknown command: {command}"
    elif program == "pip":
        assert words[1] in ("install", "download"), f"unknown command: {command}"
    else:
        pytest.fail(f"unknown command: {command}")


def check_endpoint(words: list[str]) -> None:
    """What curl asks a JobManager for must be there."""
    method = words[words.index("-X") + 1] if "-X" in words else "POST" if "-F" in words else "GET"
    path = re.sub(r"\$\w+", "0" * 32, urlsplit(words[-1]).path)
    Router(Route(endpoint, dict) for endpoint in all_endpoints()).match(method, path)


@cache
def run_command(*words: str) -> str:
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pages
def test_commands(page: Path) -> None:
    for command in commands_of(page):
        check_command(command)


def test_readme_has_exactly_three_commands() -> None:
    assert list(commands_of(ROOT / "README.md")) == ["pip install .", "make demo", "make test"]


def test_make_help_lists_every_target() -> None:
    listed = {line.split()[0] for line in run_command("make", "--no-print-directory", "help").splitlines()}
    rules = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert listed == {rule for rule in rules if not rule.startswith("check-")}


def anchors_of(page: Path) -> set[str]:
    text = FENCE.sub("", page.read_text())
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pages
def test_links_lead_somewhere(page: Path) -> None:
    for match in LINK.finditer(FENCE.sub("", page.read_text())):
        target = match["target"]
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors_of(linked), f"{page.name}: {target}"


@pytest.mark.parametrize("path", generate_docs.PAGES, ids=lambda path: path.name)
def test_generated_page_is_up_to_date(path: Path) -> None:
    assert path.read_text() == generate_docs.PAGES[path](), "run scripts/generate_docs.py"


def test_generated_notes_are_about_something() -> None:
    """A note on a name that PyFlink does not have, or that is done by now, would stay for ever."""
    page = generate_docs.api_page()
    for name in generate_docs.NOTES:
        module = next(m for m in generate_docs.MODULES if name.startswith(f"{m}."))
        assert f"- `{name.removeprefix(f'{module}.')}`: " in page, name

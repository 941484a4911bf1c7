"""Somebody who reads the output of the chaos job all the time, and notices whatever a reader must never see."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.chaos.stream import Expectations

__all__ = ["OutputReader", "Violation", "WatchingReader", "visible_files"]

POLL_S = 0.1
RECHECK_S = 1.0
SHOWN = 12
"""How many differences are shown."""


class Violation(AssertionError):
    """The output was wrong at some moment."""


@dataclass(frozen=True)
class SeenFile:
    size: int
    changed_ns: int
    inode: int
    content: int


class OutputReader:
    """Checks at every look: each line is a result that must be, and is there once; for every kind and group the
    results up to some number are there and none beyond; a file that was visible stays as it was."""

    def __init__(self, directory: Path, limit: Path):
        self.records = 0
        self.highest_index = -1
        """The latest input record whose sum is visible."""
        self._directory = directory
        self._limit = limit
        self._expected = Expectations()
        self._files: dict[str, SeenFile] = {}
        self._where: dict[tuple[str, int, int], str] = {}
        self._visible: dict[tuple[str, int], int] = defaultdict(int)
        """How many results of a kind and group are visible: if nothing is wrong, the first ones."""
        self._kinds: dict[str, int] = defaultdict(int)
        self._rechecked_at = 0.0

    @property
    def files(self) -> int:
        """How many files are visible."""
        return len(self._files)

    def count(self, kind: str) -> int:
        """How many results of a kind are visible."""
        return self._kinds[kind]  # asked from another thread than that which reads

    def look(self) -> None:
        """Reads what is new; raises a Violation if anything is wrong."""
        touched = self._read_new()
        while gaps := self._gaps(touched):
            # A listing is no snapshot: a file that came before another may have been passed by. The next one has it,
            # but perhaps another such file as well.
            new = self._read_new()
            if not new:
                raise Violation("results are visible although earlier ones are not:\n  " + "\n  ".join(gaps[:SHOWN]))
            touched |= new
        now = time.monotonic()
        if now >= self._rechecked_at + RECHECK_S:
            self._rechecked_at = now
            self._recheck(contents=False)

    def finish(self, events: int) -> None:
        """The job has ended after so many records: everything must be there, and as it was."""
        self.look()
        self._recheck(contents=True)
        expected = Expectations()
        expected.advance(events)
        expected.end()
        missing = [
            f"missing: {kind} {group} {number} {payload}"
            for (kind, group), payloads in expected.results.items()
            for number, payload in payloads.items()
            if (kind, group, number) not in self._where
        ]
        if missing:
            raise Violation(f"{len(missing)} results are missing:\n  " + "\n  ".join(missing[:SHOWN]))
        if len(expected) != self.records:
            raise Violation(f"{self.records} results are visible, {len(expected)} are right")

    def _read_new(self) -> set[tuple[str, int]]:
        touched: set[tuple[str, int]] = set()
        for path in visible_files(self._directory):
            if path not in self._files:
                touched |= self._read(path)
        return touched

    def _read(self, path: str) -> set[tuple[str, int]]:
        content, seen = _contents(path)
        self._files[path] = seen
        name = os.path.relpath(path, self._directory)
        if not content.endswith(b"\n"):
            raise Violation(f"{name} ends in the middle of a line: {content[-60:]!r}")
        touched = set()
        wrong = []
        for text in content.decode().splitlines():
            kind, group_text, number_text, payload = text.split(" ", 3)
            group, number = int(group_text), int(number_text)
            other = self._where.get((kind, group, number))
            if other is not None:
                wrong.append(f"twice: {text!r}, in {other} and in {name}")
                continue
            expected = self._payload(kind, group, number)
            if expected != payload:
                wrong.append(f"{text!r} in {name}, but expected {expected!r}")
                continue
            self._where[kind, group, number] = name
            self._visible[kind, group] += 1
            self._kinds[kind] += 1
            self.records += 1
            touched.add((kind, group))
            if kind == "sum":
                self.highest_index = max(self.highest_index, int(payload.partition("@")[2]))
        if wrong:
            raise Violation(f"{len(wrong)} wrong results:\n  " + "\n  ".join(wrong[:SHOWN]))
        return touched

    def _payload(self, kind: str, group: int, number: int) -> str | None:
        payload = self._expected.results[kind, group].get(number)
        if payload is None:
            limit, ended = self._limit.read_text().split()
            if int(limit) > self._expected.events:
                self._expected.advance(int(limit))
            if ended == "1":
                self._expected.end()
            payload = self._expected.results[kind, group].get(number)
        return payload

    def _gaps(self, groups: set[tuple[str, int]]) -> list[str]:
        found = []
        for kind, group in groups:
            visible = self._visible[kind, group]
            for position, number in enumerate(self._expected.results[kind, group]):
                if position >= visible:
                    break
                if (kind, group, number) not in self._where:
                    found.append(f"{kind} of {group}: {visible} are visible, but not number {number}")
                    break
        return found

    def _recheck(self, contents: bool) -> None:
        for path, seen in self._files.items():
            name = os.path.relpath(path, self._directory)
            try:
                status = Path(path).stat()
                now = (status.st_size, status.st_mtime_ns, status.st_ino)
                if now != (seen.size, seen.changed_ns, seen.inode):
                    raise Violation(f"{name} was {seen} when it became visible and is {now} now")
                if contents and _contents(path)[1] != seen:
                    raise Violation(f"{name} has other contents than when it became visible")
            except FileNotFoundError:
                raise Violation(f"{name} was visible and is gone") from None


class WatchingReader:
    """A reader in a thread of its own; ``violation`` is the first thing that was wrong."""

    def __init__(self, reader: OutputReader):
        self.reader = reader
        self.violation: Violation | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="chaos-reader", daemon=True)

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def stop(self) -> None:
        """Ends looking."""
        self._stop.set()
        self._thread.join(120)

    def _watch(self) -> None:
        while not self._stop.wait(POLL_S):
            try:
                self.reader.look()
            except Violation as violation:
                self.violation = violation
                return
            except Exception as error:
                self.violation = Violation(f"the output could not be read: {error!r}")
                return


def visible_files(directory: Path) -> Iterator[str]:
    """What a reader takes for output: files beneath a directory that are not hidden."""
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            yield from visible_files(Path(entry.path))
        else:
            yield entry.path


def _contents(path: str) -> tuple[bytes, SeenFile]:
    with Path(path).open("rb") as file:
        status = os.fstat(file.fileno())
        content = file.read()
    return content, SeenFile(len(content), status.st_mtime_ns, status.st_ino, hash(content))

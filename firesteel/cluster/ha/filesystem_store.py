"""Record store in a shared directory, with fencing: only the current leader can write.

Everything a leader writes lies in the directory of its term, and the next leader takes that away by renaming it before
it reads anything. A leader that does not know yet that it was replaced then writes to a path that is not there: the
file system refuses it at any time. ::

    epochs/7/leader.json        who leads, or led, in this term; stays for ever, and keeps the number taken
    epochs/7/live/              of a leader: lease, complete, jobs/, checkpoints/, results/
    epochs/7/sealed/            the same directory, after it was taken away
    jobs/<job id>/7-1/          files of jobs; see blobs

A takeover, by a candidate that takes the leader of term E for dead:

1. The candidate prepares a directory with ``leader.json`` and an empty ``live/``, and claims term E + 1 by renaming it
   to ``epochs/<E + 1>``. That fails if there is such a directory, which is never empty: one candidate wins, once.
2. The winner N seals all terms before its own: ``live`` becomes ``sealed``. From here on no leader before it, and no
   candidate that has claimed a lower number, can write anything.
3. It reads the newest of the sealed terms that is ``complete``. Claims without gaps (E + 1 is claimed only by one who
   has seen E) mean that this is the newest there can ever be below N.
4. It puts all those records into its own ``live``, durably.
5. It puts ``complete`` there, which makes its term the one to read. Now it leads.
6. It deletes what is left of the terms before, except for ``leader.json``.

If it dies, or is stopped and overtaken, after step 1, 2, 3 or 4, its term is not complete: the next one, which has
sealed it, reads the one that it would have read. After step 5 the next one reads its term, which has everything.
Nothing is deleted before step 6, and then only what is older than a complete term. A candidate that is stopped before
step 1 for however long claims a number that is taken, and keeps waiting. One that is stopped after step 1, overtaken,
and continues, finds its ``live`` gone in step 4 or 5; that it seals or deletes older terms in steps 2 and 6 changes
nothing, as those have been sealed, and are older than the complete one.

A record is written to a file of another name in ``live``, made durable, and renamed. That rename is the moment: before
it the record is not there, after it the next leader sees it, even if it seals the term at once. So the write has
happened if and only if the rename has succeeded. No descriptor of a directory is used to find a file, as it would find
it after the directory was renamed.
"""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from firesteel.cluster.ha.process_identity import ProcessIdentity
from firesteel.cluster.ha.records import KINDS, encode
from firesteel.cluster.ha.services import FencedError, HighAvailabilityError
from firesteel.process import fault_points

__all__ = ["FileSystemRecords", "Leader", "Observation", "Terms"]

_SUFFIX = ".json"
_LIVE, _SEALED = "live", "sealed"
_LEADER, _LEASE, _COMPLETE = "leader.json", "lease", "complete"
_CANDIDATE, _REMOVED = ".candidate-", ".removed-"


class Leader(msgspec.Struct, frozen=True):
    """Who has claimed a term."""

    address: str
    lease_duration: float
    """Seconds."""
    process: ProcessIdentity
    since: str = ""
    """A time, for people."""


@dataclass(frozen=True)
class Observation:
    """What can be seen of the newest term."""

    term: int = 0
    """0: there is none yet."""
    leader: Leader | None = None
    lease: bytes = b""
    is_live: bool = False
    is_complete: bool = False


class Terms:
    """The terms of a cluster; see the steps above."""

    def __init__(self, root: Path):
        self._root = root
        self._directory = root / "epochs"
        with _reported(root):
            # jobs are code, and a user who can write here can execute it
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._directory.mkdir(exist_ok=True)
            _sync(root)
            _sync(root.parent)

    def observe(self) -> Observation:
        """The newest term."""
        with _reported(self._root):
            term = max(self._numbers(), default=0)
            if term == 0:
                return Observation()
            directory = self._directory / str(term)
            leader = self._leader(directory)
            try:
                lease = (directory / _LIVE / _LEASE).read_bytes()
            except FileNotFoundError:
                lease = b""
            is_live = (directory / _LIVE).is_dir()
            return Observation(term, leader, lease, is_live, (directory / _LIVE / _COMPLETE).exists())

    def claim(self, term: int, leader: Leader) -> bool:
        """Step 1: whether this candidate has won a free term."""
        prepared = self._directory / f"{_CANDIDATE}{uuid.uuid4().hex}"
        try:
            with _reported(self._root):
                for kind in KINDS:
                    (prepared / _LIVE / kind).mkdir(parents=True)
                _write(prepared / _LIVE / _LEASE, b"claimed")
                _write(prepared / _LEADER, encode(leader))
                for directory in (*(prepared / _LIVE / kind for kind in KINDS), prepared / _LIVE, prepared):
                    _sync(directory)
                fault_points.reach("ha.claim.prepared")
                prepared.rename(self._directory / str(term))
                fault_points.reach("ha.claimed")
                _sync(self._directory)
        except HighAvailabilityError as error:
            number = getattr(error.__cause__, "errno", None)
            if number not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOENT):
                raise
            return False
        finally:
            shutil.rmtree(prepared, ignore_errors=True)
        return True

    def take_over(self, term: int, on_lost: Callable[[str], None]) -> FileSystemRecords:
        """Steps 2 to 6, after a term was claimed; FencedError if it was overtaken."""
        live = self._directory / str(term) / _LIVE
        records = FileSystemRecords(live, on_lost)
        earlier = sorted(number for number in self._numbers() if number < term)
        with _reported(self._root, live):
            for number in earlier:  # step 2
                self.seal(number)
                fault_points.reach("ha.sealed")
            # newest first
            bases = [self._directory / str(number) / _SEALED for number in reversed(earlier)]
            base = next((sealed for sealed in bases if (sealed / _COMPLETE).exists()), None)  # step 3
            if base is not None:
                self._copy(base, live)  # step 4
            fault_points.reach("ha.copied")
            _replace(live / _COMPLETE, b"")  # step 5
        fault_points.reach("ha.complete")
        self._remove_remains(earlier)  # step 6
        return records

    def seal(self, term: int) -> None:
        """Takes a term away from its leader; harmless if that has been done."""
        directory = self._directory / str(term)
        with suppress(FileNotFoundError):
            (directory / _LIVE).rename(directory / _SEALED)
            _sync(directory)

    def renew(self, term: int, content: bytes) -> None:
        """Shows that the leader of a term is alive; FencedError if it does not lead any more."""
        live = self._directory / str(term) / _LIVE
        with _reported(self._root, live):
            unfinished = live / f".{_LEASE}"
            # need not outlive the machine
            unfinished.write_bytes(content)
            unfinished.rename(live / _LEASE)

    def _numbers(self) -> list[int]:
        return [int(name) for name in os.listdir(self._directory) if name.isdecimal()]  # noqa: PTH208 - names

    def _leader(self, directory: Path) -> Leader | None:
        try:
            return msgspec.json.decode((directory / _LEADER).read_bytes(), type=Leader)
        except (FileNotFoundError, msgspec.DecodeError):
            # the leader is unknown: its lease counts
            return None

    def _copy(self, base: Path, live: Path) -> None:
        for kind in KINDS:
            for name in _record_files(base / kind):
                _link(base / kind / name, live / kind / name)
            _sync(live / kind)

    def _remove_remains(self, earlier: Iterable[int]) -> None:
        remains = [self._directory / str(number) / _SEALED for number in earlier]
        # candidates that died while they prepared; one that has not loses its claim, and tries again
        remains += self._directory.glob(f"{_CANDIDATE}*")
        for path in remains:
            with suppress(OSError):
                # at once, so that no reader sees half of it
                path.rename(self._directory / f"{_REMOVED}{uuid.uuid4().hex}")
        for path in self._directory.glob(f"{_REMOVED}*"):
            shutil.rmtree(path, ignore_errors=True)


class FileSystemRecords:
    """The records of one term, in ``live/<kind>/<name>.json``."""

    def __init__(self, live: Path, on_lost: Callable[[str], None]):
        self._live = live
        self._on_lost = on_lost
        self._numbers = itertools.count()

    def load(self) -> Mapping[str, bytes]:
        with _reported(self._live, self._live):
            return {
                f"{kind}/{name.removesuffix(_SUFFIX)}": (self._live / kind / name).read_bytes()
                for kind in KINDS
                for name in _record_files(self._live / kind)
            }

    def put(self, name: str, data: bytes, delete: Iterable[str] = ()) -> None:
        """Writes or replaces one record; then those go that it makes superfluous."""
        path = self._path(name)
        unfinished = path.with_name(f".{path.name}.{next(self._numbers)}")
        with self._fenced():
            directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                try:
                    _write(unfinished, data)
                    fault_points.reach("ha.record.written")
                    unfinished.rename(path)
                except OSError:
                    with suppress(OSError):
                        unfinished.unlink()
                    raise
                self._make_durable(directory, path)
            finally:
                os.close(directory)
        fault_points.reach("ha.record.stored")
        with suppress(OSError):  # if one stays, so do those behind it: their order matters
            for superfluous in delete:
                self._path(superfluous).unlink(missing_ok=True)
                fault_points.reach("ha.record.deleted")

    @contextmanager
    def _fenced(self) -> Iterator[None]:
        try:
            with _reported(self._live, self._live):
                yield
        except FencedError as error:
            self._on_lost(error.message)
            raise

    def _make_durable(self, directory: int, path: Path) -> None:
        """The record is there. By descriptor, as that works even if the directory was renamed meanwhile."""
        try:
            os.fsync(directory)
        except OSError as error:
            # no plain failure: the caller would then delete what the record points to, which the next leader may read
            raise FencedError(f"It is unknown whether {path} was written: {error}.") from error

    def _path(self, name: str) -> Path:
        kind, _, rest = name.partition("/")
        return self._live / kind / f"{rest}{_SUFFIX}"


@contextmanager
def _reported(root: Path, live: Path | None = None) -> Iterator[None]:
    """Turns an OSError into what it means: that another one leads, if ``live`` is gone; else that nothing works.

    A takeover renames ``live`` and leaves the term's directory. If that is gone too, the file system is away.
    """
    try:
        yield
    except OSError as error:
        if live is not None and isinstance(error, FileNotFoundError) and live.parent.is_dir():
            raise FencedError(f"Another JobManager is the leader: {live} was taken over.") from error
        raise HighAvailabilityError(
            f"The high-availability directory {root} cannot be used: {error.strerror or error}.",
            hint="All JobManagers must be able to write, rename and delete there; see high-availability.storageDir.",
        ) from error


def _record_files(directory: Path) -> list[str]:
    return sorted(name for name in os.listdir(directory) if name.endswith(_SUFFIX) and not name.startswith("."))  # noqa: PTH208


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _replace(path: Path, data: bytes) -> None:
    unfinished = path.with_name(f".{path.name}")
    unfinished.unlink(missing_ok=True)
    _write(unfinished, data)
    unfinished.rename(path)
    _sync(path.parent)


def _link(source: Path, target: Path) -> None:
    """The same file under another name: it is durable, and files are never changed."""
    try:
        os.link(source, target)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise
        _write(target, source.read_bytes())


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

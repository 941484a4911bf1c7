"""High availability in a shared directory: conformance, and leaders that die or stop in the middle of any step."""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from firesteel.cluster.ha.filesystem_election import FileSystemHighAvailability, FileSystemLeadership
from firesteel.cluster.ha.job_store import Retention
from firesteel.cluster.ha.services import ElectionClosedError, FencedError, HighAvailabilityError, Leadership
from firesteel.process import fault_points
from firesteel.testing import eventually
from tests.support.ha.conformance import Cluster, HighAvailabilityConformance, Member, content
from tests.support.ha.leader import LeaderProcess, job, job_id, result

LEASE_S = 0.3
"""Only where nobody else waits to lead while the leader is well: machines are slow at times."""
NEVER_S = 600.0
"""A lease that runs out in no test: whoever takes over must have known by other means."""

TAKEOVER = ["ha.claim.prepared", "ha.claimed", "ha.sealed", "ha.copied", "ha.complete"]
WRITE = ["ha.blobs.written", "ha.record.written", "ha.record.stored", "ha.record.deleted"]


class DirectoryCluster(Cluster):
    def __init__(self, directory: Path):
        super().__init__()
        self.directory = directory

    def make_services(self) -> FileSystemHighAvailability:
        return FileSystemHighAvailability(str(self.directory), NEVER_S, retention=Retention(5))

    def silence(self, member: Member) -> None:
        self.silence_newest()

    def silence_newest(self) -> None:
        """Whoever has claimed the newest term looks like a process that is gone."""
        terms = [int(path.name) for path in (self.directory / "epochs").iterdir() if path.name.isdecimal()]
        file = self.directory / "epochs" / str(max(terms)) / "leader.json"
        leader = msgspec.json.decode(file.read_bytes())
        leader["process"]["incarnation"] = "an earlier one"
        file.write_bytes(msgspec.json.encode(leader))


def _leadership(member: Member) -> FileSystemLeadership:
    assert isinstance(member.services, FileSystemHighAvailability)
    assert member.services._leadership is not None
    return member.services._leadership


class TestFileSystemHighAvailability(HighAvailabilityConformance):
    def make_cluster(self, request: pytest.FixtureRequest) -> DirectoryCluster:
        return DirectoryCluster(request.getfixturevalue("tmp_path"))

    def wake(self, cluster: Cluster, member: Member) -> None:
        _leadership(member)._lease.tick()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DirectoryCluster]:
    cluster = DirectoryCluster(tmp_path)
    yield cluster
    cluster.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., LeaderProcess]]:
    started: list[LeaderProcess] = []

    def start(lease: float = NEVER_S, faults: str = "") -> LeaderProcess:
        environment = {fault_points.VARIABLE: faults}
        started.append(LeaderProcess("filesystem", str(tmp_path), str(lease), environment=environment))
        return started[-1]

    yield start
    for each in started:
        each.close()


def _fill(leadership: Leadership) -> None:
    store = leadership.store
    for number in (1, 2, 3):
        store.put(job(number))
        store.add_checkpoint(job_id(number), number, f"/chk-{number}")
    store.end(result(3))


class Stop:
    """Stops the first thread that comes to a place, as SIGSTOP would, until it is told to go on."""

    def __init__(self, point: str):
        self.reached = threading.Event()
        self._point = point
        self._go_on = threading.Event()

    def __call__(self, point: str) -> None:
        if point == self._point and not self.reached.is_set():
            self.reached.set()
            assert self._go_on.wait(120)

    def go_on(self) -> None:
        self._go_on.set()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.go_on()


# -- processes that die -----------------------------------------------------------------------------


@pytest.mark.parametrize("point", TAKEOVER)
def test_a_candidate_that_dies_while_it_takes_over_loses_nothing(
    cluster: DirectoryCluster, start: Callable[..., LeaderProcess], point: str
) -> None:
    _, leadership = cluster.leading()
    _fill(leadership)
    expected = content(leadership.store)
    leadership.resign()
    dying = start(faults=f"{point}=kill")
    assert dying.process.wait(60) == -signal.SIGKILL
    _, after = cluster.leading()
    assert content(after.store) == expected
    after.store.add_checkpoint(job_id(1), 9, "/chk-9")
    assert {each.name for each in (cluster.directory / "epochs").iterdir()} == {str(n + 1) for n in range(after.term)}


@pytest.mark.parametrize("point", WRITE)
def test_a_leader_that_dies_while_it_writes_loses_nothing_it_has_kept(
    cluster: DirectoryCluster, start: Callable[..., LeaderProcess], point: str
) -> None:
    _, leadership = cluster.leading()
    _fill(leadership)
    before = content(leadership.store)
    leadership.resign()
    dying = start(faults=f"{point}=kill")
    dying.term()
    dying.send("end" if point == "ha.record.deleted" else "put", 2 if point == "ha.record.deleted" else 4)
    assert dying.process.wait(60) == -signal.SIGKILL
    _, after = cluster.leading()
    found = content(after.store)
    if point in ("ha.blobs.written", "ha.record.written"):
        assert found == before
    elif point == "ha.record.stored":
        assert found["jobs"] == [*before["jobs"], job(4)]
    else:
        assert found["jobs"] == [job(1)]
        assert found["results"] == [result(3), result(2)]
    on_disk = {path.parent.name for path in (cluster.directory / "jobs").glob("*/*")}
    assert on_disk == {each.job_id for each in found["jobs"]}, "files of jobs that are not kept are deleted"


def test_a_leader_that_was_killed_is_missed_at_once(
    cluster: DirectoryCluster, start: Callable[..., LeaderProcess]
) -> None:
    leader = start(NEVER_S)
    term = leader.term()
    assert leader.ask("put", 1) is None
    waiting = cluster.waiting(cluster.join())
    leader.close()
    after = waiting.result(60)
    assert after.term == term + 1
    assert list(after.store.job_ids()) == [job_id(1)]


# -- processes and threads that stop, and go on -----------------------------------------------------


def test_a_leader_that_was_stopped_and_goes_on_is_fenced(
    cluster: DirectoryCluster, start: Callable[..., LeaderProcess]
) -> None:
    leader = start(LEASE_S)
    leader.term()
    assert leader.ask("put", 1) is None
    assert leader.ask("add_checkpoint", job_id(1), 1, "/chk-1") is None
    os.kill(leader.pid, signal.SIGSTOP)
    _, after = cluster.leading()
    os.kill(leader.pid, signal.SIGCONT)
    assert leader.ask("add_checkpoint", job_id(1), 2, "/chk-2") == "FencedError"
    assert leader.ask("put", 2) == "FencedError"
    assert leader.ask("lost") is True
    assert leader.ask("is_valid") is False
    assert list(after.store.checkpoints(job_id(1))) == [(1, "/chk-1")]
    assert after.is_valid()


@pytest.mark.parametrize("point", TAKEOVER)
def test_a_candidate_that_stops_while_it_takes_over_and_goes_on_does_no_harm(
    cluster: DirectoryCluster, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    _, leadership = cluster.leading()
    _fill(leadership)
    leadership.resign()
    stop = Stop(point)
    monkeypatch.setattr(fault_points, "reach", stop)
    slow = cluster.join()
    with stop:
        stopped = cluster.waiting(slow)
        assert stop.reached.wait(60)
        cluster.silence_newest()
        _, after = cluster.leading()
        after.store.add_checkpoint(job_id(1), 8, "/chk-8")
        stop.go_on()
        # it finds out, and waits again
        slow.services.close()
        assert isinstance(stopped.exception(60), ElectionClosedError)
        after.store.add_checkpoint(job_id(1), 9, "/chk-9")
        assert after.is_valid()
    expected = content(after.store)
    assert expected["checkpoints"][job_id(1)] == [(1, "/chk-1"), (8, "/chk-8"), (9, "/chk-9")]
    assert [each.job_id for each in expected["jobs"]] == [job_id(1), job_id(2)]
    after.resign()
    _, last = cluster.leading()
    assert content(last.store) == expected


@pytest.mark.parametrize("point", ["ha.blobs.written", "ha.record.written", "ha.record.stored"])
def test_a_write_that_stops_and_goes_on_has_happened_or_has_not(
    cluster: DirectoryCluster, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    first, old = cluster.leading()
    _fill(old)
    before = [each.job_id for each in content(old.store)["jobs"]]
    stop = Stop(point)
    monkeypatch.setattr(fault_points, "reach", stop)
    with ThreadPoolExecutor(1) as thread, stop:
        written = thread.submit(old.store.put, job(4))
        assert stop.reached.wait(60)
        cluster.silence(first)
        _, after = cluster.leading()
        stop.go_on()
        if point == "ha.record.stored":
            assert written.result(60) is None
            before.append(job_id(4))
        else:
            assert isinstance(written.exception(60), FencedError)
            assert first.lost
    assert list(after.store.job_ids()) == before
    assert [after.store.load(each).job_id for each in before] == before


def test_a_takeover_that_another_one_overtakes_reads_what_the_first_has_kept(
    cluster: DirectoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three generations: the second is stopped after it has sealed, the third leads, the fourth reads the third."""
    _, leadership = cluster.leading()
    _fill(leadership)
    leadership.resign()
    stop = Stop("ha.copied")
    with monkeypatch.context() as patch, stop:
        patch.setattr(fault_points, "reach", stop)
        slow = cluster.join()
        stopped = cluster.waiting(slow)
        assert stop.reached.wait(60)
        second = next(path for path in (cluster.directory / "epochs").iterdir() if (path / "live").exists())
        (second / "live").rename(second / "sealed")
        _, third = cluster.leading()
        third.store.end(result(1))
        third.resign()
        slow.services.close()
        stop.go_on()
        assert stopped.exception(60) is not None
    _, fourth = cluster.leading()
    assert list(fourth.store.job_ids()) == [job_id(2)]
    assert [each.job_id for each in fourth.store.results()] == [job_id(3), job_id(1)]


def test_what_a_dead_leader_has_left_of_a_job_is_not_taken_for_the_next_one_of_its_id(
    cluster: DirectoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, leadership = cluster.leading()
    for number in (1, 2):
        leadership.store.put(job(number))
        leadership.store.add_checkpoint(job_id(number), 7, "/of-the-first-run")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", _fail)
        leadership.store.end(replace(result(1), ended_at=0))
    leadership.resign()
    _, second = cluster.leading()
    assert list(second.store.job_ids()) == [job_id(2)]
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", _fail)
        second.store.put(job(1))
    second.resign()
    _, third = cluster.leading()
    assert list(third.store.job_ids()) == [job_id(2), job_id(1)]
    assert not third.store.checkpoints(job_id(1))
    assert not third.store.results()
    third.store.add_checkpoint(job_id(1), 1, "/of-the-second-run")
    third.store.end(result(2))
    third.resign()
    _, fourth = cluster.leading()
    assert list(fourth.store.checkpoints(job_id(1))) == [(1, "/of-the-second-run")]
    records = cluster.directory.glob("epochs/*/live/*/*.json")
    assert sorted(path.parent.name for path in records) == ["checkpoints", "jobs", "results"]


def _fail(*_: object, **__: object) -> None:
    raise OSError(5, "Input/output error")


# -- what a directory may do to one -----------------------------------------------------------------


def test_a_directory_that_cannot_be_one_is_named(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.touch()
    with pytest.raises(HighAvailabilityError, match="file"):
        FileSystemHighAvailability(str(place / "ha"), NEVER_S)


@contextmanager
def away(directory: Path) -> Iterator[None]:
    """The directory is gone, as if it were not mounted."""
    elsewhere = directory.with_name(f"{directory.name}-away")
    directory.rename(elsewhere)
    try:
        yield
    finally:
        elsewhere.rename(directory)


def test_a_directory_that_is_away_for_a_moment_does_not_end_leadership(cluster: DirectoryCluster) -> None:
    """Nobody has taken it away from this leader alone, as is so when another one leads."""
    member, leadership = cluster.leading()
    leadership.store.put(job(1))
    with away(cluster.directory):
        _leadership(member)._lease.tick()
        with pytest.raises(HighAvailabilityError):
            leadership.store.add_checkpoint(job_id(1), 1, "/chk-1")
    _leadership(member)._lease.tick()
    leadership.store.add_checkpoint(job_id(1), 2, "/chk-2")
    assert [number for number, _ in leadership.store.checkpoints(job_id(1))] == [2]
    assert leadership.is_valid()
    assert member.lost == []


def test_a_standby_waits_for_a_directory_that_is_away(
    cluster: DirectoryCluster, caplog: pytest.LogCaptureFixture
) -> None:
    _, first = cluster.leading()
    waiting = cluster.waiting(cluster.join())
    eventually(waiting.running)
    with away(cluster.directory):
        eventually(lambda: waiting.done() or "cannot determine the leader" in caplog.text)
        assert not waiting.done()
    cluster.silence_newest()
    assert waiting.result(60).term > first.term


def test_a_write_that_fails_changes_nothing(cluster: DirectoryCluster) -> None:
    member, leadership = cluster.leading()
    store = leadership.store
    _fill(leadership)
    expected = content(store)
    fault_points.arm("ha.record.written=raise")
    try:
        with pytest.raises(HighAvailabilityError):
            store.put(job(4))
        with pytest.raises(HighAvailabilityError):
            store.add_checkpoint(job_id(1), 2, "/chk-2")
        with pytest.raises(HighAvailabilityError):
            store.end(result(1))
    finally:
        fault_points.arm("")
    assert content(leadership.store) == expected
    assert member.lost == []
    leadership.resign()
    _, after = cluster.leading()
    assert content(after.store) == expected


def test_a_write_of_which_nothing_is_known_ends_leadership(
    cluster: DirectoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    member, leadership = cluster.leading()
    leadership.store.put(job(1))
    sync = os.fsync

    def fail_for_directories(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(5, "Input/output error")
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail_for_directories)
        with pytest.raises(FencedError):
            leadership.store.add_checkpoint(job_id(1), 1, "/chk-1")
    assert len(member.lost) == 1
    assert not leadership.is_valid()


def test_records_are_copied_where_files_cannot_be_linked(
    cluster: DirectoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    _, leadership = cluster.leading()
    _fill(leadership)
    expected = content(leadership.store)
    leadership.resign()
    _, after = cluster.leading()
    assert content(after.store) == expected


def test_files_of_a_job_that_were_changed_are_not_run(cluster: DirectoryCluster) -> None:
    _, leadership = cluster.leading()
    leadership.store.put(job(1))
    (file,) = cluster.directory.glob("jobs/*/*/job.pickle")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(HighAvailabilityError, match=r"job\.pickle"):
        leadership.store.load(job_id(1))
    file.unlink()
    with pytest.raises(HighAvailabilityError, match="missing"):
        leadership.store.load(job_id(1))


def test_a_record_that_cannot_be_read_is_named_and_others_may_lead(cluster: DirectoryCluster) -> None:
    _, leadership = cluster.leading()
    leadership.store.put(job(1))
    (record,) = cluster.directory.glob("epochs/*/live/jobs/*.json")
    record.write_text("{", encoding="utf-8")
    leadership.resign()
    with pytest.raises(HighAvailabilityError, match=job_id(1)):
        cluster.leading()


def test_only_the_owner_may_look(cluster: DirectoryCluster) -> None:
    place = cluster.directory / "new"
    FileSystemHighAvailability(str(place), NEVER_S)
    assert place.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\0b"])
def test_a_file_name_cannot_leave_its_directory(cluster: DirectoryCluster, name: str) -> None:
    _, leadership = cluster.leading()
    submission = job(1)
    object.__setattr__(submission, "artifacts", {name: b""})
    with pytest.raises(HighAvailabilityError):
        leadership.store.put(submission)
    object.__setattr__(submission, "job_id", "../x")
    with pytest.raises(HighAvailabilityError):
        leadership.store.put(submission)

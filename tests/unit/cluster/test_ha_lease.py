"""When a lease is valid, and when a candidate takes the leader for dead: by clocks that a test moves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firesteel.cluster.ha.filesystem_election import LeaseObserver
from firesteel.cluster.ha.filesystem_store import Leader, Observation
from firesteel.cluster.ha.lease import Lease
from firesteel.cluster.ha.process_identity import ProcessIdentity, this_process
from firesteel.cluster.ha.services import FencedError
from tests.support.clocks import NoWallClock

LEADER = Leader("host:1", 4.0, this_process())
SEEN = Observation(1, LEADER, b"1", is_live=True, is_complete=True)


class Claim:
    """What a lease renews."""

    def __init__(self) -> None:
        self.now = 0.0
        self.error: Exception | None = None
        self.lost: list[str] = []
        self.lease = Lease(10.0, self._renew, clock=lambda: self.now, concurrency=NoWallClock())
        self.lease.announce_to(self.lost.append)

    def _renew(self) -> None:
        if self.error is not None:
            raise self.error


def test_a_lease_is_valid_for_its_duration() -> None:
    claim = Claim()
    claim.now = 9.9
    assert claim.lease.is_valid()
    claim.now = 10.0
    assert not claim.lease.is_valid()
    assert claim.lost == []


def test_a_renewal_counts_from_when_it_began() -> None:
    claim = Claim()
    claim.now = 5.0

    def slowly() -> None:
        claim.now = 8.0

    claim.lease._renew = slowly
    claim.lease.tick()
    claim.now = 14.9
    assert claim.lease.is_valid()
    claim.now = 15.0
    assert not claim.lease.is_valid()


def test_a_renewal_that_fails_is_tried_until_the_lease_has_run_out() -> None:
    claim = Claim()
    claim.error = OSError("no space")
    claim.now = 9.0
    claim.lease.tick()
    assert claim.lease.is_valid()
    claim.now = 10.0
    claim.lease.tick()
    assert len(claim.lost) == 1
    assert "no space" in claim.lost[0]
    claim.error = None
    claim.lease.tick()
    assert not claim.lease.is_valid(), "what is lost stays lost"


def test_a_renewal_that_succeeds_late_makes_it_valid_again_with_the_next() -> None:
    claim = Claim()
    claim.now = 60.0
    assert not claim.lease.is_valid()
    claim.lease.tick()
    assert not claim.lease.is_valid(), "another one may be about to take over"
    claim.lease.tick()
    assert claim.lease.is_valid()
    assert claim.lost == []


def test_a_lease_that_another_one_took_is_lost_at_once_and_told_once() -> None:
    claim = Claim()
    claim.error = FencedError("another one leads")
    claim.lease.tick()
    claim.lease.tick()
    claim.lease.lose("again")
    assert claim.lost == ["another one leads"]
    assert not claim.lease.is_valid()


def test_a_lease_that_is_suspended_is_not_valid_until_renewed() -> None:
    claim = Claim()
    claim.lease.suspend()
    assert not claim.lease.is_valid()
    claim.lease.tick()
    assert claim.lease.is_valid()


def test_a_lease_that_was_ended_on_purpose_tells_nobody() -> None:
    claim = Claim()
    claim.lease.end()
    claim.lease.lose("late")
    assert claim.lost == []
    assert not claim.lease.is_valid()


def test_leadership_that_was_lost_before_it_began_does_not_begin() -> None:
    lease = Lease(10.0, lambda: None)
    lease.lose("overtaken")
    with pytest.raises(FencedError, match="overtaken"):
        lease.announce_to(lambda _reason: None)


def test_a_leader_that_is_silent_for_the_duration_is_dead() -> None:
    observer = LeaseObserver()
    assert [observer.is_free(now, SEEN) for now in (0.0, 1.0, 2.0, 3.0, 3.9, 4.0)] == [False] * 5 + [True]


def test_a_leader_that_renews_is_not() -> None:
    observer = LeaseObserver()
    for now in range(100):
        assert not observer.is_free(now * 3.0, replace(SEEN, lease=str(now).encode()))


def test_the_next_leader_gets_all_its_time() -> None:
    observer = LeaseObserver()
    for now in (0.0, 1.0, 2.0, 3.0):
        assert not observer.is_free(now, SEEN)
    assert not observer.is_free(4.0, replace(SEEN, term=2))
    assert not observer.is_free(7.9, replace(SEEN, term=2))


def test_a_candidate_that_was_stopped_itself_watches_on_before_it_decides() -> None:
    observer = LeaseObserver()
    assert not observer.is_free(0.0, SEEN)
    assert not observer.is_free(3600.0, SEEN)
    assert not observer.is_free(3600.1, replace(SEEN, lease=b"2"))


@pytest.mark.parametrize(
    "seen",
    [
        Observation(),
        replace(SEEN, is_live=False, lease=b""),
        replace(
            SEEN,
            leader=Leader(
                "host:1",
                4.0,
                ProcessIdentity("host", this_process().boot_id, this_process().pid_namespace, 2**22 + 1, "1", "x"),
            ),
        ),
    ],
    ids=["nobody", "resigned", "gone"],
)
def test_nobody_waits_for_a_leader_that_is_known_to_be_gone(seen: Observation) -> None:
    assert LeaseObserver().is_free(0.0, seen)

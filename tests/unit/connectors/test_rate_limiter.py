from __future__ import annotations

import itertools
import math
import pickle

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.base.rate_limiter import (
    MAX_BURST_S,
    MIN_PAUSE_S,
    PerSecondRateLimiter,
    RateLimiterStrategy,
)

# A busy machine is no failure.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def follow(limiter, clock, seconds, wanted=10**9):
    """Asks whenever the limiter says to; returns (time since the beginning, permits) of each grant."""
    begin = clock.now
    grants = []
    while clock.now < begin + seconds:
        granted = limiter.acquire(wanted)
        if granted:
            grants.append((clock.now - begin, granted))
        clock.now = max(limiter.available_at(), clock.now)
    return grants


@pytest.mark.parametrize("rate", [0.5, 1, 3, 10, 999, 1000, 1001, 5000, 123_456, 1_000_000])
def test_the_rate_is_kept_over_time(fakes, rate):
    clock = fakes.Clock()
    grants = follow(PerSecondRateLimiter(rate, clock), clock, 20)
    total = sum(granted for _, granted in grants)
    assert total == pytest.approx(20 * rate, abs=max(2, rate * 2 * MIN_PAUSE_S))


@patient
@given(rate=st.floats(0.1, 1e6), starts_at=st.floats(0, 1e6), jumps=st.lists(st.floats(0, 5), max_size=50))
def test_never_ahead_of_the_schedule_and_no_long_burst(fakes, rate, starts_at, jumps):
    clock = fakes.Clock(starts_at)
    limiter = PerSecondRateLimiter(rate, clock)
    total = limiter.acquire(10**9)
    assert total == 1
    for jump in jumps:
        clock.advance(jump)
        granted = limiter.acquire(10**9)
        assert granted <= max(1, rate * MAX_BURST_S)
        total += granted
        assert total <= (clock.now - starts_at) * rate + 1.01


def test_a_low_rate_permits_one_record_at_a_time(fakes):
    clock = fakes.Clock()
    grants = follow(PerSecondRateLimiter(4, clock), clock, 1)
    assert [granted for _, granted in grants] == [1, 1, 1, 1]
    assert [time for time, _ in grants] == pytest.approx([0, 0.25, 0.5, 0.75])


def test_batches_are_a_millisecond_apart_and_small(fakes):
    clock = fakes.Clock()
    grants = follow(PerSecondRateLimiter(20_000, clock), clock, 1)
    times = [time for time, _ in grants]
    assert min(b - a for a, b in itertools.pairwise(times)) >= MIN_PAUSE_S * 0.999
    assert max(granted for _, granted in grants) <= 21


def test_asking_too_early_gets_nothing_and_loses_nothing(fakes):
    clock = fakes.Clock()
    limiter = PerSecondRateLimiter(10_000, clock)
    assert limiter.acquire(100) == 1
    clock.advance(0.0005)
    assert limiter.acquire(100) == 0
    clock.advance(0.0005)
    assert limiter.acquire(100) == 10


def test_what_does_not_fit_is_available_at_once(fakes):
    clock = fakes.Clock()
    limiter = PerSecondRateLimiter(1000, clock)
    limiter.acquire(1)
    clock.advance(0.05)
    assert limiter.acquire(20) == 20
    assert limiter.available_at() <= clock.now
    assert limiter.acquire(100) == 30
    assert limiter.available_at() > clock.now


def test_after_a_stall_at_most_a_tenth_of_a_second_is_made_up_for(fakes):
    clock = fakes.Clock()
    limiter = PerSecondRateLimiter(1000, clock)
    limiter.acquire(1)
    clock.advance(10)
    assert limiter.acquire(10**6) == 100
    assert sum(granted for _, granted in follow(limiter, clock, 1)) == pytest.approx(1000, abs=2)


def test_where_pauses_are_planned_all_is_made_up_for(fakes):
    clock = fakes.Clock()
    limiter = RateLimiterStrategy.per_second(4000).create_rate_limiter(4, clock, catches_up=True)
    limiter.acquire(1)
    clock.advance(10)
    assert limiter.acquire(3000) == 3000
    assert limiter.acquire(10**6) == 7000
    assert limiter.available_at() > clock.now


def test_the_rate_is_divided_over_readers(fakes):
    strategy = pickle.loads(pickle.dumps(RateLimiterStrategy.per_second(100)))
    clock = fakes.Clock()
    grants = follow(strategy.create_rate_limiter(4, clock), clock, 10)
    assert sum(granted for _, granted in grants) == pytest.approx(250, abs=1)


def test_no_op_permits_everything():
    limiter = RateLimiterStrategy.no_op().create_rate_limiter(3)
    assert limiter.acquire(12345) == 12345
    assert limiter.available_at() == -math.inf


@pytest.mark.parametrize("rate", [0, -1, math.inf, math.nan])
def test_a_rate_must_be_positive(rate):
    with pytest.raises(InvalidProgramError):
        RateLimiterStrategy.per_second(rate)

"""Credits are adjusted so that an epoch takes as long as it should."""

from __future__ import annotations

import random
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.jobmaster.admission import AdmissionControl, SourceLoad, SplitRequests

TARGET = 1000


def run(
    control: AdmissionControl,
    epochs: int,
    fixed: float,
    per_record: float,
    sources: int = 1,
    backlog: int = 1 << 60,
    noise: float = 0.0,
    seed: int = 0,
) -> list[float]:
    """Plays epochs of sources that always have a backlog; returns how long each took."""
    chance = random.Random(seed)
    durations = []
    for _ in range(epochs):
        records = min(control.credits, backlog)
        duration = (fixed + per_record * records * sources) * (1 + chance.uniform(-noise, noise))
        control.epoch_ended(duration, [SourceLoad(records, records == control.credits)] * sources)
        durations.append(duration)
    return durations


def test_it_starts_small_and_grows_at_most_fourfold() -> None:
    control = AdmissionControl(TARGET)
    assert control.credits == 20_000
    before = control.credits
    for _ in range(5):
        run(control, 1, fixed=0, per_record=1e-6)
        assert control.credits == before * 4
        before = control.credits


@given(
    fixed=st.floats(0, 700),
    per_record=st.floats(1e-4, 2.0),
    sources=st.integers(1, 8),
    noise=st.floats(0, 0.1),
    knows_fixed=st.booleans(),
    seed=st.integers(0, 1000),
)
@settings(max_examples=200, deadline=None)
def test_epochs_come_to_take_the_target(
    fixed: float, per_record: float, sources: int, noise: float, knows_fixed: bool, seed: int
) -> None:
    control = AdmissionControl(TARGET)
    if knows_fixed:
        for _ in range(3):
            control.epoch_ended(fixed, [SourceLoad(0, False)] * sources)
    durations = run(control, 40, fixed, per_record, sources, noise=noise, seed=seed)
    # a single record may take longer than the room there is
    grain = per_record * sources
    assert 0.7 * TARGET - grain <= median(durations[-11:]) <= 1.35 * TARGET + 2 * grain


@given(
    max_records=st.integers(1, 100_000),
    steps=st.lists(st.tuples(st.floats(0, 1e7), st.integers(0, 1 << 40), st.booleans()), max_size=50),
)
@settings(deadline=None)
def test_whatever_is_measured_credits_stay_within_their_limits(
    max_records: int, steps: list[tuple[float, int, bool]]
) -> None:
    control = AdmissionControl(TARGET, max_records)
    for duration, records, used_up in steps:
        before = control.credits
        control.epoch_ended(duration, [SourceLoad(records, used_up)])
        assert 1 <= control.credits <= min(max_records, before * 4)


def test_one_slow_epoch_is_answered_at_once_and_soon_forgotten() -> None:
    control = AdmissionControl(TARGET)
    run(control, 20, fixed=200, per_record=0.01)
    settled = control.credits
    control.epoch_ended(10 * TARGET, [SourceLoad(settled, True)])
    assert control.credits < settled / 5
    run(control, 8, fixed=200, per_record=0.01)
    assert control.credits == pytest.approx(settled, rel=0.2)


def test_work_that_becomes_heavier_shrinks_the_credits() -> None:
    control = AdmissionControl(TARGET)
    run(control, 20, fixed=100, per_record=0.01)
    assert run(control, 10, fixed=100, per_record=0.1)[-1] == pytest.approx(TARGET, rel=0.2)


def test_an_epoch_with_nothing_to_read_changes_no_credits() -> None:
    control = AdmissionControl(TARGET)
    run(control, 20, fixed=200, per_record=0.01)
    settled = control.credits
    for records in (0, 3, 100, settled // 2):
        control.epoch_ended(200 + 0.01 * records, [SourceLoad(records, False)])
    assert control.credits == pytest.approx(settled, rel=0.05)
    assert control.fixed_ms == pytest.approx(200, rel=0.05)


def test_records_that_ran_dry_but_took_too_long_shrink_them() -> None:
    control = AdmissionControl(TARGET)
    control.epoch_ended(5 * TARGET, [SourceLoad(10_000, False)])
    assert control.credits == pytest.approx(2_000, rel=0.01)


def test_a_fixed_cost_beyond_the_target_leaves_room_for_records() -> None:
    control = AdmissionControl(TARGET)
    for _ in range(5):
        control.epoch_ended(3 * TARGET, [SourceLoad(0, False)])
    run(control, 20, fixed=3 * TARGET, per_record=0.01)
    assert control.credits > 10_000


@pytest.mark.parametrize("known", [None, 200.0])
@pytest.mark.parametrize("fixed", [1.1, 1.5, 3.0, 10.0])
def test_a_job_that_always_has_a_backlog_is_not_starved_by_it(fixed: float, known: float | None) -> None:
    """There is never an epoch without records, from which the fixed cost could be learned."""
    control = AdmissionControl(TARGET)
    if known is not None:
        control.epoch_ended(known, [SourceLoad(0, False)])
    run(control, 100, fixed=fixed * TARGET, per_record=0.01, noise=0.1)
    assert control.credits > 1_000


def test_only_sources_with_a_backlog_share_the_time() -> None:
    control = AdmissionControl(TARGET)
    for _ in range(30):
        used = control.credits
        control.epoch_ended(used * 0.01, [SourceLoad(used, True), SourceLoad(0, False), SourceLoad(5, False)])
    assert control.credits == pytest.approx(100_000, rel=0.05)


def test_a_reader_that_reads_all_its_splits_gets_more_of_them() -> None:
    requests = SplitRequests()
    first, second = ("source", 0), ("source", 1)
    assert requests.ask({first: 1, second: 1}, frozenset()) == [first, second]
    assert requests.ask({first: 1}, frozenset()) == [first, first]
    assert requests.ask({first: 1, second: 1}, frozenset()) == [first, second, first, second, first, first]
    assert len(requests.ask({first: 100}, frozenset())) == 100, "what a reader asks for itself it gets"
    for _ in range(10):
        requests.ask({first: 1}, frozenset())
    assert len(requests.ask({first: 1}, frozenset())) == 32


def test_a_reader_with_more_than_it_may_read_gets_fewer_splits() -> None:
    requests = SplitRequests()
    task = ("source", 0)
    for _ in range(5):
        requests.ask({task: 1}, frozenset())
    assert requests.ask({task: 1}, frozenset({task})) == [task]
    assert len(requests.ask({task: 1}, frozenset())) == 16

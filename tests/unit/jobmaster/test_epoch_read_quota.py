"""The quota is adjusted so that an epoch takes as long as it should."""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.execution.epochs.read_quota import ReadQuotaControl, SourceLoad, SplitRequests

TARGET = 1000


@dataclass(frozen=True)
class Machine:
    """How long epochs take on a machine."""

    fixed: float
    per_record: float
    hidden: float = 0.0
    """Milliseconds for each record in which no task is at records: its share of what is written at the end."""
    noise: float = 0.0

    def run(
        self, control: ReadQuotaControl, epochs: int, sources: int = 1, backlog: int = 1 << 60, seed: int = 0
    ) -> list[float]:
        """Plays epochs of sources that always have a backlog; returns how long each took."""
        chance = random.Random(seed)
        durations = []
        for _ in range(epochs):
            records = min(control.quota, backlog)
            slower = 1 + chance.uniform(-self.noise, self.noise)
            at_records = self.per_record * records * sources * slower
            slower = 1 + chance.uniform(-self.noise, self.noise)
            duration = at_records + (self.fixed + self.hidden * records * sources) * slower
            control.epoch_ended(duration, at_records, [SourceLoad(records, records == control.quota)] * sources)
            durations.append(duration)
        return durations


def typical_quota(control: ReadQuotaControl, machine: Machine, seed: int) -> float:
    """Those of the last ten epochs of twenty: now and then there are fewer, to learn from that."""
    quota = []
    for epoch in range(20):
        machine.run(control, 1, seed=100 * seed + epoch)
        quota.append(control.quota)
    return median(quota[10:])


def test_it_starts_small_and_grows_at_most_fourfold() -> None:
    control = ReadQuotaControl(TARGET)
    assert control.quota == 20_000
    before = control.quota
    for _ in range(5):
        Machine(fixed=0, per_record=1e-6).run(control, 1)
        assert control.quota == before * 4
        before = control.quota


@given(
    fixed=st.floats(0, 5 * TARGET),
    per_record=st.floats(1e-4, 2.0),
    hidden=st.floats(0, 10),
    sources=st.integers(1, 8),
    noise=st.floats(0, 0.1),
    knows_fixed=st.booleans(),
    seed=st.integers(0, 1000),
)
@settings(max_examples=300, deadline=None)
def test_epochs_come_to_take_what_they_should(
    fixed: float, per_record: float, hidden: float, sources: int, noise: float, knows_fixed: bool, seed: int
) -> None:
    """The target, or twice the fixed cost; also where much of what a record costs is in no task's report."""
    control = ReadQuotaControl(TARGET)
    if knows_fixed:
        for _ in range(3):
            control.epoch_ended(fixed, 0, [SourceLoad(0, False)] * sources)
    machine = Machine(fixed, per_record, hidden=hidden * per_record, noise=noise)
    durations = machine.run(control, 60, sources, seed=seed)[-21:]
    expected = max(TARGET, 2 * fixed)
    # a single record may take longer than the room there is
    grain = per_record * (1 + hidden) * sources
    assert 0.6 * expected - grain <= median(durations) <= 1.6 * expected + 2 * grain
    # a quota that was too small grows at most fourfold, and again if noise hides what the records cost
    assert max(durations) <= 8 * expected + 2 * grain


@given(
    max_records=st.integers(1, 100_000),
    steps=st.lists(
        st.tuples(st.floats(0, 1e7), st.floats(0, 1e7), st.integers(0, 1 << 40), st.booleans()), max_size=50
    ),
)
@settings(deadline=None)
def test_whatever_is_measured_credits_stay_within_their_limits(
    max_records: int, steps: list[tuple[float, float, int, bool]]
) -> None:
    control = ReadQuotaControl(TARGET, max_records)
    for duration, at_records, records, used_up in steps:
        before = control.quota
        control.epoch_ended(duration, at_records, [SourceLoad(records, used_up)])
        assert 1 <= control.quota <= min(max_records, before * 4)


@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_one_slow_epoch_is_soon_forgotten(part: float) -> None:
    """Whether it was slow before, while or after tasks were at records."""
    control = ReadQuotaControl(TARGET)
    machine = Machine(fixed=200, per_record=0.01)
    machine.run(control, 20)
    settled = control.quota
    control.epoch_ended(10 * TARGET, part * 10 * TARGET, [SourceLoad(settled, True)])
    machine.run(control, 8)
    assert control.quota == pytest.approx(settled, rel=0.2)


def test_an_epoch_whose_records_took_far_too_long_is_answered_at_once() -> None:
    control = ReadQuotaControl(TARGET)
    Machine(fixed=200, per_record=0.01).run(control, 20)
    settled = control.quota
    control.epoch_ended(10 * TARGET, 9.8 * TARGET, [SourceLoad(settled, True)])
    assert control.quota < settled / 5


def test_work_that_becomes_heavier_shrinks_the_quota() -> None:
    control = ReadQuotaControl(TARGET)
    Machine(fixed=100, per_record=0.01).run(control, 20)
    assert Machine(fixed=100, per_record=0.1).run(control, 10)[-1] == pytest.approx(TARGET, rel=0.2)


def test_an_epoch_with_nothing_to_read_does_not_change_the_quota() -> None:
    control = ReadQuotaControl(TARGET)
    Machine(fixed=200, per_record=0.01).run(control, 20)
    settled = control.quota
    for records in (0, 3, 100, settled // 2):
        control.epoch_ended(200 + 0.01 * records, 0.01 * records, [SourceLoad(records, False)])
    assert control.quota == pytest.approx(settled, rel=0.05)
    assert control.fixed_ms == pytest.approx(200, rel=0.05)


def test_records_that_ran_dry_but_took_too_long_shrink_them() -> None:
    control = ReadQuotaControl(TARGET)
    control.epoch_ended(5 * TARGET, 5 * TARGET, [SourceLoad(10_000, False)])
    assert control.quota == pytest.approx(2_000, rel=0.01)


@pytest.mark.parametrize("fixed", [0.6, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("knows_another", [False, True])
def test_half_of_an_epoch_is_for_records_however_large_the_fixed_cost(fixed: float, knows_another: bool) -> None:
    """There is never an epoch without records, from which the fixed cost could be learned."""
    control = ReadQuotaControl(TARGET)
    if knows_another:
        control.epoch_ended(50, 0, [SourceLoad(0, False)])
    machine = Machine(fixed=fixed * TARGET, per_record=0.01, noise=0.2)
    durations = machine.run(control, 30)
    assert sum(durations[-10:]) == pytest.approx(10 * 2 * fixed * TARGET, rel=0.3)
    assert control.duration_ms == pytest.approx(2 * fixed * TARGET, rel=0.3)


def test_a_fixed_cost_costs_no_throughput_as_long_as_it_fits_into_half_of_the_target() -> None:
    control = ReadQuotaControl(TARGET)
    durations = Machine(fixed=0.4 * TARGET, per_record=0.01).run(control, 30)
    assert durations[-1] == pytest.approx(TARGET, rel=0.05)


@pytest.mark.parametrize("slower", [2, 5, 20])
@pytest.mark.parametrize("busy_fixed", [300, 1000, 3000])
def test_load_that_comes_and_goes(slower: int, busy_fixed: int) -> None:
    """The quota is back in no more time than it took to shrink, again and again."""
    control = ReadQuotaControl(TARGET)
    quiet = Machine(fixed=100, per_record=0.005, noise=0.1)
    busy = Machine(fixed=busy_fixed, per_record=0.005 * slower, noise=0.1)
    quiet.run(control, 20)
    settled = control.quota
    for seed in range(5):
        backing_off = 0.0
        expected = max(TARGET - busy_fixed, busy_fixed) / busy.per_record
        while control.quota > 1.3 * expected:
            backing_off += busy.run(control, 1, seed=seed)[0]
        assert typical_quota(control, busy, seed) > 0.6 * expected
        recovering = 0.0
        while control.quota < 0.7 * settled:
            recovering += quiet.run(control, 1, seed=seed)[0]
        assert recovering <= max(backing_off, 3 * TARGET)
        assert typical_quota(control, quiet, seed) == pytest.approx(settled, rel=0.3)


@pytest.mark.parametrize("per_record", [20.0, 500.0, 5_000.0])
@pytest.mark.parametrize("hidden", [0.0, 10.0])
def test_very_slow_functions_keep_epochs_short(per_record: float, hidden: float) -> None:
    """However the fixed cost varies, and also where most of the time is spent when no task is at records."""
    control = ReadQuotaControl(TARGET)
    durations: list[float] = []
    for epoch in range(40):
        machine = Machine(fixed=1000.0 if epoch // 5 % 2 else 100.0, per_record=per_record, hidden=hidden * per_record)
        durations += machine.run(control, 1, sources=2)
    # two sources read a record each at least, and an epoch may take the target or twice the fixed cost
    assert max(durations[5:]) <= 4 * TARGET + 3 * 2 * per_record * (1 + hidden)


def test_a_restart_keeps_what_was_learned() -> None:
    control, next_attempt = ReadQuotaControl(TARGET), ReadQuotaControl(TARGET)
    machine = Machine(fixed=3 * TARGET, per_record=0.001)
    machine.run(control, 20, sources=2)
    next_attempt.resume(control, 1.0)
    assert (next_attempt.fixed_ms, next_attempt.duration_ms) == (control.fixed_ms, control.duration_ms)
    # a large quota may have been the reason of the restart
    assert next_attempt.quota == control.quota // 4
    machine.run(next_attempt, 1, sources=2)
    assert next_attempt.quota == pytest.approx(control.quota, rel=0.1)


def test_a_restart_keeps_the_few_credits_of_a_slow_function() -> None:
    control, next_attempt = ReadQuotaControl(TARGET), ReadQuotaControl(TARGET)
    Machine(fixed=100, per_record=10).run(control, 20)
    next_attempt.resume(control, 1.0)
    assert next_attempt.quota == control.quota < 100


def test_restarts_one_after_the_other_do_not_use_up_the_quota() -> None:
    control = ReadQuotaControl(TARGET)
    Machine(fixed=100, per_record=0.001).run(control, 20)
    for _ in range(20):
        next_attempt = ReadQuotaControl(TARGET)
        next_attempt.resume(control, 1.0)
        control = next_attempt
    assert control.quota == 20_000


def test_a_restart_with_other_subtasks_shares_the_credits_among_them() -> None:
    control, next_attempt = ReadQuotaControl(TARGET), ReadQuotaControl(TARGET, max_records=200)
    Machine(fixed=100, per_record=1.0).run(control, 20, sources=2)
    next_attempt.resume(control, 2 / 8)
    assert next_attempt.quota == pytest.approx(control.quota / 4, abs=1)
    next_attempt.resume(control, 2 / 1)
    assert next_attempt.quota == 200


def test_what_the_next_attempt_learns_is_its_own() -> None:
    control, next_attempt = ReadQuotaControl(TARGET), ReadQuotaControl(TARGET)
    Machine(fixed=100, per_record=0.01).run(control, 5)
    before = control.fixed_ms
    next_attempt.resume(control, 1.0)
    Machine(fixed=700, per_record=0.01).run(next_attempt, 5)
    assert control.fixed_ms == before < next_attempt.fixed_ms


def test_only_sources_with_a_backlog_share_the_time() -> None:
    control = ReadQuotaControl(TARGET)
    for _ in range(30):
        used = control.quota
        loads = [SourceLoad(used, True), SourceLoad(0, False), SourceLoad(5, False)]
        control.epoch_ended(used * 0.01, used * 0.01, loads)
    assert control.quota == pytest.approx(100_000, rel=0.05)


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

from __future__ import annotations

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.common.restart_strategy import RestartStrategies
from firesteel.config.configuration import Configuration
from firesteel.jobmaster.restart_strategy import (
    ExponentialDelayRestartStrategy,
    FailureRateRestartStrategy,
    FixedDelayRestartStrategy,
    NoRestartStrategy,
    create_restart_strategy,
)


def test_none_never_restarts():
    assert NoRestartStrategy().restart_after(0) is None


def test_fixed_delay_restarts_a_number_of_times():
    strategy = FixedDelayRestartStrategy(attempts=2, delay=10)
    assert [strategy.restart_after(now) for now in range(4)] == [10, 10, None, None]


def test_failure_rate_counts_failures_in_the_interval():
    strategy = FailureRateRestartStrategy(max_failures_per_interval=2, interval=100, delay=5)
    assert [strategy.restart_after(now) for now in (0, 50)] == [5, 5]
    assert strategy.restart_after(101) == 5  # the first failure is older than the interval
    assert strategy.restart_after(150) is None  # 50, 101 and 150 are not


def test_exponential_delay_grows_up_to_the_maximum():
    strategy = ExponentialDelayRestartStrategy(100, 350, 2.0, 1_000_000, jitter_factor=0)
    now, delays = 0, []
    for _ in range(4):
        delay = strategy.restart_after(now)
        delays.append(delay)
        now += delay + 1
    assert delays == [100, 200, 350, 350]


def test_exponential_delay_begins_again_after_a_quiet_time():
    strategy = ExponentialDelayRestartStrategy(100, 1000, 2.0, 5000, 0, attempts_before_reset_backoff=2)
    assert strategy.restart_after(0) == 100
    assert strategy.restart_after(200) == 200
    assert strategy.restart_after(400 + 4999) is None
    quiet = ExponentialDelayRestartStrategy(100, 1000, 2.0, 5000, 0, attempts_before_reset_backoff=2)
    quiet.restart_after(0)
    quiet.restart_after(200)
    assert quiet.restart_after(400 + 5000) == 100


def test_exponential_delay_merges_failures_within_the_delay():
    strategy = ExponentialDelayRestartStrategy(100, 1000, 2.0, 5000, 0)
    assert strategy.restart_after(0) == 100
    assert strategy.restart_after(60) == 40
    assert strategy.restart_after(101) == 200


@pytest.mark.parametrize(("random", "expected"), [(0.0, 180), (0.5, 200), (1.0, 220)])
def test_exponential_delay_jitter(random, expected):
    strategy = ExponentialDelayRestartStrategy(100, 1000, 2.0, 5000, 0.1, random_source=lambda: random)
    # The first delay never falls below the initial one, whatever the jitter.
    assert strategy.restart_after(0) == max(100, expected // 2)
    assert strategy.restart_after(1000) == expected


def test_exponential_delay_survives_any_number_of_failures():
    strategy = ExponentialDelayRestartStrategy(1, 10, 1e6, jitter_factor=0.5)
    now = 0
    for _ in range(2000):
        delay = strategy.restart_after(now)
        assert 1 <= delay <= 10
        now += delay + 1


def test_the_default_is_none_without_and_exponential_with_checkpoints():
    assert isinstance(create_restart_strategy(Configuration()), NoRestartStrategy)
    config = Configuration().set_string("execution.checkpointing.interval", "10 s")
    strategy = create_restart_strategy(config)
    assert isinstance(strategy, ExponentialDelayRestartStrategy)
    assert (strategy.initial_backoff, strategy.max_backoff, strategy.backoff_multiplier) == (
        1000,
        60_000,
        1.5,
    )
    assert (strategy.reset_backoff_threshold, strategy.jitter_factor) == (3_600_000, 0.1)
    assert "any number of restarts" in strategy.describe()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("none", NoRestartStrategy),
        ("off", NoRestartStrategy),
        ("disable", NoRestartStrategy),
        ("fixeddelay", FixedDelayRestartStrategy),
        ("Fixed-Delay", FixedDelayRestartStrategy),
        ("failure-rate", FailureRateRestartStrategy),
        ("exponential-delay", ExponentialDelayRestartStrategy),
    ],
)
@pytest.mark.parametrize("key", ["restart-strategy.type", "restart-strategy"])
def test_strategies_by_name(key, name, kind):
    assert type(create_restart_strategy(Configuration().set_string(key, name))) is kind


def test_strategies_from_configuration_keys():
    config = Configuration.from_dict(
        {
            "restart-strategy.type": "failure-rate",
            "restart-strategy.failure-rate.max-failures-per-interval": "3",
            "restart-strategy.failure-rate.failure-rate-interval": "5 min",
            "restart-strategy.failure-rate.delay": "10 s",
        }
    )
    strategy = create_restart_strategy(config)
    assert isinstance(strategy, FailureRateRestartStrategy)
    assert (strategy.max_failures_per_interval, strategy.interval, strategy.delay) == (3, 300_000, 10_000)
    assert strategy.describe().startswith("failure rate: at most 3 failures")


def test_a_strategy_from_restart_strategies():
    config = Configuration()
    RestartStrategies.fixed_delay_restart(4, 2000).write_to(config)
    strategy = create_restart_strategy(config)
    assert isinstance(strategy, FixedDelayRestartStrategy)
    assert (strategy.attempts, strategy.delay) == (4, 2000)


def test_an_unknown_name_is_refused_with_the_names_there_are():
    with pytest.raises(InvalidProgramError, match="'sometimes'") as raised:
        create_restart_strategy(Configuration().set_string("restart-strategy.type", "sometimes"))
    assert "exponential-delay" in str(raised.value.hint)


@pytest.mark.parametrize(
    "make",
    [
        lambda: FixedDelayRestartStrategy(attempts=-1),
        lambda: FixedDelayRestartStrategy(delay=-1),
        lambda: FailureRateRestartStrategy(max_failures_per_interval=0),
        lambda: FailureRateRestartStrategy(interval=0),
        lambda: ExponentialDelayRestartStrategy(initial_backoff=0),
        lambda: ExponentialDelayRestartStrategy(initial_backoff=10, max_backoff=9),
        lambda: ExponentialDelayRestartStrategy(backoff_multiplier=1.0),
        lambda: ExponentialDelayRestartStrategy(jitter_factor=1.1),
        lambda: ExponentialDelayRestartStrategy(attempts_before_reset_backoff=0),
    ],
)
def test_impossible_numbers_are_refused(make):
    with pytest.raises(InvalidProgramError, match=r"restart-strategy\.\S+ must be"):
        make()

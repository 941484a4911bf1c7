from __future__ import annotations

import pickle
from datetime import timedelta

import pytest

from firesteel.common import Configuration, Duration, RestartStrategies
from firesteel.config.option import InvalidConfigurationError

Exponential = RestartStrategies.ExponentialDelayRestartStrategyConfiguration

STRATEGIES = [
    RestartStrategies.no_restart(),
    RestartStrategies.fall_back_restart(),
    RestartStrategies.fixed_delay_restart(3, 1000),
    RestartStrategies.failure_rate_restart(3, 60_000, 1000),
    RestartStrategies.exponential_delay_restart(100, 5000, 2.0, 60_000, 0.5),
    Exponential(),
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: type(s).__name__)
def test_strategies_go_into_a_configuration_and_come_back(strategy):
    config = Configuration().set_string("restart-strategy.type", "fixed-delay")
    strategy.write_to(config)
    as_text = Configuration.from_dict(config.to_dict())
    assert RestartStrategies.from_configuration(as_text) == strategy
    again = pickle.loads(pickle.dumps(strategy))
    assert again == strategy
    assert hash(again) == hash(strategy)
    assert sum(strategy == other for other in STRATEGIES) == 1
    assert strategy.get_description().endswith(".")


def test_fixed_delay():
    strategy = RestartStrategies.fixed_delay_restart(3, timedelta(seconds=2))
    assert strategy.get_restart_attempts() == 3
    assert strategy.get_delay_between_attempts_interval() == timedelta(seconds=2)
    assert strategy == RestartStrategies.fixed_delay_restart(3, 2000)
    assert strategy != RestartStrategies.fixed_delay_restart(4, 2000)
    assert strategy.get_description() == "Restart after 2 s, at most 3 times."


def test_failure_rate():
    strategy = RestartStrategies.failure_rate_restart(3, Duration.of_minutes(1), 10)
    assert strategy.get_max_failure_rate() == 3
    assert strategy.get_failure_interval() == timedelta(minutes=1)
    assert strategy.get_delay_between_attempts_interval() == timedelta(milliseconds=10)


@pytest.mark.parametrize("name", ["none", "off", "disable", "NONE"])
def test_names_for_no_restart(name):
    config = Configuration().set_string("restart-strategy.type", name)
    assert RestartStrategies.from_configuration(config) == RestartStrategies.no_restart()


def test_defaults_are_flinks():
    def named(name):
        return RestartStrategies.from_configuration(Configuration().set_string("restart-strategy", name))

    assert named("fixed-delay") == RestartStrategies.fixed_delay_restart(1, 1000)
    assert named("failurerate") == RestartStrategies.failure_rate_restart(1, 60_000, 1000)
    assert named("exponential-delay") == Exponential(
        Duration.of_seconds(1), Duration.of_minutes(1), 1.5, Duration.of_hours(1), 0.1, 2147483647
    )


def test_unknown_names_are_refused():
    config = Configuration().set_string("restart-strategy.type", "hope")
    with pytest.raises(InvalidConfigurationError, match="exponential-delay"):
        RestartStrategies.from_configuration(config)


def test_without_a_choice_checkpoints_decide():
    config = Configuration()
    assert RestartStrategies.resolve(config) == RestartStrategies.no_restart()
    config.set_string("execution.checkpointing.interval", "1 s")
    assert RestartStrategies.resolve(config) == Exponential()
    config.set_string("restart-strategy.type", "none")
    assert RestartStrategies.resolve(config) == RestartStrategies.no_restart()


@pytest.mark.parametrize(
    "make",
    [
        lambda: RestartStrategies.fixed_delay_restart(-1, 0),
        lambda: RestartStrategies.fixed_delay_restart(1, -1),
        lambda: RestartStrategies.failure_rate_restart(1, -1, 0),
        lambda: Exponential(initial_backoff=Duration.of_millis(0)),
        lambda: Exponential(max_backoff=Duration.of_millis(1)),
        lambda: Exponential(backoff_multiplier=0.5),
        lambda: Exponential(jitter_factor=1.5),
    ],
)
def test_impossible_numbers_are_refused(make):
    with pytest.raises(ValueError):
        make()


def test_a_delay_of_another_type_is_refused():
    with pytest.raises(TypeError):
        RestartStrategies.fixed_delay_restart(1, "1 s")  # type: ignore[arg-type]

"""Restart strategies: whether and when a failed job is restarted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta

from firesteel.common.time import Duration, Time, to_millis
from firesteel.config import checkpointing_options, restart_options
from firesteel.config.configuration import Configuration
from firesteel.config.option import InvalidConfigurationError

__all__ = ["RestartStrategies", "RestartStrategyConfiguration"]

_TYPE_OF_NAME = {
    **dict.fromkeys(("none", "off", "disable"), "none"),
    **dict.fromkeys(("fixed-delay", "fixeddelay"), "fixed-delay"),
    **dict.fromkeys(("failure-rate", "failurerate"), "failure-rate"),
    **dict.fromkeys(("exponential-delay", "exponentialdelay"), "exponential-delay"),
}


class RestartStrategyConfiguration(ABC):
    """Base class of restart strategy configurations."""

    @abstractmethod
    def get_description(self) -> str:
        """The strategy in a sentence."""

    @abstractmethod
    def write_to(self, configuration: Configuration) -> None:
        """Sets the strategy's keys."""


def _check_not_negative(**numbers: float) -> None:
    for name, number in numbers.items():
        if number < 0:
            raise ValueError(f"{name} cannot be negative: {number}")


class RestartStrategies:
    """Creates restart strategy configurations; durations are milliseconds, timedelta or Duration."""

    @dataclass(frozen=True)
    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        """The first failure ends the job."""

        def get_description(self) -> str:
            """The strategy in a sentence."""
            return "No restart after a failure."

        def write_to(self, configuration: Configuration) -> None:
            """Sets the strategy's keys."""
            configuration.set(restart_options.RESTART_STRATEGY, "none")

    @dataclass(frozen=True)
    class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Uses the restart strategy of the cluster configuration."""

        def get_description(self) -> str:
            """The strategy in a sentence."""
            return "The cluster's default restart strategy."

        def write_to(self, configuration: Configuration) -> None:
            """Unsets the key that names a strategy."""
            configuration.remove_config(restart_options.RESTART_STRATEGY)

    class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """A fixed number of restarts, with a fixed delay."""

        def __init__(self, restart_attempts: int, delay_between_attempts_interval: int | timedelta | Duration | Time):
            delay = to_millis(delay_between_attempts_interval)
            _check_not_negative(restart_attempts=restart_attempts, delay_between_attempts_interval=delay)
            self._restart_attempts = restart_attempts
            self._delay = delay

        def get_restart_attempts(self) -> int:
            """The maximum number of restarts."""
            return self._restart_attempts

        def get_delay_between_attempts_interval(self) -> timedelta:
            """The wait before each restart."""
            return timedelta(milliseconds=self._delay)

        def get_description(self) -> str:
            """The strategy in a sentence."""
            return f"Restart after {_format(self._delay)}, at most {self._restart_attempts} times."

        def write_to(self, configuration: Configuration) -> None:
            """Sets the strategy's keys."""
            configuration.set(restart_options.RESTART_STRATEGY, "fixed-delay")
            configuration.set(restart_options.FIXED_DELAY_ATTEMPTS, self._restart_attempts)
            configuration.set(restart_options.FIXED_DELAY_DELAY, self._delay)

        def __eq__(self, other: object) -> bool:
            return type(other) is type(self) and self.__dict__ == other.__dict__

        def __hash__(self) -> int:
            return hash((self._restart_attempts, self._delay))

    class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restarts as long as the failure rate does not exceed a limit."""

        def __init__(
            self,
            max_failure_rate: int,
            failure_interval: int | timedelta | Duration | Time,
            delay_between_attempts_interval: int | timedelta | Duration | Time,
        ):
            interval, delay = to_millis(failure_interval), to_millis(delay_between_attempts_interval)
            _check_not_negative(
                max_failure_rate=max_failure_rate,
                failure_interval=interval,
                delay_between_attempts_interval=delay,
            )
            self._max_failure_rate = max_failure_rate
            self._failure_interval = interval
            self._delay = delay

        def get_max_failure_rate(self) -> int:
            """The maximum number of failures within the interval."""
            return self._max_failure_rate

        def get_failure_interval(self) -> timedelta:
            """The interval in which failures are counted."""
            return timedelta(milliseconds=self._failure_interval)

        def get_delay_between_attempts_interval(self) -> timedelta:
            """The wait before each restart."""
            return timedelta(milliseconds=self._delay)

        def get_description(self) -> str:
            """The strategy in a sentence."""
            return (
                f"Restart after {_format(self._delay)},"
                f" at most {self._max_failure_rate} failures in {_format(self._failure_interval)}."
            )

        def write_to(self, configuration: Configuration) -> None:
            """Sets the strategy's keys."""
            configuration.set(restart_options.RESTART_STRATEGY, "failure-rate")
            configuration.set(restart_options.FAILURE_RATE_MAX_FAILURES, self._max_failure_rate)
            configuration.set(restart_options.FAILURE_RATE_INTERVAL, self._failure_interval)
            configuration.set(restart_options.FAILURE_RATE_DELAY, self._delay)

        def __eq__(self, other: object) -> bool:
            return type(other) is type(self) and self.__dict__ == other.__dict__

        def __hash__(self) -> int:
            return hash((self._max_failure_rate, self._failure_interval, self._delay))

    @dataclass(frozen=True)
    class ExponentialDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restarts with a delay that grows with each failure, and is reset after a time without failures."""

        initial_backoff: Duration = restart_options.EXPONENTIAL_DELAY_INITIAL_BACKOFF.default
        max_backoff: Duration = restart_options.EXPONENTIAL_DELAY_MAX_BACKOFF.default
        backoff_multiplier: float = restart_options.EXPONENTIAL_DELAY_BACKOFF_MULTIPLIER.default
        reset_backoff_threshold: Duration = restart_options.EXPONENTIAL_DELAY_RESET_BACKOFF_THRESHOLD.default
        jitter_factor: float = restart_options.EXPONENTIAL_DELAY_JITTER_FACTOR.default
        attempts_before_reset_backoff: int = restart_options.EXPONENTIAL_DELAY_ATTEMPTS_BEFORE_RESET.default

        def __post_init__(self) -> None:
            if self.initial_backoff.to_millis() < 1:
                raise ValueError(f"initial_backoff must be at least 1 ms: {self.initial_backoff.format()}")
            if self.max_backoff < self.initial_backoff:
                raise ValueError(
                    f"max_backoff ({self.max_backoff.format()}) cannot be less than"
                    f" initial_backoff ({self.initial_backoff.format()})"
                )
            if self.backoff_multiplier < 1:
                raise ValueError(f"backoff_multiplier must be at least 1: {self.backoff_multiplier}")
            if not 0 <= self.jitter_factor <= 1:
                raise ValueError(f"jitter_factor must be between 0 and 1: {self.jitter_factor}")
            if self.reset_backoff_threshold.to_millis() < 1:
                raise ValueError("reset_backoff_threshold must be at least 1 ms")

        def get_description(self) -> str:
            """The strategy in a sentence."""
            return (
                f"Restart after {self.initial_backoff.format()}, {self.backoff_multiplier:g} times longer"
                f" with each failure up to {self.max_backoff.format()} (jitter {self.jitter_factor:g}),"
                f" from the beginning after {self.reset_backoff_threshold.format()} without one."
            )

        def write_to(self, configuration: Configuration) -> None:
            """Sets the strategy's keys."""
            configuration.set(restart_options.RESTART_STRATEGY, "exponential-delay")
            configuration.set(restart_options.EXPONENTIAL_DELAY_INITIAL_BACKOFF, self.initial_backoff)
            configuration.set(restart_options.EXPONENTIAL_DELAY_MAX_BACKOFF, self.max_backoff)
            configuration.set(restart_options.EXPONENTIAL_DELAY_BACKOFF_MULTIPLIER, self.backoff_multiplier)
            configuration.set(restart_options.EXPONENTIAL_DELAY_RESET_BACKOFF_THRESHOLD, self.reset_backoff_threshold)
            configuration.set(restart_options.EXPONENTIAL_DELAY_JITTER_FACTOR, self.jitter_factor)
            configuration.set(
                restart_options.EXPONENTIAL_DELAY_ATTEMPTS_BEFORE_RESET, self.attempts_before_reset_backoff
            )

    @staticmethod
    def no_restart() -> NoRestartStrategyConfiguration:
        """The first failure ends the job."""
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> FallbackRestartStrategyConfiguration:
        """Uses the restart strategy of the cluster configuration."""
        return RestartStrategies.FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: int | timedelta | Duration | Time
    ) -> FixedDelayRestartStrategyConfiguration:
        """A fixed number of restarts, with a fixed delay."""
        return RestartStrategies.FixedDelayRestartStrategyConfiguration(restart_attempts, delay_between_attempts)

    @staticmethod
    def failure_rate_restart(
        failure_rate: int,
        failure_interval: int | timedelta | Duration | Time,
        delay_interval: int | timedelta | Duration | Time,
    ) -> FailureRateRestartStrategyConfiguration:
        """Restarts as long as there are at most ``failure_rate`` failures in the interval."""
        return RestartStrategies.FailureRateRestartStrategyConfiguration(failure_rate, failure_interval, delay_interval)

    @staticmethod
    def exponential_delay_restart(
        initial_backoff: int | timedelta | Duration | Time,
        max_backoff: int | timedelta | Duration | Time,
        backoff_multiplier: float,
        reset_backoff_threshold: int | timedelta | Duration | Time,
        jitter_factor: float,
    ) -> ExponentialDelayRestartStrategyConfiguration:
        """Restarts with a delay that grows with each failure, up to a maximum."""
        return RestartStrategies.ExponentialDelayRestartStrategyConfiguration(
            Duration.of_millis(to_millis(initial_backoff)),
            Duration.of_millis(to_millis(max_backoff)),
            backoff_multiplier,
            Duration.of_millis(to_millis(reset_backoff_threshold)),
            jitter_factor,
        )

    @staticmethod
    def from_configuration(configuration: Configuration) -> RestartStrategyConfiguration:
        """The strategy that the configuration's keys describe; the fallback if they name none."""
        name = configuration.get(restart_options.RESTART_STRATEGY)
        if name is None:
            return RestartStrategies.fall_back_restart()
        kind = _TYPE_OF_NAME.get(name.strip().lower())
        if kind == "none":
            return RestartStrategies.no_restart()
        if kind == "fixed-delay":
            return RestartStrategies.fixed_delay_restart(
                configuration.get(restart_options.FIXED_DELAY_ATTEMPTS),
                configuration.get(restart_options.FIXED_DELAY_DELAY),
            )
        if kind == "failure-rate":
            return RestartStrategies.failure_rate_restart(
                configuration.get(restart_options.FAILURE_RATE_MAX_FAILURES),
                configuration.get(restart_options.FAILURE_RATE_INTERVAL),
                configuration.get(restart_options.FAILURE_RATE_DELAY),
            )
        if kind == "exponential-delay":
            return RestartStrategies.ExponentialDelayRestartStrategyConfiguration(
                configuration.get(restart_options.EXPONENTIAL_DELAY_INITIAL_BACKOFF),
                configuration.get(restart_options.EXPONENTIAL_DELAY_MAX_BACKOFF),
                configuration.get(restart_options.EXPONENTIAL_DELAY_BACKOFF_MULTIPLIER),
                configuration.get(restart_options.EXPONENTIAL_DELAY_RESET_BACKOFF_THRESHOLD),
                configuration.get(restart_options.EXPONENTIAL_DELAY_JITTER_FACTOR),
                configuration.get(restart_options.EXPONENTIAL_DELAY_ATTEMPTS_BEFORE_RESET),
            )
        known = ", ".join(dict.fromkeys(_TYPE_OF_NAME.values()))
        raise InvalidConfigurationError(
            restart_options.RESTART_STRATEGY.key, name, f"it is not one of {known}", "restart strategy"
        )

    @staticmethod
    def resolve(configuration: Configuration) -> RestartStrategyConfiguration:
        """The strategy a job really has, the fallback replaced.

        That is exponential delay for a job that takes checkpoints, and none for one that does not.
        """
        strategy = RestartStrategies.from_configuration(configuration)
        if not isinstance(strategy, RestartStrategies.FallbackRestartStrategyConfiguration):
            return strategy
        interval = configuration.get(checkpointing_options.CHECKPOINTING_INTERVAL)
        if interval is not None and interval.to_millis() > 0:
            return RestartStrategies.ExponentialDelayRestartStrategyConfiguration()
        return RestartStrategies.no_restart()


def _format(millis: int) -> str:
    return Duration.of_millis(millis).format()

"""Restart strategies: whether and when a failed job restarts, by Flink's four strategies, without a clock."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable

from firesteel.common.errors import InvalidProgramError
from firesteel.config import checkpointing_options, restart_options
from firesteel.config.configuration import Configuration

__all__ = [
    "ExponentialDelayRestartStrategy",
    "FailureRateRestartStrategy",
    "FixedDelayRestartStrategy",
    "NoRestartStrategy",
    "RestartStrategy",
    "create_restart_strategy",
]

INFINITE = (1 << 31) - 1
"""Java's Integer.MAX_VALUE: restart for ever."""


class RestartStrategy(ABC):
    """Decides, once for each failure; all times are milliseconds, ``now`` is on the caller's clock."""

    @abstractmethod
    def restart_after(self, now: int) -> int | None:
        """A failure happened: how long to wait before the job starts again, None if it is to fail."""

    @abstractmethod
    def describe(self) -> str:
        """The strategy in words, for an error or the web page."""


class NoRestartStrategy(RestartStrategy):
    """The first failure is the last."""

    def restart_after(self, now: int) -> int | None:
        """Never."""
        return None

    def describe(self) -> str:
        return "no restart"


class FixedDelayRestartStrategy(RestartStrategy):
    """A number of restarts, with the same delay before each."""

    def __init__(self, attempts: int = 1, delay: int = 1000):
        _at_least("fixed-delay.attempts", attempts, 0)
        _at_least("fixed-delay.delay", delay, 0)
        self.attempts = attempts
        self.delay = delay
        self._failures = 0

    def restart_after(self, now: int) -> int | None:
        """The delay, until the attempts are used up."""
        self._failures += 1
        return self.delay if self._failures <= self.attempts else None

    def describe(self) -> str:
        return f"fixed delay: {self.attempts} restarts, {self.delay} ms apart"


class FailureRateRestartStrategy(RestartStrategy):
    """Restarts as long as no more than a number of failures fall into an interval."""

    def __init__(self, max_failures_per_interval: int = 1, interval: int = 60_000, delay: int = 1000):
        _at_least("failure-rate.max-failures-per-interval", max_failures_per_interval, 1)
        _at_least("failure-rate.failure-rate-interval", interval, 1)
        _at_least("failure-rate.delay", delay, 0)
        self.max_failures_per_interval = max_failures_per_interval
        self.interval = interval
        self.delay = delay
        # One more than allowed: only with that many in hand can the rate be exceeded.
        self._failures: deque[int] = deque(maxlen=max_failures_per_interval + 1)

    def restart_after(self, now: int) -> int | None:
        """The delay, unless too many failures are younger than the interval."""
        self._failures.append(now)
        exceeded = len(self._failures) > self.max_failures_per_interval
        return None if exceeded and now - self._failures[0] <= self.interval else self.delay

    def describe(self) -> str:
        rate = f"at most {self.max_failures_per_interval} failures in {self.interval} ms"
        return f"failure rate: {rate}, restarts after {self.delay} ms"


class ExponentialDelayRestartStrategy(RestartStrategy):
    """A delay that grows with each failure, and is small again after a long time without one.

    The delay before restart n (from 0) is ``initial_backoff * backoff_multiplier ** n``, plus or minus the
    jitter, never below the initial nor above the maximal one. Failures that fall into the delay belong to the
    same restart.
    """

    def __init__(
        self,
        initial_backoff: int = 1000,
        max_backoff: int = 60_000,
        backoff_multiplier: float = 1.5,
        reset_backoff_threshold: int = 3_600_000,
        jitter_factor: float = 0.1,
        attempts_before_reset_backoff: int = INFINITE,
        random_source: Callable[[], float] = random.random,
    ):
        _at_least("exponential-delay.initial-backoff", initial_backoff, 1)
        _at_least("exponential-delay.max-backoff", max_backoff, initial_backoff)
        _at_least("exponential-delay.reset-backoff-threshold", reset_backoff_threshold, 1)
        _at_least("exponential-delay.attempts-before-reset-backoff", attempts_before_reset_backoff, 1)
        if backoff_multiplier <= 1:
            raise _invalid("exponential-delay.backoff-multiplier", "greater than 1", backoff_multiplier)
        if not 0 <= jitter_factor <= 1:
            raise _invalid("exponential-delay.jitter-factor", "from 0 to 1", jitter_factor)
        self.initial_backoff = initial_backoff
        self.max_backoff = max_backoff
        self.backoff_multiplier = backoff_multiplier
        self.reset_backoff_threshold = reset_backoff_threshold
        self.jitter_factor = jitter_factor
        self.attempts_before_reset_backoff = attempts_before_reset_backoff
        self._random = random_source
        self._attempt = 0
        self._next_restart_at: int | None = None

    def restart_after(self, now: int) -> int | None:
        """The growing delay, until the attempts since the last reset are used up."""
        if self._next_restart_at is None or now > self._next_restart_at:
            quiet_since = self._next_restart_at
            if quiet_since is not None and now - quiet_since >= self.reset_backoff_threshold:
                self._attempt = 0
            self._next_restart_at = now + self._backoff()
            self._attempt += 1
        if self._attempt > self.attempts_before_reset_backoff:
            return None
        return self._next_restart_at - now

    def describe(self) -> str:
        attempts = self.attempts_before_reset_backoff
        count = "any number of" if attempts == INFINITE else f"{attempts}"
        return f"exponential delay: {count} restarts, after {self.initial_backoff} to {self.max_backoff} ms"

    def _backoff(self) -> int:
        try:
            backoff = self.initial_backoff * self.backoff_multiplier**self._attempt
        except OverflowError:
            return self.max_backoff
        jitter = backoff * self.jitter_factor * (2 * self._random() - 1)
        return int(max(self.initial_backoff, min(backoff + jitter, self.max_backoff)))


def create_restart_strategy(
    configuration: Configuration, random_source: Callable[[], float] = random.random
) -> RestartStrategy:
    """The strategy that ``restart-strategy.type`` names.

    By default, none without checkpoints (the job would start over), and exponential delay with them.

    >>> create_restart_strategy(Configuration()).describe()
    'no restart'
    >>> config = Configuration().set_string("restart-strategy.type", "fixed-delay")
    >>> create_restart_strategy(config.set_integer("restart-strategy.fixed-delay.attempts", 3)).describe()
    'fixed delay: 3 restarts, 1000 ms apart'
    """
    name = configuration.get_optional(restart_options.RESTART_STRATEGY)
    if name is None:
        checkpointing = configuration.get_optional(checkpointing_options.CHECKPOINTING_INTERVAL)
        name = "none" if checkpointing is None else "exponential-delay"
    kind = name.lower().replace("-", "")
    if kind in ("none", "off", "disable"):
        return NoRestartStrategy()
    if kind == "fixeddelay":
        return FixedDelayRestartStrategy(
            configuration.get(restart_options.FIXED_DELAY_ATTEMPTS),
            configuration.get(restart_options.FIXED_DELAY_DELAY).to_millis(),
        )
    if kind == "failurerate":
        return FailureRateRestartStrategy(
            configuration.get(restart_options.FAILURE_RATE_MAX_FAILURES),
            configuration.get(restart_options.FAILURE_RATE_INTERVAL).to_millis(),
            configuration.get(restart_options.FAILURE_RATE_DELAY).to_millis(),
        )
    if kind == "exponentialdelay":
        return ExponentialDelayRestartStrategy(
            configuration.get(restart_options.EXPONENTIAL_DELAY_INITIAL_BACKOFF).to_millis(),
            configuration.get(restart_options.EXPONENTIAL_DELAY_MAX_BACKOFF).to_millis(),
            configuration.get(restart_options.EXPONENTIAL_DELAY_BACKOFF_MULTIPLIER),
            configuration.get(restart_options.EXPONENTIAL_DELAY_RESET_BACKOFF_THRESHOLD).to_millis(),
            configuration.get(restart_options.EXPONENTIAL_DELAY_JITTER_FACTOR),
            configuration.get(restart_options.EXPONENTIAL_DELAY_ATTEMPTS_BEFORE_RESET),
            random_source,
        )
    raise InvalidProgramError(
        f"Unknown restart strategy '{name}'.",
        hint="restart-strategy.type is one of none, fixed-delay, failure-rate, exponential-delay",
    )


def _at_least(option: str, value: int, least: int) -> None:
    if value < least:
        raise _invalid(option, f"at least {least}", value)


def _invalid(option: str, expected: str, value: float) -> InvalidProgramError:
    return InvalidProgramError(f"restart-strategy.{option} must be {expected}, not {value:g}.")

"""Base of the suites for sources and sinks: runs their checks and collects the results."""

from __future__ import annotations

from dataclasses import dataclass, field

from firesteel.testing.conformance.errors import CheckSkipped, ConformanceError

__all__ = ["ConformanceReport", "ConformanceSuite"]

_PREFIX = "test_"


@dataclass
class ConformanceReport:
    """Which checks a connector passes, by name; why others fail, or do not apply."""

    connector: str
    passed: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, BaseException] = field(default_factory=dict)

    @property
    def conforms(self) -> bool:
        """Whether no check has failed."""
        return not self.failed

    def __str__(self) -> str:
        lines = [f"{self.connector}: {len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"]
        lines += (f"  FAILED  {name}: {error}" for name, error in self.failed.items())
        lines += (f"  skipped {name}: {reason}" for name, reason in self.skipped.items())
        return "\n".join(lines)

    def raise_if_failed(self) -> None:
        """Raises a ConformanceError that names all failed checks."""
        if self.failed:
            raise ConformanceError(str(self)) from next(iter(self.failed.values()))


class ConformanceSuite:
    """A class whose ``test_`` methods are checks, each with an outside of its own.

    pytest and unittest find them in a subclass named ``Test…``; :meth:`run` runs them without either.
    """

    timeout_s: float = 30.0
    """How long anything may take that ends, such as reading all records."""

    call_timeout_s: float = 5.0
    """How long a call may take that must not block."""

    left_timeout_s: float = 5.0
    """How long threads and connections of what was closed may take to end."""

    def set_up(self) -> None:
        """Called before each check: the place to make an empty outside."""

    def tear_down(self) -> None:
        """Called after each check."""

    def setup_method(self, method: object = None) -> None:
        """For pytest."""
        self.set_up()

    def teardown_method(self, method: object = None) -> None:
        """For pytest."""
        self.tear_down()

    @classmethod
    def checks(cls) -> list[str]:
        """The names of all checks, in the order in which they are defined."""
        names: dict[str, None] = {}
        for base in reversed(cls.__mro__):
            names.update((name, None) for name in vars(base) if name.startswith(_PREFIX))
        return list(names)

    def run(self, *names: str) -> ConformanceReport:
        """Runs all checks, or those named."""
        report = ConformanceReport(type(self).__name__)
        for name in names or self.checks():
            self.set_up()
            try:
                getattr(self, name)()
            except CheckSkipped as skipped:
                report.skipped[name] = str(skipped)
            except Exception as error:  # noqa: BLE001 - the report has it
                report.failed[name] = error
            else:
                report.passed.append(name)
            finally:
                self.tear_down()
        return report

    def _skip(self, reason: str) -> None:
        raise CheckSkipped(reason)

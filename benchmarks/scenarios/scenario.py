"""Scenario: a case that runs to its end, with variants and figures of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Column", "Scenario", "ScenarioVariant"]


@dataclass(frozen=True)
class Column:
    """One figure: its name in JSON, its title and how the table shows it."""

    name: str
    title: str
    pattern: str = ",.0f"
    worst: bool = False
    """Of several runs the largest counts, not the median."""


@dataclass(frozen=True)
class ScenarioVariant:
    """One setting of a scenario, on one system."""

    name: str
    params: Mapping[str, Any]
    small: Mapping[str, Any] = field(default_factory=dict)
    """What a trial run changes in the parameters."""
    ratio: tuple[str, str] | None = None
    """The variants whose figures are divided: the first one's by the second one's."""
    system: str = "firesteel"
    module: str | None = None


@dataclass(frozen=True)
class Scenario:
    """A case that runs to its end and gives figures of its own."""

    name: str
    about: str
    columns: tuple[Column, ...]
    variants: tuple[ScenarioVariant, ...]
    figure: str = ""
    """The figure that ratios are made of."""
    ratio_title: str = ""
    most_repeats: int = 1
    timeout_s: float = 900.0

    @property
    def systems(self) -> tuple[str, ...]:
        """Systems that take part."""
        return tuple(dict.fromkeys(variant.system for variant in self.variants))

    def module(self, variant: ScenarioVariant) -> str:
        """Where the variant's ``run`` is."""
        return f"benchmarks.scenarios.{variant.module or self.name}"

"""Providers of models: what ML_PREDICT calls for each row, found by the option ``provider`` of a model."""

from __future__ import annotations

import difflib
import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from firesteel.config.configuration import Configuration
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.identifiers import ObjectIdentifier
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.connector.factory import check_options
from firesteel.types.logical import RowType

__all__ = [
    "AsyncPredictFunction",
    "BoundModel",
    "ModelContext",
    "ModelProvider",
    "ModelProviderFactory",
    "PredictFunction",
    "find_model_provider",
    "register_model_provider",
]

BUILT_IN: dict[str, str] = {"openai": "firesteel.table.connectors.models.openai"}
"""The module of each provider; its ``FACTORY`` is the factory."""
_registered: dict[str, ModelProviderFactory] = {}
Values = tuple[Any, ...]


class _Function:
    """Calls a model. Each subtask has a copy of its own, which is pickled before it is opened."""

    def open(self) -> None:
        """Called in the subtask, before the first row."""

    def close(self) -> None:
        """Called in the subtask at the end."""


class PredictFunction(_Function, ABC):
    """Calls a model for one row after the other."""

    @abstractmethod
    def predict(self, row: Values) -> Iterable[Values]:
        """The rows of the output for one of the input; none drops the row."""


class AsyncPredictFunction(_Function, ABC):
    """Calls a model for several rows at a time, on an event loop."""

    @abstractmethod
    async def async_predict(self, row: Values) -> Sequence[Values]:
        """The rows of the output for one of the input; none drops the row."""


@dataclass(frozen=True)
class ModelContext:
    """The model for which a provider is created."""

    identifier: ObjectIdentifier
    input_schema: ResolvedSchema
    output_schema: ResolvedSchema
    options: Mapping[str, str]
    """All options of the model but ``provider``."""
    configuration: Configuration = field(default_factory=Configuration)


class ModelProvider:
    """Makes the functions that call a model: one, or one for each mode."""

    name: str = "model"

    def create_predict_function(self) -> PredictFunction | None:
        """The function that is called row by row; None if the provider has none."""
        return None

    def create_async_predict_function(self) -> AsyncPredictFunction | None:
        """The function that is called for several rows at a time; None if the provider has none."""
        return None


class ModelProviderFactory(ABC):
    """Creates the provider of a model. The one that cannot be created raises ValidationError."""

    identifier: str
    required_options: Iterable[str] = ()
    optional_options: Iterable[str] = ()

    @abstractmethod
    def create_model_provider(self, context: ModelContext) -> ModelProvider:
        """The provider of a model."""


@dataclass(frozen=True)
class BoundModel:
    """A model of a query."""

    identifier: ObjectIdentifier
    input_type: RowType
    output_type: RowType
    provider: ModelProvider = field(compare=False)
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def register_model_provider(factory: ModelProviderFactory) -> None:
    """Adds a provider of a program."""
    _registered[factory.identifier] = factory


def find_model_provider(context: ModelContext, provider: str | None) -> ModelProvider:
    """The provider of a model, after a check of its options."""
    if provider is None:
        raise ValidationError(
            "Model options do not contain an option key 'provider' for discovering a provider.",
            hint="Add 'provider' = 'openai' to WITH (…).",
        )
    factory: Any = _registered.get(provider)
    if factory is None and provider in BUILT_IN:
        factory = importlib.import_module(BUILT_IN[provider]).FACTORY
    if factory is None:
        known = sorted({*BUILT_IN, *_registered})
        near = difflib.get_close_matches(provider, known, 1)
        raise ValidationError(
            f"Could not find any factory for identifier '{provider}'. Available providers: {', '.join(known)}.",
            hint=f"Did you mean '{near[0]}'?" if near else None,
        )
    check_options(factory.identifier, context.options, factory.required_options, factory.optional_options)
    found: ModelProvider = factory.create_model_provider(context)
    return found

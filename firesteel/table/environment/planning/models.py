"""Models of queries, with their providers."""

from __future__ import annotations

from firesteel.config.configuration import Configuration
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.models import FoundModel
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.connector.model import BoundModel, ModelContext, find_model_provider
from firesteel.table.environment.planning.scans import options_text

__all__ = ["bound_model"]


def bound_model(
    found: FoundModel, inputs: ResolvedSchema, outputs: ResolvedSchema, configuration: Configuration
) -> BoundModel:
    """A model with the provider that its options name."""
    options = dict(found.model.options)
    others = {key: value for key, value in options.items() if key != "provider"}
    context = ModelContext(found.identifier, inputs, outputs, others, configuration)
    try:
        provider = find_model_provider(context, options.get("provider"))
    except ValidationError as error:
        raise ValidationError(
            f"Unable to create a model provider for model '{found.identifier.as_summary_string()}'.\n\n"
            f"Model options are:\n\n{options_text(options)}\n\n{error.reason}",
            hint=error.hint,
        ) from error
    return BoundModel(
        found.identifier,
        inputs.to_source_row_data_type(),
        outputs.to_source_row_data_type(),
        provider,
        tuple(sorted(options.items())),
    )

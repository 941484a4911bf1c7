"""The methods of a table environment for models."""

from __future__ import annotations

from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.objects import CatalogModel
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.statements.models import create_model, drop_model
from firesteel.table.model_descriptor import ModelDescriptor
from firesteel.table.parser import parse_path

__all__ = ["ModelMethods"]


class ModelMethods:
    """Creates, drops and lists models."""

    _session: TableSession

    def create_model(
        self, model_path: str, model_descriptor: ModelDescriptor, ignore_if_exists: bool | None = False
    ) -> None:
        """Creates a model in its catalog."""
        self._create_model(model_path, model_descriptor, bool(ignore_if_exists), temporary=False)

    def create_temporary_model(
        self, model_path: str, model_descriptor: ModelDescriptor, ignore_if_exists: bool | None = False
    ) -> None:
        """Creates a model for the time of the session."""
        self._create_model(model_path, model_descriptor, bool(ignore_if_exists), temporary=True)

    def drop_model(self, model_path: str, ignore_if_not_exists: bool | None = True) -> bool:
        """Drops a model; False if there is none."""
        return drop_model(self._session, tuple(parse_path(model_path)), ignore_if_not_exists=bool(ignore_if_not_exists))

    def drop_temporary_model(self, model_path: str) -> bool:
        """Drops a temporary model; False if there is none."""
        return drop_model(self._session, tuple(parse_path(model_path)), ignore_if_not_exists=True, temporary=True)

    def list_models(self) -> list[str]:
        """The models of the current database, without temporary ones, as in Flink."""
        manager = self._session.manager
        identifier = manager.qualify(["-"])
        return sorted(manager.get_catalog(identifier.catalog_name).list_models(identifier.database_name))

    def list_temporary_models(self) -> list[str]:
        """The temporary models of the current database."""
        identifier = self._session.manager.qualify(["-"])
        return self._session.manager.models.temporary_names(identifier.catalog_name, identifier.database_name)

    def _create_model(self, path: str, descriptor: ModelDescriptor, ignore_if_exists: bool, temporary: bool) -> None:
        inputs, outputs = descriptor.input_schema, descriptor.output_schema
        if inputs is None or outputs is None:
            raise ValidationError(
                "The descriptor of a model needs the schemas of its input and its output.",
                hint="ModelDescriptor.for_provider(…).input_schema(…).output_schema(…) declares them.",
            )
        model = CatalogModel.create_model(inputs, outputs, descriptor.options, descriptor.comment)
        create_model(self._session, tuple(parse_path(path)), model, ignore_if_exists, temporary)

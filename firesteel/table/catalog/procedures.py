"""Procedures: what CALL runs, with the program's table environment at hand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from firesteel.types.logical import LogicalType, VarCharType

__all__ = ["Procedure", "ProcedureContext"]


@dataclass(frozen=True)
class ProcedureContext:
    """What a procedure can use."""

    execution_environment: Any
    """The StreamExecutionEnvironment of the session."""

    def get_execution_environment(self) -> Any:
        """The StreamExecutionEnvironment of the session."""
        return self.execution_environment


class Procedure(ABC):
    """A procedure of a catalog, which ``Catalog.get_procedure`` returns.

    The names of arguments are those of the parameters of ``call`` after the context; one with a default value may be
    left out. ``argument_types`` has their types.
    """

    argument_types: Mapping[str, LogicalType] = {}
    result_type: LogicalType = VarCharType()
    """The type of each result; the fields of a ROW are the columns of the result."""

    @abstractmethod
    def call(self, context: ProcedureContext, *arguments: Any) -> Iterable[Any]:
        """Runs the procedure. Each result is a row of the statement's result."""

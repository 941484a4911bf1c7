"""CompiledPlan: an optimized plan that later versions execute."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from firesteel.config import table_options
from firesteel.config.configuration import Configuration
from firesteel.filesystem.stores import Stores
from firesteel.table.bound.errors import ValidationError
from firesteel.table.compiled.document import PlanDocument, decode_document, encode_document
from firesteel.table.environment.planning.plan_tables import PlanTables
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.execution import (
    execute_translated,
    job_environment,
    optimizer_options,
)
from firesteel.table.environment.results.result import TableResult
from firesteel.table.environment.statements.plan_tree import PlanTree
from firesteel.table.explain_detail import ExplainDetail
from firesteel.table.plan.streaming import Sink
from firesteel.table.plan.traits import infer_traits
from firesteel.table.plan_reference import FilePlanReference, JsonContentPlanReference, PlanReference
from firesteel.table.rules.optimizer import optimize_all
from firesteel.table.translate.catalogue import Translator

__all__ = ["CompiledPlan", "compile_plan", "load_plan"]

_OPTIONS = (
    table_options.AGG_PHASE_STRATEGY,
    table_options.ASYNC_LOOKUP_BUFFER_CAPACITY,
    table_options.ASYNC_LOOKUP_TIMEOUT,
    table_options.IDLE_STATE_RETENTION,
    table_options.MINI_BATCH_ENABLED,
    table_options.SOURCE_IDLE_TIMEOUT,
)
"""Options that decide how nodes are run; a plan keeps the values with which it was compiled."""


class CompiledPlan:
    """An optimized plan with the names of its operators, which is executed as it is.

    A later version of Firesteel may plan the same statement differently, and would then not find the state of a
    savepoint again. A compiled plan stays the same.
    """

    def __init__(self, session: TableSession, content: dict[str, Any]) -> None:
        self._session = session
        self._content = content
        self._document = decode_document(content, PlanTables(session).decode)

    def as_json_string(self) -> str:
        """The plan as JSON."""
        return json.dumps(self._content, indent=2, ensure_ascii=False)

    def as_smile_bytes(self) -> bytes:
        """Not supported: Flink's binary form of JSON."""
        raise ValidationError("Plans are not written as Smile.", hint="as_json_string returns the plan as JSON.")

    def print_json_string(self) -> None:
        """Prints the plan as JSON."""
        print(self.as_json_string())  # noqa: T201

    def write_to_file(self, file: str | Path, ignore_if_exists: bool = False) -> None:
        """Writes the plan to a file; one that exists is an error, unless it is to stay as it is."""
        path = str(file)
        filesystem = Stores.of(self._session.configuration).get(path)
        if filesystem.exists(path):
            if ignore_if_exists:
                return
            if not self._session.configuration.get(table_options.PLAN_FORCE_RECOMPILE):
                raise ValidationError(
                    f"Cannot overwrite the plan file '{path}'.",
                    hint="Remove the file, or set the option table.plan.force-recompile to true.",
                )
        filesystem.write(path, [self.as_json_string().encode()])

    def get_flink_version(self) -> str:
        """The version of Firesteel that compiled the plan."""
        return self._document.version

    def execute(self) -> TableResult:
        """Runs the plan as one job."""
        translator = self._translator()
        return execute_translated(self._session, self._document.roots, translator)

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan as a tree."""
        roots = self._document.roots
        shown = infer_traits(roots) if ExplainDetail.CHANGELOG_MODE in extra_details else {}
        parts = ["== Optimized Execution Plan ==\n" + PlanTree(roots, shown, with_reuse=True).print()]
        if ExplainDetail.JSON_EXECUTION_PLAN in extra_details:
            translator = self._translator()
            for root in roots:
                translator.translate(root)
            parts.append(f"== Physical Execution Plan ==\n{translator.environment.get_execution_plan()}\n")
        return "\n".join(parts)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Prints the plan as a tree."""
        print(self.explain(*extra_details))  # noqa: T201

    def __str__(self) -> str:
        return f"CompiledPlan{{{self._document.version}}}"

    def _translator(self) -> Translator:
        document = self._document
        configuration = Configuration(self._session.configuration)
        for key, value in document.configuration.items():
            configuration.set_string(key, value)
        session = self._session.expression_session()
        zone = document.configuration.get(table_options.LOCAL_TIME_ZONE.key, session.local_time_zone)
        database = session.current_database if document.database is None else document.database
        session = replace(session, local_time_zone=zone, current_database=database)
        environment = job_environment(self._session)
        return Translator(environment, document.roots, configuration, session, document.uids)


def compile_plan(session: TableSession, sinks: Sequence[Sink]) -> CompiledPlan:
    """The plan of INSERT statements, which one job runs."""
    if not session.is_streaming:
        raise ValidationError(
            "Plans are compiled in streaming mode only.", hint="Batches have no state that they would keep."
        )
    roots = optimize_all(sinks, optimizer_options(session))
    expressions = session.expression_session()
    translator = Translator(job_environment(session), roots, session.configuration, expressions)
    for root in roots:
        translator.translate(root)
    values = Configuration()
    for option in _OPTIONS:
        values.set(option, session.configuration.get(option))
    values.set(table_options.LOCAL_TIME_ZONE, expressions.local_time_zone)
    document = PlanDocument(
        [root for root in roots if isinstance(root, Sink)],
        translator.uids,
        values.to_dict(),
        expressions.current_database,
    )
    return CompiledPlan(session, encode_document(document, PlanTables(session).encode))


def load_plan(session: TableSession, reference: PlanReference) -> CompiledPlan:
    """The plan of a file or text."""
    if isinstance(reference, FilePlanReference):
        filesystem = Stores.of(session.configuration).get(reference.path)
        if not filesystem.exists(reference.path):
            raise ValidationError(f"Cannot load the plan file '{reference.path}': there is none.")
        text = filesystem.read(reference.path).decode()
    elif isinstance(reference, JsonContentPlanReference):
        text = reference.content
    else:
        raise ValidationError("Plans are not read from Smile.", hint="Write the plan as JSON.")
    try:
        content = json.loads(text)
    except ValueError as error:
        raise ValidationError(f"{reference} is not JSON: {error}") from error
    return CompiledPlan(session, content)

"""COMPILE PLAN and EXECUTE PLAN."""

from __future__ import annotations

from firesteel.config import table_options
from firesteel.filesystem.stores import Stores
from firesteel.table.bound.errors import ValidationError
from firesteel.table.environment.planning.inserts import bind_insert
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.result import TableResult, ok
from firesteel.table.environment.statements.compiled_plan import CompiledPlan, compile_plan, load_plan
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.parser.statements.base import Statement
from firesteel.table.parser.statements.dml import Insert, StatementSet
from firesteel.table.parser.statements.utility import CompilePlan, ExecutePlan
from firesteel.table.plan_reference import PlanReference

__all__ = ["compile_statement"]


def compile_statement(statement: Statement, session: TableSession) -> CompiledPlan:
    """The plan of an INSERT or a statement set."""
    inserts = statement.statements if isinstance(statement, StatementSet) else [statement]
    sinks = []
    for insert in inserts:
        if not isinstance(insert, Insert):
            raise ValidationError(
                "Unsupported SQL query! compilePlanSql() only accepts a single SQL statement of type INSERT"
            )
        sinks.append(bind_insert(session, insert))
    return compile_plan(session, sinks)


@execute_statement.register
def _compile(statement: CompilePlan, session: TableSession) -> TableResult:
    path = statement.path
    exists = Stores.of(session.configuration).get(path).exists(path)
    if statement.execute:
        if exists and not session.configuration.get(table_options.PLAN_FORCE_RECOMPILE):
            return load_plan(session, PlanReference.from_file(path)).execute()
        plan = compile_statement(statement.statement, session)
        plan.write_to_file(path)
        return plan.execute()
    if exists and statement.if_not_exists:
        return ok()
    compile_statement(statement.statement, session).write_to_file(path, statement.if_not_exists)
    return ok()


@execute_statement.register
def _execute_plan(statement: ExecutePlan, session: TableSession) -> TableResult:
    return load_plan(session, PlanReference.from_file(statement.path)).execute()

"""EXPLAIN: the plan of a statement, and the job that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from firesteel.table.bound.errors import ValidationError
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.execution import (
    collecting,
    job_plan,
    optimizer_options,
    translator_of,
    with_final_rows,
)
from firesteel.table.environment.results.result import PrintStyle, TableResult, strings
from firesteel.table.environment.results.spark import plan_for_spark
from firesteel.table.environment.statements.analyze import analyzed_rows
from firesteel.table.environment.statements.dispatch import execute_statement, plan_of
from firesteel.table.environment.statements.plan_tree import PlanTree
from firesteel.table.explain_detail import ExplainDetail
from firesteel.table.parser.statements.base import Statement
from firesteel.table.parser.statements.dml import Insert, Query, StatementSet
from firesteel.table.parser.statements.utility import Explain
from firesteel.table.plan.constraints import ConstraintEnforcer
from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.plan.streaming import Sink
from firesteel.table.plan.traits import infer_traits
from firesteel.table.rules.bounded_sort import bounded_sorts
from firesteel.table.rules.optimizer import optimize, optimize_all
from firesteel.table.spark_sql.layout import laid_out
from firesteel.table.spark_sql.queries import UnsupportedInSparkError
from firesteel.table.translate.phases import describe_phases

__all__ = ["explain_plans", "explain_statement"]


@execute_statement.register
def _explain(statement: Explain, session: TableSession) -> TableResult:
    details = [_detail(name) for name in statement.details if name != "PLAN"]
    text = explain_statement(statement.statement, session, details)
    return strings(["result"], [(text,)], PrintStyle.RAW)


def _detail(name: str) -> ExplainDetail:
    if name not in ExplainDetail.__members__:
        known = ", ".join(ExplainDetail.__members__)
        raise ValidationError(f"EXPLAIN {name} is not supported.", hint=f"There is {known}.")
    return ExplainDetail[name]


def explain_statement(statement: Statement, session: TableSession, details: Sequence[ExplainDetail]) -> str:
    """The plan of a query, an INSERT or a statement set."""
    if isinstance(statement, StatementSet):
        return explain_plans([plan_of(insert, session) for insert in statement.statements], session, details)
    if not isinstance(statement, (Query, Insert)):
        raise ValidationError(
            f"EXPLAIN of {type(statement).__name__} is not supported.", hint="EXPLAIN takes a query, INSERT or set."
        )
    return explain_plans([plan_of(statement, session)], session, details)


def explain_plans(plans: Sequence[LogicalNode], session: TableSession, details: Sequence[ExplainDetail]) -> str:
    """The plans as they were bound, as they are run, and what runs them."""
    if ExplainDetail.PLAN_ADVICE in details:
        raise ValidationError("EXPLAIN PLAN_ADVICE is not supported yet.")
    # batches show it here: Spark chooses their plan
    with_cost = ExplainDetail.ESTIMATED_COST in details and not session.is_streaming
    tree = PlanTree(plans, with_cost=with_cost, known_rows=partial(analyzed_rows, session), with_exchanges=False)
    parts = ["== Abstract Syntax Tree ==\n" + tree.print()]
    if session.is_streaming:
        parts += _streaming_parts(plans, details, session)
    else:
        parts.append("== Execution ==\n" + "\n".join(_execution(plan, session) for plan in plans))
    if ExplainDetail.JSON_EXECUTION_PLAN in details:
        parts.append(f"== Physical Execution Plan ==\n{job_plan(session, plans)}\n")
    return "\n".join(parts)


def _streaming_parts(
    plans: Sequence[LogicalNode], details: Sequence[ExplainDetail], session: TableSession
) -> list[str]:
    sinks = [plan if isinstance(plan, Sink) else collecting(plan) for plan in plans]
    roots = optimize_all(sinks, optimizer_options(session))
    traits = infer_traits(roots)
    phases = partial(describe_phases, translator=translator_of(session, roots))
    optimized = [root if isinstance(plan, Sink) else root.inputs()[0] for plan, root in zip(plans, roots, strict=True)]
    shown = traits if ExplainDetail.CHANGELOG_MODE in details else {}
    with_cost = ExplainDetail.ESTIMATED_COST in details
    return [
        "== Optimized Physical Plan ==\n" + PlanTree(optimized, shown, with_cost=with_cost, phases=phases).print(),
        "== Optimized Execution Plan ==\n" + PlanTree(optimized, with_reuse=True, phases=phases).print(),
    ]


def _execution(plan: LogicalNode, session: TableSession) -> str:
    """What runs a batch query, and why."""
    query = plan.inputs()[0] if isinstance(plan, Sink) else plan
    if isinstance(query, ConstraintEnforcer):
        query = query.input
    try:
        on_spark = plan_for_spark(session, query)
        return f"Spark SQL:\n{laid_out(on_spark.text)}\n{on_spark.readers()}"
    except UnsupportedInSparkError as error:
        bounded = with_final_rows(plan) if isinstance(plan, Sink) else bounded_sorts(plan)
        root = optimize(bounded, optimizer_options(session))
        tree = PlanTree([root], phases=partial(describe_phases, translator=translator_of(session, [root])))
        return f"Operators of Firesteel, since Spark SQL cannot run it: {error}\n{tree.print()}"

"""CompiledPlan: an optimized plan that later versions execute."""

from firesteel.table.environment.statements.compiled_plan import CompiledPlan

__all__ = ["CompiledPlan"]

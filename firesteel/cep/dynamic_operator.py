"""The operator whose pattern is replaced by records of a broadcast stream, and its spec.

Input 0 is the stream of events, input 1 that of rules. A rule is any record from which a function of the program makes
a pattern: rules travel and are checkpointed, patterns with their functions need not be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from firesteel.api.state import MapStateDescriptor
from firesteel.cep.operator import CepOperator, CepSpec
from firesteel.cep.pattern.pattern import Pattern
from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.operators.co import TwoInputOperator
from firesteel.runtime.state.api.backend import NO_KEY

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import LoopWriter
    from firesteel.runtime.model.operator_spec import Operator, OperatorRuntime
    from firesteel.runtime.operators.base import OperatorContext
    from firesteel.runtime.state.api.operator_state import OperatorStateBackend

__all__ = ["RULE_STATE", "DynamicCepOperator", "DynamicCepSpec"]

RULE_STATE = MapStateDescriptor("cep-rule")
"""The last rule, under the key 0."""
_RULES = 1


@dataclass(frozen=True)
class DynamicCepSpec(CepSpec):
    """Matches the pattern of the last rule."""

    to_pattern: Callable[[Any], Pattern] | None = None

    def create(self, runtime: OperatorRuntime) -> Operator:  # type: ignore[override]
        """Returns a new operator for one subtask."""
        return DynamicCepOperator(self)

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """Returns the function that is called with matches, and the one that makes patterns."""
        assert self.to_pattern is not None
        return {**super().functions(), "pattern factory": self.to_pattern}

    def declares_states(self, *, is_keyed: bool) -> bool:
        """The rule, at least."""
        return True

    def without_user_functions(self) -> CepSpec:
        """Returns a spec with the same states."""
        return replace(super().without_user_functions(), to_pattern=Pattern.begin)  # type: ignore[call-arg]

    @property
    def has_broadcast_side(self) -> bool:
        """Whether the second input is a broadcast stream."""
        return True


class DynamicCepOperator(TwoInputOperator):
    """A CepOperator for one record after the other, with a pattern that changes."""

    def __init__(self, spec: DynamicCepSpec):
        self._spec = spec
        self._matching = CepOperator(spec)
        self.function = self.user_function = spec.function
        self.is_rich = True
        self.calls = (self._process, self._replace)

    def open(self, context: OperatorContext) -> None:
        """Opens the operator with the pattern of the restored rule, if there is one."""
        self.context = context
        self._rules = context.operator_state.get_broadcast_state(RULE_STATE)
        self._matching.open(context)
        rule = self._rules.get(0)
        if rule is not None:
            self._matching.set_pattern(self._pattern_of(rule[0]))

    def close(self) -> None:
        self._matching.close()

    def fire_timers(self, timestamp: int) -> bool:
        return self._matching.fire_timers(timestamp)

    def end_groups(self) -> None:
        """Emits what was collected."""
        self._matching.end_groups()

    def snapshot_state(
        self, checkpoint_id: int, operator_state: OperatorStateBackend, timestamp: int | None = None
    ) -> None:
        """Moves waiting events into state."""
        super().snapshot_state(checkpoint_id, operator_state, timestamp)
        self._matching.store_waiting()

    def write_input(self, writer: LoopWriter, value: str, index: int) -> None:
        """Sets the key of an event; a rule has none."""
        if index != _RULES:
            super().write_input(writer, value, index)
            return
        writer.prologue(f"{writer.bind('backend', self.context.backend)}.key = {writer.bind('no_key', NO_KEY)}")
        self.write_call(writer, value, index)

    def write_call(self, writer: LoopWriter, value: str, index: int) -> None:
        """``process(v0, t0)`` or ``replace(v0)``; what they emit does not go through the loop."""
        call = writer.bind("call", self.calls[index])
        timestamp = f", {writer.timestamp if writer.with_timestamps else None}" if index != _RULES else ""
        writer.line(f"{call}({value}{timestamp})", element=value)

    def _process(self, value: Any, timestamp: int | None) -> None:
        self._matching.process_record(value, timestamp)

    def _replace(self, rule: Any) -> None:
        """Replaces the pattern; partial matches of the last one are dropped."""
        self._matching.set_pattern(self._pattern_of(rule))
        self._rules.put(0, (rule,))
        if not self.context.execution.one_key_at_a_time:
            self._matching.drop_partial_matches()

    def _pattern_of(self, rule: Any) -> Pattern:
        assert self._spec.to_pattern is not None
        pattern = self._spec.to_pattern(rule)
        if not isinstance(pattern, Pattern):
            raise InvalidProgramError(
                f"The function that makes patterns returned {pattern!r} for the rule {rule!r}.",
                hint="Return a Pattern, such as Pattern.begin('a').where(...).",
            )
        return pattern

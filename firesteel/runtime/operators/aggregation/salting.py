"""Salting: spreads the records of each key over several subtasks, which aggregate them before the exchange by key."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.codegen.functions import method_of
from firesteel.runtime.model.key_groups import key_group_of
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.inline import InlineOperator

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import LoopWriter
    from firesteel.runtime.model.operator_spec import OperatorRuntime
    from firesteel.runtime.operators.base import OperatorContext

__all__ = ["SaltOperator", "SaltSpec"]

_BUCKETS = 1024
"""Keys are divided into so many buckets, so that there are not too many salted keys."""
_MAX_KEYS = 1 << 18


@dataclass(frozen=True)
class SaltSpec(OperatorSpec):
    """Emits triples of a key, its salted key and the record; the salts of a bucket of keys come in turn."""

    key_selector: Any
    salts: int

    def create(self, runtime: OperatorRuntime) -> SaltOperator:
        """Returns a new operator for one subtask."""
        return SaltOperator(self)

    def user_function(self) -> Any:
        return self.key_selector


class _FirstSalts(dict[Any, int]):
    """From key to the first salted key of its bucket; bounded."""

    def __init__(self, salts: int):
        super().__init__()
        self._salts = salts

    def __missing__(self, key: Any) -> int:
        first = key_group_of(key, _BUCKETS) * self._salts
        if len(self) >= _MAX_KEYS:
            self.clear()
        self[key] = first
        return first


class SaltOperator(InlineOperator):
    """Gives each record one of the salts, in turn."""

    method = "get_key"
    is_one_to_one = True

    def __init__(self, spec: SaltSpec):
        super().__init__(spec.key_selector)
        self._select = method_of(spec.key_selector, "get_key")
        self._firsts = _FirstSalts(spec.salts)
        self._salts = spec.salts

    def open(self, context: OperatorContext) -> None:
        """Opens the key selector."""
        super().open(context)
        # subtasks begin with different salts
        start = context.runtime_context.get_index_of_this_subtask() % self._salts
        self._next = itertools.islice(itertools.cycle(range(self._salts)), start, None).__next__

    def write(self, writer: LoopWriter, value: str) -> None:
        """``v1 = (k, first salted key + next salt, v0)`` and on."""
        key, result = writer.new_variable("k"), writer.new_variable("v")
        firsts, next_salt = writer.bind("firsts", self._firsts), writer.bind("salt", self._next)
        writer.line(f"{key} = {writer.call(self._select, value)}", element=value, what="key_by")
        writer.line(f"{result} = ({key}, {firsts}[{key}] + {next_salt}(), {value})", element=value, what="key_by")
        # the record is the chain's own, and so is the triple
        writer.derive(result, value, tuple)
        writer.write_consumers(result)

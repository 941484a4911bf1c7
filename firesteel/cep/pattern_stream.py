"""CEP and PatternStream: how a program matches a pattern on a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from firesteel.api.output_tag import OutputTag
from firesteel.cep.dynamic_operator import DynamicCepSpec
from firesteel.cep.functions import PatternProcessFunction, flat_select_adapter, select_adapter
from firesteel.cep.nfa.compiler import compile_pattern
from firesteel.cep.operator import CepSpec
from firesteel.cep.pattern.pattern import Pattern, conditions_of
from firesteel.config import pipeline_options
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.functions import NullByteKeySelector
from firesteel.datastream.streams.call_site import user_call_site
from firesteel.datastream.streams.coroutine_check import refuse_coroutines
from firesteel.datastream.streams.keyed_stream import KeyedStream
from firesteel.datastream.streams.output_types import to_type_info
from firesteel.graph.transformation import TwoInputTransformation

__all__ = ["CEP", "PatternStream"]


class CEP:
    """Matches patterns on streams."""

    @staticmethod
    def pattern(input_stream: DataStream, pattern: Pattern, comparator: Any = None) -> PatternStream:
        """Matches a pattern, per key if the stream is keyed.

        The comparator orders events of the same timestamp: a function of two events that returns a negative number,
        0 or a positive one.
        """
        if not isinstance(input_stream, DataStream):
            raise TypeError(f"CEP.pattern needs a DataStream, got {input_stream!r}.")
        if not isinstance(pattern, Pattern):
            raise TypeError(f"CEP.pattern needs a Pattern, got {pattern!r}.")
        compile_pattern(pattern)  # refuses what cannot run where the program describes it
        for condition in conditions_of(pattern):
            refuse_coroutines("CEP.pattern", condition)
            refuse_coroutines("CEP.pattern", condition.filter)
        return PatternStream(input_stream, pattern, comparator)

    @staticmethod
    def dynamic_patterns(
        input_stream: DataStream, rule_stream: DataStream, to_pattern: Callable[[Any], Pattern], comparator: Any = None
    ) -> PatternStream:
        """Matches the pattern of the last record of a second stream, which every subtask receives. Not in Flink.

        A rule is any record; ``to_pattern(rule)`` returns its pattern. A new rule drops all partial matches of the last
        one. Events that are processed before the first rule arrives are not matched.
        """
        for stream in (input_stream, rule_stream):
            if not isinstance(stream, DataStream):
                raise TypeError(f"CEP.dynamic_patterns needs two DataStreams, got {stream!r}.")
        if not callable(to_pattern):
            raise TypeError(f"CEP.dynamic_patterns needs a function from rules to patterns, got {to_pattern!r}.")
        return PatternStream(input_stream, None, comparator, _rules=rule_stream, _to_pattern=to_pattern)


@dataclass(frozen=True)
class PatternStream:
    """The matches of a pattern, to which a function is to be applied. In event time unless set otherwise."""

    _input: DataStream
    _pattern: Pattern | None
    _comparator: Any = None
    _late_tag: OutputTag | None = None
    _is_event_time: bool = True
    _rules: DataStream | None = None
    _to_pattern: Callable[[Any], Pattern] | None = None

    def in_processing_time(self) -> PatternStream:
        """Matches events when and in the order that they arrive."""
        return replace(self, _is_event_time=False)

    def in_event_time(self) -> PatternStream:
        """Matches events in the order of their timestamps, once the watermark has passed them."""
        return replace(self, _is_event_time=True)

    def side_output_late_data(self, late_data_output_tag: OutputTag) -> PatternStream:
        """Sends events that the watermark has passed before they arrived to a side output of the result."""
        return replace(self, _late_tag=_checked(late_data_output_tag))

    def process(self, pattern_process_function: PatternProcessFunction, output_type: Any = None) -> DataStream:
        """Calls a PatternProcessFunction with each match."""
        if not isinstance(pattern_process_function, PatternProcessFunction):
            raise TypeError(f"process needs a PatternProcessFunction, got {pattern_process_function!r}.")
        stream = self._input
        is_keyed = isinstance(stream, KeyedStream)
        keyed = stream if isinstance(stream, KeyedStream) else stream.key_by(NullByteKeySelector())
        limit = stream.get_execution_environment().get_configuration().get(pipeline_options.CEP_MAX_PARTIAL_MATCHES)
        settings: dict[str, Any] = {
            "is_event_time": self._is_event_time,
            "comparator": self._comparator,
            "late_tag": self._late_tag,
            "max_partial_matches": limit if limit > 0 else None,
        }
        name = "CepOperator" if is_keyed else "GlobalCepOperator"
        if self._rules is None:
            spec = CepSpec(self._pattern, pattern_process_function, **settings)
            result = keyed._transform(name, spec, output_type)
        else:
            spec = DynamicCepSpec(None, pattern_process_function, to_pattern=self._to_pattern, **settings)
            result = _connected(keyed, self._rules, spec, name, output_type)
        return result if is_keyed else result.force_non_parallel()

    def select(
        self,
        select_function: Any,
        timeout_function: Any = None,
        select_function_with_timeout: Any = None,
        output_type: Any = None,
    ) -> DataStream:
        """Emits one result per match: ``select(function)``.

        ``select(tag, timeout_function, function)`` emits also one result per timed-out partial match, to a side output.
        """
        for each in (select_function, timeout_function, select_function_with_timeout):
            refuse_coroutines("select", each)
        if isinstance(select_function, OutputTag):
            tag, function = select_function, select_function_with_timeout
            return self.process(select_adapter(function, tag, timeout_function), output_type)
        _refuse_timeout(timeout_function, select_function_with_timeout)
        return self.process(select_adapter(select_function), output_type)

    def flat_select(
        self,
        flat_select_function: Any,
        timeout_function: Any = None,
        flat_select_function_with_timeout: Any = None,
        output_type: Any = None,
    ) -> DataStream:
        """Emits any number of results per match: ``flat_select(function)``.

        ``flat_select(tag, timeout_function, function)`` emits results of timed-out partial matches to a side output.
        """
        for each in (flat_select_function, timeout_function, flat_select_function_with_timeout):
            refuse_coroutines("flat_select", each)
        if isinstance(flat_select_function, OutputTag):
            tag, function = flat_select_function, flat_select_function_with_timeout
            return self.process(flat_select_adapter(function, tag, timeout_function), output_type)
        _refuse_timeout(timeout_function, flat_select_function_with_timeout)
        return self.process(flat_select_adapter(flat_select_function), output_type)


def _connected(keyed: KeyedStream, rules: DataStream, spec: DynamicCepSpec, name: str, output_type: Any) -> DataStream:
    environment = keyed.get_execution_environment()
    transformation = TwoInputTransformation(
        keyed._transformation,
        rules.broadcast()._transformation,
        spec,
        key_selectors=(keyed._key_selector, None),
        key_type=keyed._key_type,
        name=name,
        output_type=to_type_info(output_type),
        defined_at=user_call_site(),
    )
    environment._add_operator(transformation)
    return DataStream(environment, transformation)


def _checked(tag: OutputTag) -> OutputTag:
    if not isinstance(tag, OutputTag):
        raise TypeError(f"An OutputTag is needed, got {tag!r}.")
    return tag


def _refuse_timeout(*functions: Any) -> None:
    if any(function is not None for function in functions):
        raise TypeError("A function for timed-out partial matches needs an OutputTag as the first argument.")

"""Compiles a pattern to the states of an automaton, from its last stage to its first.

The states are those of Flink's compiler, with the same names, because the order of matches follows from the order of
transitions, and savepoints have the names.
"""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.cep.nfa.states import Action, State, StateType
from firesteel.cep.pattern.after_match import AfterMatchSkipStrategy
from firesteel.cep.pattern.conditions import AndCondition, Condition, NotCondition, TrueCondition
from firesteel.cep.pattern.pattern import GroupPattern, Pattern
from firesteel.cep.pattern.quantifier import (
    ConsumingStrategy,
    MalformedPatternException,
    QuantifierProperty,
    Times,
    WithinType,
)

__all__ = ["CompiledPattern", "compile_pattern"]

_END = "$endState$"
_NO_TIME = 1 << 63


@dataclass(frozen=True)
class CompiledPattern:
    """The states of a pattern."""

    states: tuple[State, ...]
    start: State
    window_time: int
    """The time between the first and the last event of a match in milliseconds; 0: any."""
    window_times: dict[str, int]
    """The time since the previous event for which a partial match may be in a state, by the state's name."""
    strategy: AfterMatchSkipStrategy
    text: str
    """The pattern, for error messages."""


def compile_pattern(pattern: Pattern) -> CompiledPattern:
    """Returns the states of a pattern; refuses one that cannot be matched."""
    return _Compiler(pattern).compile()


class _Compiler:
    """The stage that is being compiled, and the states so far."""

    def __init__(self, pattern: Pattern):
        self._pattern = pattern
        self._names: set[str] = set()
        self._states: list[State] = []
        self._stop_states: dict[str, State] = {}
        self._window_times: dict[str, int] = {}
        self._window_time: int | None = None
        self._copies_of_greedy_sinks: dict[str, State] = {}
        self._stage = pattern
        self._following: Pattern | None = None
        self._group: GroupPattern | None = None
        self._is_first_of_loop: dict[int, bool] = {}

    def compile(self) -> CompiledPattern:
        """Returns the states of the pattern."""
        last = self._pattern
        strategy = last.get_after_match_skip_strategy()
        _check_names(last)
        _check_skip_strategy(last, strategy)
        end = self._new_state(_END, _END, StateType.FINAL)
        self._window_time = last.get_window_size()
        start = self._convert(self._create_middle_states(end))
        start.state_type = StateType.START
        self._check_times(last)
        _check_loops(self._states)
        return CompiledPattern(
            tuple(self._states), start, self._window_time or 0, self._window_times, strategy, repr(last)
        )

    def _check_times(self, last: Pattern) -> None:
        whole = self._window_time
        if whole is not None and any(time > whole for time in self._window_times.values()):
            raise MalformedPatternException(
                "The time between two neighbouring events is longer than that of the whole pattern.",
                hint="Give within for the whole pattern a longer time.",
            )
        if (
            last.get_quantifier().consuming_strategy is ConsumingStrategy.NOT_FOLLOW
            and self._window_times.get(last.get_name(), 0) <= 0
            and not whole
        ):
            raise MalformedPatternException(
                f"The pattern ends with not_followed_by({last.get_name()!r}) and has no end of time, so it would "
                "never match.",
                hint="Call within on the pattern.",
            )

    # the stages

    def _create_middle_states(self, sink: State) -> State:
        """Compiles the stages of a pattern, or of a group, but for the first one."""
        while (previous := self._stage.get_previous()) is not None:
            strategy = self._stage.get_quantifier().consuming_strategy
            if strategy is ConsumingStrategy.NOT_FOLLOW:
                sink = self._create_not_follow(sink)
            elif strategy is ConsumingStrategy.NOT_NEXT:
                sink = self._create_not_next(sink)
            else:
                sink = self._convert(sink)
            self._following, self._stage = self._stage, previous
            window = previous.get_window_size()
            if window is not None and window < (_NO_TIME if self._window_time is None else self._window_time):
                self._window_time = window
        return sink

    def _create_not_follow(self, sink: State) -> State:
        """At the end of a pattern it is a state; elsewhere it becomes conditions of the neighbouring states."""
        between = self._stage.get_window_size(WithinType.PREVIOUS_AND_CURRENT)
        if not sink.is_final or (between is None and not self._window_time):
            return sink
        state = self._create_state(StateType.PENDING, is_take=True)
        condition = self._take_condition(self._stage)
        state.add_proceed(self._stop_state(condition, self._stage.get_name()), condition)
        state.add_ignore(state, NotCondition(condition))
        return state

    def _create_not_next(self, sink: State) -> State:
        state = self._create_state(StateType.NORMAL, is_take=True)
        condition = self._take_condition(self._stage)
        stop = self._stop_state(condition, self._stage.get_name())
        # an end must not be reached before the event that must not match
        state.add(Action.IGNORE if sink.is_final else Action.PROCEED, sink, NotCondition(condition))
        state.add_proceed(stop, condition)
        return state

    def _convert(self, sink: State) -> State:
        quantifier, times = self._stage.get_quantifier(), self._stage.get_times()
        if quantifier.has(QuantifierProperty.LOOPING):
            assert times is not None
            self._set_first_of_loop(False)
            looping = self._create_looping(self._without_transitive_nots(sink))
            self._set_first_of_loop(True)
            state = self._create_times(looping, sink, times)
        elif quantifier.has(QuantifierProperty.TIMES):
            assert times is not None
            state = self._create_times(sink, sink, times)
        else:
            stage = self._stage
            state = self._create_singleton(
                sink, sink, self._take_condition(stage), self._ignore_condition(stage), quantifier.is_optional
            )
        self._add_stop_states(state)
        return state

    def _create_singleton(
        self, sink: State, proceed_to: State, take: Condition, ignore: Condition | None, is_optional: bool
    ) -> State:
        """A state that takes one event."""
        if isinstance(self._stage, GroupPattern):
            return self._create_group(self._stage, sink, proceed_to, is_optional)
        state = self._create_state(StateType.NORMAL, is_take=True)
        # once an event is taken, stages before an optional one need no longer be absent
        taken = self._without_transitive_nots(sink)
        state.add_take(taken, take)
        if is_optional:
            self._add_proceed(state, proceed_to, self._copies_of_greedy_sinks.get(proceed_to.name))
        if ignore is not None:
            waiting = state
            if is_optional or self._is_head_of_optional_group():
                waiting = self._create_state(StateType.NORMAL, is_take=False)
                waiting.add_take(taken, take)
                waiting.add_ignore(waiting, ignore)
                self._add_stop_states(waiting)
            state.add_ignore(waiting, ignore)
        return state

    def _add_proceed(self, state: State, sink: State, copy_of_sink: State | None) -> None:
        """Lets a state be left without an event; a greedy loop that was ended goes on to the copy of its sink."""
        until = self._stage.get_until_condition()
        proceed = self._true_condition()
        if until is None or not self._stage.get_quantifier().is_greedy:
            state.add_proceed(sink, proceed)
            return
        if copy_of_sink is None:
            raise MalformedPatternException(
                f"Stage {self._stage.get_name()!r} is optional, greedy and has an until condition, and a stage before "
                "it must not occur; this is not supported."
            )
        state.add_proceed(copy_of_sink, AndCondition(proceed, until))
        state.add_proceed(sink, AndCondition(proceed, NotCondition(until)))

    def _create_times(self, sink: State, proceed_to: State, times: Times) -> State:
        """A row of states that take an event each."""
        stage = self._stage
        self._set_first_of_loop(False)
        until = stage.get_until_condition()
        inner_ignore = _unless(self._inner_ignore_condition(stage), until, is_take=False)
        take = _unless(self._take_condition(stage), until, is_take=True)
        assert take is not None
        if stage.get_quantifier().is_greedy and times.least != times.most:
            if until is not None:
                self._copies_of_greedy_sinks[sink.name] = self._copy(sink)
            _make_greedy(sink, take)
        state = sink
        for number in range(times.most - 1):
            is_optional = number < times.most - times.least
            state = self._create_singleton(state, proceed_to, take, inner_ignore, is_optional)
            self._add_stop_state_to_loop(state)
        self._set_first_of_loop(True)
        return self._create_singleton(
            state, proceed_to, take, self._ignore_condition(stage), stage.get_quantifier().is_optional
        )

    def _create_looping(self, sink: State) -> State:
        """A state that takes any number of events."""
        stage = self._stage
        if isinstance(stage, GroupPattern):
            return self._create_looping_group(stage, sink)
        until = stage.get_until_condition()
        ignore = _unless(self._inner_ignore_condition(stage), until, is_take=False)
        take = _unless(self._take_condition(stage), until, is_take=True)
        assert take is not None
        looping = self._create_state(StateType.NORMAL, is_take=True)
        if stage.get_quantifier().is_greedy:
            copy = None
            if until is not None:
                copy = self._copies_of_greedy_sinks[sink.name] = self._copy(sink)
            self._add_proceed(looping, sink, copy)
            _make_greedy(sink, self._take_condition(stage))
        else:
            looping.add_proceed(sink, self._true_condition())
        looping.add_take(looping, take)
        self._add_stop_state_to_loop(looping)
        if ignore is not None:
            # it has no way on to the sink, so that each is taken once only
            waiting = self._create_state(StateType.NORMAL, is_take=False)
            waiting.add_take(looping, take)
            waiting.add_ignore(waiting, ignore)
            looping.add_ignore(waiting, ignore)
            self._add_stop_state_to_loop(waiting)
        return looping

    # groups

    def _create_group(self, group: GroupPattern, sink: State, proceed_to: State, is_optional: bool) -> State:
        proceed = self._true_condition()
        first = self._convert_group(group, sink)
        if is_optional:
            first.add_proceed(proceed_to, proceed)
        return first

    def _create_looping_group(self, group: GroupPattern, sink: State) -> State:
        proceed = self._true_condition()
        again = self._create_state(StateType.NORMAL, is_take=True)
        first = self._convert_group(group, again)
        first.add_proceed(sink, proceed)
        again.add_proceed(first, proceed)
        return first

    def _convert_group(self, group: GroupPattern, sink: State) -> State:
        outer = self._stage, self._following, self._group
        self._group, self._stage = group, group.get_raw_pattern()
        first = self._convert(self._create_middle_states(sink))
        self._stage, self._following, self._group = outer
        return first

    def _set_first_of_loop(self, is_first: bool) -> None:
        if isinstance(self._stage, GroupPattern):
            self._is_first_of_loop[id(self._stage)] = is_first

    def _group_is_first_of_loop(self) -> bool:
        return self._is_first_of_loop.get(id(self._group), True)

    def _is_head_of_optional_group(self) -> bool:
        return (
            self._group is not None
            and self._stage.get_previous() is None
            and self._group_is_first_of_loop()
            and self._group.get_quantifier().is_optional
        )

    # states

    def _new_state(self, name: str, stage: str, state_type: StateType) -> State:
        unique, number = name, 0
        while unique in self._names:
            unique, number = f"{name}:{number}", number + 1
        self._names.add(unique)
        state = State(unique, stage, state_type)
        self._states.append(state)
        return state

    def _create_state(self, state_type: StateType, *, is_take: bool) -> State:
        name = self._stage.get_name()
        state = self._new_state(name, name, state_type)
        if is_take:
            times = self._stage.get_times()
            window: int | None = None
            if times is None:
                window = self._stage.get_window_size(WithinType.PREVIOUS_AND_CURRENT)
            elif state.name != name:
                window = times.window_time
            if window is not None:
                self._window_times[state.name] = window
        return state

    def _copy(self, state: State) -> State:
        copy = self._new_state(state.stage, state.stage, state.state_type)
        for each in state.transitions:
            copy.add(each.action, copy if each.target is state else each.target, each.condition)
        return copy

    def _stop_state(self, condition: Condition, name: str) -> State:
        """The one state in which the absence of a stage is violated."""
        state = self._stop_states.get(name)
        if state is None:
            state = self._stop_states[name] = self._new_state(name, name, StateType.STOP)
            state.add_take(state, condition)
        return state

    def _add_stop_states(self, state: State) -> None:
        for condition, name in self._nots():
            state.add_proceed(self._stop_state(condition, name), condition)

    def _add_stop_state_to_loop(self, state: State) -> None:
        following = self._following
        if following is not None and following.get_quantifier().consuming_strategy is ConsumingStrategy.NOT_FOLLOW:
            condition = self._take_condition(following)
            state.add_proceed(self._stop_state(condition, following.get_name()), condition)

    def _nots(self) -> list[tuple[Condition, str]]:
        """The stages that must be absent before this one, also those before optional stages."""
        nots = []
        previous = self._stage.get_previous()
        while previous is not None:
            quantifier = previous.get_quantifier()
            is_not = quantifier.consuming_strategy is ConsumingStrategy.NOT_FOLLOW
            if not is_not and not quantifier.is_optional:
                break
            if is_not:
                nots.append((self._take_condition(previous), previous.get_name()))
            previous = previous.get_previous()
        return nots

    def _without_transitive_nots(self, sink: State) -> State:
        """A copy of a state in which stages before an optional one need not be absent."""
        nots = self._nots()
        if not nots or not self._stage.get_quantifier().is_optional:
            return sink
        names = {name for _, name in nots}
        copy = self._new_state(sink.name, sink.stage, sink.state_type)
        for each in sink.transitions:
            if each.action is not Action.PROCEED:
                copy.add(each.action, copy if each.target is sink else each.target, each.condition)
            elif not each.target.is_stop:
                copy.add(each.action, self._without_transitive_nots(each.target), each.condition)
            elif each.target.name not in names:
                copy.add(each.action, each.target, each.condition)
        return copy

    # conditions

    def _take_condition(self, stage: Pattern) -> Condition:
        return self._unless_group_ended(stage.get_condition())

    def _true_condition(self) -> Condition:
        return self._unless_group_ended(TrueCondition())

    def _unless_group_ended(self, condition: Condition) -> Condition:
        until = None if self._group is None else self._group.get_until_condition()
        extended = _unless(condition, until, is_take=True)
        assert extended is not None
        return extended

    def _ignore_condition(self, stage: Pattern) -> Condition | None:
        strategy = stage.get_quantifier().consuming_strategy
        if self._is_head_of_group(stage):
            assert self._group is not None
            quantifier = self._group.get_quantifier()
            is_first = self._group_is_first_of_loop()
            strategy = quantifier.consuming_strategy if is_first else quantifier.inner_consuming_strategy
        return self._ignore_condition_of(stage, strategy)

    def _inner_ignore_condition(self, stage: Pattern) -> Condition | None:
        strategy = stage.get_quantifier().inner_consuming_strategy
        if self._is_head_of_group(stage):
            assert self._group is not None
            strategy = self._group.get_quantifier().inner_consuming_strategy
        return self._ignore_condition_of(stage, strategy)

    def _ignore_condition_of(self, stage: Pattern, strategy: ConsumingStrategy) -> Condition | None:
        ignore: Condition | None = None
        if strategy is ConsumingStrategy.SKIP_TILL_NEXT:
            ignore = NotCondition(stage.get_condition())
        elif strategy is ConsumingStrategy.SKIP_TILL_ANY:
            ignore = TrueCondition()
        until = None if self._group is None else self._group.get_until_condition()
        return _unless(ignore, until, is_take=False)

    def _is_head_of_group(self, stage: Pattern) -> bool:
        return self._group is not None and stage.get_previous() is None


def _unless(condition: Condition | None, until: Condition | None, *, is_take: bool) -> Condition | None:
    if until is not None and condition is not None:
        return AndCondition(NotCondition(until), condition)
    return NotCondition(until) if until is not None and is_take else condition


def _make_greedy(sink: State, take: Condition) -> None:
    """Leaves a state only with events that the stage before it does not take."""
    for each in sink.transitions:
        each.condition = AndCondition(each.condition, NotCondition(take))


def _check_names(pattern: Pattern, names: set[str] | None = None) -> None:
    used = {_END} if names is None else names
    for stage in pattern.stages():
        if isinstance(stage, GroupPattern):
            _check_names(stage.get_raw_pattern(), used)
        elif stage.get_name() in used:
            raise MalformedPatternException(
                f"Two stages have the name {stage.get_name()!r}.", hint="Give each stage a name of its own."
            )
        else:
            used.add(stage.get_name())


def _check_skip_strategy(pattern: Pattern, strategy: AfterMatchSkipStrategy) -> None:
    name = strategy.pattern_name
    if name is not None and all(stage.get_name() != name for stage in pattern.stages()):
        names = ", ".join(repr(stage.get_name()) for stage in pattern.stages())
        raise MalformedPatternException(
            f"The strategy after a match skips to {name!r}, but the stages of the pattern are {names}."
        )


def _check_loops(states: list[State]) -> None:
    """Refuses a loop that needs no event: it would be repeated for ever with the first event."""
    done: set[str] = set()
    for state in states:
        _follow(state, (), done)


def _follow(state: State, path: tuple[State, ...], done: set[str]) -> None:
    if state in path:
        raise MalformedPatternException(
            f"A group with the stage {state.stage!r} is repeated but all its stages are optional, so it could be "
            "repeated for ever without an event.",
            hint="Leave out optional() in the group, or make the group itself optional.",
        )
    if state.name in done:
        return
    for each in state.transitions:
        if each.action is Action.PROCEED:
            _follow(each.target, (*path, state), done)
    done.add(state.name)

"""What can be set on every operator: names, parallelism, chaining, slot sharing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firesteel.common.errors import InvalidProgramError
from firesteel.datastream.slot_sharing_group import SlotSharingGroup
from firesteel.graph.parallelism import MAX_PARALLELISM_LIMIT, describe
from firesteel.graph.transformation import ChainingStrategy, Transformation

if TYPE_CHECKING:
    from typing_extensions import Self

    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["OperatorSettings", "check_max_parallelism"]


class OperatorSettings:
    """The settings that streams and sinks share; each returns the object it was called on."""

    _environment: StreamExecutionEnvironment

    def _operator(self) -> Transformation:
        """The operator that a setting applies to."""
        raise NotImplementedError

    def name(self, name: str) -> Self:
        """Names the operator in plans, logs and metrics."""
        self._operator().name = _non_empty("name", name)
        return self

    def uid(self, uid: str) -> Self:
        """Sets the uid of the operator, which identifies its state independently of the rest of the program."""
        self._operator().uid = _non_empty("uid", uid)
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Sets the operator id, 32 hex digits, of an earlier program version in which the operator had no uid."""
        self._operator().uid_hash = _non_empty("uid hash", uid_hash)
        return self

    def set_description(self, description: str) -> Self:
        """Describes the operator in plans, at more length than its name."""
        self._operator().description = description
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Sets how many subtasks the operator has."""
        operator = self._operator()
        if isinstance(parallelism, bool) or not isinstance(parallelism, int) or parallelism < 1:
            raise InvalidProgramError(
                f"The parallelism of operator {describe(operator)} must be an integer of at least 1, "
                f"got {parallelism!r}.",
                hint="Leave set_parallelism out to use the environment's parallelism.",
            )
        maximum = operator.max_parallelism
        if maximum is None:
            maximum = self._environment._configured_max_parallelism()
        if maximum is not None and parallelism > maximum:
            raise InvalidProgramError(
                f"The parallelism {parallelism} of operator {describe(operator)} is higher than its "
                f"max parallelism {maximum}.",
                hint="This operator cannot run in parallel." if maximum == 1 else "Raise the max parallelism first.",
            )
        operator.parallelism = parallelism
        return self

    def disable_chaining(self) -> Self:
        """Runs the operator as a separate task."""
        self._operator().chaining = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """Sets the slot sharing group of the operator; following operators inherit it by default."""
        operator = self._operator()
        group = slot_sharing_group
        if isinstance(group, str):
            group = self._environment._slot_sharing_groups.get(group) or SlotSharingGroup(group)
        elif not isinstance(group, SlotSharingGroup):
            raise TypeError(f"slot_sharing_group must be a str or a SlotSharingGroup, got {type(group).__name__}.")
        operator.slot_sharing_group = group.get_name()
        operator.resource_profile = group.resource_profile()
        return self

    def _set_max_parallelism(self, max_parallelism: int) -> None:
        operator = self._operator()
        check_max_parallelism(max_parallelism, f"operator {describe(operator)}")
        if operator.parallelism is not None and operator.parallelism > max_parallelism:
            raise InvalidProgramError(
                f"The max parallelism {max_parallelism} of operator {describe(operator)} is lower than its "
                f"parallelism {operator.parallelism}.",
                hint="Max parallelism is the number of key groups: it must be at least the parallelism.",
            )
        operator.max_parallelism = max_parallelism


def check_max_parallelism(max_parallelism: int, of_what: str) -> None:
    """Raises an error for an invalid max parallelism."""
    if isinstance(max_parallelism, bool) or not isinstance(max_parallelism, int):
        raise InvalidProgramError(f"The max parallelism of {of_what} must be an integer, got {max_parallelism!r}.")
    if not 1 <= max_parallelism <= MAX_PARALLELISM_LIMIT:
        raise InvalidProgramError(
            f"The max parallelism of {of_what} must be from 1 to {MAX_PARALLELISM_LIMIT}, got {max_parallelism}."
        )


def _non_empty(what: str, value: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidProgramError(f"The {what} of an operator must be a non-empty string, got {value!r}.")
    return value

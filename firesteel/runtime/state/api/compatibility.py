"""State schema compatibility: whether a restored state matches the descriptor that a function registers."""

from __future__ import annotations

from firesteel.api.state import StateDescriptor
from firesteel.common.errors import InvalidProgramError, StateIncompatibleError
from firesteel.runtime.model.state_handles import StateMeta

__all__ = ["check_compatible", "check_kind", "check_same", "meta_of"]


def meta_of(descriptor: StateDescriptor, entries: int = 0) -> StateMeta:
    """The description of a state in a snapshot."""
    return StateMeta(
        descriptor.get_name(),
        descriptor.kind,
        None if descriptor.type_info is None else str(descriptor.type_info),
        descriptor.ttl_config is not None,
        entries,
    )


def check_compatible(restored: StateMeta, descriptor: StateDescriptor) -> None:
    """Refuses a descriptor that does not fit what was restored."""
    check_same(restored, meta_of(descriptor))


def check_same(restored: StateMeta, wanted: StateMeta) -> None:
    """Refuses another kind of state, another declared type, or time-to-live switched on or off."""
    name = wanted.name
    if restored.kind != wanted.kind:
        raise StateIncompatibleError(
            f"State '{name}' was saved as {restored.kind} state, and is now declared as {wanted.kind} state.",
            state=name,
            hint="Give the new state another name; the old state is dropped if the job allows non-restored state.",
        )
    if restored.type is not None and wanted.type is not None and restored.type != wanted.type:
        raise StateIncompatibleError(
            f"State '{name}' was saved with the type {restored.type}, and is now declared as {wanted.type}.",
            state=name,
            hint="Keep the declared type, or give the new state another name.",
        )
    if restored.ttl != wanted.ttl:
        was, now = ("with", "without") if restored.ttl else ("without", "with")
        raise StateIncompatibleError(
            f"State '{name}' was saved {was} time-to-live, and is now declared {now} it.",
            state=name,
            hint="Time-to-live cannot be switched on or off for state that exists; its length may change.",
        )


def check_kind(first: StateDescriptor, descriptor: StateDescriptor) -> None:
    """InvalidProgramError if a name that is in use is asked for with another kind of state."""
    if first.kind != descriptor.kind:
        raise InvalidProgramError(
            f"State '{first.get_name()}' was first registered as {first.kind} state, now as {descriptor.kind} state.",
            hint="Give each state of a function a unique name.",
        )

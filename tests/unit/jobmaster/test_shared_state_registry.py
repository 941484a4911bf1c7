"""Reference counts of state files."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firesteel.jobmaster.checkpoints.shared_state_registry import SharedStateRegistry


def test_a_file_named_by_two_tasks_of_a_checkpoint_counts_once():
    registry = SharedStateRegistry()
    registry.register(1, ["merged"])
    registry.register(1, ["merged", "own"])
    assert registry.unregister(1) == {"merged", "own"}
    assert registry.needed() == frozenset()


def test_a_file_is_needed_until_the_last_checkpoint_is_gone():
    registry = SharedStateRegistry()
    for checkpoint_id in (1, 2, 3):
        registry.register(checkpoint_id, ["base"])
    assert registry.unregister(2) == frozenset()
    assert registry.unregister(1) == frozenset()
    assert registry.is_needed("base")
    assert registry.unregister(3) == {"base"}
    assert not registry.is_needed("base")


def test_what_was_never_registered_is_not_needed():
    registry = SharedStateRegistry()
    registry.register(1, ["/job/shared/a"])
    assert registry.unregister(7) == frozenset()
    assert registry.unneeded(["/job/shared/a", "/job/shared/b"]) == {"/job/shared/b"}
    assert registry.needs_beneath("/job/shared")
    assert not registry.needs_beneath("/job/share")
    assert not registry.needs_beneath("/job/chk-1")


files = st.frozensets(st.sampled_from("abcdef"), max_size=4)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("register"), st.integers(1, 5), files),
            st.tuples(st.just("unregister"), st.integers(1, 5), st.just(frozenset())),
            st.tuples(st.just("reload"), st.just(0), st.just(frozenset())),
        ),
        max_size=30,
    )
)
def test_after_any_history_exactly_what_checkpoints_need_is_left(history):
    registry, disk, checkpoints = SharedStateRegistry(), set(), {}
    for what, checkpoint_id, paths in history:
        if what == "register":
            registry.register(checkpoint_id, paths)
            checkpoints[checkpoint_id] = checkpoints.get(checkpoint_id, frozenset()) | paths
            disk |= paths
        elif what == "unregister":
            checkpoints.pop(checkpoint_id, None)
            disk -= registry.unregister(checkpoint_id)
        else:
            registry = SharedStateRegistry()
            for known, needed in checkpoints.items():
                registry.register(known, needed)
        assert disk == set().union(*checkpoints.values()) == registry.needed()

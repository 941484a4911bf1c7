from __future__ import annotations

import re

import pytest

from firesteel.common.errors import InvalidProgramError

GOLDEN = {
    "Source: in": "3104eb6c04173f4bf64e27bc1136e3ec",
    "Map": "3be5d0e04444f867ff652a3a6aa53b9d",
    "Window": "9b37fb2e974ae1a95e270186bb468e7a",
    "Sink: out": "bee723266ec1a68593e7356857545427",
}


def build(program, *, extra: bool = False, **settings):
    stream = program.op(program.source())
    if extra:
        stream = program.op(stream, "Extra")
    program.sink(program.keyed(stream, **settings))
    return program


def ids(graph):
    return {node.name: node.operator_id for node in graph.nodes}


def test_same_program_same_ids_although_transformation_ids_differ(new_program) -> None:
    first, second = build(new_program()).stream_graph(), build(new_program()).stream_graph()
    assert ids(first) == ids(second)
    assert [n.id for n in first.nodes] != [n.id for n in second.nodes]
    assert all(re.fullmatch("[0-9a-f]{32}", value) for value in ids(first).values())
    assert len(set(ids(first).values())) == 4


def test_ids_do_not_change_between_versions(program) -> None:
    # State of earlier runs is found by these; a change here breaks every savepoint without uids.
    assert ids(build(program).stream_graph()) == GOLDEN


def test_position_matters_without_uid_and_not_with_one(new_program) -> None:
    plain = ids(build(new_program()).stream_graph())["Window"]
    moved = ids(build(new_program(), extra=True).stream_graph())["Window"]
    assert plain != moved
    named = ids(build(new_program(), uid="window").stream_graph())["Window"]
    still = ids(build(new_program(), uid="window", extra=True).stream_graph())["Window"]
    assert named == still


def test_chained_structure_matters(program) -> None:
    graph = build(program)
    assert ids(graph.stream_graph()) != ids(graph.stream_graph(**{"pipeline.operator-chaining.enabled": "false"}))


def test_identical_sources_have_different_ids(program) -> None:
    program.op(program.union(program.source("x"), program.source("x")))
    graph = program.stream_graph()
    assert len({node.operator_id for node in graph.nodes}) == 3


def test_uid_hash_is_the_id(program) -> None:
    program.op(program.source(), uid_hash="ABCDEF0123456789abcdef0123456789")
    assert ids(program.stream_graph())["Map"] == "abcdef0123456789abcdef0123456789"


def test_malformed_uid_hash(program) -> None:
    program.op(program.source(), uid_hash="xyz")
    with pytest.raises(InvalidProgramError, match="xyz"):
        program.stream_graph()


def test_same_uid_hash_twice(program) -> None:
    program.op(program.op(program.source(), "A", uid_hash="0" * 32), "B", uid_hash="0" * 32)
    with pytest.raises(InvalidProgramError, match="'A' and 'B'"):
        program.stream_graph()

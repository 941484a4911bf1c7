"""The handshake without sockets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.runtime.network.auth import Handshake
from firesteel.runtime.network.errors import AuthenticationError


def exchange(source: Handshake, target: Handshake, chunk: int = 1000) -> None:
    data = source.take_outgoing()
    while data:
        n = min(chunk, target.needed)
        assert n, "more was sent than the other side needs"
        target.feed(data[:n])
        data = data[n:]


@given(st.integers(1, 50))
def test_both_sides_learn_who_the_other_is(chunk: int) -> None:
    dialer, acceptor = Handshake(b"secret", 7, dialing=True), Handshake(b"secret", 3, dialing=False)
    for _ in range(2):
        exchange(dialer, acceptor, chunk)
        exchange(acceptor, dialer, chunk)
    assert (dialer.done, dialer.peer_id) == (True, 3)
    assert (acceptor.done, acceptor.peer_id) == (True, 7)
    assert dialer.needed == acceptor.needed == 0
    assert not dialer.take_outgoing() + acceptor.take_outgoing()


def test_a_wrong_secret_is_an_error_on_both_sides() -> None:
    dialer, acceptor = Handshake(b"secret", 1, dialing=True), Handshake(b"other", 0, dialing=False)
    exchange(dialer, acceptor)
    exchange(acceptor, dialer)
    with pytest.raises(AuthenticationError, match="process 1 does not have the job's secret"):
        exchange(dialer, acceptor)
    with pytest.raises(AuthenticationError, match="process 0 rejected the job's secret"):
        exchange(acceptor, dialer)
    assert not dialer.done
    assert not acceptor.done


def test_an_impostor_cannot_accept_in_the_peers_place() -> None:
    dialer, impostor = Handshake(b"secret", 1, dialing=True), Handshake(b"guess", 0, dialing=False)
    exchange(dialer, impostor)
    exchange(impostor, dialer)
    proof = dialer.take_outgoing()
    with pytest.raises(AuthenticationError, match="does not have"):
        dialer.feed(b"\x01" + proof)  # reflects the dialer's own proof
    assert not dialer.done


def test_a_recorded_proof_is_of_no_use_later() -> None:
    dialer, acceptor = Handshake(b"secret", 1, dialing=True), Handshake(b"secret", 0, dialing=False)
    hello = dialer.take_outgoing()
    acceptor.feed(hello)
    dialer.feed(acceptor.take_outgoing())
    proof = dialer.take_outgoing()
    acceptor.feed(proof)
    assert acceptor.done
    again = Handshake(b"secret", 0, dialing=False)
    again.feed(hello)
    with pytest.raises(AuthenticationError):
        again.feed(proof)


def test_garbage_gets_no_answer() -> None:
    acceptor = Handshake(b"secret", 0, dialing=False)
    with pytest.raises(AuthenticationError, match="protocol"):
        acceptor.feed(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"[: acceptor.needed].ljust(acceptor.needed))
    assert acceptor.take_outgoing() == b""


def test_an_empty_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        Handshake(b"", 0, dialing=False)

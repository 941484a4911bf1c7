"""Servers of tests that cannot be started."""

from __future__ import annotations

import pytest

from firesteel.testing.services.processes import ServiceUnavailable, require_package


def test_a_missing_client_library_is_named_with_its_extra() -> None:
    with pytest.raises(ServiceUnavailable, match=r"A Kafka broker needs the package no_such_package") as raised:
        require_package("no_such_package", "A Kafka broker")
    assert "firesteel[services]" in str(raised.value)


def test_an_installed_client_library_is_accepted() -> None:
    require_package("pytest", "A server")

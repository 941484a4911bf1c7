"""The settings of a capture."""

from __future__ import annotations

import pickle

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.datastream.connectors.postgres import PostgresCdcSource, StartupOptions
from firesteel.spi.source import Boundedness


def test_a_source_travels_and_does_not_show_its_password():
    builder = PostgresCdcSource.builder().hostname("db.local").port(5433).database("shop").username("me")
    source = builder.password("secret").table_list("public.orders").slot_name("orders").build()
    copy = pickle.loads(pickle.dumps(source))
    assert copy.options == source.options
    assert "secret" not in repr(source) + repr(source.options)
    assert "db.local" in repr(source)
    assert source.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    assert builder.startup_options(StartupOptions.snapshot()).build().get_boundedness() is Boundedness.BOUNDED


@pytest.mark.parametrize(
    "build",
    [
        lambda builder: builder.build(),
        lambda builder: builder.hostname("h").build(),
        lambda builder: builder.hostname("h").database("d").build(),
        lambda builder: builder.hostname("h").database("d").table_list("a(").build(),
        lambda builder: builder.hostname("h").database("d").table_list("a.b").slot_name("Slot").build(),
        lambda builder: builder.hostname("h").database("d").table_list("a.b").changelog_mode("some").build(),
        lambda builder: builder.hostname("h").database("d").table_list("a.b").split_size(0).build(),
        lambda builder: builder.decoding_plugin_name("wal2json"),
    ],
)
def test_settings_that_cannot_be(build):
    with pytest.raises(InvalidProgramError):
        build(PostgresCdcSource.builder())

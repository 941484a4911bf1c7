"""Catalogs of a store of files: they are there in the next session, and opened when they are used."""

from __future__ import annotations

from pathlib import Path

import pytest

from firesteel.common.errors import FiresteelError
from firesteel.config.configuration import Configuration
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog import CatalogDescriptor


def _environment(path: Path | None, kind: str = "file") -> TableEnvironment:
    options = {"table.catalog-store.kind": kind, "execution.runtime-mode": "streaming"}
    if path is not None:
        options["table.catalog-store.file.path"] = str(path)
    settings = EnvironmentSettings.new_instance().with_configuration(Configuration.from_dict(options))
    return TableEnvironment.create(settings.build())


def test_catalogs_are_there_in_the_next_session(tmp_path: Path) -> None:
    first = _environment(tmp_path / "store")
    first.execute_sql("CREATE CATALOG c WITH ('type' = 'generic_in_memory', 'default-database' = 'dd')")
    first.create_catalog("d", CatalogDescriptor.of("d", Configuration.from_dict({"type": "generic_in_memory"})))
    first.execute_sql("ALTER CATALOG d SET ('default-database' = 'it''s: #1')")
    first.execute_sql("CREATE CATALOG e WITH ('type' = 'generic_in_memory')")
    first.execute_sql("DROP CATALOG e")
    # as Flink 2.3 writes it
    assert (tmp_path / "store" / "c.yaml").read_text() == 'default-database: "dd"\ntype: "generic_in_memory"\n'
    second = _environment(tmp_path / "store")
    assert second.list_catalogs() == ["c", "d", "default_catalog"]
    second.use_catalog("d")
    assert second.get_current_database() == "it's: #1"
    assert second.get_catalog("c") is second.get_catalog("c")
    with pytest.raises(ValidationError, match=r"Catalog c already exists\."):
        second.execute_sql("CREATE CATALOG c WITH ('type' = 'generic_in_memory')")


def test_a_catalog_that_cannot_be_opened(tmp_path: Path) -> None:
    """It says which and why when it is used, and can be dropped. Flink's own file is read."""
    (tmp_path / "broken.yaml").write_text('type: "jdbc"\npassword: "secret"\n')
    (tmp_path / "list.yaml").write_text("- a\n")
    environment = _environment(tmp_path)
    with pytest.raises(ValidationError, match=r"Unable to create catalog 'broken'") as raised:
        environment.execute_sql("SELECT * FROM broken.a.b")
    assert "base-url" in str(raised.value)
    assert "'secret'" not in str(raised.value)
    with pytest.raises(FiresteelError, match=r"list\.yaml"):
        environment.use_catalog("list")
    environment.execute_sql("DROP CATALOG broken")
    assert environment.list_catalogs() == ["default_catalog", "list"]


@pytest.mark.parametrize(
    ("kind", "message"), [("fiel", "Did you mean 'file'"), ("file", "table.catalog-store.file.path")]
)
def test_options_that_are_refused(kind: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        _environment(None, kind)
